//! The `if` of a hook handler: one rule in permission syntax, matched by rules of its own.
//!
//! Source: gate-and-hooks, section 3.4: the tool's own name counts (no `Edit` for Write), wrappers are not stripped, and
//! a rule with more than a command name also holds for commands with substitutions or variables.

use super::paths::{self, Anchor, PathPattern, PathSet};
use super::rule::{BashPattern, Behaviour};
use super::shell::{self, Obstacle};
use super::tools;
use super::web;
use super::workspace::Workspace;
use crate::profile::{gate::GateParameters, hooks::HookParameters};
use serde_json::Value;

/// Whether the condition holds for a call.
pub fn holds(
    condition: &str,
    tool: &str,
    input: &Value,
    workspace: &Workspace,
    gate: &GateParameters,
    hooks: &HookParameters,
) -> bool {
    if condition.is_empty() || condition == tool {
        return true;
    }
    let Some(specifier) = condition
        .strip_prefix(tool)
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.strip_suffix(')'))
    else {
        return false;
    };
    if specifier == "*" {
        return true;
    }
    match tool {
        "Bash" => {
            let text = input.get("command").and_then(Value::as_str).unwrap_or("");
            BashPattern::parse(specifier)
                .is_ok_and(|pattern| command_holds(&pattern, specifier, text, workspace, hooks))
        }
        "WebFetch" => {
            let host = input.get("url").and_then(Value::as_str).and_then(web::host);
            match (specifier.strip_prefix("domain:"), host) {
                (Some(domain), Some(host)) => web::domain_matches(domain, &host),
                _ => false,
            }
        }
        "Agent" => input.get("subagent_type").and_then(Value::as_str) == Some(specifier),
        "Skill" => {
            let name = specifier.strip_suffix(":*").unwrap_or(specifier);
            input.get("skill").and_then(Value::as_str) == Some(name)
        }
        _ => tools::path_of(tool, input).is_some_and(|path| {
            let path = workspace.absolute(path);
            path_holds(specifier, &path, workspace, gate)
        }),
    }
}

fn path_holds(specifier: &str, path: &str, workspace: &Workspace, gate: &GateParameters) -> bool {
    let Ok(pattern) = PathPattern::parse(specifier, Behaviour::Allow) else { return false };
    let base = match pattern.anchor {
        Anchor::Root => "/",
        Anchor::Home => workspace.home.as_str(),
        Anchor::Level | Anchor::Cwd => workspace.project.as_str(),
    };
    let ignore_case = gate.paths_ignore_case.value;
    paths::line_is_usable(&pattern.line, ignore_case)
        && PathSet::compile(vec![(base.to_owned(), pattern.line, 0)], ignore_case).matches(path).is_some()
}

fn command_holds(
    pattern: &BashPattern,
    specifier: &str,
    text: &str,
    workspace: &Workspace,
    hooks: &HookParameters,
) -> bool {
    let script = shell::decompose(text, &workspace.home);
    let matches = script.parts.iter().filter(|part| !part.words.is_empty()).any(|part| {
        let mut folded = part.name().to_owned();
        for word in part.words.iter().skip(1) {
            folded.push(' ');
            folded.push_str(&word.raw);
        }
        pattern.matches_folded(&folded) || pattern.matches_folded(&part.source)
    });
    let names_only = {
        let stem = specifier.strip_suffix(":*").or_else(|| specifier.strip_suffix(" *")).unwrap_or(specifier);
        (specifier != stem) && !stem.contains(' ')
    };
    let hidden = script.obstacles.iter().any(|o| matches!(o, Obstacle::Substitution | Obstacle::Variable));
    matches || (hooks.if_fires_on_unreadable.value && !names_only && hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{gate, hooks};
    use serde_json::json;

    fn fires(condition: &str, tool: &str, input: &Value) -> bool {
        let workspace = Workspace::new("/w", "/h");
        holds(condition, tool, input, &workspace, &gate::CLAUDE_CODE, &hooks::CLAUDE_CODE)
    }

    /// The table of gate-and-hooks, section 3.4.
    #[test]
    fn conditions_of_the_table() {
        let write = json!({"file_path": "/w/a.txt", "content": "x"});
        for condition in
            ["Write", "Write(a.txt)", "Write(*.txt)", "Write(./a.txt)", "Write(**)", "Write(/a.txt)", ""]
        {
            assert!(fires(condition, "Write", &write), "{condition}");
        }
        for condition in ["Edit", "Edit(a.txt)", "*", "Write|Edit", "Read(a.txt)", "Write(", "write(a.txt)"] {
            assert!(!fires(condition, "Write", &write), "{condition}");
        }
        let bash = |condition: &str, command: &str| fires(condition, "Bash", &json!({"command": command}));
        for command in
            ["foo a", "X=1 foo a", "ls && foo a", "echo $(foo a)", "for i in 1; do foo a; done", "foo a 'x"]
        {
            assert!(bash("Bash(foo *)", command), "{command}");
        }
        for command in ["timeout 5 foo a", "bash -c 'foo a'", "/usr/bin/foo a", "echo 'foo a'", "echo $X"] {
            assert!(!bash("Bash(foo *)", command), "{command}");
        }
        assert!(bash("Bash(git push *)", "echo $X") && bash("Bash(foo a)", "echo $(date)"));
        assert!(!bash("Bash(git push *)", "foo a 'x") && bash("Bash", "foo a 'x") && bash("Bash(*)", "ls"));
        let mcp = json!({"a": 1});
        assert!(
            fires("mcp__srv__add", "mcp__srv__add", &mcp) && fires("mcp__srv__add(*)", "mcp__srv__add", &mcp)
        );
        for condition in ["mcp__srv", "mcp__srv__*", "mcp__*"] {
            assert!(!fires(condition, "mcp__srv__add", &mcp), "{condition}");
        }
    }
}
