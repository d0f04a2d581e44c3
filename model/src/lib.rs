//! The executable model of a coding-agent harness: the program around an LLM that calls the model, asks permission,
//! runs hooks, tools and MCP servers.
//!
//! This crate never opens a file, starts a process, reads a clock, the environment or a random number, spawns a
//! thread, or prints. Time, file facts and every answer from outside are inputs; what the harness wants done is an
//! output. That is what lets one set of rules be explored exhaustively, simulated at random, run against real
//! programs, and read by a student.
//!
//! This crate never panics on any input: `unwrap`, `expect`, `panic!` and unchecked indexing are denied by lint, and
//! every total function returns a typed error instead.
//!
//! One module a mechanism, each readable alone. Start with [`agent_loop`], which composes the others.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

pub mod agent_loop;
pub mod context;
pub mod finding;
pub mod gate;
pub mod hooks;
pub mod invariants;
pub mod mcp;
pub mod message;
pub mod mutant;
pub mod place;
pub mod profile;
pub mod propositions;
pub mod session;
pub mod sources;
pub mod state_graph;
pub mod tools;
pub mod trace;
pub mod transcript;
pub mod verdict;
