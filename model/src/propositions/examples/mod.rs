//! Examples and exercises: the figures of the documents, to the digit.

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[];
