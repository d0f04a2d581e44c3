//! The harness: the agent loop as a state machine that composes hooks, gate and MCP client.
//!
//! ```text
//! user prompt → UserPromptSubmit hooks → model call → for each tool_use: the profile's pipeline
//! (find the tool, check its input, PreToolUse hooks, permission) → execution → PostToolUse or PostToolUseFailure
//! hooks → tool_result → next model call → Stop hooks → end
//! ```
//!
//! [`step`] is total: every input in every state gives outputs or a typed [`Rejected`] and leaves the state as it was.
//! It sees ids only; texts live in the [`Journal`](crate::journal::Journal).

mod call;
mod config;
mod connection;
mod gate_decision;
mod io;
mod state;
mod step;

pub use call::{mask as hook_mask, restarts as restarts_servers};
pub use config::{
    CallInfo, CallRef, Config, Hook, HookList, HookRef, Limits, LoopEvent, ReplyInfo, ReplyRef, RuleAnswer,
    Server, ServerRef, Tool, ToolRef,
};
pub use gate_decision::{Ruling, rule};
pub use io::{
    DecidedBy, Input, MAX_OUTPUTS, McpBody, McpIn, McpOut, Output, Outputs, Rejected, Signal, Site, ToolEnd,
};
pub use state::{
    CallEnd, Conn, ConnPhase, EndReason, MAX_CALLS, MAX_HOOKS, MAX_SERVERS, Phase, Progress, Slot, State,
};
pub use step::{firing_hooks, step, step_in_place};
