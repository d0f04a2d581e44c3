//! Messages of the Messages API and the pairing of `tool_use` with `tool_result`.
//!
//! Rule (Loop 3.4): after every completed turn each `tool_use` has exactly one `tool_result` with its id, in the next
//! user message, and no `tool_result` lacks its `tool_use`. Checked by `I-PAIR` on every request of every driver.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, and the harness in the user's name (tool results, hook feedback).
    User,
    /// The assistant.
    Assistant,
}

/// A content block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A call of a tool by the assistant.
    ToolUse {
        /// The call id, which the result repeats.
        id: String,
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
    /// What a call came to.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// The text that the assistant sees.
        content: String,
        /// Whether it stands for an error; absent on the wire when it does not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A message of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<Block>,
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![Block::Text { text: text.into() }] }
    }
}

/// A fault in the pairing of a message list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "fault", content = "id", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PairingFault {
    /// A call has no result in the next user message.
    MissingResult(String),
    /// A result has no call in the assistant message before it.
    OrphanResult(String),
    /// Two calls of one message carry the same id.
    DupUse(String),
    /// A call has two results.
    DupResult(String),
    /// A call has an empty id.
    EmptyId,
}

/// Every fault in the pairing of a request's messages, in the order of the messages. Empty exactly when Loop 3.4 holds
/// of the list.
///
/// ```
/// use windtunnel_model::message::{Block, Message, PairingFault, Role, pairing_faults};
/// let call = Block::ToolUse { id: "t1".into(), name: "Read".into(), input: serde_json::json!({}) };
/// let list = [Message { role: Role::Assistant, content: vec![call] }, Message::text(Role::User, "and?")];
/// assert_eq!(pairing_faults(&list), [PairingFault::MissingResult("t1".into())]);
/// ```
pub fn pairing_faults(messages: &[Message]) -> Vec<PairingFault> {
    let mut faults = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let mut uses: Vec<&str> = Vec::new();
        let mut answered: Vec<&str> = Vec::new();
        for block in &message.content {
            match block {
                Block::Text { .. } => {}
                Block::ToolUse { id, .. } => {
                    if id.is_empty() {
                        faults.push(PairingFault::EmptyId);
                    } else if uses.contains(&id.as_str()) {
                        faults.push(PairingFault::DupUse(id.clone()));
                    }
                    uses.push(id);
                }
                Block::ToolResult { tool_use_id, .. } => {
                    if let Some(at) = open.iter().position(|id| id == tool_use_id) {
                        answered.push(open.remove(at));
                    } else if answered.contains(&tool_use_id.as_str()) {
                        faults.push(PairingFault::DupResult(tool_use_id.clone()));
                    } else {
                        faults.push(PairingFault::OrphanResult(tool_use_id.clone()));
                    }
                }
            }
        }
        faults.extend(open.drain(..).map(|id| PairingFault::MissingResult(id.to_owned())));
        open = uses;
    }
    faults.extend(open.drain(..).map(|id| PairingFault::MissingResult(id.to_owned())));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str) -> Block {
        Block::ToolUse { id: id.into(), name: "Read".into(), input: json!({}) }
    }

    fn result(id: &str) -> Block {
        Block::ToolResult { tool_use_id: id.into(), content: String::new(), is_error: false }
    }

    fn list(parts: &[(Role, &[Block])]) -> Vec<Message> {
        parts.iter().map(|(role, blocks)| Message { role: *role, content: blocks.to_vec() }).collect()
    }

    #[test]
    fn loop_3_4_each_call_has_one_result_in_the_next_message() {
        use PairingFault::{DupResult, DupUse, EmptyId, MissingResult, OrphanResult};
        type Parts<'a> = &'a [(Role, &'a [Block])];
        let cases: [(Parts<'_>, Vec<PairingFault>); 6] = [
            (
                &[(Role::Assistant, &[call("a"), call("b")]), (Role::User, &[result("b"), result("a")])],
                vec![],
            ),
            (
                &[(Role::Assistant, &[call("a"), call("b")]), (Role::User, &[result("b")])],
                vec![MissingResult("a".into())],
            ),
            (
                &[(Role::Assistant, &[call("a")]), (Role::User, &[result("a"), result("a")])],
                vec![DupResult("a".into())],
            ),
            (&[(Role::Assistant, &[]), (Role::User, &[result("x")])], vec![OrphanResult("x".into())]),
            (
                &[(Role::Assistant, &[call("a"), call("a")]), (Role::User, &[result("a"), result("a")])],
                vec![DupUse("a".into())],
            ),
            (&[(Role::Assistant, &[call("")]), (Role::User, &[result("")])], vec![EmptyId]),
        ];
        for (parts, expected) in cases {
            assert_eq!(pairing_faults(&list(parts)), expected, "{parts:?}");
        }
    }

    #[test]
    fn a_result_two_messages_later_is_missing_and_an_orphan() {
        let messages = list(&[
            (Role::Assistant, &[call("a")]),
            (Role::User, &[]),
            (Role::Assistant, &[]),
            (Role::User, &[result("a")]),
        ]);
        assert_eq!(
            pairing_faults(&messages),
            [PairingFault::MissingResult("a".into()), PairingFault::OrphanResult("a".into())]
        );
    }
}
