//! Loop 3.4, cited by 000: the pairing of calls and results.

use crate::invariants::Invariant;
use crate::message::{Block, Message, PairingFault, Role, pairing_faults};
use crate::mutant::Mutant;
use crate::propositions::{
    Check, Draws, Evidence, Exploration, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation,
    ensure,
};
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "loop-3.4",
    title: "The pairing of calls and results",
    notion: "A turn is one reply and the calls it carries, until the results go back. Two calls are distinct where their \
             ids are.",
    statement: "After every completed turn each tool_use has exactly one tool_result with its id in the next user message, \
                and no tool_result lacks its tool_use.",
    source: "Agent loop, proposition 3.4 (cited by 000, 3.7 and 4.5)",
    hypotheses: &[Hypothesis {
        text: "the ids of one reply are distinct",
        why: "two calls with one id leave it open which of them a result answers; the API refuses such a request",
    }],
    checks: &[
        Check {
            name: "every-run",
            method: Method::Explored,
            claim: "over three calls of different kinds, allowed, asked for and denied, ending in any way and order over two \
                    turns: I-PAIR and I-TOTAL hold",
            run: |trial| every_run(trial, None),
        },
        Check {
            name: "the-judge-of-messages",
            method: Method::Bounded,
            claim: "over every list of up to three calls and up to four results with these or other ids, the judge finds a \
                    fault exactly where some call does not have one result or some result has no call",
            run: |trial| judge(trial, true, pairing_faults),
        },
        Check {
            name: "far-beyond",
            method: Method::Random,
            claim: "the same for conversations of up to thirty turns in which results are dropped, doubled and moved",
            run: far_beyond,
        },
    ],
    ablations: &[Variation {
        name: "ids-not-distinct",
        text: "two calls of one reply may carry the same id",
        run: |trial| judge(trial, false, pairing_faults),
    }],
    mutants: &[
        Variation {
            name: "no-answer-dropped",
            text: "a call without an answer gets no result",
            run: |trial| every_run(trial, Some(Mutant::DropNoAnswer)),
        },
        Variation {
            name: "result-twice",
            text: "a protocol error is returned twice",
            run: |trial| every_run(trial, Some(Mutant::ReturnTwice)),
        },
        Variation {
            name: "orphans-unseen",
            text: "the judge does not look at results without a call",
            run: |trial| {
                judge(trial, true, |messages| {
                    let mut faults = pairing_faults(messages);
                    faults.retain(|fault| !matches!(fault, PairingFault::OrphanResult(_)));
                    faults
                })
            },
        },
    ],
    differences: &[],
    real: None,
};

fn every_run(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Outcome {
    let call = |id: &str, tool: &str, input: Value| json!({"id": id, "tool": tool, "input": input});
    let any = json!([{"any_of": [
        {"result": "ok"}, {"error": "no"}, {"protocol_error": "internal error"}, {"silent": true}, {"closes": true},
    ]}]);
    let tool = json!({
        "name": "t", "description": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}
    });
    let calls = json!([
        call("t1", "mcp__s__t", json!({})),
        call("t2", "mcp__s__t", json!({})),
        call("t3", "Bash", json!({"command": "rm x"})),
        call("t4", "Nonsense", json!({})),
    ]);
    let scenario = json!({
        "harness": {"settings": {"user": {"permissions": {"allow": ["mcp__s"], "deny": ["Bash(rm *)"]}}}},
        "world": {
            "model": [{"calls": calls}, {"calls": calls}],
            "tools": {"mcp__s__t": any},
            "servers": {"s": {"versions": ["2026-07-28"], "tools": [tool]}},
        },
    });
    let explored = trial
        .unbroken(&Exploration::of(scenario).judging([Invariant::Pair, Invariant::Total]).under(mutant))?;
    for end in [
        "result",
        "error_result",
        "protocol_error",
        "timed_out",
        "no_answer",
        "refused_by_rule",
        "unknown_tool",
    ] {
        if !explored.reaches(&format!("call:{end}")) {
            return Err(Failure::Unknown(format!("no run ends a call in {end}")));
        }
    }
    Ok(None)
}

fn uses(ids: &[usize]) -> Message {
    let block =
        |id: &usize| Block::ToolUse { id: format!("t{id}"), name: "Read".to_owned(), input: json!({}) };
    Message { role: Role::Assistant, content: ids.iter().map(block).collect() }
}

fn results(ids: &[usize]) -> Message {
    let block = |id: &usize| Block::ToolResult {
        tool_use_id: format!("t{id}"),
        content: String::new(),
        is_error: false,
    };
    Message { role: Role::User, content: ids.iter().map(block).collect() }
}

/// The lists of up to `most` numbers below `kinds`.
fn lists(most: usize, kinds: usize) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new()];
    let mut last: Vec<Vec<usize>> = lists.clone();
    for _ in 0..most {
        last = last.iter().flat_map(|l| (0..kinds).map(|k| [l.as_slice(), &[k]].concat())).collect();
        lists.extend(last.clone());
    }
    lists
}

fn is_paired(calls: &[usize], answers: &[usize]) -> bool {
    let count = |id: &usize| answers.iter().filter(|other| *other == id).count();
    calls.iter().all(|id| count(id) == 1) && answers.iter().all(|id| calls.contains(id))
}

fn judge(trial: &mut Trial<'_>, distinct: bool, judge: fn(&[Message]) -> Vec<PairingFault>) -> Outcome {
    let most = trial.bound("calls", 3, 3);
    let answers = lists(most + 1, 4);
    let cases = lists(most, 3)
        .into_iter()
        .filter(|calls| {
            !distinct || calls.iter().enumerate().all(|(n, id)| !calls.iter().take(n).any(|o| o == id))
        })
        .flat_map(|calls| answers.iter().map(move |answers| (calls.clone(), answers)));
    trial.every(cases, |(calls, answers)| {
        let faults = judge(&[uses(&calls), results(answers)]);
        ensure!(
            faults.is_empty() == is_paired(&calls, answers),
            "calls {calls:?}, results {answers:?}: faults {faults:?}"
        );
        Ok(())
    })
}

fn far_beyond(trial: &mut Trial<'_>) -> Outcome {
    trial.sampled(400, |draws: &mut Draws<'_>| -> Result<(), Evidence> {
        let mut list = Vec::new();
        let mut paired = true;
        for turn in 0..1 + draws.index(30) {
            let calls: Vec<usize> = (0..draws.index(9)).map(|n| turn * 10 + n).collect();
            let mut answers = calls.clone();
            draws.shuffle(&mut answers);
            match draws.below(12) {
                1 => drop(answers.pop()),
                2 => answers.extend(calls.first().copied()),
                3 => answers.push(9_999),
                _ => {}
            }
            paired &= is_paired(&calls, &answers);
            list.push(uses(&calls));
            list.push(results(&answers));
        }
        let faults = pairing_faults(&list);
        ensure!(faults.is_empty() == paired, "{} messages: faults {faults:?}", list.len());
        Ok(())
    })
}
