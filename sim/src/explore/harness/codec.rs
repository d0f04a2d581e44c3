//! The harness's state packed to the bounds of the scenario. One walk over the fields of a part, in one order, counts,
//! packs and unpacks them, so that these cannot disagree; what a scenario cannot hold (a second server, a money limit)
//! takes no bits. Each part (the run, a call, a connection, what the invariants remember) lies within one word, so a step
//! packs only the parts that it changed.

use crate::world::closed::{MAX_COUNTERS, WorldState};
use windtunnel_model::agent_loop::{
    CallEnd, CallRef, Config, Conn, ConnPhase, EndReason, MAX_CALLS, MAX_SERVERS, Phase, Progress, Slot,
    State,
};
use windtunnel_model::hooks::HookDecision;
use windtunnel_model::invariants::Monitor;
use windtunnel_model::profile::agent_loop::{StopRule, TurnLimitRule};

/// Everything that the explorer keeps of a moment: the harness, what its invariants remember, and how far the world's
/// scripts have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The harness.
    pub state: State,
    /// What the invariants remember.
    pub monitor: Monitor,
    /// How far each script of the world has come.
    pub world: WorldState,
}

/// A value that its field cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}, more than the {most} that the bounds of the scenario leave room for")]
pub struct DoesNotFitError {
    /// The field.
    pub field: &'static str,
    /// The value.
    pub value: u64,
    /// The most that fits.
    pub most: u64,
}

/// Where one part of a moment lies: within one word, so that it is replaced by two masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    word: u32,
    shift: u32,
    /// The largest value.
    most: u64,
}

impl Part {
    /// The bits of the part, lowest first.
    #[inline]
    fn get<const W: usize>(self, words: &[u64; W]) -> u64 {
        words.get(self.word as usize).map_or(0, |word| word >> self.shift & self.most)
    }

    #[inline]
    fn set<const W: usize>(self, words: &mut [u64; W], value: u64) {
        if let Some(word) = words.get_mut(self.word as usize) {
            *word = *word & !(self.most << self.shift) | value << self.shift;
        }
    }
}

/// The largest value of a field of so many bits: at most the 32 of the widest one.
#[inline]
fn most(width: u32) -> u64 {
    (1u64 << (width & 63)).wrapping_sub(1)
}

/// How wide each field is, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Widths {
    turns: u32,
    stop_blocks: u32,
    spent: u32,
    run_hooks: u32,
    calls: u32,
    call: u32,
    slot_hooks: u32,
    rewrites: bool,
    requests: u32,
    servers: usize,
    lists: u32,
    model_calls: u32,
    counters: [u32; MAX_COUNTERS],
}

/// Counters of the world that one part holds: eight of eight bits fill a word.
const COUNTERS_A_PART: usize = 8;

/// Where each part of a moment lies, and how wide its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    widths: Widths,
    run: Part,
    money: Part,
    slots: [Part; MAX_CALLS],
    servers: [Part; MAX_SERVERS],
    fired: Part,
    memory: Part,
    counters: [Part; MAX_COUNTERS / COUNTERS_A_PART],
    words: usize,
}

/// Bits that hold `0..=most`.
fn width(most: usize) -> u32 {
    usize::BITS - most.leading_zeros()
}

impl Layout {
    /// The layout for a configuration. `counters` gives the largest value of each counter, `requests` the largest
    /// request id, `rewrites` whether some hook rewrites its call.
    ///
    /// # Errors
    /// [`TooManyBitsError`] when a part needs more than the 64 bits of a word.
    pub fn new(
        config: &Config,
        counters: &[u8],
        requests: u16,
        rewrites: bool,
    ) -> Result<Self, TooManyBitsError> {
        let widths = Widths::new(config, counters, requests, rewrites);
        let mut layout = Self {
            widths,
            run: Part::default(),
            money: Part::default(),
            slots: [Part::default(); MAX_CALLS],
            servers: [Part::default(); MAX_SERVERS],
            fired: Part::default(),
            memory: Part::default(),
            counters: [Part::default(); MAX_COUNTERS / COUNTERS_A_PART],
            words: 1,
        };
        let mut room = Room { word: 0, used: 0 };
        let moment = &mut Moment::default();
        let Moment { state, monitor, world } = moment;
        layout.run = room.take("the run", |bits| walk_run(bits, &widths, state))?;
        layout.money = room.take("the money spent", |bits| walk_money(bits, &widths, state))?;
        for (part, slot) in layout.slots.iter_mut().zip(&mut state.slots).take(widths.calls as usize) {
            *part = room.take("a call", |bits| walk_slot(bits, &widths, slot))?;
        }
        for (part, conn) in layout.servers.iter_mut().zip(&mut state.servers).take(widths.servers) {
            *part = room.take("a connection", |bits| walk_connection(bits, &widths, conn))?;
        }
        layout.fired = room.take("the hooks that ran", |bits| walk_fired(bits, &widths, monitor))?;
        layout.memory =
            room.take("what the invariants remember", |bits| walk_memory(bits, &widths, monitor))?;
        let chunks = world.counters.chunks_mut(COUNTERS_A_PART).zip(widths.counters.chunks(COUNTERS_A_PART));
        for (part, (counters, widths)) in layout.counters.iter_mut().zip(chunks) {
            *part = room.take("the world's scripts", |bits| walk_counters(bits, widths, counters))?;
        }
        layout.words = room.words();
        Ok(layout)
    }

    /// How many words a packed state has.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Packs a moment.
    ///
    /// # Errors
    /// [`DoesNotFitError`] names the first field whose value is larger than its bound.
    pub fn pack<const W: usize>(&self, moment: &Moment) -> Result<[u64; W], DoesNotFitError> {
        // The empty moment packs to zeros.
        self.pack_after(&Moment::default(), &[0; W], moment)
    }

    /// Packs the moment `after` a step out of `before`, whose packed form is `packed`: what the step left as it was is
    /// copied.
    ///
    /// # Errors
    /// As [`Layout::pack`].
    #[inline]
    pub fn pack_after<const W: usize>(
        &self,
        before: &Moment,
        packed: &[u64; W],
        after: &Moment,
    ) -> Result<[u64; W], DoesNotFitError> {
        let widths = &self.widths;
        let mut words = *packed;
        let mut over = 0;
        let (old, new) = (&before.state, &after.state);
        self.run.set(&mut words, Pack::part(&mut over, |bits| walk_run(bits, widths, &mut { *new })));
        if old.spent != new.spent {
            self.money.set(&mut words, Pack::part(&mut over, |bits| walk_money(bits, widths, &mut { *new })));
        }
        for (part, (old, new)) in
            self.slots.iter().zip(old.slots.iter().zip(&new.slots)).take(widths.calls as usize)
        {
            if old != new {
                part.set(&mut words, Pack::part(&mut over, |bits| walk_slot(bits, widths, &mut { *new })));
            }
        }
        for (part, (old, new)) in
            self.servers.iter().zip(old.servers.iter().zip(&new.servers)).take(widths.servers)
        {
            if old != new {
                part.set(
                    &mut words,
                    Pack::part(&mut over, |bits| walk_connection(bits, widths, &mut { *new })),
                );
            }
        }
        let monitor = &mut { after.monitor };
        if before.monitor.fired != monitor.fired {
            self.fired.set(&mut words, Pack::part(&mut over, |bits| walk_fired(bits, widths, monitor)));
        }
        self.memory.set(&mut words, Pack::part(&mut over, |bits| walk_memory(bits, widths, monitor)));
        if before.world != after.world {
            let counters = &mut { after.world.counters };
            let chunks = counters.chunks_mut(COUNTERS_A_PART).zip(widths.counters.chunks(COUNTERS_A_PART));
            for (part, (counters, widths)) in self.counters.iter().zip(chunks) {
                part.set(&mut words, Pack::part(&mut over, |bits| walk_counters(bits, widths, counters)));
            }
        }
        if over == 0 { Ok(words) } else { Err(self.misfit(after)) }
    }

    /// The first field of a moment that does not fit.
    #[cold]
    fn misfit(&self, moment: &Moment) -> DoesNotFitError {
        let widths = &self.widths;
        let mut misfit = Misfit { found: None };
        let Moment { state, monitor, world } = &mut { *moment };
        walk_run(&mut misfit, widths, state);
        walk_money(&mut misfit, widths, state);
        state.slots.iter_mut().for_each(|slot| walk_slot(&mut misfit, widths, slot));
        state.servers.iter_mut().for_each(|conn| walk_connection(&mut misfit, widths, conn));
        walk_fired(&mut misfit, widths, monitor);
        walk_memory(&mut misfit, widths, monitor);
        walk_counters(&mut misfit, &widths.counters, &mut world.counters);
        misfit.found.unwrap_or(DoesNotFitError { field: "the state", value: 0, most: 0 })
    }

    /// Unpacks a moment.
    #[inline]
    pub fn unpack<const W: usize>(&self, words: &[u64; W]) -> Moment {
        let widths = &self.widths;
        let mut moment = Moment::default();
        let Moment { state, monitor, world } = &mut moment;
        walk_run(&mut Unpack::of(self.run.get(words)), widths, state);
        walk_money(&mut Unpack::of(self.money.get(words)), widths, state);
        for (part, slot) in self.slots.iter().zip(&mut state.slots).take(widths.calls as usize) {
            walk_slot(&mut Unpack::of(part.get(words)), widths, slot);
        }
        for (part, conn) in self.servers.iter().zip(&mut state.servers).take(widths.servers) {
            walk_connection(&mut Unpack::of(part.get(words)), widths, conn);
        }
        walk_fired(&mut Unpack::of(self.fired.get(words)), widths, monitor);
        walk_memory(&mut Unpack::of(self.memory.get(words)), widths, monitor);
        let chunks = world.counters.chunks_mut(COUNTERS_A_PART).zip(widths.counters.chunks(COUNTERS_A_PART));
        for (part, (counters, widths)) in self.counters.iter().zip(chunks) {
            walk_counters(&mut Unpack::of(part.get(words)), widths, counters);
        }
        moment
    }
}

impl Widths {
    fn new(config: &Config, counters: &[u8], requests: u16, rewrites: bool) -> Self {
        let profile = &config.profile.agent_loop;
        let limit = config.limits.max_turns.map_or(0, usize::from);
        let counts = profile.turn_limit.value != TurnLimitRule::None && limit > 0;
        let widest = |list: fn(&windtunnel_model::agent_loop::CallInfo) -> usize| {
            config.calls.iter().map(list).max().unwrap_or(0)
        };
        let slot_hooks = widest(|call| call.before.len())
            .max(widest(|call| call.after.len()))
            .max(widest(|call| call.after_failure.len()));
        let mut widths = [0; MAX_COUNTERS];
        for (width_of, most) in widths.iter_mut().zip(counters) {
            *width_of = width(usize::from(*most));
        }
        let calls = config.replies.iter().map(|reply| reply.calls.len()).max().unwrap_or(0);
        Self {
            // One more than the limit, for rules that look one turn late.
            turns: if counts { width(limit + 1) } else { 0 },
            stop_blocks: match profile.stop.value {
                StopRule::NoFlagNoCap => 0,
                StopRule::FlagSilences => 1,
                StopRule::FlagAndCap { cap, .. } => width(usize::from(cap)),
            },
            spent: config.limits.max_cost.map_or(0, |most| width(most as usize)),
            run_hooks: config.prompt_hooks.len().max(config.stop_hooks.len()) as u32,
            calls: calls.min(MAX_CALLS) as u32,
            call: width(config.calls.len().saturating_sub(1)),
            slot_hooks: slot_hooks as u32,
            rewrites,
            requests: if config.servers.is_empty() { 0 } else { width(usize::from(requests)) },
            servers: config.servers.len().min(MAX_SERVERS),
            lists: width(config.servers.iter().map(|server| server.lists.len()).max().unwrap_or(0)),
            model_calls: width(limit + 3),
            counters: widths,
        }
    }
}

/// A part of the state that outgrew a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} takes {bits} bits, more than the 64 of a word: fewer different calls or hooks fit")]
pub struct TooManyBitsError {
    /// The part.
    pub part: &'static str,
    /// How many it would take.
    pub bits: u32,
}

/// Room for parts, one after the other; none straddles two words.
struct Room {
    word: u32,
    used: u32,
}

impl Room {
    fn take(&mut self, part: &'static str, walk: impl FnOnce(&mut Count)) -> Result<Part, TooManyBitsError> {
        let mut count = Count { bits: 0 };
        walk(&mut count);
        let width = count.bits;
        if width > 64 {
            return Err(TooManyBitsError { part, bits: width });
        }
        if self.used + width > 64 {
            self.word += 1;
            self.used = 0;
        }
        let most = u64::MAX.checked_shr(64 - width).unwrap_or(0);
        let taken = Part { word: self.word, shift: self.used & 63, most };
        self.used += width;
        Ok(taken)
    }

    fn words(&self) -> usize {
        self.word as usize + 1
    }
}

/// One direction of the walk: takes a field's value and gives the one that it has from now on.
trait Bits {
    fn bits(&mut self, field: &'static str, value: u64, width: u32) -> u64;
}

struct Count {
    bits: u32,
}

impl Bits for Count {
    fn bits(&mut self, _: &'static str, value: u64, width: u32) -> u64 {
        self.bits += width;
        value
    }
}

struct Pack {
    word: u64,
    at: u32,
    /// The bits that did not fit, of all fields together.
    over: u64,
}

impl Pack {
    /// One part packed; what did not fit is added to `over`.
    #[inline]
    fn part(over: &mut u64, walk: impl FnOnce(&mut Self)) -> u64 {
        let mut pack = Self { word: 0, at: 0, over: 0 };
        walk(&mut pack);
        *over |= pack.over;
        pack.word
    }
}

impl Bits for Pack {
    #[inline]
    fn bits(&mut self, _: &'static str, value: u64, width: u32) -> u64 {
        let most = most(width);
        self.over |= value & !most;
        // A field of no bits may stand at the very end of a full word.
        self.word |= (value & most) << (self.at & 63);
        self.at += width;
        value
    }
}

/// Finds the first field that does not fit.
struct Misfit {
    found: Option<DoesNotFitError>,
}

impl Bits for Misfit {
    fn bits(&mut self, field: &'static str, value: u64, width: u32) -> u64 {
        let most = most(width);
        if value > most {
            self.found.get_or_insert(DoesNotFitError { field, value, most });
        }
        value
    }
}

struct Unpack {
    word: u64,
    at: u32,
}

impl Unpack {
    #[inline]
    fn of(word: u64) -> Self {
        Self { word, at: 0 }
    }
}

impl Bits for Unpack {
    #[inline]
    fn bits(&mut self, _: &'static str, _: u64, width: u32) -> u64 {
        let value = self.word >> (self.at & 63) & most(width);
        self.at += width;
        value
    }
}

const PHASES: [Phase; 8] = [
    Phase::Start,
    Phase::Connecting,
    Phase::Idle,
    Phase::PromptHooks,
    Phase::Model,
    Phase::Calls,
    Phase::StopHooks,
    Phase::Ended,
];

const CONNECTIONS: [ConnPhase; 8] = [
    ConnPhase::Off,
    ConnPhase::Discovering,
    ConnPhase::Agreeing,
    ConnPhase::Initializing,
    ConnPhase::Listing,
    ConnPhase::Ready,
    ConnPhase::Failed,
    ConnPhase::Lost,
];

/// Which of a table's entries a small number stands for; the first where it is none.
fn entry<T: Copy + Default>(table: &[T], number: u64) -> T {
    usize::try_from(number).ok().and_then(|index| table.get(index)).copied().unwrap_or_default()
}

fn code_of_progress(progress: Progress) -> u64 {
    match progress {
        Progress::Empty => 0,
        Progress::Queued => 1,
        Progress::Asking => 2,
        Progress::Reconnecting => 3,
        Progress::Running => 4,
        Progress::After => 5,
        Progress::Ended => 6,
        Progress::Stage(stage) => 7 + u64::from(stage),
    }
}

fn progress_of_code(code: u64) -> Progress {
    match code {
        0 => Progress::Empty,
        1 => Progress::Queued,
        2 => Progress::Asking,
        3 => Progress::Reconnecting,
        4 => Progress::Running,
        5 => Progress::After,
        6 => Progress::Ended,
        stage => Progress::Stage((stage - 7) as u8),
    }
}

// The walks: every field of a part, in one order.

#[inline]
fn walk_run(bits: &mut impl Bits, widths: &Widths, state: &mut State) {
    state.phase = entry(&PHASES, bits.bits("phase", state.phase as u64, 3));
    let end = state.end.map_or(0, |end| 1 + end as u64);
    state.end = match bits.bits("end", end, 4) {
        0 => None,
        code => EndReason::ALL.get((code - 1) as usize).copied(),
    };
    state.turns = bits.bits("turns", state.turns.into(), widths.turns) as u8;
    state.stop_blocks = bits.bits("stop_blocks", state.stop_blocks.into(), widths.stop_blocks) as u8;
    state.pending = bits.bits("pending", state.pending.into(), widths.run_hooks) as u8;
    state.decision = entry(&HookDecision::ALL, bits.bits("decision", state.decision as u64, 3));
    state.halt = bits.bits("halt", state.halt.into(), 1) != 0;
    state.deferred = bits.bits("deferred", state.deferred.into(), 1) != 0;
    state.count = bits.bits("count", state.count.into(), width(widths.calls as usize)) as u8;
}

#[inline]
fn walk_money(bits: &mut impl Bits, widths: &Widths, state: &mut State) {
    state.spent = bits.bits("spent", state.spent.into(), widths.spent) as u32;
}

#[inline]
fn walk_fired(bits: &mut impl Bits, widths: &Widths, monitor: &mut Monitor) {
    for fired in monitor.fired.iter_mut().take(widths.calls as usize) {
        *fired = bits.bits("fired", (*fired).into(), widths.slot_hooks) as u8;
    }
}

#[inline]
fn walk_memory(bits: &mut impl Bits, widths: &Widths, monitor: &mut Monitor) {
    for (field, mask) in [
        ("blocked", &mut monitor.blocked),
        ("fail_blocked", &mut monitor.fail_blocked),
        ("hook_allowed", &mut monitor.hook_allowed),
        ("permitted", &mut monitor.permitted),
        ("user_allowed", &mut monitor.user_allowed),
        ("returned", &mut monitor.returned),
    ] {
        *mask = bits.bits(field, (*mask).into(), widths.calls) as u8;
    }
    monitor.model_calls = bits.bits("model_calls", monitor.model_calls.into(), widths.model_calls) as u8;
    monitor.stop_blocks = bits.bits("obeyed_stop_blocks", monitor.stop_blocks.into(), 4) as u8;
}

#[inline]
fn walk_counters(bits: &mut impl Bits, widths: &[u32], counters: &mut [u8]) {
    for (counter, width) in counters.iter_mut().zip(widths) {
        *counter = bits.bits("world", (*counter).into(), *width) as u8;
    }
}

#[inline]
fn walk_slot(bits: &mut impl Bits, widths: &Widths, slot: &mut Slot) {
    slot.call = CallRef(bits.bits("call", slot.call.0.into(), widths.call) as u16);
    slot.progress = progress_of_code(bits.bits("progress", code_of_progress(slot.progress), 4));
    slot.pending = bits.bits("pending", slot.pending.into(), widths.slot_hooks) as u8;
    slot.decision = entry(&HookDecision::ALL, bits.bits("decision", slot.decision as u64, 3));
    let rewrite = slot.rewrite.map_or(0, |call| 1 + u64::from(call.0));
    let rewrites = if widths.rewrites { widths.call + 1 } else { 0 };
    slot.rewrite = match bits.bits("rewrite", rewrite, rewrites) {
        0 => None,
        call => Some(CallRef((call - 1) as u16)),
    };
    slot.request = bits.bits("request", slot.request.into(), widths.requests) as u16;
    slot.end = entry(&CallEnd::ALL, bits.bits("end", slot.end as u64, 4));
}

#[inline]
fn walk_connection(bits: &mut impl Bits, widths: &Widths, conn: &mut Conn) {
    conn.phase = entry(&CONNECTIONS, bits.bits("connection", conn.phase as u64, 3));
    conn.next = bits.bits("next", conn.next.into(), widths.requests) as u16;
    let open = conn.open.map_or(0, |id| 1 + u64::from(id));
    conn.open = match bits.bits("open", open, widths.requests + 1) {
        0 => None,
        id => Some((id - 1) as u16),
    };
    conn.list = bits.bits("list", conn.list.into(), widths.lists) as u8;
    conn.modern = bits.bits("modern", conn.modern.into(), 1) != 0;
}
