//! Calls and other requests on an open connection: metadata, input rounds, limits, cancellation, lost sessions
//! (mcp.md 1.7, 1.8, 3.3, 3.5, 3.6; proposition 3.7).

use super::{Client, Deadline, Failure, Ignored, Output, Phase, Purpose};
use crate::mcp::ends::End;
use crate::mcp::jsonrpc::{ErrorObject, RequestId, cancelled};
use crate::mcp::negotiation::messages::{ProbeAnswer, read_modern_error};
use serde_json::{Map, Value, json};

/// A tool call that the client is asked to make.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSpec {
    /// The caller's number for it; returned in [`Output::Ended`].
    pub call: u32,
    /// The tool's own name (not qualified).
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// Further `_meta` of the request.
    pub meta: Map<String, Value>,
    /// Limit of this call instead of the profile's, in milliseconds.
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpenCall {
    call: u32,
    method: String,
    params: Option<Value>,
    rounds: u32,
    version_retried: bool,
    session_retried: bool,
    timeout_ms: u64,
}

impl Client {
    pub(super) fn call(&mut self, spec: CallSpec, out: &mut Vec<Output>) {
        let mut params = Map::new();
        params.insert("name".to_owned(), spec.tool.into());
        params.insert("arguments".to_owned(), spec.arguments);
        if !spec.meta.is_empty() {
            params.insert("_meta".to_owned(), Value::Object(spec.meta));
        }
        self.make(
            OpenCall {
                call: spec.call,
                method: "tools/call".to_owned(),
                params: Some(Value::Object(params)),
                rounds: 0,
                version_retried: false,
                session_retried: false,
                timeout_ms: spec.timeout_ms.unwrap_or(self.profile.call_timeout_ms),
            },
            out,
        );
    }

    pub(super) fn request_for(
        &mut self,
        call: u32,
        method: String,
        params: Option<Value>,
        out: &mut Vec<Output>,
    ) {
        let timeout_ms = self.profile.call_timeout_ms;
        self.make(
            OpenCall {
                call,
                method,
                params,
                rounds: 0,
                version_retried: false,
                session_retried: false,
                timeout_ms,
            },
            out,
        );
    }

    fn make(&mut self, call: OpenCall, out: &mut Vec<Output>) {
        if self.phase == Phase::Ready {
            let params = call.params.clone();
            self.send_call(call, params, out);
        } else {
            out.push(Output::Ended { call: call.call, end: End::ConnectionClosed });
        }
    }

    fn send_call(&mut self, call: OpenCall, mut params: Option<Value>, out: &mut Vec<Output>) {
        let id = self.fresh_id();
        if self.profile.sends_progress_token
            && call.method == "tools/call"
            && let Some(Value::Object(params)) = params.as_mut()
        {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            if let Value::Object(meta) = meta {
                meta.insert("progressToken".to_owned(), id.to_value());
            }
        }
        let (version, after_ms, method) = (self.agreed, call.timeout_ms, call.method.clone());
        self.send(id.clone(), &method, params, version, Purpose::Call(Box::new(call)), out);
        out.push(Output::Wait { deadline: Deadline::Call(id.clone()), after_ms });
        if let Some(after_ms) = self.profile.idle_timeout_ms {
            out.push(Output::Wait { deadline: Deadline::Idle(id), after_ms });
        }
    }

    pub(super) fn call_answered(
        &mut self,
        id: &RequestId,
        mut call: OpenCall,
        answer: Result<Value, ErrorObject>,
        out: &mut Vec<Output>,
    ) {
        match answer {
            Ok(result) if self.is_modern() && wants_input(&result) => self.input_round(id, call, result, out),
            Ok(result) => self.end_call(id, &call, End::Result(result), out),
            Err(error) => match read_modern_error(&error, &self.profile) {
                ProbeAnswer::RetryWith(version) if self.is_modern() && !call.version_retried => {
                    self.agree_again(version);
                    self.stop_waits(id, out);
                    call.version_retried = true;
                    let params = call.params.clone();
                    self.send_call(call, params, out);
                }
                _ => self.end_call(id, &call, End::ProtocolError(error), out),
            },
        }
    }

    /// Multi-round-trip requests: a new id, the original params, every answer, and `requestState` byte for byte iff it
    /// was there (mcp.md 1.7).
    fn input_round(&mut self, id: &RequestId, mut call: OpenCall, result: Value, out: &mut Vec<Output>) {
        let mut responses = Map::new();
        for (key, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            match self.identity.answer(method, request.get("params")) {
                Some(answer) => {
                    responses.insert(key.clone(), answer);
                }
                None => {
                    let method = method.to_owned();
                    self.end_call(id, &call, End::InputNotServed { method }, out);
                    return;
                }
            }
        }
        call.rounds += 1;
        if call.rounds > self.profile.input_rounds {
            let rounds = self.profile.input_rounds;
            self.end_call(id, &call, End::TooManyInputRounds { rounds }, out);
            return;
        }
        let mut params = match call.params.clone() {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        if result.get("inputRequests").is_some() {
            params.insert("inputResponses".to_owned(), Value::Object(responses));
        }
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".to_owned(), state.clone());
        }
        self.stop_waits(id, out);
        self.send_call(call, Some(Value::Object(params)), out);
    }

    fn stop_waits(&self, id: &RequestId, out: &mut Vec<Output>) {
        out.push(Output::Stop(Deadline::Call(id.clone())));
        if self.profile.idle_timeout_ms.is_some() {
            out.push(Output::Stop(Deadline::Idle(id.clone())));
        }
    }

    pub(super) fn end_call(&mut self, id: &RequestId, call: &OpenCall, end: End, out: &mut Vec<Output>) {
        self.stop_waits(id, out);
        out.push(Output::Ended { call: call.call, end });
    }

    pub(super) fn progressed(&mut self, params: Option<&Value>, out: &mut Vec<Output>) {
        let token = params.and_then(|params| params.get("progressToken"));
        let id = token.and_then(|token| RequestId::from_value(token).ok());
        let known =
            id.as_ref().filter(|_| self.profile.sends_progress_token).and_then(|id| self.open.get(id));
        let (Some(Purpose::Call(call)), Some(id)) = (known, id) else {
            out.push(Output::Ignored(Ignored::Notification("notifications/progress".to_owned())));
            return;
        };
        let (number, timeout_ms) = (call.call, call.timeout_ms);
        out.push(Output::Progress { call: number });
        if self.profile.progress_extends_timeout {
            out.push(Output::Wait { deadline: Deadline::Call(id.clone()), after_ms: timeout_ms });
        }
        if let Some(after_ms) = self.profile.idle_timeout_ms {
            out.push(Output::Wait { deadline: Deadline::Idle(id), after_ms });
        }
    }

    pub(super) fn call_timed_out(&mut self, id: &RequestId, out: &mut Vec<Output>) {
        let Some(Purpose::Call(call)) = self.open.abandon(id) else { return };
        out.push(Output::Send(cancelled(id, "Request timed out")));
        let end = End::TimedOut { after_ms: call.timeout_ms };
        self.end_call(id, &call, end, out);
    }

    /// The idle limit ends the call without telling the server (mcp.md 3.5).
    pub(super) fn call_idle(&mut self, id: &RequestId, out: &mut Vec<Output>) {
        let Some(Purpose::Call(call)) = self.open.abandon(id) else { return };
        let after_ms = self.profile.idle_timeout_ms.unwrap_or_default();
        self.end_call(id, &call, End::Idle { after_ms }, out);
    }

    pub(super) fn cancel(&mut self, number: u32, out: &mut Vec<Output>) {
        let is_it = |purpose: &Purpose| matches!(purpose, Purpose::Call(call) if call.call == number);
        let found = self.open.iter().find(|(_, purpose)| is_it(purpose)).map(|(id, _)| id.clone());
        let Some((id, Some(Purpose::Call(call)))) = found.map(|id| (id.clone(), self.open.abandon(&id)))
        else {
            out.push(Output::Ignored(Ignored::UnknownCall(number)));
            return;
        };
        out.push(Output::Send(cancelled(&id, "interrupted by the user")));
        self.end_call(&id, &call, End::Interrupted, out);
    }

    /// Every open call ends when its connection does.
    pub(super) fn end_open_calls(&mut self, out: &mut Vec<Output>) {
        for (id, purpose) in self.open.drain() {
            if let Purpose::Call(call) = purpose {
                self.end_call(&id, &call, End::ConnectionClosed, out);
            }
        }
        for call in std::mem::take(&mut self.parked) {
            out.push(Output::Ended { call: call.call, end: End::ConnectionClosed });
        }
    }

    pub(super) fn http_status(&mut self, id: &RequestId, status: u16, body: String, out: &mut Vec<Output>) {
        let Some(purpose) = self.take(id, out) else { return };
        let refused = ErrorObject::new(0, format!("HTTP status {status}"));
        match purpose {
            Purpose::Call(call) if status == 401 => self.end_call(id, &call, End::NeedsAuthorization, out),
            Purpose::Call(call) => self.end_call(id, &call, End::HttpStatus { status, body }, out),
            Purpose::Discover => self.probe_answered(Err(refused), out),
            Purpose::Initialize if status == 401 => self.fail(Failure::NeedsAuthorization, out),
            Purpose::Initialize => self.fail(Failure::HttpStatus(status), out),
            Purpose::Reprobe => self.reprobe_answered(Err(refused), out),
            Purpose::Listen => self.listen_ended(out),
            Purpose::Rediscover => self.rediscovered(Err(refused), out),
            Purpose::List { .. } if self.capabilities.is_none() => {
                self.fail(Failure::HttpStatus(status), out);
            }
            Purpose::List { kind, retried } => self.list_answered(kind, retried, Err(refused), out),
        }
    }

    /// A lost session: a new connection, and the call repeated at most once (F82).
    pub(super) fn session_lost(&mut self, id: &RequestId, out: &mut Vec<Output>) {
        match self.take(id, out) {
            Some(Purpose::Call(call)) if call.session_retried => {
                self.end_call(id, &call, End::SessionExpired, out);
            }
            Some(Purpose::Call(mut call)) => {
                call.session_retried = true;
                self.stop_waits(id, out);
                self.parked.push(*call);
                if self.phase == Phase::Ready {
                    let parked = std::mem::take(&mut self.parked);
                    self.end_open_calls(out);
                    self.parked = parked;
                    self.phase = Phase::Closed;
                    out.push(Output::Close);
                    self.start(false, out);
                }
            }
            Some(_) => self.fail(Failure::HttpStatus(404), out),
            None => {}
        }
    }

    pub(super) fn resume_parked(&mut self, out: &mut Vec<Output>) {
        for call in std::mem::take(&mut self.parked) {
            let params = call.params.clone();
            self.send_call(call, params, out);
        }
    }
}

/// Whether a result asks for input: `input_required` with at least one of its two members.
fn wants_input(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
        && (result.get("inputRequests").is_some() || result.get("requestState").is_some())
}
