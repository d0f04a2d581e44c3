//! What the server answers: ids, errors, results, structured content, input rounds.

use super::client_rules::capability_of;
use super::{Judge, Open, Party};
use crate::finding::Severity;
use crate::mcp::ends::{CallNames, End, Theta, tool_result};
use crate::mcp::jsonrpc::{ErrorObject, RequestId, code};
use crate::mcp::negotiation::client::ListKind;
use crate::mcp::version::{Era, Version};
use serde_json::{Map, Value};

/// A request for input that the client has to answer by sending its request again.
#[derive(Clone, Debug)]
pub(crate) struct InputRound {
    method: String,
    params: Map<String, Value>,
    keys: Option<Vec<String>>,
    state: Option<Value>,
    id: RequestId,
}

type Answer = Result<Value, ErrorObject>;

impl Judge {
    pub(super) fn answer(&mut self, id: &RequestId, answer: Answer) {
        let candidates = self.open.iter().filter(|open| open.id == *id).count();
        if candidates > 1 {
            self.report(
                "answer-ambiguous",
                Severity::Error,
                Party::Client,
                "proposition 3.3: with two open requests under one id the matching is not a function",
                format!("matching not a function: answer {id} has {candidates} candidates"),
                "one caller may get the other's data",
            );
        }
        if let Some(place) = self.open.iter().position(|open| open.id == *id) {
            let request = self.open.remove(place);
            self.answered.push(id.clone());
            self.matches.push((id.clone(), request.method.clone()));
            self.matched(&request, answer);
            return;
        }
        let coerced = id.coerced().filter(|other| self.open.iter().any(|open| open.id == *other));
        if let Some(other) = coerced {
            self.report(
                "id-type-changed",
                Severity::Error,
                Party::Server,
                "base protocol, responses: the id is that of the request, type included (proposition 3.3)",
                format!("id changed type ({other} -> {id})"),
                "`1` and `\"1\"` are different ids, even where a client tolerates it",
            );
            // A strict client leaves the request open.
            self.mismatched_answers = true;
            return;
        }
        if self.answered.contains(id) || self.client_has_spoken && self.anything_known() {
            self.mismatched_answers = true;
            self.report(
                "answer-to-unknown-id",
                Severity::Error,
                Party::Server,
                "base protocol, responses: the id is that of an open request (proposition 3.3)",
                format!("answer to unknown or already answered id {id}"),
                "no open request has it",
            );
            return;
        }
        // A fragment: the request is not shown.
        self.answered.push(id.clone());
        self.unseen(answer);
    }

    fn anything_known(&self) -> bool {
        !self.open.is_empty() || !self.answered.is_empty()
    }

    /// An answer to a request that is not shown: its kind follows from its members.
    fn unseen(&mut self, answer: Answer) {
        let Ok(result) = answer else { return };
        let has = |member: &str| result.get(member).is_some();
        if has("supportedVersions") {
            self.discover_result(&result);
        } else if has("protocolVersion") || has("capabilities") {
            self.era = self.era.or(Some(Era::Legacy));
            self.initialize_result(&result);
        } else if let Some(kind) = ListKind::ALL.into_iter().find(|kind| has(kind.word())) {
            self.list_result(kind, &result);
        } else if has("content") || has("structuredContent") || has("isError") {
            let only = match self.tool_order.as_slice() {
                [name] => Some(name.clone()),
                _ => None,
            };
            self.call_result(None, only.as_deref(), &result);
        }
    }

    fn matched(&mut self, request: &Open, answer: Answer) {
        if request.cancelled {
            self.report(
                "answer-after-cancel",
                Severity::Note,
                Party::Server,
                "utilities, cancellation: the receiver SHOULD send nothing more for it",
                format!("request {} was answered although it was cancelled", request.id),
                "the two may have crossed; the client ignores it",
            );
            return;
        }
        match answer {
            Ok(result) => self.result(request, &result),
            Err(error) => self.error(request, &error),
        }
    }

    fn error(&mut self, request: &Open, error: &ErrorObject) {
        let method = request.method.as_str();
        self.error_code(error);
        match method {
            "initialize" => {
                self.initialize_refused(error);
                return;
            }
            "tools/call" => {
                self.end_of_call(request, End::ProtocolError(error.clone()));
                self.arguments_refused(request, error);
            }
            "server/discover" if error.code != code::UNSUPPORTED_VERSION => {
                // An old server: the era is open again.
                self.era = None;
            }
            _ => {}
        }
        if error.code == code::METHOD_NOT_FOUND
            && let Some(capability) = capability_of(method)
            && let Some(declared) = &self.capabilities
        {
            let keep = if declared.contains_key(capability) {
                self.report(
                    "declared-capability-not-implemented",
                    Severity::Error,
                    Party::Server,
                    "lifecycle, capabilities: what is declared is offered",
                    format!("declared capability not implemented: `{capability}` is declared, `{method}` is not found"),
                    "clients ask for what is declared",
                );
                "keep the tools: one missing list is no broken server"
            } else {
                "-32601 here must not fail the connection"
            };
            self.report(
                "connection-kept",
                Severity::Note,
                Party::Client,
                "lifecycle, capabilities (I-CAP)",
                keep,
                "an undeclared or missing method does not kill the connection",
            );
        }
    }

    fn error_code(&mut self, error: &ErrorObject) {
        let reserved = (-32099..=-32020).contains(&error.code);
        let defined = [code::HEADER_MISMATCH, code::MISSING_CLIENT_CAPABILITY, code::UNSUPPORTED_VERSION];
        if self.is_modern() && reserved && !defined.contains(&error.code) {
            self.report(
                "error-code-reserved",
                Severity::Error,
                Party::Server,
                "2026-07-28, errors: -32020 to -32099 are reserved",
                format!("error code {} is reserved and not defined", error.code),
                "a later revision may give it a meaning",
            );
        }
        if self.is_modern() && error.code == code::RESOURCE_NOT_FOUND {
            self.report(
                "error-code-legacy",
                Severity::Error,
                Party::Server,
                "2026-07-28, resources: not found is -32602",
                "-32002 in the modern era",
                "modern servers MUST NOT send it",
            );
        }
        let supported = error.data.as_ref().and_then(|data| data.get("supported"));
        if error.code == code::UNSUPPORTED_VERSION
            && !self.abridged
            && supported.is_none_or(|list| list.as_array().is_none_or(Vec::is_empty))
        {
            self.report(
                "supported-versions-missing",
                Severity::Error,
                Party::Server,
                "2026-07-28, versioning: data.supported lists the revisions (proposition 3.4.4)",
                "-32022 without `data.supported`",
                "the client cannot compute a common revision",
            );
        }
    }

    fn result(&mut self, request: &Open, result: &Value) {
        let method = request.method.as_str();
        if !result.is_object() {
            if method == "tools/call" {
                self.end_of_call(request, End::Result(result.clone()));
            }
            if !self.abridged {
                self.report(
                    "result-not-an-object",
                    Severity::Error,
                    Party::Server,
                    "base protocol, responses: a result is an object",
                    format!("the result of `{method}` is not an object"),
                    "no client can read it",
                );
            }
            return;
        }
        if method == "initialize" {
            self.initialize_result(result);
            return;
        }
        if method == "server/discover" {
            self.discover_result(result);
        }
        self.modern_members(method, result);
        self.served_capability(method);
        if result.get("resultType").and_then(Value::as_str) == Some("input_required") && self.is_modern() {
            self.input_required(request, result);
            return;
        }
        if let Some(kind) = ListKind::ALL.into_iter().find(|kind| kind.method() == method) {
            self.list_result(kind, result);
        }
        if method == "tools/call" {
            self.end_of_call(request, End::Result(result.clone()));
            let name = request.params.as_ref().and_then(|params| params.get("name")?.as_str());
            self.call_result(Some(request), name, result);
        }
    }

    fn discover_result(&mut self, result: &Value) {
        self.era = Some(Era::Modern);
        self.capabilities = result.get("capabilities").and_then(Value::as_object).cloned();
        let versions = crate::mcp::negotiation::messages::versions(result.get("supportedVersions"));
        self.version = versions.into_iter().filter(|version| version.era() == Era::Modern).max();
        let missing = result.get("supportedVersions").is_none_or(|list| !list.is_array());
        if missing && !self.abridged {
            self.report(
                "supported-versions-missing",
                Severity::Error,
                Party::Server,
                "2026-07-28, server/discover",
                "the discover result has no `supportedVersions`",
                "the client cannot compute a common revision",
            );
        }
    }

    fn modern_members(&mut self, method: &str, result: &Value) {
        if !self.is_modern() || self.abridged {
            return;
        }
        let mut missing = |key: &str, why: &str| {
            if result.get(key).is_none() {
                self.report(
                    "modern-member-missing",
                    Severity::Error,
                    Party::Server,
                    "2026-07-28, base protocol, results",
                    format!("the result of `{method}` has no `{key}`"),
                    why,
                );
            }
        };
        missing("resultType", "clients may take it for the result of an older server");
        let complete = result.get("resultType").and_then(Value::as_str) == Some("complete");
        let cacheable = [
            "server/discover",
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
        ];
        if cacheable.contains(&method) && complete {
            missing("ttlMs", "clients have to take it for stale at once");
            missing("cacheScope", "clients cannot know who may share it");
        }
        if let Some(kind) = result.get("resultType") {
            let known = ["complete", "input_required"];
            let declared = |extension: &str| {
                let all = self.client_capabilities.as_ref().and_then(|c| c.get("extensions")?.as_object());
                all.is_some_and(|all| all.keys().any(|key| key.ends_with(extension)))
            };
            let fine = kind
                .as_str()
                .is_some_and(|kind| known.contains(&kind) || kind == "task" && declared("/tasks"));
            if !fine {
                self.report(
                    "result-type-unknown",
                    Severity::Error,
                    Party::Server,
                    "2026-07-28, results: other values only for declared extensions",
                    format!("the result type {kind} is unknown and no declared extension has it"),
                    "the client has to treat the result as invalid",
                );
            }
        }
    }

    fn served_capability(&mut self, method: &str) {
        let (Some(capability), Some(declared)) = (capability_of(method), &self.capabilities) else { return };
        if !declared.contains_key(capability) {
            self.report(
                "capability-served-undeclared",
                Severity::Warning,
                Party::Server,
                "lifecycle, capabilities: what is offered is declared",
                format!("`{method}` is answered, but `{capability}` is not declared"),
                "clients that keep to the declaration never ask",
            );
        }
    }

    /// θ for the call: exactly one tool_result (proposition 3.7).
    fn end_of_call(&mut self, request: &Open, end: End) {
        let tool = request.params.as_ref().and_then(|params| params.get("name")?.as_str()).unwrap_or("?");
        let names = CallNames { server: "server", tool, modern: self.is_modern() };
        let result = tool_result(&end, names, Theta::SPECIFICATION);
        self.results.push((request.id.clone(), result.text, result.is_error));
    }

    fn arguments_refused(&mut self, request: &Open, error: &ErrorObject) {
        let name = request.params.as_ref().and_then(|params| params.get("name")?.as_str());
        let listed = name.is_some_and(|name| self.tools.contains_key(name));
        if error.code == code::INVALID_PARAMS && listed && self.version >= Some(Version::V2025_11_25) {
            self.report(
                "arguments-refused-as-protocol-error",
                Severity::Note,
                Party::Server,
                "server features, tools, errors: input validation errors are results with isError (proposition 3.7.1)",
                format!("a call of the listed tool `{}` was refused with -32602", name.unwrap_or_default()),
                "the assistant can correct its arguments only if it sees the error",
            );
        }
    }

    fn call_result(&mut self, request: Option<&Open>, name: Option<&str>, result: &Value) {
        let is_error = result.get("isError");
        if is_error.is_some_and(|flag| !flag.is_boolean()) {
            self.result_fault("is-error-not-boolean", "`isError` is not a boolean".to_owned());
        }
        let is_error = is_error == Some(&Value::Bool(true));
        match result.get("content") {
            Some(Value::Array(blocks)) => {
                for (number, block) in blocks.iter().enumerate() {
                    self.block(number, block);
                }
            }
            Some(_) => self.result_fault("content-not-an-array", "`content` is not an array".to_owned()),
            None if !self.abridged => {
                self.result_fault("content-missing", "the result has no `content`".to_owned());
            }
            None => {}
        }
        let definition = name.and_then(|name| self.tools.get(name)).cloned();
        self.unknown_tool(request.is_some(), name, definition.is_some(), is_error, result);
        if is_error {
            return;
        }
        let schema = definition.as_ref().and_then(|definition| definition.get("outputSchema"));
        self.structured(schema, result);
        self.unchecked_arguments(request, definition.as_ref());
    }

    fn result_fault(&mut self, id: &str, message: String) {
        self.report(
            id,
            Severity::Error,
            Party::Server,
            "server features, tools, tool result",
            message,
            "strict clients refuse the result",
        );
    }

    fn block(&mut self, number: usize, block: &Value) {
        let text = |key: &str| block.get(key).is_some_and(Value::is_string);
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        let fault = match kind {
            "text" if !text("text") => Some("a text block without `text`"),
            "image" | "audio" if !(text("data") && text("mimeType")) => {
                Some("a binary block without `data` and `mimeType`")
            }
            "resource" if !block.get("resource").is_some_and(Value::is_object) => {
                Some("a resource block without `resource`")
            }
            "resource_link" if !(text("uri") && text("name")) => {
                Some("a resource link without `uri` and `name`")
            }
            "text" | "image" | "audio" | "resource" | "resource_link" => None,
            _ => Some("a block of unknown type"),
        };
        if let Some(fault) = fault {
            self.result_fault("content-block-invalid", format!("content[{number}] is {fault}"));
        }
        let since = match kind {
            "audio" => Version::V2025_03_26,
            "resource_link" => Version::V2025_06_18,
            _ => return,
        };
        if self.version.is_some_and(|version| version < since) {
            self.result_fault(
                "content-block-too-new",
                format!("content[{number}] is of type `{kind}`, which exists from {since} on"),
            );
        }
    }

    fn unknown_tool(
        &mut self,
        request_shown: bool,
        name: Option<&str>,
        listed: bool,
        is_error: bool,
        result: &Value,
    ) {
        let Some(name) = name.filter(|_| request_shown) else { return };
        let list_known = self.tools_complete && !self.tools.is_empty();
        if listed {
            return;
        }
        const CLAUSE: &str =
            "server features, tools, errors: unknown tools are protocol errors (proposition 3.7.1, I-ERR)";
        const WHY: &str = "failures while running are results with isError; a wrong name is a wrong request";
        if !is_error {
            if list_known {
                let text = format!("`{name}` is not listed, but the call succeeded");
                self.report(
                    "unlisted-tool-called",
                    Severity::Warning,
                    Party::Server,
                    CLAUSE,
                    text,
                    "the list is incomplete",
                );
            }
            return;
        }
        let words = result.get("content").map(Value::to_string).unwrap_or_default().to_lowercase();
        let says_so = ["unknown tool", "no such tool", "tool not found", "not found"]
            .iter()
            .any(|phrase| words.contains(phrase))
            && words.contains(&name.to_lowercase());
        let severity = if list_known || says_so { Severity::Warning } else { Severity::Note };
        let what = if severity == Severity::Warning {
            format!("unknown tool `{name}` belongs to the protocol errors (-32602), not to the results")
        } else {
            format!(
                "if `{name}` is no tool of this server (the exchange shows no list), an unknown tool belongs to the protocol errors (-32602)"
            )
        };
        self.report("unknown-tool-as-result", severity, Party::Server, CLAUSE, what, WHY);
    }

    fn structured(&mut self, schema: Option<&Value>, result: &Value) {
        const CLAUSE: &str =
            "server features, tools, output schema: structured results conform to it (proposition 3.7.1)";
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        match (schema, structured) {
            (Some(_), None) => self.report(
                "structured-content-missing",
                Severity::Error,
                Party::Server,
                CLAUSE,
                "structuredContent missing although outputSchema was declared",
                "strict clients refuse every call of the tool",
            ),
            (Some(schema), Some(structured)) => {
                for fault in super::super::schema::faults(schema, structured) {
                    self.report(
                        "structured-content-invalid",
                        Severity::Error,
                        Party::Server,
                        CLAUSE,
                        format!("structuredContent{} {}", fault.path, fault.what),
                        "strict clients refuse the result",
                    );
                }
            }
            (None, Some(structured)) => {
                if self.is_legacy() && !structured.is_object() {
                    let text = "structuredContent is no object".to_owned();
                    self.result_fault("structured-content-not-an-object", text);
                }
            }
            (None, None) => {}
        }
        let Some(structured) = structured else { return };
        let blocks = result.get("content").and_then(Value::as_array);
        let same = |block: &Value| {
            let text = block.get("text").and_then(Value::as_str);
            text.and_then(|text| serde_json::from_str::<Value>(text).ok()).as_ref() == Some(structured)
        };
        if blocks.is_some_and(|blocks| !blocks.iter().any(same)) {
            let unjudged = if schema.is_none() { "; no outputSchema is shown to judge it by" } else { "" };
            self.report(
                "structured-content-not-in-text",
                Severity::Warning,
                Party::Server,
                "server features, tools, structured content: the JSON SHOULD also be given as text",
                format!("no text block holds structuredContent ({structured}){unjudged}"),
                "clients that show text and clients that show structured content tell the assistant different things",
            );
        }
    }

    fn unchecked_arguments(&mut self, request: Option<&Open>, definition: Option<&Value>) {
        let schema = definition.and_then(|definition| definition.get("inputSchema"));
        let (Some(schema), Some(request)) = (schema, request) else { return };
        let empty = Value::Object(Map::new());
        let arguments = request.params.as_ref().and_then(|params| params.get("arguments")).unwrap_or(&empty);
        if let Some(fault) = super::super::schema::faults(schema, arguments).into_iter().next() {
            self.report(
                "arguments-not-validated",
                Severity::Warning,
                Party::Server,
                "server features, tools, security: servers MUST validate all tool inputs",
                format!("a call succeeded although arguments{} {}", fault.path, fault.what),
                "what the schema promises is not what the server does",
            );
        }
    }

    fn input_required(&mut self, request: &Open, result: &Value) {
        const CLAUSE: &str = "2026-07-28, multi-round-trip requests";
        let allowed = ["tools/call", "prompts/get", "resources/read"];
        if !allowed.contains(&request.method.as_str()) {
            let text = format!("`input_required` on `{}`", request.method);
            self.report(
                "input-not-allowed",
                Severity::Error,
                Party::Server,
                CLAUSE,
                text,
                "only calls, prompts and reads may ask for input",
            );
        }
        let requests = result.get("inputRequests").and_then(Value::as_object);
        let state = result.get("requestState");
        if requests.is_none() && state.is_none() {
            let text = "`input_required` with neither `inputRequests` nor `requestState`";
            self.report(
                "input-without-request",
                Severity::Error,
                Party::Server,
                CLAUSE,
                text,
                "the client has nothing to answer",
            );
            return;
        }
        for (key, asked) in requests.into_iter().flatten() {
            let method = asked.get("method").and_then(Value::as_str).unwrap_or_default();
            let needs = match method {
                "elicitation/create" => "elicitation",
                "sampling/createMessage" => "sampling",
                "roots/list" => "roots",
                _ => {
                    let text = format!("input request `{key}` has the method `{method}`");
                    self.report(
                        "input-method-unknown",
                        Severity::Error,
                        Party::Server,
                        CLAUSE,
                        text,
                        "only elicitation, sampling and roots exist",
                    );
                    continue;
                }
            };
            if self.client_capabilities.as_ref().is_some_and(|declared| !declared.contains_key(needs)) {
                let text = format!("`{method}` asked for although the client did not declare `{needs}`");
                self.report(
                    "client-capability-not-declared",
                    Severity::Error,
                    Party::Server,
                    CLAUSE,
                    text,
                    "the client cannot serve it",
                );
            }
        }
        let params = request.params.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        self.input.push(InputRound {
            method: request.method.clone(),
            params,
            keys: requests.map(|requests| requests.keys().cloned().collect()),
            state: state.cloned(),
            id: request.id.clone(),
        });
    }

    /// A retry carries a new id, the original params, an answer for every key, and the state iff there was one.
    pub(super) fn retried_with_input(&mut self, id: &RequestId, method: &str, params: Option<&Value>) {
        const CLAUSE: &str = "2026-07-28, multi-round-trip requests, retry";
        let Some(params) = params.and_then(Value::as_object) else { return };
        let own = |key: &str| !["_meta", "inputResponses", "requestState"].contains(&key);
        let core = |params: &Map<String, Value>| -> Vec<(String, Value)> {
            params
                .iter()
                .filter(|(key, _)| own(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        let (answers, state) = (params.get("inputResponses"), params.get("requestState"));
        if answers.is_none() && state.is_none() {
            return;
        }
        let found = self
            .input
            .iter()
            .rposition(|round| round.method == method && core(&round.params) == core(params));
        let mut report = |id: &str, text: String, why: &str| {
            self.report(id, Severity::Error, Party::Client, CLAUSE, text, why);
        };
        let Some(found) = found else {
            report(
                "input-not-asked-for",
                format!(
                    "`{method}` carries `inputResponses` or `requestState` that nobody asked for with these params"
                ),
                "a retry has the original params",
            );
            return;
        };
        let round = self.input.remove(found);
        let mut report = |id: &str, text: String, why: &str| {
            self.report(id, Severity::Error, Party::Client, CLAUSE, text, why);
        };
        if round.id == *id {
            report(
                "retry-id-reused",
                format!("the retry has the id {id} of the original"),
                "a retry has a new id",
            );
        }
        if round.state.as_ref() != state {
            report(
                "request-state-changed",
                "`requestState` is not what the server gave".to_owned(),
                "it is opaque and copied byte for byte, iff it was there",
            );
        }
        let given = answers.and_then(Value::as_object);
        for key in round.keys.iter().flatten() {
            if !given.is_some_and(|given| given.contains_key(key)) {
                report("input-response-missing", format!("no answer for `{key}`"), "the server asks again");
            }
        }
    }
}
