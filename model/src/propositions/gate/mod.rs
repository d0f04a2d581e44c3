//! The laws of the gate.

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[];
