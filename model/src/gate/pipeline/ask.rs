//! What becomes of a question: who can answer in print mode, and what an answer changes.
//!
//! Source: gate-and-hooks, section 9.

use super::way::Way;
use super::{Answers, AskedEnd, Call, DecidedBy, Outcome, Session};
use crate::gate::decision::{Asked, Decider, Resolved, resolve};
use crate::gate::facts::Facts;
use crate::gate::mode::Mode;
use crate::gate::rule::Behaviour;
use crate::hooks::{Event, interpret, payload};
use crate::sources::settings::Level;
use serde_json::Value;

impl Session {
    /// Step 9: who can answer, and what they say.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, one question: all of it is looked at here and nowhere else"
    )]
    pub(super) fn ask(
        &mut self,
        tool: &str,
        call: &Call<'_>,
        facts: &dyn Facts,
        answers: &mut dyn Answers,
        way: &mut Way,
        decider: Decider,
        refusal: bool,
        who: DecidedBy,
    ) -> Result<(Outcome, DecidedBy), (Outcome, DecidedBy)> {
        if self.workspace.mode == Mode::DontAsk {
            debug_assert_eq!(resolve(Mode::DontAsk, Asked::Nobody), Resolved::ByMode);
            way.step("question", "refused", "permission mode `dontAsk` refuses what would be asked", None);
            return Err((Outcome::NeedsApproval, who));
        }
        if call.background || refusal {
            way.step("question", "refused", "nobody is asked here", None);
            return Err((Outcome::NeedsApproval, who));
        }
        let hooks = if decider == Decider::Rules {
            self.handlers(&self.hooks, Event::PermissionRequest, tool, &way.input)
        } else {
            Vec::new()
        };
        let own = payload::tool_fields(Event::PermissionRequest, tool, &way.input, call.id);
        let text = payload::payload(Event::PermissionRequest, &self.common_of(call), own);
        let (mut decision, mut by, mut unknown) = (None, String::new(), 0);
        if !hooks.is_empty() || self.prompt_tool.is_some() {
            way.hook_runs += hooks.len();
            way.note_handlers(&hooks);
            for end in answers.ask(&hooks, &text, call, &way.input) {
                match end {
                    AskedEnd::UnknownHook(_) => unknown += 1,
                    AskedEnd::PromptTool(answer) => {
                        decision = Some(answer);
                        by = "the permission prompt tool".to_owned();
                    }
                    AskedEnd::Hook(index, end) => {
                        let Some(hook) = hooks.get(index) else { continue };
                        let verdict =
                            interpret(Event::PermissionRequest, hook.handler, &end, &self.profile.hooks);
                        let label = hook.handler.label();
                        if let Some(answer) = verdict.permission {
                            by = format!("PermissionRequest hook `{label}`");
                            decision = Some(answer);
                        }
                    }
                }
                if decision.is_some() {
                    break;
                }
            }
        }
        let Some(answer) = decision else {
            if unknown > 0 {
                let text =
                    format!("{unknown} PermissionRequest hooks match, and nothing is known of what they say");
                way.step("question", "unknown", &text, None);
                return Err((Outcome::Unknown, DecidedBy { kind: "hook", text, source: None }));
            }
            way.step("question", "unanswered", "nobody can answer in print mode", None);
            return Err((Outcome::NeedsApproval, who));
        };
        let decided = DecidedBy { kind: "hook", text: by, source: None };
        if !answer.allow {
            way.step("question", "deny", &decided.text, None);
            way.aborts |= answer.interrupt;
            let outcome = if answer.interrupt { Outcome::NeedsApproval } else { Outcome::Blocked };
            return Err((outcome, decided));
        }
        way.step("question", "allow", &decided.text, None);
        if let Some(input) = answer.updated_input {
            self.rewrite(tool, input, facts, way)?;
        }
        self.apply_permissions(&answer.updated_permissions);
        Ok((Outcome::Run, decided))
    }

    /// Rules, directories and modes that an answer adds for the rest of the session.
    pub fn apply_permissions(&mut self, updates: &[Value]) {
        for update in updates {
            match update.get("type").and_then(Value::as_str) {
                Some("setMode") => {
                    if let Some(mode) = update.get("mode").and_then(Value::as_str).and_then(Mode::from_name) {
                        self.workspace.mode = mode;
                    }
                }
                Some("addDirectories") => {
                    for directory in update.get("directories").and_then(Value::as_array).into_iter().flatten()
                    {
                        if let Some(text) = directory.as_str() {
                            self.workspace.add_directory(text);
                        }
                    }
                }
                Some("addRules") => {
                    let behaviour = match update.get("behavior").and_then(Value::as_str) {
                        Some("allow") => Behaviour::Allow,
                        Some("ask") => Behaviour::Ask,
                        Some("deny") => Behaviour::Deny,
                        _ => continue,
                    };
                    for rule in update.get("rules").and_then(Value::as_array).into_iter().flatten() {
                        let Some(tool) = rule.get("toolName").and_then(Value::as_str) else { continue };
                        let text = match rule.get("ruleContent").and_then(Value::as_str) {
                            Some(content) => format!("{tool}({content})"),
                            None => tool.to_owned(),
                        };
                        self.merged.push_rule(behaviour, &text, Level::Session, "(session)");
                    }
                    self.recompile();
                }
                _ => {}
            }
        }
    }
}
