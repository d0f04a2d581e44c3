//! Proposition 7.1: the loop ends within T + 1 model calls.

use crate::agent_loop::{
    CallInfo, Config, HookList, Input, Limits, Output, Phase, ReplyInfo, ReplyRef, RuleAnswer, State, Tool,
    ToolEnd, ToolRef, step,
};
use crate::invariants::Invariant;
use crate::mutant::Mutant;
use crate::profile::{Profile, ProfileName};
use crate::propositions::{
    Check, Difference, Drawing, Draws, Evidence, Exploration, Failure, Hypothesis, Method, Outcome,
    Proposition, Real, RealSubject, Trial, Variation, ensure,
};
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "7.1",
    title: "A turn limit ends the loop",
    notion: "T is max_turns; a model call is a request to the model; a model is any map from messages to replies, a gate \
             any answer to a call, a tool any end of an execution. Loops of subagents have their own count, and each new \
             prompt begins anew.",
    statement: "With a finite T the loop stops after at most T + 1 model calls, for every model, gate and tool; without \
                one it may not stop.",
    source: "000, proposition 7.1; Loop 4.1",
    hypotheses: &[Hypothesis {
        text: "T is finite",
        why: "a model that always calls a tool keeps the loop alive: every turn ends in another request",
    }],
    checks: &[
        Check {
            name: "every-model-gate-and-tool",
            method: Method::Explored,
            claim: "over every reply of the model (two calls, one, none), every answer of the gate (allow, ask, deny) and \
                    every end of the tools, every run ends, and no invariant breaks",
            run: |trial| explored(trial, None),
        },
        Check {
            name: "at-most-t-plus-1",
            method: Method::Bounded,
            claim: "over every sequence of replies with and without calls, counted call by call, at most T + 1 model \
                    calls are made and the run ends",
            run: |trial| at_most(trial, None),
        },
        Check {
            name: "far-beyond",
            method: Method::Random,
            claim: "the same for random replies, rules and ends and T up to 250",
            run: |trial| far_beyond(trial, None),
        },
        Check {
            name: "t-plus-1-is-reached",
            method: Method::Witness,
            claim: "for T = 1 some model makes T + 1 calls, so the bound cannot be lowered",
            run: |trial| reached(trial, None),
        },
        Check {
            name: "without-a-limit",
            method: Method::Witness,
            claim: "without a limit there is a run that comes back to a state that it was in",
            run: without_limit,
        },
    ],
    ablations: &[Variation {
        name: "no-limit",
        text: "T is not finite",
        run: |trial| match lasso(trial, None)? {
            Some(_) => Err(Failure::refuted("a run comes back to a state that it was in: it never ends")),
            None => Ok(None),
        },
    }],
    mutants: &[
        Variation {
            name: "limit-checked-late",
            text: "the limit is checked one turn late",
            run: |trial| at_most(trial, Some(Mutant::TurnLimitLate)),
        },
        Variation {
            name: "one-more-call-after-the-end",
            text: "after the end the model is called once more",
            run: |trial| explored(trial, Some(Mutant::CallAfterEnd)),
        },
        Variation {
            name: "one-more-call-far-beyond",
            text: "the same, seen by counting",
            run: |trial| far_beyond(trial, Some(Mutant::CallAfterEnd)),
        },
    ],
    differences: &[
        Difference {
            profile: ProfileName::ClaudeCode,
            check: "every-model-gate-and-tool",
            why: "T = 0 means no limit (gate-and-hooks, section 12)",
        },
        Difference {
            profile: ProfileName::ClaudeCode,
            check: "at-most-t-plus-1",
            why: "T = 0 means no limit (gate-and-hooks, section 12)",
        },
        Difference {
            profile: ProfileName::ClaudeCode,
            check: "t-plus-1-is-reached",
            why: "T counts model calls: exactly T are made, and the T-th turn's tools run without a closing call \
                  (gate-and-hooks, section 12)",
        },
    ],
    real: Some(Real {
        subject: RealSubject::Termination,
        text: "runs with T = 1, 2, 3 whose tools are real processes and whose model always calls one: the model calls are \
               counted",
    }),
};

/// A model that replies with two calls, one call or none; one tool is allowed, one asked for, one denied.
fn scenario(limit: Option<usize>) -> Value {
    let call = |id: &str, command: &str| json!({"id": id, "tool": "Bash", "input": {"command": command}});
    let mut limits = json!({});
    if let (Some(limit), Some(fields)) = (limit, limits.as_object_mut()) {
        fields.insert("max_turns".to_owned(), limit.into());
    }
    json!({
        "harness": {
            "settings": {"user": {"permissions": {"allow": ["Bash(make *)"], "deny": ["Bash(rm *)"]}}},
            "limits": limits,
        },
        "world": {
            "model": [{"any_of": [
                {"text": "done"},
                {"calls": [call("t1", "make all")]},
                {"calls": [call("t1", "make all"), call("t2", "rm x")]},
                {"calls": [call("t1", "touch x")]},
            ]}],
            "model_repeats": true,
            "tools": {"Bash": [{"any_of": [{"result": "ok"}, {"error": "no"}, {"silent": true}]}]},
        },
    })
}

fn explored(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Outcome {
    let most = trial.bound("T", 4, 8);
    for limit in 0..=most {
        let explored = trial.unbroken(&Exploration::of(scenario(Some(limit))).under(mutant))?;
        if let Some(lasso) = explored.lasso {
            let steps = [lasso.stem, vec!["and again and again:".to_owned()], lasso.cycle].concat();
            return Err(Evidence::said(format!("T = {limit}: a run never ends"))
                .with_drawing(Drawing::Steps(steps))
                .into());
        }
    }
    Ok(None)
}

fn without_limit(trial: &mut Trial<'_>) -> Outcome {
    lasso(trial, None)?.map(Some).ok_or(Failure::refuted("every run ends"))
}

fn lasso(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Result<Option<Evidence>, Failure> {
    let question = Exploration::of(scenario(None)).judging([Invariant::Pair]).under(mutant);
    let explored = trial.explore(&question)?;
    Ok(explored.lasso.map(|lasso| {
        let steps = [lasso.stem, vec!["and again and again:".to_owned()], lasso.cycle].concat();
        Evidence::said("a model that always calls a tool").with_drawing(Drawing::Steps(steps))
    }))
}

/// One call that the rules answer in four ways, and a reply with and one without it.
fn config(profile: Profile, limit: u8, rule: RuleAnswer, mutant: Option<Mutant>) -> Config {
    let mut config = Config::new(profile);
    config.limits = Limits { max_turns: Some(limit), max_cost: None };
    config.mutant = mutant;
    config.tools.push(Tool { name: "Bash".to_owned(), server: None });
    config.calls.push(CallInfo {
        id: "t1".to_owned(),
        tool: Some(ToolRef(0)),
        input_fits: true,
        read_only: false,
        rule,
        before: HookList::new(),
        after: HookList::new(),
        after_failure: HookList::new(),
    });
    config.replies.push(ReplyInfo::default());
    config
        .replies
        .push(ReplyInfo { calls: std::iter::once(crate::agent_loop::CallRef(0)).collect(), cost: 0 });
    config
}

/// The model calls of one run, and whether it ended; `calls(n)` says whether the n-th reply calls the tool.
fn run(config: &Config, most: usize, calls: &mut dyn FnMut(usize) -> bool, error: bool) -> (usize, bool) {
    let mut state = State::default();
    let mut made = 0usize;
    // Each turn takes two inputs; the bound is for runs that do not end.
    for _ in 0..(2 * most + 8) {
        let input = match state.phase {
            Phase::Start => Input::Start,
            Phase::Idle => Input::Prompt,
            Phase::Model => Input::ModelReplied(ReplyRef(u16::from(calls(made)))),
            Phase::Calls => {
                Input::ToolFinished { slot: 0, end: if error { ToolEnd::Error } else { ToolEnd::Result } }
            }
            _ => break,
        };
        let Ok(outputs) = step(config, &mut state, input) else { break };
        made += outputs.iter().filter(|output| matches!(output, Output::CallModel)).count();
    }
    (made, state.phase == Phase::Ended)
}

fn at_most(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Outcome {
    let most = trial.bound("T", 4, 12);
    let profile = *trial.profile();
    let rules = super::p4_2::rule_answers();
    let cases = (0..=most).flat_map(|limit| {
        (0..1u32 << (limit + 2))
            .flat_map(move |replies| rules.iter().map(move |rule| (limit, replies, *rule)))
    });
    trial.every(cases, |(limit, replies, rule)| {
        let config = config(profile, u8::try_from(limit).unwrap_or(u8::MAX), rule, mutant);
        // After the sequence the model calls for ever.
        let mut calls = |n: usize| n > limit + 2 || replies >> n & 1 == 1 || n >= 31;
        let (made, ended) = run(&config, limit + 4, &mut calls, false);
        ensure!(
            ended && made <= limit + 1,
            "T = {limit}: {made} model calls{}, with replies {replies:b} (1 calls a tool, the last digit first)",
            if ended { "" } else { " and no end" }
        );
        Ok(())
    })
}

fn far_beyond(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Outcome {
    let profile = *trial.profile();
    let rules = super::p4_2::rule_answers();
    trial.sampled(2_000, |draws: &mut Draws<'_>| {
        // From 1: what 0 means is the bounded check's.
        let limit = 1 + draws.index(250);
        let rule = draws.pick(rules).copied().unwrap_or(RuleAnswer::Allow);
        let seldom = draws.below(300);
        let error = draws.flag();
        let config = config(profile, u8::try_from(limit).unwrap_or(u8::MAX), rule, mutant);
        let (made, ended) = run(&config, limit + 4, &mut |_| draws.below(seldom + 1) != 1, error);
        ensure!(ended && made <= limit + 1, "T = {limit}, rule {rule:?}: {made} model calls, ended: {ended}");
        Ok(())
    })
}

fn reached(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Outcome {
    let profile = *trial.profile();
    trial.smallest(1..=1usize, |limit| {
        let config = config(profile, 1, RuleAnswer::Allow, mutant);
        let (made, ended) = run(&config, limit + 4, &mut |_| true, false);
        (ended && made == limit + 1).then(|| {
            Evidence::said(format!("T = {limit}: a model that always calls a tool is asked {made} times"))
        })
    })
}
