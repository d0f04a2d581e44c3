//! The JSON that a handler reads on its standard input (or gets as the body of a POST).
//!
//! Source: gate-and-hooks, section 10, common payload and the payload column.

use super::event::Event;
use serde_json::{Map, Value, json};

/// What every payload of a session carries.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// The session's id.
    pub session_id: String,
    /// Where its transcript is.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The permission mode, on tool and Stop events.
    pub permission_mode: String,
    /// Id and type of the subagent the event happens in.
    pub agent: Option<(String, String)>,
}

/// The payload of an event; `own` are the fields of the event itself.
pub fn payload(event: Event, common: &Common, own: Map<String, Value>) -> Value {
    let mut fields = Map::new();
    fields.insert("session_id".to_owned(), json!(common.session_id));
    fields.insert("transcript_path".to_owned(), json!(common.transcript_path));
    fields.insert("cwd".to_owned(), json!(common.cwd));
    if event.is_about_a_tool() || matches!(event, Event::Stop | Event::SubagentStop | Event::PostToolBatch) {
        fields.insert("permission_mode".to_owned(), json!(common.permission_mode));
    }
    if let Some((id, kind)) = &common.agent {
        fields.insert("agent_id".to_owned(), json!(id));
        fields.insert("agent_type".to_owned(), json!(kind));
    }
    fields.insert("hook_event_name".to_owned(), json!(event.name()));
    fields.extend(own);
    Value::Object(fields)
}

/// The fields of a tool event; a permission request carries no id.
pub fn tool_fields(event: Event, tool: &str, input: &Value, id: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("tool_name".to_owned(), json!(tool));
    fields.insert("tool_input".to_owned(), input.clone());
    if event == Event::PermissionRequest {
        fields.insert("permission_suggestions".to_owned(), json!([]));
    } else {
        fields.insert("tool_use_id".to_owned(), json!(id));
    }
    fields
}
