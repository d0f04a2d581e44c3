//! JSON-RPC messages as MCP uses them: requests, notifications, result and error responses.
//!
//! Source: MCP specification, base protocol, "Messages" (revisions 2024-11-05 to 2026-07-28); mcp.md 1.2, 1.3.
//! Parsing is total: a line is a [`Message`] or a [`Malformed`] with its reason, and with the id where one could still
//! be read, so that a broken answer ends the call it belongs to instead of leaving it open (proposition 3.7).

use serde_json::{Map, Value, json};

/// A request id: an integer or a string, never null (mcp.md 1.1). `1` and `"1"` are different ids (proposition 3.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// A JSON integer.
    Integer(i64),
    /// A JSON string.
    String(String),
}

impl RequestId {
    /// Reads an id.
    ///
    /// # Errors
    /// When the value is neither an integer (in 64 bits) nor a string.
    pub fn from_value(value: &Value) -> Result<Self, BadId> {
        match value {
            Value::String(text) => Ok(Self::String(text.clone())),
            Value::Number(number) => number.as_i64().map(Self::Integer).ok_or(BadId::NotAnInteger),
            Value::Null => Err(BadId::Null),
            _ => Err(BadId::OtherType),
        }
    }

    /// The id as JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Integer(number) => (*number).into(),
            Self::String(text) => text.as_str().into(),
        }
    }

    /// The same printed form in the other type: `1` for `"1"` and the reverse, where there is one. What a client that
    /// coerces ids would also accept.
    pub fn coerced(&self) -> Option<Self> {
        match self {
            Self::Integer(number) => Some(Self::String(number.to_string())),
            Self::String(text) => {
                text.parse::<i64>().ok().filter(|n| n.to_string() == *text).map(Self::Integer)
            }
        }
    }
}

impl std::fmt::Display for RequestId {
    /// As it stands in JSON, so that `1` and `"1"` look different.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::String(text) => write!(f, "{}", Value::from(text.as_str())),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl serde::Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> serde::Deserialize<'de> for RequestId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(serde::de::Error::custom)
    }
}

/// Why a value is no request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BadId {
    /// `null`: allowed by JSON-RPC, forbidden by MCP.
    #[error("the id is null")]
    Null,
    /// A fraction, or an integer outside 64 bits.
    #[error("the id is a number but no integer")]
    NotAnInteger,
    /// A boolean, an array, an object.
    #[error("the id is neither an integer nor a string")]
    OtherType,
}

/// A number that JSON-RPC or MCP gives a meaning (mcp.md 1.3).
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Wrong parameters; also unknown tool, missing `_meta`, invalid cursor, unknown prompt.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server's own fault.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Resource not found, up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// HTTP headers contradict the body (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// A client capability is missing (2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The revision is not supported; `data.supported` lists those that are (2026-07-28).
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// URL elicitation required (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// The `error` member of an error response.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorObject {
    /// The code.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Anything else.
    pub data: Option<Value>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The error as JSON.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("code".to_owned(), self.code.into());
        object.insert("message".to_owned(), self.message.as_str().into());
        if let Some(data) = &self.data {
            object.insert("data".to_owned(), data.clone());
        }
        Value::Object(object)
    }
}

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Wants an answer with the same id.
    Request {
        /// The id.
        id: RequestId,
        /// The method.
        method: String,
        /// The parameters; an object where present.
        params: Option<Value>,
    },
    /// Wants no answer and has no id.
    Notification {
        /// The method.
        method: String,
        /// The parameters; an object where present.
        params: Option<Value>,
    },
    /// A result response.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The result. MCP wants an object; anything else is kept for whoever judges it.
        result: Value,
    },
    /// An error response.
    Error {
        /// The id of the request; missing only where it could not be read.
        id: Option<RequestId>,
        /// The error.
        error: ErrorObject,
    },
}

/// Why a line is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedReason {
    /// Not JSON (or nested deeper than 128); the parser's words.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// An array: batches exist in 2025-03-26 only.
    #[error("a batch (an array of messages)")]
    Batch,
    /// JSON, but no object.
    #[error("JSON, but not an object")]
    NotAnObject,
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("`jsonrpc` is not \"2.0\"")]
    WrongVersion,
    /// The id of a request or a result response is no id.
    #[error("{0}")]
    BadId(BadId),
    /// `method` is not a string.
    #[error("`method` is not a string")]
    MethodNotAString,
    /// `params` is neither an object nor missing.
    #[error("`params` is not an object")]
    ParamsNotAnObject,
    /// `method` beside `result` or `error`.
    #[error("both a request and a response")]
    RequestAndResponse,
    /// `result` beside `error`.
    #[error("both `result` and `error`")]
    ResultAndError,
    /// `result` without `id`.
    #[error("a result without an id")]
    ResultWithoutId,
    /// `error` without an integer `code` or a string `message`.
    #[error("`error` without an integer `code` and a string `message`")]
    BadErrorObject,
    /// An object with none of `method`, `result`, `error`.
    #[error("an object without `method`, `result` or `error`")]
    NoMessage,
}

/// A line that is no message, with the id where one could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Malformed {
    /// Why.
    pub reason: MalformedReason,
    /// The id that it carries, where that is a good one.
    pub id: Option<RequestId>,
}

impl Malformed {
    fn new(reason: MalformedReason, id: Option<RequestId>) -> Self {
        Self { reason, id }
    }
}

impl Message {
    /// A request.
    pub fn request(id: impl Into<RequestId>, method: impl Into<String>, params: Option<Value>) -> Self {
        Self::Request { id: id.into(), method: method.into(), params }
    }

    /// A notification.
    pub fn notification(method: impl Into<String>, params: Option<Value>) -> Self {
        Self::Notification { method: method.into(), params }
    }

    /// A result response.
    pub fn response(id: RequestId, result: Value) -> Self {
        Self::Response { id, result }
    }

    /// An error response without data.
    pub fn error(id: Option<RequestId>, code: i64, message: impl Into<String>) -> Self {
        Self::Error { id, error: ErrorObject::new(code, message) }
    }

    /// The message's id.
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Request { id, .. } | Self::Response { id, .. } => Some(id),
            Self::Error { id, .. } => id.as_ref(),
            Self::Notification { .. } => None,
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method, .. } => Some(method),
            Self::Response { .. } | Self::Error { .. } => None,
        }
    }

    /// The parameters of a request or notification.
    pub fn params(&self) -> Option<&Value> {
        match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => params.as_ref(),
            Self::Response { .. } | Self::Error { .. } => None,
        }
    }

    /// Reads one line (with or without its line end).
    ///
    /// # Errors
    /// With the reason and, where it could be read, the id.
    ///
    /// ```
    /// use windtunnel_model::mcp::jsonrpc::{Message, RequestId};
    /// let message = Message::parse(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#).unwrap();
    /// assert_eq!(message.id(), Some(&RequestId::from("1")));
    /// assert_ne!(message.id(), Some(&RequestId::from(1)));
    /// ```
    pub fn parse(line: &str) -> Result<Self, Malformed> {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| Malformed::new(MalformedReason::NotJson(error.to_string()), None))?;
        Self::from_value(value)
    }

    /// Reads one JSON value.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_value(value: Value) -> Result<Self, Malformed> {
        let mut object = match value {
            Value::Object(object) => object,
            Value::Array(_) => return Err(Malformed::new(MalformedReason::Batch, None)),
            _ => return Err(Malformed::new(MalformedReason::NotAnObject, None)),
        };
        let id = object.get("id").map(RequestId::from_value);
        let good_id = id.clone().and_then(Result::ok);
        let malformed = |reason| Malformed::new(reason, good_id.clone());

        let has = |member: &str| object.contains_key(member);
        if !(has("method") || has("result") || has("error")) {
            return Err(malformed(MalformedReason::NoMessage));
        }
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(malformed(MalformedReason::WrongVersion));
        }
        if has("method") && (has("result") || has("error")) {
            return Err(malformed(MalformedReason::RequestAndResponse));
        }
        if has("result") && has("error") {
            return Err(malformed(MalformedReason::ResultAndError));
        }
        if let Some(method) = object.get("method") {
            let Some(method) = method.as_str().map(str::to_owned) else {
                return Err(malformed(MalformedReason::MethodNotAString));
            };
            let params = object.remove("params");
            if params.as_ref().is_some_and(|params| !params.is_object()) {
                return Err(malformed(MalformedReason::ParamsNotAnObject));
            }
            return match id {
                None => Ok(Self::Notification { method, params }),
                Some(Ok(id)) => Ok(Self::Request { id, method, params }),
                Some(Err(bad)) => Err(malformed(MalformedReason::BadId(bad))),
            };
        }
        if let Some(result) = object.remove("result") {
            return match id {
                Some(Ok(id)) => Ok(Self::Response { id, result }),
                Some(Err(bad)) => Err(malformed(MalformedReason::BadId(bad))),
                None => Err(malformed(MalformedReason::ResultWithoutId)),
            };
        }
        // An error response may leave its id out, or give null, where the request's id could not be read.
        let id = match id {
            None | Some(Err(BadId::Null)) => None,
            Some(Ok(id)) => Some(id),
            Some(Err(bad)) => return Err(malformed(MalformedReason::BadId(bad))),
        };
        let parts = object.remove("error").map(|mut error| {
            (
                error.get("code").and_then(Value::as_i64),
                error.get("message").and_then(Value::as_str).map(str::to_owned),
                error.as_object_mut().and_then(|error| error.remove("data")),
            )
        });
        match parts {
            Some((Some(code), Some(message), data)) => {
                Ok(Self::Error { id, error: ErrorObject { code, message, data } })
            }
            _ => Err(malformed(MalformedReason::BadErrorObject)),
        }
    }

    /// The message as JSON, members in the order of the specification's examples.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("jsonrpc".to_owned(), "2.0".into());
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        match self {
            Self::Request { id, method, params } => {
                put("id", id.to_value());
                put("method", method.as_str().into());
                params.clone().map(|params| put("params", params));
            }
            Self::Notification { method, params } => {
                put("method", method.as_str().into());
                params.clone().map(|params| put("params", params));
            }
            Self::Response { id, result } => {
                put("id", id.to_value());
                put("result", result.clone());
            }
            Self::Error { id, error } => {
                put("id", id.as_ref().map_or(Value::Null, RequestId::to_value));
                put("error", error.to_value());
            }
        }
        Value::Object(object)
    }

    /// The message as one line without its line end. JSON escapes line ends inside strings, so there is none in it.
    pub fn to_line(&self) -> String {
        self.to_value().to_string()
    }
}

/// The `notifications/cancelled` for a request (mcp.md 1.8).
pub fn cancelled(id: &RequestId, reason: &str) -> Message {
    Message::notification(
        "notifications/cancelled",
        Some(json!({"requestId": id.to_value(), "reason": reason})),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reason(line: &str) -> MalformedReason {
        Message::parse(line).expect_err("malformed").reason
    }

    #[test]
    fn each_kind_is_read() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":"1","method":"a","params":{"x":[1]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"m","data":{"supported":[]}}}"#,
        ] {
            assert_eq!(Message::parse(line).expect(line).to_line(), line);
        }
    }

    #[test]
    fn each_fault_has_its_reason() {
        assert!(matches!(reason("Server v1 ready"), MalformedReason::NotJson(_)));
        assert_eq!(reason("[]"), MalformedReason::Batch);
        assert_eq!(reason("3"), MalformedReason::NotAnObject);
        assert_eq!(reason(r#"{"level":"info"}"#), MalformedReason::NoMessage);
        assert_eq!(reason(r#"{"id":1,"method":"a"}"#), MalformedReason::WrongVersion);
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#),
            MalformedReason::BadId(BadId::Null)
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#),
            MalformedReason::BadId(BadId::NotAnInteger)
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":true,"result":{}}"#),
            MalformedReason::BadId(BadId::OtherType)
        );
        assert_eq!(reason(r#"{"jsonrpc":"2.0","method":1}"#), MalformedReason::MethodNotAString);
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","method":"a","params":[1]}"#),
            MalformedReason::ParamsNotAnObject
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#),
            MalformedReason::RequestAndResponse
        );
        assert_eq!(reason(r#"{"jsonrpc":"2.0","result":{}}"#), MalformedReason::ResultWithoutId);
        assert_eq!(reason(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#), MalformedReason::BadErrorObject);
        let both = Message::parse(r#"{"jsonrpc":"2.0","id":4,"result":{},"error":{"code":1,"message":"m"}}"#)
            .expect_err("malformed");
        assert_eq!(both, Malformed { reason: MalformedReason::ResultAndError, id: Some(4.into()) });
        assert!(matches!(reason(&"[".repeat(10_000)), MalformedReason::NotJson(_)));
    }

    #[test]
    fn coercion_is_on_the_canonical_form_only() {
        assert_eq!(RequestId::from("42").coerced(), Some(42.into()));
        assert_eq!(RequestId::from("042").coerced(), None);
        assert_eq!(RequestId::from("+42").coerced(), None);
        assert_eq!(RequestId::from(42).coerced(), Some("42".into()));
    }

    proptest! {
        #[test]
        fn parsing_is_total_and_printing_parses(text in ".{0,200}") {
            if let Ok(message) = Message::parse(&text) {
                prop_assert_eq!(Message::parse(&message.to_line()).ok(), Some(message));
            }
        }
    }
}
