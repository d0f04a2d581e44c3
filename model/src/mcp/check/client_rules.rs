//! What the client sends: requests, ids, capabilities, notifications.

use super::{Judge, Open, Party};
use crate::finding::Severity;
use crate::mcp::jsonrpc::RequestId;
use crate::mcp::negotiation::messages::{META_CAPABILITIES, META_VERSION};
use crate::mcp::version::{Era, Version};
use serde_json::Value;

impl Judge {
    pub(super) fn client_request(&mut self, id: RequestId, method: String, params: Option<Value>) {
        self.client_has_spoken = true;
        self.notifications_since_request.clear();
        let in_flight = self.open.iter().any(|open| open.id == id && !open.cancelled);
        if in_flight {
            self.report(
                "id-reused-in-flight",
                Severity::Error,
                Party::Client,
                "base protocol, requests: the id must differ from those of unanswered requests (proposition 3.3)",
                format!("id {id} reused while in flight"),
                "two requests are open under one id: one caller may get the other's answer",
            );
            for open in &mut self.open {
                open.ambiguous |= open.id == id;
            }
        } else if self.is_legacy() && self.answered.contains(&id) {
            self.report(
                "id-reused-in-session",
                Severity::Error,
                Party::Client,
                "2025-11-25 and older, base protocol, requests: an id is never reused in a session",
                format!("id {id} was used before in this session"),
                "a late answer to the first request would be taken for the second",
            );
        }
        self.requested_era(&method, params.as_ref());
        self.requested_capability(&method);
        self.requested_in_time(&method);
        self.requested_cursor(&method, params.as_ref());
        self.requested_token(&id, params.as_ref());
        self.retried_with_input(&id, &method, params.as_ref());
        if self.gone {
            self.report(
                "request-after-exit",
                Severity::Warning,
                Party::Client,
                "transports, stdio: after the process has ended a new one is needed",
                format!("request {id} to a server that has exited"),
                "nobody will answer",
            );
        }
        self.open.push(Open {
            id,
            method,
            params,
            entry: self.entry,
            cancelled: false,
            ambiguous: in_flight,
        });
    }

    /// The era that a request shows, and the metadata that it owes.
    fn requested_era(&mut self, method: &str, params: Option<&Value>) {
        let meta = params.and_then(|params| params.get("_meta"));
        let version = meta.and_then(|meta| meta.get(META_VERSION));
        if method == "initialize" {
            self.requested_initialize(params);
            return;
        }
        if version.is_some() && self.era.is_none() {
            self.era = Some(Era::Modern);
        }
        if let Some(capabilities) = meta.and_then(|meta| meta.get(META_CAPABILITIES)?.as_object()) {
            self.client_capabilities = Some(capabilities.clone());
        }
        if self.abridged || !(self.is_modern() || method == "server/discover") {
            return;
        }
        for key in [META_VERSION, META_CAPABILITIES] {
            if meta.and_then(|meta| meta.get(key)).is_none() {
                self.report(
                    "metadata-missing",
                    Severity::Error,
                    Party::Client,
                    "2026-07-28, base protocol, request metadata",
                    format!("`{method}` without `_meta[\"{key}\"]`"),
                    "the server has to refuse it with -32602",
                );
            }
        }
        if version.and_then(Version::from_value).is_some_and(|version| version.era() == Era::Legacy) {
            self.report(
                "legacy-version-in-metadata",
                Severity::Error,
                Party::Client,
                "2026-07-28, versioning: per-request revisions are modern ones",
                "a revision with a handshake in `_meta`",
                "a legacy revision is reached through `initialize` only",
            );
        }
        if ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"].contains(&method) {
            self.report(
                "method-removed",
                Severity::Error,
                Party::Client,
                "2026-07-28, changes: removed methods",
                format!("`{method}` does not exist in the modern era"),
                "the server does not know it",
            );
        }
    }

    fn requested_capability(&mut self, method: &str) {
        let Some(capability) = capability_of(method) else { return };
        let Some(declared) = &self.capabilities else { return };
        if !declared.contains_key(capability) {
            self.report(
                "capability-not-declared",
                Severity::Error,
                Party::Client,
                "lifecycle, capabilities: only declared features are used",
                format!("`{method}` called although the server did not declare `{capability}`"),
                "the server need not know the method",
            );
        } else if method == "resources/subscribe"
            && declared.get("resources").and_then(|r| r.get("subscribe")) != Some(&Value::Bool(true))
        {
            self.report(
                "capability-not-declared",
                Severity::Error,
                Party::Client,
                "server features, resources: `subscribe` must be declared",
                "`resources/subscribe` called although `resources.subscribe` is not declared",
                "the server need not know the method",
            );
        }
    }

    /// Before the answer to `initialize` only `ping` should be sent; after it `notifications/initialized` first.
    fn requested_in_time(&mut self, method: &str) {
        if ["ping", "initialize", "server/discover"].contains(&method) {
            return;
        }
        if self.open.iter().any(|open| open.method == "initialize") {
            self.report(
                "request-before-initialize-answer",
                Severity::Warning,
                Party::Client,
                "2025-11-25 and older, lifecycle: before the answer to initialize only ping SHOULD be sent",
                format!("`{method}` sent before `initialize` was answered"),
                "version and capabilities are not agreed yet",
            );
        } else if self.is_legacy() && self.full_initialize && !self.initialized {
            self.report(
                "initialized-missing",
                Severity::Error,
                Party::Client,
                "2025-11-25 and older, lifecycle: the client MUST send notifications/initialized",
                format!("`{method}` sent without `notifications/initialized` before it"),
                "the server may refuse or ignore requests until then",
            );
            self.initialized = true;
        }
    }

    pub(super) fn client_notification(&mut self, method: &str, params: Option<&Value>) {
        self.client_has_spoken = true;
        self.notifications_since_request.push(method.to_owned());
        match method {
            "notifications/initialized" => {
                if self.is_modern() && !self.abridged {
                    self.report(
                        "initialized-in-modern",
                        Severity::Warning,
                        Party::Client,
                        "2026-07-28: there is no handshake",
                        "`notifications/initialized` on a modern connection",
                        "it has no meaning there",
                    );
                }
                if self.open.iter().any(|open| open.method == "initialize") {
                    self.report(
                        "initialized-too-early",
                        Severity::Error,
                        Party::Client,
                        "2025-11-25 and older, lifecycle: initialized follows the answer",
                        "`notifications/initialized` before `initialize` was answered",
                        "the versions are not agreed yet",
                    );
                }
                self.initialized = true;
            }
            "notifications/cancelled" => self.client_cancels(params),
            _ => {}
        }
    }

    fn client_cancels(&mut self, params: Option<&Value>) {
        let id =
            params.and_then(|params| params.get("requestId")).and_then(|id| RequestId::from_value(id).ok());
        let Some(id) = id else {
            if !self.abridged {
                self.report(
                    "cancel-without-request",
                    Severity::Error,
                    Party::Client,
                    "utilities, cancellation: requestId names the request",
                    "`notifications/cancelled` without a valid `requestId`",
                    "it cancels nothing",
                );
            }
            return;
        };
        let found = self.open.iter_mut().find(|open| open.id == id);
        match found.map(|open| (open.method.clone(), std::mem::replace(&mut open.cancelled, true))) {
            Some((method, _)) if method == "initialize" => self.report(
                "initialize-cancelled",
                Severity::Error,
                Party::Client,
                "utilities, cancellation: initialize MUST NOT be cancelled",
                "`initialize` was cancelled",
                "the session cannot be opened any more",
            ),
            Some(_) => {}
            None if self.answered.contains(&id) => self.report(
                "cancel-after-answer",
                Severity::Note,
                Party::Client,
                "utilities, cancellation: only open requests are cancelled",
                format!("request {id} was cancelled after its answer"),
                "the two may have crossed; it must be ignored",
            ),
            None => {
                let other = id.coerced().filter(|other| self.open.iter().any(|open| open.id == *other));
                let severity = if other.is_some() { Severity::Error } else { Severity::Warning };
                if other.is_some() || self.client_has_spoken && !self.open.is_empty() {
                    self.report(
                        "cancel-unknown",
                        severity,
                        Party::Client,
                        "utilities, cancellation: requestId is the id of an open request, type included",
                        match other {
                            Some(other) => format!("cancelled request {id}, but the open one is {other}"),
                            None => format!("cancelled request {id}, which is not open"),
                        },
                        "the server goes on working on the request",
                    );
                }
            }
        }
    }

    pub(super) fn client_answer(&mut self, id: &RequestId) {
        self.client_has_spoken = true;
        let before = self.server_open.len();
        self.server_open.retain(|open| open.id != *id);
        if self.server_open.len() < before {
            return;
        }
        let coerced = id.coerced().filter(|other| self.server_open.iter().any(|open| open.id == *other));
        if let Some(other) = coerced {
            self.report(
                "id-type-changed",
                Severity::Error,
                Party::Client,
                "base protocol, responses: the id is that of the request, type included (proposition 3.3)",
                format!("id changed type ({other} -> {id})"),
                "`1` and `\"1\"` are different ids",
            );
            self.server_open.retain(|open| open.id != other);
        } else if !self.server_used.is_empty() {
            self.report(
                "answer-to-unknown-id",
                Severity::Error,
                Party::Client,
                "base protocol, responses: the id is that of an open request",
                format!("answer to unknown or already answered id {id}"),
                "no request of the server has it",
            );
        }
    }
}

/// The server capability that a method needs.
pub(super) fn capability_of(method: &str) -> Option<&'static str> {
    let (family, _) = method.split_once('/')?;
    match family {
        "tools" => Some("tools"),
        "prompts" => Some("prompts"),
        "resources" => Some("resources"),
        "logging" => Some("logging"),
        "completion" => Some("completions"),
        _ => None,
    }
}
