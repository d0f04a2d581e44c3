//! The sandbox (sources-and-sandbox, sections 3 and 4).

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[];
