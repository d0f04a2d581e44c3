//! What the end of one handler means.
//!
//! Source: gate-and-hooks, section 4. Propositions 4.2 (outcomes) and 4.3 (blocking, failure direction); invariant
//! I-FAILDIR: a failed hook lets the call go on to the rules, or refuses it when `onFailure` is `block`.

use super::combine::HookDecision;
use super::event::Event;
use super::handler::{Handler, HandlerKind, OnFailure};
use super::output::{self, Output, Reading};
use crate::profile::hooks::HookParameters;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a handler ended, as the world tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerEnd {
    /// The way it ended.
    pub status: EndStatus,
    /// Standard output; the body of an HTTP answer; the text of an MCP result; the model's text.
    #[serde(default)]
    pub stdout: String,
    /// Standard error.
    #[serde(default)]
    pub stderr: String,
}

/// The ways a handler can end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndStatus {
    /// A command exited with this code.
    Exit(i32),
    /// A signal ended a command.
    Signal(i32),
    /// The time limit passed.
    Timeout,
    /// It could not be started, reached or called; why.
    CannotStart(String),
    /// An HTTP answer with this status; its body is `stdout`.
    Http(u16),
    /// An MCP result that is no error; its text is `stdout`.
    McpResult,
    /// The model's answer of a prompt or agent handler; its text is `stdout`.
    ModelAnswer,
}

impl HandlerEnd {
    /// A command that exited.
    pub fn exited(code: i32, stdout: impl Into<String>, stderr: impl Into<String>) -> Self {
        Self { status: EndStatus::Exit(code), stdout: stdout.into(), stderr: stderr.into() }
    }

    /// An end without output.
    pub fn silent(status: EndStatus) -> Self {
        Self { status, stdout: String::new(), stderr: String::new() }
    }
}

/// What a PermissionRequest hook, or the prompt tool, answers.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionAnswer {
    /// Whether the call may run.
    pub allow: bool,
    /// An input that replaces the call's own.
    pub updated_input: Option<Value>,
    /// Rules and modes that hold from now on.
    pub updated_permissions: Vec<Value>,
    /// The text of a refusal.
    pub message: Option<String>,
    /// Whether a refusal ends the run.
    pub interrupt: bool,
}

/// What one handler says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookVerdict {
    /// Its decision; `Deny` is the event's blocking effect.
    pub decision: HookDecision,
    /// Why it counts as failed; `None` when it did its work.
    pub failed: Option<String>,
    /// The reason it gave, or the text the harness makes of its end.
    pub reason: Option<String>,
    /// The input that replaces the call's own.
    pub updated_input: Option<Value>,
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Text for the user.
    pub system_message: Option<String>,
    /// Whether it said `continue: false`.
    pub prevent_continuation: bool,
    /// The reason of that.
    pub stop_reason: Option<String>,
    /// The answer of a PermissionRequest hook.
    pub permission: Option<PermissionAnswer>,
    /// A replacement of the tool's output (PostToolUse).
    pub updated_tool_output: Option<Value>,
    /// Whether it went on in the background, so that its decision is ignored.
    pub asynchronous: bool,
    /// Whether its stdout held JSON that was honoured.
    pub json: bool,
    /// Whether the decision comes from `onFailure: block` and not from the handler itself.
    pub by_on_failure: bool,
}

/// What the end of a handler means on an event.
pub fn interpret(
    event: Event,
    handler: &Handler,
    end: &HandlerEnd,
    parameters: &HookParameters,
) -> HookVerdict {
    let blocks_on_failure = handler.on_failure == OnFailure::Block
        && !handler.is_async()
        && !(event.ignores_on_failure() && parameters.stop_like_ignore_on_failure.value)
        && match handler.kind {
            HandlerKind::Command { .. } | HandlerKind::Http { .. } => true,
            HandlerKind::McpTool { .. } => parameters.mcp_tool_on_failure.value,
            HandlerKind::Prompt { .. } | HandlerKind::Agent { .. } => parameters.prompt_on_failure.value,
        };
    let mut verdict = match &handler.kind {
        HandlerKind::Prompt { continue_on_block, .. } => model_answer(end, !continue_on_block),
        HandlerKind::Agent { .. } => model_answer(end, false),
        HandlerKind::Command { .. } | HandlerKind::Http { .. } | HandlerKind::McpTool { .. } => {
            program_answer(event, end, blocks_on_failure, parameters)
        }
    };
    if handler.is_async() {
        verdict.asynchronous = true;
    }
    if verdict.asynchronous {
        verdict.decision = HookDecision::None;
        verdict.updated_input = None;
        verdict.permission = None;
        verdict.prevent_continuation = false;
        return verdict;
    }
    if let Some(why) = &verdict.failed
        && blocks_on_failure
        && verdict.decision != HookDecision::Deny
    {
        verdict.reason = Some(format!("{why}; blocking because onFailure is \"block\""));
        verdict.decision = HookDecision::Deny;
        verdict.by_on_failure = true;
        verdict.updated_input = None;
        if event == Event::PermissionRequest {
            verdict.permission = Some(PermissionAnswer {
                allow: false,
                updated_input: None,
                updated_permissions: Vec::new(),
                message: verdict.reason.clone(),
                interrupt: false,
            });
        }
    }
    if event == Event::PostToolUseFailure && parameters.post_failure_ignores_continue_false.value {
        verdict.prevent_continuation = false;
    }
    if matches!(
        event,
        Event::SessionStart | Event::PermissionRequest | Event::SessionEnd | Event::InstructionsLoaded
    ) {
        verdict.prevent_continuation = false;
    }
    verdict
}

/// Commands, HTTP answers and MCP results: exit codes and the JSON contract.
fn program_answer(
    event: Event,
    end: &HandlerEnd,
    blocks_on_failure: bool,
    parameters: &HookParameters,
) -> HookVerdict {
    let mut verdict = HookVerdict::default();
    let (exit, failure) = match &end.status {
        EndStatus::Exit(code) => (Some(*code), None),
        EndStatus::Signal(signal) => (None, Some(format!("killed by signal {signal}"))),
        EndStatus::Timeout => (None, Some("timed out".to_owned())),
        EndStatus::CannotStart(why) => (None, Some(why.clone())),
        EndStatus::Http(status) if (200..300).contains(status) => (Some(0), None),
        EndStatus::Http(status) => (None, Some(format!("answered with HTTP status {status}"))),
        EndStatus::McpResult | EndStatus::ModelAnswer => (Some(0), None),
    };
    if let Some(why) = failure {
        verdict.failed = Some(why);
        return verdict;
    }
    let code = exit.unwrap_or(0);
    let is_http = matches!(end.status, EndStatus::Http(_));
    // `{"async": true}` at the start sends the handler to the background, unless a failure of it has to block.
    if !blocks_on_failure && !is_http && output::announces_async(&end.stdout) {
        verdict.asynchronous = true;
        return verdict;
    }
    let reading = output::read(event, &end.stdout, parameters.bad_stdout.value, is_http);
    let json_counts = code == 0 || code == 2 || parameters.json_at_other_exits.value;
    match reading {
        Reading::Json(json) if json_counts => {
            verdict.json = true;
            apply(event, *json, &mut verdict);
            if code != 0 && code != 2 {
                verdict.failed = Some(format!("exited with {code}"));
            }
        }
        Reading::Failure(why) if code == 0 => verdict.failed = Some(why),
        Reading::Text(text) if code == 0 && event.plain_stdout_is_context() && !text.is_empty() => {
            verdict.additional_context = Some(text);
        }
        _ if code != 0 && code != 2 => verdict.failed = Some(format!("exited with {code}")),
        _ => {}
    }
    if code == 2 && event != Event::PermissionRequest {
        let by_json = verdict.decision == HookDecision::Deny && verdict.reason.is_some();
        if !by_json {
            let text = end.stderr.trim();
            verdict.reason =
                Some(if text.is_empty() { "No stderr output".to_owned() } else { text.to_owned() });
        }
        verdict.decision = HookDecision::Deny;
        verdict.updated_input = None;
    }
    verdict
}

/// The fields of valid output, as they count on the event.
fn apply(event: Event, json: Output, verdict: &mut HookVerdict) {
    let legacy = match json.decision.as_deref() {
        Some("block") => HookDecision::Deny,
        Some("approve") if event == Event::PreToolUse => HookDecision::Allow,
        _ => HookDecision::None,
    };
    let (decision, reason) = match event {
        Event::PreToolUse => {
            let new = json.permission_decision.unwrap_or_default();
            if new >= legacy && new != HookDecision::None {
                (new, json.permission_reason.or(json.reason))
            } else {
                (legacy, json.reason.or(json.permission_reason))
            }
        }
        // Only `hookSpecificOutput.decision` answers a permission request.
        Event::PermissionRequest => match &json.permission {
            Some(answer) if answer.allow => (HookDecision::Allow, None),
            Some(answer) => (HookDecision::Deny, answer.message.clone()),
            None => (HookDecision::None, json.reason),
        },
        _ => (legacy, json.reason),
    };
    verdict.decision = decision;
    verdict.reason = reason;
    verdict.permission = json.permission;
    verdict.updated_input = json.updated_input;
    verdict.additional_context = json.additional_context;
    verdict.system_message = json.system_message;
    verdict.prevent_continuation = json.continues == Some(false);
    verdict.stop_reason = json.stop_reason;
    verdict.updated_tool_output = json.updated_tool_output;
}

/// Prompt and agent handlers: `{"ok": true}` or `{"ok": false, "reason": …}`.
fn model_answer(end: &HandlerEnd, ends_run: bool) -> HookVerdict {
    let mut verdict = HookVerdict::default();
    if end.status != EndStatus::ModelAnswer {
        verdict.failed = Some(match &end.status {
            EndStatus::Timeout => "timed out".to_owned(),
            EndStatus::CannotStart(why) => why.clone(),
            _ => "no answer of the model".to_owned(),
        });
        return verdict;
    }
    let answer: Option<Value> = serde_json::from_str(end.stdout.trim()).ok();
    match answer.as_ref().and_then(|a| a.get("ok")).and_then(Value::as_bool) {
        Some(true) => {}
        Some(false) => {
            let reason = answer.as_ref().and_then(|a| a.get("reason")).and_then(Value::as_str);
            verdict.decision = HookDecision::Deny;
            verdict.reason = reason.map(str::to_owned);
            verdict.prevent_continuation = ends_run;
        }
        None => verdict.failed = Some("the model's answer is not `{\"ok\": …}`".to_owned()),
    }
    verdict
}
