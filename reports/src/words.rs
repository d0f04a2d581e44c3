//! Inputs and outputs in domain words, as the glossary has them. One place, so that the terminal, the picture and the
//! page say the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use windtunnel_model::agent_loop::{CallEnd, DecidedBy};
use windtunnel_model::hooks::{EndStatus, HandlerEnd};
use windtunnel_model::trace::{CallLabel, HookLabel, Reply};

use serde_json::Value;

/// Text from users for one line: control characters and those that turn the direction of writing become visible
/// escapes, so that a name can neither move the cursor nor reorder what is read.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
                out.extend(char.escape_unicode());
            }
            '\u{fffe}' | '\u{ffff}' => out.extend(char.escape_unicode()),
            char if char.is_control() => out.extend(char.escape_unicode()),
            char => out.push(char),
        }
    }
    out
}

/// At most `limit` characters, the last an ellipsis where something was cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(limit.saturating_sub(1)).collect();
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// A quoted piece of a user's text, one line, short.
pub(crate) fn quoted(text: &str, limit: usize) -> String {
    // Only what can be shown is looked at: texts may be megabytes.
    let head: String = text.chars().take(limit.saturating_add(1)).collect();
    format!("“{}”", cut(&plain(&head), limit))
}

/// `t1 Read`.
pub(crate) fn call(call: &CallLabel) -> String {
    match (call.id.is_empty(), call.tool.is_empty()) {
        (true, true) => format!("call in slot {}", call.slot),
        (true, false) => plain(&call.tool),
        (false, true) => plain(&call.id),
        (false, false) => format!("{} {}", plain(&call.id), plain(&call.tool)),
    }
}

/// `PreToolUse hook guard.py on t1 Read`.
pub(crate) fn hook(hook: &HookLabel, on: Option<&CallLabel>) -> String {
    let mut words = format!("{} hook {}", plain(&hook.event), plain(&hook.name));
    if let Some(on) = on {
        let _ = write!(words, " on {}", call(on));
    }
    words
}

/// Who decided, to stand after the decision.
pub(crate) fn decided_by(by: DecidedBy) -> &'static str {
    match by {
        DecidedBy::Hook => "by a hook",
        DecidedBy::Rule => "by a rule or the mode",
        DecidedBy::User => "by the user",
        DecidedBy::Nobody => "nobody could answer",
        DecidedBy::NoGate => "no permission stage",
    }
}

/// The end of a call.
pub(crate) fn end(end: CallEnd) -> String {
    end.word().replace('_', " ")
}

/// How a hook ended, with the first of what it printed.
pub(crate) fn handler_end(end: &HandlerEnd) -> String {
    let mut words = match &end.status {
        EndStatus::Exit(code) => format!("exit {code}"),
        EndStatus::Signal(signal) => format!("ended by signal {signal}"),
        EndStatus::Timeout => "timeout".to_owned(),
        EndStatus::CannotStart(why) => format!("cannot start: {}", plain(why)),
        EndStatus::Http(status) => format!("HTTP {status}"),
        EndStatus::McpResult => "MCP result".to_owned(),
        EndStatus::ModelAnswer => "model answer".to_owned(),
    };
    let said = if end.stdout.trim().is_empty() { &end.stderr } else { &end.stdout };
    if !said.trim().is_empty() {
        let _ = write!(words, ", says {}", quoted(said.trim(), 60));
    }
    words
}

/// Whether a hook's end is the blocking one or a failure.
pub(crate) fn is_trouble(end: &HandlerEnd) -> bool {
    !matches!(
        end.status,
        EndStatus::Exit(0) | EndStatus::Http(200..=299) | EndStatus::McpResult | EndStatus::ModelAnswer
    )
}

/// A reply of the assistant.
pub(crate) fn reply(reply: &Reply) -> String {
    let calls: Vec<String> =
        reply.calls.iter().map(|call| format!("{} {}", plain(&call.id), plain(&call.tool))).collect();
    let text = reply.text.as_deref().filter(|text| !text.is_empty()).map(|text| quoted(text, 48));
    match (text, calls.is_empty()) {
        (None, true) => "replies without text or calls".to_owned(),
        (Some(text), true) => format!("replies {text}"),
        (None, false) => format!("calls {}", calls.join(", ")),
        (Some(text), false) => format!("replies {text}, calls {}", calls.join(", ")),
    }
}

/// A number of things.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {many}", thousands(count)) }
}

/// A number with thin groups, so that sizes can be read.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Virtual time.
pub(crate) fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}

/// Names the messages of MCP connections: an answer carries an id only, so the open requests are remembered.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    open: BTreeMap<(String, String), String>,
}

impl Wires {
    /// A server's process starts anew: nothing is open.
    pub(crate) fn connect(&mut self, server: &str) {
        self.open.retain(|(of, _), _| of != server);
    }

    /// A line to a server.
    pub(crate) fn sent(&mut self, server: &str, line: &str, on: Option<&CallLabel>) -> String {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return format!("a line that is no JSON: {}", quoted(line, 40));
        };
        let Some(method) = message.get("method").and_then(Value::as_str).map(plain) else {
            return format!("answer to the server's request {}", id_words(message.get("id")));
        };
        match message.get("id") {
            Some(id) => {
                let what = match on {
                    Some(on) => format!("{method} for {}", call(on)),
                    None => method,
                };
                let words = format!("{what}, id {}", id_words(Some(id)));
                self.open.insert((server.to_owned(), id.to_string()), what);
                words
            }
            None => match message.pointer("/params/requestId") {
                Some(id) => format!("{method}, request {}", id_words(Some(id))),
                None => method,
            },
        }
    }

    /// A line from a server, and whether it is bad news.
    pub(crate) fn heard(&mut self, server: &str, line: &str) -> (String, bool) {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return (format!("a line that is no JSON: {}", quoted(line, 40)), true);
        };
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            let words = match message.get("id") {
                Some(id) => format!("asks {}, id {}", plain(method), id_words(Some(id))),
                None => plain(method),
            };
            return (words, false);
        }
        let id = message.get("id");
        let asked = id.and_then(|id| self.open.remove(&(server.to_owned(), id.to_string())));
        let (what, bad) = match (message.get("error"), message.get("result")) {
            (Some(error), _) => {
                let code = error
                    .get("code")
                    .map(|code| format!(" {}", plain(&code.to_string())))
                    .unwrap_or_default();
                (format!("protocol error{code}"), true)
            }
            (None, Some(result)) if result.get("isError") == Some(&Value::Bool(true)) => {
                ("error result".to_owned(), true)
            }
            (None, Some(_)) => ("result".to_owned(), false),
            (None, None) => return ("a line that is no message".to_owned(), true),
        };
        match asked {
            Some(asked) => (format!("{what} of {asked}, id {}", id_words(id)), bad),
            None => (format!("{what} under id {}, which is not open", id_words(id)), true),
        }
    }
}

/// An id as it stands in JSON, so that `1` and `"1"` look different.
fn id_words(id: Option<&Value>) -> String {
    id.map_or_else(|| "missing".to_owned(), |id| cut(&plain(&id.to_string()), 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_or_turns_the_text_is_escaped() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\\nc\\u{202e}d");
        assert_eq!(plain("grün 漢字"), "grün 漢字");
    }

    #[test]
    fn a_cut_is_marked_and_counts_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("äöüßéè", 3), "äö…");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }

    #[test]
    fn an_answer_is_named_by_the_request_that_it_answers_once() {
        let mut wires = Wires::default();
        let label = CallLabel { slot: 0, id: "t1".to_owned(), tool: "mcp__s__a".to_owned() };
        let line = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}}"#;
        assert_eq!(wires.sent("s", line, Some(&label)), "tools/call for t1 mcp__s__a, id 3");
        let answer = r#"{"jsonrpc":"2.0","id":3,"result":{"isError":true}}"#;
        assert_eq!(
            wires.heard("s", answer),
            ("error result of tools/call for t1 mcp__s__a, id 3".to_owned(), true)
        );
        assert_eq!(wires.heard("s", answer), ("error result under id 3, which is not open".to_owned(), true));
        assert_eq!(
            wires.heard("s", r#"{"id":"3","result":{}}"#).0,
            "result under id \"3\", which is not open"
        );
        assert!(wires.heard("s", "Listening on port 3").1);
    }
}
