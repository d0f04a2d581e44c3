//! A client and a scripted server joined in virtual time: the predicted message sequence.
//!
//! Events happen in the order of their virtual time; at one time, in the order in which they were caused. Messages take
//! no time of their own. Real processes are compared with this message by message.

use super::client::{Client, Deadline, Input, Negotiated, Output, Phase};
use super::messages::ClientIdentity;
use super::script::ServerScript;
use super::server::{Action, Deed, Server};
use crate::mcp::jsonrpc::{Message, RequestId};
use crate::mcp::profile::ClientProfile;
use std::collections::BTreeMap;

/// No exchange has more events than this: a client and a server that answer each other for ever end here.
pub const MOST_EVENTS: usize = 100_000;

/// One thing on the wire.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Wire {
    /// A process was started.
    Opened,
    /// A line from the client.
    FromClient {
        /// The line.
        line: String,
    },
    /// A line from the server.
    FromServer {
        /// The line.
        line: String,
    },
    /// The server's process ended by itself.
    Exited {
        /// Its code.
        code: i32,
    },
    /// The client closed the connection.
    ClosedByClient,
}

/// A finished exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What stood on the wire, in order.
    pub wire: Vec<Wire>,
    /// What was agreed; the last of several attempts.
    pub negotiated: Option<Negotiated>,
    /// Why it failed.
    pub failure: Option<super::client::Failure>,
    /// How the calls ended, in that order.
    pub ends: Vec<(u32, crate::mcp::ends::End)>,
    /// The client as it stands at the end.
    pub client: Client,
    /// Virtual time at the end, in milliseconds.
    pub ended_at_ms: u64,
}

#[derive(Clone, Debug)]
enum Event {
    ToClient(Input),
    /// Of the process with this number; others are gone.
    ToServer(u32, String),
    Booted(u32),
    Act(u32, u64, Action),
}

struct Joint {
    queue: BTreeMap<(u64, u64), Event>,
    next: u64,
    now: u64,
    process: u32,
    server: Option<Server>,
    booted: bool,
    unread: Vec<String>,
    timers: BTreeMap<Deadline, (u64, u64)>,
    taken_back: Vec<(u64, RequestId)>,
    fragment: String,
    wire: Vec<Wire>,
}

impl Joint {
    fn push(&mut self, after_ms: u64, event: Event) -> (u64, u64) {
        let key = (self.now.saturating_add(after_ms), self.next);
        self.next += 1;
        self.queue.insert(key, event);
        key
    }

    fn act(&mut self, actions: Vec<Action>) {
        let born = self.next;
        for action in actions {
            self.push(action.after_ms, Event::Act(self.process, born, action));
        }
    }

    fn server_reads(&mut self, line: String) {
        let Some(server) = self.server.as_mut() else { return };
        if !self.booted || server.script().never_reads {
            self.unread.push(line);
            return;
        }
        let (actions, cancelled) = server.line(&line);
        if let Some(id) = cancelled {
            self.taken_back.push((self.next, id));
        }
        self.act(actions);
    }

    fn server_line(&mut self, line: String) {
        let line = std::mem::take(&mut self.fragment) + &line;
        self.wire.push(Wire::FromServer { line: line.clone() });
        let input = match Message::parse(&line) {
            Ok(message) => Input::Received(message),
            Err(malformed) => Input::ReceivedMalformed(malformed),
        };
        self.push(0, Event::ToClient(input));
    }

    fn deed(&mut self, what: Deed) {
        match what {
            Deed::Line(line) => self.server_line(line),
            Deed::Drip { line, pause_ms } => {
                let after_ms = pause_ms.saturating_mul(line.len() as u64 + 1);
                let action = Action { after_ms: 0, request: None, what: Deed::Line(line) };
                self.push(after_ms, Event::Act(self.process, self.next, action));
            }
            Deed::Fragment(text) => self.fragment.push_str(&text),
            Deed::Giant { id, bytes } => {
                let text = "x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX).min(MOST_TEXT));
                let result = serde_json::json!({"content": [{"type": "text", "text": text}]});
                self.server_line(Message::response(id, result).to_line());
            }
            // A line that never ends is no message; it swallows what follows.
            Deed::Endless { .. } => self.fragment.push('x'),
            Deed::Flood { notifications } => {
                for step in 0..notifications.min(MOST_EVENTS as u64) {
                    self.server_line(flood_line(step));
                }
            }
            Deed::Exit(code) => {
                if !self.fragment.is_empty() {
                    let line = std::mem::take(&mut self.fragment);
                    self.server_line(line);
                }
                self.wire.push(Wire::Exited { code });
                self.server = None;
                self.push(0, Event::ToClient(Input::Closed));
            }
        }
    }

    fn open(&mut self, script: &ServerScript) {
        self.process += 1;
        let server = Server::new(script.clone());
        self.wire.push(Wire::Opened);
        self.booted = false;
        self.unread.clear();
        self.taken_back.clear();
        self.fragment.clear();
        let actions = server.start();
        self.server = Some(server);
        self.act(actions);
        self.push(script.boot_delay_ms, Event::Booted(self.process));
        self.push(0, Event::ToClient(Input::Opened));
    }

    fn client_says(&mut self, output: Output, script: &ServerScript, outcome: &mut Outcome) {
        match output {
            Output::Open => self.open(script),
            Output::Close => {
                self.wire.push(Wire::ClosedByClient);
                self.server = None;
            }
            Output::Send(message) => {
                let line = message.to_line();
                self.wire.push(Wire::FromClient { line: line.clone() });
                self.push(0, Event::ToServer(self.process, line));
            }
            Output::Wait { deadline, after_ms } => {
                let key = self.push(after_ms, Event::ToClient(Input::Deadline(deadline.clone())));
                if let Some(former) = self.timers.insert(deadline, key) {
                    self.queue.remove(&former);
                }
            }
            Output::Stop(deadline) => {
                if let Some(key) = self.timers.remove(&deadline) {
                    self.queue.remove(&key);
                }
            }
            Output::Connected(negotiated) => outcome.negotiated = Some(negotiated),
            Output::Failed(failure) => outcome.failure = Some(failure),
            Output::Ended { call, end } => outcome.ends.push((call, end)),
            Output::Ready
            | Output::Listed(_)
            | Output::ListFailed(_)
            | Output::Disconnected
            | Output::Progress { .. }
            | Output::Ignored(_) => {}
        }
    }
}

/// The longest text that the joint makes for a giant answer; the process world writes it in full.
const MOST_TEXT: usize = 1 << 20;

/// The line of one notification of a flood.
pub fn flood_line(step: u64) -> String {
    let params = serde_json::json!({"level": "info", "data": step});
    Message::notification("notifications/message", Some(params)).to_line()
}

#[derive(Default)]
struct Outcome {
    negotiated: Option<Negotiated>,
    failure: Option<super::client::Failure>,
    ends: Vec<(u32, crate::mcp::ends::End)>,
}

/// Plays a client against a script. `inputs` are given to the client, all at once, as soon as it is ready.
pub fn play(
    profile: &ClientProfile,
    identity: &ClientIdentity,
    script: &ServerScript,
    inputs: Vec<Input>,
) -> Exchange {
    let mut client = Client::new(profile.clone(), identity.clone());
    let mut joint = Joint {
        queue: BTreeMap::new(),
        next: 0,
        now: 0,
        process: 0,
        server: None,
        booted: false,
        unread: Vec::new(),
        timers: BTreeMap::new(),
        taken_back: Vec::new(),
        fragment: String::new(),
        wire: Vec::new(),
    };
    let mut outcome = Outcome::default();
    let mut waiting = Some(inputs);
    joint.push(0, Event::ToClient(Input::Start { relist: true }));
    for _ in 0..MOST_EVENTS {
        let Some(((at, _), event)) = joint.queue.pop_first() else { break };
        joint.now = at;
        match event {
            Event::ToClient(input) => {
                if let Input::Deadline(deadline) = &input {
                    joint.timers.remove(deadline);
                }
                for output in client.step(input) {
                    joint.client_says(output, script, &mut outcome);
                }
                if client.phase() == Phase::Ready
                    && let Some(inputs) = waiting.take()
                {
                    for input in inputs {
                        joint.push(0, Event::ToClient(input));
                    }
                }
            }
            Event::ToServer(process, line) if process == joint.process => joint.server_reads(line),
            Event::Booted(process) if process == joint.process => {
                joint.booted = true;
                for line in std::mem::take(&mut joint.unread) {
                    joint.server_reads(line);
                }
            }
            Event::Act(process, born, action) if process == joint.process && joint.server.is_some() => {
                let taken_back = action.request.as_ref().is_some_and(|request| {
                    joint.taken_back.iter().any(|(when, id)| id == request && born <= *when)
                });
                if !taken_back {
                    joint.deed(action.what);
                }
            }
            Event::ToServer(..) | Event::Booted(_) | Event::Act(..) => {}
        }
    }
    Exchange {
        wire: joint.wire,
        negotiated: outcome.negotiated,
        failure: outcome.failure,
        ends: outcome.ends,
        client,
        ended_at_ms: joint.now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::profile::Eras;
    use crate::mcp::version::{Era, Version};

    fn cell(client: Eras, server: Eras) -> Exchange {
        let profile = ClientProfile::claude_code().with_eras(client);
        let identity = ClientIdentity::new("test", "1");
        play(&profile, &identity, &ServerScript::of_eras(server), Vec::new())
    }

    #[test]
    fn the_matrix_of_mcp_md_section_2() {
        for client in Eras::ALL {
            for server in Eras::ALL {
                let exchange = cell(client, server);
                let expected = match (client, server) {
                    (Eras::Legacy, Eras::Modern) | (Eras::Modern, Eras::Legacy) => None,
                    (Eras::Legacy, _) | (_, Eras::Legacy) => Some(Era::Legacy),
                    _ => Some(Era::Modern),
                };
                assert_eq!(exchange.negotiated.map(|n| n.era), expected, "{client:?} {server:?}");
                assert_eq!(exchange.failure.is_none(), expected.is_some(), "{client:?} {server:?}");
                if expected.is_some() {
                    assert_eq!(exchange.client.phase(), Phase::Ready);
                    assert_eq!(exchange.client.list(super::super::client::ListKind::Tools).len(), 1);
                }
            }
        }
    }

    /// Trap (a) of mcp.md section 2: the slow dual server pins itself to the probe's era.
    #[test]
    fn the_slow_server_race() {
        let script = ServerScript { boot_delay_ms: 5_000, ..ServerScript::of_eras(Eras::Dual) };
        let identity = ClientIdentity::new("test", "1");
        let observed = play(&ClientProfile::claude_code(), &identity, &script, Vec::new());
        assert_eq!(observed.negotiated.map(|n| n.version), Some(Version::V2026_07_28));
        let naive = ClientProfile { reprobe_timeout_ms: None, ..ClientProfile::claude_code() };
        let refused = play(&naive, &identity, &script, Vec::new());
        assert!(refused.failure.is_some(), "without the second probe the race is lost");
    }
}
