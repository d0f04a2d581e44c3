//! Verdicts: the words that every check, scenario and exploration ends with.

use serde::{Deserialize, Serialize};

/// What a check came to. Nothing is `Holds` that was only sampled or cut off by a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every case up to the stated bounds was evaluated and none refutes.
    Holds,
    /// A counterexample was found.
    Refuted,
    /// A bound was hit before the search was complete.
    Bounded,
    /// It could not be judged; the reason says why.
    Unknown,
    /// It was not run; the reason says why.
    Skipped,
}

impl Verdict {
    /// The word in reports and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Refuted => "refuted",
            Self::Bounded => "bounded",
            Self::Unknown => "unknown",
            Self::Skipped => "skipped",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}
