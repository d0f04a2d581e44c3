//! What a run came to, read off its trace.

use std::collections::BTreeMap;
use windtunnel_model::agent_loop::{CallEnd, DecidedBy, EndReason};
use windtunnel_model::hooks::HookDecision;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::session::Session;
use windtunnel_model::trace::{LabelledInput, LabelledOutput, TraceStep};

/// One call of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOutcome {
    /// Its id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The gate's last decision on it, where it reached the gate.
    pub decision: Option<HookDecision>,
    /// Who decided.
    pub decided_by: Option<DecidedBy>,
    /// Whether it was executed, at least begun.
    pub executed: bool,
    /// How it ended; `None` when it got no result (deferred, or the run was cut off).
    pub end: Option<CallEnd>,
    /// The text of its result.
    pub text: String,
    slot: u8,
}

/// A finished run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its steps.
    pub steps: Vec<TraceStep>,
    /// Why it ended; `None` when it did not.
    pub end: Option<EndReason>,
    /// Its calls, in the order of the replies.
    pub calls: Vec<CallOutcome>,
    /// How often the model was called.
    pub model_calls: u32,
    /// How often hooks ran.
    pub hook_runs: u32,
    /// The calls' results, in the order in which they stand in the messages.
    pub result_order: Vec<String>,
    /// The phase that each server settled in first.
    pub servers: BTreeMap<String, String>,
    /// Methods sent to each server.
    pub sent: BTreeMap<String, Vec<String>>,
    /// Invariants that were broken, with the first step of each.
    pub broken: BTreeMap<Invariant, u32>,
    /// What the harness rejected: a fault of the world.
    pub rejected: Option<String>,
}

/// Collects the steps of a run.
#[derive(Debug, Default)]
pub struct Recorder {
    outcome: Outcome,
}

impl Recorder {
    /// Takes a step.
    pub fn step(&mut self, step: TraceStep) {
        let outcome = &mut self.outcome;
        if let LabelledInput::ModelReplied { reply } = &step.input {
            outcome.calls.extend((0u8..).zip(&reply.calls).map(|(slot, call)| CallOutcome {
                id: call.id.clone(),
                tool: call.tool.clone(),
                decision: None,
                decided_by: None,
                executed: false,
                end: None,
                text: String::new(),
                slot,
            }));
        }
        for output in &step.outputs {
            outcome.hear(output);
        }
        for invariant in &step.broken {
            outcome.broken.entry(*invariant).or_insert(step.step);
        }
        outcome.steps.push(step);
    }

    /// Notes that the harness rejected an input.
    pub fn rejected(&mut self, why: String) {
        self.outcome.rejected = Some(why);
    }

    /// The outcome.
    pub fn finish(mut self, session: &Session) -> Outcome {
        use windtunnel_model::message::Block;
        let blocks = session.journal().messages().iter().flat_map(|message| &message.content);
        self.outcome.result_order = blocks
            .filter_map(|block| match block {
                Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                _ => None,
            })
            .collect();
        self.outcome
    }
}

impl Outcome {
    fn call(&mut self, slot: u8) -> Option<&mut CallOutcome> {
        self.calls.iter_mut().rev().find(|call| call.slot == slot)
    }

    fn hear(&mut self, output: &LabelledOutput) {
        match output {
            LabelledOutput::CallModel { .. } => self.model_calls += 1,
            LabelledOutput::RunHook { .. } => self.hook_runs += 1,
            LabelledOutput::Decided { call, decision, by } => {
                let (decision, by) = (*decision, *by);
                if let Some(call) = self.call(call.slot) {
                    call.decision = Some(decision);
                    call.decided_by = Some(by);
                }
            }
            LabelledOutput::RunTool { call, .. } => {
                if let Some(call) = self.call(call.slot) {
                    call.executed = true;
                }
            }
            LabelledOutput::SendMcp { server, line, call } => {
                let method = serde_json::from_str::<serde_json::Value>(line)
                    .ok()
                    .and_then(|value| value.get("method").and_then(|m| m.as_str().map(str::to_owned)));
                self.sent.entry(server.clone()).or_default().extend(method);
                if let Some(call) = call.as_ref().and_then(|call| self.call(call.slot)) {
                    call.executed = true;
                }
            }
            LabelledOutput::ServerChanged { server, phase } => {
                if matches!(phase.as_str(), "connected" | "failed") {
                    self.servers.entry(server.clone()).or_insert_with(|| phase.clone());
                }
            }
            LabelledOutput::Returned { call, end, text } => {
                let (end, text) = (*end, text.clone());
                if let Some(call) = self.call(call.slot) {
                    call.end = Some(end);
                    call.text = text;
                }
            }
            LabelledOutput::Finish { reason } => self.end = Some(*reason),
            LabelledOutput::Connect { .. }
            | LabelledOutput::AskUser { .. }
            | LabelledOutput::CancelTool { .. }
            | LabelledOutput::TurnEnded => {}
        }
    }
}
