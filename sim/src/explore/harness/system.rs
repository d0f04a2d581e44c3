//! The system itself: unpack a moment, list its choices, take each step, judge it, pack what comes of it.

use super::codec::{DoesNotFitError, Layout, Moment, TooManyBitsError};
use super::symmetry::Symmetry;
use super::words;
use crate::explore::Found;
use crate::explore::system::{Choice, Kind, Marks, Property, Step, System};
use crate::scenario::compile::Compiled;
use crate::world::closed::{Choice as Answer, ClosedWorld, Request};
use std::cell::RefCell;
use std::sync::OnceLock;
use windtunnel_model::agent_loop::{
    CallEnd, Config, ConnPhase, DecidedBy, EndReason, Input, Output, Outputs, Phase, Progress, Rejected,
    Site, State, step_in_place,
};
use windtunnel_model::hooks::HookDecision;
use windtunnel_model::invariants::{Invariant, InvariantSet, Observation, observe};
use windtunnel_model::profile::agent_loop::HookCombination;

/// Which steps are left out because they change no verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reductions {
    /// While a call waits for more than one hook, the end of one of them only joins its decision to the others': no
    /// invariant sees it and it commutes with every other step, so only the first such hook of the first such call
    /// steps. Off where it would not be sound: with an interrupt (which cuts hooks off), with rewriting hooks (the last
    /// to finish wins), where hooks run one after the other, and for hooks whose behaviour changes from run to run.
    pub local_hooks: bool,
    /// While the session waits for its servers, each answers its own connection only, and nothing else can happen: the
    /// servers answer one after the other. Off with an interrupt.
    pub local_servers: bool,
    /// Moments that differ only in which of several alike calls, hooks or idle servers is which are one.
    pub symmetry: bool,
}

impl Reductions {
    /// No reduction: every step of every moment.
    pub const NONE: Self = Self { local_hooks: false, local_servers: false, symmetry: false };
    /// All of them.
    pub const ALL: Self = Self { local_hooks: true, local_servers: true, symmetry: true };
}

/// What is to be explored, and how.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The invariants that are judged; those that need payloads are left out.
    pub invariants: InvariantSet,
    /// The reductions that are used where they are sound.
    pub reductions: Reductions,
    /// The largest request id that a packed connection holds.
    pub most_requests: u16,
}

impl Default for Setup {
    fn default() -> Self {
        Self { invariants: InvariantSet::all(), reductions: Reductions::default(), most_requests: 254 }
    }
}

/// Why a scenario cannot be explored as it stands.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HarnessError {
    /// A value outgrew its field.
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFitError),
    /// A part of the state outgrew a word.
    #[error(transparent)]
    TooManyBits(#[from] TooManyBitsError),
    /// The packed state is wider than eight words.
    #[error(
        "a packed state takes {words} words of 64 bits, more than 8: fewer parallel calls, servers or hooks fit"
    )]
    TooWide {
        /// How many it would take.
        words: usize,
    },
    /// The harness refused an input that the world offered.
    #[error("the harness refused `{input}`: {why}")]
    Refused {
        /// The input in the words of the domain.
        input: String,
        /// Its reason.
        why: Rejected,
    },
    /// The world has behaviours that only a real process plays.
    #[error("the scenario has behaviours that only the process world plays: {0}")]
    Unmodelled(String),
}

/// The properties of the harness: the invariants, then the witnesses. Witnesses name everything that can become of a
/// call, a decision, a connection or a run; what no scenario shows is not exercised.
#[derive(Clone, Debug)]
pub struct Properties {
    list: Vec<Property>,
    invariants: [Option<u8>; Invariant::ALL.len()],
    ends: usize,
    calls: usize,
    decisions: usize,
    connections: usize,
}

/// Every decision that can be told: who decides, and what.
const DECISIONS: [(DecidedBy, HookDecision); 10] = [
    (DecidedBy::Hook, HookDecision::Allow),
    (DecidedBy::Hook, HookDecision::Ask),
    (DecidedBy::Hook, HookDecision::Defer),
    (DecidedBy::Hook, HookDecision::Deny),
    (DecidedBy::Rule, HookDecision::Allow),
    (DecidedBy::Rule, HookDecision::Deny),
    (DecidedBy::User, HookDecision::Allow),
    (DecidedBy::User, HookDecision::Deny),
    (DecidedBy::Nobody, HookDecision::Deny),
    (DecidedBy::NoGate, HookDecision::Allow),
];

/// Where each pair stands in [`DECISIONS`], by its two numbers.
const DECISION_INDEX: [[Option<u8>; HookDecision::ALL.len()]; 5] = {
    let mut table = [[None; HookDecision::ALL.len()]; 5];
    let mut index = 0;
    while index < DECISIONS.len() {
        let (by, decision) = DECISIONS[index];
        table[by as usize][decision as usize] = Some(index as u8);
        index += 1;
    }
    table
};

/// The phases that a connection can be told to have reached: all but the first, in the order of declaration.
const CONNECTIONS: [(ConnPhase, &str); 7] = [
    (ConnPhase::Discovering, "discovering"),
    (ConnPhase::Agreeing, "agreeing"),
    (ConnPhase::Initializing, "initializing"),
    (ConnPhase::Listing, "listing"),
    (ConnPhase::Ready, "ready"),
    (ConnPhase::Failed, "failed"),
    (ConnPhase::Lost, "lost"),
];

impl Properties {
    /// The list for a set of invariants.
    #[must_use]
    pub fn new(enabled: InvariantSet) -> Self {
        let mut list = Vec::new();
        let mut invariants = [None; Invariant::ALL.len()];
        for invariant in enabled.iter().filter(|invariant| invariant.is_control()) {
            if let Some(index) = invariants.get_mut(invariant as usize) {
                *index = u8::try_from(list.len()).ok();
            }
            list.push(Property::invariant(invariant.name()));
        }
        let ends = list.len();
        list.extend(EndReason::ALL.map(|end| Property::witness(format!("end:{}", end.word()))));
        let calls = list.len();
        list.extend(CallEnd::ALL.map(|end| Property::witness(format!("call:{}", end.word()))));
        let decisions = list.len();
        list.extend(DECISIONS.map(|(by, decision)| {
            Property::witness(format!("decision:{}:{}", format!("{by:?}").to_lowercase(), decision.word()))
        }));
        let connections = list.len();
        list.extend(CONNECTIONS.map(|(_, word)| Property::witness(format!("connection:{word}"))));
        Self { list, invariants, ends, calls, decisions, connections }
    }

    /// All, the invariants first.
    #[must_use]
    pub fn list(&self) -> &[Property] {
        &self.list
    }

    /// How many of them are invariants.
    #[must_use]
    pub fn invariants(&self) -> usize {
        self.ends
    }

    fn marks(&self, broken: InvariantSet, outputs: &Outputs) -> Marks {
        let mut marks = Marks::NONE;
        for invariant in broken.iter() {
            if let Some(index) = self.invariants.get(invariant as usize).copied().flatten() {
                marks = marks.and(Marks::of(index.into()));
            }
        }
        for output in outputs {
            let index = match *output {
                Output::Finish(end) => self.ends + end as usize,
                Output::Returned { end, .. } => self.calls + end as usize,
                Output::Decided { decision, by, .. } => {
                    match DECISION_INDEX[by as usize][decision as usize] {
                        Some(index) => self.decisions + index as usize,
                        None => continue,
                    }
                }
                Output::ServerChanged { phase, .. } => match phase as usize {
                    0 => continue,
                    index => self.connections + index - 1,
                },
                _ => continue,
            };
            marks = marks.and(Marks::of(index));
        }
        marks
    }
}

/// The harness in a closed world, with states of `W` words.
#[derive(Debug)]
pub struct Harness<'a, const W: usize> {
    config: &'a Config,
    world: &'a ClosedWorld,
    layout: Layout,
    enabled: InvariantSet,
    properties: Properties,
    local_hooks: bool,
    local_servers: bool,
    symmetry: Option<Symmetry>,
    failure: OnceLock<HarnessError>,
}

impl<'a, const W: usize> Harness<'a, W> {
    /// The system of a compiled scenario, or the number of words that its states take.
    ///
    /// # Errors
    /// [`HarnessError`] when the scenario cannot be explored in this width, or at all.
    pub fn new(compiled: &'a Compiled, setup: &Setup) -> Result<Self, HarnessError> {
        let (config, world) = (compiled.session.config(), &compiled.world);
        if let Some(what) = world.unmodelled.first() {
            return Err(HarnessError::Unmodelled(what.clone()));
        }
        let layout = Self::layout(compiled, setup)?;
        let words = layout.words();
        if words > W {
            return Err(HarnessError::TooWide { words });
        }
        let enabled = setup.invariants.iter().filter(|invariant| invariant.is_control()).collect();
        let sound = world.interrupt.is_none()
            && !rewrites(world)
            && config.profile.agent_loop.hook_combination.value == HookCombination::ParallelLattice;
        Ok(Self {
            config,
            world,
            layout,
            enabled,
            properties: Properties::new(enabled),
            local_hooks: setup.reductions.local_hooks && sound,
            local_servers: setup.reductions.local_servers && world.interrupt.is_none(),
            symmetry: setup
                .reductions
                .symmetry
                .then(|| Symmetry::new(config, world))
                .filter(|symmetry| !symmetry.is_trivial()),
            failure: OnceLock::new(),
        })
    }

    /// The layout of a compiled scenario's states.
    ///
    /// # Errors
    /// [`TooManyBitsError`] when a part of the state outgrows a word.
    pub fn layout(compiled: &Compiled, setup: &Setup) -> Result<Layout, TooManyBitsError> {
        let (config, world) = (compiled.session.config(), &compiled.world);
        Layout::new(config, &world.counter_bounds(), setup.most_requests, rewrites(world))
    }

    /// What went wrong while exploring, if anything did: the result counts for nothing then.
    pub fn failure(&self) -> Option<&HarnessError> {
        self.failure.get()
    }

    /// The properties and where they lie.
    pub fn property_table(&self) -> &Properties {
        &self.properties
    }

    /// The moment that a packed state stands for.
    pub fn moment(&self, state: &[u64; W]) -> Moment {
        self.layout.unpack(state)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        self.config
    }

    /// The choices of a moment, in the world's order.
    pub fn answers(&self, moment: &Moment) -> Vec<Answer> {
        let mut answers = Vec::new();
        self.world.choices(self.config, &moment.state, &moment.world, &mut answers);
        answers
    }

    /// The canonical form of a packed moment under the symmetry in force; itself without one.
    pub fn canonical(&self, state: &[u64; W]) -> [u64; W] {
        let Some(symmetry) = &self.symmetry else { return *state };
        let mut moment = self.moment(state);
        symmetry.sort(&mut moment);
        self.layout.pack(&moment).unwrap_or(*state)
    }

    /// A schedule of this system as one of `plain`, the same system without reductions: with symmetry a choice here is
    /// a choice among sorted calls, there among calls in their places. `None` when some step has no counterpart, which
    /// would show that a reduction is not sound.
    pub fn lift(&self, plain: &Self, found: &Found) -> Option<Found> {
        let (mut here, mut there) = (self.start(), plain.start());
        let mut schedule = Vec::with_capacity(found.schedule.len());
        for choice in &found.schedule {
            let mut taken = None;
            self.successors(&here, &mut |step| {
                if step.choice == *choice {
                    taken.get_or_insert(step);
                }
            });
            let taken = taken?;
            let mut counterpart = None;
            plain.successors(&there, &mut |step| {
                if step.marks == taken.marks && self.canonical(&step.state) == taken.state {
                    counterpart.get_or_insert(step);
                }
            });
            let counterpart = counterpart?;
            schedule.push(counterpart.choice);
            (here, there) = (taken.state, counterpart.state);
        }
        Some(Found { start: found.start, schedule })
    }

    /// The picks that a recorded run is replayed by: the choices at moments with more than one.
    pub fn picks(&self, schedule: &[Choice]) -> Vec<u16> {
        let mut picks = Vec::new();
        let mut state = self.start();
        for choice in schedule {
            let moment = self.moment(&state);
            if self.answers(&moment).len() > 1 {
                picks.push(choice.0);
            }
            let mut next = None;
            self.successors(&state, &mut |step| {
                if step.choice == *choice {
                    next.get_or_insert(step.state);
                }
            });
            match next {
                Some(next) => state = next,
                None => break,
            }
        }
        picks
    }

    fn start(&self) -> [u64; W] {
        self.layout.pack(&Moment::default()).unwrap_or([0; W])
    }

    fn fail(&self, error: HarnessError) {
        // The first failure is the one that is told.
        let _ = self.failure.set(error);
    }

    /// Which choices are taken under the reductions: all, or those of one hook only.
    fn kept(&self, state: &State, answers: &[Answer]) -> Option<Request> {
        if self.local_servers && state.phase == Phase::Connecting {
            return answers.first().map(|answer| answer.request);
        }
        if !self.local_hooks || state.phase != Phase::Calls {
            return None;
        }
        let waiting = |slot: u8| {
            state.slot(slot).is_some_and(|slot| {
                matches!(slot.progress, Progress::Stage(_) | Progress::After) && slot.pending.count_ones() > 1
            })
        };
        answers.iter().map(|answer| answer.request).find(|request| match request {
            Request::Hook(Site::Call(slot), hook) => waiting(*slot) && !self.world.changes(*hook),
            _ => false,
        })
    }
}

/// Whether some hook of the world rewrites its call.
fn rewrites(world: &ClosedWorld) -> bool {
    world.hooks.iter().flat_map(|steps| steps.all()).any(|alternative| {
        let signals = &alternative.answer.signals;
        alternative.answer.run.rewrite.is_some() || signals.iter().any(|signal| signal.rewrite.is_some())
    })
}

thread_local! {
    /// The list of choices of one state, kept for the next one.
    static ANSWERS: RefCell<Vec<Answer>> = const { RefCell::new(Vec::new()) };
}

impl<const W: usize> System for Harness<'_, W> {
    type State = [u64; W];

    fn initial(&self, emit: &mut impl FnMut([u64; W])) {
        emit(self.start());
    }

    fn successors(&self, packed: &[u64; W], emit: &mut impl FnMut(Step<[u64; W]>)) {
        let moment = self.layout.unpack(packed);
        // Taken out rather than borrowed, so that `emit` may ask for successors itself.
        let mut answers = ANSWERS.take();
        self.world.choices(self.config, &moment.state, &moment.world, &mut answers);
        let kept = self.kept(&moment.state, &answers);
        let mut outputs = Outputs::new();
        for (index, answer) in (0u16..).zip(&answers) {
            if kept.is_some_and(|request| request != answer.request) {
                continue;
            }
            let mut next = moment;
            outputs.clear();
            if let Err(why) = step_in_place(self.config, &mut next.state, answer.input, &mut outputs) {
                let input = words::input(self.config, &moment.state, answer.input);
                self.fail(HarnessError::Refused { input, why });
                continue;
            }
            let observation = Observation {
                config: self.config,
                before: &moment.state,
                input: answer.input,
                outputs: &outputs,
                after: &next.state,
            };
            let broken = observe(self.enabled, &mut next.monitor, &observation);
            self.world.apply(self.config, &moment.state, answer, &mut next.world);
            if let Some(symmetry) = &self.symmetry {
                symmetry.sort(&mut next);
            }
            match self.layout.pack_after(&moment, packed, &next) {
                Ok(state) => {
                    emit(Step {
                        choice: Choice(index),
                        state,
                        marks: self.properties.marks(broken, &outputs),
                    });
                }
                Err(error) => self.fail(error.into()),
            }
        }
        ANSWERS.set(answers);
    }

    fn properties(&self) -> &[Property] {
        self.properties.list()
    }

    fn is_final(&self, state: &[u64; W]) -> bool {
        self.moment(state).state.phase == Phase::Ended
    }

    /// A message that the client ignores changes nothing, however often it comes: such a step alone is no life of the
    /// loop's own, so it does not count as a cycle.
    fn is_progress(&self, from: &[u64; W], step: &Step<[u64; W]>) -> bool {
        *from == step.state && self.ignores(from, step.choice)
    }

    /// More than any state has: the choices are positions in the list of the state.
    fn choices(&self) -> u16 {
        1024
    }

    fn label(&self, state: &[u64; W], choice: Choice) -> String {
        let moment = self.moment(state);
        match self.answers(&moment).get(usize::from(choice.0)) {
            Some(answer) => words::input(self.config, &moment.state, answer.input),
            None => format!("choice {}", choice.0),
        }
    }

    fn fields(&self, state: &[u64; W]) -> Vec<(String, String)> {
        words::fields(self.config, &self.moment(state))
    }
}

impl<const W: usize> Harness<'_, W> {
    fn ignores(&self, state: &[u64; W], choice: Choice) -> bool {
        let answers = self.answers(&self.moment(state));
        answers.get(usize::from(choice.0)).is_some_and(|answer| matches!(answer.input, Input::Mcp { .. }))
    }
}

/// The kind of property `index`: an invariant's index lies below the witnesses'.
impl Properties {
    /// The witness or invariant of a name.
    #[must_use]
    pub fn position(&self, name: &str, kind: Kind) -> Option<usize> {
        self.list.iter().position(|property| property.name == name && property.kind == kind)
    }
}
