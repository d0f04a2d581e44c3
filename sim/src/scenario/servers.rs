//! The two readings of a server: as a script that a process plays, and as the answers of the closed world.

use super::ToolEntry;
use super::compile::tool_answer;
use crate::world::closed::{Handshake, ToolAnswer};
use serde_json::Value;
use std::collections::BTreeMap;
use windtunnel_model::agent_loop::{McpBody, McpIn, McpOut};
use windtunnel_model::mcp::jsonrpc::Message;
use windtunnel_model::mcp::names::qualify;
use windtunnel_model::mcp::negotiation::script::{Answer, Behaviour, ServerScript};
use windtunnel_model::mcp::negotiation::server::{Deed, Server};
use windtunnel_model::session::Session;

/// A tool entry as a behaviour of `windtunnel mcp serve`.
pub(super) fn behaviour_of(entry: &ToolEntry) -> Behaviour {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be at most a day"
    )]
    let delay_ms = (entry.seconds.unwrap_or(0.0).clamp(0.0, 86_400.0) * 1000.0) as u64;
    let mut behaviour = Behaviour { delay_ms, ..Behaviour::default() };
    behaviour.answer = match tool_answer(entry, f64::INFINITY) {
        ToolAnswer::Result(text) => Answer::Text(text),
        ToolAnswer::Error(text) => Answer::IsError(text),
        ToolAnswer::ProtocolError(message) => Answer::Error { code: -32602, message, data: None },
        ToolAnswer::Silent => Answer::Silence,
        ToolAnswer::Closes => Answer::Exit(1),
        ToolAnswer::WrongId => {
            behaviour.id = windtunnel_model::mcp::negotiation::script::IdFault::Unknown;
            Answer::Usual
        }
    };
    behaviour
}

/// The entries that a script's behaviours stand for; `Err` with what the abstract world does not model.
pub(super) fn scripted_entries(
    name: &str,
    scripts: &BTreeMap<String, ServerScript>,
) -> Option<Result<Vec<ToolEntry>, &'static str>> {
    let (server, script) = scripts
        .iter()
        .find(|(server, script)| script.tools.iter().any(|tool| qualify(server, &tool.name) == name))?;
    let tool = script.tools.iter().find(|tool| qualify(server, &tool.name) == name)?;
    if tool.behaviour.is_empty() {
        return None;
    }
    Some(tool.behaviour.iter().map(entry_of).collect())
}

fn entry_of(behaviour: &Behaviour) -> Result<ToolEntry, &'static str> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds far below 2^52")]
    let seconds = (behaviour.delay_ms > 0).then_some(behaviour.delay_ms as f64 / 1000.0);
    let mut entry = ToolEntry { seconds, ..ToolEntry::default() };
    match &behaviour.answer {
        Answer::Usual | Answer::Echo => {}
        Answer::Text(text) => entry.result = Some(text.clone()),
        Answer::IsError(text) => entry.error = Some(text.clone()),
        Answer::Error { message, .. } => entry.protocol_error = Some(message.clone()),
        Answer::Silence => entry.silent = true,
        Answer::Exit(_) => entry.closes = true,
        _ => return Err("this answer is played by the process world only"),
    }
    Ok(entry)
}

/// What a scripted server answers to each request of the handshake, found by asking the same pure server that
/// `windtunnel mcp serve` plays.
pub(super) fn handshake(session: &Session, script: &ServerScript) -> Handshake {
    let preferred = session.versions().preferred.clone();
    let discover = McpOut::Discover { id: 1, agreed: false };
    let (first, first_line) = ask(session, script, discover, Some(&preferred));
    let agreed = agreed_version(session, &first_line);
    let again = McpOut::Discover { id: 1, agreed: true };
    let (second, _) = ask(session, script, again, agreed.as_deref());
    let (initialize, _) = ask(session, script, McpOut::Initialize { id: 1 }, None);
    Handshake { discover: first, agree: second, initialize, exits: script.exits_at_start.is_some() }
}

/// The version that the client would try after a refusal.
fn agreed_version(session: &Session, line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line).ok()?;
    let listed = value.pointer("/error/data/supported")?.as_array()?;
    session.versions().modern.iter().find(|ours| listed.iter().any(|v| v.as_str() == Some(ours))).cloned()
}

/// The answer to one request: its meaning to control, and its line. `None` is silence.
fn ask(
    session: &Session,
    script: &ServerScript,
    message: McpOut,
    version: Option<&str>,
) -> (Option<McpBody>, String) {
    let line = session.line(message, version);
    let mut server = Server::new(script.clone());
    let Ok(request) = Message::parse(&line) else { return (None, String::new()) };
    let (actions, _) = server.message(request);
    for action in actions {
        if let Deed::Line(answer) = &action.what
            && let McpIn::Response { body, .. } = session.classify(message, answer)
        {
            return (Some(body), answer.clone());
        }
    }
    (None, String::new())
}
