//! Chapters that 000 only cites, restated because its propositions lean on them.

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[];
