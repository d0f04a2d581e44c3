//! Tool definitions: what a server lists, and what of it the model is sent.

use super::cut;
use crate::profile::context::ContextParameters;
use serde_json::{Map, Value, json};

/// A tool as one may load it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The server, for an MCP tool; `None` for a built-in.
    pub server: Option<String>,
    /// The bare name.
    pub name: String,
    /// The description as listed, uncut.
    pub description: String,
    /// The input schema as listed: the order of its keys is part of the bytes.
    pub input_schema: Value,
    /// Whether it is loaded upfront in any strategy (`alwaysLoad`, `_meta["anthropic/alwaysLoad"]`, or a built-in that
    /// is never deferred).
    pub always_load: bool,
    /// Further words that a search finds it by (`_meta["anthropic/searchHint"]`); not shown to the model.
    pub search_hint: String,
}

impl Definition {
    /// Reads one entry of a `tools/list` result. Missing texts are empty, a missing schema is an empty object: what is
    /// wrong with a catalogue is the linter's matter, its cost is counted all the same.
    pub fn from_listed(server: &str, tool: &Value) -> Self {
        let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let meta = |key: &str| tool.get("_meta").and_then(|meta| meta.get(key));
        Self {
            server: Some(server.to_owned()),
            name: text("name"),
            description: text("description"),
            input_schema: tool.get("inputSchema").cloned().unwrap_or_else(|| json!({})),
            always_load: meta("anthropic/alwaysLoad").and_then(Value::as_bool).unwrap_or(false),
            search_hint: meta("anthropic/searchHint").and_then(Value::as_str).unwrap_or_default().to_owned(),
        }
    }

    /// The name that the model sees: `mcp__server__tool` for MCP tools.
    pub fn qualified(&self) -> String {
        match &self.server {
            Some(server) => format!("mcp__{}__{}", normalised(server), normalised(&self.name)),
            None => self.name.clone(),
        }
    }

    /// The element of `tools` that the model is sent: name, cut description, schema.
    pub fn wire(&self, parameters: &ContextParameters) -> Value {
        let description = cut::with_suffix(
            &self.description,
            parameters.mcp_text_cap.value,
            parameters.mcp_text_suffix.value,
        );
        json!({"name": self.qualified(), "description": description, "input_schema": self.input_schema})
    }

    /// The same element as it stands in `tools` after a search: marked, so that the API leaves it out of the prefix.
    pub fn wire_loaded(&self, parameters: &ContextParameters) -> Value {
        let mut wire = match self.wire(parameters) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        wire.insert("defer_loading".to_owned(), Value::Bool(true));
        Value::Object(wire)
    }
}

/// A server's or tool's name as it stands in a qualified name: every character outside `[A-Za-z0-9_-]` becomes `_`
/// (MCP documentation of the harness, naming of tools).
fn normalised(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// Reads a `tools/list` result, a bare array of tools, or a whole JSON-RPC response.
///
/// # Errors
/// When none of the three is there.
pub fn read_catalogue(server: &str, document: &Value) -> Result<Vec<Definition>, NotACatalogueError> {
    let tools = document
        .as_array()
        .or_else(|| document.get("tools").and_then(Value::as_array))
        .or_else(|| document.get("result").and_then(|result| result.get("tools")).and_then(Value::as_array))
        .ok_or(NotACatalogueError)?;
    Ok(tools.iter().map(|tool| Definition::from_listed(server, tool)).collect())
}

/// A document that is no list of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `{{\"tools\": [...]}}`, an array of tools, or a JSON-RPC response to tools/list")]
pub struct NotACatalogueError;

/// Sorts definitions as they are sent: built-ins by name, then MCP tools by qualified name, whatever the order in which
/// servers connected or listed (context-cost 1, order-upfront).
pub fn sort_for_sending(definitions: &mut [Definition]) {
    definitions.sort_by_cached_key(|definition| (definition.server.is_some(), definition.qualified()));
}
