//! Permissions 7.2, cited by 000: hooks and rules compose.

use crate::agent_loop::{RuleAnswer, Ruling, rule};
use crate::gate::decision::{Gated, gate};
use crate::gate::permission::{AskKind, Permission};
use crate::hooks::HookDecision;
use crate::profile::agent_loop::LoopParameters;
use crate::profile::{Profile, ProfileName};
use crate::propositions::from_000::blocking::{decisions, modes};
use crate::propositions::from_000::p4_2::rule_answers;
use crate::propositions::{
    Check, Difference, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "permissions-7.2",
    title: "Hooks and rules compose",
    notion: "The hooks' combined decision is one of none, allow, ask, defer, deny; the rules and the mode say allow, ask by \
             default, ask by rule, or deny.",
    statement: "A call is denied if and only if the hooks or the rules deny it; it runs only where neither denies nor asks, \
                but for an ask by default, which a hook's allow lifts.",
    source: "Tools and permissions, proposition 7.2 (cited by 000, section 4.2)",
    hypotheses: &[Hypothesis {
        text: "a hook's allow is no answer to a rule",
        why: "whoever can register a hook could otherwise lift an administrator's deny",
    }],
    checks: &[
        Check {
            name: "every-pair",
            method: Method::Enumeration,
            claim: "over every decision of the hooks and every answer of the rules, the ruling is that of the statement",
            run: |trial| every_pair(trial, rule),
        },
        Check {
            name: "two-gates-agree",
            method: Method::Enumeration,
            claim: "the loop's gate and the gate of `gate explain` decide alike over every decision, permission and mode",
            run: two_gates,
        },
    ],
    ablations: &[Variation {
        name: "allow-answers-rules",
        text: "a hook's allow lifts a rule's deny or ask",
        run: |trial| every_pair(trial, lifting),
    }],
    mutants: &[Variation {
        name: "rules-only",
        text: "the hooks are not heard",
        run: |trial| every_pair(trial, |parameters, _, answer| rule(parameters, HookDecision::None, answer)),
    }],
    differences: &[Difference {
        profile: ProfileName::ClaudeCode,
        check: "every-pair",
        why: "a hook's defer goes before a deny rule: the call is put off, not denied (gate-and-hooks, section 6)",
    }],
    real: None,
};

fn lifting(parameters: &LoopParameters, hook: HookDecision, answer: RuleAnswer) -> Ruling {
    let mut parameters = *parameters;
    parameters.hook_allow_lifts_rules.value = true;
    rule(&parameters, hook, answer)
}

fn every_pair(
    trial: &mut Trial<'_>,
    compose: fn(&LoopParameters, HookDecision, RuleAnswer) -> Ruling,
) -> Outcome {
    trial.over("5 decisions x 4 answers");
    let parameters = trial.profile().agent_loop;
    let cases = decisions().iter().flat_map(|hook| rule_answers().iter().map(move |answer| (*hook, *answer)));
    trial.every(cases, |(hook, answer)| {
        let decision = compose(&parameters, hook, answer).decision;
        let case = format!("hooks say {}, rules say {answer:?}: {}", hook.word(), decision.word());
        let denied = hook == HookDecision::Deny || answer == RuleAnswer::Deny;
        ensure!((decision == HookDecision::Deny) == denied, "{case}");
        let lifted = hook == HookDecision::Allow && answer == RuleAnswer::AskByDefault;
        let silent = matches!(hook, HookDecision::None | HookDecision::Allow) && answer == RuleAnswer::Allow;
        ensure!((decision == HookDecision::Allow) == (lifted || silent), "{case}");
        Ok(())
    })
}

/// The rules' answer as the loop tabulates it, for a permission of the gate.
fn answer_of(permission: Permission) -> Option<RuleAnswer> {
    match permission {
        Permission::Allow => Some(RuleAnswer::Allow),
        Permission::Deny => Some(RuleAnswer::Deny),
        Permission::Ask(AskKind::Other) => Some(RuleAnswer::AskByDefault),
        Permission::Ask(AskKind::Rule) => Some(RuleAnswer::AskByRule),
        // What a hook's allow does to these depends on the profile and the mode; the loop is told the outcome.
        Permission::Ask(_) | Permission::Check => None,
    }
}

fn two_gates(trial: &mut Trial<'_>) -> Outcome {
    trial.over("5 decisions x 4 permissions x modes");
    let profile: Profile = *trial.profile();
    let kinds = [
        Permission::Allow,
        Permission::Deny,
        Permission::Ask(AskKind::Other),
        Permission::Ask(AskKind::Rule),
    ];
    let cases = decisions()
        .iter()
        .flat_map(|hook| kinds.iter().flat_map(move |p| modes().iter().map(move |mode| (*hook, *p, *mode))));
    trial.every(cases, |(hook, permission, mode)| {
        let Some(answer) = answer_of(permission) else { return Ok(()) };
        let explained = match gate(hook, permission, mode, false, &profile.gate) {
            Gated::Run(_) => HookDecision::Allow,
            Gated::Deny(_) => HookDecision::Deny,
            Gated::Defer => HookDecision::Defer,
            Gated::Ask(_) | Gated::Check => HookDecision::Ask,
        };
        let looped = rule(&profile.agent_loop, hook, answer).decision;
        ensure!(
            explained == looped,
            "hooks {}, permission {permission:?}, mode {mode}: the loop says {}, the gate {}",
            hook.word(),
            looped.word(),
            explained.word()
        );
        Ok(())
    })?;
    Ok(None)
}
