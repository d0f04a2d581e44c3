//! Hooks: programs and questions of the user that the harness runs at fixed moments, and whose end can decide what the
//! harness does next.
//!
//! Read in this order: [`event`] (when), [`matcher`] and [`handler`] (what is registered), [`select`] (which run),
//! [`outcome`] (what an end means), [`combine`] (what several say together). Nothing here runs a program: the world
//! does, and hands back a [`HandlerEnd`].

pub mod combine;
pub mod event;
pub mod handler;
pub mod matcher;
pub mod outcome;
pub mod output;
pub mod payload;
pub mod select;

pub use combine::{Combined, HookDecision, combine, combine_verdicts};
pub use event::{BlockEffect, Event};
pub use handler::{Handler, HandlerKind, HooksConfig, OnFailure};
pub use matcher::Matcher;
pub use outcome::{EndStatus, HandlerEnd, HookVerdict, PermissionAnswer, interpret};
pub use select::{HookSource, HookTable, Selected};

#[cfg(test)]
mod tests;
