//! A raw connection for experiments: whatever has to be sent is sent, whatever comes is kept.

use crate::mcp_client::Target;
use crate::transport::stdio::{SHUTDOWN_SPECIFICATION, ServerEnd, StdioConnection};
use crate::transport::{Connection, Delivery, http::HttpConnection};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;
use windtunnel_model::mcp::jsonrpc::{Message, RequestId};
use windtunnel_model::mcp::negotiation::messages::{ClientIdentity, initialize_params, with_metadata};
use windtunnel_model::mcp::version::{Era, Version};

/// The messages that show something: what was sent, and what came back.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Evidence {
    /// What was sent.
    pub sent: String,
    /// What came, or what happened instead.
    pub received: String,
}

/// What answered a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A result.
    Result(Value),
    /// An error with its code.
    Error(i64, Value),
    /// Something with an id that is not the request's.
    OtherId(Message),
    /// Nothing in time.
    Silence,
    /// The connection ended.
    Closed,
}

/// A raw session.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    version: Option<Version>,
    next: i64,
    limit: Duration,
    /// Deliveries that answered nothing, in order.
    pub others: Vec<Delivery>,
    /// The last pair of messages.
    pub last: Evidence,
    /// The first line that was no message.
    pub polluted: Option<Evidence>,
}

impl Session {
    /// Opens a connection; nothing is sent.
    ///
    /// # Errors
    /// With the reason, when it cannot be opened.
    pub fn open(target: &Target, limit: Duration) -> Result<Self, String> {
        let connection = match target {
            Target::Stdio(spec) => {
                StdioConnection::open(spec).map(Connection::Stdio).map_err(|error| error.to_string())?
            }
            Target::Http(url) => {
                HttpConnection::open(url).map(Connection::Http).map_err(|error| error.to_string())?
            }
        };
        let last = Evidence { sent: String::new(), received: String::new() };
        Ok(Self { connection, version: None, next: 1, limit, others: Vec::new(), last, polluted: None })
    }

    /// From now on answers are awaited so long.
    pub fn limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// From now on requests are modern ones at this revision, or legacy ones.
    pub fn speak(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// Does the handshake, or sets the revision of modern requests.
    pub async fn begin(&mut self, version: Version) -> Reply {
        self.speak(version);
        if version.era() == Era::Modern {
            // The first answer waits for the process to start.
            return self.ask("server/discover", None).await;
        }
        let params = initialize_params(&identity(), version);
        let reply = self.ask("initialize", Some(params)).await;
        if matches!(reply, Reply::Result(_)) {
            self.notify("notifications/initialized", None);
        }
        reply
    }

    /// A fresh integer id.
    pub fn fresh(&mut self) -> RequestId {
        self.next += 1;
        RequestId::Integer(self.next - 1)
    }

    /// The parameters as the session's era wants them.
    fn params(&self, params: Option<Value>) -> Option<Value> {
        match self.version {
            Some(version) if version.era() == Era::Modern => {
                Some(with_metadata(params, &identity(), version))
            }
            _ => params,
        }
    }

    /// Sends a request and waits for its answer.
    pub async fn ask(&mut self, method: &str, params: Option<Value>) -> Reply {
        let id = self.fresh();
        self.ask_as(id, method, params).await
    }

    /// The same with an id of the caller's.
    pub async fn ask_as(&mut self, id: RequestId, method: &str, params: Option<Value>) -> Reply {
        self.send_request(&id, method, params);
        self.await_reply(&id, self.limit).await
    }

    /// Sends a request without waiting.
    pub fn send_request(&mut self, id: &RequestId, method: &str, params: Option<Value>) {
        let message = Message::request(id.clone(), method, self.params(params));
        self.last.sent = crate::transport::shown(&message.to_line());
        self.connection.send(&message);
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Option<Value>) {
        let message = Message::notification(method, params);
        self.last.sent = crate::transport::shown(&message.to_line());
        self.connection.send(&message);
    }

    /// Writes a raw line; `false` where the transport has no lines.
    pub fn raw(&mut self, line: &str) -> bool {
        self.last.sent = crate::transport::shown(line);
        match &self.connection {
            Connection::Stdio(connection) => connection.send(line).is_ok(),
            Connection::Http(_) => false,
        }
    }

    /// Waits for the answer with this id; everything else is kept.
    pub async fn await_reply(&mut self, id: &RequestId, limit: Duration) -> Reply {
        let until = Instant::now() + limit;
        loop {
            let Ok(delivery) = tokio::time::timeout_at(until, self.connection.receive()).await else {
                self.last.received = format!("nothing for {} s", limit.as_secs_f32());
                return Reply::Silence;
            };
            let reply = match &delivery {
                Delivery::Message(Message::Response { id: got, result }) if got == id => {
                    Reply::Result(result.clone())
                }
                Delivery::Message(Message::Error { id: Some(got), error }) if got == id => {
                    Reply::Error(error.code, error.to_value())
                }
                Delivery::Message(message @ (Message::Response { .. } | Message::Error { .. }))
                    if message.id() == id.coerced().as_ref() =>
                {
                    Reply::OtherId(message.clone())
                }
                Delivery::HttpStatus { id: got, status, body } if got == id => {
                    self.last.received = format!("HTTP {status} {body}");
                    return Reply::Error(i64::from(*status), Value::Null);
                }
                Delivery::SessionLost { id: got } if got == id => {
                    self.last.received = "HTTP 404 with a session id".to_owned();
                    return Reply::Error(404, Value::Null);
                }
                Delivery::Closed => {
                    self.last.received = "the connection ended".to_owned();
                    return Reply::Closed;
                }
                _ => {
                    self.keep(delivery);
                    continue;
                }
            };
            self.last.received = describe(&delivery);
            return reply;
        }
    }

    fn keep(&mut self, delivery: Delivery) {
        if let (None, Delivery::Malformed { line, .. }) = (&self.polluted, &delivery) {
            self.polluted = Some(Evidence { sent: self.last.sent.clone(), received: line.clone() });
        }
        // A server that floods is remembered, not stored.
        if self.others.len() < 1_000 {
            self.others.push(delivery);
        }
    }

    /// Waits and keeps what comes; how much came.
    pub async fn listen(&mut self, limit: Duration) -> usize {
        let (until, before) = (Instant::now() + limit, self.others.len());
        while let Ok(delivery) = tokio::time::timeout_at(until, self.connection.receive()).await {
            if delivery == Delivery::Closed {
                break;
            }
            self.last.received = describe(&delivery);
            self.keep(delivery);
        }
        self.others.len() - before
    }

    /// Closes the input and waits for the end of the process; `None` where there is no process.
    pub async fn end(self) -> Option<ServerEnd> {
        match self.connection {
            Connection::Stdio(connection) => Some(connection.shutdown(&SHUTDOWN_SPECIFICATION).await),
            Connection::Http(connection) => {
                connection.close().await;
                None
            }
        }
    }
}

fn describe(delivery: &Delivery) -> String {
    match delivery {
        Delivery::Message(message) => crate::transport::shown(&message.to_line()),
        Delivery::Malformed { line, .. } => line.clone(),
        Delivery::Oversized { limit } => format!("a line longer than {limit} bytes"),
        Delivery::HttpStatus { status, body, .. } => format!("HTTP {status} {body}"),
        Delivery::SessionLost { .. } => "HTTP 404 with a session id".to_owned(),
        Delivery::Closed => "the connection ended".to_owned(),
    }
}

/// Who the probe says it is: a client without capabilities.
pub fn identity() -> ClientIdentity {
    ClientIdentity::new("windtunnel-probe", env!("CARGO_PKG_VERSION"))
}
