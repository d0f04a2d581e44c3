//! Judges a recorded exchange: findings that name the party at fault and the clause, stricter than any client.
//!
//! Source: mcp.md section 1 (rules by revision), 3.3 and 3.12 (what a client tolerates is a fault all the same);
//! field-reports.md, form `mcp`. The judge knows no server and no sample: each rule is stated on messages.
//!
//! An exchange may be a fragment of a session, and its messages may be abridged (written without `jsonrpc`): what an
//! abridged message leaves out is no fault, and an answer before the first shown request answers one that is not
//! shown.

mod answers;
mod client_rules;
mod http;
mod lifecycle;
mod lists;

pub use http::check_http;

use crate::finding::{Finding, Severity};
use crate::mcp::jsonrpc::{Malformed, MalformedReason, Message, RequestId};
use crate::mcp::version::{Era, Version};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One entry of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A message from the client.
    Client(Value),
    /// A message from the server.
    Server(Value),
    /// A raw line from the client.
    ClientRaw(String),
    /// A raw line from the server.
    ServerRaw(String),
    /// The server says nothing for so many seconds.
    ServerSilent(f64),
    /// The server's process exits.
    ServerExit(i64),
}

/// A finding and the entry that it is about, counted from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The entry.
    pub entry: usize,
    /// The finding.
    pub finding: Finding,
}

/// What the judge says of an exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The findings, in the order of the entries.
    pub findings: Vec<Located>,
    /// The era that the exchange shows.
    pub era: Option<Era>,
    /// The revision that was agreed.
    pub version: Option<Version>,
    /// The names of the tools on offer at the end, in the order of the list.
    pub tools: Vec<String>,
    /// The one tool_result of each ended `tools/call`: id, text, error mark (θ, proposition 3.7).
    pub results: Vec<(RequestId, String, bool)>,
    /// Which request each answer resolved: id and method, in the order of arrival.
    pub matches: Vec<(RequestId, String)>,
}

/// The party at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Client,
    Server,
}

impl Party {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// A request of one side that is not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
    pub(crate) entry: usize,
    pub(crate) cancelled: bool,
    /// The request with this id was sent while another with it was open.
    pub(crate) ambiguous: bool,
}

/// What is known at a point of the exchange.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    entry: usize,
    findings: Vec<Located>,
    /// The message at hand leaves out what does not matter.
    abridged: bool,
    open: Vec<Open>,
    server_open: Vec<Open>,
    answered: Vec<RequestId>,
    server_used: Vec<RequestId>,
    client_has_spoken: bool,
    client_sent_nonsense: bool,
    notifications_since_request: Vec<String>,
    mismatched_answers: bool,
    era: Option<Era>,
    version: Option<Version>,
    offered: Option<String>,
    initialized: bool,
    full_initialize: bool,
    capabilities: Option<Map<String, Value>>,
    client_capabilities: Option<Map<String, Value>>,
    tools: BTreeMap<String, Value>,
    tool_order: Vec<String>,
    tools_complete: bool,
    lists: lists::Lists,
    tokens: Vec<lifecycle::Token>,
    subscribed: Vec<RequestId>,
    input: Vec<answers::InputRound>,
    results: Vec<(RequestId, String, bool)>,
    gone: bool,
    /// The last entry at which the server was silent while requests were open.
    silent_until: usize,
    matches: Vec<(RequestId, String)>,
}

/// Judges an exchange.
pub fn check(entries: &[Entry]) -> Judgement {
    let mut judge = Judge::default();
    for (number, entry) in entries.iter().enumerate() {
        judge.entry = number;
        match entry {
            Entry::Client(value) => judge.value(Party::Client, value.clone()),
            Entry::Server(value) => judge.value(Party::Server, value.clone()),
            Entry::ClientRaw(line) => judge.raw(Party::Client, line),
            Entry::ServerRaw(line) => judge.raw(Party::Server, line),
            Entry::ServerSilent(seconds) => judge.silent(*seconds),
            Entry::ServerExit(code) => judge.exit(*code),
        }
    }
    judge.end();
    Judgement {
        findings: judge.findings,
        era: judge.era,
        version: judge.version,
        tools: judge.tool_order,
        results: judge.results,
        matches: judge.matches,
    }
}

impl Judge {
    pub(crate) fn report(
        &mut self,
        id: &str,
        severity: Severity,
        party: Party,
        clause: &str,
        message: impl Into<String>,
        why: &str,
    ) {
        self.report_at(self.entry, id, severity, party, clause, message, why);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a finding; each is named at the only two callers"
    )]
    pub(crate) fn report_at(
        &mut self,
        entry: usize,
        id: &str,
        severity: Severity,
        party: Party,
        clause: &str,
        message: impl Into<String>,
        why: &str,
    ) {
        let finding = Finding::new(id, severity, message, why).with_party(party.word()).with_clause(clause);
        self.findings.push(Located { entry, finding });
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.era == Some(Era::Modern)
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.era == Some(Era::Legacy)
    }

    fn raw(&mut self, party: Party, line: &str) {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => self.value_of(party, value, true),
            Err(error) => {
                if party == Party::Client {
                    self.client_sent_nonsense = true;
                }
                let number = self.entry + 1;
                self.report(
                    "not-json",
                    Severity::Error,
                    party,
                    "transports, stdio: nothing but messages on the stream",
                    format!("line {number} is not a JSON-RPC message: {error}"),
                    "the stream carries messages only; logs belong on stderr",
                );
            }
        }
    }

    fn value(&mut self, party: Party, value: Value) {
        self.value_of(party, value, false);
    }

    fn value_of(&mut self, party: Party, mut value: Value, raw: bool) {
        if let Value::Array(items) = value {
            self.batch(party, items);
            return;
        }
        self.abridged = !raw && value.get("jsonrpc").is_none();
        if self.abridged
            && let Value::Object(object) = &mut value
            && ["method", "result", "error"].iter().any(|member| object.contains_key(*member))
        {
            object.insert("jsonrpc".to_owned(), "2.0".into());
        }
        let null_id = value.get("id").is_some_and(Value::is_null);
        match Message::from_value(value.clone()) {
            Ok(message) => self.message(party, message, null_id),
            Err(malformed) => self.malformed(party, &malformed, &value),
        }
    }

    fn batch(&mut self, party: Party, items: Vec<Value>) {
        let allowed = self.version == Some(Version::V2025_03_26);
        if !allowed {
            self.report(
                "batch",
                Severity::Error,
                party,
                "base protocol: batches exist in 2025-03-26 only",
                "an array of messages (a batch)",
                "receivers of every other revision need not read it",
            );
        }
        for item in items {
            if allowed && item.get("method").and_then(Value::as_str) == Some("initialize") {
                self.report(
                    "initialize-in-batch",
                    Severity::Error,
                    party,
                    "2025-03-26, lifecycle: initialize MUST NOT be in a batch",
                    "`initialize` inside a batch",
                    "nothing else may be sent before its answer",
                );
            }
            if !item.is_array() {
                self.value(party, item);
            }
        }
    }

    fn malformed(&mut self, party: Party, malformed: &Malformed, value: &Value) {
        if party == Party::Client {
            self.client_sent_nonsense = true;
        }
        let number = self.entry + 1;
        let (id, message) = match &malformed.reason {
            MalformedReason::NoMessage => (
                "not-a-message",
                format!("line {number} is a JSON object without jsonrpc/method/id/result: no message"),
            ),
            MalformedReason::NotAnObject => {
                ("not-a-message", format!("line {number} is JSON, but no message"))
            }
            MalformedReason::WrongVersion => {
                ("jsonrpc-version", "`jsonrpc` is missing or not \"2.0\"".to_owned())
            }
            MalformedReason::BadId(bad) if value.get("result").is_some() => {
                ("answer-id-invalid", format!("an answer that no request can have: {bad}"))
            }
            MalformedReason::BadId(bad) => ("request-id-invalid", bad.to_string()),
            MalformedReason::ResultAndError => {
                ("result-and-error", "a response with both `result` and `error`".to_owned())
            }
            MalformedReason::ParamsNotAnObject => {
                ("params-not-an-object", "`params` is no object".to_owned())
            }
            MalformedReason::BadErrorObject => {
                ("error-object-invalid", "`error` without an integer code and a message".to_owned())
            }
            MalformedReason::ResultWithoutId => {
                ("answer-without-id", "a result without an id: it answers no request".to_owned())
            }
            other => ("malformed", other.to_string()),
        };
        // In an abridged message a missing member is left out, not wrong.
        if self.abridged && matches!(malformed.reason, MalformedReason::BadErrorObject) {
            let has_wrong = value.get("error").is_some_and(|error| {
                error.get("code").is_some_and(|code| code.as_i64().is_none()) || !error.is_object()
            });
            if !has_wrong {
                self.abridged_error(value);
                return;
            }
        }
        self.report(
            id,
            Severity::Error,
            party,
            "base protocol, messages",
            message,
            "a receiver cannot tell what it is for",
        );
        // The answer cannot be read, but its request is over.
        if party == Party::Server
            && let Some(id) = &malformed.id
        {
            self.open.retain(|open| open.id != *id);
        }
    }

    fn abridged_error(&mut self, value: &Value) {
        if let Some(Ok(id)) = value.get("id").map(RequestId::from_value) {
            let code = value.get("error").and_then(|error| error.get("code")?.as_i64()).unwrap_or_default();
            self.message(Party::Server, Message::error(Some(id), code, ""), false);
        }
    }

    fn message(&mut self, party: Party, message: Message, null_id: bool) {
        match (party, message) {
            (Party::Client, Message::Request { id, method, params }) => {
                self.client_request(id, method, params)
            }
            (Party::Client, Message::Notification { method, params }) => {
                self.client_notification(&method, params.as_ref());
            }
            (Party::Client, Message::Response { id, .. } | Message::Error { id: Some(id), .. }) => {
                self.client_answer(&id);
            }
            (Party::Server, Message::Request { id, method, params }) => {
                self.server_request(id, method, params)
            }
            (Party::Server, Message::Notification { method, params }) => {
                self.server_notification(&method, params.as_ref());
            }
            (Party::Server, Message::Response { id, result }) => self.answer(&id, Ok(result)),
            (Party::Server, Message::Error { id: Some(id), error }) => self.answer(&id, Err(error)),
            (party, Message::Error { id: None, error }) => self.error_without_id(party, &error, null_id),
        }
    }
}
