//! What a scenario's settings say in vain: permission rules that match no call which the assistant makes.

use super::compile::{Compiler, Place};
use super::load::{Loaded, ScenarioError};
use super::{CallEntry, ReplyEntry};
use serde_json::Value;
use windtunnel_model::gate::explain::matches_alone;
use windtunnel_model::profile::ProfileName;

/// The permission rules that match no call of the assistant's replies, each standing alone, in the order of the files:
/// text and level. A call that only a hook's `updatedInput` makes is not among those calls.
///
/// # Errors
/// As [`compile`](super::compile::compile).
pub fn unmatched_rules(
    loaded: &Loaded,
    profile: ProfileName,
    place: &Place,
) -> Result<Vec<String>, Box<ScenarioError>> {
    let compiler = Compiler::new(loaded, profile, place);
    let (rules, merged, workspace) = compiler.rules(&compiler.scripts()?)?;
    let mut calls: Vec<&CallEntry> = Vec::new();
    gather(&loaded.scenario.world.model, &mut calls);
    let settings = (&merged, &workspace, &rules.policy.tools);
    let parameters = &rules.profile.gate;
    let unmatched = merged.rules.iter().enumerate().filter(|(index, _)| {
        !calls.iter().any(|call| {
            let input = Value::Object(call.input.clone());
            matches_alone(settings, parameters, *index, &rules.files, &call.tool, &input)
        })
    });
    Ok(unmatched
        .map(|(_, rule)| format!("{} rule `{}` ({})", rule.behaviour.word(), rule.text, rule.level.word()))
        .collect())
}

/// Every different call of the replies and of their alternatives.
fn gather<'a>(replies: &'a [ReplyEntry], calls: &mut Vec<&'a CallEntry>) {
    for reply in replies {
        for call in &reply.calls {
            if !calls.iter().any(|known| known.tool == call.tool && known.input == call.input) {
                calls.push(call);
            }
        }
        gather(&reply.any_of, calls);
    }
}
