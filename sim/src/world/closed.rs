//! The closed world: every answer that it can give is known and tabulated, so that the next inputs of any state can be
//! listed without payloads.
//!
//! Order of the choices of a state, which schedules rely on: the run's own step (start, prompt, replies in the order of
//! the script's alternatives), hooks of the run by position, then the calls by slot (hooks by position, the answer of a
//! person, the end of the tool), then the servers, then the interrupt. Alternatives keep the order of the scenario.

use std::hash::{Hash, Hasher};
use windtunnel_model::agent_loop::{
    CallRef, Config, Conn, ConnPhase, HookRef, Input, LoopEvent, McpBody, McpIn, Phase, Progress, ReplyRef,
    ServerRef, Signal, Site, Slot, State, ToolEnd, firing_hooks,
};
use windtunnel_model::hooks::HandlerEnd;
use windtunnel_model::trace::Reply;

/// Behaviours that change from run to run (sequences longer than one) that a [`WorldState`] can count.
pub const MAX_COUNTERS: usize = 16;

/// One of several possible answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative<A> {
    /// The answer.
    pub answer: A,
    /// How likely it is among its neighbours.
    pub weight: u32,
    /// How long it takes, in seconds.
    pub seconds: f64,
}

/// A sequence of alternatives: the n-th time takes the n-th entry, later times the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<A> {
    steps: Vec<Vec<Alternative<A>>>,
    counter: Option<u8>,
}

impl<A> Default for Steps<A> {
    fn default() -> Self {
        Self { steps: Vec::new(), counter: None }
    }
}

impl<A> Steps<A> {
    /// A sequence.
    pub fn new(steps: Vec<Vec<Alternative<A>>>) -> Self {
        Self { steps, counter: None }
    }

    /// All alternatives of all times.
    pub fn all(&self) -> impl Iterator<Item = &Alternative<A>> {
        self.steps.iter().flatten()
    }

    /// The alternatives of the present time.
    fn now(&self, state: &WorldState) -> &[Alternative<A>] {
        let position = self.counter.map_or(0, |counter| usize::from(state.counters[usize::from(counter)]));
        self.steps.get(position).or(self.steps.last()).map_or(&[], Vec::as_slice)
    }

    /// Notes that an answer was given.
    fn advance(&self, state: &mut WorldState) {
        if let Some(counter) = self.counter {
            let count = &mut state.counters[usize::from(counter)];
            *count = count.saturating_add(1).min(u8::try_from(self.steps.len() - 1).unwrap_or(u8::MAX));
        }
    }

    fn number(&mut self, next: &mut usize) -> bool {
        if self.steps.len() > 1 {
            if *next >= MAX_COUNTERS || self.steps.len() > 255 {
                return false;
            }
            self.counter = u8::try_from(*next).ok();
            *next += 1;
        }
        true
    }
}

/// A reply of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyAnswer {
    /// The compiled reply; `None` where the model cannot be reached.
    pub reference: Option<ReplyRef>,
    /// Its payload.
    pub reply: Reply,
    /// Why the model cannot be reached.
    pub fails: Option<String>,
}

/// The end of a hook's run.
#[derive(Clone, Debug, PartialEq)]
pub struct HookAnswer {
    /// What the world says.
    pub end: HandlerEnd,
    /// What it means on an event of the run.
    pub run: Signal,
    /// What it means on each call, by reference.
    pub signals: Vec<Signal>,
}

/// The end of a tool's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAnswer {
    /// It succeeds.
    Result(String),
    /// It fails.
    Error(String),
    /// A JSON-RPC error; a built-in tool fails.
    ProtocolError(String),
    /// It never answers.
    Silent,
    /// The connection closes; a built-in tool never answers.
    Closes,
    /// An answer with an id that no request has, and no other.
    WrongId,
}

/// What a scripted server says in the handshake. `None` is silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// To `server/discover` under the preferred version.
    pub discover: Option<McpBody>,
    /// To `server/discover` under the agreed version.
    pub agree: Option<McpBody>,
    /// To `initialize`.
    pub initialize: Option<McpBody>,
    /// It exits at once.
    pub exits: bool,
}

/// The part of the world that changes: how often behaviours were used, as far as that matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WorldState {
    /// One counter a sequence, up to its last entry.
    pub counters: [u8; MAX_COUNTERS],
}

/// Everything that the world can answer.
#[derive(Clone, Debug, Default)]
pub struct ClosedWorld {
    /// The prompt.
    pub prompt: String,
    /// The model's replies.
    pub replies: Steps<ReplyAnswer>,
    /// Whether the last reply is repeated.
    pub repeats: bool,
    /// Hooks, by reference.
    pub hooks: Vec<Steps<HookAnswer>>,
    /// Tools, by reference.
    pub tools: Vec<Steps<ToolAnswer>>,
    /// People's answers.
    pub users: Steps<bool>,
    /// Servers, by reference; `None` where only a real process can answer.
    pub handshakes: Vec<Option<Handshake>>,
    /// When the user interrupts, in seconds; in other worlds than the scripted one, at any time.
    pub interrupt: Option<f64>,
    /// How long a call may take, in seconds.
    pub tool_timeout: f64,
    /// How long a server may take for each request of the handshake, in seconds.
    pub connect_timeout: f64,
    /// Behaviours of the scenario that only the process world plays.
    pub unmodelled: Vec<String>,
    /// How many counters are in use; set by [`ClosedWorld::finish`].
    pub counters: usize,
}

/// Which request of the harness a choice answers: choices of one request exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// The session's start, or the prompt.
    Run,
    /// A model call.
    Model,
    /// A hook.
    Hook(Site, HookRef),
    /// A question about a call.
    Question(u8),
    /// A call.
    Call(u8),
    /// The deadline of a call that was answered under a wrong id.
    Deadline(u8),
    /// A server's handshake or list.
    Server(ServerRef),
    /// The interrupt.
    Interrupt,
}

/// One possible next input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The input.
    pub input: Input,
    /// What it answers.
    pub request: Request,
    /// Which alternative.
    pub alternative: u16,
    /// How likely it is among its neighbours.
    pub weight: u32,
    /// How long it takes from the request, in seconds; for the interrupt, from the start.
    pub seconds: f64,
}

impl ClosedWorld {
    /// Numbers the counters. Sequences beyond the capacity stay at their first entry and are listed as not modelled.
    pub fn finish(&mut self) {
        let mut next = 0;
        let mut all = self.replies.number(&mut next);
        for steps in &mut self.hooks {
            all &= steps.number(&mut next);
        }
        for steps in &mut self.tools {
            all &= steps.number(&mut next);
        }
        all &= self.users.number(&mut next);
        if !all {
            self.unmodelled.push(format!("more than {MAX_COUNTERS} behaviours that change from run to run"));
        }
        self.counters = next;
    }

    /// Whether the behaviour of a hook changes from run to run.
    pub fn changes(&self, hook: HookRef) -> bool {
        self.hooks.get(hook.index()).is_some_and(|steps| steps.counter.is_some())
    }

    /// How many counters of a [`WorldState`] are in use, and the greatest value of each.
    pub fn counter_bounds(&self) -> Vec<u8> {
        let mut bounds = vec![0; self.counters];
        let mut note = |counter: Option<u8>, len: usize| {
            if let Some(bound) = counter.and_then(|counter| bounds.get_mut(usize::from(counter))) {
                *bound = u8::try_from(len - 1).unwrap_or(u8::MAX);
            }
        };
        note(self.replies.counter, self.replies.steps.len());
        self.hooks.iter().for_each(|steps| note(steps.counter, steps.steps.len()));
        self.tools.iter().for_each(|steps| note(steps.counter, steps.steps.len()));
        note(self.users.counter, self.users.steps.len());
        bounds
    }

    /// A hash of everything that decides which choices there are: a schedule is valid for this table only.
    pub fn table_hash(&self, config: &Config) -> String {
        let mut hasher = rustc_hash::FxHasher::default();
        format!("{:?}{:?}{:?}{:?}", self.replies, self.hooks, self.tools, self.users).hash(&mut hasher);
        format!("{:?}{:?}{:?}", self.handshakes, self.interrupt.is_some(), config.profile.name)
            .hash(&mut hasher);
        format!("{:?}{:?}{:?}", config.calls, config.servers, config.limits).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// Lists every next input of a state, in the documented order.
    pub fn choices(&self, config: &Config, state: &State, world: &WorldState, out: &mut Vec<Choice>) {
        out.clear();
        let plain = |input, request| Choice { input, request, alternative: 0, weight: 1, seconds: 0.0 };
        match state.phase {
            Phase::Start => out.push(plain(Input::Start, Request::Run)),
            Phase::Idle => out.push(plain(Input::Prompt, Request::Run)),
            Phase::Model => self.list_replies(world, out),
            Phase::PromptHooks => {
                self.list_run_hooks(
                    firing_hooks(config, state, LoopEvent::UserPromptSubmit),
                    state,
                    world,
                    out,
                );
            }
            Phase::StopHooks => {
                self.list_run_hooks(firing_hooks(config, state, LoopEvent::Stop), state, world, out);
            }
            Phase::Calls => {
                for (index, slot) in (0u8..).zip(state.calls()) {
                    self.list_call(config, index, slot, world, out);
                }
            }
            Phase::Connecting | Phase::Ended => {}
        }
        if state.phase > Phase::Start && state.phase < Phase::Ended {
            for (index, conn) in (0u8..).zip(state.servers.iter().take(config.servers.len())) {
                self.list_server(ServerRef(index), conn, out);
            }
        }
        if self.interrupt.is_some() && state.phase > Phase::Idle && state.phase < Phase::Ended {
            let seconds = self.interrupt.unwrap_or_default();
            out.push(Choice { seconds, ..plain(Input::Interrupt, Request::Interrupt) });
        }
    }

    /// Follows a choice.
    pub fn apply(&self, config: &Config, before: &State, choice: &Choice, world: &mut WorldState) {
        match choice.request {
            Request::Model => self.replies.advance(world),
            Request::Hook(_, hook) => {
                if let Some(steps) = self.hooks.get(hook.index()) {
                    steps.advance(world);
                }
            }
            Request::Question(_) => self.users.advance(world),
            Request::Call(slot) => {
                if let Some(steps) = self.steps_of(config, before, slot) {
                    steps.advance(world);
                }
            }
            Request::Run | Request::Server(_) | Request::Deadline(_) | Request::Interrupt => {}
        }
    }

    /// The alternatives of the call in a slot.
    fn steps_of(&self, config: &Config, state: &State, slot: u8) -> Option<&Steps<ToolAnswer>> {
        let call = state.slot(slot)?.call;
        self.tools.get(config.call(call)?.tool?.index())
    }

    /// The answer of the model that a choice stands for.
    pub fn reply(&self, world: &WorldState, alternative: u16) -> Option<&ReplyAnswer> {
        self.replies.now(world).get(usize::from(alternative)).map(|a| &a.answer)
    }

    /// The person's answer at the present time; no, where nobody is there.
    pub fn user_answer(&self, world: &WorldState) -> bool {
        self.users.now(world).first().is_some_and(|a| a.answer)
    }

    /// Notes that a person has answered.
    pub fn advance_user(&self, world: &mut WorldState) {
        self.users.advance(world);
    }

    /// Notes that the model has replied.
    pub fn advance_reply(&self, world: &mut WorldState) {
        self.replies.advance(world);
    }

    /// The end of a hook that a choice stands for.
    pub fn hook_end(&self, world: &WorldState, hook: HookRef, alternative: u16) -> Option<&HandlerEnd> {
        let steps = self.hooks.get(hook.index())?;
        steps.now(world).get(usize::from(alternative)).map(|a| &a.answer.end)
    }

    /// The end of a call that a choice stands for.
    pub fn tool_answer(
        &self,
        config: &Config,
        state: &State,
        world: &WorldState,
        slot: u8,
        alternative: u16,
    ) -> Option<&ToolAnswer> {
        let steps = self.steps_of(config, state, slot)?;
        steps.now(world).get(usize::from(alternative)).map(|a| &a.answer)
    }

    fn list_replies(&self, world: &WorldState, out: &mut Vec<Choice>) {
        for (alternative, a) in (0u16..).zip(self.replies.now(world)) {
            let input = a.answer.reference.map_or(Input::ModelFailed, Input::ModelReplied);
            out.push(Choice {
                input,
                request: Request::Model,
                alternative,
                weight: a.weight,
                seconds: a.seconds,
            });
        }
    }

    fn list_run_hooks(&self, hooks: &[HookRef], state: &State, world: &WorldState, out: &mut Vec<Choice>) {
        self.list_hooks(Site::Run, hooks, state.pending, world, out, &|answer| answer.run);
    }

    fn list_hooks(
        &self,
        site: Site,
        hooks: &[HookRef],
        pending: u8,
        world: &WorldState,
        out: &mut Vec<Choice>,
        signal: &dyn Fn(&HookAnswer) -> Signal,
    ) {
        for (_, hook) in hooks.iter().enumerate().filter(|(p, _)| pending & (1u8 << (p & 7)) != 0) {
            let Some(steps) = self.hooks.get(hook.index()) else { continue };
            for (alternative, a) in (0u16..).zip(steps.now(world)) {
                out.push(Choice {
                    input: Input::HookFinished { site, hook: *hook, signal: signal(&a.answer) },
                    request: Request::Hook(site, *hook),
                    alternative,
                    weight: a.weight,
                    seconds: a.seconds,
                });
            }
        }
    }

    fn list_call(&self, config: &Config, index: u8, slot: &Slot, world: &WorldState, out: &mut Vec<Choice>) {
        let Some(info) = config.call(slot.call) else { return };
        let call: CallRef = slot.call;
        let signal = |answer: &HookAnswer| answer.signals.get(call.index()).copied().unwrap_or(answer.run);
        match slot.progress {
            Progress::Stage(_) => {
                self.list_hooks(Site::Call(index), &info.before, slot.pending, world, out, &signal);
            }
            Progress::After => {
                let succeeded = slot.end == windtunnel_model::agent_loop::CallEnd::Result;
                let hooks = if succeeded { &info.after } else { &info.after_failure };
                self.list_hooks(Site::Call(index), hooks, slot.pending, world, out, &signal);
            }
            Progress::Asking => {
                for (alternative, a) in (0u16..).zip(self.users.now(world)) {
                    out.push(Choice {
                        input: Input::PermissionAnswered { slot: index, allow: a.answer },
                        request: Request::Question(index),
                        alternative,
                        weight: a.weight,
                        seconds: a.seconds,
                    });
                }
            }
            Progress::Running => self.list_ends(config, index, slot, world, out),
            Progress::Empty | Progress::Queued | Progress::Reconnecting | Progress::Ended => {}
        }
    }

    /// The ways in which a running call can end.
    fn list_ends(&self, config: &Config, index: u8, slot: &Slot, world: &WorldState, out: &mut Vec<Choice>) {
        let tool = config.call(slot.call).and_then(|info| info.tool);
        let Some(steps) = tool.and_then(|tool| self.tools.get(tool.index())) else { return };
        let server = config.server_of(slot.call);
        let respond = |server, id, body| Input::Mcp { server, message: McpIn::Response { id, body } };
        let deadline = Input::CallDeadline { slot: index };
        for (alternative, a) in (0u16..).zip(steps.now(world)) {
            let (input, seconds) = match (&a.answer, server) {
                (ToolAnswer::Result(_), None) => {
                    (Input::ToolFinished { slot: index, end: ToolEnd::Result }, a.seconds)
                }
                (ToolAnswer::Error(_) | ToolAnswer::ProtocolError(_), None) => {
                    (Input::ToolFinished { slot: index, end: ToolEnd::Error }, a.seconds)
                }
                (ToolAnswer::Silent, _) | (ToolAnswer::Closes | ToolAnswer::WrongId, None) => {
                    (deadline, self.tool_timeout)
                }
                (ToolAnswer::Result(_), Some(server)) => {
                    (respond(server, Some(slot.request), McpBody::Called { is_error: false }), a.seconds)
                }
                (ToolAnswer::Error(_), Some(server)) => {
                    (respond(server, Some(slot.request), McpBody::Called { is_error: true }), a.seconds)
                }
                (ToolAnswer::ProtocolError(_), Some(server)) => {
                    (respond(server, Some(slot.request), McpBody::Error), a.seconds)
                }
                (ToolAnswer::Closes, Some(server)) => (Input::McpClosed { server }, a.seconds),
                (ToolAnswer::WrongId, Some(server)) => {
                    out.push(Choice {
                        input: deadline,
                        request: Request::Deadline(index),
                        alternative,
                        weight: a.weight,
                        seconds: self.tool_timeout,
                    });
                    (respond(server, None, McpBody::Called { is_error: false }), a.seconds)
                }
            };
            out.push(Choice { input, request: Request::Call(index), alternative, weight: a.weight, seconds });
        }
    }

    /// What a server says to the connection's own open request.
    fn list_server(&self, server: ServerRef, conn: &Conn, out: &mut Vec<Choice>) {
        let Some(handshake) = self.handshakes.get(server.index()).copied().flatten() else { return };
        let Some(id) = conn.open else { return };
        let body = match conn.phase {
            ConnPhase::Discovering => handshake.discover,
            ConnPhase::Agreeing => handshake.agree,
            ConnPhase::Initializing => handshake.initialize,
            ConnPhase::Listing | ConnPhase::Ready => Some(McpBody::Tools { list: 0 }),
            ConnPhase::Off | ConnPhase::Failed | ConnPhase::Lost => return,
        };
        let (input, seconds) = match body {
            _ if handshake.exits => (Input::McpClosed { server }, 0.0),
            Some(body) => (Input::Mcp { server, message: McpIn::Response { id: Some(id), body } }, 0.0),
            None => (Input::ServerDeadline { server }, self.connect_timeout),
        };
        let request = Request::Server(server);
        out.push(Choice { input, request, alternative: 0, weight: 1, seconds });
    }
}
