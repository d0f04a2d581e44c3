//! The laws of the gate.

mod bare_deny;

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[&bare_deny::PROPOSITION];
