//! The harness's state packed to the bounds of the scenario. One walk over the fields, in one order, both packs and
//! unpacks, so that the two cannot disagree; what a scenario cannot hold (a second server, a money limit) takes no bits.

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

/// How wide each field is, in bits, and how often it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
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

/// Bits that hold `0..=most`.
fn width(most: usize) -> u32 {
    usize::BITS - most.leading_zeros()
}

impl Layout {
    /// The layout for a configuration. `counters` gives the largest value of each counter, `requests` the largest
    /// request id, `rewrites` whether some hook rewrites its call.
    #[must_use]
    pub fn new(config: &Config, counters: &[u8], requests: u16, rewrites: bool) -> Self {
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
            calls: config.replies.iter().map(|reply| reply.calls.len()).max().unwrap_or(0) as u32,
            call: width(config.calls.len().saturating_sub(1)),
            slot_hooks: slot_hooks as u32,
            rewrites,
            requests: if config.servers.is_empty() { 0 } else { width(usize::from(requests)) },
            servers: config.servers.len(),
            lists: width(config.servers.iter().map(|server| server.lists.len()).max().unwrap_or(0)),
            model_calls: width(limit + 3),
            counters: widths,
        }
    }

    /// How many words a packed state has.
    #[must_use]
    pub fn words(&self) -> usize {
        let mut count = Count { at: 0 };
        walk(&mut count, self, &mut Moment::default());
        count.at.div_ceil(64).max(1) as usize
    }

    /// Packs a moment.
    ///
    /// # Errors
    /// [`DoesNotFitError`] names the first field whose value is larger than its bound.
    #[inline]
    pub fn pack<const W: usize>(&self, moment: &Moment) -> Result<[u64; W], DoesNotFitError> {
        let mut pack = Pack { words: [0; W], at: 0, failed: None };
        let mut moment = *moment;
        walk(&mut pack, self, &mut moment);
        match pack.failed {
            None => Ok(pack.words),
            Some(error) => Err(error),
        }
    }

    /// Unpacks a moment.
    #[inline]
    pub fn unpack<const W: usize>(&self, words: &[u64; W]) -> Moment {
        let mut unpack = Unpack { words, at: 0 };
        let mut moment = Moment::default();
        walk(&mut unpack, self, &mut moment);
        moment
    }
}

/// One direction of the walk: takes a field's value and gives the one that it has from now on.
trait Bits {
    fn bits(&mut self, field: &'static str, value: u64, width: u32) -> u64;
}

/// Where a field of this width begins: fields do not straddle words.
#[inline]
fn place(at: u32, width: u32) -> u32 {
    if at % 64 + width > 64 { at.next_multiple_of(64) } else { at }
}

struct Count {
    at: u32,
}

impl Bits for Count {
    fn bits(&mut self, _: &'static str, value: u64, width: u32) -> u64 {
        self.at = place(self.at, width) + width;
        value
    }
}

struct Pack<const W: usize> {
    words: [u64; W],
    at: u32,
    failed: Option<DoesNotFitError>,
}

impl<const W: usize> Bits for Pack<W> {
    #[inline]
    fn bits(&mut self, field: &'static str, value: u64, width: u32) -> u64 {
        let at = place(self.at, width);
        self.at = at + width;
        let most = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        if value > most && self.failed.is_none() {
            self.failed = Some(DoesNotFitError { field, value, most });
        }
        if let Some(word) = self.words.get_mut((at / 64) as usize) {
            *word |= (value & most) << (at % 64);
        }
        value
    }
}

struct Unpack<'a, const W: usize> {
    words: &'a [u64; W],
    at: u32,
}

impl<const W: usize> Bits for Unpack<'_, W> {
    #[inline]
    fn bits(&mut self, _: &'static str, _: u64, width: u32) -> u64 {
        let at = place(self.at, width);
        self.at = at + width;
        let most = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        self.words.get((at / 64) as usize).map_or(0, |word| word >> (at % 64) & most)
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

/// The walk: every field of a moment, in one order.
#[inline]
fn walk(bits: &mut impl Bits, layout: &Layout, moment: &mut Moment) {
    let Moment { state, monitor, world } = moment;
    state.phase = entry(&PHASES, bits.bits("phase", state.phase as u64, 3));
    let end = state.end.map_or(0, |end| 1 + end as u64);
    state.end = match bits.bits("end", end, 4) {
        0 => None,
        code => EndReason::ALL.get((code - 1) as usize).copied(),
    };
    state.turns = bits.bits("turns", state.turns.into(), layout.turns) as u8;
    state.stop_blocks = bits.bits("stop_blocks", state.stop_blocks.into(), layout.stop_blocks) as u8;
    state.spent = bits.bits("spent", state.spent.into(), layout.spent) as u32;
    state.pending = bits.bits("pending", state.pending.into(), layout.run_hooks) as u8;
    state.decision = entry(&HookDecision::ALL, bits.bits("decision", state.decision as u64, 3));
    state.halt = bits.bits("halt", state.halt.into(), 1) != 0;
    state.deferred = bits.bits("deferred", state.deferred.into(), 1) != 0;
    state.count = bits.bits("count", state.count.into(), width(layout.calls as usize)) as u8;
    for slot in state.slots.iter_mut().take((layout.calls as usize).min(MAX_CALLS)) {
        walk_slot(bits, layout, slot);
    }
    for conn in state.servers.iter_mut().take(layout.servers.min(MAX_SERVERS)) {
        walk_connection(bits, layout, conn);
    }
    for fired in monitor.fired.iter_mut().take((layout.calls as usize).min(MAX_CALLS)) {
        *fired = bits.bits("fired", (*fired).into(), layout.slot_hooks) as u8;
    }
    for (field, mask) in [
        ("blocked", &mut monitor.blocked),
        ("fail_blocked", &mut monitor.fail_blocked),
        ("hook_allowed", &mut monitor.hook_allowed),
        ("permitted", &mut monitor.permitted),
        ("user_allowed", &mut monitor.user_allowed),
        ("returned", &mut monitor.returned),
    ] {
        *mask = bits.bits(field, (*mask).into(), layout.calls) as u8;
    }
    monitor.model_calls = bits.bits("model_calls", monitor.model_calls.into(), layout.model_calls) as u8;
    monitor.stop_blocks = bits.bits("obeyed_stop_blocks", monitor.stop_blocks.into(), 4) as u8;
    for (counter, width) in world.counters.iter_mut().zip(&layout.counters) {
        if *width > 0 {
            *counter = bits.bits("world", (*counter).into(), *width) as u8;
        }
    }
}

#[inline]
fn walk_slot(bits: &mut impl Bits, layout: &Layout, slot: &mut Slot) {
    slot.call = CallRef(bits.bits("call", slot.call.0.into(), layout.call) as u16);
    slot.progress = progress_of_code(bits.bits("progress", code_of_progress(slot.progress), 4));
    slot.pending = bits.bits("pending", slot.pending.into(), layout.slot_hooks) as u8;
    slot.decision = entry(&HookDecision::ALL, bits.bits("decision", slot.decision as u64, 3));
    let rewrite = slot.rewrite.map_or(0, |call| 1 + u64::from(call.0));
    let rewrites = if layout.rewrites { layout.call + 1 } else { 0 };
    slot.rewrite = match bits.bits("rewrite", rewrite, rewrites) {
        0 => None,
        call => Some(CallRef((call - 1) as u16)),
    };
    slot.request = bits.bits("request", slot.request.into(), layout.requests) as u16;
    slot.end = entry(&CallEnd::ALL, bits.bits("end", slot.end as u64, 4));
}

#[inline]
fn walk_connection(bits: &mut impl Bits, layout: &Layout, conn: &mut Conn) {
    conn.phase = entry(&CONNECTIONS, bits.bits("connection", conn.phase as u64, 3));
    conn.next = bits.bits("next", conn.next.into(), layout.requests) as u16;
    let open = conn.open.map_or(0, |id| 1 + u64::from(id));
    conn.open = match bits.bits("open", open, layout.requests + 1) {
        0 => None,
        id => Some((id - 1) as u16),
    };
    conn.list = bits.bits("list", conn.list.into(), layout.lists) as u8;
    conn.modern = bits.bits("modern", conn.modern.into(), 1) != 0;
}
