//! Pages and pictures: what a person reads, made from traces, verdicts and state graphs.
//!
//! This crate never opens a file, never runs anything and never judges: it shows what `windtunnel-model` computed. All
//! that comes from users or servers is escaped, all output is a function of its input.

pub mod html;
pub mod junit;
pub mod markdown;
pub mod plot;
pub mod run_report;
pub mod sequence;
pub mod state_graph;

#[cfg(test)]
mod examples;
mod words;
