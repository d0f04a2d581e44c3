//! Parameters of settings files: what a mistake in one costs, and what waits for trust.

use super::{doc, inferred, seen};
use crate::parameters;

parameters! {
    /// Parameters of settings files.
    "settings" SettingsParameters {
        /// whether one part of the wrong shape makes a user, project, local or `--settings` file count for nothing
        wrong_shape_drops_file: bool,
        /// whether one part of the wrong shape drops only that part in managed settings
        managed_drops_part_only: bool,
        /// whether comments and trailing commas make the file count for nothing
        comments_drop_file: bool,
        /// whether the project's allow rules and additional directories wait for trust
        project_allow_needs_trust: bool,
        /// whether `bypassPermissions` and `auto` as defaultMode of project or local files are ignored
        project_cannot_widen_mode: bool,
    }
}

/// The documents.
pub const DOCUMENTED: SettingsParameters = SettingsParameters {
    wrong_shape_drops_file: inferred(false, "Configure permissions: a deny in any scope cannot be lost"),
    managed_drops_part_only: inferred(true, "as for the other levels"),
    comments_drop_file: inferred(true, "settings files are JSON"),
    project_allow_needs_trust: doc(true, "settings reference: allow rules of the project wait for trust"),
    project_cannot_widen_mode: doc(true, "settings reference: not from project files"),
};

/// Seed 003's teaching harness has no settings layer.
pub const TEACHING: SettingsParameters = DOCUMENTED;

/// Claude Code 2.1.332 as observed.
pub const CLAUDE_CODE: SettingsParameters = SettingsParameters {
    wrong_shape_drops_file: seen(true, "gate-and-hooks section 3.1, lvl-badhooks-drops-deny"),
    managed_drops_part_only: seen(true, "gate-and-hooks section 3.1, lvl-badhooks-managed"),
    comments_drop_file: seen(true, "gate-and-hooks section 3.1, lvl-invalid-json-comment"),
    project_allow_needs_trust: seen(true, "gate-and-hooks section 7.1"),
    project_cannot_widen_mode: seen(true, "gate-and-hooks section 7.1, mode-defaultMode-bypass-project"),
};
