//! The composed decision: what hooks say, against what rules and mode say.
//!
//! Source: gate-and-hooks, sections 6 and 13. Propositions 4.1 and 4.3.1; invariants I-DENY, I-HOOKALLOW, I-BLOCK. Small
//! and without text, so that the loop tabulates it.

use super::mode::Mode;
use super::permission::{AskKind, Permission};
use crate::hooks::HookDecision;
use crate::profile::gate::GateParameters;

/// Who a decision comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decider {
    /// Hooks.
    Hook,
    /// Rules and mode.
    Rules,
}

/// What the gate says of a call, before a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gated {
    /// It runs.
    Run(Decider),
    /// It is refused.
    Deny(Decider),
    /// It waits for somebody else; the process ends.
    Defer,
    /// The user is asked.
    Ask(Decider),
    /// Auto mode's classifier judges it.
    Check,
}

/// The gate: `hook` is the combined decision of the PreToolUse hooks, `permission` the answer of rules and mode for the
/// input as the hooks left it.
pub fn gate(
    hook: HookDecision,
    permission: Permission,
    mode: Mode,
    is_bash: bool,
    parameters: &GateParameters,
) -> Gated {
    if hook == HookDecision::Deny {
        return Gated::Deny(Decider::Hook);
    }
    if hook == HookDecision::Defer && (parameters.defer_beats_deny.value || permission != Permission::Deny) {
        return Gated::Defer;
    }
    if permission == Permission::Deny {
        return Gated::Deny(Decider::Rules);
    }
    let lifted = hook == HookDecision::Allow
        && match permission {
            Permission::Ask(AskKind::Safety) => parameters.hook_allow_lifts_safety.value,
            Permission::Ask(AskKind::Plan) => parameters.hook_allow_lifts_plan.value,
            _ => false,
        };
    if let Permission::Ask(AskKind::Rule | AskKind::Safety | AskKind::Plan | AskKind::Refusal) = permission
        && !lifted
    {
        return Gated::Ask(Decider::Rules);
    }
    match hook {
        HookDecision::Ask => Gated::Ask(Decider::Hook),
        HookDecision::Allow if !(mode == Mode::Plan && is_bash && permission != Permission::Allow) => {
            Gated::Run(Decider::Hook)
        }
        _ => match permission {
            Permission::Allow => Gated::Run(Decider::Rules),
            Permission::Check => Gated::Check,
            Permission::Ask(_) => Gated::Ask(Decider::Rules),
            Permission::Deny => Gated::Deny(Decider::Rules),
        },
    }
}

/// Who answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// A PermissionRequest hook or the prompt tool said that it may run.
    Allowed,
    /// One of them said that it may not.
    Refused,
    /// Nobody is there.
    Nobody,
}

/// How a question ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resolved {
    /// The call runs.
    Run,
    /// It was refused by an answer.
    Refused,
    /// It was refused because of the mode (dontAsk).
    ByMode,
    /// It was refused because nobody could answer.
    Unanswered,
}

/// What an ask becomes. In dontAsk mode nobody is asked; PermissionRequest hooks are not asked about a hook's own ask,
/// which is the caller's to observe.
pub fn resolve(mode: Mode, asked: Asked) -> Resolved {
    match (mode, asked) {
        (Mode::DontAsk, _) => Resolved::ByMode,
        (_, Asked::Allowed) => Resolved::Run,
        (_, Asked::Refused) => Resolved::Refused,
        (_, Asked::Nobody) => Resolved::Unanswered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::gate::{CLAUDE_CODE, DOCUMENTED};

    /// The table of gate-and-hooks, section 6, in the observed profile.
    #[test]
    fn hook_against_rules() {
        use HookDecision::{Allow, Ask, Defer, Deny, None};
        let rows = [
            (None, Permission::Allow, Gated::Run(Decider::Rules)),
            (None, Permission::Ask(AskKind::Other), Gated::Ask(Decider::Rules)),
            (Allow, Permission::Ask(AskKind::Other), Gated::Run(Decider::Hook)),
            (Allow, Permission::Ask(AskKind::Rule), Gated::Ask(Decider::Rules)),
            (Allow, Permission::Ask(AskKind::Safety), Gated::Ask(Decider::Rules)),
            (Allow, Permission::Deny, Gated::Deny(Decider::Rules)),
            (Ask, Permission::Allow, Gated::Ask(Decider::Hook)),
            (Ask, Permission::Deny, Gated::Deny(Decider::Rules)),
            (Defer, Permission::Deny, Gated::Defer),
            (Deny, Permission::Allow, Gated::Deny(Decider::Hook)),
            (Allow, Permission::Check, Gated::Run(Decider::Hook)),
        ];
        for (hook, permission, expected) in rows {
            assert_eq!(
                gate(hook, permission, Mode::Default, false, &CLAUDE_CODE),
                expected,
                "{hook:?} {permission:?}"
            );
        }
        assert_eq!(
            gate(Defer, Permission::Deny, Mode::Default, false, &DOCUMENTED),
            Gated::Deny(Decider::Rules),
            "the documents look at the rule's deny first"
        );
        assert_eq!(
            gate(Allow, Permission::Ask(AskKind::Other), Mode::Plan, true, &CLAUDE_CODE),
            Gated::Ask(Decider::Rules)
        );
    }
}
