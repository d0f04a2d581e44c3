//! Which handlers run for an event: levels add up, matchers and conditions pick, duplicates run once.
//!
//! Source: gate-and-hooks, section 3.5.

use super::event::Event;
use super::handler::{Handler, HandlerKind, HooksConfig};
use crate::profile::hooks::{HandlerIdentity, HookParameters};
use crate::sources::settings::Level;

/// The hooks of one source.
#[derive(Clone, Debug)]
pub struct HookSource {
    /// The level it stands at.
    pub level: Level,
    /// The file (or flag, or plugin) as people name it.
    pub file: String,
    /// What it registers.
    pub config: HooksConfig,
}

/// A handler that runs, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    /// The handler.
    pub handler: &'a Handler,
    /// The level of its source.
    pub level: Level,
    /// The file of its source.
    pub file: &'a str,
    /// The text of its matcher.
    pub matcher: &'a str,
}

/// All hooks of a session, lowest level first.
#[derive(Clone, Debug, Default)]
pub struct HookTable {
    /// The sources that count, lowest level first.
    pub sources: Vec<HookSource>,
}

impl HookTable {
    /// The handlers that run on `event` for a value of its matcher field, in order; `condition` says whether a handler's
    /// `if` holds (it is asked on tool events only; elsewhere a handler with `if` never runs).
    pub fn select(
        &self,
        event: Event,
        subject: &str,
        condition: &dyn Fn(&str) -> bool,
        parameters: &HookParameters,
    ) -> Vec<Selected<'_>> {
        let mut chosen: Vec<Selected<'_>> = Vec::new();
        for source in &self.sources {
            for group in source.config.groups(event) {
                let matches = match event.matcher_field() {
                    None => true,
                    Some("tool_name") => group.matcher.matches_tool(subject),
                    Some("file_path") => {
                        group.matcher.matches(subject)
                            || group.matcher.matches(subject.rsplit('/').next().unwrap_or(subject))
                    }
                    Some(_) => group.matcher.matches(subject),
                };
                if !matches {
                    continue;
                }
                for handler in &group.handlers {
                    if let Some(rule) = &handler.condition
                        && !(event.is_about_a_tool() && condition(rule))
                    {
                        continue;
                    }
                    let new = Selected {
                        handler,
                        level: source.level,
                        file: &source.file,
                        matcher: group.matcher.text(),
                    };
                    insert(&mut chosen, new, parameters.identity.value);
                }
            }
        }
        chosen
    }

    /// The same, managed sources only: the pass on the raw input.
    pub fn managed(&self) -> Self {
        Self { sources: self.sources.iter().filter(|s| s.level == Level::Managed).cloned().collect() }
    }
}

fn insert<'a>(chosen: &mut Vec<Selected<'a>>, new: Selected<'a>, identity: HandlerIdentity) {
    let same = |old: &Selected<'_>| {
        (old.level == Level::Managed) == (new.level == Level::Managed)
            && match identity {
                HandlerIdentity::WholeHandler => {
                    let mut copy = old.handler.clone();
                    copy.pointer.clone_from(&new.handler.pointer);
                    copy == *new.handler
                }
                HandlerIdentity::CommandArgsIf => same_command(old.handler, new.handler),
            }
    };
    match (chosen.iter_mut().find(|old| same(old)), identity) {
        (None, _) => chosen.push(new),
        (Some(_), HandlerIdentity::WholeHandler) => {}
        (Some(old), HandlerIdentity::CommandArgsIf) => *old = new,
    }
}

/// Identity by what is run and when: command and arguments (or address, or tool and input, or prompt) and `if`.
fn same_command(a: &Handler, b: &Handler) -> bool {
    if a.condition != b.condition {
        return false;
    }
    match (&a.kind, &b.kind) {
        (HandlerKind::Command { command: a, args: x }, HandlerKind::Command { command: b, args: y }) => {
            a == b && x == y
        }
        (HandlerKind::Http { url: a, .. }, HandlerKind::Http { url: b, .. }) => a == b,
        (a, b) => a == b,
    }
}
