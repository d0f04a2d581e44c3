//! Parameters of the context: tool loading, text caps, skills listing, re-attachment after compaction, prompt cache.

use super::{doc, inferred, seen};
use crate::parameters;

/// Where a deferred tool's definition stands before the model has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeferredWire {
    /// It is not sent; `tools` holds one placeholder with `defer_loading`.
    NotSent,
    /// It is sent with every request, marked `defer_loading: true`; the API leaves it out of the prompt.
    SentWithFlag,
}

/// What becomes of a call of a deferred tool that no search has loaded: one rule for every run (field report F94).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UnloadedCall {
    /// It is executed as if it were loaded.
    Runs,
    /// It fails; the assistant sees a text that tells it to search first.
    Refused,
}

impl UnloadedCall {
    /// In words, after "a call of a tool that was not loaded".
    pub fn words(self) -> &'static str {
        match self {
            Self::Runs => "is executed all the same",
            Self::Refused => "fails, and the assistant is told to search first",
        }
    }
}

/// Which descriptions go when the skills listing is over its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingOverflow {
    /// Those of the least used skills first.
    LeastUsedFirst,
    /// Descriptions are given back in list order, all or nothing; one that does not fit is skipped and the next tried.
    GreedyInListOrder,
}

/// What happens to older skills when one does not fit the re-attachment budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReattachOverflow {
    /// That skill is cut to the room that is left, older ones are dropped.
    CutThenStop,
    /// It is skipped; older, smaller ones may still get in.
    Skip,
}

parameters! {
    /// Parameters of the context.
    "context" ContextParameters {
        /// whether tool definitions may be deferred at all
        deferral_exists: bool,
        /// whether an unset ENABLE_TOOL_SEARCH defers on an endpoint that is not the vendor's own
        unset_defers_on_foreign_host: bool,
        /// the oldest model generation (major, minor) that defers
        deferral_from_generation: (u8, u8),
        /// tokens that are subtracted from the count endpoint's answer before it is compared with the threshold
        threshold_count_offset: u64,
        /// the percentage of the window that `auto` without a number means
        threshold_default_percent: u64,
        /// tenths of a character per token where the threshold is estimated without a count endpoint
        threshold_tenths_of_chars_per_token: u64,
        /// whether names are announced as deferred although the threshold put the definitions upfront
        names_announced_below_threshold: bool,
        /// where a deferred definition stands before it is found
        deferred_wire: DeferredWire,
        /// UTF-16 units after which a tool description or server instructions are cut
        mcp_text_cap: usize,
        /// what is put after a cut tool description or server instructions
        mcp_text_suffix: &'static str,
        /// results of a tool search that are returned when the call names no number
        search_results_default: usize,
        /// characters of a skill's description and when_to_use that are listed
        skill_description_cap: usize,
        /// hundredths of a percent of the window that the skills listing may take
        listing_budget_basis_points: u64,
        /// characters per token of the listing budget for models of generation 4
        listing_chars_per_token_4: u64,
        /// characters per token of the listing budget for models of generation 5 and unknown ones
        listing_chars_per_token_5: u64,
        /// which descriptions go when the listing is over its budget
        listing_overflow: ListingOverflow,
        /// tokens that one invoked skill gets after compaction
        reattach_each_tokens: u64,
        /// tokens that all invoked skills get after compaction
        reattach_total_tokens: u64,
        /// characters per token of the re-attachment budget
        reattach_chars_per_token: u64,
        /// characters of one skill's budget that are kept free for the mark that it was cut
        reattach_mark_chars: usize,
        /// what happens to older skills when one does not fit
        reattach_overflow: ReattachOverflow,
        /// what becomes of a call of a deferred tool that no search has loaded
        unloaded_call: UnloadedCall,
        /// tokens below the window at which compaction starts by itself, where that is known
        auto_compact_margin_tokens: Option<u64>,
        /// breakpoints on the system layer
        system_breakpoints: usize,
        /// breakpoints on the messages, moving with the last block
        message_breakpoints: usize,
        /// blocks that a cache read looks at, the breakpoint's own counted
        cache_look_back_blocks: usize,
        /// whether a turn's additional information is appended as a message, never edited into an earlier one
        append_only: bool,
    }
}

/// Seed 003's teaching harness: it knows neither deferral nor skills nor a cache.
pub const TEACHING: ContextParameters = ContextParameters {
    deferral_exists: doc(false, "003: every tool's definition is passed with every request"),
    unset_defers_on_foreign_host: inferred(false, "003 knows no deferral"),
    deferral_from_generation: inferred((u8::MAX, 0), "003 knows no deferral"),
    threshold_count_offset: inferred(0, "003 knows no deferral"),
    threshold_default_percent: inferred(10, "003 knows no deferral"),
    threshold_tenths_of_chars_per_token: inferred(40, "003 knows no deferral"),
    names_announced_below_threshold: inferred(false, "003 knows no deferral"),
    deferred_wire: inferred(DeferredWire::NotSent, "003 knows no deferral"),
    mcp_text_cap: inferred(usize::MAX, "003 cuts nothing"),
    mcp_text_suffix: inferred("", "003 cuts nothing"),
    search_results_default: inferred(0, "003 knows no search"),
    skill_description_cap: inferred(usize::MAX, "003 knows no skills"),
    listing_budget_basis_points: inferred(10_000, "003 knows no skills"),
    listing_chars_per_token_4: inferred(4, "003 knows no skills"),
    listing_chars_per_token_5: inferred(4, "003 knows no skills"),
    listing_overflow: inferred(ListingOverflow::GreedyInListOrder, "003 knows no skills"),
    reattach_each_tokens: inferred(0, "003 knows no compaction"),
    reattach_total_tokens: inferred(0, "003 knows no compaction"),
    reattach_chars_per_token: inferred(4, "003 knows no compaction"),
    reattach_mark_chars: inferred(0, "003 knows no compaction"),
    reattach_overflow: inferred(ReattachOverflow::Skip, "003 knows no compaction"),
    unloaded_call: inferred(UnloadedCall::Runs, "003 knows no deferral: every definition is loaded"),
    auto_compact_margin_tokens: inferred(None, "003 knows no compaction"),
    system_breakpoints: inferred(0, "003 marks no breakpoints"),
    message_breakpoints: inferred(0, "003 marks no breakpoints"),
    cache_look_back_blocks: doc(20, "Messages API documentation, prompt caching"),
    append_only: doc(true, "003, agent_loop: messages are appended"),
};

/// The documents: seed 000 first.
pub const DOCUMENTED: ContextParameters = ContextParameters {
    deferral_exists: doc(true, "000, section 3.8: deferred loading is the default"),
    unset_defers_on_foreign_host: doc(false, "MCP documentation: falls back to upfront on other hosts"),
    deferral_from_generation: doc((4, 5), "tool search documentation: from Sonnet 4.5 and Opus 4.5"),
    threshold_count_offset: inferred(0, "the documents name only the percentage"),
    threshold_default_percent: doc(10, "000, section 3.8: a share of the window, 10 % by default"),
    threshold_tenths_of_chars_per_token: inferred(40, "the documents do not say; four characters a token"),
    names_announced_below_threshold: doc(false, "000, section 3.8: below the share, upfront"),
    deferred_wire: doc(
        DeferredWire::SentWithFlag,
        "tool search documentation: defer_loading on each definition",
    ),
    mcp_text_cap: doc(2_048, "000, section 3.8: cut at 2,048 characters"),
    mcp_text_suffix: inferred("", "the documents name no mark"),
    search_results_default: doc(5, "tool search documentation: 3 to 5 results"),
    skill_description_cap: doc(1_536, "000, section 5: description and when_to_use together"),
    listing_budget_basis_points: doc(100, "000, section 5: 1 % of the window"),
    listing_chars_per_token_4: inferred(4, "a budget in characters; the documents name no ratio"),
    listing_chars_per_token_5: inferred(4, "a budget in characters; the documents name no ratio"),
    listing_overflow: doc(ListingOverflow::LeastUsedFirst, "000, section 5: the least invoked lose first"),
    reattach_each_tokens: doc(5_000, "000, proposition 5.2"),
    reattach_total_tokens: doc(25_000, "000, proposition 5.2"),
    reattach_chars_per_token: inferred(4, "the documents count in tokens"),
    reattach_mark_chars: inferred(0, "the documents name no mark"),
    reattach_overflow: doc(
        ReattachOverflow::CutThenStop,
        "000, section 5: filled newest first, the oldest are dropped",
    ),
    unloaded_call: doc(
        UnloadedCall::Refused,
        "context-cost 9: it fails, with a text that the assistant sees",
    ),
    auto_compact_margin_tokens: doc(None, "the documents give no number"),
    system_breakpoints: inferred(2, "as observed; the documents do not say"),
    message_breakpoints: inferred(1, "as observed; the documents do not say"),
    cache_look_back_blocks: doc(20, "Messages API documentation, prompt caching"),
    append_only: doc(true, "000, proposition 3.8 part 4 and its source on prompt caching"),
};

/// Claude Code 2.1.332 as observed.
pub const CLAUDE_CODE: ContextParameters = ContextParameters {
    deferral_exists: seen(true, "ts-unset-5tools"),
    unset_defers_on_foreign_host: seen(true, "ts-gateway-host-unset"),
    deferral_from_generation: seen((4, 0), "ts-model-claude3-unset, ts-model-sonnet4-unset"),
    threshold_count_offset: seen(500, "ts-auto-nan-below, ts-auto-nan-at, ts-auto5-below, ts-auto5-at"),
    threshold_default_percent: seen(10, "ts-auto-nan-at"),
    threshold_tenths_of_chars_per_token: seen(25, "context-cost 2.1: ts-auto-count-fails-fallback"),
    names_announced_below_threshold: seen(true, "ts-auto5-below"),
    deferred_wire: seen(DeferredWire::NotSent, "ts-load-three-steps"),
    mcp_text_cap: seen(4_096, "trunc-4096, trunc-4097"),
    mcp_text_suffix: seen("… [truncated]", "trunc-4097"),
    search_results_default: seen(5, "tsq-server"),
    skill_description_cap: seen(1_536, "context-cost 3.1"),
    listing_budget_basis_points: seen(100, "sk-budget-fine-sonnet45-200k"),
    listing_chars_per_token_4: seen(4, "sk-budget-fine-sonnet45-200k, sk-budget-fine-sonnet45-1m"),
    listing_chars_per_token_5: seen(3, "sk-budget-fine-haiku55, sk-budget-fine-opus55-frac0.005"),
    listing_overflow: seen(ListingOverflow::GreedyInListOrder, "sk-greedy-700, sk-greedy-900, sk-usage-s002"),
    reattach_each_tokens: seen(5_000, "compact-skill-1x45000"),
    reattach_total_tokens: seen(25_000, "compact-skill-7x24000"),
    reattach_chars_per_token: seen(4, "compact-skill-7x24000, compact-skill-7x24000-sonnet45"),
    reattach_mark_chars: seen(100, "compact-skill-1x45000: 19,900 characters kept of 20,000"),
    reattach_overflow: seen(ReattachOverflow::Skip, "compact-skill-mixed, compact-skill-skip-or-stop"),
    unloaded_call: seen(UnloadedCall::Runs, "context-cost 9; field report F94"),
    auto_compact_margin_tokens: seen(
        Some(23_000),
        "context-cost 6: between 976,991 and 977,002 of 1,000,000",
    ),
    system_breakpoints: seen(2, "cc-loop-sonnet45, cc-loop-opus-firstparty"),
    message_breakpoints: seen(1, "cc-loop-sonnet45, cc-many-parallel-results"),
    cache_look_back_blocks: doc(20, "Messages API documentation, prompt caching"),
    append_only: seen(true, "ts-load-three-steps, lc-deferred-opus"),
};
