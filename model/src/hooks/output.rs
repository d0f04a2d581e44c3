//! Reading a hook's standard output: plain text, the JSON contract, or a failure.
//!
//! Source: gate-and-hooks, section 4, rows on stdout at exit 0.

use super::combine::HookDecision;
use super::event::Event;
use super::outcome::PermissionAnswer;
use crate::profile::agent_loop::BadStdout;
use serde_json::{Map, Value};

/// Bytes of output beyond which it is not read as JSON.
const LIMIT: usize = 4 * 1024 * 1024;

/// The root fields of the contract and their types.
const ROOT_FIELDS: [(&str, Type); 9] = [
    ("continue", Type::Boolean),
    ("stopReason", Type::Text),
    ("suppressOutput", Type::Boolean),
    ("systemMessage", Type::Text),
    ("decision", Type::Text),
    ("reason", Type::Text),
    ("async", Type::Boolean),
    ("asyncTimeout", Type::Number),
    ("hookSpecificOutput", Type::Object),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Boolean,
    Text,
    Number,
    Object,
    Array,
}

impl Type {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Boolean => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::Array => "an array",
        }
    }
}

/// The fields of valid output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// `continue`.
    pub continues: Option<bool>,
    /// `stopReason`.
    pub stop_reason: Option<String>,
    /// `systemMessage`.
    pub system_message: Option<String>,
    /// `decision`: `approve` or `block`.
    pub decision: Option<String>,
    /// `reason`.
    pub reason: Option<String>,
    /// `hookSpecificOutput.permissionDecision`.
    pub permission_decision: Option<HookDecision>,
    /// `hookSpecificOutput.permissionDecisionReason`.
    pub permission_reason: Option<String>,
    /// `hookSpecificOutput.updatedInput`.
    pub updated_input: Option<Value>,
    /// `hookSpecificOutput.additionalContext`.
    pub additional_context: Option<String>,
    /// `hookSpecificOutput.decision` of PermissionRequest.
    pub permission: Option<PermissionAnswer>,
    /// `hookSpecificOutput.updatedToolOutput` or `updatedMCPToolOutput`.
    pub updated_tool_output: Option<Value>,
}

/// What stdout is.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Text without meaning to the gate.
    Text(String),
    /// Output of the contract.
    Json(Box<Output>),
    /// Neither: the handler counts as failed.
    Failure(String),
}

/// Whether the text begins with the object `{"async": true}`, which sends the handler to the background.
pub fn announces_async(stdout: &str) -> bool {
    let text = clean(stdout);
    text.starts_with('{')
        && text.len() <= LIMIT
        && serde_json::Deserializer::from_str(text)
            .into_iter::<Value>()
            .next()
            .and_then(Result::ok)
            .is_some_and(|first| first.get("async") == Some(&Value::Bool(true)))
}

/// Reads stdout as it counts on `event`. `must_be_object`: an HTTP body, where any text but none is a failure.
pub fn read(event: Event, stdout: &str, bad: BadStdout, must_be_object: bool) -> Reading {
    let text = clean(stdout);
    if text.is_empty() {
        return Reading::Text(String::new());
    }
    let strict = bad == BadStdout::Failure || must_be_object;
    if text.len() > LIMIT {
        return Reading::Failure(format!("output of more than {LIMIT} bytes"));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => match check(event, fields) {
            Ok(output) => Reading::Json(Box::new(output)),
            Err(why) => Reading::Failure(why),
        },
        Ok(_) if must_be_object => Reading::Failure("the body is not a JSON object".to_owned()),
        Ok(_) => Reading::Text(text.to_owned()),
        // What looks like an object but is not one whole value is a failure; text around JSON makes it plain text.
        Err(error) if strict && text.starts_with('{') || must_be_object => {
            Reading::Failure(format!("stdout is not JSON: {error}"))
        }
        Err(error) if text.starts_with('{') && text.ends_with('}') && !is_foreign_lines(text) => {
            Reading::Failure(format!("stdout is not one JSON value: {error}"))
        }
        Err(_) => Reading::Text(text.to_owned()),
    }
}

fn clean(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

/// One JSON object a line, none with a field of hook output: somebody's log, so plain text.
fn is_foreign_lines(text: &str) -> bool {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| {
        matches!(serde_json::from_str::<Value>(line), Ok(Value::Object(fields))
            if !fields.is_empty() && !ROOT_FIELDS.iter().any(|(name, _)| fields.contains_key(*name)))
    })
}

/// Checks the types of the known fields; unknown ones are let be.
fn check(event: Event, fields: Map<String, Value>) -> Result<Output, String> {
    for (name, kind) in ROOT_FIELDS {
        if let Some(value) = fields.get(name)
            && !kind.fits(value)
        {
            return Err(format!("`{name}` is not {}", kind.word()));
        }
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let decision = text("decision");
    if let Some(word) = &decision
        && !matches!(word.as_str(), "approve" | "block")
    {
        return Err(format!("`decision` is `{word}`, not `approve` or `block`"));
    }
    let mut output = Output {
        continues: fields.get("continue").and_then(Value::as_bool),
        stop_reason: text("stopReason"),
        system_message: text("systemMessage"),
        decision,
        reason: text("reason"),
        ..Output::default()
    };
    if let Some(Value::Object(specific)) = fields.get("hookSpecificOutput") {
        match specific.get("hookEventName").and_then(Value::as_str) {
            None => return Err("`hookSpecificOutput` has no `hookEventName`".to_owned()),
            Some(name) if name != event.name() => {
                return Err(format!("`hookSpecificOutput` is for `{name}`, the event is `{event}`"));
            }
            Some(_) => specific_fields(event, specific, &mut output)?,
        }
    }
    Ok(output)
}

fn specific_fields(event: Event, fields: &Map<String, Value>, output: &mut Output) -> Result<(), String> {
    let known: &[(&str, Type)] = match event {
        Event::PreToolUse => &[
            ("permissionDecision", Type::Text),
            ("permissionDecisionReason", Type::Text),
            ("updatedInput", Type::Object),
            ("additionalContext", Type::Text),
        ],
        Event::PermissionRequest => &[("decision", Type::Object)],
        Event::PermissionDenied => &[("retry", Type::Boolean)],
        Event::SessionStart => &[("additionalContext", Type::Text), ("initialUserMessage", Type::Text)],
        _ => &[("additionalContext", Type::Text)],
    };
    for (name, kind) in known {
        if let Some(value) = fields.get(*name)
            && !kind.fits(value)
        {
            return Err(format!("`hookSpecificOutput.{name}` is not {}", kind.word()));
        }
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    output.additional_context = text("additionalContext");
    match event {
        Event::PreToolUse => {
            output.permission_decision = match text("permissionDecision").as_deref() {
                None => None,
                Some("allow") => Some(HookDecision::Allow),
                Some("ask") => Some(HookDecision::Ask),
                Some("defer") => Some(HookDecision::Defer),
                Some("deny") => Some(HookDecision::Deny),
                Some(other) => {
                    return Err(format!("`permissionDecision` is `{other}`, not allow, deny, ask or defer"));
                }
            };
            output.permission_reason = text("permissionDecisionReason");
            output.updated_input = fields.get("updatedInput").cloned();
        }
        Event::PermissionRequest => {
            if let Some(Value::Object(decision)) = fields.get("decision") {
                output.permission = Some(permission_answer(decision)?);
            }
        }
        Event::PostToolUse => {
            output.updated_tool_output =
                fields.get("updatedToolOutput").or_else(|| fields.get("updatedMCPToolOutput")).cloned();
        }
        _ => {}
    }
    Ok(())
}

/// The answer to a permission request, also in the form of the prompt tool.
///
/// # Errors
/// When `behavior` is neither `allow` nor `deny`, or a field has the wrong type.
pub fn permission_answer(fields: &Map<String, Value>) -> Result<PermissionAnswer, String> {
    for (name, kind) in [
        ("updatedInput", Type::Object),
        ("updatedPermissions", Type::Array),
        ("message", Type::Text),
        ("interrupt", Type::Boolean),
    ] {
        if let Some(value) = fields.get(name)
            && !kind.fits(value)
        {
            return Err(format!("`{name}` is not {}", kind.word()));
        }
    }
    let allow = match fields.get("behavior").and_then(Value::as_str) {
        Some("allow") => true,
        Some("deny") => false,
        _ => return Err("`behavior` is neither `allow` nor `deny`".to_owned()),
    };
    Ok(PermissionAnswer {
        allow,
        updated_input: fields.get("updatedInput").cloned(),
        updated_permissions: fields
            .get("updatedPermissions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default(),
        message: fields.get("message").and_then(Value::as_str).map(str::to_owned),
        interrupt: fields.get("interrupt").and_then(Value::as_bool).unwrap_or(false),
    })
}
