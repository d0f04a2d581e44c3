//! The model's client machine driven over a real connection: what `mcp probe`, the conformance client and the process
//! tests use.

use crate::transport::http::HttpConnection;
use crate::transport::stdio::{ServerEnd, ShutdownStep, StdioConnection, StdioSpec};
use crate::transport::{Connection, Delivery};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use windtunnel_model::mcp::negotiation::client::{Client, Deadline, Failure, Input, Negotiated, Output};
use windtunnel_model::mcp::negotiation::exchange::Wire;
use windtunnel_model::mcp::negotiation::messages::ClientIdentity;
use windtunnel_model::mcp::profile::ClientProfile;
use windtunnel_model::mcp::{ends::End, jsonrpc::MalformedReason};

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Target {
    /// A process to be started.
    Stdio(StdioSpec),
    /// An endpoint.
    Http(String),
}

/// A client machine, its connection, its clock and what stood on the wire.
#[derive(Debug)]
pub struct Driver {
    client: Client,
    target: Target,
    shutdown: Vec<ShutdownStep>,
    connection: Option<Connection>,
    deadlines: BTreeMap<(Instant, u64), Deadline>,
    next: u64,
    /// What stood on the wire, in order.
    pub wire: Vec<Wire>,
    /// What was agreed.
    pub negotiated: Option<Negotiated>,
    /// Why the attempt failed.
    pub failure: Option<Failure>,
    /// How calls ended.
    pub ends: Vec<(u32, End)>,
    /// How the processes ended that were closed.
    pub server_ends: Vec<ServerEnd>,
    /// What the last process wrote to stderr.
    pub stderr: String,
}

/// What a server's wire is kept up to, in entries: a flood does not grow it.
const MOST_WIRE: usize = 100_000;

impl Driver {
    /// A driver that has not begun.
    pub fn new(
        profile: ClientProfile,
        identity: ClientIdentity,
        target: Target,
        shutdown: &[ShutdownStep],
    ) -> Self {
        Self {
            client: Client::new(profile, identity),
            target,
            shutdown: shutdown.to_vec(),
            connection: None,
            deadlines: BTreeMap::new(),
            next: 0,
            wire: Vec::new(),
            negotiated: None,
            failure: None,
            ends: Vec::new(),
            server_ends: Vec::new(),
            stderr: String::new(),
        }
    }

    /// The machine.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Gives the machine an input and does what it asks for.
    pub async fn input(&mut self, input: Input) {
        let mut inputs = std::collections::VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for output in self.client.step(input) {
                if let Some(input) = self.perform(output).await {
                    inputs.push_back(input);
                }
            }
        }
    }

    async fn perform(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Open => {
                self.close().await;
                let opened = match &self.target {
                    Target::Stdio(spec) => {
                        StdioConnection::open(spec).map(Connection::Stdio).map_err(|error| error.to_string())
                    }
                    Target::Http(url) => {
                        HttpConnection::open(url).map(Connection::Http).map_err(|error| error.to_string())
                    }
                };
                return Some(match opened {
                    Ok(connection) => {
                        self.note(Wire::Opened);
                        self.connection = Some(connection);
                        Input::Opened
                    }
                    Err(reason) => Input::CannotOpen(reason),
                });
            }
            Output::Close => {
                self.note(Wire::ClosedByClient);
                self.close().await;
            }
            Output::Send(message) => {
                let line = message.to_line();
                if let Some(connection) = &self.connection {
                    connection.send(&message);
                }
                self.note(Wire::FromClient { line });
            }
            Output::Wait { deadline, after_ms } => {
                self.stop(&deadline);
                self.deadlines
                    .insert((Instant::now() + Duration::from_millis(after_ms), self.next), deadline);
                self.next += 1;
            }
            Output::Stop(deadline) => self.stop(&deadline),
            Output::Connected(negotiated) => self.negotiated = Some(negotiated),
            Output::Failed(failure) => self.failure = Some(failure),
            Output::Ended { call, end } => self.ends.push((call, end)),
            Output::Ready
            | Output::Listed(_)
            | Output::ListFailed(_)
            | Output::Disconnected
            | Output::Progress { .. }
            | Output::Ignored(_) => {}
        }
        None
    }

    fn note(&mut self, wire: Wire) {
        if self.wire.len() < MOST_WIRE {
            self.wire.push(wire);
        }
    }

    fn stop(&mut self, deadline: &Deadline) {
        self.deadlines.retain(|_, other| other != deadline);
    }

    /// Waits for one delivery or deadline and gives it to the machine; `false` when `until` passed before.
    pub async fn turn(&mut self, until: Instant) -> bool {
        let first = self.deadlines.keys().next().copied();
        let wake = first.map_or(until, |(at, _)| at.min(until));
        let received = match self.connection.as_mut() {
            Some(connection) => tokio::time::timeout_at(wake, connection.receive()).await.ok(),
            None => {
                tokio::time::sleep_until(wake).await;
                None
            }
        };
        match received {
            Some(delivery) => self.delivered(delivery).await,
            None => match first.filter(|(at, _)| *at <= Instant::now()) {
                Some(key) => {
                    if let Some(deadline) = self.deadlines.remove(&key) {
                        self.input(Input::Deadline(deadline)).await;
                    }
                }
                None => return Instant::now() < until,
            },
        }
        true
    }

    async fn delivered(&mut self, delivery: Delivery) {
        let input = match delivery {
            Delivery::Message(message) => {
                self.note(Wire::FromServer { line: message.to_line() });
                Input::Received(message)
            }
            Delivery::Malformed { malformed, line } => {
                self.note(Wire::FromServer { line });
                Input::ReceivedMalformed(malformed)
            }
            Delivery::Oversized { limit } => {
                Input::ReceivedMalformed(windtunnel_model::mcp::jsonrpc::Malformed {
                    reason: MalformedReason::NotJson(format!("a line longer than {limit} bytes")),
                    id: None,
                })
            }
            Delivery::HttpStatus { id, status, body } => Input::HttpStatus { id, status, body },
            Delivery::SessionLost { id } => Input::SessionLost { id },
            Delivery::Closed => {
                let code = self.close().await;
                self.note(Wire::Exited { code: code.unwrap_or(-1) });
                Input::Closed
            }
        };
        self.input(input).await;
    }

    /// Turns until `done` says so or the time is over; whether it was done.
    pub async fn until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let until = Instant::now() + limit;
        while !done(self) {
            if !self.turn(until).await {
                return done(self);
            }
        }
        true
    }

    /// Starts, and turns until it is ready or has failed.
    pub async fn connect(&mut self, limit: Duration) -> bool {
        self.input(Input::Start { relist: true }).await;
        self.until(limit, |driver| !driver.client.phase().is_connecting()).await;
        self.client.phase() == windtunnel_model::mcp::negotiation::client::Phase::Ready
    }

    /// Ends the connection; how its process ended.
    pub async fn finish(&mut self) -> Option<ServerEnd> {
        self.input(Input::Shutdown).await;
        self.close().await;
        self.server_ends.last().cloned()
    }

    async fn close(&mut self) -> Option<i32> {
        let connection = self.connection.take()?;
        let connection = match connection {
            Connection::Stdio(connection) => connection,
            Connection::Http(connection) => {
                connection.close().await;
                return None;
            }
        };
        self.stderr = connection.stderr();
        let end = connection.shutdown(&self.shutdown).await;
        let code = end.code;
        self.server_ends.push(end);
        code
    }
}
