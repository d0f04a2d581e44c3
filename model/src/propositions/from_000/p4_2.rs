//! Definition 4.2 as a proposition: what the end of a command hook means, and how hooks and rules compose.

use super::blocking::{Class, End, decisions, ends, on_failures};
use crate::agent_loop::{RuleAnswer, Ruling, rule};
use crate::hooks::{Event, Handler, HookDecision, HookVerdict, OnFailure, combine, interpret};
use crate::profile::ProfileName;
use crate::profile::hooks::HookParameters;
use crate::propositions::{
    Check, Difference, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
    every_variant,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "4.2",
    title: "What the end of a hook means",
    notion: "A run of a command hook is a success (exit 0), a blocking error (exit 2), or a non-blocking error \
             (anything else, a hook that cannot start, output that is no JSON). Decisions are ordered: deny > defer > \
             ask > allow > none.",
    statement: "A blocking error denies even beside JSON; a success says what its JSON says; a non-blocking error denies \
                where onFailure is block and says nothing where it is continue; several hooks say the greatest of what \
                each says.",
    source: "000, definition 4.2 and hook_sim",
    hypotheses: &[Hypothesis {
        text: "valid JSON at an exit code other than 0 and 2 counts as a success, under onFailure: block as a failure",
        why: "a hook that prints allow and then fails would otherwise pass for one that did its work",
    }],
    checks: &[
        Check {
            name: "every-end",
            method: Method::Enumeration,
            claim: "over every end of a command hook and both values of onFailure the verdict is that of the definition",
            run: |trial| every_end(trial, interpret),
        },
        Check {
            name: "greatest-decision",
            method: Method::Enumeration,
            claim: "over every multiset of up to three decisions the combined one is the greatest, in any order",
            run: |trial| greatest(trial, &|list| combine(list.iter().copied())),
        },
        Check {
            name: "hook-sim",
            method: Method::Enumeration,
            claim: "the table of hook_sim comes out: (allow, deny) deny, (allow, ask) ask, (deny, allow) deny, (allow, \
                    none) allow, (none, allow) allow; [allow, ask] is ask, [allow, deny, ask] deny, [allow, allow] allow",
            run: |trial| hook_sim(trial, rule),
        },
    ],
    ablations: &[Variation {
        name: "json-never-counts-beside-a-code",
        text: "JSON at an exit code other than 0 and 2 is not read",
        run: |trial| {
            every_end(trial, |event, handler, end, parameters| {
                let mut parameters = *parameters;
                parameters.json_at_other_exits.value = false;
                interpret(event, handler, end, &parameters)
            })
        },
    }],
    mutants: &[
        Variation {
            name: "ignore-on-failure",
            text: "onFailure: block is ignored",
            run: |trial| {
                every_end(trial, |event, handler, end, parameters| {
                    let handler = Handler { on_failure: OnFailure::Continue, ..handler.clone() };
                    interpret(event, &handler, end, parameters)
                })
            },
        },
        Variation {
            name: "first-answer-wins",
            text: "the first hook that says something decides",
            run: |trial| {
                greatest(trial, &|list| {
                    list.iter().copied().find(|d| *d != HookDecision::None).unwrap_or_default()
                })
            },
        },
        Variation {
            name: "allow-lifts-rules",
            text: "a hook's allow lifts a deny or ask rule",
            run: |trial| {
                hook_sim(trial, |parameters, hook, answer| {
                    let mut parameters = *parameters;
                    parameters.hook_allow_lifts_rules.value = true;
                    rule(&parameters, hook, answer)
                })
            },
        },
    ],
    differences: &[Difference {
        profile: ProfileName::ClaudeCode,
        check: "every-end",
        why: "JSON that breaks off is plain text at exit 0, not a failure, even under onFailure: block: only text that begins \
              with { and ends with } is read as broken JSON (gate-and-hooks, section 4)",
    }],
    real: None,
};

/// What rules and mode can say to the loop.
pub(in crate::propositions) fn rule_answers() -> &'static [RuleAnswer] {
    every_variant!(crate::agent_loop::RuleAnswer: Allow, AskByDefault, AskByRule, Deny)
}

type Interpret = fn(Event, &Handler, &crate::hooks::HandlerEnd, &HookParameters) -> HookVerdict;

fn every_end(trial: &mut Trial<'_>, interpret: Interpret) -> Outcome {
    trial.over("exit codes 0, 1, 2, 127 x everything printed, signal, timeout, no start; x onFailure");
    let parameters = trial.profile().hooks;
    let cases = ends().into_iter().flat_map(|end| on_failures().iter().map(move |f| (end.clone(), *f)));
    trial.every(cases, |(end, on_failure)| {
        let handler = Handler { on_failure, ..Handler::command("H") };
        let verdict = interpret(Event::PreToolUse, &handler, &end.end, &parameters);
        let expected = defined(&end, on_failure);
        let failure = if on_failure == OnFailure::Block { "block" } else { "continue" };
        ensure!(
            verdict.decision == expected,
            "a hook with onFailure: {failure} {}: it says {}, and the definition says {}",
            end.words(),
            verdict.decision.word(),
            expected.word()
        );
        Ok(())
    })
}

/// The decision as definition 4.2 has it.
fn defined(end: &End, on_failure: OnFailure) -> HookDecision {
    match end.class(on_failure) {
        Class::Blocking => HookDecision::Deny,
        Class::Success => match end.prints {
            super::blocking::Prints::Json(decision) => decision,
            _ => HookDecision::None,
        },
        Class::NonBlocking if on_failure == OnFailure::Block => HookDecision::Deny,
        Class::NonBlocking => HookDecision::None,
    }
}

fn greatest(trial: &mut Trial<'_>, combined: &dyn Fn(&[HookDecision]) -> HookDecision) -> Outcome {
    trial.over("decisions x lists <= 3, in every order");
    let of = decisions();
    let mut lists: Vec<Vec<HookDecision>> = vec![Vec::new()];
    let mut last = lists.clone();
    for _ in 0..3 {
        last = last.iter().flat_map(|list| of.iter().map(|d| [list.as_slice(), &[*d]].concat())).collect();
        lists.extend(last.clone());
    }
    trial.every(lists, |list| {
        let greatest = of.iter().rev().copied().find(|d| list.contains(d)).unwrap_or(HookDecision::None);
        let words: Vec<&str> = list.iter().map(|d| d.word()).collect();
        let said = combined(&list);
        ensure!(said == greatest, "[{}]: {} instead of {}", words.join(", "), said.word(), greatest.word());
        Ok(())
    })
}

type Compose = fn(&crate::profile::agent_loop::LoopParameters, HookDecision, RuleAnswer) -> Ruling;

fn hook_sim(trial: &mut Trial<'_>, compose: Compose) -> Outcome {
    use HookDecision::{Allow, Ask, Deny, None};
    let parameters = trial.profile().agent_loop;
    let rows = [
        (Allow, RuleAnswer::Deny, Deny),
        (Allow, RuleAnswer::AskByRule, Ask),
        (Deny, RuleAnswer::Allow, Deny),
        (Allow, RuleAnswer::AskByDefault, Allow),
        (None, RuleAnswer::Allow, Allow),
    ];
    trial.every(rows, |(hook, answer, expected)| -> Result<(), Evidence> {
        let got = compose(&parameters, hook, answer).decision;
        ensure!(
            got == expected,
            "hook {}, rule {answer:?}: {} instead of {}",
            hook.word(),
            got.word(),
            expected.word()
        );
        Ok(())
    })?;
    let lists: [(&[HookDecision], HookDecision); 3] =
        [(&[Allow, Ask], Ask), (&[Allow, Deny, Ask], Deny), (&[Allow, Allow], Allow)];
    trial.every(lists, |(list, expected)| {
        let got = combine(list.iter().copied());
        ensure!(got == expected, "{list:?}: {} instead of {}", got.word(), expected.word());
        Ok(())
    })
}
