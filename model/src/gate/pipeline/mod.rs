//! The whole way of one call: look-up, validation, hooks, rules, and what becomes of a question.
//!
//! Source: gate-and-hooks, sections 2 and 13. The world runs hooks and answers for files; everything else is decided
//! here, so `gate explain`, `gate test` and a real run obey the same lines.

mod ask;
mod judgement;
mod way;

pub use judgement::{DecidedBy, Judgement, Outcome, Step};
use way::{Ran, Way, describe};

use crate::gate::condition;
use crate::gate::decision::{Decider, Gated, gate};
use crate::gate::facts::Facts;
use crate::gate::mode::Mode;
use crate::gate::permission::{AskKind, By, Permission, Policy, path_deny, permission};
use crate::gate::tools;
use crate::gate::workspace::Workspace;
use crate::hooks::payload::{self, Common};
use crate::hooks::{Event, HandlerEnd, HookDecision, HookTable, PermissionAnswer, Selected};
use crate::hooks::{combine_verdicts, interpret};
use crate::place::Place;
use crate::profile::Profile;
use crate::sources::merge::Merged;
use crate::sources::settings::Level;
use serde_json::Value;

/// One call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its id.
    pub id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Its input.
    pub input: &'a Value,
    /// Whether it is made inside a subagent that runs in the background.
    pub background: bool,
    /// Id and type of the subagent it is made in.
    pub agent: Option<(&'a str, &'a str)>,
}

/// The ends of some handlers, in their order.
#[derive(Clone, Debug, Default)]
pub struct HookRuns {
    /// The end of each handler; `None` where nothing is known of its behaviour.
    pub ends: Vec<Option<HandlerEnd>>,
    /// Indices in the order in which they ended.
    pub finished: Vec<usize>,
}

/// The world's answers.
pub trait Answers {
    /// Runs handlers of one event together.
    fn run_hooks(&mut self, event: Event, hooks: &[Selected<'_>], payload: &Value) -> HookRuns;
    /// Runs handlers of PermissionRequest beside the prompt tool (when there is one) and gives the ends in the order in
    /// which they came; the prompt tool's answer stands under the index `None`.
    fn ask(
        &mut self,
        hooks: &[Selected<'_>],
        payload: &Value,
        call: &Call<'_>,
        input: &Value,
    ) -> Vec<AskedEnd>;
}

/// One answer to a permission request.
#[derive(Clone, Debug)]
pub enum AskedEnd {
    /// A hook ended; its index.
    Hook(usize, HandlerEnd),
    /// The prompt tool answered.
    PromptTool(PermissionAnswer),
    /// A hook of which nothing is known.
    UnknownHook(usize),
}

/// A session: policy, hooks and what changes from call to call.
#[derive(Clone, Debug)]
pub struct Session {
    /// The rules in force, compiled.
    pub policy: Policy,
    /// The settings in force.
    pub merged: Merged,
    /// The hooks in force.
    pub hooks: HookTable,
    /// Where it works.
    pub workspace: Workspace,
    /// The parameters.
    pub profile: Profile,
    /// Its id and transcript, for payloads.
    pub common: Common,
    /// The tool that answers questions.
    pub prompt_tool: Option<String>,
    /// Files that were read, which NotebookEdit asks for.
    pub read_files: Vec<String>,
    /// Refused checks of the classifier so far.
    pub refused_checks: u8,
}

impl Session {
    /// Recompiles the rules after they changed.
    pub fn recompile(&mut self) {
        let tools = self.policy.tools.clone();
        self.policy = Policy::new(&self.merged, &self.workspace.bases(), tools, &self.profile.gate);
    }

    /// The handlers of a tool event that run for a call.
    pub fn handlers(&self, table: &HookTable, event: Event, tool: &str, input: &Value) -> Vec<Selected<'_>> {
        // The table is either `self.hooks` or a part of it; selecting borrows from `self.hooks` alone.
        let managed_only = table.sources.iter().all(|source| source.level == Level::Managed);
        let condition = |rule: &str| {
            condition::holds(rule, tool, input, &self.workspace, &self.profile.gate, &self.profile.hooks)
        };
        let mut selected = self.hooks.select(event, tool, &condition, &self.profile.hooks);
        if managed_only {
            selected.retain(|hook| hook.level == Level::Managed);
        }
        selected
    }

    fn place_of(&self, rule: u32) -> Option<Place> {
        self.merged.rules.get(rule as usize).and_then(|rule| self.merged.place(rule))
    }

    /// The text of a rule, for messages.
    pub fn rule_text(&self, rule: u32) -> String {
        match self.merged.rules.get(rule as usize) {
            Some(rule) => format!("{} rule `{}` ({})", rule.behaviour.word(), rule.text, rule.level.word()),
            None => "a rule".to_owned(),
        }
    }

    /// Judges one call.
    pub fn judge(&mut self, call: &Call<'_>, facts: &dyn Facts, answers: &mut dyn Answers) -> Judgement {
        let mut way = Way::new(call);
        let ending = self.walk(call, facts, answers, &mut way);
        let (outcome, decided_by) = match ending {
            Ok(end) | Err(end) => end,
        };
        if outcome == Outcome::NeedsApproval
            && self.profile.hooks.unanswered_ask_loses_continue_false.value
            && self.workspace.mode != Mode::DontAsk
        {
            way.ends_run = false;
        }
        if outcome == Outcome::Run
            && call.tool == "Read"
            && let Some(path) = tools::path_of("Read", &way.input)
        {
            self.read_files.push(self.workspace.absolute(path).into_owned());
        }
        way.into_judgement(outcome, decided_by)
    }

    fn walk(
        &mut self,
        call: &Call<'_>,
        facts: &dyn Facts,
        answers: &mut dyn Answers,
        way: &mut Way,
    ) -> Result<(Outcome, DecidedBy), (Outcome, DecidedBy)> {
        let tool = self.look_up(call, way)?;
        if self.profile.hooks.managed_before_validation.value {
            let managed = self.hooks.managed();
            if !managed.sources.is_empty() {
                let verdicts =
                    self.run(&managed, Event::PreToolUse, tool, call, answers, way, "managed hooks")?;
                let combined = combine_verdicts(&verdicts.0, &verdicts.1);
                if combined.decision == HookDecision::Deny {
                    return Err((Outcome::Blocked, verdicts.decided(combined.decided_by)));
                }
            }
        }
        self.validate(tool, call, facts, way)?;
        // From here on hooks and rules see an absolute path.
        if let Some(path) = tools::path_of(tool, &way.input) {
            let absolute = self.workspace.absolute(path).into_owned();
            let field = if tool == "NotebookEdit" { "notebook_path" } else { "file_path" };
            if let Some(slot) = way.input.get_mut(field) {
                *slot = Value::String(absolute);
            }
        }
        let all = self.hooks.clone();
        let ran = self.run(&all, Event::PreToolUse, tool, call, answers, way, "PreToolUse hooks")?;
        let combined = combine_verdicts(&ran.0, &ran.1);
        way.ends_run |= combined.prevent_continuation;
        way.hook_decision = combined.decision;
        if combined.decision == HookDecision::Deny {
            return Err((Outcome::Blocked, ran.decided(combined.decided_by)));
        }
        let by_hook = ran.decided(combined.decided_by);
        if let Some(input) = combined.updated_input
            && (combined.decision != HookDecision::Defer)
        {
            self.rewrite(tool, input, facts, way)?;
        }
        let answer = permission(&self.policy, &self.workspace, facts, tool, &way.input);
        let decided = self.decided(&answer.by, answer.permission);
        way.rules.extend(match &answer.by {
            By::Rule(rule) => vec![*rule],
            By::Parts(rules) => rules.clone(),
            _ => Vec::new(),
        });
        way.step("rules and mode", permission_word(answer.permission), &decided.text, decided.source.clone());
        let gated = gate(
            combined.decision,
            answer.permission,
            self.workspace.mode,
            tool == "Bash",
            &self.profile.gate,
        );
        match gated {
            Gated::Run(Decider::Hook) => Ok((Outcome::Run, by_hook)),
            Gated::Run(Decider::Rules) => Ok((Outcome::Run, decided)),
            Gated::Deny(Decider::Hook) => Err((Outcome::Blocked, by_hook)),
            Gated::Deny(Decider::Rules) => Err((Outcome::Blocked, decided)),
            Gated::Defer => {
                way.ends_run = true;
                Err((Outcome::Deferred, by_hook))
            }
            Gated::Check => {
                self.refused_checks = self.refused_checks.saturating_add(1);
                way.aborts = self.refused_checks >= self.profile.gate.classifier_refusals.value;
                way.step("classifier", "refused", "no classifier can be reached offline", None);
                Err((Outcome::NeedsApproval, decided))
            }
            Gated::Ask(decider) => {
                let who = if decider == Decider::Hook { by_hook } else { decided };
                let refusal = answer.permission == Permission::Ask(AskKind::Refusal);
                self.ask(tool, call, facts, answers, way, decider, refusal, who)
            }
        }
    }

    /// Steps 1 and 2: the id and the tool's name.
    fn look_up<'a>(&self, call: &Call<'a>, way: &mut Way) -> Result<&'a str, (Outcome, DecidedBy)> {
        let refuse = |outcome, kind, text: String| Err((outcome, DecidedBy { kind, text, source: None }));
        if call.id.is_empty() {
            way.step("id", "error", "the call has no id", None);
            return refuse(Outcome::Error, "input", "the call has no id".to_owned());
        }
        let tool = if call.tool == "Task" { "Agent" } else { call.tool };
        if !self.policy.tools.offers(tool) {
            let text = format!("there is no tool `{}` in this session", call.tool);
            way.step("look-up", "gone", &text, None);
            return refuse(Outcome::Gone, "tool", text);
        }
        if let Some(rule) = self.policy.removed_by(tool) {
            let (text, source) = (self.rule_text(rule), self.place_of(rule));
            way.step("look-up", "gone", &format!("{text} removes the tool"), source.clone());
            way.rules.push(rule);
            return Err((Outcome::Gone, DecidedBy { kind: "rule", text, source }));
        }
        way.step("look-up", "found", &format!("tool `{tool}`"), None);
        Ok(tool)
    }

    /// Steps 4 and 5: schema, path denies of file tools, checks of the tool itself.
    fn validate(
        &self,
        tool: &str,
        call: &Call<'_>,
        facts: &dyn Facts,
        way: &mut Way,
    ) -> Result<(), (Outcome, DecidedBy)> {
        let mut refuse = |text: String| {
            way.step("validation", "error", &text, None);
            Err((Outcome::Error, DecidedBy { kind: "input", text, source: None }))
        };
        if let Err(text) = tools::validate(tool, call.input, false) {
            return refuse(text);
        }
        if self.profile.gate.path_deny_before_hooks.value
            && let Some(rule) = path_deny(&self.policy, &self.workspace, facts, tool, call.input, false)
        {
            let decided = self.decided(&By::Rule(rule), Permission::Deny);
            way.step("path deny rules", "deny", &decided.text, decided.source.clone());
            way.rules.push(rule);
            return Err((Outcome::Blocked, decided));
        }
        if let Some(text) = self.tool_check(tool, call.input, facts) {
            return refuse(text);
        }
        way.step("validation", "valid", "the input fits the tool", None);
        Ok(())
    }

    fn tool_check(&self, tool: &str, input: &Value, facts: &dyn Facts) -> Option<String> {
        let field = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or("");
        match tool {
            "Edit" => {
                let (old, new) = (field("old_string"), field("new_string"));
                if old == new {
                    return Some("old_string and new_string are the same".to_owned());
                }
                let path = self.workspace.absolute(field("file_path"));
                let text = facts.text(&path)?;
                (!old.is_empty() && !text.contains(old)).then(|| "old_string is not in the file".to_owned())
            }
            "NotebookEdit" => {
                let path = self.workspace.absolute(field("notebook_path"));
                (!self.read_files.iter().any(|read| *read == path))
                    .then(|| "the notebook has not been read yet".to_owned())
            }
            "TaskStop" => Some(format!("there is no task `{}`", field("task_id"))),
            _ => None,
        }
    }

    /// Step 7: what a hook makes of the input is validated again.
    fn rewrite(
        &self,
        tool: &str,
        input: Value,
        facts: &dyn Facts,
        way: &mut Way,
    ) -> Result<(), (Outcome, DecidedBy)> {
        let refuse = |text: String| DecidedBy { kind: "hook", text, source: None };
        if let Err(why) = tools::validate(tool, &input, true) {
            let text = format!("a hook's rewritten input is not valid: {why}");
            way.step("rewritten input", "deny", &text, None);
            return Err((Outcome::Blocked, refuse(text)));
        }
        if let Some(rule) = path_deny(&self.policy, &self.workspace, facts, tool, &input, false) {
            let text = format!("a hook's rewritten input runs into {}", self.rule_text(rule));
            way.step("rewritten input", "deny", &text, self.place_of(rule));
            way.rules.push(rule);
            return Err((Outcome::Blocked, refuse(text)));
        }
        way.step("rewritten input", "valid", "a hook replaced the input", None);
        way.input = input;
        Ok(())
    }

    fn common_of(&self, call: &Call<'_>) -> Common {
        let mut common = self.common.clone();
        common.cwd.clone_from(&self.workspace.cwd);
        self.workspace.mode.name().clone_into(&mut common.permission_mode);
        common.agent = call.agent.map(|(id, kind)| (id.to_owned(), kind.to_owned()));
        common
    }

    /// Runs the handlers of a tool event and reads their ends.
    #[expect(clippy::too_many_arguments, reason = "the two passes over PreToolUse differ in all of them")]
    fn run(
        &self,
        table: &HookTable,
        event: Event,
        tool: &str,
        call: &Call<'_>,
        answers: &mut dyn Answers,
        way: &mut Way,
        stage: &'static str,
    ) -> Result<Ran, (Outcome, DecidedBy)> {
        let hooks = self.handlers(table, event, tool, &way.input);
        if hooks.is_empty() {
            return Ok(Ran(Vec::new(), Vec::new(), Vec::new()));
        }
        let own = payload::tool_fields(event, tool, &way.input, call.id);
        let text = payload::payload(event, &self.common_of(call), own);
        let runs = answers.run_hooks(event, &hooks, &text);
        way.hook_runs += hooks.len();
        way.note_handlers(&hooks);
        let mut verdicts = Vec::new();
        let mut labels = Vec::new();
        for (index, hook) in hooks.iter().enumerate() {
            let label = hook.handler.label();
            let source = hook_place(self, hook);
            let Some(Some(end)) = runs.ends.get(index) else {
                let text = format!("nothing is known of what hook `{label}` says");
                way.step(stage, "unknown", &text, source.clone());
                return Err((Outcome::Unknown, DecidedBy { kind: "hook", text, source }));
            };
            let verdict = interpret(event, hook.handler, end, &self.profile.hooks);
            way.step(stage, verdict.decision.word(), &describe(&label, &verdict), source.clone());
            labels.push((label, source));
            verdicts.push(verdict);
        }
        Ok(Ran(verdicts, runs.finished, labels))
    }
}

/// The place of a handler in its file.
pub fn hook_place(session: &Session, hook: &Selected<'_>) -> Option<Place> {
    let (file, text) = session.merged.files.iter().find(|(file, _)| file == hook.file)?;
    Some(Place::at_pointer(file, text, &hook.handler.pointer))
}

fn permission_word(permission: Permission) -> &'static str {
    match permission {
        Permission::Allow => "allow",
        Permission::Ask(_) => "ask",
        Permission::Deny => "deny",
        Permission::Check => "check",
    }
}
