//! What goes into a step and what comes out: `Copy`, ids only. The labelled forms with payloads are in
//! [`trace`](crate::trace).

use super::config::{CallRef, HookRef, ReplyRef, ServerRef};
use super::state::{CallEnd, ConnPhase, EndReason};
use crate::hooks::HookDecision as Decision;
use arrayvec::ArrayVec;

/// What one finished hook says, as far as control needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal {
    /// Its decision (exit 2 is deny), before `onFailure` is applied.
    pub decision: Decision,
    /// Whether it failed: could not start, was killed, timed out, exited with another code, printed what cannot be
    /// read. The loop applies `onFailure`.
    pub failed: bool,
    /// Whether it said `continue: false`.
    pub halt: bool,
    /// The rewritten call (`updatedInput`), for PreToolUse.
    pub rewrite: Option<CallRef>,
}

/// Whose hook it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// The run's own event: UserPromptSubmit or Stop.
    Run,
    /// A call's event: PreToolUse, PostToolUse or PostToolUseFailure.
    Call(u8),
}

/// How an answer of a built-in tool reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolEnd {
    /// It succeeded.
    Result,
    /// It failed.
    Error,
}

/// What an MCP server says, as far as control needs it. A response names the id that it carries; one whose id is not
/// that of an open request is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpIn {
    /// A response.
    Response {
        /// The id it carries; `None` where that is no id of ours (a string, an id never used, null).
        id: Option<u16>,
        /// What it says.
        body: McpBody,
    },
    /// `notifications/tools/list_changed`, or its successor on a subscription.
    ListChanged,
    /// Any other notification, a request to the client, or a line that is no message: no effect on control.
    Other,
}

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpBody {
    /// A DiscoverResult; whether it lists a version that the client speaks.
    Discovered {
        /// Whether a common modern version exists.
        agreed: bool,
    },
    /// Error -32022; whether its list and the client's have a common modern version.
    UnsupportedVersion {
        /// Whether a common modern version exists.
        common: bool,
    },
    /// An InitializeResult; whether the client speaks its version.
    Initialized {
        /// Whether the client speaks it.
        accepted: bool,
    },
    /// A complete tool list: which of the server's lists.
    Tools {
        /// Index into the server's lists.
        list: u8,
    },
    /// A page of a tool list that is not the last one.
    MoreTools,
    /// A CallToolResult.
    Called {
        /// Its `isError`.
        is_error: bool,
    },
    /// Any other error.
    Error,
    /// A result that fits none of these: an error to whoever asked.
    Malformed,
}

/// What the world says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// The session starts.
    Start,
    /// The user submits a prompt.
    Prompt,
    /// The model replied.
    ModelReplied(ReplyRef),
    /// The model could not be reached.
    ModelFailed,
    /// A hook finished.
    HookFinished {
        /// Whose hook.
        site: Site,
        /// Which hook.
        hook: HookRef,
        /// What its end says.
        signal: Signal,
    },
    /// A person answered.
    PermissionAnswered {
        /// The slot.
        slot: u8,
        /// Yes or no.
        allow: bool,
    },
    /// A built-in tool finished.
    ToolFinished {
        /// The slot.
        slot: u8,
        /// How.
        end: ToolEnd,
    },
    /// An MCP server said something.
    Mcp {
        /// Which.
        server: ServerRef,
        /// What.
        message: McpIn,
    },
    /// An MCP connection closed, or could not be opened.
    McpClosed {
        /// Which.
        server: ServerRef,
    },
    /// The deadline of a running call passed.
    CallDeadline {
        /// The slot.
        slot: u8,
    },
    /// The deadline of a server's open handshake or list request passed.
    ServerDeadline {
        /// Which.
        server: ServerRef,
    },
    /// The user interrupts.
    Interrupt,
}

/// A request or notification to an MCP server, as far as control needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpOut {
    /// `server/discover`; `agreed` the second time, under a version that the server listed.
    Discover {
        /// The id.
        id: u16,
        /// Whether it is sent under an agreed version.
        agreed: bool,
    },
    /// `initialize`.
    Initialize {
        /// The id.
        id: u16,
    },
    /// `notifications/initialized`.
    Initialized,
    /// `tools/list`.
    ListTools {
        /// The id.
        id: u16,
    },
    /// `tools/call`.
    Call {
        /// The id.
        id: u16,
        /// The slot whose call it is.
        slot: u8,
    },
    /// `notifications/cancelled`.
    Cancelled {
        /// The id of the request that nobody waits for any more.
        id: u16,
    },
}

/// Who decided that a call runs or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The hooks.
    Hook,
    /// A rule or the mode.
    Rule,
    /// A person.
    User,
    /// Nobody could answer.
    Nobody,
    /// The profile has no permission stage.
    NoGate,
}

/// What the harness asks for, and what it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Output {
    /// Start the process of a server, or open its connection.
    Connect {
        /// Which.
        server: ServerRef,
    },
    /// Send a message to a server.
    SendMcp {
        /// Which.
        server: ServerRef,
        /// What.
        message: McpOut,
    },
    /// A connection is in another phase now.
    ServerChanged {
        /// Which.
        server: ServerRef,
        /// The phase.
        phase: ConnPhase,
    },
    /// Run a hook.
    RunHook {
        /// Whose.
        site: Site,
        /// Which.
        hook: HookRef,
    },
    /// Call the model with the messages so far.
    CallModel,
    /// Ask a person.
    AskUser {
        /// The slot.
        slot: u8,
    },
    /// The gate has decided on a call.
    Decided {
        /// The slot.
        slot: u8,
        /// Allow, ask, deny or defer.
        decision: Decision,
        /// Who decided.
        by: DecidedBy,
    },
    /// Run a built-in tool.
    RunTool {
        /// The slot.
        slot: u8,
        /// The call as it is executed.
        call: CallRef,
    },
    /// Nobody waits for this built-in tool any more.
    CancelTool {
        /// The slot.
        slot: u8,
    },
    /// The call has its `tool_result`.
    Returned {
        /// The slot.
        slot: u8,
        /// What the result stands for.
        end: CallEnd,
    },
    /// The turn's results go back: all calls have ended.
    TurnEnded,
    /// The run is over.
    Finish(EndReason),
}

/// The most outputs that one step can have: an interrupt cancels and returns every call, twice over.
pub const MAX_OUTPUTS: usize = 96;

/// What one step asks for, in order.
pub type Outputs = ArrayVec<Output, MAX_OUTPUTS>;

/// Why an input was not taken. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Rejected {
    /// The run is in a phase in which this input means nothing.
    #[error("nobody asked for this in the present phase")]
    Unexpected,
    /// There is no such slot, hook, server, reply or call.
    #[error("there is no such {0}")]
    Unknown(&'static str),
    /// The hook is not running.
    #[error("the hook is not running")]
    HookNotRunning,
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
    /// A capacity is exhausted.
    #[error("more than {limit} {what}: a capacity of the model's state")]
    Capacity {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: usize,
    },
}
