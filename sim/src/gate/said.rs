//! Hooks whose behaviour is told, not run: `hooks_say` of a case, `--hook-outcome` of the command line.

use serde_json::Value;
use std::collections::BTreeMap;
use windtunnel_model::gate::Call;
use windtunnel_model::gate::pipeline::{Answers, AskedEnd, HookRuns};
use windtunnel_model::hooks::{EndStatus, Event, Handler, HandlerEnd, Selected};

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
    /// Reads how a handler ends: a command by `exit` or `signal`, any by `cannot_start`, an HTTP handler by `http` (the
    /// status), a prompt or agent handler by `answer` (the model's text, or its JSON); with `stdout`, `stderr` and
    /// `seconds`.
    ///
    /// # Errors
    /// When it is not an object, or a part has the wrong type.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let Value::Object(fields) = value else {
            return Err("how a hook ends is an object with `exit`, `signal`, `http` or `answer`".to_owned());
        };
        let text = |name: &str| match fields.get(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(json) if name == "stdout" => Ok(json.to_string()),
            Some(_) => Err(format!("`{name}` is not a string")),
        };
        let number = |name: &str| match fields.get(name) {
            None => Ok(None),
            Some(value) => {
                let number = value.as_i64().and_then(|n| i32::try_from(n).ok());
                number.map(Some).ok_or_else(|| format!("`{name}` is not a whole number"))
            }
        };
        let seconds = match fields.get("seconds") {
            None => 0.0,
            Some(value) => {
                value.as_f64().filter(|s| *s >= 0.0).ok_or("`seconds` is not a number of seconds")?
            }
        };
        let (stdout, stderr) = (text("stdout")?, text("stderr")?);
        let end = if let Some(answer) = fields.get("answer") {
            let stdout = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            HandlerEnd { status: EndStatus::ModelAnswer, stdout, stderr }
        } else if let Some(why) = fields.get("cannot_start") {
            let why = why.as_str().unwrap_or("cannot start").to_owned();
            HandlerEnd { status: EndStatus::CannotStart(why), stdout, stderr }
        } else if let Some(status) = number("http")? {
            let status = u16::try_from(status).map_err(|_| "`http` is not an HTTP status")?;
            HandlerEnd { status: EndStatus::Http(status), stdout, stderr }
        } else if let Some(signal) = number("signal")? {
            HandlerEnd { status: EndStatus::Signal(signal), stdout, stderr }
        } else {
            HandlerEnd { status: EndStatus::Exit(number("exit")?.unwrap_or(0)), stdout, stderr }
        };
        Ok(Self { end, seconds })
    }
}

impl SaidHooks {
    /// What is told of a handler; beyond its time limit that is a timeout.
    pub fn of(&self, event: Event, handler: &Handler) -> Option<Said> {
        let said = self.by_label.get(&handler.label()).or(self.otherwise.as_ref())?.clone();
        if said.seconds > handler.time_limit(event) {
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
        let said: Vec<Option<Said>> = hooks.iter().map(|hook| self.of(event, hook.handler)).collect();
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
            .map(|(index, hook)| match self.of(Event::PermissionRequest, hook.handler) {
                Some(said) => (said.seconds, AskedEnd::Hook(index, said.end)),
                None => (0.0, AskedEnd::UnknownHook(index)),
            })
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends.into_iter().map(|(_, end)| end).collect()
    }
}
