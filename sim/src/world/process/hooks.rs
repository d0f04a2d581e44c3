//! Hook commands as the real harness runs them: a shell, JSON on stdin, exit code, stdout, stderr, a time limit
//! (gate-and-hooks 3.3 and 10).

use super::{Running, Said};
use crate::process::child::{ChildSpec, CommandLine, run};
use serde_json::{Map, Value, json};
use std::time::Duration;
use windtunnel_model::agent_loop::HookRef;
use windtunnel_model::hooks::payload::{Common, payload, tool_fields};
use windtunnel_model::hooks::{EndStatus, Event, HandlerEnd, HandlerKind};
use windtunnel_model::trace::{CallLabel, HookLabel, LabelledInput};

/// Bytes kept of each stream of a hook.
const OUTPUT_LIMIT: usize = 1024 * 1024;

/// No hook runs longer than a day, whatever its settings say.
const LONGEST: f64 = 86_400.0;

impl Running<'_> {
    /// Starts a hook.
    pub(super) fn run_hook(&mut self, hook: &HookLabel, call: Option<&CallLabel>) {
        let Some(registered) = self.session().catalogue().hook(HookRef(hook.index)).cloned() else { return };
        let (label, call_label, channel) = (hook.clone(), call.cloned(), self.channel.clone());
        let command = match &registered.handler.kind {
            HandlerKind::Command { command, args: None } => CommandLine::Shell(command.clone()),
            HandlerKind::Command { command, args: Some(args) } => {
                let fill =
                    |text: &String| text.replace("${CLAUDE_PROJECT_DIR}", &self.workspace.to_string_lossy());
                CommandLine::Exec { program: fill(command), args: args.iter().map(fill).collect() }
            }
            other => {
                let reason = format!("handlers of type {} are not run by this world", other.word());
                let end = HandlerEnd::silent(EndStatus::CannotStart(reason));
                return self.say(LabelledInput::HookFinished { hook: label, call: call_label, end });
            }
        };
        let spec = ChildSpec {
            command,
            cwd: self.workspace.to_owned(),
            env: self.child_env(&[
                ("CLAUDE_PROJECT_DIR".to_owned(), self.workspace.to_string_lossy().into_owned()),
                ("CLAUDECODE".to_owned(), "1".to_owned()),
            ]),
            stdin: self.hook_payload(registered.event, call).to_string().into_bytes(),
            deadline: Duration::from_secs_f64(
                registered.handler.time_limit(registered.event).clamp(0.0, LONGEST),
            ),
            output_limit: OUTPUT_LIMIT,
        };
        self.tasks.spawn(async move {
            let end = run(&spec).await.handler_end();
            let input = LabelledInput::HookFinished { hook: label, call: call_label, end };
            let _ = channel.send(Said { input, stamp: None });
        });
    }

    /// What the hook reads.
    fn hook_payload(&self, event: Event, call: Option<&CallLabel>) -> Value {
        let mode = &self.compiled.workspace.mode;
        let common = Common {
            session_id: "windtunnel".to_owned(),
            transcript_path: self.root.join("transcript.jsonl").to_string_lossy().into_owned(),
            cwd: self.workspace.to_string_lossy().into_owned(),
            permission_mode: mode.name().to_owned(),
            agent: None,
        };
        let own = match call {
            Some(call) => self.call_fields(event, call),
            None => self.run_fields(event),
        };
        payload(event, &common, own)
    }

    fn call_fields(&self, event: Event, label: &CallLabel) -> Map<String, Value> {
        let session = self.session();
        let call = session.slot_call(label.slot).and_then(|call| session.payload(call));
        let (tool, input) = call.map_or(("", Value::Null), |call| (call.tool.as_str(), call.input.clone()));
        let mut fields = tool_fields(event, tool, &self.absolute(tool, input), &label.id);
        match event {
            Event::PostToolUse => {
                fields.insert("tool_response".to_owned(), json!({"text": session.slot_text(label.slot)}));
            }
            Event::PostToolUseFailure => {
                fields.insert("error".to_owned(), json!(session.slot_text(label.slot)));
            }
            _ => {}
        }
        fields
    }

    fn run_fields(&self, event: Event) -> Map<String, Value> {
        let mut fields = Map::new();
        if event == Event::UserPromptSubmit {
            fields.insert("prompt".to_owned(), json!(self.compiled.world.prompt));
        } else {
            let active = self.session().state().stop_blocks > 0;
            fields.insert("stop_hook_active".to_owned(), json!(active));
            let last = self.session().journal().last_text().unwrap_or_default();
            fields.insert("last_assistant_message".to_owned(), json!(last));
        }
        fields
    }

    /// File tools' paths are absolute when hooks see them (gate-and-hooks section 2, step 6).
    fn absolute(&self, tool: &str, mut input: Value) -> Value {
        if matches!(tool, "Read" | "Write" | "Edit")
            && let Some(path) = input.get_mut("file_path")
            && let Some(relative) = path.as_str().filter(|path| !path.starts_with(['/', '~']))
        {
            *path = json!(self.workspace.join(relative).to_string_lossy());
        }
        input
    }
}
