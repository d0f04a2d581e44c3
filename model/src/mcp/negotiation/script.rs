//! The script of a server: a JSON file that says how a server behaves, also badly. `windtunnel mcp serve` plays it as
//! a real process, in-process worlds and the model play the same.
//!
//! ```json
//! {
//!   "name": "files",
//!   "versions": ["2025-11-25", "2026-07-28"],
//!   "tools": [
//!     {"name": "read", "description": "Reads a file", "behaviour": {"answer": {"text": "content"}}},
//!     {"name": "slow", "behaviour": {"delay_ms": 2000, "answer": "echo"}},
//!     {"name": "dies", "behaviour": [{"answer": "silence"}, {"answer": {"exit": 3}}]}
//!   ],
//!   "methods": {"server/discover": {"answer": "silence"}}
//! }
//! ```
//!
//! Everything has a default; an empty object is a well-behaved dual server without tools. A `behaviour` is one object,
//! or an array of them: the n-th call takes the n-th, later ones the last.

use crate::mcp::profile::Eras;
use crate::mcp::version::{Era, Version};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A server's script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerScript {
    /// `serverInfo.name`.
    pub name: String,
    /// `serverInfo.version`.
    pub version: String,
    /// The revisions that it speaks; its eras follow from them.
    pub versions: Vec<Version>,
    /// Answers `initialize` with this revision whatever is offered.
    pub always_answers: Option<String>,
    /// Whether the first request pins the process to its era (Python and TypeScript SDK 2.x); otherwise both eras
    /// are spoken at once (rmcp).
    pub pins_era: bool,
    /// Whether `supported` and `supportedVersions` also list the legacy revisions (rmcp; the specification's example).
    pub lists_legacy: bool,
    /// Whether legacy requests are answered before the handshake (TypeScript SDK).
    pub answers_before_handshake: bool,
    /// Nothing is read for so long after the start.
    pub boot_delay_ms: u64,
    /// Lines on stdout before anything else.
    pub banner: Vec<String>,
    /// Lines on stderr at the start.
    pub stderr: Vec<String>,
    /// Exits at once with this code instead of serving.
    pub exits_at_start: Option<i32>,
    /// The code of errors on unknown methods.
    pub unknown_method_code: i64,
    /// Exits with this code on an unknown method (older rmcp).
    pub exits_on_unknown_method: Option<i32>,
    /// Answers a call of an unknown tool with an `isError` result instead of -32602.
    pub unknown_tool_is_result: bool,
    /// Checks arguments against the tool's schema and answers `isError` when they do not fit.
    pub validates_arguments: bool,
    /// Answers notifications with an error (a fault).
    pub answers_notifications: bool,
    /// Answers to `tools/call` are held back until so many are due, then sent in reverse order.
    pub reorder: Option<usize>,
    /// Does not end when its input ends.
    pub ignores_eof: bool,
    /// Does not end on SIGINT and SIGTERM.
    pub ignores_signals: bool,
    /// Never reads its input (process world only).
    pub never_reads: bool,
    /// HTTP: at the n-th request in a session (from 1) all sessions are forgotten.
    pub loses_sessions_after: Option<u64>,
    /// Capabilities instead of those that follow from tools, prompts and resources.
    pub capabilities: Option<Value>,
    /// `instructions`.
    pub instructions: Option<String>,
    /// Items a page of every list; all on one page where missing.
    pub page_size: Option<usize>,
    /// The last page repeats its cursor (a fault).
    pub repeats_cursor: bool,
    /// `ttlMs` of lists and discover results in the modern era.
    pub ttl_ms: i64,
    /// `cacheScope` of the same.
    pub cache_scope: String,
    /// Tools.
    pub tools: Vec<ScriptedTool>,
    /// Prompts: the definition as listed, and the result of `prompts/get` in `result`.
    pub prompts: Vec<ScriptedItem>,
    /// Resources: the definition as listed, and the result of `resources/read` in `result`.
    pub resources: Vec<ScriptedItem>,
    /// How methods behave that should not behave as usual (`server/discover`, `initialize`, `tools/list`, …).
    #[serde(deserialize_with = "methods_of_behaviours")]
    pub methods: BTreeMap<String, Vec<Behaviour>>,
}

impl Default for ServerScript {
    fn default() -> Self {
        Self {
            name: "scripted".to_owned(),
            version: "1.0.0".to_owned(),
            versions: Version::PUBLISHED.to_vec(),
            always_answers: None,
            pins_era: true,
            lists_legacy: false,
            answers_before_handshake: false,
            boot_delay_ms: 0,
            banner: Vec::new(),
            stderr: Vec::new(),
            exits_at_start: None,
            unknown_method_code: crate::mcp::jsonrpc::code::METHOD_NOT_FOUND,
            exits_on_unknown_method: None,
            unknown_tool_is_result: false,
            validates_arguments: false,
            answers_notifications: false,
            reorder: None,
            ignores_eof: false,
            ignores_signals: false,
            never_reads: false,
            loses_sessions_after: None,
            capabilities: None,
            instructions: None,
            page_size: None,
            repeats_cursor: false,
            ttl_ms: 0,
            cache_scope: "private".to_owned(),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            methods: BTreeMap::new(),
        }
    }
}

impl ServerScript {
    /// A well-behaved server of these eras, with one tool `echo`.
    pub fn of_eras(eras: Eras) -> Self {
        let versions = Version::PUBLISHED.into_iter().filter(|version| eras.has(version.era())).collect();
        let echo = ScriptedTool { name: "echo".to_owned(), ..ScriptedTool::default() };
        Self { name: eras.word().to_owned(), versions, tools: vec![echo], ..Self::default() }
    }

    /// Its revisions of one era, newest last.
    pub fn of_era(&self, era: Era) -> Vec<Version> {
        let mut versions: Vec<Version> = self.versions.iter().copied().filter(|v| v.era() == era).collect();
        versions.sort_unstable();
        versions
    }
}

/// A tool: its definition, and how a call of it behaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ScriptedTool {
    /// `name`.
    pub name: String,
    /// `description`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `inputSchema`; `{"type": "object"}` where missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// `outputSchema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// `annotations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// Further members of the definition.
    pub extra: Map<String, Value>,
    /// How calls behave; empty: as [`Behaviour::default`] (an echo of the arguments).
    #[serde(deserialize_with = "behaviours")]
    pub behaviour: Vec<Behaviour>,
}

impl ScriptedTool {
    /// The definition as `tools/list` shows it.
    pub fn definition(&self) -> Value {
        let mut definition = Map::new();
        definition.insert("name".to_owned(), self.name.as_str().into());
        if let Some(description) = &self.description {
            definition.insert("description".to_owned(), description.as_str().into());
        }
        let schema = self.input_schema.clone().unwrap_or_else(|| serde_json::json!({"type": "object"}));
        definition.insert("inputSchema".to_owned(), schema);
        let others = [("outputSchema", &self.output_schema), ("annotations", &self.annotations)];
        for (key, value) in others {
            if let Some(value) = value {
                definition.insert(key.to_owned(), value.clone());
            }
        }
        definition.extend(self.extra.clone());
        Value::Object(definition)
    }
}

/// A prompt or a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedItem {
    /// The definition as listed.
    pub definition: Value,
    /// The result of getting or reading it.
    pub result: Value,
}

/// How one request is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// The answer comes so much later.
    pub delay_ms: u64,
    /// What it is.
    pub answer: Answer,
    /// Whole messages sent before the answer (notifications, requests to the client), at once.
    pub before: Vec<Value>,
    /// Raw lines written before the answer, at once.
    pub raw_before: Vec<String>,
    /// So many progress notifications are sent before the answer, `delay_ms` spread evenly between them, if the request
    /// carries a progress token.
    pub progress: u32,
    /// What is wrong with the answer's id.
    pub id: IdFault,
    /// The answer is sent twice.
    pub duplicate: bool,
    /// The answer's line is cut in the middle and the process exits.
    pub dies_mid_line: bool,
    /// The answer's line is written byte by byte with this pause, in milliseconds.
    pub drip_ms: Option<u64>,
    /// After the answer the tools are these, and the change is announced.
    pub then_tools: Option<Vec<ScriptedTool>>,
    /// After the answer the process exits with this code.
    pub then_exit: Option<i32>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What a well-behaved server answers; for a tool call, as `echo`.
    #[default]
    Usual,
    /// The arguments of the call, as text.
    Echo,
    /// A result with one text block.
    Text(String),
    /// A result with one text block and `isError: true`.
    IsError(String),
    /// This result. In the modern era what is missing of `resultType` and `_meta` is added.
    Result(Value),
    /// This result, exactly.
    ExactResult(Value),
    /// A JSON-RPC error.
    Error {
        /// The code.
        code: i64,
        /// The message.
        message: String,
        /// The data.
        #[serde(default)]
        data: Option<Value>,
    },
    /// Nothing.
    Silence,
    /// The process exits with this code.
    Exit(i32),
    /// This line instead of an answer.
    Raw(String),
    /// One line of this many bytes of text, as a result.
    Giant {
        /// The text's length.
        bytes: u64,
    },
    /// A line of this many bytes that never ends; the process goes on without writing.
    EndlessLine {
        /// How much is written.
        bytes: u64,
    },
    /// This many notifications, then the usual answer.
    Flood {
        /// How many.
        notifications: u64,
    },
}

/// What is wrong with the id of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdFault {
    /// Nothing: it is the request's.
    #[default]
    None,
    /// The other type with the same printed form (`1` becomes `"1"`).
    OtherType,
    /// One that no request has.
    Unknown,
    /// Always 0.
    Zero,
    /// Null.
    Null,
}

/// One behaviour, or several for the first, second, … time.
fn behaviours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Behaviour>, D::Error> {
    one_or_many(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn methods_of_behaviours<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<Behaviour>>, D::Error> {
    BTreeMap::<String, Value>::deserialize(deserializer)?
        .into_iter()
        .map(|(method, value)| {
            one_or_many(value)
                .map(|list| (method.clone(), list))
                .map_err(|error| serde::de::Error::custom(format!("{method}: {error}")))
        })
        .collect()
}

/// Told apart by hand, since an untagged enum would hide which field is wrong.
fn one_or_many(value: Value) -> Result<Vec<Behaviour>, serde_json::Error> {
    match value {
        Value::Array(_) => serde_json::from_value(value),
        one => serde_json::from_value(one).map(|behaviour| vec![behaviour]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_and_faults_are_named() {
        let script: ServerScript = serde_json::from_str(
            r#"{"versions": ["2026-07-28"], "tools": [{"name": "t", "behaviour": [
                {"answer": "silence"}, {"delay_ms": 5, "answer": {"text": "x"}}]}],
                "methods": {"initialize": {"answer": {"exit": 1}}}}"#,
        )
        .expect("a good script");
        assert_eq!(script.of_era(Era::Legacy), []);
        assert_eq!(script.tools[0].behaviour[1].answer, Answer::Text("x".to_owned()));
        let error =
            serde_json::from_str::<ServerScript>(r#"{"tools": [{"name": "t", "behaviour": {"dely": 1}}]}"#)
                .expect_err("a misspelt field");
        assert!(error.to_string().contains("dely"), "{error}");
    }
}
