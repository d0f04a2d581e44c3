//! The teaching harness against the full one (003): what it leaves out, shown as counterexamples.

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[];
