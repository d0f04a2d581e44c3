//! Beyond the decision: which other rules matched and lost, and which smallest change would turn it.

use super::decision::{Decider, Gated, gate};
use super::facts::Facts;
use super::mode::Mode;
use super::permission::{By, Permission, Policy, permission};
use super::pipeline::{Outcome, Session};
use super::rule::Behaviour;
use super::tools::ToolTable;
use super::workspace::Workspace;
use crate::hooks::HookDecision;
use crate::profile::gate::GateParameters;
use crate::sources::merge::Merged;
use crate::sources::settings::Level;
use serde::Serialize;
use serde_json::Value;

/// Rules beyond which others are not looked for one by one.
const RULE_LIMIT: usize = 2_000;

/// The rules that match the call when each stands alone, in the order of the files.
pub fn matching_rules(session: &Session, facts: &dyn Facts, tool: &str, input: &Value) -> Vec<u32> {
    let rules = session.merged.rules.iter().enumerate().take(RULE_LIMIT);
    rules
        .filter(|(index, _)| {
            let setting = (&session.merged, &session.workspace, &session.policy.tools);
            matches_alone(setting, &session.profile.gate, *index, facts, tool, input)
        })
        .map(|(index, _)| u32::try_from(index).unwrap_or(u32::MAX))
        .collect()
}

/// Whether a rule of the settings matches the call when it stands alone, whatever the mode.
pub fn matches_alone(
    (merged, workspace, tools): (&Merged, &Workspace, &ToolTable),
    parameters: &GateParameters,
    rule: usize,
    facts: &dyn Facts,
    tool: &str,
    input: &Value,
) -> bool {
    let mut alone = Workspace { mode: Mode::Default, ..workspace.clone() };
    alone.plan_with_auto = false;
    let rules = merged.rules.get(rule).cloned().into_iter().collect();
    let one = Merged { rules, files: merged.files.clone(), ..Merged::default() };
    let policy = Policy::new(&one, &alone.bases(), tools.clone(), parameters);
    policy.removed_by(tool).is_some()
        || match permission(&policy, &alone, facts, tool, input).by {
            By::Rule(_) => true,
            By::Parts(rules) => !rules.is_empty(),
            _ => false,
        }
}

/// A change and what it makes of the decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What to do.
    pub change: String,
    /// The decision afterwards.
    pub decision: &'static str,
}

/// The smallest changes that turn a decision: trust in the folder, one rule removed, one rule added, another mode.
/// `hook` is what the hooks said together.
pub fn changes(
    session: &Session,
    facts: &dyn Facts,
    tool: &str,
    input: &Value,
    hook: HookDecision,
    now: Outcome,
) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let mut note = |change: String, outcome: Outcome| {
        if outcome != now && !found.iter().any(|known| known.change == change) {
            found.push(Change { change, decision: outcome.decision() });
        }
    };
    if !session.merged.waiting.is_empty() {
        let mut changed = session.clone();
        changed.merged.rules.append(&mut changed.merged.waiting);
        changed.recompile();
        let change = "trust the folder (here: `--trusted`), so that the project's allow rules count";
        note(change.to_owned(), judge(&changed, facts, tool, input, hook));
    }
    for rule in matching_rules(session, facts, tool, input) {
        let mut changed = session.clone();
        changed.merged.rules.remove(rule as usize);
        changed.recompile();
        note(format!("remove the {}", session.rule_text(rule)), judge(&changed, facts, tool, input, hook));
    }
    for behaviour in [Behaviour::Allow, Behaviour::Deny] {
        let text = rule_for(tool, input);
        let mut changed = session.clone();
        changed.merged.push_rule(behaviour, &text, Level::User, "(added)");
        changed.recompile();
        note(
            format!("add the {} rule `{text}`", behaviour.word()),
            judge(&changed, facts, tool, input, hook),
        );
    }
    for mode in [Mode::AcceptEdits, Mode::DontAsk, Mode::Bypass, Mode::Default] {
        let mut changed = session.clone();
        changed.workspace.mode = mode;
        note(format!("permission mode `{mode}`"), judge(&changed, facts, tool, input, hook));
    }
    found
}

/// Hooks, rules and mode for an input as it is: no validation, nobody to ask.
pub fn judge(session: &Session, facts: &dyn Facts, tool: &str, input: &Value, hook: HookDecision) -> Outcome {
    if !session.policy.tools.offers(tool) || session.policy.removed_by(tool).is_some() {
        return Outcome::Gone;
    }
    let answer = permission(&session.policy, &session.workspace, facts, tool, input);
    outcome(hook, answer.permission, session, tool)
}

fn outcome(hook: HookDecision, permission: Permission, session: &Session, tool: &str) -> Outcome {
    match gate(hook, permission, session.workspace.mode, tool == "Bash", &session.profile.gate) {
        Gated::Run(Decider::Hook | Decider::Rules) => Outcome::Run,
        Gated::Deny(_) => Outcome::Blocked,
        Gated::Defer => Outcome::Deferred,
        Gated::Ask(_) | Gated::Check => Outcome::NeedsApproval,
    }
}

/// The narrowest rule that is about a call.
pub fn rule_for(tool: &str, input: &Value) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    match tool {
        "Bash" => {
            field("command").map_or_else(|| tool.to_owned(), |command| format!("Bash({})", command.trim()))
        }
        "Read" => field("file_path").map_or_else(|| tool.to_owned(), |path| path_rule("Read", path)),
        "Write" | "Edit" => {
            field("file_path").map_or_else(|| tool.to_owned(), |path| path_rule("Edit", path))
        }
        "NotebookEdit" => {
            field("notebook_path").map_or_else(|| tool.to_owned(), |path| path_rule("Edit", path))
        }
        "WebFetch" => field("url")
            .and_then(super::web::host)
            .map_or_else(|| tool.to_owned(), |host| format!("WebFetch(domain:{host})")),
        "Skill" => field("skill").map_or_else(|| tool.to_owned(), |skill| format!("Skill({skill})")),
        _ => tool.to_owned(),
    }
}

fn path_rule(tool: &str, path: &str) -> String {
    if path.starts_with('/') { format!("{tool}(/{path})") } else { format!("{tool}({path})") }
}
