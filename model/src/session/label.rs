//! Outputs with their names and payloads.

use super::{Session, wire};
use crate::agent_loop::{CallRef, ConnPhase, HookRef, McpOut, Output, Outputs, ServerRef, Site, State};
use crate::invariants::InvariantSet;
use crate::trace::{CallLabel, HookLabel, LabelledOutput};
use serde_json::Value;

impl Session {
    /// Labels the outputs of a step and lets the journal follow them.
    pub(super) fn label_outputs(
        &mut self,
        before: &State,
        outputs: &Outputs,
        broken: &mut InvariantSet,
    ) -> Vec<LabelledOutput> {
        outputs.iter().map(|output| self.label_output(before, *output, broken)).collect()
    }

    fn label_output(&mut self, before: &State, output: Output, broken: &mut InvariantSet) -> LabelledOutput {
        match output {
            Output::Connect { server } => {
                if let Some(wire) = self.wires.get_mut(server.index()) {
                    *wire = wire::Wire::default();
                }
                LabelledOutput::Connect { server: self.server_name(server) }
            }
            Output::SendMcp { server, message } => self.label_send(server, message),
            Output::ServerChanged { server, phase } => LabelledOutput::ServerChanged {
                server: self.server_name(server),
                phase: phase_word(phase).to_owned(),
            },
            Output::RunHook { site, hook } => LabelledOutput::RunHook {
                hook: self.hook_label(hook),
                call: match site {
                    Site::Run => None,
                    Site::Call(slot) => Some(self.call_label(slot)),
                },
            },
            Output::CallModel => {
                self.before_request(before.phase);
                self.judge_request(broken);
                LabelledOutput::CallModel {
                    messages: self.journal().messages().len(),
                    message_bytes: self.journal().total_bytes(),
                }
            }
            Output::AskUser { slot } => LabelledOutput::AskUser { call: self.call_label(slot) },
            Output::Decided { slot, decision, by } => {
                LabelledOutput::Decided { call: self.call_label(slot), decision, by }
            }
            Output::RunTool { slot, call } => LabelledOutput::RunTool {
                call: self.call_label(slot),
                input: self.payload(call).map(|payload| payload.input.clone()).unwrap_or(Value::Null),
            },
            Output::CancelTool { slot } => LabelledOutput::CancelTool { call: self.call_label(slot) },
            Output::Returned { slot, end } => {
                let call = self.call_label(slot);
                LabelledOutput::Returned { call, end, text: self.form_result(slot, end) }
            }
            Output::TurnEnded => {
                self.end_turn();
                LabelledOutput::TurnEnded
            }
            Output::Finish(reason) => LabelledOutput::Finish { reason },
        }
    }

    fn label_send(&mut self, server: ServerRef, message: McpOut) -> LabelledOutput {
        let modern = self.state().server(server).is_some_and(|conn| conn.modern);
        let slot = match message {
            McpOut::Call { slot, .. } => Some(slot),
            _ => None,
        };
        let call = slot.and_then(|slot| self.own_call(slot));
        let wire = self.wires.get(server.index()).cloned().unwrap_or_default();
        let carried = call.as_ref().map(|(name, input)| (name.as_str(), input));
        let line = wire::render(&wire, &self.versions, modern, message, carried);
        LabelledOutput::SendMcp {
            server: self.server_name(server),
            line,
            call: slot.map(|slot| self.call_label(slot)),
        }
    }

    /// The tool's own name on its server, and the input.
    fn own_call(&self, slot: u8) -> Option<(String, Value)> {
        let call: CallRef = self.slot_call(slot)?;
        let tool = self.config().call(call)?.tool?;
        Some((self.catalogue().tool(tool)?.own_name.clone(), self.payload(call)?.input.clone()))
    }

    /// The label of a call of the present turn.
    pub fn call_label(&self, slot: u8) -> CallLabel {
        let call = self.slot_call(slot);
        CallLabel {
            slot,
            id: call
                .and_then(|call| self.config().call(call))
                .map(|info| info.id.clone())
                .unwrap_or_default(),
            tool: call.and_then(|call| self.payload(call)).map(|p| p.tool.clone()).unwrap_or_default(),
        }
    }

    /// The label of a hook.
    pub fn hook_label(&self, hook: HookRef) -> HookLabel {
        let configured = self.config().hooks.get(hook.index());
        HookLabel {
            event: configured.map(|hook| hook.event.word()).unwrap_or_default().to_owned(),
            index: hook.0,
            name: configured.map(|hook| hook.name.clone()).unwrap_or_default(),
        }
    }

    fn server_name(&self, server: ServerRef) -> String {
        self.config().servers.get(server.index()).map(|server| server.name.clone()).unwrap_or_default()
    }
}

/// The word of a connection's phase in traces and reports.
pub(super) fn phase_word(phase: ConnPhase) -> &'static str {
    match phase {
        ConnPhase::Off => "off",
        ConnPhase::Discovering => "discovering",
        ConnPhase::Agreeing => "agreeing",
        ConnPhase::Initializing => "initializing",
        ConnPhase::Listing => "listing",
        ConnPhase::Ready => "connected",
        ConnPhase::Failed => "failed",
        ConnPhase::Lost => "lost",
    }
}
