//! What is interchangeable in a scenario: calls of one turn, hooks of one call, servers that nobody calls. The canonical
//! form of a moment puts them in one order; two moments with one canonical form have the same future, so the explorer
//! keeps one of them.
//!
//! Sound where a step treats positions alike. It does not where a server is started anew by a call (the order of the
//! calls decides which of them gets which request id) and for calls that still queue (they start in their order): the
//! first turns the reordering of calls off, the second leaves them where they are. No invariant reads the position of a
//! call, a hook or a server; one that does must be left out of [`Symmetry::new`]'s callers.

use super::codec::Moment;
use crate::world::closed::{ClosedWorld, HookAnswer, Steps};
use windtunnel_model::agent_loop::{
    CallInfo, CallRef, Config, Conn, HookRef, MAX_CALLS, Phase, Progress, ServerRef, Slot, restarts_servers,
};
use windtunnel_model::profile::agent_loop::HookCombination;

/// The classes of interchangeable things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Symmetry {
    /// For each call, the first one that differs from it in its id only; empty where calls keep their places.
    calls: Vec<CallRef>,
    /// For each call, the classes of its hooks with more than one member: before, after, after a failure.
    hooks: Vec<[Vec<u8>; 3]>,
    prompt_hooks: Vec<u8>,
    stop_hooks: Vec<u8>,
    /// Classes of idle servers with more than one member, a bit each.
    servers: Vec<u8>,
}

impl Symmetry {
    /// The symmetry of a compiled scenario.
    pub(super) fn new(config: &Config, world: &ClosedWorld) -> Self {
        // Hooks that run one after the other have places.
        let in_parallel =
            config.profile.agent_loop.hook_combination.value == HookCombination::ParallelLattice;
        let alike = |a: HookRef, b: HookRef| in_parallel && hooks_alike(config, world, a, b);
        let hooks = |info: &CallInfo| {
            [&info.before, &info.after, &info.after_failure].map(|list| classes(list, alike))
        };
        // A step that starts a server anew hands out request ids in the order of the calls.
        let moves = config.servers.is_empty() || !restarts_servers(config);
        let calls = (0..config.calls.len()).map(|index| first_alike(config, world, index)).collect();
        Self {
            calls: if moves { calls } else { Vec::new() },
            hooks: config.calls.iter().map(hooks).collect(),
            prompt_hooks: classes(&config.prompt_hooks, alike),
            stop_hooks: classes(&config.stop_hooks, alike),
            servers: idle_servers(config, world),
        }
    }

    /// Whether nothing is interchangeable, so that every moment is canonical.
    pub(super) fn is_trivial(&self) -> bool {
        self.calls.is_empty()
            && self.servers.is_empty()
            && self.prompt_hooks.is_empty()
            && self.stop_hooks.is_empty()
            && self.hooks.iter().flatten().all(Vec::is_empty)
    }

    /// Brings a moment into its canonical form.
    pub(super) fn sort(&self, moment: &mut Moment) {
        match moment.state.phase {
            Phase::Calls => {
                self.sort_hooks(moment);
                if !self.calls.is_empty() {
                    self.sort_calls(moment);
                }
            }
            Phase::PromptHooks => sort_bits(&self.prompt_hooks, &mut moment.state.pending, &mut 0),
            Phase::StopHooks => sort_bits(&self.stop_hooks, &mut moment.state.pending, &mut 0),
            _ => {}
        }
        for class in &self.servers {
            sort_servers(*class, &mut moment.state.servers);
        }
    }

    fn sort_hooks(&self, moment: &mut Moment) {
        let Moment { state, monitor, .. } = moment;
        let count = usize::from(state.count);
        for (slot, fired) in state.slots.iter_mut().zip(&mut monitor.fired).take(count) {
            let Some([before, after, after_failure]) = self.hooks.get(slot.call.index()) else { continue };
            match slot.progress {
                Progress::Stage(_) => sort_bits(before, &mut slot.pending, fired),
                Progress::After if slot.end == windtunnel_model::agent_loop::CallEnd::Result => {
                    sort_bits(after, &mut slot.pending, &mut 0);
                }
                Progress::After => sort_bits(after_failure, &mut slot.pending, &mut 0),
                _ => {}
            }
        }
    }

    /// Sorts the calls that no longer queue, each with what the invariants remember of it.
    fn sort_calls(&self, moment: &mut Moment) {
        let Moment { state, monitor, .. } = moment;
        let count = usize::from(state.count);
        for slot in state.slots.iter_mut().take(count) {
            slot.call = self.class(slot.call);
            slot.rewrite = slot.rewrite.map(|call| self.class(call));
        }
        let started = state.calls().iter().take_while(|slot| slot.progress != Progress::Queued).count();
        let masks = [
            &mut monitor.blocked,
            &mut monitor.fail_blocked,
            &mut monitor.hook_allowed,
            &mut monitor.permitted,
            &mut monitor.user_allowed,
            &mut monitor.returned,
        ];
        let mut columns = [(Slot::default(), 0u8, 0u8); MAX_CALLS];
        let columns = &mut columns[..started];
        for (position, column) in columns.iter_mut().enumerate() {
            let bits = (0..).zip(&masks).fold(0, |bits, (n, mask)| bits | (**mask >> position & 1) << n);
            *column = (state.slots[position], monitor.fired[position], bits);
        }
        if columns.is_sorted() {
            return;
        }
        columns.sort_unstable();
        for (position, (slot, fired, _)) in columns.iter().enumerate() {
            state.slots[position] = *slot;
            monitor.fired[position] = *fired;
        }
        for (n, mask) in masks.into_iter().enumerate() {
            let sorted = columns
                .iter()
                .enumerate()
                .fold(0u8, |bits, (position, column)| bits | (column.2 >> n & 1) << position);
            // What lies beyond the sorted calls stays.
            let below = ((1u16 << started) - 1) as u8;
            *mask = *mask & !below | sorted;
        }
    }

    fn class(&self, call: CallRef) -> CallRef {
        self.calls.get(call.index()).copied().unwrap_or(call)
    }
}

/// Reorders bits within each class: of a pair (this bit, that bit) at each position, the greatest come first. The two
/// masks belong together: whether a hook is waited for, and whether it has run.
fn sort_bits(classes: &[u8], pending: &mut u8, fired: &mut u8) {
    for class in classes {
        let mut left = *class;
        let (waiting, done) = (*pending & class, *fired & class);
        *pending &= !class;
        *fired &= !class;
        for pair in [waiting & done, waiting & !done, done & !waiting] {
            for _ in 0..pair.count_ones() {
                let lowest = left & left.wrapping_neg();
                left &= !lowest;
                // Which of the three it is: the masks of the pairs exclude each other.
                if pair & waiting != 0 {
                    *pending |= lowest;
                }
                if pair & done != 0 {
                    *fired |= lowest;
                }
            }
        }
    }
}

fn sort_servers(class: u8, servers: &mut [Conn]) {
    let inside = |index: usize| class >> index & 1 == 1;
    for place in (0..servers.len()).filter(|index| inside(*index)) {
        for later in (place + 1..servers.len()).filter(|index| inside(*index)) {
            if servers[later] < servers[place] {
                servers.swap(later, place);
            }
        }
    }
}

/// The classes of equal neighbours in a list of hooks, those with one member left out, a bit a position.
fn classes(list: &[HookRef], alike: impl Fn(HookRef, HookRef) -> bool) -> Vec<u8> {
    let mut classes = Vec::new();
    let mut seen = 0u8;
    for (position, hook) in list.iter().enumerate() {
        let class = list
            .iter()
            .enumerate()
            .skip(position)
            .filter(|(_, other)| alike(*hook, **other))
            .fold(0u8, |class, (other, _)| class | 1 << other);
        if seen >> position & 1 == 0 && class.count_ones() > 1 {
            classes.push(class);
        }
        seen |= class;
    }
    classes
}

/// Whether two hooks do the same: the same answers, none that changes from run to run, the same failure direction.
fn hooks_alike(config: &Config, world: &ClosedWorld, a: HookRef, b: HookRef) -> bool {
    let answers = |hook: HookRef| -> Option<&Steps<HookAnswer>> {
        world.hooks.get(hook.index()).filter(|_| !world.changes(hook))
    };
    let same_answers = match (answers(a), answers(b)) {
        (Some(a), Some(b)) => a.all().map(signals).eq(b.all().map(signals)),
        _ => false,
    };
    let hook = |hook: HookRef| config.hooks.get(hook.index()).map(|hook| (hook.event, hook.block_on_failure));
    a == b || same_answers && hook(a) == hook(b)
}

/// What control reads of an answer.
fn signals(
    alternative: &crate::world::closed::Alternative<HookAnswer>,
) -> (&windtunnel_model::agent_loop::Signal, &[windtunnel_model::agent_loop::Signal]) {
    (&alternative.answer.run, &alternative.answer.signals)
}

/// The first call that differs from this one in its id only.
fn first_alike(config: &Config, world: &ClosedWorld, index: usize) -> CallRef {
    let this = &config.calls[index];
    let same = |other: usize| {
        let info = &config.calls[other];
        let facts = |info: &CallInfo| {
            let CallInfo { id: _, tool, input_fits, read_only, rule, before, after, after_failure } = info;
            (*tool, *input_fits, *read_only, *rule, before.clone(), after.clone(), after_failure.clone())
        };
        facts(this) == facts(info)
            && world.hooks.iter().flat_map(Steps::all).all(|alternative| {
                let signals = &alternative.answer.signals;
                signals.get(index) == signals.get(other)
            })
    };
    let first = (0..index).find(|other| same(*other)).unwrap_or(index);
    CallRef(u16::try_from(first).unwrap_or(u16::MAX))
}

/// Servers whose tools no call names and that say the same in the handshake, in classes of more than one.
fn idle_servers(config: &Config, world: &ClosedWorld) -> Vec<u8> {
    let called = |index: usize| {
        let server = u8::try_from(index).ok().map(ServerRef);
        (0..config.calls.len())
            .filter_map(|call| u16::try_from(call).ok())
            .any(|call| config.server_of(CallRef(call)) == server)
    };
    let idle: Vec<usize> = (0..config.servers.len()).filter(|index| !called(*index)).collect();
    let mut classes = Vec::new();
    let mut seen = 0u8;
    for &index in &idle {
        let same = |other: usize| {
            world.handshakes.get(index) == world.handshakes.get(other)
                && config.servers[index].lists.len() == config.servers[other].lists.len()
        };
        let class = idle
            .iter()
            .filter(|other| **other >= index && same(**other))
            .fold(0u8, |class, other| class | 1 << other);
        if seen >> index & 1 == 0 && class.count_ones() > 1 {
            classes.push(class);
        }
        seen |= class;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_one_class_are_interchangeable_and_others_stay() {
        let (mut pending, mut fired) = (0b1010_0001, 0b0100_0001);
        sort_bits(&[0b1111_0000], &mut pending, &mut fired);
        assert_eq!((pending, fired), (0b0011_0001, 0b0100_0001));
        let (mut again, mut too) = (0b1100_0001, 0b0001_0001);
        sort_bits(&[0b1111_0000], &mut again, &mut too);
        assert_eq!((again, too), (pending, fired), "two arrangements of one class have one canonical form");
    }
}
