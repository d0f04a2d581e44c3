//! Opening, server requests, notifications, silence, death, and what is left open at the end.

use super::{Judge, Open, Party};
use crate::finding::Severity;
use crate::mcp::jsonrpc::{ErrorObject, RequestId, code};
use crate::mcp::negotiation::client::ListKind;
use crate::mcp::negotiation::messages::{META_SUBSCRIPTION, versions};
use crate::mcp::version::{Era, Version};
use serde_json::Value;

/// A progress token that a request gave.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    token: Value,
    request: RequestId,
    last: Option<f64>,
}

impl Judge {
    pub(super) fn requested_initialize(&mut self, params: Option<&Value>) {
        if self.is_modern() && !self.open.iter().any(|open| open.method == "server/discover") {
            // A probe that was answered otherwise leaves the era open; a modern result settles it.
            self.report(
                "initialize-in-modern",
                Severity::Warning,
                Party::Client,
                "2026-07-28, versioning: the era is a property of the server",
                "`initialize` on a connection that is modern",
                "a server that is pinned to the modern era refuses it",
            );
        }
        self.era = Some(Era::Legacy);
        self.capabilities = None;
        let offered = params.and_then(|params| params.get("protocolVersion")).and_then(Value::as_str);
        self.offered = offered.map(str::to_owned);
        let capabilities = params.and_then(|params| params.get("capabilities")?.as_object());
        self.client_capabilities = capabilities.cloned();
        if !self.abridged {
            for key in ["protocolVersion", "capabilities", "clientInfo"] {
                if params.and_then(|params| params.get(key)).is_none() {
                    self.report(
                        "initialize-incomplete",
                        Severity::Error,
                        Party::Client,
                        "2025-11-25 and older, lifecycle, initialize",
                        format!("`initialize` without `{key}`"),
                        "the parameter is required",
                    );
                }
            }
        }
    }

    pub(super) fn initialize_result(&mut self, result: &Value) {
        self.capabilities = result.get("capabilities").and_then(Value::as_object).cloned();
        self.full_initialize = result.get("protocolVersion").is_some() && !self.abridged;
        let Some(text) = result.get("protocolVersion") else {
            if !self.abridged {
                self.report(
                    "initialize-result-incomplete",
                    Severity::Error,
                    Party::Server,
                    "2025-11-25 and older, lifecycle, initialize",
                    "the initialize result has no `protocolVersion`",
                    "no version is agreed",
                );
            }
            return;
        };
        if !self.abridged {
            for key in ["capabilities", "serverInfo"] {
                if result.get(key).is_none() {
                    self.report(
                        "initialize-result-incomplete",
                        Severity::Error,
                        Party::Server,
                        "2025-11-25 and older, lifecycle, initialize",
                        format!("the initialize result has no `{key}`"),
                        "the member is required",
                    );
                }
            }
        }
        let version = Version::from_value(text);
        let known = version
            .is_some_and(|version| Version::LEGACY.contains(&version) || version == Version::V2024_10_07);
        self.version = version.filter(|_| known);
        let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
        if !known {
            self.report(
                "agreed-version-unknown",
                Severity::Error,
                Party::Server,
                "2025-11-25 and older, lifecycle, version negotiation: the answer is a version that the server supports (proposition 3.4.1)",
                format!("agreed to a version outside its own set: no revision with a handshake is named `{text}`"),
                "a server that confirms whatever is offered has not agreed to anything",
            );
        } else if self.offered.as_ref().is_some_and(|offered| *offered != text) {
            let offered = self.offered.clone().unwrap_or_default();
            self.report(
                "version-counter-offer",
                Severity::Note,
                Party::Client,
                "2025-11-25 and older, lifecycle, version negotiation (proposition 3.4.1)",
                format!(
                    "the server answered {offered} with {text}: connected iff {text} is in the client's set"
                ),
                "the server may name another version that it supports; the client decides",
            );
        }
    }

    pub(super) fn initialize_refused(&mut self, error: &ErrorObject) {
        let names = error.data.as_ref().and_then(|data| data.get("supported"));
        if error.code == code::UNSUPPORTED_VERSION && !versions(names).is_empty() {
            self.report(
                "not-connected",
                Severity::Note,
                Party::Client,
                "2026-07-28, versioning: a modern server refuses initialize and names its versions",
                "outcome: not connected; the server speaks the modern era only",
                "a client that has the modern era goes on with one of the named versions",
            );
            return;
        }
        self.report(
            "initialize-refused",
            Severity::Error,
            Party::Server,
            "2025-11-25 and older, lifecycle, version negotiation: the server answers with a version that it supports (proposition 3.4.1)",
            format!("must answer `initialize` with a version it supports instead of an error ({})", error.code),
            "the client decides whether it can use that version",
        );
        self.report(
            "not-connected",
            Severity::Warning,
            Party::Server,
            "2025-11-25 and older, lifecycle",
            "outcome: not connected",
            "the session was not opened",
        );
    }

    pub(super) fn server_request(&mut self, id: RequestId, method: String, params: Option<Value>) {
        if self.is_modern() {
            self.report(
                "server-request-in-modern",
                Severity::Error,
                Party::Server,
                "2026-07-28, base protocol: requests go from client to server only",
                format!("the server sent the request `{method}`"),
                "modern clients never answer; input is asked for in results",
            );
            return;
        }
        if self.server_open.iter().any(|open| open.id == id) {
            self.report(
                "id-reused-in-flight",
                Severity::Error,
                Party::Server,
                "base protocol, requests: an id is not reused (proposition 3.3)",
                format!("id {id} reused while in flight"),
                "two requests are open under one id",
            );
        } else if self.server_used.contains(&id) {
            self.report(
                "id-reused-in-session",
                Severity::Error,
                Party::Server,
                "2025-11-25 and older, base protocol, requests: an id is never reused in a session",
                format!("id {id} was used before in this session"),
                "a late answer to the first request would be taken for the second",
            );
        }
        let needs = match method.as_str() {
            "sampling/createMessage" => Some("sampling"),
            "elicitation/create" => Some("elicitation"),
            "roots/list" => Some("roots"),
            _ => None,
        };
        if let (Some(needs), Some(declared)) = (needs, &self.client_capabilities)
            && !declared.contains_key(needs)
        {
            self.report(
                "client-capability-not-declared",
                Severity::Error,
                Party::Server,
                "lifecycle, capabilities: only declared features are used",
                format!("`{method}` although the client did not declare `{needs}`"),
                "the client answers -32601 at best",
            );
        }
        if self.full_initialize && !self.initialized && method != "ping" {
            self.report(
                "server-request-before-initialized",
                Severity::Warning,
                Party::Server,
                "2025-11-25 and older, lifecycle: before initialized only ping and logging SHOULD be sent",
                format!("`{method}` before `notifications/initialized`"),
                "the client is not ready",
            );
        }
        self.server_used.push(id.clone());
        let entry = self.entry;
        self.server_open.push(Open { id, method, params, entry, cancelled: false, ambiguous: false });
    }

    pub(super) fn requested_token(&mut self, id: &RequestId, params: Option<&Value>) {
        let Some(token) = params.and_then(|params| params.get("_meta")?.get("progressToken")) else { return };
        if !(token.is_string() || token.is_i64() || token.is_u64()) {
            self.report(
                "progress-token-invalid",
                Severity::Error,
                Party::Client,
                "utilities, progress: a token is a string or an integer",
                format!("the progress token {token} is neither a string nor an integer"),
                "the server cannot use it",
            );
        }
        let open = |token: &Token| self.open.iter().any(|open| open.id == token.request);
        if self.tokens.iter().any(|known| known.token == *token && open(known)) {
            self.report(
                "progress-token-reused",
                Severity::Error,
                Party::Client,
                "utilities, progress: tokens are unique among active requests",
                format!("the progress token {token} belongs to another open request"),
                "progress of one call is taken for the other's",
            );
        }
        self.tokens.push(Token { token: token.clone(), request: id.clone(), last: None });
    }

    pub(super) fn server_notification(&mut self, method: &str, params: Option<&Value>) {
        if method == "notifications/progress" {
            self.progress(params);
            return;
        }
        if let Some(kind) = ListKind::of_change(method) {
            self.list_change(kind);
        }
        if !self.is_modern() || self.abridged {
            return;
        }
        let id = params.and_then(|params| params.get("_meta")?.get(META_SUBSCRIPTION));
        let id = id.and_then(|id| RequestId::from_value(id).ok());
        let subscription = ListKind::of_change(method).is_some()
            || method == "notifications/resources/updated"
            || method == "notifications/subscriptions/acknowledged";
        if !subscription {
            return;
        }
        match id {
            None => self.report(
                "subscription-id-missing",
                Severity::Error,
                Party::Server,
                "2026-07-28, subscriptions: every message carries the subscription's id",
                format!("`{method}` without a subscription id"),
                "the client cannot tell which subscription it belongs to",
            ),
            Some(id) => {
                let open =
                    self.open.iter().any(|open| open.id == id && open.method == "subscriptions/listen");
                if !open {
                    self.report(
                        "subscription-unknown",
                        Severity::Error,
                        Party::Server,
                        "2026-07-28, subscriptions: the id is that of an open subscriptions/listen",
                        format!("`{method}` for subscription {id}, which is not open"),
                        "nobody asked for it",
                    );
                } else if method == "notifications/subscriptions/acknowledged" {
                    self.subscribed.push(id);
                } else if !self.subscribed.contains(&id) {
                    self.report(
                        "subscription-not-acknowledged",
                        Severity::Error,
                        Party::Server,
                        "2026-07-28, subscriptions: the first message MUST be the acknowledgement",
                        format!("`{method}` before the acknowledgement of subscription {id}"),
                        "the client does not know what is honoured",
                    );
                }
            }
        }
    }

    fn progress(&mut self, params: Option<&Value>) {
        const CLAUSE: &str = "utilities, progress: the token is one that an open request gave";
        let token = params.and_then(|params| params.get("progressToken"));
        let Some(token) = token else {
            if !self.abridged {
                let text = "progress without a token";
                self.report(
                    "progress-without-token",
                    Severity::Error,
                    Party::Server,
                    CLAUSE,
                    text,
                    "it belongs to no request",
                );
            }
            return;
        };
        let Some(known) = self.tokens.iter().rposition(|known| known.token == *token) else {
            if !self.client_has_spoken {
                return;
            }
            self.report(
                "progress-token-unknown",
                Severity::Error,
                Party::Server,
                CLAUSE,
                format!("progress for a token that was never given ({token})"),
                "a token must be in `_meta.progressToken` of the request; the request's id is none",
            );
            if !self.open.is_empty() {
                self.report(
                    "timer-not-reset",
                    Severity::Note,
                    Party::Client,
                    "utilities, progress: unknown tokens are ignored (proposition 3.7.2)",
                    "timer not reset: this progress keeps no request alive",
                    "a long call needs a progress token in its request",
                );
            }
            return;
        };
        let value = params.and_then(|params| params.get("progress")?.as_f64());
        let Some(known) = self.tokens.get_mut(known) else { return };
        let request = known.request.clone();
        let increasing = match (known.last, value) {
            (Some(last), Some(value)) => value > last,
            _ => true,
        };
        known.last = value.or(known.last);
        if !self.open.iter().any(|open| open.id == request) {
            self.report(
                "progress-after-answer",
                Severity::Error,
                Party::Server,
                "utilities, progress: none after the answer",
                format!("progress for request {request} after its answer"),
                "the token is no longer active",
            );
        } else if !increasing {
            self.report(
                "progress-not-increasing",
                Severity::Error,
                Party::Server,
                "utilities, progress: the value MUST increase",
                "the progress value does not increase",
                "a client may take a server that repeats itself for one that makes progress",
            );
        }
    }

    pub(super) fn error_without_id(&mut self, party: Party, error: &ErrorObject, null_id: bool) {
        if party == Party::Client {
            return;
        }
        if let Some(method) = self.notifications_since_request.last().cloned() {
            self.report(
                "reply-to-notification",
                Severity::Error,
                Party::Server,
                "base protocol, notifications: the receiver MUST NOT answer",
                format!("replied to a notification (`{method}`) with error {}", error.code),
                "a notification has no id, so no answer can belong to it (proposition 3.3.3)",
            );
        } else if !self.client_sent_nonsense && self.client_has_spoken {
            let how = if null_id { "null" } else { "no" };
            self.report(
                "error-without-id",
                Severity::Error,
                Party::Server,
                "base protocol, errors: the id may be missing only when the request's could not be read",
                format!("an error with {how} id, although every request could be read"),
                "the request that it belongs to stays open",
            );
            self.mismatched_answers = true;
        }
    }

    pub(super) fn silent(&mut self, seconds: f64) {
        let waiting: Vec<String> = self.waiting().map(|open| open.id.to_string()).collect();
        if waiting.is_empty() {
            return;
        }
        self.silent_until = self.entry;
        self.report(
            "silence",
            Severity::Warning,
            Party::Server,
            "utilities, timeouts (proposition 3.7.2, end iv)",
            format!("no answer to request {} for {seconds} s", waiting.join(", ")),
            "a request without an answer blocks its caller until a timeout",
        );
    }

    pub(super) fn exit(&mut self, code: i64) {
        self.gone = true;
        let waiting: Vec<String> = self.waiting().map(|open| open.id.to_string()).collect();
        if !waiting.is_empty() {
            self.report(
                "exit-with-open-requests",
                Severity::Error,
                Party::Server,
                "transports, stdio: requests in flight are lost (proposition 3.7.2, end iv)",
                format!("exited with {code} while request {} was open", waiting.join(", ")),
                "each open call has to end as `connection closed`, exactly once",
            );
        } else if code != 0 {
            self.report(
                "exit-code",
                Severity::Warning,
                Party::Server,
                "transports, stdio, shutdown",
                format!("exited with {code}"),
                "a server exits with 0 when its input ends",
            );
        }
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &Open> {
        self.open.iter().filter(|open| !open.cancelled && open.method != "subscriptions/listen")
    }

    pub(super) fn end(&mut self) {
        let open: Vec<Open> = self.waiting().cloned().collect();
        for request in &open {
            let party =
                if self.mismatched_answers || request.ambiguous { Party::Client } else { Party::Server };
            let (id, text) = if request.ambiguous {
                ("request-unanswered", format!("one of the calls with id {} is unanswered", request.id))
            } else if party == Party::Client {
                ("request-unanswered", format!("request {} stays open: it is unanswered", request.id))
            } else {
                ("request-unanswered", format!("request {} (`{}`) is unanswered", request.id, request.method))
            };
            // A recording that merely stops shows nothing about an answer that may still come.
            let shown = self.mismatched_answers
                || request.ambiguous
                || self.gone
                || request.entry < self.silent_until;
            let severity = if shown { Severity::Error } else { Severity::Note };
            self.report_at(
                request.entry,
                id,
                severity,
                party,
                "base protocol, responses: every request is answered (proposition 3.3)",
                text,
                "its caller waits until a timeout",
            );
        }
        self.end_lists();
    }
}
