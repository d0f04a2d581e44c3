//! Parameters of hooks: where the documents and the observed harness part (gate-and-hooks, section 14).

use super::agent_loop::{self, BadStdout};
use super::{doc, inferred, seen};
use crate::parameters;

/// Which handlers count as the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerIdentity {
    /// Every field is equal; the first definition runs.
    WholeHandler,
    /// Command, arguments and `if` are equal; the last definition runs, whatever its `onFailure`, `timeout` and
    /// `async` say.
    CommandArgsIf,
}

parameters! {
    /// Parameters of hooks.
    "hooks" HookParameters {
        /// what unparsable text on stdout at exit 0 counts as
        bad_stdout: BadStdout,
        /// whether valid JSON on stdout counts at exit codes other than 0 (a deny beside exit 2 always denies)
        json_at_other_exits: bool,
        /// which handlers count as the same one
        identity: HandlerIdentity,
        /// whether managed PreToolUse hooks also run before the input is validated, on the raw input
        managed_before_validation: bool,
        /// whether `onFailure: block` has no effect on Stop, SubagentStop, TaskCompleted and TeammateIdle
        stop_like_ignore_on_failure: bool,
        /// whether `onFailure` counts for mcp_tool handlers
        mcp_tool_on_failure: bool,
        /// whether `onFailure` counts for prompt and agent handlers
        prompt_on_failure: bool,
        /// whether PostToolUseFailure ignores `continue: false`
        post_failure_ignores_continue_false: bool,
        /// whether `continue: false` is lost when the call is then refused as an unanswered ask
        unanswered_ask_loses_continue_false: bool,
        /// whether an `if` with more than a command name also fires on commands with substitutions or variables
        if_fires_on_unreadable: bool,
        /// whether defer is ignored when a turn has several calls
        defer_needs_single_call: bool,
    }
}

/// The documents.
pub const DOCUMENTED: HookParameters = HookParameters {
    bad_stdout: agent_loop::DOCUMENTED.bad_stdout,
    json_at_other_exits: doc(true, "000, definition 4.2: valid JSON at another exit code decides"),
    identity: doc(HandlerIdentity::WholeHandler, "hooks reference: identical handlers run once"),
    managed_before_validation: doc(false, "hooks reference: validation errors precede hooks"),
    stop_like_ignore_on_failure: inferred(false, "changelog 2.1.295: onFailure turns a failure into a block"),
    mcp_tool_on_failure: doc(false, "changelog 2.1.295: onFailure for command and http handlers"),
    prompt_on_failure: doc(false, "changelog 2.1.295: onFailure for command and http handlers"),
    post_failure_ignores_continue_false: doc(
        false,
        "hooks reference: continue false applies even when the call fails",
    ),
    unanswered_ask_loses_continue_false: inferred(false, "the documents name no exception"),
    if_fires_on_unreadable: doc(true, "hooks reference: `if` fails open on commands that cannot be parsed"),
    defer_needs_single_call: doc(true, "SDK documentation: defer is ignored when a turn has several calls"),
};

/// Seed 003's teaching harness: callbacks only, so what it does not know is as documented.
pub const TEACHING: HookParameters =
    HookParameters { bad_stdout: agent_loop::TEACHING.bad_stdout, ..DOCUMENTED };

/// Claude Code 2.1.332 as observed.
pub const CLAUDE_CODE: HookParameters = HookParameters {
    bad_stdout: agent_loop::CLAUDE_CODE.bad_stdout,
    json_at_other_exits: seen(true, "gate-and-hooks section 4"),
    identity: seen(HandlerIdentity::CommandArgsIf, "gate-and-hooks section 3.5"),
    managed_before_validation: seen(true, "gate-and-hooks section 2, step 3; section 14, 13"),
    stop_like_ignore_on_failure: seen(true, "gate-and-hooks section 4; TeammateIdle by report only"),
    mcp_tool_on_failure: seen(true, "gate-and-hooks section 14, 22"),
    prompt_on_failure: seen(false, "gate-and-hooks section 14, 22"),
    post_failure_ignores_continue_false: seen(true, "gate-and-hooks section 14, 17"),
    unanswered_ask_loses_continue_false: seen(true, "gate-and-hooks section 5, cont-false-pre-norule"),
    if_fires_on_unreadable: seen(true, "gate-and-hooks section 3.4"),
    defer_needs_single_call: seen(false, "gate-and-hooks section 14, 11"),
};
