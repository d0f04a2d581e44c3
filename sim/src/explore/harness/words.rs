//! Inputs and moments in the words of the domain.

use super::codec::Moment;
use windtunnel_model::agent_loop::{
    CallRef, Config, Input, McpBody, McpIn, Phase, Progress, ServerRef, Signal, Site, State, ToolEnd,
};
use windtunnel_model::hooks::HookDecision;

/// The call of a slot: `Bash (c1)`.
fn call(config: &Config, state: &State, slot: u8) -> String {
    match state.slot(slot) {
        Some(in_use) => name(config, in_use.call),
        None => format!("the call in slot {slot}"),
    }
}

fn name(config: &Config, call: CallRef) -> String {
    let Some(info) = config.call(call) else { return format!("call {}", call.0) };
    let tool = info.tool.and_then(|tool| config.tools.get(tool.index()));
    format!("{} ({})", tool.map_or("an unknown tool", |tool| tool.name.as_str()), info.id)
}

fn server(config: &Config, server: ServerRef) -> &str {
    config.servers.get(server.index()).map_or("?", |server| server.name.as_str())
}

fn says(signal: Signal) -> String {
    let mut text = match (signal.failed, signal.decision) {
        (true, _) => "fails".to_owned(),
        (false, HookDecision::None) => "decides nothing".to_owned(),
        (false, decision) => format!("says {}", decision.word()),
    };
    if signal.rewrite.is_some() {
        text.push_str(", rewrites the input");
    }
    if signal.halt {
        text.push_str(", says continue: false");
    }
    text
}

/// An input in words.
pub(super) fn input(config: &Config, state: &State, input: Input) -> String {
    match input {
        Input::Start => "the session starts".to_owned(),
        Input::Prompt => "the user submits the prompt".to_owned(),
        Input::ModelReplied(reply) => {
            let calls: Vec<String> = config
                .replies
                .get(reply.index())
                .map(|reply| reply.calls.iter().map(|call| name(config, *call)).collect())
                .unwrap_or_default();
            if calls.is_empty() {
                "the assistant ends its turn".to_owned()
            } else {
                format!("the assistant calls {}", calls.join(", "))
            }
        }
        Input::ModelFailed => "the model cannot be reached".to_owned(),
        Input::HookFinished { site, hook, signal } => {
            let hook = config.hooks.get(hook.index());
            let event = hook.map_or("?", |hook| hook.event.word());
            let hook = hook.map_or("?", |hook| hook.name.as_str());
            match site {
                Site::Run => format!("{event} hook `{hook}` {}", says(signal)),
                Site::Call(slot) => {
                    format!("{event} hook `{hook}` on {} {}", call(config, state, slot), says(signal))
                }
            }
        }
        Input::PermissionAnswered { slot, allow } => {
            format!("the user {} {}", if allow { "allows" } else { "refuses" }, call(config, state, slot))
        }
        Input::ToolFinished { slot, end } => {
            let end = if end == ToolEnd::Result { "succeeds" } else { "fails" };
            format!("{} {end}", call(config, state, slot))
        }
        Input::Mcp { server: from, message } => {
            format!("server `{}` {}", server(config, from), message_words(config, state, from, message))
        }
        Input::McpClosed { server: from } => {
            format!("server `{}` closes its connection", server(config, from))
        }
        Input::CallDeadline { slot } => format!("the deadline of {} passes", call(config, state, slot)),
        Input::ServerDeadline { server: from } => {
            format!("the deadline of the request to server `{}` passes", server(config, from))
        }
        Input::Interrupt => "the user interrupts".to_owned(),
    }
}

fn message_words(config: &Config, state: &State, from: ServerRef, message: McpIn) -> String {
    let McpIn::Response { id, body } = message else {
        return match message {
            McpIn::ListChanged => "announces another list of tools".to_owned(),
            _ => "sends a message without effect".to_owned(),
        };
    };
    let asked = (0..state.count).find(|&slot| {
        state.slot(slot).is_some_and(|in_use| {
            in_use.progress == Progress::Running
                && Some(in_use.request) == id
                && config.server_of(in_use.call) == Some(from)
        })
    });
    let what = match body {
        McpBody::Discovered { agreed: true } => "offers a common version",
        McpBody::Discovered { agreed: false } => "offers no common version",
        McpBody::UnsupportedVersion { common: true } => "refuses the version and lists a common one",
        McpBody::UnsupportedVersion { common: false } => "refuses the version and lists no common one",
        McpBody::Initialized { accepted: true } => "accepts initialize",
        McpBody::Initialized { accepted: false } => "answers initialize with another version",
        McpBody::Tools { .. } => "lists its tools",
        McpBody::MoreTools => "lists a page of its tools",
        McpBody::Called { is_error: false } => "answers with a result",
        McpBody::Called { is_error: true } => "answers with an error result",
        McpBody::Error => "answers with an error",
        McpBody::Malformed => "answers with what cannot be read",
    };
    match (asked, id) {
        (Some(slot), _) => format!("{what} to {}", call(config, state, slot)),
        (None, None) => format!("{what} under an id that no request has"),
        (None, Some(_)) => what.to_owned(),
    }
}

fn progress(config: &Config, moment: &Moment, slot: u8) -> String {
    let Some(in_use) = moment.state.slot(slot) else { return String::new() };
    let waits = |list: &[windtunnel_model::agent_loop::HookRef]| {
        let names: Vec<&str> = list
            .iter()
            .enumerate()
            .filter(|(position, _)| in_use.pending >> position & 1 == 1)
            .filter_map(|(_, hook)| config.hooks.get(hook.index()))
            .map(|hook| hook.name.as_str())
            .collect();
        names.join(", ")
    };
    let info = config.call(in_use.call);
    let so_far = match in_use.decision {
        HookDecision::None => String::new(),
        decision => format!("; so far {}", decision.word()),
    };
    match in_use.progress {
        Progress::Empty => "empty".to_owned(),
        Progress::Queued => "waits for its neighbours".to_owned(),
        Progress::Stage(_) => {
            format!("waits for hooks: {}{so_far}", info.map(|info| waits(&info.before)).unwrap_or_default())
        }
        Progress::Asking => "waits for the user".to_owned(),
        Progress::Reconnecting => "waits for its server".to_owned(),
        Progress::Running => "runs".to_owned(),
        Progress::After => format!("ended ({}), its hooks run", in_use.end.word()),
        Progress::Ended => "has its result".to_owned(),
    }
}

/// A moment as named fields.
pub(super) fn fields(config: &Config, moment: &Moment) -> Vec<(String, String)> {
    let state = &moment.state;
    let phase = match state.phase {
        Phase::Start => "start",
        Phase::Connecting => "connecting servers",
        Phase::Idle => "ready for the prompt",
        Phase::PromptHooks => "prompt hooks",
        Phase::Model => "model called",
        Phase::Calls => "calls",
        Phase::StopHooks => "stop hooks",
        Phase::Ended => "ended",
    };
    let mut fields = vec![("phase".to_owned(), phase.to_owned())];
    let mut field = |name: &str, value: String| fields.push((name.to_owned(), value));
    if let Some(end) = state.end {
        field("end", end.word().to_owned());
        return fields;
    }
    if state.turns > 0 {
        field("turns", state.turns.to_string());
    }
    if state.stop_blocks > 0 {
        field("stop blocks", state.stop_blocks.to_string());
    }
    if state.spent > 0 {
        field("spent", format!("{:.6} USD", f64::from(state.spent) / 1e6));
    }
    if state.pending > 0 {
        let so_far = match state.decision {
            HookDecision::None => String::new(),
            decision => format!("; so far {}", decision.word()),
        };
        field("hooks that run", format!("{}{so_far}", state.pending.count_ones()));
    }
    if state.halt {
        field("continue", "false".to_owned());
    }
    if state.deferred {
        field("deferred", "true".to_owned());
    }
    for slot in 0..state.count {
        field(
            &format!("slot {slot}"),
            format!("{}: {}", call(config, state, slot), progress(config, moment, slot)),
        );
    }
    for (index, conn) in state.servers.iter().take(config.servers.len()).enumerate() {
        let name = config.servers.get(index).map_or("?", |server| server.name.as_str());
        field(&format!("server {name}"), format!("{:?}", conn.phase).to_lowercase());
    }
    fields
}
