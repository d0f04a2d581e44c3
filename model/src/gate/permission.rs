//! Rules, mode and facts: what the permission step answers before hooks are looked at.
//!
//! Source: gate-and-hooks, section 13, `permission`: the first line that applies decides.

use super::command::bash_permission;
use super::facts::Facts;
use super::mode::Mode;
use super::paths;
use super::rule::Behaviour;
use super::rules::{Bases, RuleSet};
use super::shell::Obstacle;
use super::tools::{self, ToolTable};
use super::web;
use super::workspace::Workspace;
use crate::profile::gate::GateParameters;
use crate::sources::merge::Merged;
use serde_json::Value;

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

pub(super) fn answer(permission: Permission, by: By) -> Answer {
    Answer { permission, by }
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
pub(super) fn below<'a>(path: &'a str, workspace: &Workspace) -> &'a str {
    let inside_project = path.strip_prefix(workspace.project.as_str()).filter(|rest| rest.starts_with('/'));
    inside_project.unwrap_or(path)
}
