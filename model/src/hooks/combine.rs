//! Combining what several hooks of one event say.
//!
//! Source: 000, section 4.1, and gate-and-hooks, section 5: deny > defer > ask > allow > none, independent of order and
//! speed. Proposition 4.1; invariant I-MERGE.

use super::outcome::HookVerdict;
use serde::{Deserialize, Serialize};

/// What hooks say about a call, as a lattice: the maximum wins. On events other than PreToolUse, `Deny` stands for the
/// event's own blocking effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookDecision {
    /// Nothing.
    #[default]
    None,
    /// Run it, as far as rules let a hook decide that.
    Allow,
    /// Ask the user.
    Ask,
    /// End the process; somebody else decides later.
    Defer,
    /// Do not run it.
    Deny,
}

impl HookDecision {
    /// All of them, from the weakest.
    pub const ALL: [Self; 5] = [Self::None, Self::Allow, Self::Ask, Self::Defer, Self::Deny];

    /// The word in JSON and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Defer => "defer",
            Self::Deny => "deny",
        }
    }
}

/// The combined decision of any number of hooks: their maximum.
pub fn combine(decisions: impl IntoIterator<Item = HookDecision>) -> HookDecision {
    decisions.into_iter().max().unwrap_or_default()
}

/// What all hooks of one event say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combined {
    /// The decision.
    pub decision: HookDecision,
    /// The index (into the verdicts) of the hook that decided: the last to finish of those that said the maximum.
    pub decided_by: Option<usize>,
    /// The input that replaces the call's own: the last to finish wins; dropped with deny and defer.
    pub updated_input: Option<serde_json::Value>,
    /// Texts for the model, in the order of the handlers, delivered also when the call is denied.
    pub additional_context: Vec<String>,
    /// Whether some hook said `continue: false`.
    pub prevent_continuation: bool,
}

/// Combines verdicts that stand in the order of the handlers; `finished` lists their indices in the order in which the
/// hooks ended (as far as it is known; what is missing counts as the order of the handlers).
pub fn combine_verdicts(verdicts: &[HookVerdict], finished: &[usize]) -> Combined {
    let decision = combine(verdicts.iter().filter(|v| !v.asynchronous).map(|v| v.decision));
    let rank = |index: usize| finished.iter().position(|i| *i == index).unwrap_or(index);
    let last = |holds: &dyn Fn(&HookVerdict) -> bool| {
        (0..verdicts.len())
            .filter(|i| verdicts.get(*i).is_some_and(|v| !v.asynchronous && holds(v)))
            .max_by_key(|i| rank(*i))
    };
    let decided_by = if decision == HookDecision::None { None } else { last(&|v| v.decision == decision) };
    let updated_input = if matches!(decision, HookDecision::Deny | HookDecision::Defer) {
        None
    } else {
        last(&|v| v.updated_input.is_some())
            .and_then(|i| verdicts.get(i))
            .and_then(|v| v.updated_input.clone())
    };
    Combined {
        decision,
        decided_by,
        updated_input,
        additional_context: verdicts.iter().filter_map(|v| v.additional_context.clone()).collect(),
        prevent_continuation: verdicts.iter().any(|v| v.prevent_continuation),
    }
}
