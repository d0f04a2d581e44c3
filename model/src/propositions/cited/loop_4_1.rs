//! Loop 4.1, cited by 000: termination, whatever refuses and whatever fails.

use crate::invariants::Invariant;
use crate::mutant::Mutant;
use crate::propositions::{
    Check, Drawing, Evidence, Exploration, Failure, Hypothesis, Method, Outcome, Proposition, Trial,
    Variation,
};
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "loop-4.1",
    title: "Termination, whatever refuses and whatever fails",
    notion: "T is the turn limit. Hooks and rules only change what the gate answers; Stop hooks may force continuations, \
             which the harness bounds by a cap.",
    statement: "With a finite T >= 1 every run ends, also with hooks that block, servers that die and Stop hooks that \
                object.",
    source: "Agent loop, theorem 4.1 (cited by 000, 7.1)",
    hypotheses: &[
        Hypothesis { text: "T is finite", why: "a model that always calls a tool goes on for ever (7.1)" },
        Hypothesis {
            text: "forced continuations are bounded",
            why: "a Stop hook that always objects keeps the loop alive although no tool is called",
        },
    ],
    checks: &[Check {
        name: "every-run-ends",
        method: Method::Explored,
        claim: "over every model, a PreToolUse hook that blocks or fails, a server that answers or dies, and a Stop hook \
                that objects or not, for T = 1 to 3: no run comes back to a state that it was in",
        run: |trial| every_run_ends(trial, true, None),
    }],
    ablations: &[Variation {
        name: "no-limit",
        text: "T is not finite",
        run: |trial| every_run_ends(trial, false, None),
    }],
    mutants: &[Variation {
        name: "stop-cap-ignored",
        text: "a Stop hook's objection is obeyed beyond the cap",
        run: |trial| every_run_ends(trial, true, Some(Mutant::IgnoreStopCap)),
    }],
    differences: &[],
    real: None,
};

fn scenario(limit: Option<usize>) -> Value {
    // Without a limit the ids of requests grow for ever, and no two states are the same: a built-in tool has none.
    let call = match limit {
        Some(_) => json!({"id": "t1", "tool": "mcp__s__t", "input": {}}),
        None => json!({"id": "t1", "tool": "Bash", "input": {"command": "make"}}),
    };
    let mut limits = json!({});
    if let (Some(limit), Some(fields)) = (limit, limits.as_object_mut()) {
        fields.insert("max_turns".to_owned(), limit.into());
    }
    let ends = json!([{"any_of": [{"result": "ok"}, {"silent": true}, {"closes": true}]}]);
    let tools = if limit.is_some() { json!({"mcp__s__t": ends}) } else { json!({"Bash": ends}) };
    json!({
        "harness": {
            "settings": {"user": {
                "permissions": {"allow": ["mcp__s", "Bash"]},
                "hooks": {
                    "PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "guard"}]}],
                    "Stop": [{"hooks": [{"type": "command", "command": "stop"}]}],
                },
            }},
            "limits": limits,
        },
        "world": {
            "model": [{"any_of": [
                {"text": "done"},
                {"calls": [call]},
            ]}],
            "model_repeats": true,
            "hooks": {
                "guard": [{"any_of": [{"exit": 0}, {"exit": 1}, {"exit": 2}]}],
                "stop": [{"any_of": [{"exit": 0}, {"exit": 2}]}],
            },
            "tools": tools,
            "servers": {"s": {
                "versions": ["2026-07-28"],
                "tools": [{"name": "t", "description": "t", "inputSchema": {"type": "object"}}],
            }},
        },
    })
}

fn every_run_ends(trial: &mut Trial<'_>, limited: bool, mutant: Option<Mutant>) -> Outcome {
    let most = trial.bound("T", 3, 6);
    for limit in 1..=most {
        let judged = [Invariant::Turns, Invariant::Stop, Invariant::End];
        let question = Exploration::of(scenario(limited.then_some(limit))).judging(judged).under(mutant);
        let explored = trial.unbroken(&question)?;
        if let Some(lasso) = explored.lasso {
            let steps = [lasso.stem, vec!["and again and again:".to_owned()], lasso.cycle].concat();
            return Err(Evidence::said("a run never ends").with_drawing(Drawing::Steps(steps)).into());
        }
        if !explored.reaches("end:completed") {
            return Err(Failure::Unknown("no run is completed".to_owned()));
        }
    }
    Ok(None)
}
