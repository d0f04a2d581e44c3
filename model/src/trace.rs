//! The trace: every labelled input and output of a run, in order, as versioned JSON Lines.
//!
//! One line a record, the header first. Same scenario, same seed: same bytes, for scripted, random and explored runs;
//! for process runs, replaying the recorded inputs gives the same bytes (decisions 6). Invariants, propositions and
//! reports are computed from it.

use crate::agent_loop::{CallEnd, DecidedBy, EndReason};
use crate::hooks::{HandlerEnd, HookDecision};
use crate::invariants::Invariant;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the format. A reader refuses versions that it does not know; fields may be added within a version.
pub const TRACE_VERSION: u32 = 1;

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The first line.
    Header(Header),
    /// A step.
    Step(TraceStep),
}

/// What the run was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`TRACE_VERSION`].
    pub version: u32,
    /// The scenario's id.
    pub scenario: String,
    /// The profile in force.
    pub profile: String,
    /// `scripted`, `random`, `exhaustive` or `process`.
    pub world: String,
    /// The seed of a random run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// One application of one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceStep {
    /// Its number, from 0.
    pub step: u32,
    /// Virtual time in milliseconds, in a scripted run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// What the world said.
    pub input: LabelledInput,
    /// What the harness asked for and told.
    pub outputs: Vec<LabelledOutput>,
    /// Invariants that this step breaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<Invariant>,
}

/// A call, for people and for replay: its slot in the turn, its id, its tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLabel {
    /// Position in the turn. This, not the id, says which call is meant: duplicate ids are real.
    pub slot: u8,
    /// The `tool_use` id.
    pub id: String,
    /// The tool as the assistant named it.
    pub tool: String,
}

/// A hook, for people and for replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookLabel {
    /// The event it fires for.
    pub event: String,
    /// Index among the configured hooks.
    pub index: u8,
    /// Its command line, or what else names it.
    pub name: String,
}

/// A call inside a reply of the assistant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyCall {
    /// The `tool_use` id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Its input.
    pub input: Value,
}

/// A reply of the assistant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReplyCall>,
    /// What the model call cost, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub microdollars: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What the world said, with its payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum LabelledInput {
    /// The session starts.
    Start,
    /// The user submits a prompt.
    Prompt {
        /// Its text.
        text: String,
    },
    /// The model replied.
    ModelReplied {
        /// The reply.
        reply: Reply,
    },
    /// The model could not be reached.
    ModelFailed {
        /// Why.
        reason: String,
    },
    /// A hook finished.
    HookFinished {
        /// Which.
        hook: HookLabel,
        /// On which call; `None` for the run's own events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallLabel>,
        /// How it ended and what it printed.
        end: HandlerEnd,
    },
    /// A person answered.
    PermissionAnswered {
        /// About which call.
        call: CallLabel,
        /// Yes or no.
        allow: bool,
    },
    /// A built-in tool finished.
    ToolFinished {
        /// Which call.
        call: CallLabel,
        /// What it says.
        text: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// A server wrote a line.
    McpLine {
        /// Which server.
        server: String,
        /// The line, without its end.
        line: String,
    },
    /// A server's connection closed, or could not be opened.
    McpClosed {
        /// Which server.
        server: String,
        /// Why, as far as known.
        reason: String,
    },
    /// The deadline of a running call passed.
    CallDeadline {
        /// Which call.
        call: CallLabel,
    },
    /// The deadline of a server's handshake or list request passed.
    ServerDeadline {
        /// Which server.
        server: String,
    },
    /// The user interrupts.
    Interrupt,
}

/// What the harness asked for or told, with its payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "output", rename_all = "snake_case")]
pub enum LabelledOutput {
    /// Start a server.
    Connect {
        /// Which.
        server: String,
    },
    /// Send a line to a server.
    SendMcp {
        /// Which.
        server: String,
        /// The line, without its end.
        line: String,
        /// The call that it carries, for `tools/call`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallLabel>,
    },
    /// A connection is in another phase.
    ServerChanged {
        /// Which.
        server: String,
        /// The phase.
        phase: String,
    },
    /// Run a hook.
    RunHook {
        /// Which.
        hook: HookLabel,
        /// On which call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallLabel>,
    },
    /// Call the model.
    CallModel {
        /// Messages in the request.
        messages: usize,
        /// Bytes of the messages as serialised in the request.
        message_bytes: u64,
    },
    /// Ask a person.
    AskUser {
        /// About which call.
        call: CallLabel,
    },
    /// The gate has decided.
    Decided {
        /// On which call.
        call: CallLabel,
        /// What.
        decision: HookDecision,
        /// Who.
        by: DecidedBy,
    },
    /// Run a built-in tool.
    RunTool {
        /// Which call.
        call: CallLabel,
        /// The input as it is executed.
        input: Value,
    },
    /// Nobody waits for this tool any more.
    CancelTool {
        /// Which call.
        call: CallLabel,
    },
    /// The call has its result.
    Returned {
        /// Which call.
        call: CallLabel,
        /// How it ended.
        end: CallEnd,
        /// The text that the assistant sees.
        text: String,
    },
    /// All calls of the turn have ended.
    TurnEnded,
    /// The run is over.
    Finish {
        /// Why.
        reason: EndReason,
    },
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is not a record.
    #[error("line {line}: {source}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The first line is no header, or there is none.
    #[error("line 1: expected a header record with `version`")]
    NoHeader,
    /// The version is another.
    #[error("line 1: trace version {found}, expected {TRACE_VERSION}")]
    Version {
        /// What was found.
        found: u32,
    },
}

/// A whole trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What the run was.
    pub header: Header,
    /// Its steps.
    pub steps: Vec<TraceStep>,
}

impl Trace {
    /// The trace as JSON Lines.
    ///
    /// # Errors
    /// When a record cannot be serialised (a map with keys that are no strings; none of ours has one).
    pub fn to_jsonl(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string(&Record::Header(self.header.clone()))?;
        text.push('\n');
        for step in &self.steps {
            text.push_str(&serde_json::to_string(&Record::Step(step.clone()))?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// [`TraceError`] with the line that is wrong.
    pub fn from_jsonl(text: &str) -> Result<Self, TraceError> {
        let mut header = None;
        let mut steps = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let record =
                serde_json::from_str(line).map_err(|source| TraceError::Line { line: index + 1, source })?;
            match record {
                Record::Header(found) if header.is_none() && found.version == TRACE_VERSION => {
                    header = Some(found);
                }
                Record::Header(found) => return Err(TraceError::Version { found: found.version }),
                Record::Step(_) if header.is_none() => return Err(TraceError::NoHeader),
                Record::Step(step) => steps.push(step),
            }
        }
        Ok(Self { header: header.ok_or(TraceError::NoHeader)?, steps })
    }
}
