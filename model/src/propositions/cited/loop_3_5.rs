//! Loop 3.5, cited by 000: a refusal is returned as a result.

use crate::invariants::Invariant;
use crate::mutant::Mutant;
use crate::propositions::{
    Check, Exploration, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation,
};
use serde_json::json;

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "loop-3.5",
    title: "A refusal is returned as a result",
    notion: "A call is refused by a hook, by a rule, by a person, or because nobody can answer.",
    statement: "Every refused call has one tool_result, marked as an error, and the loop goes on.",
    source: "Agent loop, remark 3.5 (cited by 000)",
    hypotheses: &[Hypothesis {
        text: "the call is refused, not put off",
        why: "a deferred call ends the run without a result: somebody else decides later",
    }],
    checks: &[Check {
        name: "every-refusal",
        method: Method::Explored,
        claim: "with hooks, rules and a person that refuse or not, in every order: I-REFUSAL, I-TOTAL and I-PAIR hold, and \
                the model is called again after each kind of refusal",
        run: |trial| every_refusal(trial, &["none", "deny"], None),
    }],
    ablations: &[Variation {
        name: "deferred",
        text: "a hook may put the call off instead",
        run: |trial| every_refusal(trial, &["none", "deny", "defer"], None),
    }],
    mutants: &[Variation {
        name: "refusal-dropped",
        text: "a call refused by a rule gets no result",
        run: |trial| every_refusal(trial, &["none", "deny"], Some(Mutant::DropRefusal)),
    }],
    differences: &[],
    real: None,
};

fn every_refusal(trial: &mut Trial<'_>, hook_says: &[&str], mutant: Option<Mutant>) -> Outcome {
    let says: Vec<_> = hook_says
        .iter()
        .map(|decision| match *decision {
            "none" => json!({"exit": 0}),
            other => {
                let own = json!({"hookEventName": "PreToolUse", "permissionDecision": other});
                json!({"stdout": json!({"hookSpecificOutput": own}).to_string()})
            }
        })
        .collect();
    let call = |id: &str, command: &str| json!({"id": id, "tool": "Bash", "input": {"command": command}});
    let scenario = json!({
        "harness": {"settings": {"user": {
            "permissions": {"allow": ["Bash(make)"], "deny": ["Bash(rm *)"]},
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}]},
        }}},
        "world": {
            "model": [{"calls": [call("t1", "make"), call("t2", "rm x"), call("t3", "touch x")]}],
            "hooks": {"guard": [{"any_of": says}]},
            "user": [{"any_of": [{"allow": true}, {"allow": false}]}],
        },
    });
    let judged = [Invariant::Refusal, Invariant::Total, Invariant::Pair];
    let explored = trial.unbroken(&Exploration::of(scenario).judging(judged).under(mutant))?;
    if explored.reaches("call:deferred") || explored.reaches("end:deferred") {
        return Err(Failure::refuted("a call is put off: the run ends and the call has no result"));
    }
    for end in ["call:refused_by_hook", "call:refused_by_rule", "call:refused_by_user", "end:completed"] {
        if !explored.reaches(end) {
            return Err(Failure::Unknown(format!("no run reaches {end}")));
        }
    }
    Ok(None)
}
