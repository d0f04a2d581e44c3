//! The permission step for a shell command: its parts, the files it touches, what it would remove.
//!
//! Source: gate-and-hooks, sections 7.2, 7.5 and 7.6.

use super::bash::{self, Access};
use super::facts::Facts;
use super::mode::Mode;
use super::paths;
use super::permission::{Answer, AskKind, By, Permission, Policy, answer, below};
use super::readonly;
use super::rule::Behaviour;
use super::shell::{self, Obstacle, Part, Script, Word};
use super::workspace::Workspace;
use serde_json::Value;

/// The permission step for a command.
pub(super) fn bash_permission(
    policy: &Policy,
    workspace: &Workspace,
    facts: &dyn Facts,
    text: &str,
    input: &Value,
) -> Answer {
    use Permission::{Allow, Ask, Check, Deny};
    let deny = policy.rules.list(Behaviour::Deny);
    let ask = policy.rules.list(Behaviour::Ask);
    let allow = policy.rules.list(Behaviour::Allow);
    let mode = workspace.mode;
    let script = shell::decompose(text, &workspace.home);
    let denied = bash::restricting_rule(deny, text, &script).or_else(|| {
        if deny.has_bash() { bash::removal_in_shell_text(deny, &script, &workspace.home) } else { None }
    });
    if let Some(rule) = denied {
        return answer(Deny, By::Rule(rule));
    }
    if let Some(rule) = denied_path(policy, workspace, &script) {
        return answer(Deny, By::Rule(rule));
    }
    let asked = ask
        .tool("Bash")
        .or_else(|| ask.parameter("Bash", input))
        .or_else(|| bash::restricting_rule(ask, text, &script))
        .or_else(|| asked_path(policy, workspace, &script));
    if let Some(rule) = asked {
        return answer(Ask(AskKind::Rule), By::Rule(rule));
    }
    if let Some(path) = critical_removal(workspace, &script) {
        let permission = if mode == Mode::Auto { Check } else { Ask(AskKind::Safety) };
        return answer(permission, By::Critical(path));
    }
    if mode == Mode::Bypass {
        return answer(Allow, By::Mode);
    }
    if let Some(path) = protected_write(workspace, &script) {
        let permission = if mode == Mode::Auto { Check } else { Ask(AskKind::Safety) };
        return answer(permission, By::Protected(path));
    }
    let rules_hold = mode != Mode::Plan || policy.parameters.bash_rule_runs_in_plan.value;
    if !workspace.has_classifier()
        && rules_hold
        && let Some(rule) = allow.tool("Bash")
    {
        return answer(Allow, By::Rule(rule));
    }
    let why = match every_part(policy, workspace, facts, text, &script, rules_hold) {
        Ok(by) => return answer(Allow, by),
        Err(why) => why,
    };
    if workspace.has_classifier() { answer(Check, why) } else { answer(Ask(AskKind::Other), why) }
}

/// Whether every part may run; otherwise what is in the way.
fn every_part(
    policy: &Policy,
    workspace: &Workspace,
    facts: &dyn Facts,
    text: &str,
    script: &Script,
    rules_hold: bool,
) -> Result<By, By> {
    let allow = policy.rules.list(Behaviour::Allow);
    if script.background {
        return Err(By::Background);
    }
    let mut rules = Vec::new();
    let exact = if rules_hold { allow.bash_exact(text.trim()) } else { None };
    if text.chars().count() > policy.parameters.readable_characters.value && exact.is_none() {
        return Err(By::Unreadable(Obstacle::Unparsable));
    }
    if exact.is_none() {
        if let Some(obstacle) = script.obstacles.first() {
            return Err(By::Unreadable(*obstacle));
        }
        if script.parts.iter().any(bash::is_evaluator) {
            return Err(By::Unreadable(Obstacle::Evaluator));
        }
    }
    let edits = matches!(workspace.mode, Mode::AcceptEdits | Mode::Auto);
    let mut here = workspace.cwd.clone();
    let mut moved = false;
    let mut writes_files = false;
    for part in &script.parts {
        let inside = |path: &str| {
            let absolute = paths::normal(path, &here, &workspace.home);
            workspace.is_inside(&absolute, facts)
        };
        for redirect in part.redirects.iter().filter(|redirect| redirect.writes) {
            writes_files |= redirect_is_covered(policy, workspace, facts, &here, &redirect.target, edits)?;
        }
        if exact.is_some() {
            continue;
        }
        let is_cd = part.name() == "cd";
        if is_cd {
            let target = part.words.get(1).map_or("~", Word::text);
            let ruled = if rules_hold { bash::allowing_rule(allow, part) } else { None };
            if part.words.len() > 2 || (!inside(target) && ruled.is_none()) {
                return Err(By::Outside(target.to_owned()));
            }
            let next = paths::normal(target, &here, &workspace.home).into_owned();
            moved |= next != here;
            here = next;
            continue;
        }
        if moved && part.name() == "git" {
            return Err(By::ChangesDirectory(part.source.clone()));
        }
        let written = bash::written_operands(bash::unwrapped(part));
        writes_files |= !written.is_empty();
        let rule = if rules_hold { bash::allowing_rule(allow, part) } else { None };
        if let Some(rule) = rule {
            rules.push(rule);
        } else {
            let reads = !part.nested
                && bash::words_for_reading(part)
                    .is_some_and(|words| readonly::is_read_only(part, words, &inside));
            let edited = edits && !part.nested && bash::is_edit_command(part, &inside);
            if !reads && !edited {
                return Err(By::Part(part.source.clone()));
            }
        }
    }
    if moved && writes_files {
        return Err(By::ChangesDirectory(text.to_owned()));
    }
    Ok(match (exact, rules.is_empty()) {
        (Some(rule), _) => By::Rule(rule),
        (None, true) => By::ReadOnly,
        (None, false) => By::Parts(rules),
    })
}

/// Whether a redirect may write; `Ok(false)` for targets that are no files.
fn redirect_is_covered(
    policy: &Policy,
    workspace: &Workspace,
    facts: &dyn Facts,
    here: &str,
    target: &Word,
    edits: bool,
) -> Result<bool, By> {
    let Some(path) = target.value.as_deref() else { return Err(By::Outside(target.raw.clone())) };
    if readonly::is_null(path) {
        return Ok(false);
    }
    if target.expands || target.glob {
        return Err(By::Outside(target.raw.clone()));
    }
    let absolute = paths::normal(path, here, &workspace.home);
    let by_rule = policy.rules.list(Behaviour::Allow).edit.matches(&absolute).is_some()
        && (facts.real_path(&absolute) == absolute.as_ref() || workspace.is_inside(&absolute, facts));
    if by_rule || (edits && workspace.is_inside(&absolute, facts)) {
        Ok(true)
    } else {
        Err(By::Outside(target.raw.clone()))
    }
}

/// The paths a readable command reads and writes, with the directory they are relative to.
fn accessed<'a>(workspace: &Workspace, script: &'a Script) -> Vec<(String, Access, &'a Part)> {
    let mut found = Vec::new();
    let mut here = workspace.cwd.clone();
    for part in &script.parts {
        let words = bash::unwrapped(part);
        for redirect in &part.redirects {
            let access = if redirect.writes { Access::Writes } else { Access::Reads };
            if let Some(path) = redirect.target.value.as_deref() {
                found.push((paths::normal(path, &here, &workspace.home).into_owned(), access, part));
            }
        }
        for (word, access) in bash::path_operands(words) {
            if let Some(path) = word.value.as_deref() {
                found.push((paths::normal(path, &here, &workspace.home).into_owned(), access, part));
            }
        }
        if part.name() == "cd"
            && let Some(target) = part.words.get(1).and_then(|word| word.value.as_deref())
        {
            here = paths::normal(target, &here, &workspace.home).into_owned();
        }
    }
    found
}

/// The path deny rule that a recognised command runs into. Commands with groups or substitutions are not looked into.
fn denied_path(policy: &Policy, workspace: &Workspace, script: &Script) -> Option<u32> {
    let deny = policy.rules.list(Behaviour::Deny);
    if (deny.read.is_empty() && deny.edit.is_empty()) || !script.is_readable() {
        return None;
    }
    accessed(workspace, script).iter().find_map(|(path, access, _)| match access {
        Access::Reads => deny.read.matches(path),
        Access::Writes => deny.edit.matches(path),
    })
}

/// The path ask rule, where the profile lets them reach commands.
fn asked_path(policy: &Policy, workspace: &Workspace, script: &Script) -> Option<u32> {
    if !policy.parameters.path_ask_covers_bash.value {
        return None;
    }
    let ask = policy.rules.list(Behaviour::Ask);
    if (ask.read.is_empty() && ask.edit.is_empty()) || !script.is_readable() {
        return None;
    }
    accessed(workspace, script).iter().find_map(|(path, access, _)| match access {
        Access::Reads => ask.read.matches(path),
        Access::Writes => ask.edit.matches(path),
    })
}

fn critical_removal(workspace: &Workspace, script: &Script) -> Option<String> {
    let mut here = workspace.cwd.clone();
    for part in &script.parts {
        for word in bash::removed_operands(part).into_iter().flatten() {
            if bash::is_variable_root(word) {
                return Some(word.raw.clone());
            }
            let Some(path) = word.value.as_deref() else { continue };
            let path = path.strip_suffix("/*").map_or(path, |dir| if dir.is_empty() { "/" } else { dir });
            let is_root_glob = word.text() == "/*";
            let absolute = paths::normal(path, &here, &workspace.home);
            let star_below = word.text().ends_with("/*") && !is_root_glob;
            if !star_below && paths::is_critical_removal(&absolute, &here, &workspace.home) {
                return Some(word.raw.clone());
            }
        }
        if part.name() == "cd"
            && let Some(target) = part.words.get(1).and_then(|word| word.value.as_deref())
        {
            here = paths::normal(target, &here, &workspace.home).into_owned();
        }
    }
    None
}

fn protected_write(workspace: &Workspace, script: &Script) -> Option<String> {
    let mut here = workspace.cwd.clone();
    for part in &script.parts {
        let operands = bash::written_operands(bash::unwrapped(part));
        let targets = part.redirects.iter().filter(|r| r.writes).map(|r| &r.target).chain(operands);
        for word in targets {
            if let Some(path) = word.value.as_deref() {
                let absolute = paths::normal(path, &here, &workspace.home);
                if paths::is_protected(below(&absolute, workspace)) {
                    return Some(word.raw.clone());
                }
            }
        }
        if part.name() == "cd"
            && let Some(target) = part.words.get(1).and_then(|word| word.value.as_deref())
        {
            here = paths::normal(target, &here, &workspace.home).into_owned();
        }
    }
    None
}

/// The directory a command that ran leaves the session in: that of its last top-level `cd`, if it is inside the working
/// directories; the start directory otherwise.
pub fn directory_after(workspace: &Workspace, facts: &dyn Facts, text: &str) -> String {
    let script = shell::decompose(text, &workspace.home);
    let mut here = workspace.cwd.clone();
    for part in script.parts.iter().filter(|part| !part.nested && part.name() == "cd") {
        let target = part.words.get(1).map_or("~", Word::text);
        here = paths::normal(target, &here, &workspace.home).into_owned();
    }
    if workspace.is_inside(&here, facts) { here } else { workspace.project.clone() }
}
