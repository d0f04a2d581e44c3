//! Beyond the documents: found by thinking.

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[];
