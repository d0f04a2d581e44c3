//! Which calls change decision between two settings.
//!
//! Calls are compared on the atoms that the rules of both sides distinguish: for each rule a call that it catches, a
//! near miss, each tool as a whole, and pairs of what two rules catch for commands. Hooks are opaque. The comparison is
//! complete relative to these atoms (decisions, 15): a differing call is covered by a reported class of the same tool.

use super::examples::{self, Example};
use super::explain::judge;
use super::facts::NoFiles;
use super::pipeline::{Outcome, Session};
use super::tools;
use crate::hooks::HookDecision;
use serde::Serialize;
use serde_json::{Value, json};

/// Rules beyond which commands of two rules are not joined.
const PAIR_LIMIT: usize = 60;
/// Commands beyond which their further forms are left out.
const RULE_LIMIT: usize = 2_000;

/// A call whose decision differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The tool.
    pub tool: String,
    /// The smallest input that shows it.
    pub input: Value,
    /// The decision under the old settings.
    pub old: &'static str,
    /// The decision under the new settings.
    pub new: &'static str,
}

/// The calls that the rules of both sessions distinguish.
pub fn atoms(old: &Session, new: &Session) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    let mut add = |example: Example| {
        if known.insert((example.tool.clone(), example.input.to_string())) {
            found.push(example);
        }
    };
    for tool in tools::builtin_names() {
        add(Example { tool: tool.to_owned(), input: examples::plain_input(tool) });
    }
    for tool in old.policy.tools.mcp.keys().chain(new.policy.tools.mcp.keys()) {
        add(Example { tool: tool.clone(), input: json!({}) });
    }
    let mut commands = Vec::new();
    for session in [old, new] {
        for (_, pattern) in &session.policy.rules.patterns {
            for example in examples::caught(pattern, &session.policy.tools)
                .into_iter()
                .chain(examples::near_miss(pattern))
            {
                for variant in variants(&example) {
                    add(variant);
                }
                if example.tool == "Bash" {
                    commands.push(example.clone());
                }
                add(example);
            }
        }
    }
    for example in circumstances() {
        add(example);
    }
    commands.dedup();
    for command in commands.iter().take(RULE_LIMIT) {
        let text = command.input.get("command").and_then(Value::as_str).unwrap_or("").to_owned();
        for form in [
            "{} > zz-file",
            "{} > .git/zz",
            "{} &",
            "echo $({})",
            "X=1 {}",
            "timeout 5 {}",
            "env {}",
            "{}; echo $V",
            "cd src && {}",
            "{} && touch zz-file",
            "{} && cat /zz-outside/f",
        ] {
            add(bash(&form.replace("{}", &text)));
        }
    }
    for a in commands.iter().take(PAIR_LIMIT) {
        for b in commands.iter().take(PAIR_LIMIT) {
            let text = |example: &Example| {
                example.input.get("command").and_then(Value::as_str).unwrap_or("").to_owned()
            };
            let (a, b) = (text(a), text(b));
            if a != b {
                add(Example { tool: "Bash".to_owned(), input: json!({"command": format!("{a} && {b}")}) });
            }
        }
    }
    found
}

fn bash(command: &str) -> Example {
    Example { tool: "Bash".to_owned(), input: json!({"command": command}) }
}

/// What decides apart from rules: inside or outside the working directories, protected, critical, readable.
fn circumstances() -> Vec<Example> {
    let mut found = Vec::new();
    for path in ["zz-file", "/zz-outside/f", "~/zz-file", ".git/zz"] {
        for tool in ["Read", "Write", "Edit", "NotebookEdit"] {
            let mut input = examples::plain_input(tool);
            let field = if tool == "NotebookEdit" { "notebook_path" } else { "file_path" };
            if let Some(slot) = input.get_mut(field) {
                *slot = Value::String(path.to_owned());
            }
            found.push(Example { tool: tool.to_owned(), input });
        }
        for form in ["cat {}", "touch {}", "echo zz > {}", "zz-plain > {}"] {
            found.push(bash(&form.replace("{}", path)));
        }
    }
    let commands = [
        "ls",
        "zz-plain &",
        "echo $(zz-plain)",
        "echo $V",
        "rm -rf /",
        "cd /",
        "cd src && git status",
        "eval zz-plain",
    ];
    found.extend(commands.map(bash));
    found
}

/// The same path by the other file tools and by recognised commands: rules of one reach the others.
fn variants(example: &Example) -> Vec<Example> {
    let Some(path) = tools::path_of(&example.tool, &example.input).map(str::to_owned) else {
        return Vec::new();
    };
    let commands = ["cat {}", "touch {}", "echo zz > {}", "cat < {}", "ls > {}"]
        .map(|form| bash(&form.replace("{}", &path)));
    ["Read", "Write", "Edit"]
        .into_iter()
        .filter(|tool| *tool != example.tool)
        .map(|tool| {
            let mut input = examples::plain_input(tool);
            if let Some(slot) = input.get_mut("file_path") {
                *slot = Value::String(path.clone());
            }
            Example { tool: tool.to_owned(), input }
        })
        .chain(commands)
        .collect()
}

/// The decision of one call without hooks and files.
pub fn decide(session: &Session, tool: &str, input: &Value) -> Outcome {
    judge(session, &NoFiles, tool, input, HookDecision::None)
}

/// Every atom whose decision differs; smaller inputs first within a tool.
pub fn diff(old: &Session, new: &Session) -> Vec<Difference> {
    let mut found: Vec<Difference> = atoms(old, new)
        .into_iter()
        .filter_map(|atom| {
            let (was, is) = (decide(old, &atom.tool, &atom.input), decide(new, &atom.tool, &atom.input));
            (was != is).then(|| Difference {
                tool: atom.tool,
                input: atom.input,
                old: was.decision(),
                new: is.decision(),
            })
        })
        .collect();
    found.sort_by_cached_key(|difference| {
        let text = difference.input.to_string();
        (difference.tool.clone(), text.len(), text)
    });
    found
}
