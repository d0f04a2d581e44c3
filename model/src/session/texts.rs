//! The texts that the assistant and the user read. Wording follows the observed harness (gate-and-hooks sections 4 and
//! 9, mcp 3.3) in its meaning; nothing in control depends on it.

use crate::agent_loop::CallEnd;

/// The text of a result whose end brings no text of its own; `reason` is what the hook, the person or the schema said.
pub(super) fn result_text(end: CallEnd, tool: &str, reason: Option<&str>) -> String {
    match end {
        CallEnd::Result | CallEnd::ErrorResult | CallEnd::ProtocolError => {
            reason.unwrap_or_default().to_owned()
        }
        CallEnd::NoAnswer => "Connection closed".to_owned(),
        CallEnd::TimedOut => format!("{tool} timed out"),
        CallEnd::RefusedByHook => match reason {
            Some(reason) => format!("PreToolUse:{tool} hook error: {reason}"),
            None => format!("Hook PreToolUse:{tool} denied this tool"),
        },
        CallEnd::RefusedByRule => format!("Permission to use {tool} has been denied."),
        CallEnd::RefusedUnanswered => {
            format!("Permission to use {tool} was requested, but nobody has granted it.")
        }
        CallEnd::RefusedByUser => format!("The user does not want {tool} to be used."),
        CallEnd::UnknownTool => {
            format!("<tool_use_error>Error: No such tool available: {tool}</tool_use_error>")
        }
        CallEnd::InvalidInput => format!(
            "<tool_use_error>InputValidationError: {}</tool_use_error>",
            reason.unwrap_or("the input does not fit the tool's schema")
        ),
        CallEnd::Deferred => String::new(),
        CallEnd::Interrupted => format!("The user interrupted {tool}."),
    }
}

/// What a Stop hook's block says to the assistant.
pub(super) fn stop_feedback(reasons: &[String]) -> String {
    let mut text = String::from("Stop hook feedback:");
    for reason in reasons {
        text.push('\n');
        text.push_str(reason);
    }
    text
}
