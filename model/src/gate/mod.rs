//! The permission gate: does this call run, and who says so.
//!
//! Read in this order: [`mode`], [`rule`] (what is written), [`rules`] (compiled), [`paths`], [`shell`] and [`bash`]
//! (what a call touches), [`workspace`] (where), [`permission`] (rules, mode and facts), [`decision`] (composed with hooks: section 13 of
//! gate-and-hooks). Pure functions: facts about files come in through [`Facts`].

pub mod bash;
mod command;
pub mod condition;
pub mod decision;
pub mod diff;
pub mod examples;
pub mod explain;
pub mod facts;
pub mod fuzzing;
pub mod mode;
pub mod paths;
pub mod permission;
pub mod pipeline;
pub mod readonly;
pub mod rule;
pub mod rules;
pub mod shell;
pub mod tools;
pub mod web;
pub mod workspace;

#[cfg(test)]
mod laws;

pub use command::directory_after;
pub use decision::{Gated, gate, resolve};
pub use facts::{Facts, MemoryFiles, NoFiles};
pub use mode::Mode;
pub use permission::{Answer, AskKind, Permission, Policy, permission};
pub use pipeline::{Answers, Call, Judgement, Outcome, Session};
pub use rule::Behaviour;
pub use workspace::Workspace;
