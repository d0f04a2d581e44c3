//! Reading records: a list of messages, a request of the Messages API, the short form of the field reports, or a session
//! as the harness writes it (JSON Lines).

use super::{Message, Part, Spot};
use crate::message::Role;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A list of messages, or an object with `messages`: what a request holds, so its last call may not be open.
    Messages,
    /// The `transcript` form of the field reports: `[role, parts]`.
    Short,
    /// JSON Lines of a session.
    Session,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// How it is written.
    pub form: Form,
    /// The conversations: the session's own first, then those of its subagents.
    pub conversations: Vec<Vec<Message>>,
    /// Lines that are no JSON objects.
    pub unreadable: Vec<usize>,
    /// Lines that repeat the `uuid` of an earlier one; they are left out.
    pub repeated: Vec<usize>,
}

/// Why a text is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// No form fits.
    #[error(
        "found no messages: expected a list of messages, an object with `messages`, or the JSON Lines of a session"
    )]
    NoMessages,
    /// A message is not one.
    #[error("message {index} is no message: expected a role and its content")]
    NotAMessage {
        /// Its position.
        index: usize,
    },
}

/// Reads a record in any of the forms.
///
/// # Errors
/// [`TranscriptError`] where the text holds no conversation.
pub fn read(text: &str) -> Result<Transcript, TranscriptError> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(list)) => messages(&list),
        Ok(Value::Object(object)) if object.contains_key("messages") => match object.get("messages") {
            Some(Value::Array(list)) => messages(list),
            _ => Err(TranscriptError::NoMessages),
        },
        _ => session(text),
    }
}

fn messages(list: &[Value]) -> Result<Transcript, TranscriptError> {
    let short = list.first().is_some_and(Value::is_array);
    let mut conversation = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let at = Spot::Message(index);
        let wrong = TranscriptError::NotAMessage { index };
        let message = if short { short_message(value, at) } else { Some(full_message(value, at)) };
        match message {
            Some(Some(message)) => conversation.push(message),
            // A marker of the short form, such as an inner compaction: nothing that is sent.
            None => {}
            Some(None) => return Err(wrong),
        }
    }
    Ok(Transcript {
        form: if short { Form::Short } else { Form::Messages },
        conversations: vec![conversation],
        unreadable: Vec::new(),
        repeated: Vec::new(),
    })
}

fn role(word: &str) -> Option<Role> {
    match word {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        _ => None,
    }
}

/// `[role, parts]`; `None` for a marker.
fn short_message(value: &Value, at: Spot) -> Option<Option<Message>> {
    let word = value.get(0).and_then(Value::as_str);
    if word == Some("marker") {
        return None;
    }
    let Some(role) = word.and_then(role) else { return Some(None) };
    let part = |text: &str| {
        let part = if let Some(id) = text.strip_prefix("use:") {
            Part::Use(id.to_owned())
        } else if let Some(id) = text.strip_prefix("res!:").or_else(|| text.strip_prefix("res:")) {
            Part::Result(id.to_owned())
        } else {
            Part::Other
        };
        (part, at)
    };
    let parts = match value.get(1) {
        Some(Value::String(text)) => vec![part(text)],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(part).collect(),
        _ => return Some(None),
    };
    Some(Some(Message { role, parts, at }))
}

fn full_message(value: &Value, at: Spot) -> Option<Message> {
    let role = value.get("role").and_then(Value::as_str).and_then(role)?;
    Some(Message { role, parts: parts(value.get("content")?, at)?, at })
}

fn parts(content: &Value, at: Spot) -> Option<Vec<(Part, Spot)>> {
    match content {
        Value::String(_) => Some(vec![(Part::Other, at)]),
        Value::Array(blocks) => Some(blocks.iter().map(|block| (part(block), at)).collect()),
        _ => None,
    }
}

fn part(block: &Value) -> Part {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match block.get("type").and_then(Value::as_str) {
        Some("tool_use") => Part::Use(text("id")),
        Some("tool_result") => Part::Result(text("tool_use_id")),
        // Tools that the API runs itself answer within the assistant's message.
        _ => Part::Other,
    }
}

/// One conversation of a session while it is read.
#[derive(Default)]
struct Thread {
    messages: Vec<Message>,
    /// The API's id of the last reply, and its position: one reply is written in several lines.
    reply: Option<(String, usize)>,
}

impl Thread {
    fn add(&mut self, role: Role, id: Option<&str>, parts: Vec<(Part, Spot)>, at: Spot) {
        if role == Role::Assistant
            && let (Some(id), Some((last, position))) = (id, &self.reply)
            && id == last
            && let Some(reply) = self.messages.get_mut(*position)
        {
            // Calls of one reply are written as they come, results of the first ones in between.
            reply.parts.extend(parts);
            return;
        }
        match self.messages.last_mut() {
            // What the harness writes in lines it sends as one message.
            Some(last) if role == Role::User && last.role == Role::User => last.parts.extend(parts),
            _ => {
                self.messages.push(Message { role, parts, at });
                if role == Role::Assistant {
                    self.reply = id.map(|id| (id.to_owned(), self.messages.len() - 1));
                }
            }
        }
    }
}

/// JSON Lines: `user` and `assistant` lines with a `message`; all others tell of other things.
fn session(text: &str) -> Result<Transcript, TranscriptError> {
    let mut threads: BTreeMap<String, Thread> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let (mut unreadable, mut repeated) = (Vec::new(), Vec::new());
    let mut seen: BTreeSet<String> = BTreeSet::new();
    // The thread that each line belongs to, so that a subagent's lines follow the first of them.
    let mut thread_of: BTreeMap<String, String> = BTreeMap::new();
    let mut readable = 0usize;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(line) else {
            unreadable.push(number);
            continue;
        };
        readable += 1;
        let text_of = |key: &str| value.get(key).and_then(Value::as_str);
        if let Some(uuid) = text_of("uuid")
            && !seen.insert(uuid.to_owned())
        {
            repeated.push(number);
            continue;
        }
        let name = thread_name(&value, &thread_of);
        if let Some(uuid) = text_of("uuid") {
            thread_of.insert(uuid.to_owned(), name.clone());
        }
        if text_of("subtype") == Some("compact_boundary") {
            // What comes after a compaction is a conversation of its own: nothing before it is sent again.
            if let Some(done) = threads.remove(&name).filter(|done| !done.messages.is_empty()) {
                let kept = format!("{name} until line {number}");
                if let Some(position) = order.iter().position(|known| *known == name) {
                    order.insert(position, kept.clone());
                }
                threads.insert(kept, done);
            }
            continue;
        }
        let (Some(role), Some(message)) = (text_of("type").and_then(role), value.get("message")) else {
            continue;
        };
        let at = Spot::Line(number);
        let Some(parts) = message.get("content").and_then(|content| parts(content, at)) else { continue };
        if !threads.contains_key(&name) && !order.contains(&name) {
            order.push(name.clone());
        }
        let id = message.get("id").and_then(Value::as_str);
        threads.entry(name).or_default().add(role, id, parts, at);
    }
    if readable == 0 || threads.is_empty() {
        return Err(TranscriptError::NoMessages);
    }
    let conversations =
        order.iter().filter_map(|name| threads.remove(name)).map(|thread| thread.messages).collect();
    Ok(Transcript { form: Form::Session, conversations, unreadable, repeated })
}

/// Which conversation a line belongs to: the session's own, or that of a subagent.
fn thread_name(value: &Value, thread_of: &BTreeMap<String, String>) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    if let Some(agent) = text("agentId") {
        return format!("agent {agent}");
    }
    if value.get("isSidechain") != Some(&Value::Bool(true)) {
        // Stream output names the call that a subagent's message belongs to.
        return text("parent_tool_use_id").map_or_else(String::new, |call| format!("agent of {call}"));
    }
    let parent = text("parentUuid").and_then(|parent| thread_of.get(parent));
    match parent {
        Some(name) if !name.is_empty() => name.clone(),
        _ => format!("agent {}", text("uuid").unwrap_or_default()),
    }
}
