//! A run with its payloads: [`Session`] owns the configuration, the control state and the journal, takes what the world
//! says in labelled form, and gives labelled outputs. Control itself ([`step`]) sees ids only.

mod catalogue;
mod journal;
mod label;
mod texts;
mod wire;

pub use catalogue::{AllowAll, Catalogue, RegisteredHook, Rules, TooManyHooksError, ToolSpec};
pub use journal::{Journal, RequestFaults};
pub use wire::ClientVersions;

use crate::agent_loop::{
    CallEnd, CallRef, Config, ConnPhase, HookRef, Input, MAX_CALLS, McpBody, McpIn, Phase, Rejected,
    ReplyInfo, ReplyRef, ServerRef, Signal, Site, State, ToolEnd, step,
};
use crate::hooks::{HandlerEnd, HookVerdict, interpret};
use crate::invariants::{Invariant, InvariantSet, Monitor, Observation, observe};
use crate::mcp::names::qualify;
use crate::message::{Block, Message, Role};
use crate::mutant::Mutant;
use crate::profile::agent_loop::ResultOrder;
use crate::trace::{LabelledInput, Reply, TraceStep};
use arrayvec::ArrayVec;
use serde_json::Value;
use wire::{Heard, Open, OpenKind, Wire};

/// Why the session cannot take what the world says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The harness rejects it.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// A capacity is exceeded.
    #[error(transparent)]
    TooManyHooks(#[from] TooManyHooksError),
    /// It names a server that is not configured.
    #[error("no server `{0}` is configured")]
    UnknownServer(String),
}

/// The payload of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPayload {
    /// The tool as the assistant named it.
    pub tool: String,
    /// The input.
    pub input: Value,
    epoch: u32,
}

/// What is known of one slot of the turn besides its control state.
#[derive(Clone, Debug, Default)]
struct SlotPayload {
    call: CallRef,
    text: Option<String>,
    reason: Option<String>,
    contexts: Vec<String>,
}

/// A run with its payloads.
#[derive(Debug)]
pub struct Session {
    config: Config,
    catalogue: Catalogue,
    versions: ClientVersions,
    state: State,
    monitor: Monitor,
    judged: InvariantSet,
    broken: Vec<(u32, Invariant)>,
    journal: Journal,
    payloads: Vec<CallPayload>,
    wires: Vec<Wire>,
    slots: Vec<SlotPayload>,
    results: Vec<(u8, Block)>,
    contexts: Vec<String>,
    feedback: Vec<String>,
    answers: Vec<(ServerRef, String)>,
    steps: u32,
}

impl Session {
    /// A session that has not started. `judged` are the invariants that every step is judged by.
    pub fn new(config: Config, catalogue: Catalogue, versions: ClientVersions, judged: InvariantSet) -> Self {
        let servers = config.servers.len();
        Self {
            config,
            catalogue,
            versions,
            state: State::default(),
            monitor: Monitor::default(),
            judged,
            broken: Vec::new(),
            journal: Journal::default(),
            payloads: Vec::new(),
            wires: vec![Wire::default(); servers],
            slots: Vec::new(),
            results: Vec::new(),
            contexts: Vec::new(),
            feedback: Vec::new(),
            answers: Vec::new(),
            steps: 0,
        }
    }

    /// The configuration as compiled so far.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Tools, hooks and rules.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The control state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The conversation and its ledger.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Steps that broke an invariant, in order: (step, invariant).
    pub fn broken(&self) -> &[(u32, Invariant)] {
        &self.broken
    }

    /// The payload of a known call.
    pub fn payload(&self, call: CallRef) -> Option<&CallPayload> {
        self.payloads.get(call.index())
    }

    /// The call in a slot of the present turn, as the assistant made it or as hooks rewrote it.
    pub fn slot_call(&self, slot: u8) -> Option<CallRef> {
        self.slots.get(usize::from(slot)).map(|slot| slot.call)
    }

    /// What the tool of a call in the present turn has said so far.
    pub fn slot_text(&self, slot: u8) -> &str {
        self.slots.get(usize::from(slot)).and_then(|slot| slot.text.as_deref()).unwrap_or_default()
    }

    /// Lines that answer servers' own requests; they leave no trace in control and have to be sent by the world.
    pub fn take_answers(&mut self) -> Vec<(ServerRef, String)> {
        std::mem::take(&mut self.answers)
    }

    /// Interns a call, so that equal calls are one.
    ///
    /// # Errors
    /// When a capacity is exceeded.
    pub fn intern_call(&mut self, id: &str, tool: &str, input: &Value) -> Result<CallRef, SessionError> {
        let known = self
            .payloads
            .iter()
            .zip(&self.config.calls)
            .position(|(payload, info)| info.id == id && payload.tool == tool && payload.input == *input);
        let position = known.unwrap_or(self.config.calls.len());
        let call = u16::try_from(position)
            .map(CallRef)
            .map_err(|_| Rejected::Capacity { what: "different calls", limit: usize::from(u16::MAX) })?;
        let epoch = self.catalogue.epoch();
        if self.payloads.get(position).is_some_and(|payload| payload.epoch == epoch) {
            return Ok(call);
        }
        let info = self.catalogue.compile(&mut self.config, id, tool, input)?;
        match (self.config.calls.get_mut(position), self.payloads.get_mut(position)) {
            // The tool may have appeared, or its definition changed, since the call was last seen.
            (Some(old), Some(payload)) => {
                *old = info;
                payload.epoch = epoch;
            }
            _ => {
                self.config.calls.push(info);
                self.payloads.push(CallPayload { tool: tool.to_owned(), input: input.clone(), epoch });
            }
        }
        Ok(call)
    }

    /// Interns a reply of the assistant.
    ///
    /// # Errors
    /// When it carries more calls than a state can hold.
    pub fn intern_reply(&mut self, reply: &Reply) -> Result<ReplyRef, SessionError> {
        let mut info = ReplyInfo { calls: ArrayVec::new(), cost: reply.microdollars };
        for call in &reply.calls {
            let call = self.intern_call(&call.id, &call.tool, &call.input)?;
            info.calls
                .try_push(call)
                .map_err(|_| Rejected::Capacity { what: "calls in one reply", limit: MAX_CALLS })?;
        }
        let position = self.config.replies.iter().position(|known| *known == info);
        let position = position.unwrap_or_else(|| {
            self.config.replies.push(info);
            self.config.replies.len() - 1
        });
        u16::try_from(position).map(ReplyRef).map_err(|_| {
            SessionError::Rejected(Rejected::Capacity {
                what: "different replies",
                limit: usize::from(u16::MAX),
            })
        })
    }

    /// Takes one labelled input: the step with its labelled outputs, judged.
    ///
    /// # Errors
    /// When the harness rejects the input; nothing has changed then but the interned calls.
    pub fn step(&mut self, input: LabelledInput, at_ms: Option<u64>) -> Result<TraceStep, SessionError> {
        let (control, verdict) = self.resolve(&input)?;
        let before = self.state;
        let outputs = step(&self.config, &mut self.state, control)?;
        if let LabelledInput::ModelReplied { reply } = &input {
            self.begin_turn(reply, control);
        }
        let observation = Observation {
            config: &self.config,
            before: &before,
            input: control,
            outputs: &outputs,
            after: &self.state,
        };
        let mut broken = observe(self.judged, &mut self.monitor, &observation);
        self.hear(&input, control, verdict);
        let labelled = self.label_outputs(&before, &outputs, &mut broken);
        let broken: Vec<Invariant> = broken.iter().filter(|i| self.judged.contains(*i)).collect();
        self.broken.extend(broken.iter().map(|invariant| (self.steps, *invariant)));
        let step = TraceStep { step: self.steps, at_ms, input, outputs: labelled, broken };
        self.steps += 1;
        Ok(step)
    }

    /// The reference of a configured server.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn server(&self, name: &str) -> Result<ServerRef, SessionError> {
        let position = self.config.servers.iter().position(|server| server.name == name);
        position
            .and_then(|position| u8::try_from(position).ok())
            .map(ServerRef)
            .ok_or_else(|| SessionError::UnknownServer(name.to_owned()))
    }

    /// What a hook's end says to control, and the call that it rewrites to: `call` is the call that the hook ran on.
    ///
    /// # Errors
    /// When there is no such hook, or a capacity is exceeded.
    pub fn signal(
        &mut self,
        hook: HookRef,
        call: Option<CallRef>,
        end: &HandlerEnd,
    ) -> Result<Signal, SessionError> {
        let verdict = self.verdict(hook, end)?;
        self.signal_of(&verdict, call)
    }

    /// What a hook's end says, in full.
    fn verdict(&self, hook: HookRef, end: &HandlerEnd) -> Result<HookVerdict, SessionError> {
        let registered = self.catalogue.hook(hook).ok_or(Rejected::Unknown("hook"))?;
        Ok(interpret(registered.event, &registered.handler, end, &self.config.profile.hooks))
    }

    /// The part of it that control needs.
    fn signal_of(&mut self, verdict: &HookVerdict, call: Option<CallRef>) -> Result<Signal, SessionError> {
        let mut rewrite = None;
        if let (Some(updated), Some(call)) = (&verdict.updated_input, call)
            && let (Some(info), Some(payload)) =
                (self.config.call(call).cloned(), self.payload(call).cloned())
        {
            let new = self.intern_call(&info.id, &payload.tool, updated)?;
            // The hooks have been chosen, and have run, on the original.
            if let Some(new) = self.config.calls.get_mut(new.index()) {
                new.before = info.before;
            }
            rewrite = Some(new);
        }
        let decision =
            if verdict.by_on_failure { crate::hooks::HookDecision::None } else { verdict.decision };
        Ok(Signal { decision, failed: verdict.failed.is_some(), halt: verdict.prevent_continuation, rewrite })
    }

    /// Back to before the start; what was compiled stays.
    pub fn restart(&mut self) {
        self.state = State::default();
        self.monitor = Monitor::default();
        self.broken.clear();
        self.journal = Journal::default();
        self.wires = vec![Wire::default(); self.config.servers.len()];
        self.slots.clear();
        self.results.clear();
        self.contexts.clear();
        self.feedback.clear();
        self.answers.clear();
        self.steps = 0;
    }

    /// Puts a wrong rule in force, for tests of the checks.
    #[doc(hidden)]
    pub fn set_mutant(&mut self, mutant: Option<Mutant>) {
        self.config.mutant = mutant;
    }

    /// Registers the hooks of the run's own events. Done at the start; earlier where the whole table must be known.
    ///
    /// # Errors
    /// When a capacity is exceeded.
    pub fn register_run_hooks(&mut self) -> Result<(), SessionError> {
        let prompt = self.catalogue.run_hooks(&mut self.config, crate::hooks::Event::UserPromptSubmit)?;
        self.config.prompt_hooks = prompt;
        let stop = self.catalogue.run_hooks(&mut self.config, crate::hooks::Event::Stop)?;
        self.config.stop_hooks = stop;
        Ok(())
    }

    /// The versions that the client speaks.
    pub fn versions(&self) -> &ClientVersions {
        &self.versions
    }

    /// What a line of a server would say to a fresh connection whose open request is `message`: for closed worlds, which
    /// know their servers' answers beforehand.
    pub fn classify(&self, message: crate::agent_loop::McpOut, line: &str) -> McpIn {
        use crate::agent_loop::McpOut;
        let (id, kind) = match message {
            McpOut::Discover { id, .. } => (Some(id), OpenKind::Discover),
            McpOut::Initialize { id } => (Some(id), OpenKind::Initialize),
            McpOut::ListTools { id } => (Some(id), OpenKind::List),
            _ => (None, OpenKind::Nothing),
        };
        match wire::hear(&mut Wire::default(), &self.versions, Open { id, kind }, line) {
            Heard::Control(message, _) => message,
            Heard::Tools(id, _) => McpIn::Response { id: Some(id), body: McpBody::Tools { list: 0 } },
            Heard::Answer(_) => McpIn::Other,
        }
    }

    /// The line of a request on a fresh connection, for the same purpose; `version` is the agreed one.
    pub fn line(&self, message: crate::agent_loop::McpOut, version: Option<&str>) -> String {
        let wire = Wire { version: version.map(str::to_owned), ..Wire::default() };
        wire::render(&wire, &self.versions, version.is_some(), message, None)
    }

    /// Labelled to control.
    /// With it, what a hook that finished says in full.
    fn resolve(&mut self, input: &LabelledInput) -> Result<(Input, Option<HookVerdict>), SessionError> {
        let mut heard = None;
        let control = match input {
            LabelledInput::Start => {
                self.register_run_hooks()?;
                Input::Start
            }
            LabelledInput::Prompt { .. } => Input::Prompt,
            LabelledInput::ModelReplied { reply } => Input::ModelReplied(self.intern_reply(reply)?),
            LabelledInput::ModelFailed { .. } => Input::ModelFailed,
            LabelledInput::HookFinished { hook, call, end } => {
                let slot = call.as_ref().map(|call| call.slot);
                let on = slot.and_then(|slot| self.state.slot(slot)).map(|slot| slot.call);
                let verdict = self.verdict(HookRef(hook.index), end)?;
                let signal = self.signal_of(&verdict, on)?;
                heard = Some(verdict);
                let site = slot.map_or(Site::Run, Site::Call);
                Input::HookFinished { site, hook: HookRef(hook.index), signal }
            }
            LabelledInput::PermissionAnswered { call, allow } => {
                Input::PermissionAnswered { slot: call.slot, allow: *allow }
            }
            LabelledInput::ToolFinished { call, is_error, .. } => Input::ToolFinished {
                slot: call.slot,
                end: if *is_error { ToolEnd::Error } else { ToolEnd::Result },
            },
            LabelledInput::McpLine { server, line } => self.resolve_line(server, line)?,
            LabelledInput::McpClosed { server, .. } => Input::McpClosed { server: self.server(server)? },
            LabelledInput::CallDeadline { call } => Input::CallDeadline { slot: call.slot },
            LabelledInput::ServerDeadline { server } => {
                Input::ServerDeadline { server: self.server(server)? }
            }
            LabelledInput::Interrupt => Input::Interrupt,
        };
        Ok((control, heard))
    }

    fn resolve_line(&mut self, name: &str, line: &str) -> Result<Input, SessionError> {
        let server = self.server(name)?;
        let open = self.open_request(server);
        let Some(wire) = self.wires.get_mut(server.index()) else {
            return Err(SessionError::UnknownServer(name.to_owned()));
        };
        let message = match wire::hear(wire, &self.versions, open, line) {
            Heard::Control(message, text) => {
                self.keep_text(server, message, text);
                message
            }
            Heard::Tools(id, tools) => {
                let list = self.add_list(server, name, &tools)?;
                McpIn::Response { id: Some(id), body: McpBody::Tools { list } }
            }
            Heard::Answer(answer) => {
                self.answers.push((server, answer));
                McpIn::Other
            }
        };
        Ok(Input::Mcp { server, message })
    }

    /// The connection's own open request.
    fn open_request(&self, server: ServerRef) -> Open {
        let Some(conn) = self.state.server(server) else {
            return Open { id: None, kind: OpenKind::Nothing };
        };
        let kind = match conn.phase {
            ConnPhase::Discovering | ConnPhase::Agreeing => OpenKind::Discover,
            ConnPhase::Initializing => OpenKind::Initialize,
            ConnPhase::Listing | ConnPhase::Ready => OpenKind::List,
            ConnPhase::Off | ConnPhase::Failed | ConnPhase::Lost => OpenKind::Nothing,
        };
        Open { id: conn.open, kind }
    }

    /// Keeps the text of an answer for the running call that it belongs to.
    fn keep_text(&mut self, server: ServerRef, message: McpIn, text: String) {
        let McpIn::Response { id: Some(id), .. } = message else { return };
        let mut calls = self.state.calls().iter();
        let position = calls.position(|slot| slot.request == id && self.config.runs_on(slot, server));
        if let Some(slot) = position.and_then(|position| self.slots.get_mut(position)) {
            slot.text = Some(text);
        }
    }

    /// Registers a server's list of tools and gives its index; a list that is known already is not added twice.
    fn add_list(&mut self, server: ServerRef, name: &str, tools: &[Value]) -> Result<u8, SessionError> {
        let mut list = Vec::new();
        for tool in tools {
            let Some(own) = tool.get("name").and_then(Value::as_str) else { continue };
            let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let spec = ToolSpec {
                name: qualify(name, own),
                description: text("description"),
                schema: tool.get("inputSchema").cloned().unwrap_or(Value::Bool(true)),
                read_only: tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true)),
                server: Some(server),
                own_name: own.to_owned(),
            };
            list.push(self.catalogue.add_tool(&mut self.config, spec));
        }
        self.set_list(server, list)
    }

    /// Adds a list of tools to a server, unless it is known.
    fn set_list(
        &mut self,
        server: ServerRef,
        list: Vec<crate::agent_loop::ToolRef>,
    ) -> Result<u8, SessionError> {
        let lists = &mut self
            .config
            .servers
            .get_mut(server.index())
            .ok_or_else(|| SessionError::UnknownServer(server.0.to_string()))?
            .lists;
        let position = lists.iter().position(|known| *known == list).unwrap_or_else(|| {
            lists.push(list);
            lists.len() - 1
        });
        u8::try_from(position)
            .map_err(|_| Rejected::Capacity { what: "different tool lists of one server", limit: 256 }.into())
    }

    /// Declares a server's list before it is heard: for worlds that are closed, so that exploration knows every tool.
    ///
    /// # Errors
    /// When the server is unknown or a capacity is exceeded.
    pub fn declare_list(&mut self, name: &str, tools: &[Value]) -> Result<u8, SessionError> {
        let server = self.server(name)?;
        self.add_list(server, name, tools)
    }

    /// Records the assistant's message and the calls of its turn.
    fn begin_turn(&mut self, reply: &Reply, control: Input) {
        let mut content = Vec::new();
        if let Some(text) = &reply.text {
            content.push(Block::Text { text: text.clone() });
        }
        content.extend(reply.calls.iter().map(|call| Block::ToolUse {
            id: call.id.clone(),
            name: call.tool.clone(),
            input: call.input.clone(),
        }));
        self.journal.push(Message { role: Role::Assistant, content }, true);
        let calls = match control {
            Input::ModelReplied(reply) => self.config.replies.get(reply.index()).map(|r| r.calls.clone()),
            _ => None,
        };
        self.slots = calls
            .unwrap_or_default()
            .into_iter()
            .map(|call| SlotPayload { call, ..SlotPayload::default() })
            .collect();
        self.results.clear();
    }

    /// Keeps the payloads of an input.
    fn hear(&mut self, input: &LabelledInput, control: Input, verdict: Option<HookVerdict>) {
        match input {
            LabelledInput::Prompt { text } => {
                self.journal.push(Message::text(Role::User, text.clone()), true);
            }
            LabelledInput::ToolFinished { call, text, .. } => {
                if let Some(slot) = self.slots.get_mut(usize::from(call.slot)) {
                    slot.text = Some(text.clone());
                }
            }
            LabelledInput::HookFinished { call, .. } => {
                if let Some(verdict) = verdict {
                    self.hear_hook(call.as_ref().map(|c| c.slot), verdict);
                }
            }
            _ => {}
        }
        if let Input::HookFinished { site: Site::Call(slot), signal, .. } = control
            && let Some(rewrite) = signal.rewrite
            && let Some(payload) = self.slots.get_mut(usize::from(slot))
            && self.state.slot(slot).is_some_and(|slot| slot.call == rewrite)
        {
            payload.call = rewrite;
        }
    }

    fn hear_hook(&mut self, slot: Option<u8>, verdict: HookVerdict) {
        let denies = verdict.decision == crate::hooks::HookDecision::Deny;
        match slot.and_then(|slot| self.slots.get_mut(usize::from(slot))) {
            Some(slot) => {
                if denies {
                    slot.reason = verdict.reason;
                }
                slot.contexts.extend(verdict.additional_context);
            }
            None => {
                if denies {
                    self.feedback.push(verdict.reason.unwrap_or_default());
                }
                self.contexts.extend(verdict.additional_context);
            }
        }
    }

    /// Forms the result of a call.
    fn form_result(&mut self, slot: u8, end: CallEnd) -> String {
        let Some(payload) = self.slots.get(usize::from(slot)) else { return String::new() };
        let call = self.payloads.get(payload.call.index());
        let tool = call.map_or("", |call| call.tool.as_str());
        let misfit = (end == CallEnd::InvalidInput)
            .then(|| call.and_then(|call| self.catalogue.misfit(&call.tool, &call.input)))
            .flatten();
        let own = if end.is_executed() { payload.text.as_deref() } else { payload.reason.as_deref() };
        let text = texts::result_text(end, tool, misfit.as_deref().or(own));
        let id_of = |payload: &SlotPayload| self.config.call(payload.call).map(|info| info.id.clone());
        let from =
            if self.config.is_mutant(Mutant::SwapResultIds) { self.slots.first() } else { Some(payload) };
        let id = from.and_then(id_of).unwrap_or_default();
        self.results.push((
            slot,
            Block::ToolResult { tool_use_id: id, content: text.clone(), is_error: end.is_error() },
        ));
        text
    }

    /// The results of the turn go back, in the order that the profile says; what hooks add follows them.
    fn end_turn(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        if self.config.profile.agent_loop.result_order.value == ResultOrder::CallOrder {
            results.sort_by_key(|(slot, _)| *slot);
        }
        let content = results.into_iter().map(|(_, block)| block).collect();
        let counts = !self.config.is_mutant(Mutant::LedgerSkipsResults);
        self.journal.push(Message { role: Role::User, content }, counts);
        for slot in std::mem::take(&mut self.slots) {
            self.contexts.extend(slot.contexts);
        }
    }

    /// What goes into the request besides: contexts of hooks, feedback of Stop hooks.
    fn before_request(&mut self, phase: Phase) {
        if phase == Phase::StopHooks && !self.feedback.is_empty() {
            let text = texts::stop_feedback(&self.feedback);
            self.journal.push(Message::text(Role::User, text), true);
        }
        self.feedback.clear();
        for context in std::mem::take(&mut self.contexts) {
            self.journal.push(Message::text(Role::User, context), true);
        }
    }

    /// Judges the request with its payloads.
    fn judge_request(&self, broken: &mut InvariantSet) {
        let faults = self.journal.judge();
        if faults.ledger.is_some() {
            broken.insert(Invariant::Cost);
        }
        // Duplicate ids that the assistant made are its own fault, not the harness's.
        let ours = |fault: &crate::message::PairingFault| {
            !matches!(fault, crate::message::PairingFault::DupUse(_) | crate::message::PairingFault::EmptyId)
        };
        if faults.pairing.iter().any(ours) {
            broken.insert(Invariant::Pair);
        }
    }
}
