//! Proposition 4.5 (1): hooks run whatever the model says.

use crate::gate::facts::NoFiles;
use crate::gate::mode::Mode;
use crate::gate::pipeline::Outcome as GateOutcome;
use crate::gate::pipeline::{Answers, AskedEnd, Call, HookRuns};
use crate::hooks::{Event, HandlerEnd, HandlerKind, Selected};
use crate::invariants::Invariant;
use crate::mutant::Mutant;
use crate::propositions::at_the_gate::session;
use crate::propositions::{
    Check, Evidence, Exploration, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};
use crate::sources::settings::Level;
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "4.5.1",
    title: "Hooks run whatever the model says",
    notion: "A model is any map from messages to a reply. Reading a file that the user mentions with @ is no call of a \
             tool: no hook fires there, only a Read deny rule stops it; 000 names one built-in call that passes by hooks.",
    statement: "For every model, every executed call was preceded by a run of every matching PreToolUse hook on that very \
                call, with the input that is executed.",
    source: "000, proposition 4.5 (1)",
    hypotheses: &[
        Hypothesis {
            text: "hooks are enabled and registered, and no mod is installed",
            why: "as in 4.3.1: a hook that does not run sees nothing",
        },
        Hypothesis {
            text: "no hook rewrites the input (updatedInput)",
            why: "hooks run together on the input that the model gave; what one of them puts in its place is executed \
                  without having been seen by the others",
        },
    ],
    checks: &[
        Check {
            name: "every-model",
            method: Method::Explored,
            claim: "over every reply of the model (each of three calls, two at once, none) and every order in which hooks \
                    and tools end: I-FIRE holds",
            run: |trial| every_model(trial, None),
        },
        Check {
            name: "hooks-see-what-runs",
            method: Method::Enumeration,
            claim: "over inputs, modes and other hooks that rewrite nothing, each hook was given the input that is executed",
            run: |trial| see_what_runs(trial, &[None]),
        },
        Check {
            name: "rewritten-runs-unseen",
            method: Method::Witness,
            claim: "where a hook rewrites, an input may run that another hook has not seen",
            run: |trial| match see_what_runs(trial, &[Some("/repo/.env")]) {
                Err(Failure::Refuted(evidence)) => Ok(Some(evidence)),
                Ok(_) => Err(Failure::refuted("every hook saw what ran")),
                other => other,
            },
        },
    ],
    ablations: &[
        Variation {
            name: "a-hook-rewrites",
            text: "one of the hooks answers with updatedInput",
            run: |trial| see_what_runs(trial, &[None, Some("/repo/.env")]),
        },
        Variation {
            name: "a-call-that-skips-hooks",
            text: "one kind of built-in call passes by the hooks",
            run: |trial| every_model(trial, Some(Mutant::SkipHooks)),
        },
    ],
    mutants: &[
        Variation {
            name: "first-hook-twice",
            text: "the first hook is run twice",
            run: |trial| every_model(trial, Some(Mutant::FireTwice)),
        },
        Variation {
            name: "no-permission-stage",
            text: "the stage of hooks and permission is left out for calls that a rule allows",
            run: |trial| every_model(trial, Some(Mutant::SkipPermission)),
        },
    ],
    differences: &[],
    real: None,
};

fn every_model(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Outcome {
    let call = |id: &str, tool: &str, input: Value| json!({"id": id, "tool": tool, "input": input});
    let write = |id: &str| call(id, "Write", json!({"file_path": "a.txt", "content": "x"}));
    let read = |id: &str| call(id, "Read", json!({"file_path": "a.txt"}));
    let bash = |id: &str| call(id, "Bash", json!({"command": "make"}));
    let ends = |codes: [i32; 3]| json!([{"any_of": codes.map(|code| json!({"exit": code}))}]);
    let scenario = json!({
        "harness": {"settings": {"user": {
            "permissions": {"allow": ["Write", "Edit(a.txt)", "Bash(make)"]},
            "hooks": {"PreToolUse": [
                {"matcher": "Write|Read", "hooks": [{"type": "command", "command": "one"}]},
                {"matcher": "*", "hooks": [{"type": "command", "command": "two", "onFailure": "block"}]},
            ]},
        }}},
        "world": {
            "model": [{"any_of": [
                {"text": "done"},
                {"calls": [write("t1")]},
                {"calls": [read("t1"), read("t2")]},
                {"calls": [bash("t1"), write("t2")]},
            ]}],
            "model_repeats": true,
            "hooks": {"one": ends([0, 1, 2]), "two": ends([0, 1, 2])},
        },
    });
    let judged = [Invariant::Fire, Invariant::Permit, Invariant::Block, Invariant::FailDir];
    let explored = trial.unbroken(&Exploration::of(scenario).judging(judged).under(mutant))?;
    // A law about executed calls says nothing where none is executed.
    match explored.reaches("call:result") && explored.reaches("call:refused_by_hook") {
        true => Ok(None),
        false => Err(Failure::Unknown("no call is executed, or none is refused".to_owned())),
    }
}

/// Hooks that note what they were given; the second one may rewrite the path.
struct Seeing {
    seen: Vec<Value>,
    rewrites_to: Option<&'static str>,
}

impl Answers for Seeing {
    fn run_hooks(&mut self, _: Event, hooks: &[Selected<'_>], payload: &Value) -> HookRuns {
        let mut runs = HookRuns::default();
        for (index, hook) in hooks.iter().enumerate() {
            self.seen.push(payload.get("tool_input").cloned().unwrap_or_default());
            let second =
                matches!(&hook.handler.kind, HandlerKind::Command { command, .. } if command == "two");
            let stdout = match self.rewrites_to.filter(|_| second) {
                Some(path) => {
                    let own = json!({
                        "hookEventName": "PreToolUse",
                        "permissionDecision": "allow",
                        "updatedInput": {"file_path": path, "content": "x"},
                    });
                    json!({"hookSpecificOutput": own}).to_string()
                }
                None => String::new(),
            };
            runs.ends.push(Some(HandlerEnd::exited(0, stdout, "")));
            runs.finished.push(index);
        }
        runs
    }

    fn ask(&mut self, _: &[Selected<'_>], _: &Value, _: &Call<'_>, _: &Value) -> Vec<AskedEnd> {
        Vec::new()
    }
}

fn see_what_runs(trial: &mut Trial<'_>, rewrites: &[Option<&'static str>]) -> Outcome {
    trial.over("paths x modes x rewriting of the second hook");
    let profile = *trial.profile();
    let settings = json!({
        "permissions": {"allow": ["Edit(**)"]},
        "hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [
            {"type": "command", "command": "one"},
            {"type": "command", "command": "two"},
        ]}]},
    });
    let cases = rewrites.iter().flat_map(|rewrite| {
        super::blocking::modes()
            .iter()
            .flat_map(move |mode| ["notes.txt", "/repo/src/app.py"].map(|path| (*rewrite, *mode, path)))
    });
    let mut ran = 0u64;
    trial.every(cases, |(rewrites_to, mode, path): (_, Mode, _)| {
        let mut session = session(&profile, &[(Level::User, settings.clone())], mode, true);
        let mut hooks = Seeing { seen: Vec::new(), rewrites_to };
        let input = json!({"file_path": path, "content": "x"});
        let call = Call { id: "t1", tool: "Write", input: &input, background: false, agent: None };
        let judgement = session.judge(&call, &NoFiles, &mut hooks);
        if judgement.outcome != GateOutcome::Run {
            return Ok(());
        }
        ran += 1;
        let path =
            |value: &Value| value.get("file_path").and_then(Value::as_str).unwrap_or_default().to_owned();
        for seen in &hooks.seen {
            ensure!(
                *seen == judgement.input,
                "mode {mode}: a hook was given {}, and {} is executed",
                path(seen),
                path(&judgement.input)
            );
        }
        ensure!(hooks.seen.len() == 2, "{} of two hooks ran", hooks.seen.len());
        Ok(())
    })?;
    if ran == 0 { Err(Failure::Unknown("no call was executed".to_owned())) } else { Ok(None::<Evidence>) }
}
