//! The harness's side of an MCP connection as lines: requests rendered from control, answers classified for control.
//!
//! The loop itself sees [`McpOut`] and [`McpIn`]; the texts are here. Versions: mcp.md 1.1 and 3.2.

use crate::agent_loop::{McpBody, McpIn, McpOut};
use serde_json::{Value, json};

/// The prefix of the reserved keys of `_meta`.
const P: &str = "io.modelcontextprotocol/";

/// Versions that the client speaks, by era, newest first, and the one that it tries first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientVersions {
    /// The version of the first request.
    pub preferred: String,
    /// Modern versions (per-request metadata).
    pub modern: Vec<String>,
    /// Legacy versions (handshake).
    pub legacy: Vec<String>,
}

impl Default for ClientVersions {
    fn default() -> Self {
        let owned = |list: &[&str]| list.iter().map(|v| (*v).to_owned()).collect();
        Self {
            preferred: "2026-07-28".to_owned(),
            modern: owned(&["2026-07-28"]),
            legacy: owned(&["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"]),
        }
    }
}

/// What is known of one connection besides its control state.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    /// The version agreed on.
    pub version: Option<String>,
    /// Pages of a list that is not complete yet.
    pub pages: Vec<Value>,
}

/// What a line says: to control, and as payload.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    /// Something for control, with the text that the assistant would see.
    Control(McpIn, String),
    /// A complete list of tools in answer to the request with this id.
    Tools(u16, Vec<Value>),
    /// A request of the server that has to be answered with this line.
    Answer(String),
}

/// Renders a message.
pub(super) fn render(
    wire: &Wire,
    versions: &ClientVersions,
    modern: bool,
    message: McpOut,
    call: Option<(&str, &Value)>,
) -> String {
    let request = |id: u16, method: &str, mut params: Value, modern: bool| {
        if modern {
            let version = wire.version.as_ref().unwrap_or(&versions.preferred);
            if let Some(params) = params.as_object_mut() {
                params.insert("_meta".to_owned(), meta(version));
            }
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    };
    let value = match message {
        McpOut::Discover { id, .. } => request(id, "server/discover", json!({}), true),
        McpOut::Initialize { id } => request(
            id,
            "initialize",
            json!({
                "protocolVersion": versions.legacy.first().unwrap_or(&versions.preferred),
                "capabilities": {},
                "clientInfo": {"name": "windtunnel", "version": env!("CARGO_PKG_VERSION")},
            }),
            false,
        ),
        McpOut::Initialized => json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        McpOut::ListTools { id } => {
            let cursor = wire.pages.last().and_then(|page| page.get("nextCursor"));
            let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
            request(id, "tools/list", params, modern)
        }
        McpOut::Call { id, .. } => {
            let (name, arguments) = call.unwrap_or(("", &Value::Null));
            request(id, "tools/call", json!({"name": name, "arguments": arguments}), modern)
        }
        McpOut::Cancelled { id } => {
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        }
    };
    value.to_string()
}

fn meta(version: &str) -> Value {
    let mut meta = serde_json::Map::new();
    meta.insert(format!("{P}protocolVersion"), json!(version));
    meta.insert(format!("{P}clientCapabilities"), json!({}));
    meta.insert(
        format!("{P}clientInfo"),
        json!({"name": "windtunnel", "version": env!("CARGO_PKG_VERSION")}),
    );
    Value::Object(meta)
}

/// Classifies a line. `listing` is the id of the open list request, `discovering` and `initializing` likewise: what a
/// result means depends on the request that it answers.
pub(super) fn hear(wire: &mut Wire, versions: &ClientVersions, open: Open, line: &str) -> Heard {
    let other = || Heard::Control(McpIn::Other, String::new());
    let Ok(value) = serde_json::from_str::<Value>(line) else { return other() };
    let Some(fields) = value.as_object() else { return other() };
    if let Some(method) = fields.get("method").and_then(Value::as_str) {
        if fields.contains_key("id") {
            return Heard::Answer(answer_request(method, fields.get("id").unwrap_or(&Value::Null)));
        }
        return if method == "notifications/tools/list_changed" {
            Heard::Control(McpIn::ListChanged, String::new())
        } else {
            other()
        };
    }
    let id = fields.get("id").and_then(Value::as_u64).and_then(|id| u16::try_from(id).ok());
    let own = id.is_some() && open.id == id;
    match (fields.get("result"), fields.get("error")) {
        (Some(_), Some(_)) | (None, None) => respond(id, McpBody::Malformed, malformed()),
        (None, Some(error)) => {
            let body = unsupported(wire, versions, error).filter(|_| own).unwrap_or(McpBody::Error);
            let message = error.get("message").and_then(Value::as_str).unwrap_or("error without a message");
            respond(id, body, message.to_owned())
        }
        (Some(result), None) if !own => match called(result) {
            Some((is_error, text)) => respond(id, McpBody::Called { is_error }, text),
            None => respond(id, McpBody::Malformed, malformed()),
        },
        (Some(result), None) => own_result(wire, versions, open.kind, id, result),
    }
}

/// The connection's own open request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// Its id.
    pub id: Option<u16>,
    /// What was asked.
    pub kind: OpenKind,
}

/// What the connection's own open request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenKind {
    /// `server/discover`.
    Discover,
    /// `initialize`.
    Initialize,
    /// `tools/list`.
    List,
    /// Nothing is open.
    Nothing,
}

fn own_result(
    wire: &mut Wire,
    versions: &ClientVersions,
    kind: OpenKind,
    id: Option<u16>,
    result: &Value,
) -> Heard {
    let body = match kind {
        OpenKind::Discover => {
            let listed = strings(result.get("supportedVersions"));
            wire.version = common(&versions.modern, &listed);
            McpBody::Discovered { agreed: wire.version.is_some() }
        }
        OpenKind::Initialize => {
            let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
            let accepted = versions.legacy.iter().any(|v| v == version);
            wire.version = accepted.then(|| version.to_owned());
            McpBody::Initialized { accepted }
        }
        OpenKind::List => match result.get("tools").and_then(Value::as_array) {
            None => McpBody::Malformed,
            Some(_) => {
                let id = id.unwrap_or_default();
                wire.pages.push(result.clone());
                if result.get("nextCursor").is_some_and(|cursor| !cursor.is_null()) {
                    return respond(Some(id), McpBody::MoreTools, String::new());
                }
                let tools =
                    wire.pages.drain(..).filter_map(|mut page| page.get_mut("tools").map(Value::take));
                let tools = tools.filter_map(|tools| match tools {
                    Value::Array(tools) => Some(tools),
                    _ => None,
                });
                return Heard::Tools(id, tools.flatten().collect());
            }
        },
        OpenKind::Nothing => McpBody::Malformed,
    };
    respond(id, body, String::new())
}

fn respond(id: Option<u16>, body: McpBody, text: String) -> Heard {
    Heard::Control(McpIn::Response { id, body }, text)
}

fn malformed() -> String {
    "The server's response is not a valid MCP response, so it was not read. The request may have run."
        .to_owned()
}

/// Error -32022: whether there is a common modern version; it becomes the one in use.
fn unsupported(wire: &mut Wire, versions: &ClientVersions, error: &Value) -> Option<McpBody> {
    (error.get("code")?.as_i64()? == -32022).then(|| {
        let listed = strings(error.pointer("/data/supported"));
        let common = common(&versions.modern, &listed);
        let found = common.is_some();
        if found {
            wire.version = common;
        }
        McpBody::UnsupportedVersion { common: found }
    })
}

fn common(ours: &[String], theirs: &[String]) -> Option<String> {
    ours.iter().find(|version| theirs.contains(version)).cloned()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A CallToolResult: its mark of an error and its text.
fn called(result: &Value) -> Option<(bool, String)> {
    let fields = result.as_object()?;
    let is_error = match fields.get("isError") {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(_) => return None,
    };
    if let Some(structured) = fields.get("structuredContent").filter(|_| !is_error) {
        return Some((false, structured.to_string()));
    }
    let blocks = match fields.get("content") {
        None => &[][..],
        Some(content) => content.as_array()?,
    };
    let texts: Vec<&str> = blocks.iter().filter_map(|b| b.get("text").and_then(Value::as_str)).collect();
    Some((is_error, texts.join("\n")))
}

/// What the client answers to a server's own request (mcp 3.4): roots and ping are served, the rest is not.
fn answer_request(method: &str, id: &Value) -> String {
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        "roots/list" => json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}),
        _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}),
    }
    .to_string()
}
