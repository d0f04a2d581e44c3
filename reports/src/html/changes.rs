//! What a step changes: the standing of the run, of its calls and of its servers, read off the trace.

use crate::words;
use serde_json::Value;
use std::collections::BTreeMap;
use windtunnel_model::trace::{CallLabel, LabelledInput, LabelledOutput, TraceStep};

/// One thing that a step changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// What changed: `run`, `call t1 Read`, `server mail`, `input of t1 Read`.
    pub(super) thing: String,
    /// What stood there before.
    pub(super) before: Option<String>,
    /// What stands there now.
    pub(super) now: String,
}

/// The standing of everything, step by step.
#[derive(Debug, Default)]
pub(super) struct Standing {
    things: BTreeMap<String, String>,
    /// Inputs of the present turn's calls as the assistant wrote them, by slot.
    inputs: BTreeMap<u8, Value>,
}

impl Standing {
    /// Takes a step and says what it changes: for each thing its standing before the step and after it.
    pub(super) fn step(&mut self, step: &TraceStep) -> Vec<Change> {
        let mut noted = vec![];
        self.input(&step.input, &mut noted);
        for output in &step.outputs {
            self.output(output, &mut noted);
        }
        let mut changes: Vec<Change> = Vec::new();
        for (thing, now) in noted {
            let before = self.things.insert(thing.clone(), now.clone());
            // A thing may change twice in a step: it is shown once, from first to last.
            match changes.iter_mut().find(|change| change.thing == thing) {
                Some(change) => change.now = now,
                None => changes.push(Change { thing, before, now }),
            }
        }
        changes.retain(|change| change.before.as_ref() != Some(&change.now));
        changes
    }

    fn input(&mut self, input: &LabelledInput, noted: &mut Vec<(String, String)>) {
        let run = |now: &str| ("run".to_owned(), now.to_owned());
        match input {
            LabelledInput::Start => noted.push(run("started")),
            LabelledInput::Prompt { .. } => noted.push(run("prompted")),
            LabelledInput::ModelReplied { reply } => {
                self.inputs =
                    (0u8..).zip(&reply.calls).map(|(slot, call)| (slot, call.input.clone())).collect();
                // A call of a turn before may have had the same id; its standing is not that of the new one.
                self.things.retain(|thing, _| !thing.starts_with("call ") && !thing.starts_with("input of "));
                noted.push(run("the model has replied"));
                for (slot, call) in (0u8..).zip(&reply.calls) {
                    let label = CallLabel { slot, id: call.id.clone(), tool: call.tool.clone() };
                    noted.push((thing(&label), "asked for".to_owned()));
                }
            }
            LabelledInput::ModelFailed { .. } => noted.push(run("the model failed")),
            LabelledInput::HookFinished { hook, call: Some(call), .. } => {
                noted.push((thing(call), format!("{} hook finished", words::plain(&hook.event))));
            }
            LabelledInput::HookFinished { hook, call: None, .. } => {
                noted.push(run(&format!("{} hook finished", words::plain(&hook.event))));
            }
            LabelledInput::PermissionAnswered { call, allow } => {
                let now = if *allow { "the user said yes" } else { "the user said no" };
                noted.push((thing(call), now.to_owned()));
            }
            LabelledInput::ToolFinished { call, .. } => {
                noted.push((thing(call), "the tool finished".to_owned()));
            }
            LabelledInput::McpClosed { server, .. } => {
                noted.push((server_thing(server), "closed".to_owned()));
            }
            LabelledInput::CallDeadline { call } => noted.push((thing(call), "timed out".to_owned())),
            LabelledInput::ServerDeadline { server } => {
                noted.push((server_thing(server), "timed out".to_owned()));
            }
            LabelledInput::Interrupt => noted.push(run("interrupted")),
            LabelledInput::McpLine { .. } => {}
        }
    }

    fn output(&self, output: &LabelledOutput, noted: &mut Vec<(String, String)>) {
        match output {
            LabelledOutput::Connect { server } => noted.push((server_thing(server), "starting".to_owned())),
            LabelledOutput::ServerChanged { server, phase } => {
                noted.push((server_thing(server), words::plain(phase)));
            }
            LabelledOutput::SendMcp { line, call: Some(call), .. } => {
                noted.push((thing(call), "running".to_owned()));
                let message: Option<Value> = serde_json::from_str(line).ok();
                let arguments = message.as_ref().and_then(|message| message.pointer("/params/arguments"));
                self.rewritten(call, arguments, noted);
            }
            LabelledOutput::RunHook { hook, call: Some(call) } => {
                noted.push((thing(call), format!("{} hook running", words::plain(&hook.event))));
            }
            LabelledOutput::RunHook { hook, call: None } => {
                noted.push(("run".to_owned(), format!("{} hook running", words::plain(&hook.event))));
            }
            LabelledOutput::CallModel { messages, message_bytes } => {
                noted.push(("run".to_owned(), "waits for the model".to_owned()));
                noted.push(("messages".to_owned(), messages.to_string()));
                noted.push(("bytes of messages".to_owned(), words::thousands(*message_bytes)));
            }
            LabelledOutput::AskUser { call } => noted.push((thing(call), "waits for the user".to_owned())),
            LabelledOutput::Decided { call, decision, by } => {
                noted.push((thing(call), format!("{}, {}", decision.word(), words::decided_by(*by))));
            }
            LabelledOutput::RunTool { call, input } => {
                noted.push((thing(call), "running".to_owned()));
                self.rewritten(call, Some(input), noted);
            }
            LabelledOutput::CancelTool { call } => noted.push((thing(call), "cancelled".to_owned())),
            LabelledOutput::Returned { call, end, .. } => {
                noted.push((thing(call), format!("ended: {}", words::end(*end))));
            }
            LabelledOutput::Finish { reason } => {
                noted.push(("run".to_owned(), format!("ended: {}", reason.word().replace('_', " "))));
            }
            LabelledOutput::SendMcp { call: None, .. } | LabelledOutput::TurnEnded => {}
        }
    }

    /// Notes an executed input that is not the one that the assistant wrote.
    fn rewritten(&self, call: &CallLabel, executed: Option<&Value>, noted: &mut Vec<(String, String)>) {
        if let (Some(written), Some(executed)) = (self.inputs.get(&call.slot), executed)
            && written != executed
        {
            let was = words::cut(&words::plain(&written.to_string()), 120);
            let is = words::cut(&words::plain(&executed.to_string()), 120);
            noted.push((
                format!("input of {}", words::call(call)),
                format!("{is}, where the assistant wrote {was}"),
            ));
        }
    }
}

fn thing(call: &CallLabel) -> String {
    format!("call {}", words::call(call))
}

fn server_thing(server: &str) -> String {
    format!("server {}", words::plain(server))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    fn told(steps: &[TraceStep]) -> Vec<Vec<String>> {
        let mut standing = Standing::default();
        let say = |change: Change| match change.before {
            Some(before) => format!("{}: {before} -> {}", change.thing, change.now),
            None => format!("{}: {}", change.thing, change.now),
        };
        steps.iter().map(|step| standing.step(step).into_iter().map(say).collect()).collect()
    }

    #[test]
    fn a_step_shows_what_stood_before_and_what_stands_now() {
        let told = told(&examples::refused_run());
        assert_eq!(told[3], ["call t1 Read: PreToolUse hook running -> ended: refused by hook"]);
        assert_eq!(
            told[5],
            [
                "call t2 Bash: waits for the user -> running",
                r#"input of t2 Bash: {"command":"ls"}, where the assistant wrote {"command":"ls -la"}"#
            ]
        );
        assert_eq!(
            told[6],
            [
                "call t2 Bash: running -> ended: result",
                "run: the model has replied -> waits for the model",
                "messages: 1 -> 3",
                "bytes of messages: 64 -> 412"
            ]
        );
    }

    #[test]
    fn a_connection_that_closes_is_a_change_of_its_server() {
        let told = told(&examples::server_run());
        assert!(told[7].contains(&"server mail: connected -> lost".to_owned()), "{told:?}");
    }
}
