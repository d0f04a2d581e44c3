//! Sources of configuration: which files count, how their keys merge, and what waits for trust.

pub mod lint;
pub mod merge;
pub mod named;
pub mod settings;
pub mod skills;
