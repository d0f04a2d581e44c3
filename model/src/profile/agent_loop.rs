//! Parameters of the agent loop: order of the pipeline, turns, results, Stop rule, death of a server.

use super::{Parameter, doc, inferred, seen};
use crate::parameters;

/// One stage of what happens to a `tool_use`. The order is data of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The tool's name is looked up among the tools of the session.
    FindTool,
    /// The input is checked against the tool's JSON Schema.
    ValidateInput,
    /// The PreToolUse hooks run.
    PreToolUse,
    /// The permission rules and the mode decide; a person is asked where they say so.
    Permission,
}

/// Which calls of one turn run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// One after the other, in order.
    Sequential,
    /// Consecutive read-only calls run together; any other call runs alone.
    ReadOnlyTogether,
    /// All calls of a turn run together.
    AllTogether,
}

/// In which order the results of a turn stand in the next user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOrder {
    /// In the order of the calls.
    CallOrder,
    /// In the order in which the calls ended.
    CompletionOrder,
}

/// What a finite turn limit `T` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnLimitRule {
    /// Turns with calls are counted: after the T-th the model is called once more, and if that reply calls tools again
    /// the run ends; at most T + 1 model calls (000, 7.1). Zero allows the first reply only.
    ToolTurns,
    /// Model calls are counted: the T-th turn's tools run and the run ends without a closing call; at most T model
    /// calls. Zero means no limit.
    ModelCalls,
    /// There is no turn limit.
    None,
}

/// What a Stop hook's block does when hooks have blocked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRule {
    /// Stop hooks fire every time; nothing ends a hook that always blocks (003's teaching harness).
    NoFlagNoCap,
    /// After one block the flag silences Stop hooks for the rest of the run (003's reading of the full harness).
    FlagSilences,
    /// Stop hooks fire again with `stop_hook_active`; after `cap` consecutive blocks the next one is overridden. A turn
    /// with calls in between resets the count where `tool_call_resets` says so.
    FlagAndCap {
        /// How many consecutive blocks are obeyed.
        cap: u8,
        /// Whether a turn with calls resets the count.
        tool_call_resets: bool,
    },
}

/// How the outcomes of several PreToolUse hooks combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookCombination {
    /// All run in parallel and all are awaited: deny > defer > ask > allow.
    ParallelLattice,
    /// In the order of registration, one after the other; the first that answers wins and stops the rest.
    FirstAnswerWins,
}

/// What becomes of a server's tools when its process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerDeath {
    /// The server is marked failed and its tools leave the pool.
    ToolsGone,
    /// The tools stay offered; the next call to one of them starts the server anew.
    RestartOnCall,
}

/// What unparsable text on stdout at exit 0 counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadStdout {
    /// A non-blocking error (000, definition 4.2).
    Failure,
    /// Plain text: success without a decision, except for text that begins with `{` and ends with `}`.
    PlainText,
}

parameters! {
    /// Parameters of the agent loop.
    "loop" LoopParameters {
        /// the order of the stages that a `tool_use` goes through
        pipeline: [Option<Stage>; 4],
        /// which calls of one turn run together
        concurrency: Concurrency,
        /// in which order the results of a turn stand
        result_order: ResultOrder,
        /// what a finite turn limit counts
        turn_limit: TurnLimitRule,
        /// what a Stop hook's block does when hooks have blocked before
        stop: StopRule,
        /// how PreToolUse hooks combine
        hook_combination: HookCombination,
        /// whether a hook's allow lifts a rule's deny or ask
        hook_allow_lifts_rules: bool,
        /// whether a hook's defer goes before a deny rule
        defer_beats_deny_rule: bool,
        /// whether a non-None answer of UserPromptSubmit or PostToolUse has any effect
        other_hooks_have_effect: bool,
        /// whether `continue: false` ends the run after the batch
        prevent_continuation: bool,
        /// what becomes of a server's tools when its process dies
        server_death: ServerDeath,
        /// what unparsable text on stdout at exit 0 counts as
        bad_stdout: BadStdout,
        /// whether the money limit is checked before the tools of a reply run
        budget_before_tools: bool,
    }
}

/// Seed 003's teaching harness.
pub const TEACHING: LoopParameters = LoopParameters {
    pipeline: doc(
        [Some(Stage::PreToolUse), Some(Stage::FindTool), None, None],
        "003, agent_loop: hook, then handler look-up; no schema check, no settings layer",
    ),
    concurrency: doc(Concurrency::Sequential, "003, agent_loop: a for loop over the blocks"),
    result_order: doc(ResultOrder::CallOrder, "003, agent_loop: results are appended in the loop"),
    turn_limit: doc(TurnLimitRule::None, "003, agent_loop: `while True`"),
    stop: doc(StopRule::NoFlagNoCap, "003: stopHookActive is left out on purpose"),
    hook_combination: doc(HookCombination::FirstAnswerWins, "003, trigger_hooks"),
    hook_allow_lifts_rules: doc(
        true,
        "003: the teaching harness has no settings layer that a hook could not pass",
    ),
    defer_beats_deny_rule: inferred(false, "003 knows no defer"),
    other_hooks_have_effect: doc(false, "003: answers of UserPromptSubmit and PostToolUse are unused"),
    prevent_continuation: doc(false, "003: the answer of PostToolUse is unused"),
    server_death: inferred(ServerDeath::ToolsGone, "003 knows no servers"),
    bad_stdout: inferred(BadStdout::Failure, "003 knows callbacks only"),
    budget_before_tools: inferred(true, "003 knows no money limit"),
};

/// The documents: seed 000 first.
pub const DOCUMENTED: LoopParameters = LoopParameters {
    pipeline: doc(
        [Some(Stage::FindTool), Some(Stage::ValidateInput), Some(Stage::PreToolUse), Some(Stage::Permission)],
        "004, section on the pipeline (M3); hooks reference: validation errors precede hooks",
    ),
    concurrency: doc(Concurrency::ReadOnlyTogether, "SDK documentation: read-only tools run together"),
    result_order: doc(
        ResultOrder::CallOrder,
        "Messages API documentation: results answer the calls of the turn (B7)",
    ),
    turn_limit: doc(TurnLimitRule::ToolTurns, "000, proposition 7.1"),
    stop: doc(
        StopRule::FlagAndCap { cap: 8, tool_call_resets: true },
        "decisions 10: hooks fire again with the flag set, a cap of consecutive blocks ends it",
    ),
    hook_combination: doc(HookCombination::ParallelLattice, "000, section 4.1"),
    hook_allow_lifts_rules: doc(false, "000, section 4.1"),
    defer_beats_deny_rule: doc(false, "000, hook_sim: final() looks at a rule's deny before a hook's defer"),
    other_hooks_have_effect: doc(true, "hooks reference: UserPromptSubmit blocks the prompt"),
    prevent_continuation: doc(true, "hooks reference: continue false; 003, hook_stopped_continuation"),
    server_death: doc(ServerDeath::ToolsGone, "MCP documentation: stdio servers are not reconnected"),
    bad_stdout: doc(BadStdout::Failure, "000, definition 4.2"),
    budget_before_tools: inferred(true, "as observed; the documents do not say"),
};

/// Claude Code 2.1.332 as observed.
pub const CLAUDE_CODE: LoopParameters = LoopParameters {
    pipeline: seen(
        [Some(Stage::FindTool), Some(Stage::ValidateInput), Some(Stage::PreToolUse), Some(Stage::Permission)],
        "gate-and-hooks section 2",
    ),
    concurrency: seen(Concurrency::ReadOnlyTogether, "gate-and-hooks section 12: partition [R R][W][R]"),
    result_order: seen(ResultOrder::CompletionOrder, "gate-and-hooks section 12"),
    turn_limit: seen(
        TurnLimitRule::ModelCalls,
        "gate-and-hooks section 12: exactly N model calls, 0 means no limit",
    ),
    stop: seen(StopRule::FlagAndCap { cap: 8, tool_call_resets: true }, "gate-and-hooks section 11"),
    hook_combination: seen(HookCombination::ParallelLattice, "gate-and-hooks section 5"),
    hook_allow_lifts_rules: seen(false, "gate-and-hooks section 6"),
    defer_beats_deny_rule: seen(true, "gate-and-hooks section 6, last rows; section 14, 5"),
    other_hooks_have_effect: seen(true, "gate-and-hooks section 10"),
    prevent_continuation: seen(true, "gate-and-hooks section 5"),
    server_death: seen(
        ServerDeath::RestartOnCall,
        "mcp 3.6: nothing until the next call, that call respawns",
    ),
    bad_stdout: seen(BadStdout::PlainText, "gate-and-hooks section 4"),
    budget_before_tools: seen(true, "gate-and-hooks section 12"),
};

/// The stages in force, in order.
pub fn stages(pipeline: &Parameter<[Option<Stage>; 4]>) -> impl Iterator<Item = Stage> + use<> {
    pipeline.value.into_iter().flatten()
}
