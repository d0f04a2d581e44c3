//! The server's machine: plays a [`ServerScript`] for one connection. Pure: the world writes what it says, when it
//! says.

use super::messages::{META, META_CAPABILITIES, META_SERVER, META_SUBSCRIPTION, META_VERSION};
use super::script::{Answer, Behaviour, IdFault, ScriptedTool, ServerScript};
use crate::mcp::jsonrpc::{BadId, ErrorObject, Malformed, MalformedReason, Message, RequestId, code};
use crate::mcp::version::{Era, Version};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};

/// What a server does, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// So much later.
    pub after_ms: u64,
    /// The request that it belongs to; a cancellation of that request takes it back.
    pub request: Option<RequestId>,
    /// What.
    pub what: Deed,
}

/// What a server can do.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Write a line.
    Line(String),
    /// Write a line byte by byte, with a pause between bytes.
    Drip {
        /// The line.
        line: String,
        /// The pause in milliseconds.
        pause_ms: u64,
    },
    /// Write bytes without a line end.
    Fragment(String),
    /// Write a result whose text has so many bytes.
    Giant {
        /// The id of the request.
        id: RequestId,
        /// The text's length.
        bytes: u64,
    },
    /// Write so many bytes without a line end.
    Endless {
        /// How many.
        bytes: u64,
    },
    /// Write so many notifications.
    Flood {
        /// How many.
        notifications: u64,
    },
    /// Exit with a code.
    Exit(i32),
}

/// A server on one connection.
#[derive(Clone, Debug)]
pub struct Server {
    script: ServerScript,
    tools: Vec<ScriptedTool>,
    pinned: Option<Era>,
    initialized: bool,
    /// How often each tool or method was asked for.
    asked: FxHashMap<String, usize>,
    /// Answers held back for reordering.
    held: Vec<Vec<Action>>,
    subscriptions: Vec<RequestId>,
}

impl Server {
    /// A server that has just started.
    pub fn new(script: ServerScript) -> Self {
        Self {
            tools: script.tools.clone(),
            script,
            pinned: None,
            initialized: false,
            asked: FxHashMap::default(),
            held: Vec::new(),
            subscriptions: Vec::new(),
        }
    }

    /// Its script.
    pub fn script(&self) -> &ServerScript {
        &self.script
    }

    /// What it does before it reads anything.
    pub fn start(&self) -> Vec<Action> {
        let mut actions: Vec<Action> =
            self.script.banner.iter().map(|line| now(None, Deed::Line(line.clone()))).collect();
        actions.extend(self.script.exits_at_start.map(|code| now(None, Deed::Exit(code))));
        actions
    }

    /// What it does on a line. The second part names the request whose pending actions are taken back.
    pub fn line(&mut self, line: &str) -> (Vec<Action>, Option<RequestId>) {
        match Message::parse(line) {
            Ok(message) => self.message(message),
            Err(malformed) => (self.malformed(&malformed), None),
        }
    }

    /// What it does on a message.
    pub fn message(&mut self, message: Message) -> (Vec<Action>, Option<RequestId>) {
        match message {
            Message::Request { id, method, params } => (self.request(id, &method, params), None),
            Message::Notification { method, params } => self.notification(&method, params.as_ref()),
            // Answers to the server's own requests.
            Message::Response { .. } | Message::Error { .. } => (Vec::new(), None),
        }
    }

    /// What it does when its input ends.
    pub fn end_of_input(&self) -> Vec<Action> {
        if self.script.ignores_eof { Vec::new() } else { vec![now(None, Deed::Exit(0))] }
    }

    /// As rmcp 3.11: bad requests are refused with -32600, other lines are passed over (mcp.md 4.2).
    fn malformed(&self, malformed: &Malformed) -> Vec<Action> {
        let refuse = matches!(
            malformed.reason,
            MalformedReason::Batch
                | MalformedReason::BadId(BadId::Null | BadId::NotAnInteger | BadId::OtherType)
        );
        if !refuse {
            return Vec::new();
        }
        let error = Message::error(malformed.id.clone(), code::INVALID_REQUEST, "Invalid Request");
        vec![now(None, Deed::Line(error.to_line()))]
    }

    fn notification(&mut self, method: &str, params: Option<&Value>) -> (Vec<Action>, Option<RequestId>) {
        let mut actions = Vec::new();
        if self.script.answers_notifications {
            let error = Message::error(None, code::METHOD_NOT_FOUND, "Method not found");
            actions.push(now(None, Deed::Line(error.to_line())));
        }
        let cancelled = (method == "notifications/cancelled")
            .then(|| params?.get("requestId").and_then(|id| RequestId::from_value(id).ok()))
            .flatten();
        if let Some(id) = &cancelled {
            self.subscriptions.retain(|subscription| subscription != id);
        }
        (actions, cancelled)
    }

    fn request(&mut self, id: RequestId, method: &str, params: Option<Value>) -> Vec<Action> {
        let params = params.unwrap_or_else(|| json!({}));
        let answer = self.judge(&id, method, &params);
        let tool = (method == "tools/call").then(|| params.get("name").and_then(Value::as_str)).flatten();
        let behaviour = self.behaviour(method, tool, answer.is_err());
        let actions = self.play(&id, &params, &behaviour, answer);
        let Some(size) = self.script.reorder.filter(|_| method == "tools/call") else { return actions };
        self.held.push(actions);
        if self.held.len() < size {
            return Vec::new();
        }
        std::mem::take(&mut self.held).into_iter().rev().flatten().collect()
    }

    /// The behaviour in force: that of the method, else that of the tool, the n-th for the n-th time. A request that is
    /// refused for its form has the usual behaviour, unless the method's own says otherwise.
    fn behaviour(&mut self, method: &str, tool: Option<&str>, refused: bool) -> Behaviour {
        let (key, list) = match (self.script.methods.get(method), tool) {
            (Some(list), _) => (method.to_owned(), list.as_slice()),
            (None, Some(name)) if !refused => {
                let tool = self.tools.iter().find(|tool| tool.name == name);
                (format!("tool {name}"), tool.map_or(&[][..], |tool| &tool.behaviour))
            }
            _ => return Behaviour::default(),
        };
        let times = self.asked.entry(key).or_insert(0);
        let chosen = list.get(*times).or(list.last()).cloned().unwrap_or_default();
        *times += 1;
        chosen
    }

    /// The usual answer: a result, or an error.
    fn judge(&mut self, id: &RequestId, method: &str, params: &Value) -> Result<Value, ErrorObject> {
        let era = match (method, params.get("_meta").and_then(|meta| meta.get(META_VERSION))) {
            ("initialize", _) => Era::Legacy,
            ("server/discover", _) | (_, Some(_)) => Era::Modern,
            _ => Era::Legacy,
        };
        let speaks = !self.script.of_era(era).is_empty();
        let refused = self.script.pins_era && self.pinned.is_some_and(|pinned| pinned != era);
        let result = match era {
            Era::Modern if speaks && !refused => self.modern(id, method, params),
            // A server that knows nothing of the modern era does not look at the metadata.
            Era::Modern if method == "server/discover" => Err(self.unknown()),
            Era::Modern if refused && self.initialized => self.legacy(method, params),
            Era::Modern if !speaks => self.legacy(method, params),
            Era::Modern => Err(ErrorObject::new(code::INVALID_REQUEST, "Invalid Request")),
            Era::Legacy if speaks && !refused => self.legacy(method, params),
            Era::Legacy if method == "initialize" => {
                let requested = params.get("protocolVersion").cloned();
                Err(self.unsupported(requested))
            }
            Era::Legacy => Err(missing_metadata()),
        };
        if result.is_ok() && self.pinned.is_none() {
            self.pinned = Some(era);
        }
        result
    }

    fn unknown(&self) -> ErrorObject {
        ErrorObject::new(self.script.unknown_method_code, "Method not found")
    }

    fn listed_versions(&self) -> Vec<Version> {
        let mut versions =
            if self.script.lists_legacy { self.script.of_era(Era::Legacy) } else { Vec::new() };
        versions.extend(self.script.of_era(Era::Modern));
        versions
    }

    fn unsupported(&self, requested: Option<Value>) -> ErrorObject {
        ErrorObject {
            code: code::UNSUPPORTED_VERSION,
            message: "Unsupported protocol version".to_owned(),
            data: Some(json!({"supported": self.listed_versions(), "requested": requested})),
        }
    }

    fn modern(&mut self, id: &RequestId, method: &str, params: &Value) -> Result<Value, ErrorObject> {
        let meta = params.get("_meta");
        let key = |key: &str| meta.and_then(|meta| meta.get(key));
        let (Some(requested), Some(_)) = (key(META_VERSION), key(META_CAPABILITIES)) else {
            return Err(missing_metadata());
        };
        if !Version::from_value(requested)
            .is_some_and(|v| v.era() == Era::Modern && self.script.versions.contains(&v))
        {
            return Err(self.unsupported(Some(requested.clone())));
        }
        match method {
            "server/discover" => Ok(self.cached(json!({
                "supportedVersions": self.listed_versions(),
                "capabilities": self.capabilities(),
                "instructions": self.script.instructions,
            }))),
            "subscriptions/listen" => {
                self.subscriptions.push(id.clone());
                Ok(Value::Null)
            }
            "ping" | "logging/setLevel" => Err(self.unknown()),
            _ => self.common(method, params).map(|result| {
                if method.ends_with("/list") || method == "resources/read" {
                    self.cached(result)
                } else {
                    self.modern_result(result)
                }
            }),
        }
    }

    fn legacy(&mut self, method: &str, params: &Value) -> Result<Value, ErrorObject> {
        match method {
            "initialize" => {
                let requested = params.get("protocolVersion").and_then(Version::from_value);
                let own = self.script.of_era(Era::Legacy);
                let answer = match (&self.script.always_answers, requested.filter(|v| own.contains(v))) {
                    (Some(text), _) => text.clone(),
                    (None, Some(version)) => version.to_string(),
                    (None, None) => own.last().map(Version::to_string).unwrap_or_default(),
                };
                self.initialized = true;
                Ok(without_nulls(json!({
                    "protocolVersion": answer,
                    "capabilities": self.capabilities(),
                    "serverInfo": self.info(),
                    "instructions": self.script.instructions,
                })))
            }
            "ping" => Ok(json!({})),
            _ if !self.initialized && !self.script.answers_before_handshake => Err(ErrorObject::new(
                code::INVALID_PARAMS,
                "Received request before initialization was complete",
            )),
            "logging/setLevel" => Ok(json!({})),
            _ => self.common(method, params),
        }
    }

    /// What both eras have.
    fn common(&self, method: &str, params: &Value) -> Result<Value, ErrorObject> {
        let invalid = |what: String| ErrorObject::new(code::INVALID_PARAMS, what);
        let named = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        let items = |items: &[super::script::ScriptedItem]| -> Vec<Value> {
            items.iter().map(|item| item.definition.clone()).collect()
        };
        match method {
            "tools/list" => {
                let tools = self.tools.iter().map(ScriptedTool::definition).collect();
                self.page("tools", tools, params).ok_or_else(|| invalid("Invalid cursor".to_owned()))
            }
            "prompts/list" if !self.script.prompts.is_empty() => self
                .page("prompts", items(&self.script.prompts), params)
                .ok_or_else(|| invalid("Invalid cursor".to_owned())),
            "resources/list" if !self.script.resources.is_empty() => self
                .page("resources", items(&self.script.resources), params)
                .ok_or_else(|| invalid("Invalid cursor".to_owned())),
            "resources/templates/list" if !self.script.resources.is_empty() => {
                Ok(json!({"resourceTemplates": []}))
            }
            "prompts/get" => find(&self.script.prompts, "name", named("name"))
                .ok_or_else(|| invalid(format!("Unknown prompt: {}", named("name")))),
            "resources/read" => find(&self.script.resources, "uri", named("uri"))
                .ok_or_else(|| invalid(format!("Resource not found: {}", named("uri")))),
            "tools/call" => self.call(params),
            _ => Err(self.unknown()),
        }
    }

    fn call(&self, params: &Value) -> Result<Value, ErrorObject> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            let text = format!("Unknown tool: {name}");
            return if self.script.unknown_tool_is_result {
                Ok(text_result(&text, true))
            } else {
                Err(ErrorObject::new(code::INVALID_PARAMS, text))
            };
        };
        if self.script.validates_arguments
            && let Some(schema) = &tool.input_schema
            && let Ok(validator) = jsonschema::validator_for(schema)
            && let Err(error) = validator.validate(&arguments)
        {
            return Ok(text_result(&format!("Invalid arguments for {name}: {error}"), true));
        }
        Ok(text_result(&arguments.to_string(), false))
    }

    fn page(&self, key: &str, items: Vec<Value>, params: &Value) -> Option<Value> {
        let start = match params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => cursor.as_str()?.parse::<usize>().ok()?,
        };
        if start > items.len() {
            return None;
        }
        let size = self.script.page_size.unwrap_or(usize::MAX).max(1);
        let end = start.saturating_add(size).min(items.len());
        let last = end == items.len();
        let page: Vec<Value> = items.into_iter().skip(start).take(end - start).collect();
        let mut result = Map::new();
        result.insert(key.to_owned(), Value::Array(page));
        if !last {
            result.insert("nextCursor".to_owned(), end.to_string().into());
        } else if self.script.repeats_cursor {
            result.insert("nextCursor".to_owned(), start.to_string().into());
        }
        Some(Value::Object(result))
    }

    fn capabilities(&self) -> Value {
        if let Some(capabilities) = &self.script.capabilities {
            return capabilities.clone();
        }
        let changes = self
            .tools
            .iter()
            .chain(&self.script.tools)
            .any(|tool| tool.behaviour.iter().any(|behaviour| behaviour.then_tools.is_some()));
        let mut capabilities = Map::new();
        if !self.tools.is_empty() {
            let tools = if changes { json!({"listChanged": true}) } else { json!({}) };
            capabilities.insert("tools".to_owned(), tools);
        }
        if !self.script.prompts.is_empty() {
            capabilities.insert("prompts".to_owned(), json!({}));
        }
        if !self.script.resources.is_empty() {
            capabilities.insert("resources".to_owned(), json!({}));
        }
        Value::Object(capabilities)
    }

    fn info(&self) -> Value {
        json!({"name": self.script.name, "version": self.script.version})
    }

    fn modern_result(&self, result: Value) -> Value {
        let Value::Object(mut result) = without_nulls(result) else { return result_of_nothing() };
        result.entry("resultType").or_insert_with(|| "complete".into());
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.entry(META_SERVER).or_insert_with(|| self.info());
        }
        Value::Object(result)
    }

    fn cached(&self, result: Value) -> Value {
        let mut result = self.modern_result(result);
        if let Value::Object(result) = &mut result {
            result.insert("ttlMs".to_owned(), self.script.ttl_ms.into());
            result.insert("cacheScope".to_owned(), self.script.cache_scope.as_str().into());
        }
        result
    }

    /// Turns the usual answer and the behaviour into actions.
    fn play(
        &mut self,
        id: &RequestId,
        params: &Value,
        behaviour: &Behaviour,
        usual: Result<Value, ErrorObject>,
    ) -> Vec<Action> {
        let request = Some(id.clone());
        let mut actions: Vec<Action> = Vec::new();
        let raw = behaviour.raw_before.iter().cloned();
        let before = raw.chain(behaviour.before.iter().map(Value::to_string));
        actions.extend(before.map(|line| now(request.clone(), Deed::Line(line))));
        actions.extend(progress(id, params, behaviour));
        let at = |what: Deed| Action { after_ms: behaviour.delay_ms, request: request.clone(), what };

        let unknown_method = matches!(&usual, Err(error) if error.code == self.script.unknown_method_code);
        if let (true, Answer::Usual, Some(code)) =
            (unknown_method, &behaviour.answer, self.script.exits_on_unknown_method)
        {
            actions.push(at(Deed::Exit(code)));
            return actions;
        }
        let modern = self.pinned == Some(Era::Modern)
            || params.get("_meta").is_some_and(|m| m.get(META_VERSION).is_some());
        let finished = |result: Value| if modern { self.modern_result(result) } else { result };
        let answer = match &behaviour.answer {
            Answer::Usual if usual == Ok(Value::Null) => {
                actions.push(at(Deed::Line(self.acknowledgement(id, params).to_line())));
                None
            }
            Answer::Usual => Some(respond(id, usual)),
            Answer::Echo => {
                let text = params.get("arguments").cloned().unwrap_or_else(|| json!({})).to_string();
                Some(Message::response(id.clone(), finished(text_result(&text, false))))
            }
            Answer::Text(text) => Some(Message::response(id.clone(), finished(text_result(text, false)))),
            Answer::IsError(text) => Some(Message::response(id.clone(), finished(text_result(text, true)))),
            Answer::Result(result) => Some(Message::response(id.clone(), finished(result.clone()))),
            Answer::ExactResult(result) => Some(Message::response(id.clone(), result.clone())),
            Answer::Error { code, message, data } => Some(Message::Error {
                id: Some(id.clone()),
                error: ErrorObject { code: *code, message: message.clone(), data: data.clone() },
            }),
            Answer::Silence => None,
            Answer::Exit(code) => {
                actions.push(at(Deed::Exit(*code)));
                None
            }
            Answer::Raw(line) => {
                actions.push(at(Deed::Line(line.clone())));
                None
            }
            Answer::Giant { bytes } => {
                actions.push(at(Deed::Giant { id: id.clone(), bytes: *bytes }));
                None
            }
            Answer::EndlessLine { bytes } => {
                actions.push(at(Deed::Endless { bytes: *bytes }));
                None
            }
            Answer::Flood { notifications } => {
                actions.push(at(Deed::Flood { notifications: *notifications }));
                Some(respond(id, usual))
            }
        };
        if let Some(answer) = answer {
            let line = with_fault(answer, behaviour.id);
            if behaviour.dies_mid_line {
                let half = line.char_indices().nth(line.chars().count() / 2).map_or(0, |(at, _)| at);
                actions.push(at(Deed::Fragment(line.get(..half).unwrap_or_default().to_owned())));
                actions.push(at(Deed::Exit(1)));
                return actions;
            }
            let deed = match behaviour.drip_ms {
                Some(pause_ms) => Deed::Drip { line: line.clone(), pause_ms },
                None => Deed::Line(line.clone()),
            };
            actions.push(at(deed));
            if behaviour.duplicate {
                actions.push(at(Deed::Line(line)));
            }
        }
        if let Some(tools) = &behaviour.then_tools {
            self.tools.clone_from(tools);
            actions.extend(self.change_notifications().into_iter().map(at));
        }
        actions.extend(behaviour.then_exit.map(|code| at(Deed::Exit(code))));
        actions
    }

    fn acknowledgement(&self, id: &RequestId, params: &Value) -> Message {
        let asked = params.get("notifications").cloned().unwrap_or_else(|| json!({}));
        Message::notification(
            "notifications/subscriptions/acknowledged",
            Some(json!({"notifications": asked, "_meta": {META_SUBSCRIPTION: id.to_value()}})),
        )
    }

    fn change_notifications(&self) -> Vec<Deed> {
        const METHOD: &str = "notifications/tools/list_changed";
        if self.pinned != Some(Era::Modern) {
            return vec![Deed::Line(Message::notification(METHOD, None).to_line())];
        }
        self.subscriptions
            .iter()
            .map(|id| {
                let params = json!({"_meta": {META_SUBSCRIPTION: id.to_value()}});
                Deed::Line(Message::notification(METHOD, Some(params)).to_line())
            })
            .collect()
    }
}

fn respond(id: &RequestId, answer: Result<Value, ErrorObject>) -> Message {
    match answer {
        Ok(result) => Message::response(id.clone(), result),
        Err(error) => Message::Error { id: Some(id.clone()), error },
    }
}

fn now(request: Option<RequestId>, what: Deed) -> Action {
    Action { after_ms: 0, request, what }
}

fn missing_metadata() -> ErrorObject {
    let text = format!("Invalid params: `_meta` lacks {META}protocolVersion or {META}clientCapabilities");
    ErrorObject::new(code::INVALID_PARAMS, text)
}

fn text_result(text: &str, is_error: bool) -> Value {
    let mut result = Map::new();
    result.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
    if is_error {
        result.insert("isError".to_owned(), true.into());
    }
    Value::Object(result)
}

fn result_of_nothing() -> Value {
    json!({"resultType": "complete"})
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(object.into_iter().filter(|(_, v)| !v.is_null()).collect()),
        other => other,
    }
}

fn find(items: &[super::script::ScriptedItem], key: &str, wanted: &str) -> Option<Value> {
    let found = items.iter().find(|item| item.definition.get(key).and_then(Value::as_str) == Some(wanted));
    found.map(|item| item.result.clone())
}

fn progress(id: &RequestId, params: &Value, behaviour: &Behaviour) -> Vec<Action> {
    let Some(token) = params.get("_meta").and_then(|meta| meta.get("progressToken")) else {
        return Vec::new();
    };
    let count = u64::from(behaviour.progress);
    (1..=count)
        .map(|step| {
            let params = json!({"progressToken": token, "progress": step, "total": count});
            Action {
                after_ms: behaviour.delay_ms * step / (count + 1),
                request: Some(id.clone()),
                what: Deed::Line(Message::notification("notifications/progress", Some(params)).to_line()),
            }
        })
        .collect()
}

/// The answer's line, its id spoilt as the script says.
fn with_fault(answer: Message, fault: IdFault) -> String {
    let mut value = answer.to_value();
    let spoilt = match (fault, answer.id()) {
        (IdFault::None, _) | (_, None) => return value.to_string(),
        (IdFault::OtherType, Some(id)) => id.coerced().map_or(Value::Null, |id| id.to_value()),
        (IdFault::Unknown, Some(_)) => "no-such-request".into(),
        (IdFault::Zero, Some(_)) => 0.into(),
        (IdFault::Null, Some(_)) => Value::Null,
    };
    if let Value::Object(object) = &mut value {
        object.insert("id".to_owned(), spoilt);
    }
    value.to_string()
}
