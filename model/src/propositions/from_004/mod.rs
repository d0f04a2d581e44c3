//! MCP inside the harness (004).

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[];
