//! The worlds that drive the model, and the command line. All input and output of the project is in this crate.
//!
//! This crate never states a rule of the harness: rules live in `windtunnel-model`, and the gate that is explored here
//! is the gate that `gate explain` prints and that a real run obeys.

pub mod cli;
pub mod explore;
pub mod files;
pub mod gate;
pub mod hook_bench;
pub mod lab;
pub mod mcp_client;
pub mod mcp_lists;
pub mod mcp_probe;
pub mod mcp_server;
pub mod process;
pub mod scenario;
pub mod tokens;
pub mod transport;
pub mod world;
