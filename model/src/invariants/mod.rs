//! Invariants: named predicates over a step (state before, input, outputs, state after), evaluated at every step of
//! every driver alike. Their names are those of the field reports.
//!
//! Each invariant that needs a memory owns a part of the small `Copy` [`Monitor`] (decisions 5): clearing dead fields
//! of the state loses nothing that an invariant needs. Two invariants, `I-COST` and the message-level part of `I-PAIR`,
//! need payloads; they are judged by the [`Session`](crate::session::Session) at every request, and exploration, which
//! leaves payloads out, says that it does not judge `I-COST`.

mod calls;
mod ids;
mod run;

use crate::agent_loop::{Config, Input, MAX_CALLS, Outputs, State};
use serde::{Deserialize, Serialize};

/// An invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Invariant {
    /// Loop 3.4: when the model is called, each call of the turn before has exactly one result.
    #[serde(rename = "I-PAIR")]
    Pair,
    /// 3.7: every way a call can end yields exactly one result.
    #[serde(rename = "I-TOTAL")]
    Total,
    /// Loop 3.5: a refusal is returned as a result too.
    #[serde(rename = "I-REFUSAL")]
    Refusal,
    /// 4.5.1: before an executed call each registered, matching PreToolUse hook has run exactly once on that very call.
    #[serde(rename = "I-FIRE")]
    Fire,
    /// 4.3.1: a blocking outcome means the call is not executed.
    #[serde(rename = "I-BLOCK")]
    Block,
    /// 4.3.2: a failed hook with `onFailure: block` means the call is not executed.
    #[serde(rename = "I-FAILDIR")]
    FailDir,
    /// M3: nothing is executed, and no `tools/call` is sent, without a permission for that very call.
    #[serde(rename = "I-PERMIT")]
    Permit,
    /// A call matched by a deny rule is not executed, whatever hooks and mode say.
    #[serde(rename = "I-DENY")]
    Deny,
    /// A hook's allow lifts neither deny nor ask rules.
    #[serde(rename = "I-HOOKALLOW")]
    HookAllow,
    /// 3.3: open requests of one connection carry distinct ids, and only an answer to an open request has an effect.
    #[serde(rename = "I-ID")]
    Id,
    /// M4, M5: no call goes to a tool that is gone.
    #[serde(rename = "I-GONE")]
    Gone,
    /// 7.1: at most as many model calls as the profile's turn limit allows.
    #[serde(rename = "I-TURNS")]
    Turns,
    /// Forced continuations are bounded: at most eight Stop blocks in a row are obeyed.
    #[serde(rename = "I-STOP")]
    Stop,
    /// Nothing is asked for after the end.
    #[serde(rename = "I-END")]
    End,
    /// The ledger equals a recount of the serialised request.
    #[serde(rename = "I-COST")]
    Cost,
}

impl Invariant {
    /// All, in the order of declaration.
    pub const ALL: [Self; 15] = [
        Self::Pair,
        Self::Total,
        Self::Refusal,
        Self::Fire,
        Self::Block,
        Self::FailDir,
        Self::Permit,
        Self::Deny,
        Self::HookAllow,
        Self::Id,
        Self::Gone,
        Self::Turns,
        Self::Stop,
        Self::End,
        Self::Cost,
    ];

    /// The name in scenarios, reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "I-PAIR",
            Self::Total => "I-TOTAL",
            Self::Refusal => "I-REFUSAL",
            Self::Fire => "I-FIRE",
            Self::Block => "I-BLOCK",
            Self::FailDir => "I-FAILDIR",
            Self::Permit => "I-PERMIT",
            Self::Deny => "I-DENY",
            Self::HookAllow => "I-HOOKALLOW",
            Self::Id => "I-ID",
            Self::Gone => "I-GONE",
            Self::Turns => "I-TURNS",
            Self::Stop => "I-STOP",
            Self::End => "I-END",
            Self::Cost => "I-COST",
        }
    }

    /// The sentence it states.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Pair => {
                "when the model is called, each call of the turn before has exactly one result with its id"
            }
            Self::Total => "every way a call can end yields exactly one result",
            Self::Refusal => "a refusal is returned as a result",
            Self::Fire => {
                "before an executed call each matching PreToolUse hook has run exactly once on that very call"
            }
            Self::Block => "a call that a hook blocked is not executed",
            Self::FailDir => "a call whose hook failed under onFailure: block is not executed",
            Self::Permit => {
                "nothing is executed and no tools/call is sent without a permission for that very call"
            }
            Self::Deny => "a call matched by a deny rule is not executed",
            Self::HookAllow => "a hook's allow lifts neither deny nor ask rules",
            Self::Id => {
                "open requests carry distinct ids, and only an answer to an open request has an effect"
            }
            Self::Gone => "no call goes to a tool that is gone",
            Self::Turns => "the model is called at most as often as the turn limit allows",
            Self::Stop => "at most eight consecutive blocks by Stop hooks are obeyed",
            Self::End => "nothing is asked for after the end",
            Self::Cost => "the ledger equals a recount of the serialised request",
        }
    }

    /// Whether it can be judged without payloads, hence by exploration.
    pub fn is_control(self) -> bool {
        self != Self::Cost
    }
}

impl std::fmt::Display for Invariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Invariant {
    type Err = UnknownInvariantError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|invariant| invariant.name() == text)
            .ok_or_else(|| UnknownInvariantError { found: text.to_owned() })
    }
}

/// A name that is no invariant's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no invariant `{found}`: expected one of I-PAIR, I-TOTAL, I-REFUSAL, I-FIRE, I-BLOCK, I-FAILDIR, I-PERMIT, I-DENY, I-HOOKALLOW, I-ID, I-GONE, I-TURNS, I-STOP, I-END, I-COST"
)]
pub struct UnknownInvariantError {
    /// What was written.
    pub found: String,
}

/// A set of invariants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvariantSet(u16);

impl InvariantSet {
    /// No invariant.
    pub const NONE: Self = Self(0);

    /// All of them.
    pub fn all() -> Self {
        Invariant::ALL.into_iter().collect()
    }

    /// Whether `invariant` is in it.
    pub fn contains(self, invariant: Invariant) -> bool {
        self.0 & (1 << invariant as u16) != 0
    }

    /// Adds one.
    pub fn insert(&mut self, invariant: Invariant) {
        self.0 |= 1 << invariant as u16;
    }

    /// Those that are in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members, in the order of declaration.
    pub fn iter(self) -> impl Iterator<Item = Invariant> {
        Invariant::ALL.into_iter().filter(move |invariant| self.contains(*invariant))
    }
}

impl FromIterator<Invariant> for InvariantSet {
    fn from_iter<I: IntoIterator<Item = Invariant>>(iter: I) -> Self {
        let mut set = Self::NONE;
        for invariant in iter {
            set.insert(invariant);
        }
        set
    }
}

/// What the invariants remember between steps. Bits of a slot are zero while no call needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monitor {
    /// I-FIRE: PreToolUse hooks that have finished, for each slot.
    pub fired: [u8; MAX_CALLS],
    /// I-BLOCK: slots whose call was blocked by a hook.
    pub blocked: u8,
    /// I-FAILDIR: slots whose call had a failed hook with `onFailure: block`.
    pub fail_blocked: u8,
    /// I-HOOKALLOW: slots on which a hook said allow.
    pub hook_allowed: u8,
    /// I-PERMIT: slots that have a permission.
    pub permitted: u8,
    /// I-HOOKALLOW: slots that a person let through.
    pub user_allowed: u8,
    /// I-PAIR: slots that have a result.
    pub returned: u8,
    /// I-TURNS: model calls so far, as far as a limit counts them.
    pub model_calls: u8,
    /// I-STOP: consecutive blocks by Stop hooks that were obeyed, up to nine.
    pub stop_blocks: u8,
}

/// One step as an invariant sees it.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The state before.
    pub before: &'a State,
    /// The input.
    pub input: Input,
    /// The outputs.
    pub outputs: &'a Outputs,
    /// The state after.
    pub after: &'a State,
}

/// Judges one step: updates the monitor and gives the invariants that this step breaks. `enabled` selects; parts of the
/// monitor that no enabled invariant reads stay zero.
pub fn observe(enabled: InvariantSet, monitor: &mut Monitor, step: &Observation<'_>) -> InvariantSet {
    let mut broken = InvariantSet::NONE;
    calls::observe(enabled, monitor, step, &mut broken);
    ids::observe(enabled, step, &mut broken);
    run::observe(enabled, monitor, step, &mut broken);
    broken
}
