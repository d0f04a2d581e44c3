//! The facts about calls: which tools there are, what their inputs must look like, which hooks match, what the rules
//! say. A call is compiled once into a [`CallInfo`], so that a step costs table look-ups.

use crate::agent_loop::{CallInfo, Config, HookList, HookRef, RuleAnswer, ServerRef, Tool, ToolRef};
use crate::hooks::{Event, Handler, HookTable, HooksConfig, OnFailure};
use crate::sources::settings::Level;
use serde_json::Value;

/// What the permission rules and the mode say of a call. Implemented by the gate over real settings; a trait, so that
/// the loop can be studied with other rules.
pub trait Rules: std::fmt::Debug {
    /// The answer for one call, before hooks are heard.
    fn answer(&self, tool: &str, input: &Value) -> RuleAnswer;

    /// Whether a hook's `if` condition (one rule in permission syntax) holds of a call.
    fn condition(&self, condition: &str, tool: &str, input: &Value) -> bool;
}

/// Everything is allowed and every condition holds.
#[derive(Clone, Copy, Debug)]
pub struct AllowAll;

impl Rules for AllowAll {
    fn answer(&self, _tool: &str, _input: &Value) -> RuleAnswer {
        RuleAnswer::Allow
    }

    fn condition(&self, _condition: &str, _tool: &str, _input: &Value) -> bool {
        true
    }
}

/// A tool with its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name that the assistant uses.
    pub name: String,
    /// What it does, as the assistant reads it.
    pub description: String,
    /// The JSON Schema of its input.
    pub schema: Value,
    /// Whether its calls may run together (`readOnlyHint` of an MCP tool).
    pub read_only: bool,
    /// The server it belongs to.
    pub server: Option<ServerRef>,
    /// The tool's own name on its server.
    pub own_name: String,
}

/// A configured handler with its place in the loop.
#[derive(Clone, Debug)]
pub struct RegisteredHook {
    /// The event.
    pub event: Event,
    /// The handler.
    pub handler: Handler,
}

/// Tools, hooks and rules of a session.
#[derive(Debug)]
pub struct Catalogue {
    tools: Vec<(ToolSpec, Option<jsonschema::Validator>)>,
    table: HookTable,
    hooks: Vec<RegisteredHook>,
    rules: Box<dyn Rules>,
    validates_mcp: bool,
    epoch: u32,
}

impl Catalogue {
    /// A catalogue of built-in tools, hooks and rules. `validates_mcp`: whether the inputs of MCP tools are checked
    /// before they are sent (the observed harness does not).
    pub fn new(hooks: Vec<(Level, HooksConfig)>, rules: Box<dyn Rules>, validates_mcp: bool) -> Self {
        let table = HookTable {
            sources: hooks
                .into_iter()
                .map(|(level, config)| crate::hooks::HookSource {
                    level,
                    file: level.word().to_owned(),
                    config,
                })
                .collect(),
        };
        Self { tools: Vec::new(), table, hooks: Vec::new(), rules, validates_mcp, epoch: 0 }
    }

    /// Adds a tool, or replaces the definition of the tool of that name and server.
    pub fn add_tool(&mut self, config: &mut Config, spec: ToolSpec) -> ToolRef {
        let same = |(old, _): &(ToolSpec, _)| old.name == spec.name && old.server == spec.server;
        let known = self.tools.iter().position(same);
        let reference = |position: usize| ToolRef(u16::try_from(position).unwrap_or(u16::MAX));
        if let Some(position) = known
            && self.tools.get(position).is_some_and(|(old, _)| *old == spec)
        {
            return reference(position);
        }
        self.epoch += 1;
        // A schema that is no schema constrains nothing here; `mcp lint` reports it.
        let validator = jsonschema::validator_for(&spec.schema).ok();
        if let Some(position) = known {
            if let Some(entry) = self.tools.get_mut(position) {
                *entry = (spec, validator);
            }
            return reference(position);
        }
        let tool = reference(self.tools.len());
        config.tools.push(Tool { name: spec.name.clone(), server: spec.server });
        self.tools.push((spec, validator));
        tool
    }

    /// Counts the changes of the tool definitions: facts about a call that were compiled in another epoch are stale.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The definition of a tool.
    pub fn tool(&self, tool: ToolRef) -> Option<&ToolSpec> {
        self.tools.get(tool.index()).map(|(spec, _)| spec)
    }

    /// The definitions, in the order in which they were added.
    pub fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|(spec, _)| spec)
    }

    /// A registered hook.
    pub fn hook(&self, hook: HookRef) -> Option<&RegisteredHook> {
        self.hooks.get(hook.index())
    }

    /// The registered hooks, in the order of their references.
    pub fn hooks(&self) -> &[RegisteredHook] {
        &self.hooks
    }

    /// The hooks that run on an event of the run itself.
    ///
    /// # Errors
    /// The bound that is exceeded.
    pub fn run_hooks(&mut self, config: &mut Config, event: Event) -> Result<HookList, TooManyHooksError> {
        self.select(config, event, "", &Value::Null)
    }

    /// Compiles the facts about a call.
    ///
    /// # Errors
    /// The bound that is exceeded.
    pub fn compile(
        &mut self,
        config: &mut Config,
        id: &str,
        tool: &str,
        input: &Value,
    ) -> Result<CallInfo, TooManyHooksError> {
        let found = self.tools.iter().position(|(spec, _)| spec.name == tool);
        let entry = found.and_then(|position| self.tools.get(position));
        let input_fits = entry.is_none_or(|(spec, validator)| {
            (spec.server.is_some() && !self.validates_mcp)
                || validator.as_ref().is_none_or(|validator| validator.is_valid(input))
        });
        Ok(CallInfo {
            id: id.to_owned(),
            tool: found.and_then(|position| u16::try_from(position).ok()).map(ToolRef),
            input_fits,
            read_only: entry.is_some_and(|(spec, _)| spec.read_only),
            rule: self.rules.answer(tool, input),
            before: self.select(config, Event::PreToolUse, tool, input)?,
            after: self.select(config, Event::PostToolUse, tool, input)?,
            after_failure: self.select(config, Event::PostToolUseFailure, tool, input)?,
        })
    }

    /// Why an input does not fit, for the text that the assistant sees.
    pub fn misfit(&self, tool: &str, input: &Value) -> Option<String> {
        let (_, validator) = self.tools.iter().find(|(spec, _)| spec.name == tool)?;
        validator.as_ref()?.validate(input).err().map(|error| error.to_string())
    }

    /// The handlers that run, each registered in the configuration once.
    fn select(
        &mut self,
        config: &mut Config,
        event: Event,
        tool: &str,
        input: &Value,
    ) -> Result<HookList, TooManyHooksError> {
        let Some(loop_event) = loop_event(event) else { return Ok(HookList::new()) };
        let rules = &self.rules;
        let condition = |condition: &str| rules.condition(condition, tool, input);
        let selected = self.table.select(event, tool, &condition, &config.profile.hooks);
        let mut list = HookList::new();
        for chosen in selected {
            if chosen.handler.is_async() {
                // An asynchronous handler never blocks and its decision is ignored (gate-and-hooks 3.5).
                continue;
            }
            let same = |hook: &RegisteredHook| hook.event == event && hook.handler == *chosen.handler;
            let position = match self.hooks.iter().position(same) {
                Some(position) => position,
                None => {
                    self.hooks.push(RegisteredHook { event, handler: chosen.handler.clone() });
                    config.hooks.push(crate::agent_loop::Hook {
                        event: loop_event,
                        name: chosen.handler.label(),
                        block_on_failure: chosen.handler.on_failure == OnFailure::Block,
                    });
                    self.hooks.len() - 1
                }
            };
            let hook = u8::try_from(position).map(HookRef).map_err(|_| TooManyHooksError::Hooks)?;
            list.try_push(hook).map_err(|_| TooManyHooksError::OnOneCall)?;
        }
        Ok(list)
    }
}

/// The loop's own name of an event, where it fires it.
fn loop_event(event: Event) -> Option<crate::agent_loop::LoopEvent> {
    use crate::agent_loop::LoopEvent;
    match event {
        Event::UserPromptSubmit => Some(LoopEvent::UserPromptSubmit),
        Event::PreToolUse => Some(LoopEvent::PreToolUse),
        Event::PostToolUse => Some(LoopEvent::PostToolUse),
        Event::PostToolUseFailure => Some(LoopEvent::PostToolUseFailure),
        Event::Stop => Some(LoopEvent::Stop),
        _ => None,
    }
}

/// More hooks than the model's state can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooManyHooksError {
    /// On one event of one call.
    #[error("more than 8 hooks match one call: a capacity of the model's state (MAX_HOOKS)")]
    OnOneCall,
    /// In all.
    #[error("more than 256 hooks: a capacity of the model's state")]
    Hooks,
}
