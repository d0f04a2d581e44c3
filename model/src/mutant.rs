//! Wrong rules, on purpose. Each check of this project has a mutant that it catches; a mutant changes a rule, never a
//! trace (decisions 12). Reachable only from tests and from `check --mutants`.

/// A plausible wrong rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// A call refused by a rule gets no `tool_result`.
    DropRefusal,
    /// A call that got no answer (closed connection, deadline) gets no `tool_result`.
    DropNoAnswer,
    /// A JSON-RPC error is returned twice.
    ReturnTwice,
    /// Built-in read-only tools run without their PreToolUse hooks.
    SkipHooks,
    /// The first PreToolUse hook is run twice.
    FireTwice,
    /// A hook's deny is read as no decision.
    IgnoreBlock,
    /// `onFailure: block` is ignored.
    IgnoreFailDirection,
    /// The permission stage is skipped.
    SkipPermission,
    /// A hook's allow lifts a deny or ask rule.
    AllowLiftsRules,
    /// A person's no is read as yes.
    IgnoreRefusal,
    /// Every request of a connection carries the id 1.
    ReuseRequestId,
    /// A response without a matching request ends the oldest running call.
    AcceptUnaskedAnswer,
    /// The turn limit is checked one turn late.
    TurnLimitLate,
    /// A tool whose server is gone is called all the same.
    CallGoneTool,
    /// A Stop hook's block after the cap is obeyed.
    IgnoreStopCap,
    /// After the end, the model is called once more.
    CallAfterEnd,
    /// The ledger leaves out tool results.
    LedgerSkipsResults,
    /// The results of a turn are built from the calls in reverse, ids swapped.
    SwapResultIds,
    /// Theta is undefined on the ends of these classes (3.7): a bit a class, in the order of the proposition. Not among
    /// [`Self::ALL`]: it is a family, and the check of 3.7 goes through all of it.
    DropEnds(u8),
}

impl Mutant {
    /// All, in the order of declaration.
    pub const ALL: [Self; 18] = [
        Self::DropRefusal,
        Self::DropNoAnswer,
        Self::ReturnTwice,
        Self::SkipHooks,
        Self::FireTwice,
        Self::IgnoreBlock,
        Self::IgnoreFailDirection,
        Self::SkipPermission,
        Self::AllowLiftsRules,
        Self::IgnoreRefusal,
        Self::ReuseRequestId,
        Self::AcceptUnaskedAnswer,
        Self::TurnLimitLate,
        Self::CallGoneTool,
        Self::IgnoreStopCap,
        Self::CallAfterEnd,
        Self::LedgerSkipsResults,
        Self::SwapResultIds,
    ];

    /// The name in reports, in kebab case.
    pub fn word(self) -> String {
        let mut word = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !word.is_empty() {
                word.push('-');
            }
            word.push(c.to_ascii_lowercase());
        }
        word
    }
}
