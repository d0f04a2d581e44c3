//! The Model Context Protocol: messages, revisions, opening, correlation, ends, names.
//!
//! Source: the MCP specification (2024-11-05 to 2026-07-28) and what real clients and servers do (mcp.md). The wire is
//! ours because it is what is studied: duplicate, null and late ids must be representable, and order is an input.

pub mod cache;
pub mod catalogue;
pub mod check;
pub mod commands;
pub mod connection;
pub mod correlation;
pub mod ends;
pub mod jsonrpc;
pub mod names;
pub mod negotiation;
pub mod output;
pub mod pool;
pub mod profile;
pub mod schema;
pub mod servers;
pub mod version;
