//! How the hooks' combined decision and the rules' answer compose (gate-and-hooks sections 6 and 13).

use super::config::RuleAnswer;
use super::io::DecidedBy;
use crate::hooks::HookDecision as Decision;
use crate::profile::agent_loop::LoopParameters;

/// What the gate comes to for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ruling {
    /// Allow, ask, deny or defer; never none.
    pub decision: Decision,
    /// Who decided.
    pub by: DecidedBy,
}

/// The gate: deny beats everything but the profile's stated exception (defer), and a hook's allow lifts what is asked
/// by default, not what a rule asks or denies. Total: every pair has a ruling.
///
/// ```
/// use windtunnel_model::agent_loop::{RuleAnswer, rule};
/// use windtunnel_model::hooks::HookDecision::{Allow, Deny};
/// use windtunnel_model::profile::agent_loop::DOCUMENTED;
/// assert_eq!(rule(&DOCUMENTED, Allow, RuleAnswer::Deny).decision, Deny);
/// assert_eq!(rule(&DOCUMENTED, Allow, RuleAnswer::AskByDefault).decision, Allow);
/// ```
pub fn rule(parameters: &LoopParameters, hooks: Decision, rules: RuleAnswer) -> Ruling {
    use Decision::{Allow, Ask, Defer, Deny};
    let hook = |decision| Ruling { decision, by: DecidedBy::Hook };
    let rule = |decision| Ruling { decision, by: DecidedBy::Rule };
    let lifts = parameters.hook_allow_lifts_rules.value;
    match (hooks, rules) {
        (Deny, _) => hook(Deny),
        (Defer, RuleAnswer::Deny) if !parameters.defer_beats_deny_rule.value => rule(Deny),
        (Defer, _) => hook(Defer),
        (Allow, RuleAnswer::Deny | RuleAnswer::AskByRule) if lifts => hook(Allow),
        (_, RuleAnswer::Deny) => rule(Deny),
        (_, RuleAnswer::AskByRule) => rule(Ask),
        (Ask, _) => hook(Ask),
        (Allow, RuleAnswer::AskByDefault) => hook(Allow),
        (Allow | Decision::None, RuleAnswer::Allow) => rule(Allow),
        (Decision::None, RuleAnswer::AskByDefault) => rule(Ask),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::agent_loop::{CLAUDE_CODE, DOCUMENTED};
    use Decision::{Allow, Ask, Defer, Deny};

    /// The table of hook_sim in 000 and its continuation in gate-and-hooks section 6.
    #[test]
    fn hook_sim_table() {
        let rows = [
            (Allow, RuleAnswer::Deny, Deny),
            (Allow, RuleAnswer::AskByRule, Ask),
            (Deny, RuleAnswer::Allow, Deny),
            (Allow, RuleAnswer::AskByDefault, Allow),
            (Decision::None, RuleAnswer::Allow, Allow),
            (Decision::None, RuleAnswer::AskByDefault, Ask),
            (Ask, RuleAnswer::Allow, Ask),
            (Defer, RuleAnswer::Allow, Defer),
        ];
        for (hooks, rules, expected) in rows {
            for parameters in [&DOCUMENTED, &CLAUDE_CODE] {
                assert_eq!(rule(parameters, hooks, rules).decision, expected, "{hooks:?} {rules:?}");
            }
        }
        assert_eq!(rule(&DOCUMENTED, Defer, RuleAnswer::Deny).decision, Deny);
        assert_eq!(rule(&CLAUDE_CODE, Defer, RuleAnswer::Deny).decision, Defer);
    }

    /// 4.3.1 and I-HOOKALLOW over the whole finite domain.
    #[test]
    fn deny_wins_over_every_pair() {
        let rules = [RuleAnswer::Allow, RuleAnswer::AskByDefault, RuleAnswer::AskByRule, RuleAnswer::Deny];
        for hooks in Decision::ALL {
            for answer in rules {
                let got = rule(&DOCUMENTED, hooks, answer).decision;
                assert_eq!(got == Deny, hooks == Deny || answer == RuleAnswer::Deny, "{hooks:?} {answer:?}");
                assert_ne!(got, Decision::None);
            }
        }
    }
}
