//! The exact breadth-first search: level by level, in log order, in batches.
//!
//! A batch of parents is expanded, the successors' slots are fetched ahead, then the successors are inserted in order.
//! So the order is that of a plain breadth-first search, and the waits for memory overlap.

use super::bounds::{Bound, Bounds, Stopped, Watch};
use super::index::{Index, MOST_STATES, Slot};
use super::log::{Log, NO_PARENT};
use super::packed::Packed;
use super::parallel;
use super::system::{Choice, Kind, Marks, Property, Step, System};
use windtunnel_model::verdict::Verdict;

/// Parents a batch.
const BATCH: u32 = 64;
/// How far ahead of the insertion the log is asked for a likely duplicate.
const AHEAD: usize = 12;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The limits.
    pub bounds: Bounds,
    /// Threads; the result is the same for each number.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { bounds: Bounds::default(), threads: 1 }
    }
}

/// Where a property was first marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which initial state the schedule starts from.
    pub start: usize,
    /// The choices: a shortest schedule that ends in the mark.
    pub schedule: Vec<Choice>,
}

/// The first mark of one property, as the search keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// This state carries it.
    State(u32),
    /// The step by this choice out of this state carries it.
    Step(u32, u16),
}

/// A successor on its way into the visited set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending<S> {
    pub(super) state: S,
    pub(super) hash: u64,
    pub(super) parent: u32,
    pub(super) choice: u16,
}

/// Which choices were ever taken: a bit each.
#[derive(Clone, Debug)]
pub(super) struct Taken(Vec<u64>);

impl Taken {
    pub(super) fn new(choices: u16) -> Self {
        Self(vec![0; usize::from(choices).div_ceil(64)])
    }

    #[inline]
    pub(super) fn insert(&mut self, choice: u16) {
        if let Some(word) = self.0.get_mut(usize::from(choice) / 64) {
            *word |= 1 << (choice % 64);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    pub(super) fn contains(&self, choice: u16) -> bool {
        self.0.get(usize::from(choice) / 64).is_some_and(|word| word >> (choice % 64) & 1 == 1)
    }
}

/// What was counted while expanding.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) transitions: u64,
    pub(super) terminals: u64,
    pub(super) deadlocks: u64,
    /// In log order the first.
    pub(super) first_deadlock: Option<u32>,
    pub(super) taken: Taken,
}

impl Tally {
    pub(super) fn new(choices: u16) -> Self {
        Self { transitions: 0, terminals: 0, deadlocks: 0, first_deadlock: None, taken: Taken::new(choices) }
    }

    /// Adds what was counted on later parents.
    pub(super) fn add(&mut self, later: &Self) {
        self.transitions += later.transitions;
        self.terminals += later.terminals;
        self.deadlocks += later.deadlocks;
        self.first_deadlock = self.first_deadlock.or(later.first_deadlock);
        self.taken.merge(&later.taken);
    }

    pub(super) fn dead_end<S: System>(&mut self, system: &S, number: u32, state: &S::State) {
        self.terminals += 1;
        if !system.is_final(state) {
            self.deadlocks += 1;
            self.first_deadlock.get_or_insert(number);
        }
    }
}

/// The visited set with its index in one or more parts (one a thread).
#[derive(Debug)]
pub(super) struct Visited<S> {
    pub(super) log: Log<S>,
    pub(super) parts: Vec<Index>,
}

/// Which of `parts` indices (a power of two) keeps `hash`: the topmost bits, which no home slot depends on.
#[inline]
pub(super) fn part_of(hash: u64, parts: usize) -> usize {
    if parts == 1 { 0 } else { (hash >> (64 - parts.trailing_zeros())) as usize }
}

impl<S: Packed> Visited<S> {
    fn memory(&self) -> usize {
        self.log.memory() + self.parts.iter().map(Index::memory).sum::<usize>()
    }

    pub(super) fn find(&self, state: &S) -> Option<u32> {
        let hash = state.fingerprint();
        match self.parts[part_of(hash, self.parts.len())].find(hash, |number| self.log.state(number) == state)
        {
            Slot::Found(number) => Some(number),
            Slot::Vacant(_) => None,
        }
    }

    /// Inserts a state; its number where it is new.
    #[inline]
    pub(super) fn insert<const SPLIT: bool>(&mut self, pending: &Pending<S>) -> Option<u32> {
        let parts = self.parts.len();
        let part = if SPLIT { part_of(pending.hash, parts) } else { 0 };
        let Self { log, parts: indices } = self;
        let index = &mut indices[part];
        match index.find(pending.hash, |number| *log.state(number) == pending.state) {
            Slot::Found(_) => None,
            Slot::Vacant(slot) => {
                let number = log.len() as u32;
                index.occupy(slot, pending.hash, number);
                log.push(pending.state, pending.parent, pending.choice);
                if index.is_full() {
                    grow(index, log, part, parts);
                }
                Some(number)
            }
        }
    }
}

#[cold]
#[inline(never)]
fn grow<S: Packed>(index: &mut Index, log: &Log<S>, part: usize, parts: usize) {
    index.grow(log.len() as u32, |number| {
        let hash = log.state(number).fingerprint();
        (part_of(hash, parts) == part).then_some(hash)
    });
}

/// A search in progress.
pub(super) struct Search<'a, S: System> {
    pub(super) system: &'a S,
    pub(super) visited: Visited<S::State>,
    pub(super) tally: Tally,
    pub(super) sites: Vec<Option<Site>>,
    /// The properties that have a site.
    pub(super) seen: u64,
}

impl<S: System> Search<'_, S> {
    pub(super) fn note(&mut self, marks: Marks, site: Site) {
        for property in Marks(marks.0 & !self.seen).iter() {
            if let Some(first) = self.sites.get_mut(property) {
                first.get_or_insert(site);
            }
        }
        self.seen |= marks.0;
    }

    #[inline]
    fn insert<const SPLIT: bool>(&mut self, pending: &Pending<S::State>) {
        if let Some(number) = self.visited.insert::<SPLIT>(pending) {
            let marks = self.system.marks(&pending.state);
            if !marks.is_empty() {
                self.note(marks, Site::State(number));
            }
        }
    }

    /// Expands the parents `from..to` and inserts what they lead to. `SPLIT` says whether the index has several parts.
    fn block<const SPLIT: bool>(&mut self, from: u32, to: u32, scratch: &mut Scratch<S::State>) {
        let parts = if SPLIT { self.visited.parts.len() } else { 1 };
        let Scratch { buffer, marked, recent } = scratch;
        let mut at = from;
        while at < to {
            let end = to.min(at.saturating_add(BATCH));
            buffer.clear();
            for parent in at..end {
                let Self { system, visited, tally, seen, .. } = self;
                let (state, seen) = (*visited.log.state(parent), *seen);
                let mut steps = 0u64;
                system.successors(&state, &mut |step: Step<S::State>| {
                    steps += 1;
                    tally.taken.insert(step.choice.0);
                    let hash = step.state.fingerprint();
                    if step.marks.0 & !seen != 0 {
                        marked.push((buffer.len(), step.marks));
                    } else if recent.contains(hash, &step.state) {
                        return;
                    }
                    visited.parts[if SPLIT { part_of(hash, parts) } else { 0 }].prefetch(hash);
                    buffer.push(Pending { state: step.state, hash, parent, choice: step.choice.0 });
                });
                if steps == 0 {
                    tally.dead_end(*system, parent, &state);
                }
                tally.transitions += steps;
            }
            let mut cursor = 0;
            for position in 0..buffer.len() {
                if let Some(later) = buffer.get(position + AHEAD) {
                    let part = if SPLIT { part_of(later.hash, parts) } else { 0 };
                    if let Some(number) = self.visited.parts[part].suggestion(later.hash) {
                        self.visited.log.prefetch(number);
                    }
                }
                let pending = &buffer[position];
                // The mark of a step goes before those of the state that it leads to.
                if let Some(&(marked, marks)) = marked.get(cursor)
                    && marked == position
                {
                    cursor += 1;
                    self.note(marks, Site::Step(pending.parent, pending.choice));
                }
                self.insert::<SPLIT>(pending);
            }
            marked.clear();
            at = end;
        }
    }
}

/// What the expansion of one block needs and the next can use again.
struct Scratch<S> {
    buffer: Vec<Pending<S>>,
    /// Positions in the buffer of steps that mark properties.
    marked: Vec<(usize, Marks)>,
    recent: Recent<S>,
}

/// The successors met last, one a slot: most of what is met twice is met twice soon, and then the index need not be
/// asked. States are compared whole, so nothing is lost.
struct Recent<S> {
    slots: Vec<Option<S>>,
}

impl<S: Packed> Recent<S> {
    fn new() -> Self {
        /// Fits the second-level cache.
        const BYTES: usize = 1 << 16;
        Self { slots: vec![None; (BYTES / size_of::<Option<S>>()).next_power_of_two()] }
    }

    /// Whether the state was met lately; it has been from now on.
    #[inline]
    fn contains(&mut self, hash: u64, state: &S) -> bool {
        let mask = self.slots.len() - 1;
        let slot = &mut self.slots[(hash >> 20) as usize & mask];
        let met = slot.as_ref() == Some(state);
        *slot = Some(*state);
        met
    }
}

/// How many parents are expanded between two looks at the bounds: a function of the log's length alone, so that a
/// bound cuts off at the same place for each number of threads.
fn block_size(states: usize) -> u32 {
    (states / 8).clamp(BATCH as usize, 1 << 16) as u32
}

/// Explores `system` breadth-first, exactly.
pub fn explore<S: System>(system: &S, options: &Options) -> Exploration<S::State> {
    let watch = Watch::start(options.bounds);
    let parts = options.threads.max(1).next_power_of_two().min(64);
    let mut search = Search {
        system,
        visited: Visited { log: Log::new(), parts: (0..parts).map(|_| Index::new()).collect() },
        tally: Tally::new(system.choices()),
        sites: vec![None; system.properties().len()],
        seen: 0,
    };
    let mut initial = Vec::new();
    system.initial(&mut |state| initial.push(state));
    for state in initial {
        let hash = state.fingerprint();
        search.insert::<true>(&Pending { state, hash, parent: NO_PARENT, choice: 0 });
    }
    let mut levels = vec![0u32];
    let mut stopped = None;
    let mut expanded = 0u32;
    let mut scratch = Scratch { buffer: Vec::new(), marked: Vec::new(), recent: Recent::new() };
    'levels: loop {
        let end = search.visited.log.len() as u32;
        if expanded == end {
            levels.pop();
            break;
        }
        while expanded < end {
            let states = search.visited.log.len();
            let hit = if watch.is_deepest(levels.len() as u32 - 1) {
                Some(Bound::Depth)
            } else {
                // A block may add more states than it has parents; what the index can number is never at risk.
                watch.hit(states as u64, (MOST_STATES / 2) as u64, search.visited.memory())
            };
            if let Some(by) = hit {
                stopped = Some(Stopped { by, frontier: u64::from(states as u32 - expanded) });
                break 'levels;
            }
            let to = end.min(expanded.saturating_add(block_size(states)));
            if parts > 1 && to - expanded >= parallel::WORTHWHILE {
                parallel::block(&mut search, expanded, to);
            } else if parts > 1 {
                search.block::<true>(expanded, to, &mut scratch);
            } else {
                search.block::<false>(expanded, to, &mut scratch);
            }
            expanded = to;
        }
        levels.push(end);
    }
    let Search { visited, tally, sites, .. } = search;
    Exploration {
        properties: system.properties().to_vec(),
        memory: visited.memory(),
        visited,
        tally,
        sites,
        levels,
        stopped,
    }
}

/// What a search found.
#[derive(Debug)]
pub struct Exploration<S> {
    properties: Vec<Property>,
    visited: Visited<S>,
    tally: Tally,
    sites: Vec<Option<Site>>,
    /// The first state of each level.
    levels: Vec<u32>,
    stopped: Option<Stopped>,
    memory: usize,
}

impl<S: Packed> Exploration<S> {
    /// Different states reached.
    pub fn states(&self) -> u64 {
        self.visited.log.len() as u64
    }

    /// Steps taken, those to known states too.
    pub fn transitions(&self) -> u64 {
        self.tally.transitions
    }

    /// States without steps.
    pub fn terminals(&self) -> u64 {
        self.tally.terminals
    }

    /// States without steps that are no proper end.
    pub fn deadlocks(&self) -> u64 {
        self.tally.deadlocks
    }

    /// A shortest schedule into a deadlock.
    pub fn first_deadlock(&self) -> Option<Found> {
        self.tally.first_deadlock.map(|number| self.found(Site::State(number)))
    }

    /// How many states are first reached after 0, 1, 2, … steps.
    pub fn depths(&self) -> Vec<u64> {
        let ends = self.levels.iter().skip(1).copied().chain([self.visited.log.len() as u32]);
        self.levels.iter().zip(ends).map(|(start, end)| u64::from(end - start)).collect()
    }

    /// Steps to the farthest state.
    pub fn depth(&self) -> u32 {
        (self.levels.len() as u32).saturating_sub(1)
    }

    /// The bound that ended the search; `None` when it is complete.
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    /// Bytes of the visited set.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The choices below `choices` that were never possible.
    pub fn never_taken(&self, choices: u16) -> Vec<Choice> {
        (0..choices).filter(|&choice| !self.tally.taken.contains(choice)).map(Choice).collect()
    }

    /// The properties, in the system's order.
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// Where property `index` was first marked, by a shortest schedule.
    pub fn first(&self, index: usize) -> Option<Found> {
        self.sites.get(index).copied().flatten().map(|site| self.found(site))
    }

    /// The verdict on property `index`: an invariant holds when no state or step breaks it, a witness when one shows it.
    pub fn verdict(&self, index: usize) -> Verdict {
        let marked = self.sites.get(index).copied().flatten().is_some();
        match (self.properties.get(index).map(|property| property.kind), marked, self.stopped) {
            (None, ..) => Verdict::Unknown,
            (Some(Kind::Invariant), true, _) => Verdict::Refuted,
            (Some(Kind::Witness), true, _) => Verdict::Holds,
            (_, false, Some(_)) => Verdict::Bounded,
            (Some(Kind::Invariant), false, None) => Verdict::Holds,
            (Some(Kind::Witness), false, None) => Verdict::Refuted,
        }
    }

    /// The log of states.
    pub fn log(&self) -> &Log<S> {
        &self.visited.log
    }

    /// The number of a state that was reached.
    pub fn number(&self, state: &S) -> Option<u32> {
        self.visited.find(state)
    }

    /// How many steps the state is away from an initial state.
    pub fn depth_of(&self, number: u32) -> u32 {
        (self.levels.partition_point(|&first| first <= number) as u32).saturating_sub(1)
    }

    fn found(&self, site: Site) -> Found {
        let (number, last) = match site {
            Site::State(number) => (number, None),
            Site::Step(parent, choice) => (parent, Some(Choice(choice))),
        };
        let (start, mut schedule) = self.visited.log.schedule(number);
        schedule.extend(last);
        Found { start: start as usize, schedule }
    }
}

#[cfg(test)]
mod tests {
    use super::super::toys::call_loop::{CallLoop, Reductions};
    use super::super::toys::two_phase::TwoPhase;
    use super::*;

    fn threads(threads: usize) -> Options {
        Options { threads, ..Options::default() }
    }

    #[test]
    fn two_phase_commit_has_the_known_numbers_of_states() {
        for (managers, states) in [(3, 288), (5, 8_832)] {
            let found = explore(&TwoPhase::new(managers), &Options::default());
            assert_eq!(found.states(), states);
            assert_eq!(found.stopped(), None);
            assert_eq!(found.verdict(0), Verdict::Holds);
            assert_eq!(found.verdict(1), Verdict::Holds);
        }
    }

    #[test]
    fn the_toy_loop_has_the_known_numbers_in_every_width_and_number_of_threads() {
        let narrow = explore(&CallLoop::<[u64; 1]>::new(1), &threads(1));
        assert_eq!((narrow.states(), narrow.transitions()), (283_218, 1_018_577));
        let wide = explore(&CallLoop::<[u64; 4]>::new(1), &threads(1));
        assert_eq!((wide.states(), wide.transitions()), (283_218, 1_018_577));
        assert_eq!(wide.depths(), narrow.depths());
        for count in [2, 4] {
            let other = explore(&CallLoop::<[u64; 1]>::new(1), &threads(count));
            assert_eq!(other.transitions(), narrow.transitions());
            assert_eq!(other.depths(), narrow.depths());
            assert_eq!(other.terminals(), narrow.terminals());
            for property in 0..4 {
                assert_eq!(other.first(property), narrow.first(property));
            }
            for number in 0..narrow.states() as u32 {
                assert_eq!(other.log().state(number), narrow.log().state(number));
                assert_eq!(other.log().origin(number), narrow.log().origin(number));
                assert_eq!(other.number(narrow.log().state(number)), Some(number));
            }
        }
    }

    /// The states between turns, and the verdicts.
    fn essence(system: &CallLoop<[u64; 1]>) -> (u64, u64, Vec<[u64; 1]>, Vec<Verdict>) {
        let found = explore(system, &Options::default());
        let mut boundary: Vec<_> = (0..found.states() as u32)
            .map(|number| *found.log().state(number))
            .filter(CallLoop::is_boundary)
            .collect();
        boundary.sort_unstable();
        (found.states(), found.transitions(), boundary, (0..4).map(|p| found.verdict(p)).collect())
    }

    #[test]
    fn reductions_leave_the_verdicts_and_the_states_between_turns() {
        let full = essence(&CallLoop::new(1));
        assert_eq!(full.2.len(), 61);
        let mut sizes = Vec::new();
        for bits in 1..8 {
            let reductions =
                Reductions { local_hooks: bits & 1 != 0, fused: bits & 2 != 0, symmetry: bits & 4 != 0 };
            let reduced = essence(&CallLoop::reduced(1, reductions));
            assert!(reduced.0 < full.0, "{reductions:?} saves nothing");
            assert_eq!(reduced.2, full.2, "{reductions:?} changes the states between turns");
            assert_eq!(reduced.3, full.3, "{reductions:?} changes a verdict");
            sizes.push(reduced.0);
        }
        println!("{sizes:?}");
    }
}
