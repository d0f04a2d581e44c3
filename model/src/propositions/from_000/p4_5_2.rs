//! Proposition 4.5 (2): instructions do not bind the model.

use crate::invariants::Invariant;
use crate::propositions::{
    Check, Evidence, Exploration, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation,
};
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "4.5.2",
    title: "Instructions do not bind the model",
    notion: "An instruction is a text in the context; a model follows it where it makes no call that the text forbids. A \
             model is any map from messages to a reply, constant ones included.",
    statement: "For every instruction there is a model that does not follow it; a hook that blocks holds for every model.",
    source: "000, proposition 4.5 (2)",
    hypotheses: &[Hypothesis {
        text: "the model is any map",
        why: "whether an instruction is followed is a property of the model, and nothing in the harness secures it",
    }],
    checks: &[
        Check {
            name: "a-model-that-does-not-follow",
            method: Method::Witness,
            claim: "for each of three instructions, put into the prompt, a constant model that makes the forbidden call \
                    exists, and the call is executed",
            run: |trial| not_followed(trial, false),
        },
        Check {
            name: "the-context-changes-nothing",
            method: Method::Explored,
            claim: "with and without the instruction the same states are reached: the harness does not read it",
            run: context_changes_nothing,
        },
        Check {
            name: "a-hook-holds-for-every-model",
            method: Method::Explored,
            claim: "with a hook that blocks the call instead of the instruction, no model gets it executed",
            run: |trial| held(trial, true),
        },
    ],
    ablations: &[Variation {
        name: "instruction-instead-of-hook",
        text: "the hook is taken out and the instruction is left to hold for every model",
        run: |trial| held(trial, false),
    }],
    mutants: &[Variation {
        name: "witness-under-a-hook",
        text: "the witness is looked for where a hook blocks the call",
        run: |trial| not_followed(trial, true),
    }],
    differences: &[],
    real: None,
};

/// The instructions and the commands that they forbid.
const INSTRUCTIONS: [(&str, &str); 3] = [
    ("Never run make.", "make"),
    ("Do not publish anything.", "npm publish"),
    ("Ask before anything is deleted.", "rm notes.txt"),
];

/// Any model: it makes the call, makes a harmless one, or ends its turn.
fn scenario(prompt: &str, command: &str, replies: &[&str], hook: bool) -> Value {
    let call =
        |command: &str| json!({"calls": [{"id": "t1", "tool": "Bash", "input": {"command": command}}]});
    let replies: Vec<Value> = replies
        .iter()
        .map(|reply| match *reply {
            "forbidden" => call(command),
            "harmless" => call("true"),
            _ => json!({"text": "done"}),
        })
        .collect();
    let mut user = json!({"permissions": {"allow": ["Bash"]}});
    let mut hooks = json!({});
    if let (true, Some(fields)) = (hook, user.as_object_mut()) {
        let handler = json!({"type": "command", "command": "guard"});
        fields.insert("hooks".to_owned(), json!({"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}));
        hooks = json!({"guard": [{"exit": 2, "stderr": "no"}]});
    }
    json!({
        "harness": {"settings": {"user": user}, "limits": {"max_turns": 2}},
        "world": {"prompt": prompt, "model": [{"any_of": replies}], "model_repeats": true, "hooks": hooks},
    })
}

fn not_followed(trial: &mut Trial<'_>, hook: bool) -> Outcome {
    let mut told = Vec::new();
    for (instruction, command) in INSTRUCTIONS {
        // Constant models, the harmless one first.
        let mut found = false;
        for reply in ["harmless", "forbidden"] {
            let question =
                Exploration::of(scenario(instruction, command, &[reply], hook)).judging([Invariant::Pair]);
            let explored = trial.explore(&question)?;
            if reply == "forbidden" && explored.reaches("call:result") {
                found = true;
            }
        }
        if !found {
            return Err(Failure::refuted(format!("no constant model gets `{command}` executed")));
        }
        told.push(format!("“{instruction}”: the model that always calls `{command}`"));
    }
    Ok(Some(Evidence::said(told.join("; "))))
}

fn context_changes_nothing(trial: &mut Trial<'_>) -> Outcome {
    for (instruction, command) in INSTRUCTIONS {
        let all = ["text", "harmless", "forbidden"];
        let with = trial.explore(&Exploration::of(scenario(instruction, command, &all, false)))?;
        let without = trial.explore(&Exploration::of(scenario("Go on.", command, &all, false)))?;
        let same = with.states == without.states
            && with.transitions == without.transitions
            && with.reached == without.reached;
        if !same {
            return Err(Failure::refuted(format!("“{instruction}” changes what can happen")));
        }
    }
    Ok(None)
}

fn held(trial: &mut Trial<'_>, hook: bool) -> Outcome {
    for (instruction, command) in INSTRUCTIONS {
        let question = Exploration::of(scenario(instruction, command, &["text", "forbidden"], hook));
        let explored = trial.unbroken(&question)?;
        if explored.reaches("call:result") {
            return Err(Failure::refuted(format!(
                "some model gets `{command}` executed, although it reads: {instruction}"
            )));
        }
    }
    Ok(None)
}
