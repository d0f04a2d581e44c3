//! Parameters of the permission gate: where the documents and the observed harness part (gate-and-hooks, section 14).

use super::{agent_loop, doc, inferred, seen};
use crate::parameters;

parameters! {
    /// Parameters of the permission gate.
    "gate" GateParameters {
        /// whether a bare `Edit` rule also governs Write and redirects
        bare_edit_covers_writes: bool,
        /// whether `Tool(*)` means the same as `Tool` for file tools
        star_equals_bare: bool,
        /// whether path ask rules apply to recognised Bash commands
        path_ask_covers_bash: bool,
        /// whether `Tool(parameter:value)` rules apply to MCP tools
        parameter_rules_cover_mcp: bool,
        /// whether path deny rules of file tools are looked at before the PreToolUse hooks
        path_deny_before_hooks: bool,
        /// whether a hook's defer goes before a deny rule
        defer_beats_deny: bool,
        /// whether a hook's allow lifts the question about protected paths and critical removals
        hook_allow_lifts_safety: bool,
        /// whether a hook's allow lets writes run in plan mode
        hook_allow_lifts_plan: bool,
        /// whether a Bash allow rule runs a command in plan mode
        bash_rule_runs_in_plan: bool,
        /// whether path rules ignore the case of letters
        paths_ignore_case: bool,
        /// whether an ask rule `Agent(type)` or `Skill(name)` is enforced
        ask_covers_agent_and_skill_names: bool,
        /// characters of a Bash command beyond which only a bare `Bash` rule or an exact rule lets it run
        readable_characters: usize,
        /// refused classifier checks in one run after which it is aborted
        classifier_refusals: u8,
    }
}

/// The documents.
pub const DOCUMENTED: GateParameters = GateParameters {
    bare_edit_covers_writes: doc(
        true,
        "Configure permissions: Edit rules apply to all tools that edit files",
    ),
    star_equals_bare: doc(true, "Configure permissions: `Tool(*)` is equivalent to `Tool`"),
    path_ask_covers_bash: doc(true, "Configure permissions: path rules apply to recognised Bash commands"),
    parameter_rules_cover_mcp: doc(true, "Configure permissions: `Tool(param:value)` on any tool"),
    path_deny_before_hooks: doc(false, "hooks reference: deny rules are evaluated after PreToolUse hooks"),
    defer_beats_deny: agent_loop::DOCUMENTED.defer_beats_deny_rule,
    hook_allow_lifts_safety: inferred(true, "000: a hook's allow yields allow where no rule denies or asks"),
    hook_allow_lifts_plan: inferred(true, "000: a hook's allow yields allow where no rule denies or asks"),
    bash_rule_runs_in_plan: doc(false, "SDK documentation: plan mode routes shell writes to approval"),
    paths_ignore_case: inferred(false, "gitignore: case-sensitive unless configured"),
    ask_covers_agent_and_skill_names: inferred(
        true,
        "Configure permissions lists these rules without exception",
    ),
    readable_characters: inferred(10_000, "as observed; the documents do not say"),
    classifier_refusals: inferred(10, "as observed; the documents do not say"),
};

/// Seed 003's teaching harness: it has no settings layer, so what it does not know is as documented.
pub const TEACHING: GateParameters =
    GateParameters { defer_beats_deny: agent_loop::TEACHING.defer_beats_deny_rule, ..DOCUMENTED };

/// Claude Code 2.1.332 as observed.
pub const CLAUDE_CODE: GateParameters = GateParameters {
    bare_edit_covers_writes: seen(false, "gate-and-hooks section 7.3; section 14, 14"),
    star_equals_bare: seen(false, "gate-and-hooks section 7.3; section 14, 14"),
    path_ask_covers_bash: seen(false, "gate-and-hooks section 7.2; section 14, 15"),
    parameter_rules_cover_mcp: seen(false, "gate-and-hooks section 7.1; section 14, 19"),
    path_deny_before_hooks: seen(true, "gate-and-hooks section 2, step 5; section 14, 4"),
    defer_beats_deny: agent_loop::CLAUDE_CODE.defer_beats_deny_rule,
    hook_allow_lifts_safety: seen(false, "gate-and-hooks section 6; section 14, 6"),
    hook_allow_lifts_plan: seen(false, "gate-and-hooks section 6; section 14, 6"),
    bash_rule_runs_in_plan: seen(true, "gate-and-hooks section 8; section 14, 18"),
    paths_ignore_case: seen(true, "gate-and-hooks section 7.3"),
    ask_covers_agent_and_skill_names: seen(false, "gate-and-hooks section 7.4"),
    readable_characters: seen(10_000, "gate-and-hooks section 7.2"),
    classifier_refusals: seen(10, "gate-and-hooks section 8"),
};
