//! The client's machine of one connection: probe, fall-back, handshake, lists, calls. Pure: whoever owns the transport
//! gives it [`Input`]s and does what its [`Output`]s say.
//!
//! Time is an input: [`Output::Wait`] asks for a [`Deadline`], [`Input::Deadline`] says that it passed. A later `Wait`
//! for the same deadline replaces the former; a deadline that no longer matters is answered with
//! [`Output::Ignored`], never with a panic or in silence.

mod calls;
mod lists;
mod opening;

pub use calls::CallSpec;
pub use lists::{ListKind, MOST_PAGES};

use super::messages::{ClientIdentity, with_metadata};
use crate::mcp::correlation::{IdRule, Matched, OpenRequests};
use crate::mcp::ends::End;
use crate::mcp::jsonrpc::{ErrorObject, Malformed, Message, RequestId};
use crate::mcp::profile::ClientProfile;
use crate::mcp::version::{Era, Version};
use serde_json::{Value, json};

/// What the world says to a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Begin to connect (also again, after a failure or a death). `relist: false` keeps the lists of the former
    /// connection, as a respawn on demand does.
    Start {
        /// Whether the lists are asked for anew.
        relist: bool,
    },
    /// What [`Output::Open`] asked for is open.
    Opened,
    /// It could not be opened; the reason.
    CannotOpen(String),
    /// A message arrived.
    Received(Message),
    /// Something arrived that is no message.
    ReceivedMalformed(Malformed),
    /// HTTP: the request with this id was answered with a status that is no success and no JSON-RPC message.
    HttpStatus {
        /// The request.
        id: RequestId,
        /// The status.
        status: u16,
        /// The body, as far as it was read.
        body: String,
    },
    /// HTTP: the session is gone (404 with a session id); the request with this id was not processed.
    SessionLost {
        /// The request.
        id: RequestId,
    },
    /// The connection closed (process ended, pipe closed).
    Closed,
    /// A deadline passed.
    Deadline(Deadline),
    /// Call a tool.
    Call(CallSpec),
    /// Make any other request (`prompts/get`, `resources/read`, …).
    Request {
        /// The caller's number for it.
        call: u32,
        /// The method.
        method: String,
        /// The parameters.
        params: Option<Value>,
    },
    /// Give a call up: the user interrupted it.
    Cancel {
        /// The caller's number for it.
        call: u32,
    },
    /// End the connection.
    Shutdown,
}

/// What a client asks of the world, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the connection (start the process); answer with `Opened` or `CannotOpen`.
    Open,
    /// Close the connection (end the process).
    Close,
    /// Send a message.
    Send(Message),
    /// Say so when this much time has passed.
    Wait {
        /// Which deadline.
        deadline: Deadline,
        /// From now, in milliseconds.
        after_ms: u64,
    },
    /// Forget a deadline.
    Stop(Deadline),
    /// The era and the version are agreed.
    Connected(Negotiated),
    /// The lists are read: calls can be made.
    Ready,
    /// A list was read (again).
    Listed(ListKind),
    /// A list could not be read; what was known of it before is kept.
    ListFailed(ListKind),
    /// The attempt failed.
    Failed(Failure),
    /// An established connection ended.
    Disconnected,
    /// A call ended. Each call ends exactly once.
    Ended {
        /// The caller's number for it.
        call: u32,
        /// How.
        end: End,
    },
    /// Progress of a call.
    Progress {
        /// The caller's number for it.
        call: u32,
    },
    /// Nothing came of an input, and why.
    Ignored(Ignored),
}

/// A deadline. Each stands for one purpose, so that a late one is told apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deadline {
    /// The whole attempt.
    Connect,
    /// The probe's answer.
    Probe,
    /// The answer to the probe after an error on `initialize`.
    Reprobe,
    /// The acknowledgement of `subscriptions/listen`.
    Listen,
    /// The time before a failed list request is sent again.
    Retry(ListKind),
    /// The wall-clock limit of a call.
    Call(RequestId),
    /// The limit without answer or progress of a call.
    Idle(RequestId),
}

/// What was agreed, and at which price (proposition 3.4: at most 2 requests, beyond it probes and respawns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Negotiated {
    /// The era.
    pub era: Era,
    /// The revision.
    pub version: Version,
    /// Requests sent until then.
    pub requests: u32,
    /// How often the connection was opened.
    pub opens: u32,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The connection could not be opened.
    #[error("cannot start: {0}")]
    CannotOpen(String),
    /// The server's `initialize` answer names a revision that the client does not have.
    #[error("server's protocol version is not supported: {0}")]
    VersionNotAccepted(String),
    /// The `initialize` answer is no initialize result.
    #[error("the answer to `initialize` is no initialize result")]
    BadInitializeResult,
    /// The server refused `initialize`.
    #[error("`initialize` was refused: {code} {message}")]
    InitializeRefused {
        /// The server's code.
        code: i64,
        /// The server's message.
        message: String,
    },
    /// No modern revision in common, and no way to another era.
    #[error("no protocol version in common")]
    NoCommonVersion,
    /// The server does not speak the client's only era.
    #[error("the server does not speak the client's era")]
    EraNotSpoken,
    /// The connection closed before it was established.
    #[error("connection closed")]
    Closed,
    /// The attempt took too long.
    #[error("connection timed out after {0} ms")]
    TimedOut(u64),
    /// HTTP 401: the user has to log in. Not a failure of the server (M4).
    #[error("the server needs authorization")]
    NeedsAuthorization,
    /// HTTP: any other status on the opening request.
    #[error("HTTP status {0}")]
    HttpStatus(u16),
}

/// Why nothing came of an input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ignored {
    /// An answer to a request that was answered or given up before.
    AlreadyAnswered(RequestId),
    /// An answer whose id no request has; with the open id of the other type, where there is one.
    UnknownId(RequestId, Option<RequestId>),
    /// An id that came back with its type changed; its answer was taken all the same.
    IdChangedType(RequestId),
    /// An error without an id.
    ErrorWithoutId,
    /// A line that is no message.
    Malformed,
    /// A server's request on a modern connection, or before there is one.
    ServerRequest(String),
    /// A notification that changes nothing.
    Notification(String),
    /// A list change that was not declared.
    UndeclaredChange(ListKind),
    /// A cursor that came before: the list ends here (F54).
    RepeatedCursor(ListKind),
    /// More pages than [`MOST_PAGES`]: the list ends here.
    TooManyPages(ListKind),
    /// A deadline that no longer matters.
    StaleDeadline(Deadline),
    /// A call that is not open.
    UnknownCall(u32),
    /// An input that has no meaning in this phase.
    OutOfPhase,
}

/// What the next opened connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// `server/discover` first.
    Probe,
    /// `initialize` first.
    Legacy,
    /// Modern requests at this revision.
    Modern(Version),
}

/// Why `initialize` was sent: what an error on it means depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Before {
    /// The client is legacy, or the process was started anew for it.
    Nothing,
    /// The probe was answered, but not by a modern server.
    ProbeAnswered,
    /// The probe was not answered in time: the server may be slow, not old.
    ProbeSilent,
}

/// Where a connection stands. Small and `Copy`: what an explorer needs of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Not begun.
    Idle,
    /// The world is opening it.
    Opening(Plan),
    /// Waiting for the probe's answer (the first or the second).
    Probing {
        /// 1 or 2.
        attempt: u8,
    },
    /// Waiting for the answer to `initialize`.
    Initializing(Before),
    /// Probing again after silence and an error on `initialize`.
    Reprobing,
    /// Waiting for the acknowledgement of the subscription.
    Subscribing,
    /// Waiting for the second discover result.
    Rediscovering,
    /// Reading the lists.
    Listing,
    /// Calls can be made.
    Ready,
    /// The attempt failed.
    Failed,
    /// It was established and has ended.
    Closed,
}

/// What an open request is for.
#[derive(Clone, Debug, PartialEq)]
enum Purpose {
    Discover,
    Initialize,
    Reprobe,
    Listen,
    Rediscover,
    List { kind: ListKind, retried: bool },
    Call(Box<calls::OpenCall>),
}

/// The client of one connection.
#[derive(Clone, Debug)]
pub struct Client {
    profile: ClientProfile,
    identity: ClientIdentity,
    phase: Phase,
    agreed: Option<Version>,
    open: OpenRequests<Purpose>,
    next_id: i64,
    probes: u32,
    listens: u32,
    requests: u32,
    opens: u32,
    relist: bool,
    capabilities: Option<Value>,
    instructions: Option<String>,
    server_info: Option<Value>,
    lists: lists::Lists,
    /// Calls that wait for the connection to be opened anew (a lost HTTP session).
    parked: Vec<calls::OpenCall>,
}

impl Client {
    /// A client that has not begun.
    pub fn new(profile: ClientProfile, identity: ClientIdentity) -> Self {
        let open = OpenRequests::new(profile.matching, IdRule::NotWhileOpen);
        let next_id = profile.first_id;
        Self {
            profile,
            identity,
            phase: Phase::Idle,
            agreed: None,
            open,
            next_id,
            probes: 0,
            listens: 0,
            requests: 0,
            opens: 0,
            relist: true,
            capabilities: None,
            instructions: None,
            server_info: None,
            lists: lists::Lists::default(),
            parked: Vec::new(),
        }
    }

    /// Applies one input. Total: every input in every phase gives at least one output.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Start { relist } => self.start(relist, &mut out),
            Input::Opened => self.opened(&mut out),
            Input::CannotOpen(reason) => self.fail(Failure::CannotOpen(reason), &mut out),
            Input::Received(message) => self.received(message, &mut out),
            Input::ReceivedMalformed(malformed) => self.received_malformed(&malformed, &mut out),
            Input::HttpStatus { id, status, body } => self.http_status(&id, status, body, &mut out),
            Input::SessionLost { id } => self.session_lost(&id, &mut out),
            Input::Closed => self.closed(&mut out),
            Input::Deadline(deadline) => self.deadline(deadline, &mut out),
            Input::Call(spec) => self.call(spec, &mut out),
            Input::Request { call, method, params } => self.request_for(call, method, params, &mut out),
            Input::Cancel { call } => self.cancel(call, &mut out),
            Input::Shutdown => self.shutdown(&mut out),
        }
        if out.is_empty() {
            out.push(Output::Ignored(Ignored::OutOfPhase));
        }
        out
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The agreed revision, once there is one.
    pub fn version(&self) -> Option<Version> {
        self.agreed
    }

    /// The agreed era, once there is one.
    pub fn era(&self) -> Option<Era> {
        self.agreed.map(Version::era)
    }

    /// The server's capabilities, once known.
    pub fn capabilities(&self) -> Option<&Value> {
        self.capabilities.as_ref()
    }

    /// The server's instructions.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// What the server says it is; never a basis for decisions (mcp.md 1.5).
    pub fn server_info(&self) -> Option<&Value> {
        self.server_info.as_ref()
    }

    /// The items of a list as last read: tool, prompt or resource definitions, as the server wrote them.
    pub fn list(&self, kind: ListKind) -> &[Value] {
        self.lists.items(kind)
    }

    /// Its profile.
    pub fn profile(&self) -> &ClientProfile {
        &self.profile
    }

    /// How many requests are open.
    pub fn open_requests(&self) -> usize {
        self.open.len()
    }

    fn fresh_id(&mut self) -> RequestId {
        let id = RequestId::Integer(self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        id
    }

    /// Sends a request and notes it as open. Modern requests get their metadata.
    fn send(
        &mut self,
        id: RequestId,
        method: &str,
        params: Option<Value>,
        version: Option<Version>,
        purpose: Purpose,
        out: &mut Vec<Output>,
    ) {
        let params = match version {
            Some(version) if version.era() == Era::Modern => {
                Some(with_metadata(params, &self.identity, version))
            }
            _ => params,
        };
        // Ids are numbered or named by the machine itself, so that they are distinct by construction.
        if self.open.open(id.clone(), purpose).is_ok() {
            self.requests = self.requests.saturating_add(1);
            out.push(Output::Send(Message::request(id, method, params)));
        }
    }

    fn received(&mut self, message: Message, out: &mut Vec<Output>) {
        match message {
            Message::Response { id, result } => self.answered(&id, Ok(result), out),
            Message::Error { id: Some(id), error } => self.answered(&id, Err(error), out),
            Message::Error { id: None, .. } => out.push(Output::Ignored(Ignored::ErrorWithoutId)),
            Message::Request { id, method, params } => {
                self.server_request(id, &method, params.as_ref(), out);
            }
            Message::Notification { method, params } => self.notified(&method, params.as_ref(), out),
        }
    }

    /// Takes the request that an answer belongs to, and says so where the id was odd.
    fn take(&mut self, id: &RequestId, out: &mut Vec<Output>) -> Option<Purpose> {
        match self.open.answer(id) {
            Matched::Request(purpose) => Some(purpose),
            Matched::Coerced(purpose) => {
                out.push(Output::Ignored(Ignored::IdChangedType(id.clone())));
                Some(purpose)
            }
            Matched::AlreadyAnswered => {
                out.push(Output::Ignored(Ignored::AlreadyAnswered(id.clone())));
                None
            }
            Matched::Unknown { coercible } => {
                out.push(Output::Ignored(Ignored::UnknownId(id.clone(), coercible)));
                None
            }
        }
    }

    fn answered(&mut self, id: &RequestId, answer: Result<Value, ErrorObject>, out: &mut Vec<Output>) {
        let Some(purpose) = self.take(id, out) else { return };
        match purpose {
            Purpose::Discover => self.probe_answered(answer, out),
            Purpose::Initialize => self.initialize_answered(answer, out),
            Purpose::Reprobe => self.reprobe_answered(answer, out),
            Purpose::Listen => self.listen_ended(out),
            Purpose::Rediscover => self.rediscovered(answer, out),
            Purpose::List { kind, retried } => self.list_answered(kind, retried, answer, out),
            Purpose::Call(call) => self.call_answered(id, *call, answer, out),
        }
    }

    fn received_malformed(&mut self, malformed: &Malformed, out: &mut Vec<Output>) {
        out.push(Output::Ignored(Ignored::Malformed));
        let Some(id) = malformed.id.clone().filter(|id| self.open.get(id).is_some()) else { return };
        match self.take(&id, out) {
            Some(Purpose::Call(call)) => self.end_call(&id, &call, End::NotAResponse, out),
            Some(purpose) => {
                // The request is over: what it was for goes on as after an error of no known code.
                let error = ErrorObject::new(0, "the answer is no JSON-RPC response");
                match purpose {
                    Purpose::Discover => self.probe_answered(Err(error), out),
                    Purpose::Initialize => self.fail(Failure::BadInitializeResult, out),
                    Purpose::Reprobe => self.reprobe_answered(Err(error), out),
                    Purpose::Listen => self.listen_ended(out),
                    Purpose::Rediscover => self.rediscovered(Err(error), out),
                    Purpose::List { kind, retried } => self.list_answered(kind, retried, Err(error), out),
                    Purpose::Call(_) => {}
                }
            }
            None => {}
        }
    }

    fn server_request(&mut self, id: RequestId, method: &str, params: Option<&Value>, out: &mut Vec<Output>) {
        let legacy = self.era() == Some(Era::Legacy) || matches!(self.phase, Phase::Initializing(_));
        if !legacy {
            out.push(Output::Ignored(Ignored::ServerRequest(method.to_owned())));
            return;
        }
        let answer = match method {
            "ping" => Message::response(id, json!({})),
            _ => match self.identity.answer(method, params) {
                Some(result) => Message::response(id, result),
                None => {
                    Message::error(Some(id), crate::mcp::jsonrpc::code::METHOD_NOT_FOUND, "Method not found")
                }
            },
        };
        out.push(Output::Send(answer));
    }

    fn notified(&mut self, method: &str, params: Option<&Value>, out: &mut Vec<Output>) {
        match (method, ListKind::of_change(method)) {
            (_, Some(kind)) => self.list_changed(kind, out),
            ("notifications/progress", _) => self.progressed(params, out),
            ("notifications/subscriptions/acknowledged", _) if self.phase == Phase::Subscribing => {
                out.push(Output::Stop(Deadline::Listen));
                self.after_subscription(out);
            }
            _ => out.push(Output::Ignored(Ignored::Notification(method.to_owned()))),
        }
    }

    fn deadline(&mut self, deadline: Deadline, out: &mut Vec<Output>) {
        match (&deadline, self.phase) {
            (Deadline::Connect, phase) if phase.is_connecting() => self.connect_timed_out(out),
            (Deadline::Probe, Phase::Probing { .. }) => self.probe_silent(out),
            (Deadline::Reprobe, Phase::Reprobing) => self.reprobe_silent(out),
            (Deadline::Listen, Phase::Subscribing) => self.listen_silent(out),
            (Deadline::Retry(kind), Phase::Listing | Phase::Ready) => self.retry_list(*kind, out),
            (Deadline::Call(id), _) if self.open.get(id).is_some() => self.call_timed_out(id, out),
            (Deadline::Idle(id), _) if self.open.get(id).is_some() => self.call_idle(id, out),
            _ => out.push(Output::Ignored(Ignored::StaleDeadline(deadline))),
        }
    }

    fn closed(&mut self, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Probing { .. } => self.closed_during_probe(out),
            Phase::Ready => {
                self.end_open_calls(out);
                self.phase = Phase::Closed;
                out.push(Output::Disconnected);
            }
            phase if phase.is_connecting() => self.fail(Failure::Closed, out),
            _ => {}
        }
    }

    fn shutdown(&mut self, out: &mut Vec<Output>) {
        self.end_open_calls(out);
        if !matches!(self.phase, Phase::Idle | Phase::Failed | Phase::Closed) {
            out.push(Output::Close);
        }
        self.phase = Phase::Closed;
        out.push(Output::Disconnected);
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Output>) {
        if !self.phase.is_connecting() {
            return;
        }
        if !matches!(failure, Failure::CannotOpen(_) | Failure::Closed) {
            out.push(Output::Close);
        }
        out.push(Output::Stop(Deadline::Connect));
        self.phase = Phase::Failed;
        self.end_open_calls(out);
        out.push(Output::Failed(failure));
    }
}

impl Phase {
    /// Whether an attempt is under way.
    pub fn is_connecting(self) -> bool {
        !matches!(self, Self::Idle | Self::Ready | Self::Failed | Self::Closed)
    }
}
