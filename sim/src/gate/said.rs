//! Hooks whose behaviour is told, not run: `hooks_say` of a case, `--hook-outcome` of the command line.

use serde_json::Value;
use std::collections::BTreeMap;
use windtunnel_model::gate::Call;
use windtunnel_model::gate::pipeline::{Answers, AskedEnd, HookRuns};
use windtunnel_model::hooks::{EndStatus, Event, HandlerEnd, Selected};

/// One told behaviour.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// How it ends.
    pub end: HandlerEnd,
    /// After how long, in seconds.
    pub seconds: f64,
}

/// Told behaviours by command (or address, or tool).
#[derive(Clone, Debug, Default)]
pub struct SaidHooks {
    /// By label of the handler.
    pub by_label: BTreeMap<String, Said>,
    /// For handlers that are not named.
    pub otherwise: Option<Said>,
    /// How often each handler would have run.
    pub ran: BTreeMap<(String, String), usize>,
}

impl Said {
    /// Reads `{"exit": …, "stdout": …, "stderr": …, "signal": …, "seconds": …}`.
    ///
    /// # Errors
    /// When it is not an object.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let Value::Object(fields) = value else { return Err("expected an object with `exit`".to_owned()) };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let number =
            |name: &str| fields.get(name).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
        let status = match (number("signal"), fields.get("cannot_start")) {
            (Some(signal), _) => EndStatus::Signal(signal),
            (None, Some(why)) => EndStatus::CannotStart(why.as_str().unwrap_or("cannot start").to_owned()),
            (None, None) => EndStatus::Exit(number("exit").unwrap_or(0)),
        };
        let seconds = fields.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
        Ok(Self { end: HandlerEnd { status, stdout: text("stdout"), stderr: text("stderr") }, seconds })
    }
}

impl SaidHooks {
    fn of(&self, event: Event, hook: &Selected<'_>) -> Option<Said> {
        let said = self.by_label.get(&hook.handler.label()).or(self.otherwise.as_ref())?.clone();
        if said.seconds > hook.handler.time_limit(event) {
            return Some(Said { end: HandlerEnd::silent(EndStatus::Timeout), ..said });
        }
        Some(said)
    }

    fn note(&mut self, hooks: &[Selected<'_>]) {
        for hook in hooks {
            *self.ran.entry((hook.file.to_owned(), hook.handler.pointer.clone())).or_default() += 1;
        }
    }
}

impl Answers for SaidHooks {
    fn run_hooks(&mut self, event: Event, hooks: &[Selected<'_>], _: &Value) -> HookRuns {
        self.note(hooks);
        let said: Vec<Option<Said>> = hooks.iter().map(|hook| self.of(event, hook)).collect();
        let mut finished: Vec<usize> = (0..hooks.len()).collect();
        let seconds =
            |index: &usize| said.get(*index).and_then(Option::as_ref).map_or(0.0, |said| said.seconds);
        finished.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        HookRuns { ends: said.into_iter().map(|said| said.map(|said| said.end)).collect(), finished }
    }

    fn ask(&mut self, hooks: &[Selected<'_>], _: &Value, _: &Call<'_>, _: &Value) -> Vec<AskedEnd> {
        self.note(hooks);
        let mut ends: Vec<(f64, AskedEnd)> = hooks
            .iter()
            .enumerate()
            .map(|(index, hook)| match self.of(Event::PermissionRequest, hook) {
                Some(said) => (said.seconds, AskedEnd::Hook(index, said.end)),
                None => (0.0, AskedEnd::UnknownHook(index)),
            })
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends.into_iter().map(|(_, end)| end).collect()
    }
}
