//! Proposition 4.3 (1): a hook that blocks stops the call.

use super::blocking::{Change, Class, End, all_settings, ends, others};
use crate::gate::pipeline::Outcome as GateOutcome;
use crate::hooks::HandlerEnd;
use crate::propositions::{
    Check, Evidence, Hypothesis, Method, Outcome, Proposition, Real, RealSubject, Trial, Variation, ensure,
};
use crate::sources::settings::Level;

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "4.3.1",
    title: "A hook that blocks stops the call",
    notion: "H is a PreToolUse command hook whose matcher matches the call's tool. H blocks when its run ends with exit \
             code 2.",
    statement: "Where H blocks, the call is not executed, whatever H prints and whatever the rules, the mode and the \
                other hooks say.",
    source: "000, proposition 4.3 (1); definition 4.2",
    hypotheses: &[
        Hypothesis {
            text: "no mod is installed",
            why: "a mod runs its own code inside the harness and may replace a hook's block by an approval (000, \
                  remark 4.4)",
        },
        Hypothesis {
            text: "hooks are not disabled",
            why: "disableAllHooks: H does not run, so it cannot block",
        },
        Hypothesis {
            text: "the folder is trusted",
            why: "in an interactive session hooks of settings do not run before the folder is trusted (000, remark 4.4)",
        },
    ],
    checks: &[Check {
        name: "exit-2-stops-the-call",
        method: Method::Enumeration,
        claim: "over everything that H can print beside exit 2, both values of onFailure, every multiset of up to three \
                other decisions, every answer of a rule and every mode, the gate never lets the call run",
        run: |trial| law(trial, &blocking(), |_| {}),
    }],
    ablations: &[
        Variation { name: "a-mod", text: "a mod answers allow where a hook blocked", run: a_mod },
        Variation {
            name: "disable-all-hooks",
            text: "the settings say disableAllHooks",
            run: |trial| law(trial, &blocking(), |session| session.hooks.sources.clear()),
        },
        Variation {
            name: "not-yet-trusted",
            text: "an interactive session in a folder that is not yet trusted: only managed hooks run",
            run: |trial| {
                law(trial, &blocking(), |session| session.hooks.sources.retain(|s| s.level == Level::Managed))
            },
        },
    ],
    mutants: &[
        Variation {
            name: "exit-2-is-a-plain-failure",
            text: "exit code 2 is read like any other failure",
            run: |trial| law(trial, &as_code_1(), |_| {}),
        },
        Variation {
            name: "hooks-see-no-such-tool",
            text: "the matcher is compared with another name of the tool",
            run: |trial| {
                law(trial, &blocking(), |session| {
                    for group in session.hooks.sources.iter_mut().flat_map(|s| &mut s.config.events) {
                        group.1.retain(|group| !group.matcher.matches_tool("Write"));
                    }
                })
            },
        },
    ],
    differences: &[],
    real: Some(Real {
        subject: RealSubject::ProtectEnv,
        text: "protect_env as a real process: a write to /repo/src/app.py passes, to /repo/.env it exits with 2 and the \
               call is refused; unreadable input is refused too",
    }),
};

fn blocking() -> Vec<End> {
    ends().into_iter().filter(|end| end.code == Some(2)).collect()
}

fn as_code_1() -> Vec<End> {
    let weaken = |end: End| End { end: HandlerEnd::exited(1, end.end.stdout.clone(), ""), ..end };
    blocking().into_iter().map(weaken).collect()
}

fn law(trial: &mut Trial<'_>, ends: &[End], change: Change) -> Outcome {
    trial.over("ends with exit 2 x onFailure x other hooks <= 3 x rules x modes");
    let profile = *trial.profile();
    let cases = all_settings(&profile, ends, &others(), change, &mut |setting, end, judgement| {
        // Definition 4.2 itself: exit 2 is blocking whatever is printed.
        ensure!(end.class(setting.on_failure) == Class::Blocking, "{} is not blocking", end.words());
        ensure!(
            judgement.outcome != GateOutcome::Run,
            "H {} and the call runs: {}",
            end.words(),
            setting.words()
        );
        Ok(())
    })?;
    trial.count(cases);
    Ok(None)
}

/// The composed decision with a mod between hooks and gate.
fn a_mod(trial: &mut Trial<'_>) -> Outcome {
    use crate::hooks::{HookDecision, combine};
    let parameters = trial.profile().agent_loop;
    let rules = super::p4_2::rule_answers();
    let cases = others().into_iter().flat_map(|others| rules.iter().map(move |rule| (others.clone(), *rule)));
    trial.every(cases, |(others, rules)| {
        let hooks = combine(others.iter().copied().chain([HookDecision::Deny]));
        let answered = if hooks == HookDecision::Deny { HookDecision::Allow } else { hooks };
        let ruling = crate::agent_loop::rule(&parameters, answered, rules);
        if ruling.decision == HookDecision::Allow {
            let text = format!("H blocks, the mod answers allow, the rules say {rules:?}: the call runs");
            return Err(Evidence::said(text));
        }
        Ok(())
    })
}
