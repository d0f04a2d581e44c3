//! What is gathered while a call goes its way, and what its hooks came to.

use super::{Call, DecidedBy, Judgement, Outcome, Step};
use crate::hooks::{HookDecision, HookVerdict, Selected};
use crate::place::Place;
use serde_json::Value;

/// What a hook said, in words.
pub(super) fn describe(label: &str, verdict: &HookVerdict) -> String {
    let mut text = format!("hook `{label}`");
    if verdict.asynchronous {
        text.push_str(" runs in the background, so its decision is ignored");
    } else if let Some(why) = &verdict.failed {
        text.push_str(&format!(" failed: {why}"));
        text.push_str(if verdict.by_on_failure { "; `onFailure` is block" } else { "; the call goes on" });
    } else if verdict.decision == HookDecision::None {
        text.push_str(" says nothing");
    } else {
        text.push_str(&format!(" says {}", verdict.decision.word()));
    }
    if let Some(reason) = verdict.reason.as_deref().filter(|_| verdict.failed.is_none()) {
        text.push_str(&format!(": {reason}"));
    }
    text
}

/// Verdicts, the order of their ends, and label and place of each handler.
pub(super) struct Ran(
    pub(super) Vec<HookVerdict>,
    pub(super) Vec<usize>,
    pub(super) Vec<(String, Option<Place>)>,
);

impl Ran {
    pub(super) fn decided(&self, index: Option<usize>) -> DecidedBy {
        let (label, source) = index.and_then(|i| self.2.get(i)).cloned().unwrap_or_default();
        let reason = index
            .and_then(|i| self.0.get(i))
            .and_then(|verdict| verdict.reason.clone())
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        DecidedBy { kind: "hook", text: format!("hook `{label}`{reason}"), source }
    }
}

/// What is gathered on the way.
pub(super) struct Way {
    pub(super) steps: Vec<Step>,
    pub(super) input: Value,
    pub(super) hook_decision: HookDecision,
    pub(super) hook_runs: usize,
    pub(super) handlers: Vec<(String, String)>,
    pub(super) rules: Vec<u32>,
    pub(super) ends_run: bool,
    pub(super) aborts: bool,
}

impl Way {
    pub(super) fn new(call: &Call<'_>) -> Self {
        Self {
            steps: Vec::new(),
            input: call.input.clone(),
            hook_decision: HookDecision::None,
            hook_runs: 0,
            handlers: Vec::new(),
            rules: Vec::new(),
            ends_run: false,
            aborts: false,
        }
    }

    pub(super) fn step(&mut self, stage: &'static str, result: &str, text: &str, source: Option<Place>) {
        self.steps.push(Step { stage, result: result.to_owned(), text: text.to_owned(), source });
    }

    pub(super) fn note_handlers(&mut self, hooks: &[Selected<'_>]) {
        self.handlers.extend(hooks.iter().map(|hook| (hook.file.to_owned(), hook.handler.pointer.clone())));
    }

    pub(super) fn into_judgement(self, outcome: Outcome, decided_by: DecidedBy) -> Judgement {
        Judgement {
            outcome,
            decided_by,
            steps: self.steps,
            input: self.input,
            hook_decision: self.hook_decision,
            hook_runs: self.hook_runs,
            handlers: self.handlers,
            rules: self.rules,
            ends_run: self.ends_run,
            aborts: self.aborts,
        }
    }
}
