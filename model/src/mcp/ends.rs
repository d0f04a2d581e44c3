//! θ: from each way a `tools/call` can end to exactly one tool_result (proposition 3.7).
//!
//! Source: mcp.md 3.3 (observed, Claude Code 2.1.332) and 1.10 (specification). [`tool_result`] is total: it has a
//! value for every [`End`], so that a call never leaves its `tool_use` without a result.

use super::jsonrpc::ErrorObject;
use serde_json::Value;

/// One way a `tools/call` can end, from the point of view of the client.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// A result response arrived (isError false or true, well or badly formed).
    Result(Value),
    /// A JSON-RPC error response arrived.
    ProtocolError(ErrorObject),
    /// Something with the call's id arrived that is no response (both `result` and `error`, a broken `error`).
    NotAResponse,
    /// The wall-clock limit of the call passed.
    TimedOut {
        /// The limit, in milliseconds.
        after_ms: u64,
    },
    /// Neither an answer nor progress came for this long.
    Idle {
        /// The limit, in milliseconds.
        after_ms: u64,
    },
    /// The connection closed while the call was open.
    ConnectionClosed,
    /// HTTP: a status that is no success, with the body.
    HttpStatus {
        /// The status.
        status: u16,
        /// The body, as far as it was read.
        body: String,
    },
    /// HTTP 401: the server wants the user to log in.
    NeedsAuthorization,
    /// HTTP: the session was lost twice.
    SessionExpired,
    /// The user interrupted the call.
    Interrupted,
    /// The server asked for input (MRTR) by a method that the client did not declare.
    InputNotServed {
        /// That method.
        method: String,
    },
    /// The server asked for input more often than the client's limit.
    TooManyInputRounds {
        /// The limit.
        rounds: u32,
    },
    /// There is no such tool: unknown, its server failed, denied or still absent.
    NoSuchTool {
        /// The name that the assistant used.
        name: String,
    },
}

/// The four classes of proposition 3.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndClass {
    /// (i) a result with isError false.
    Result,
    /// (ii) a result with isError true.
    ErrorResult,
    /// (iii) a protocol error.
    ProtocolError,
    /// (iv) no answer.
    NoAnswer,
}

impl EndClass {
    /// All four, in the order of the proposition.
    pub const ALL: [Self; 4] = [Self::Result, Self::ErrorResult, Self::ProtocolError, Self::NoAnswer];
}

impl End {
    /// Its class in proposition 3.7. A response that cannot be read counts as a protocol error: something came, and it
    /// is no result.
    pub fn class(&self) -> EndClass {
        match self {
            Self::Result(result) if result.get("isError") == Some(&Value::Bool(true)) => {
                EndClass::ErrorResult
            }
            Self::Result(result) if result.is_object() => EndClass::Result,
            Self::Result(_)
            | Self::ProtocolError(_)
            | Self::NotAResponse
            | Self::HttpStatus { .. }
            | Self::NeedsAuthorization
            | Self::SessionExpired
            | Self::InputNotServed { .. }
            | Self::TooManyInputRounds { .. }
            | Self::NoSuchTool { .. } => EndClass::ProtocolError,
            Self::TimedOut { .. } | Self::Idle { .. } | Self::ConnectionClosed | Self::Interrupted => {
                EndClass::NoAnswer
            }
        }
    }
}

/// Where clients differ in θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theta {
    /// `structuredContent` replaces all content blocks (observed); otherwise the blocks are shown and it is not.
    pub structured_replaces_content: bool,
    /// The code of a protocol error is shown before its message; observed: the message alone.
    pub shows_error_code: bool,
}

impl Theta {
    /// The specification: content is for the assistant, structured content for programs.
    pub const SPECIFICATION: Self = Self { structured_replaces_content: false, shows_error_code: true };
    /// Claude Code 2.1.332 (mcp.md 3.3).
    pub const CLAUDE_CODE: Self = Self { structured_replaces_content: true, shows_error_code: false };
}

/// The call that a result is for, as far as texts name it.
#[derive(Clone, Copy, Debug)]
pub struct CallNames<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name, not qualified.
    pub tool: &'a str,
    /// Whether the connection is modern: then `content` may not be missing and `resultType` counts.
    pub modern: bool,
}

/// Bytes that a result carries beside its text; the world saves or forwards them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// `image`, `audio` or `resource`.
    pub kind: &'static str,
    /// The MIME type, empty where the server gave none.
    pub mime_type: String,
    /// The base64 text as it came.
    pub base64: String,
}

/// The one tool_result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// The text that the assistant reads.
    pub text: String,
    /// Whether it is marked as an error.
    pub is_error: bool,
    /// What else it carries.
    pub attachments: Vec<Attachment>,
}

impl ToolResult {
    fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, attachments: Vec::new() }
    }

    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false, attachments: Vec::new() }
    }
}

/// θ: the tool_result of an end. Exactly one, for every end (proposition 3.7.2).
pub fn tool_result(end: &End, names: CallNames<'_>, theta: Theta) -> ToolResult {
    let server = names.server;
    match end {
        End::Result(result) => result_text(result, names, theta),
        End::ProtocolError(error) if theta.shows_error_code => {
            ToolResult::error(format!("MCP error {}: {}", error.code, error.message))
        }
        End::ProtocolError(error) => ToolResult::error(error.message.clone()),
        End::NotAResponse => ToolResult::error(NOT_A_RESPONSE),
        End::TimedOut { after_ms } => ToolResult::error(format!(
            "MCP server \"{server}\" tool \"{}\" timed out after {}s",
            names.tool,
            after_ms / 1000
        )),
        End::Idle { after_ms } => ToolResult::error(format!(
            "MCP server \"{server}\" tool \"{}\" sent no response or progress for {}s; aborting.",
            names.tool,
            after_ms / 1000
        )),
        End::ConnectionClosed => ToolResult::error("Connection closed"),
        End::HttpStatus { body, .. } => ToolResult::error(format!("Error POSTing to endpoint: {body}")),
        End::NeedsAuthorization => {
            ToolResult::error(format!("MCP server \"{server}\" requires re-authorization"))
        }
        End::SessionExpired => ToolResult::error(format!("MCP server \"{server}\" session expired")),
        End::Interrupted => ToolResult::error("The call was interrupted by the user."),
        End::InputNotServed { method } => ToolResult::error(format!(
            "MCP server \"{server}\" asked for input this client could not serve ({method}), so the call was not made again"
        )),
        End::TooManyInputRounds { rounds } => ToolResult::error(format!(
            "Multi-round-trip request 'tools/call' still required input after {rounds} rounds"
        )),
        End::NoSuchTool { name } => ToolResult::error(format!(
            "<tool_use_error>Error: No such tool available: {name}</tool_use_error>"
        )),
    }
}

const NOT_A_RESPONSE: &str =
    "The server's response is not a valid MCP response, so it was not read. The request may have run.";

fn malformed(server: &str, what: &str) -> ToolResult {
    ToolResult::error(format!(
        "MCP server \"{server}\" returned a malformed result that failed schema validation: Invalid result for tools/call: {what}"
    ))
}

fn result_text(result: &Value, names: CallNames<'_>, theta: Theta) -> ToolResult {
    let Some(object) = result.as_object() else { return ToolResult::error(NOT_A_RESPONSE) };
    if names.modern {
        match object.get("resultType") {
            None => {}
            Some(Value::String(kind)) if kind == "complete" => {}
            Some(Value::String(kind)) if kind == "input_required" => {
                // The client retries these; one that reaches θ had neither `inputRequests` nor `requestState`.
                return malformed(names.server, "input_required without inputRequests and requestState");
            }
            Some(Value::String(kind)) => {
                return ToolResult::error(format!("Unsupported result type '{kind}' for tools/call"));
            }
            Some(_) => return malformed(names.server, "resultType is not a string"),
        }
    }
    let is_error = match object.get("isError") {
        None => false,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => return malformed(names.server, "isError is not a boolean"),
    };
    let blocks = match object.get("content") {
        None if names.modern => return malformed(names.server, "content is missing"),
        None => &[][..],
        Some(Value::Array(blocks)) => blocks.as_slice(),
        Some(_) => return malformed(names.server, "content is not an array"),
    };
    if is_error {
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        let text = texts.join("\n");
        return ToolResult::error(if text.is_empty() { "Unknown error".to_owned() } else { text });
    }
    if theta.structured_replaces_content
        && let Some(structured) = object.get("structuredContent").filter(|value| !value.is_null())
    {
        return ToolResult::plain(structured.to_string());
    }
    let mut texts = Vec::with_capacity(blocks.len());
    let mut attachments = Vec::new();
    for block in blocks {
        match block_text(block, names.server, &mut attachments) {
            Ok(text) => texts.push(text),
            Err(what) => return malformed(names.server, what),
        }
    }
    let text = texts.join("\n");
    if text.is_empty() {
        let name = super::names::qualify(names.server, names.tool);
        return ToolResult { attachments, ..ToolResult::plain(format!("({name} completed with no output)")) };
    }
    ToolResult { text, is_error: false, attachments }
}

/// The text of one content block, or what is wrong with it.
fn block_text(
    block: &Value,
    server: &str,
    attachments: &mut Vec<Attachment>,
) -> Result<String, &'static str> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match block.get("type").and_then(Value::as_str) {
        Some("text") => text(block, "text").ok_or("a text block without text"),
        Some(kind @ ("image" | "audio")) => {
            let kind = if kind == "image" { "image" } else { "audio" };
            let (Some(base64), Some(mime_type)) = (text(block, "data"), text(block, "mimeType")) else {
                return Err("a binary block without data and mimeType");
            };
            let line = binary_line(&capitalised(kind), server, &mime_type, &base64);
            attachments.push(Attachment { kind, mime_type, base64 });
            Ok(line)
        }
        Some("resource") => {
            let resource = block.get("resource").ok_or("a resource block without resource")?;
            let uri = text(resource, "uri").ok_or("a resource without uri")?;
            let mime_type = text(resource, "mimeType").unwrap_or_default();
            match (text(resource, "text"), text(resource, "blob")) {
                (Some(body), _) => Ok(format!("[Resource from {server} at {uri}] {body}")),
                (None, Some(base64)) => {
                    let line = binary_line("Resource", &format!("{server} at {uri}"), &mime_type, &base64);
                    attachments.push(Attachment { kind: "resource", mime_type, base64 });
                    Ok(line)
                }
                (None, None) => Err("a resource with neither text nor blob"),
            }
        }
        Some("resource_link") => {
            let (Some(name), Some(uri)) = (text(block, "name"), text(block, "uri")) else {
                return Err("a resource link without name and uri");
            };
            let description = text(block, "description").map(|d| format!(" ({d})")).unwrap_or_default();
            Ok(format!("[Resource link: {name}] {uri}{description}"))
        }
        _ => Err("a content block of unknown type"),
    }
}

fn capitalised(kind: &str) -> String {
    let mut letters = kind.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

fn binary_line(what: &str, from: &str, mime_type: &str, base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    format!("[{what} from {from}] Binary content ({mime_type}, {bytes} bytes)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn theta(end: &End, modern: bool) -> (String, bool) {
        let result = tool_result(end, CallNames { server: "s", tool: "t", modern }, Theta::CLAUDE_CODE);
        (result.text, result.is_error)
    }

    fn of(result: Value) -> (String, bool) {
        theta(&End::Result(result), false)
    }

    /// The table of mcp.md 3.3, row by row.
    #[test]
    fn p3_7_the_observed_table() {
        let ok = |text: &str| (text.to_owned(), false);
        let bad = |text: &str| (text.to_owned(), true);
        assert_eq!(
            of(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})),
            ok("a\nb")
        );
        assert_eq!(
            of(json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"n": 1}})),
            ok(r#"{"n":1}"#)
        );
        assert_eq!(of(json!({"content": []})), ok("(mcp__s__t completed with no output)"));
        assert_eq!(of(json!({})), ok("(mcp__s__t completed with no output)"));
        assert!(theta(&End::Result(json!({})), true).1);
        assert_eq!(of(json!({"isError": true, "content": []})), bad("Unknown error"));
        assert_eq!(
            of(json!({"isError": true, "content": [{"type": "text", "text": "x"}], "structuredContent": 1})),
            bad("x")
        );
        assert_eq!(
            theta(&End::ProtocolError(ErrorObject::new(-32603, "not found")), false),
            bad("not found")
        );
        assert!(of(json!({"isError": "yes"})).0.contains("failed schema validation"));
        assert!(of(json!({"content": [{"type": "video"}]})).1);
        assert_eq!(of(Value::Null), bad(NOT_A_RESPONSE));
        assert_eq!(of(json!("text")), bad(NOT_A_RESPONSE));
        let task = End::Result(json!({"resultType": "task", "content": []}));
        assert_eq!(theta(&task, true), bad("Unsupported result type 'task' for tools/call"));
        assert!(!theta(&task, false).1);
        assert_eq!(
            theta(&End::TimedOut { after_ms: 1999 }, false),
            bad("MCP server \"s\" tool \"t\" timed out after 1s")
        );
        assert_eq!(theta(&End::ConnectionClosed, false), bad("Connection closed"));
        assert_eq!(
            of(json!({"content": [{"type": "resource", "resource": {"uri": "u:1", "text": "T"}},
                {"type": "resource_link", "name": "n", "uri": "u:2", "description": "d"}]})),
            ok("[Resource from s at u:1] T\n[Resource link: n] u:2 (d)")
        );
    }

    #[test]
    fn p3_7_every_class_has_an_end() {
        let ends = [
            End::Result(json!({"content": []})),
            End::Result(json!({"isError": true})),
            End::ProtocolError(ErrorObject::new(-32603, "m")),
            End::ConnectionClosed,
        ];
        assert_eq!(ends.map(|end| end.class()), EndClass::ALL);
    }
}
