//! Control state: small, `Copy`, no strings, no payloads (those are in the [`Journal`](crate::journal::Journal)).
//!
//! Fields that nothing reads any more are zero: two states that behave alike are equal, which keeps exploration small.

use super::config::CallRef;
use crate::hooks::HookDecision as Decision;

/// Calls of one turn that a [`State`] can hold.
pub const MAX_CALLS: usize = 8;
/// MCP servers that a [`State`] can hold.
pub const MAX_SERVERS: usize = 8;
/// Hooks of one event that can match one call.
pub const MAX_HOOKS: usize = 8;

/// Where the run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nothing has happened yet.
    #[default]
    Start,
    /// MCP servers are being connected; the first turn waits for them.
    Connecting,
    /// Ready for the prompt.
    Idle,
    /// UserPromptSubmit hooks run.
    PromptHooks,
    /// The model was called.
    Model,
    /// The calls of a turn are on their way.
    Calls,
    /// Stop hooks run.
    StopHooks,
    /// The run has ended.
    Ended,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The assistant ended its turn and no Stop hook objected.
    Completed,
    /// A Stop hook objected once more than the cap allows.
    StopCapReached,
    /// A UserPromptSubmit hook blocked the prompt.
    PromptBlocked,
    /// The turn limit was reached.
    MaxTurns,
    /// The money limit was reached.
    MaxBudget,
    /// A hook said `continue: false`.
    HookStopped,
    /// A hook deferred a call.
    Deferred,
    /// The user interrupted.
    Interrupted,
    /// The model could not be reached.
    ModelFailed,
}

impl EndReason {
    /// All, in the order of declaration.
    pub const ALL: [Self; 9] = [
        Self::Completed,
        Self::StopCapReached,
        Self::PromptBlocked,
        Self::MaxTurns,
        Self::MaxBudget,
        Self::HookStopped,
        Self::Deferred,
        Self::Interrupted,
        Self::ModelFailed,
    ];

    /// The word in scenarios and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::StopCapReached => "stop_cap_reached",
            Self::PromptBlocked => "prompt_blocked",
            Self::MaxTurns => "max_turns",
            Self::MaxBudget => "max_budget",
            Self::HookStopped => "hook_stopped",
            Self::Deferred => "deferred",
            Self::Interrupted => "interrupted",
            Self::ModelFailed => "model_failed",
        }
    }
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// There is no call in this slot.
    #[default]
    Empty,
    /// It waits for its neighbours.
    Queued,
    /// It waits at this stage of the pipeline (an index into the profile's order).
    Stage(u8),
    /// A person was asked.
    Asking,
    /// It was let through and waits for its server to be started anew.
    Reconnecting,
    /// It is being executed.
    Running,
    /// Its after-event hooks run.
    After,
    /// Its result has been returned.
    Ended,
}

/// How a call ended: what its one `tool_result` stands for (proposition 3.7 and its additions).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// (i) A result.
    #[default]
    Result,
    /// (ii) A result with `isError: true`, or a built-in tool that failed.
    ErrorResult,
    /// (iii) A JSON-RPC error.
    ProtocolError,
    /// (iv) No answer: the connection closed.
    NoAnswer,
    /// (iv) No answer in time.
    TimedOut,
    /// Refused by a hook.
    RefusedByHook,
    /// Refused by a rule or the mode.
    RefusedByRule,
    /// An ask that nobody could answer.
    RefusedUnanswered,
    /// A person said no.
    RefusedByUser,
    /// There is no such tool.
    UnknownTool,
    /// The input does not fit the tool's schema.
    InvalidInput,
    /// Put off by a hook: no result, the run ends.
    Deferred,
    /// The user interrupted.
    Interrupted,
}

impl CallEnd {
    /// All, in the order of declaration.
    pub const ALL: [Self; 13] = [
        Self::Result,
        Self::ErrorResult,
        Self::ProtocolError,
        Self::NoAnswer,
        Self::TimedOut,
        Self::RefusedByHook,
        Self::RefusedByRule,
        Self::RefusedUnanswered,
        Self::RefusedByUser,
        Self::UnknownTool,
        Self::InvalidInput,
        Self::Deferred,
        Self::Interrupted,
    ];

    /// The word in scenarios and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::ErrorResult => "error_result",
            Self::ProtocolError => "protocol_error",
            Self::NoAnswer => "no_answer",
            Self::TimedOut => "timed_out",
            Self::RefusedByHook => "refused_by_hook",
            Self::RefusedByRule => "refused_by_rule",
            Self::RefusedUnanswered => "refused_unanswered",
            Self::RefusedByUser => "refused_by_user",
            Self::UnknownTool => "unknown_tool",
            Self::InvalidInput => "invalid_input",
            Self::Deferred => "deferred",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether the call was executed, successfully or not, or at least begun.
    pub fn is_executed(self) -> bool {
        matches!(
            self,
            Self::Result | Self::ErrorResult | Self::ProtocolError | Self::NoAnswer | Self::TimedOut
        )
    }

    /// Whether its `tool_result` carries the mark of an error.
    pub fn is_error(self) -> bool {
        self != Self::Result
    }
}

/// One call of the current turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The call as it will be executed: rewritten by hooks where they do.
    pub call: CallRef,
    /// How far it has come.
    pub progress: Progress,
    /// Hooks of the current event that have not finished, a bit each (index into the call's list).
    pub pending: u8,
    /// What the finished PreToolUse hooks come to so far.
    pub decision: Decision,
    /// The rewritten call that the last finished hook asked for.
    pub rewrite: Option<CallRef>,
    /// The id of its open MCP request.
    pub request: u16,
    /// How it ended, while its after-event hooks run.
    pub end: CallEnd,
}

/// Where one MCP connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnPhase {
    /// Not started.
    #[default]
    Off,
    /// `server/discover` was sent (at most twice: the second time under an agreed version).
    Discovering,
    /// `server/discover` was sent again under a version that the server listed.
    Agreeing,
    /// `initialize` was sent.
    Initializing,
    /// `tools/list` was sent.
    Listing,
    /// Its tools are offered.
    Ready,
    /// Connecting failed or the connection was lost; its tools are not offered.
    Failed,
    /// The connection was lost; its tools stay offered and the next call starts it anew.
    Lost,
}

/// One MCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn {
    /// Where it is.
    pub phase: ConnPhase,
    /// The id of the next request.
    pub next: u16,
    /// The id of the open handshake or list request, while there is one.
    pub open: Option<u16>,
    /// Which of the server's lists is in force.
    pub list: u8,
    /// Whether the connection is of the modern era (per-request metadata).
    pub modern: bool,
}

/// The control state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// Where the run is.
    pub phase: Phase,
    /// Why it ended, once it has.
    pub end: Option<EndReason>,
    /// What counts against the turn limit (model calls or turns with calls, by the profile's rule); zero without one.
    pub turns: u8,
    /// Consecutive blocks by Stop hooks, as far as the profile's rule reads them.
    pub stop_blocks: u8,
    /// Money spent, in millionths of a US dollar; zero without a limit.
    pub spent: u32,
    /// Hooks of the run's own event (prompt, Stop) that have not finished, a bit each.
    pub pending: u8,
    /// What the finished ones come to so far.
    pub decision: Decision,
    /// Whether a hook of this turn said `continue: false`.
    pub halt: bool,
    /// Whether a hook of this turn deferred a call.
    pub deferred: bool,
    /// How many slots are in use.
    pub count: u8,
    /// The calls of the current turn.
    pub slots: [Slot; MAX_CALLS],
    /// The MCP connections.
    pub servers: [Conn; MAX_SERVERS],
}

impl State {
    /// The slots in use.
    pub fn calls(&self) -> &[Slot] {
        self.slots.get(..usize::from(self.count)).unwrap_or(&self.slots)
    }

    /// One slot in use.
    pub fn slot(&self, slot: u8) -> Option<&Slot> {
        self.calls().get(usize::from(slot))
    }

    /// One connection.
    pub fn server(&self, server: super::config::ServerRef) -> Option<&Conn> {
        self.servers.get(server.index())
    }
}
