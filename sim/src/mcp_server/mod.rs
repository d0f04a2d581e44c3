//! Scripted MCP servers as real processes: the model's [`Server`](windtunnel_model::mcp::negotiation::server::Server)
//! with a transport around it.

pub mod http;
pub mod stdio;
