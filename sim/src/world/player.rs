//! The player gives a choice its payload: what the closed world says in control's words becomes a labelled input, which
//! the session takes as it takes what a real process says.

use super::closed::{Choice, ClosedWorld, Request, ToolAnswer, WorldState};
use std::collections::BTreeMap;
use windtunnel_model::agent_loop::{HookRef, Input, McpIn, ServerRef, Site};
use windtunnel_model::mcp::jsonrpc::Message;
use windtunnel_model::mcp::negotiation::script::ServerScript;
use windtunnel_model::mcp::negotiation::server::{Deed, Server};
use windtunnel_model::session::Session;
use windtunnel_model::trace::{LabelledInput, LabelledOutput};

/// Remembers the lines that servers were sent, since an answer repeats what it answers.
#[derive(Clone, Debug, Default)]
pub struct Player {
    /// The last handshake or list request of each server.
    asked: BTreeMap<String, String>,
    /// What the pure servers answered: the same request to a fresh server has the same answer.
    answered: BTreeMap<(String, String), String>,
}

impl Player {
    /// Takes note of what was sent.
    pub fn hear(&mut self, outputs: &[LabelledOutput]) {
        for output in outputs {
            if let LabelledOutput::SendMcp { server, line, call: None } = output
                && matches!(Message::parse(line), Ok(Message::Request { .. }))
            {
                self.asked.insert(server.clone(), line.clone());
            }
        }
    }

    /// The labelled input of a choice.
    pub fn label(
        &mut self,
        session: &Session,
        world: &ClosedWorld,
        state: &WorldState,
        scripts: &BTreeMap<String, ServerScript>,
        choice: &Choice,
    ) -> LabelledInput {
        let name = |server: ServerRef| {
            session.config().servers.get(server.index()).map(|s| s.name.clone()).unwrap_or_default()
        };
        match choice.input {
            Input::Start => LabelledInput::Start,
            Input::Prompt => LabelledInput::Prompt { text: world.prompt.clone() },
            Input::ModelReplied(_) | Input::ModelFailed => match world.reply(state, choice.alternative) {
                Some(answer) => match &answer.fails {
                    Some(reason) => LabelledInput::ModelFailed { reason: reason.clone() },
                    None => LabelledInput::ModelReplied { reply: answer.reply.clone() },
                },
                None => LabelledInput::ModelFailed { reason: "the script has no reply".to_owned() },
            },
            Input::HookFinished { site, hook, .. } => self.hook(session, world, state, site, hook, choice),
            Input::PermissionAnswered { slot, allow } => {
                LabelledInput::PermissionAnswered { call: session.call_label(slot), allow }
            }
            Input::ToolFinished { slot, .. } => {
                let answer =
                    world.tool_answer(session.config(), session.state(), state, slot, choice.alternative);
                let (text, is_error) = match answer {
                    Some(ToolAnswer::Result(text)) => (text.clone(), false),
                    Some(ToolAnswer::Error(text) | ToolAnswer::ProtocolError(text)) => (text.clone(), true),
                    _ => (String::new(), true),
                };
                LabelledInput::ToolFinished { call: session.call_label(slot), text, is_error }
            }
            Input::CallDeadline { slot } => LabelledInput::CallDeadline { call: session.call_label(slot) },
            Input::ServerDeadline { server } => LabelledInput::ServerDeadline { server: name(server) },
            Input::McpClosed { server } => {
                LabelledInput::McpClosed { server: name(server), reason: "the process ended".to_owned() }
            }
            Input::Mcp { server, message } => {
                let line = match choice.request {
                    Request::Call(slot) => {
                        call_line(session, world, state, slot, message, choice.alternative)
                    }
                    _ => self.handshake_line(&name(server), scripts),
                };
                LabelledInput::McpLine { server: name(server), line }
            }
            Input::Interrupt => LabelledInput::Interrupt,
        }
    }

    fn hook(
        &self,
        session: &Session,
        world: &ClosedWorld,
        state: &WorldState,
        site: Site,
        hook: HookRef,
        choice: &Choice,
    ) -> LabelledInput {
        let call = match site {
            Site::Run => None,
            Site::Call(slot) => Some(session.call_label(slot)),
        };
        let end = world
            .hook_end(state, hook, choice.alternative)
            .cloned()
            .unwrap_or_else(|| windtunnel_model::hooks::HandlerEnd::exited(0, "", ""));
        LabelledInput::HookFinished { hook: session.hook_label(hook), call, end }
    }

    /// The scripted server's answer to the last request of the handshake.
    fn handshake_line(&mut self, server: &str, scripts: &BTreeMap<String, ServerScript>) -> String {
        let line = self.asked.get(server).cloned().unwrap_or_default();
        let key = (server.to_owned(), line);
        if let Some(answer) = self.answered.get(&key) {
            return answer.clone();
        }
        let (Some(script), Ok(request)) = (scripts.get(server), Message::parse(&key.1)) else {
            return String::new();
        };
        // A list is asked for after the handshake: the pure server is told that it has taken place.
        let mut machine =
            Server::new(ServerScript { answers_before_handshake: true, page_size: None, ..script.clone() });
        let (actions, _) = machine.message(request);
        let answer = actions
            .into_iter()
            .find_map(|action| match action.what {
                Deed::Line(line) => Some(line),
                _ => None,
            })
            .unwrap_or_default();
        self.answered.insert(key, answer.clone());
        answer
    }

    /// Forgets what was sent, not what servers answer: for the next run of the same scenario.
    pub fn restart(&mut self) {
        self.asked.clear();
    }
}

/// The answer to a `tools/call`.
fn call_line(
    session: &Session,
    world: &ClosedWorld,
    state: &WorldState,
    slot: u8,
    message: McpIn,
    alternative: u16,
) -> String {
    use serde_json::json;
    let id = match message {
        McpIn::Response { id: Some(id), .. } => json!(id),
        _ => json!("nobody-asked"),
    };
    let content = |text: &str| json!([{"type": "text", "text": text}]);
    let answer = world.tool_answer(session.config(), session.state(), state, slot, alternative);
    match answer {
        Some(ToolAnswer::ProtocolError(text)) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": text}})
        }
        Some(ToolAnswer::Error(text)) => {
            let result = json!({"content": content(text), "isError": true, "resultType": "complete"});
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        }
        Some(ToolAnswer::Result(text)) => {
            let result = json!({"content": content(text), "isError": false, "resultType": "complete"});
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        }
        _ => json!({"jsonrpc": "2.0", "id": id, "result": {"content": content("late"), "isError": false}}),
    }
    .to_string()
}
