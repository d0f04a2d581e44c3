//! Rules, mode and facts: what the permission step answers before hooks are looked at.
//!
//! Source: gate-and-hooks, section 13, `permission`: the first line that applies decides.

use super::bash::{self, Access};
use super::facts::Facts;
use super::mode::Mode;
use super::paths;
use super::readonly;
use super::rule::Behaviour;
use super::rules::{Bases, RuleSet};
use super::shell::{self, Obstacle, Part, Script, Word};
use super::tools::{self, ToolTable};
use super::web;
use crate::profile::gate::GateParameters;
use crate::sources::merge::Merged;
use serde_json::Value;
use std::borrow::Cow;

/// Why the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AskKind {
    /// An ask rule.
    Rule,
    /// A protected path or a critical removal.
    Safety,
    /// Plan mode.
    Plan,
    /// The path is outside the working directories.
    WorkingDirectory,
    /// The tool refuses: the path is a symbolic link.
    Refusal,
    /// No rule, and nothing else decides.
    Other,
}

/// What the permission step answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// It runs.
    Allow,
    /// The user is asked.
    Ask(AskKind),
    /// It is refused.
    Deny,
    /// Auto mode's classifier judges it.
    Check,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The rule of that index.
    Rule(u32),
    /// Every part of the command: rules of these indices, the read-only set, the mode.
    Parts(Vec<u32>),
    /// The permission mode.
    Mode,
    /// Reading inside the working directories.
    InsideDirectories,
    /// The set of commands that only read.
    ReadOnly,
    /// The tool needs no permission.
    NeedsNone,
    /// The host is approved beforehand.
    Preapproved,
    /// The path is protected.
    Protected(String),
    /// The removal is critical.
    Critical(String),
    /// The path is outside the working directories.
    Outside(String),
    /// The path is a symbolic link.
    Symlink(String),
    /// The command cannot be read.
    Unreadable(Obstacle),
    /// The command runs in the background.
    Background,
    /// This part has no rule.
    Part(String),
    /// The command changes directory and then does something that depends on it.
    ChangesDirectory(String),
    /// Nothing decides.
    Nobody,
}

/// The answer and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub permission: Permission,
    /// Who gave it.
    pub by: By,
}

fn answer(permission: Permission, by: By) -> Answer {
    Answer { permission, by }
}

/// Where the session works: what changes from call to call is the current directory and the mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// The directory the session was started in; absolute and normal.
    pub project: String,
    /// The current directory.
    pub cwd: String,
    /// Home.
    pub home: String,
    /// Additional directories; absolute and normal.
    pub directories: Vec<String>,
    /// The mode in force.
    pub mode: Mode,
    /// Whether auto mode is available, so that plan mode judges with its classifier.
    pub plan_with_auto: bool,
}

impl Workspace {
    /// A workspace in `project` with the given home, in default mode.
    pub fn new(project: &str, home: &str) -> Self {
        Self {
            project: project.to_owned(),
            cwd: project.to_owned(),
            home: home.to_owned(),
            directories: Vec::new(),
            mode: Mode::Default,
            plan_with_auto: true,
        }
    }

    /// Adds a directory as it was written in settings or on the command line.
    pub fn add_directory(&mut self, written: &str) {
        let path = paths::normal(written, &self.project, &self.home).into_owned();
        self.directories.push(path);
    }

    /// The bases of path rules.
    pub fn bases(&self) -> Bases {
        Bases { project: self.project.clone(), home: self.home.clone() }
    }

    /// The absolute, normal form of a path as a tool or command writes it.
    pub fn absolute<'a>(&self, path: &'a str) -> Cow<'a, str> {
        paths::normal(path, &self.cwd, &self.home)
    }

    fn contains(&self, path: &str) -> bool {
        paths::is_inside(path, &self.project)
            || self.directories.iter().any(|dir| paths::is_inside(path, dir))
    }

    /// Whether an absolute path and what it resolves to are inside the working directories.
    pub fn is_inside(&self, path: &str, facts: &dyn Facts) -> bool {
        if !self.contains(path) {
            return false;
        }
        let real = facts.real_path(path);
        real == path || self.contains(&real) || self.contains_really(&real, facts)
    }

    /// The working directories may themselves be reached through links.
    fn contains_really(&self, real: &str, facts: &dyn Facts) -> bool {
        std::iter::once(&self.project)
            .chain(&self.directories)
            .any(|dir| paths::is_inside(real, &facts.real_path(dir)))
    }

    /// Whether the classifier judges what nothing else decides.
    fn has_classifier(&self) -> bool {
        self.mode == Mode::Auto || (self.mode == Mode::Plan && self.plan_with_auto)
    }
}

/// Compiled rules with their parameters and tools.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The rules.
    pub rules: RuleSet,
    /// The tools.
    pub tools: ToolTable,
    /// The parameters.
    pub parameters: GateParameters,
}

impl Policy {
    /// Compiles what the settings say.
    pub fn new(merged: &Merged, bases: &Bases, tools: ToolTable, parameters: &GateParameters) -> Self {
        Self { rules: RuleSet::compile(&merged.rules, bases, parameters), tools, parameters: *parameters }
    }

    /// The deny rule that removes a tool from the session.
    pub fn removed_by(&self, tool: &str) -> Option<u32> {
        self.rules.list(Behaviour::Deny).tool(tool)
    }
}

/// The deny rule that covers the path of a file tool (step 5 where path denies come before the hooks). With links that
/// are resolved only when `follow` is set (step 8).
pub fn path_deny(
    policy: &Policy,
    workspace: &Workspace,
    facts: &dyn Facts,
    tool: &str,
    input: &Value,
    follow: bool,
) -> Option<u32> {
    let path = workspace.absolute(tools::path_of(tool, input)?);
    let deny = policy.rules.list(Behaviour::Deny);
    if deny.read.is_empty() && deny.edit.is_empty() {
        return None;
    }
    let covers = |path: &str| {
        deny.read.matches(path).or_else(|| if tool == "Read" { None } else { deny.edit.matches(path) })
    };
    covers(&path).or_else(|| {
        if !follow {
            return None;
        }
        let real = facts.real_path(&path);
        if real == path.as_ref() { None } else { covers(&real) }
    })
}

/// The permission step. Total: every call gets an answer.
pub fn permission(
    policy: &Policy,
    workspace: &Workspace,
    facts: &dyn Facts,
    tool: &str,
    input: &Value,
) -> Answer {
    use Permission::{Allow, Ask, Check, Deny};
    let deny = policy.rules.list(Behaviour::Deny);
    let ask = policy.rules.list(Behaviour::Ask);
    let allow = policy.rules.list(Behaviour::Allow);
    let mode = workspace.mode;
    if let Some(rule) = deny.tool(tool).or_else(|| deny.parameter(tool, input)) {
        return answer(Deny, By::Rule(rule));
    }
    if tool == "Bash" {
        let text = input.get("command").and_then(Value::as_str).unwrap_or("");
        return bash_permission(policy, workspace, facts, text, input);
    }
    if let Some(path) = tools::path_of(tool, input) {
        return file_permission(policy, workspace, facts, tool, input, path);
    }
    let is_mcp = tool.starts_with("mcp__");
    let host =
        if tool == "WebFetch" { input.get("url").and_then(Value::as_str).and_then(web::host) } else { None };
    let skill = if tool == "Skill" { input.get("skill").and_then(Value::as_str) } else { None };
    let agent = if tool == "Agent" { input.get("subagent_type").and_then(Value::as_str) } else { None };
    let names = policy.parameters.ask_covers_agent_and_skill_names.value;
    let denied = host.as_deref().and_then(|h| deny.domain(h)).or_else(|| skill.and_then(|s| deny.skill(s)));
    if let Some(rule) = denied {
        return answer(Deny, By::Rule(rule));
    }
    let asked = ask
        .tool(tool)
        .or_else(|| ask.parameter(tool, input))
        .or_else(|| host.as_deref().and_then(|h| ask.domain(h)))
        .or_else(|| skill.filter(|_| names).and_then(|s| ask.skill(s)))
        .or_else(|| agent.filter(|_| names).and_then(|a| ask.agent(a)));
    if let Some(rule) = asked {
        return answer(Ask(AskKind::Rule), By::Rule(rule));
    }
    if mode == Mode::Bypass {
        return answer(Allow, By::Mode);
    }
    if mode == Mode::Plan && is_mcp && !policy.tools.is_read_only_mcp(tool) {
        return answer(Ask(AskKind::Plan), By::Mode);
    }
    let allowed = allow
        .tool(tool)
        .or_else(|| host.as_deref().and_then(|h| allow.domain(h)))
        .or_else(|| skill.and_then(|s| allow.skill(s)));
    if let Some(rule) = allowed {
        return answer(Allow, By::Rule(rule));
    }
    if host.as_deref().is_some_and(web::is_preapproved) {
        return answer(Allow, By::Preapproved);
    }
    let plain_skill = skill.is_some_and(|s| !policy.tools.skills.get(s).copied().unwrap_or(false));
    let judged_agent = tool == "Agent" && workspace.has_classifier();
    if (tools::needs_no_permission(tool) || plain_skill) && !judged_agent {
        return answer(Allow, By::NeedsNone);
    }
    if workspace.has_classifier() {
        return answer(Check, By::Mode);
    }
    answer(Ask(AskKind::Other), By::Nobody)
}

fn file_permission(
    policy: &Policy,
    workspace: &Workspace,
    facts: &dyn Facts,
    tool: &str,
    input: &Value,
    path: &str,
) -> Answer {
    use Permission::{Allow, Ask, Check, Deny};
    let ask = policy.rules.list(Behaviour::Ask);
    let allow = policy.rules.list(Behaviour::Allow);
    let mode = workspace.mode;
    let writes = tool != "Read";
    if let Some(rule) = path_deny(policy, workspace, facts, tool, input, true) {
        return answer(Deny, By::Rule(rule));
    }
    let path = workspace.absolute(path);
    let real = facts.real_path(&path);
    let edit_covers = policy.parameters.bare_edit_covers_writes.value && writes;
    let ask_set = if writes { &ask.edit } else { &ask.read };
    let asked = ask
        .tool(tool)
        .or_else(|| if edit_covers { ask.tool("Edit") } else { None })
        .or_else(|| ask.parameter(tool, input))
        .or_else(|| ask_set.matches(&path))
        .or_else(|| if real == path.as_ref() { None } else { ask_set.matches(&real) });
    if let Some(rule) = asked {
        return answer(Ask(AskKind::Rule), By::Rule(rule));
    }
    if writes && facts.is_symlink(&path) {
        return answer(Ask(AskKind::Refusal), By::Symlink(path.into_owned()));
    }
    if mode == Mode::Bypass {
        return answer(Allow, By::Mode);
    }
    if writes
        && (paths::is_protected(below(&path, workspace)) || paths::is_protected(below(&real, workspace)))
    {
        let permission = if mode == Mode::Auto { Check } else { Ask(AskKind::Safety) };
        return answer(permission, By::Protected(path.into_owned()));
    }
    if mode == Mode::Plan && writes {
        return answer(Ask(AskKind::Plan), By::Mode);
    }
    let allow_set = if writes { &allow.edit } else { &allow.read };
    let covered = || {
        let rule = allow_set.matches(&path)?;
        if real == path.as_ref() || allow_set.matches(&real).is_some() { Some(rule) } else { None }
    };
    let allowed =
        allow.tool(tool).or_else(|| if edit_covers { allow.tool("Edit") } else { None }).or_else(covered);
    if let Some(rule) = allowed {
        return answer(Allow, By::Rule(rule));
    }
    let inside = workspace.is_inside(&path, facts);
    if !writes && inside {
        return answer(Allow, By::InsideDirectories);
    }
    if writes && inside && matches!(mode, Mode::AcceptEdits | Mode::Auto) {
        return answer(Allow, By::Mode);
    }
    if workspace.has_classifier() {
        return if writes { answer(Check, By::Mode) } else { answer(Allow, By::Mode) };
    }
    if inside {
        answer(Ask(AskKind::Other), By::Nobody)
    } else {
        answer(Ask(AskKind::WorkingDirectory), By::Outside(path.into_owned()))
    }
}

/// What of a path decides whether it is protected: the part below home or project, so that a project that itself lies
/// in a folder with such a name is not protected as a whole.
fn below<'a>(path: &'a str, workspace: &Workspace) -> &'a str {
    let inside_project = path.strip_prefix(workspace.project.as_str()).filter(|rest| rest.starts_with('/'));
    inside_project.unwrap_or(path)
}

/// The permission step for a command.
fn bash_permission(
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
