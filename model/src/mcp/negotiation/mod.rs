//! How a connection opens: the client's and the server's machine, pure, one connection each.
//!
//! - [`client::Client`] plays a legacy, modern or dual client: probe, fall-back, handshake, lists, then calls.
//! - [`server::Server`] plays a scripted server, well-behaved or not.
//! - [`exchange`] joins the two in virtual time: the model's predicted message sequence.
//!
//! Source: mcp.md 1.4 to 1.6 (rules), 2 (matrix), 3.2 (the observed algorithm); propositions 3.4, M9.

pub mod client;
pub mod exchange;
pub mod messages;
pub mod script;
pub mod server;
