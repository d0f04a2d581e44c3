//! Transports of MCP: how lines get from a client to a server and back. Framing and matching are ours, since they are
//! what is studied; sockets and HTTP come from maintained libraries.

pub mod framing;
pub mod http;
pub mod sse;
pub mod stdio;

use windtunnel_model::mcp::jsonrpc::{Malformed, MalformedReason, Message};

/// What a connection delivers, in the order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// A message.
    Message(Message),
    /// A line that is no message, and its first bytes as text.
    Malformed {
        /// What is wrong.
        malformed: Malformed,
        /// The line, cut where it is long.
        line: String,
    },
    /// A line longer than the limit; its bytes were dropped.
    Oversized {
        /// The limit in bytes.
        limit: usize,
    },
    /// HTTP: a request was answered with a status that is no success and no JSON-RPC message.
    HttpStatus {
        /// The request.
        id: windtunnel_model::mcp::jsonrpc::RequestId,
        /// The status.
        status: u16,
        /// The body, as far as it was read.
        body: String,
    },
    /// HTTP: the session is gone; the request was not processed.
    SessionLost {
        /// The request.
        id: windtunnel_model::mcp::jsonrpc::RequestId,
    },
    /// The connection ended; nothing comes after this.
    Closed,
}

/// A connection over any transport.
#[derive(Debug)]
pub enum Connection {
    /// A child process.
    Stdio(stdio::StdioConnection),
    /// Streamable HTTP.
    Http(http::HttpConnection),
}

impl Connection {
    /// The next delivery. Cancel safe.
    pub async fn receive(&mut self) -> Delivery {
        match self {
            Self::Stdio(connection) => connection.receive().await,
            Self::Http(connection) => connection.receive().await,
        }
    }

    /// Sends a message. A connection that is gone or full says so by its end, or by silence.
    pub fn send(&self, message: &Message) {
        match self {
            Self::Stdio(connection) => drop(connection.send(&message.to_line())),
            Self::Http(connection) => connection.send(message),
        }
    }
}

/// How much of a bad line is kept for reports.
const SHOWN: usize = 400;

impl Delivery {
    /// Reads a line.
    pub fn of_line(line: &[u8]) -> Self {
        let text = match std::str::from_utf8(line) {
            Ok(text) => text,
            Err(error) => {
                return Self::Malformed {
                    malformed: Malformed {
                        reason: MalformedReason::NotJson(format!("not UTF-8: {error}")),
                        id: None,
                    },
                    line: shown(&String::from_utf8_lossy(line)),
                };
            }
        };
        match Message::parse(text) {
            Ok(message) => Self::Message(message),
            Err(malformed) => Self::Malformed { malformed, line: shown(text) },
        }
    }
}

/// The beginning of a text, cut at a character.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
