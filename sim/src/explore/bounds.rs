//! Bounds of a search, and what became of it when one was hit.

use std::time::Duration;

/// Limits of a search. One that is hit makes the result `bounded`, never `holds`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// States kept.
    pub max_states: Option<u64>,
    /// Bytes of the visited set.
    pub max_memory: Option<usize>,
    /// Steps from an initial state.
    pub max_depth: Option<u32>,
    /// Wall time. The one bound under which two runs may differ.
    pub timeout: Option<Duration>,
}

/// Which bound was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// `max_states`, or the 4 G states that a log can number.
    States,
    /// `max_memory`.
    Memory,
    /// `max_depth`.
    Depth,
    /// `timeout`.
    Timeout,
}

impl Bound {
    /// The flag on the command line that sets it.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::States => "--max-states",
            Self::Memory => "--max-memory",
            Self::Depth => "--max-depth",
            Self::Timeout => "--timeout",
        }
    }
}

/// A search that a bound ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stopped {
    /// The bound.
    pub by: Bound,
    /// How many states were reached whose steps were not taken.
    pub frontier: u64,
}

/// The clock and limits of one search.
pub(super) struct Watch {
    bounds: Bounds,
    deadline: Option<std::time::Instant>,
}

impl Watch {
    pub(super) fn start(bounds: Bounds) -> Self {
        let deadline = bounds.timeout.and_then(|limit| std::time::Instant::now().checked_add(limit));
        Self { bounds, deadline }
    }

    /// The bound that is hit with `states` kept in `memory` bytes.
    pub(super) fn hit(&self, states: u64, most: u64, memory: usize) -> Option<Bound> {
        if states >= self.bounds.max_states.unwrap_or(most).min(most) {
            return Some(Bound::States);
        }
        if self.bounds.max_memory.is_some_and(|limit| memory >= limit) {
            return Some(Bound::Memory);
        }
        self.deadline.is_some_and(|deadline| std::time::Instant::now() >= deadline).then_some(Bound::Timeout)
    }

    /// Whether states at `depth` are not expanded any more.
    pub(super) fn is_deepest(&self, depth: u32) -> bool {
        self.bounds.max_depth.is_some_and(|limit| depth >= limit)
    }
}
