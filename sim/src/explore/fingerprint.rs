//! Depth-first search over 64-bit fingerprints, for what does not fit: 8 to 16 bytes a state, no parents, no shortest
//! counterexamples. Two states with one fingerprint count as one; the odds of that are stated, and every counterexample
//! is replayed before it is believed.

use super::bounds::{Bound, Bounds, Stopped, Watch};
use super::memory::{in_huge_pages, prefetch};
use super::packed::Packed;
use super::search::{Found, Taken};
use super::system::{Choice, Kind, Marks, Property, Replayed, Step, System, replay};
use windtunnel_model::verdict::Verdict;

/// A set of fingerprints in segments that grow by themselves, so that growth never needs much more than the set.
struct Fingerprints {
    segments: Vec<Segment>,
    len: u64,
}

struct Segment {
    /// 0 is empty.
    slots: Vec<u64>,
    taken: usize,
}

const SEGMENT_BITS: u32 = 8;
const SMALLEST: usize = 64;

impl Segment {
    /// The slot where `fingerprint` is looked for first: its lower bits scaled to the length.
    fn home(&self, fingerprint: u64) -> usize {
        ((fingerprint as u32 as u64 * self.slots.len() as u64) >> 32) as usize
    }

    fn insert(&mut self, fingerprint: u64) -> bool {
        // At most 3 slots in 4 are taken; growth is by a half.
        if self.taken * 4 >= self.slots.len() * 3 {
            let larger = self.slots.len() + self.slots.len() / 2;
            let old = std::mem::replace(&mut self.slots, vec![0; larger]);
            in_huge_pages(&self.slots);
            self.taken = 0;
            for fingerprint in old.into_iter().filter(|&slot| slot != 0) {
                self.place(fingerprint);
            }
        }
        self.place(fingerprint)
    }

    fn place(&mut self, fingerprint: u64) -> bool {
        let mut at = self.home(fingerprint);
        loop {
            match self.slots[at] {
                0 => {
                    self.slots[at] = fingerprint;
                    self.taken += 1;
                    return true;
                }
                slot if slot == fingerprint => return false,
                _ => at = if at + 1 == self.slots.len() { 0 } else { at + 1 },
            }
        }
    }
}

impl Fingerprints {
    fn new() -> Self {
        let segment = || Segment { slots: vec![0; SMALLEST], taken: 0 };
        Self { segments: (0..1 << SEGMENT_BITS).map(|_| segment()).collect(), len: 0 }
    }

    /// 0 marks an empty slot, so the fingerprint 0 is taken for 1: one more possible collision in 2^64.
    fn of<S: Packed>(state: &S) -> u64 {
        state.fingerprint().max(1)
    }

    fn prefetch(&self, fingerprint: u64) {
        let segment = &self.segments[(fingerprint >> (64 - SEGMENT_BITS)) as usize];
        prefetch(&segment.slots, segment.home(fingerprint));
    }

    fn insert(&mut self, fingerprint: u64) -> bool {
        let new = self.segments[(fingerprint >> (64 - SEGMENT_BITS)) as usize].insert(fingerprint);
        self.len += u64::from(new);
        new
    }

    fn memory(&self) -> usize {
        self.segments.iter().map(|segment| segment.slots.len() * size_of::<u64>()).sum()
    }
}

/// What a fingerprint search found.
#[derive(Clone, Debug)]
pub struct Swept {
    properties: Vec<Property>,
    found: Vec<Option<Found>>,
    taken: Taken,
    /// Different fingerprints met.
    pub states: u64,
    /// Steps taken.
    pub transitions: u64,
    /// States without steps.
    pub terminals: u64,
    /// States without steps that are no proper end.
    pub deadlocks: u64,
    /// A schedule into a deadlock.
    pub first_deadlock: Option<Found>,
    /// The longest path that was followed.
    pub depth: u32,
    /// The bound that ended the search.
    pub stopped: Option<Stopped>,
    /// Bytes of the set and of the stack at its highest.
    pub memory: usize,
}

impl Swept {
    /// The odds that some state was lost to a collision, `n² / 2^65`, as TLC states them.
    pub fn collision_odds(&self) -> f64 {
        let states = self.states as f64;
        states * states / 2f64.powi(65)
    }

    /// Where property `index` was marked first; replayed, not shortest.
    pub fn first(&self, index: usize) -> Option<&Found> {
        self.found.get(index)?.as_ref()
    }

    /// The verdict on property `index`; `holds` up to the stated odds.
    pub fn verdict(&self, index: usize) -> Verdict {
        let Some(property) = self.properties.get(index) else { return Verdict::Unknown };
        match (property.kind, self.first(index).is_some(), self.stopped.is_some()) {
            (Kind::Invariant, true, _) | (Kind::Witness, false, false) => Verdict::Refuted,
            (Kind::Witness, true, _) | (Kind::Invariant, false, false) => Verdict::Holds,
            (_, false, true) => Verdict::Bounded,
        }
    }

    /// The choices below `choices` that were never possible.
    pub fn never_taken(&self, choices: u16) -> Vec<Choice> {
        (0..choices).filter(|&choice| !self.taken.contains(choice)).map(Choice).collect()
    }
}

/// A state still to be expanded: how it was reached, and how deep it lies.
struct Frame<S> {
    state: S,
    choice: u16,
    depth: u32,
}

/// How often the clock and the memory are looked at, in states.
const LOOK: u64 = 1 << 12;

/// Explores `system` depth-first by fingerprints.
pub fn sweep<S: System>(system: &S, bounds: Bounds) -> Swept {
    let watch = Watch::start(bounds);
    let mut set = Fingerprints::new();
    let mut swept = Swept {
        properties: system.properties().to_vec(),
        found: vec![None; system.properties().len()],
        taken: Taken::new(system.choices()),
        states: 0,
        transitions: 0,
        terminals: 0,
        deadlocks: 0,
        first_deadlock: None,
        depth: 0,
        stopped: None,
        memory: 0,
    };
    let mut initial = Vec::new();
    system.initial(&mut |state| initial.push(state));
    let mut stack: Vec<Frame<S::State>> = Vec::new();
    let mut steps: Vec<(Step<S::State>, u64)> = Vec::new();
    let mut cut = 0u64;
    'starts: for (start, state) in initial.into_iter().enumerate() {
        if !set.insert(Fingerprints::of(&state)) {
            continue;
        }
        let mut path = Path { start, choices: Vec::new() };
        swept.note(system, system.marks(&state), &path, None);
        stack.push(Frame { state, choice: 0, depth: 0 });
        while let Some(frame) = stack.pop() {
            path.choices.truncate((frame.depth as usize).saturating_sub(1));
            if frame.depth > 0 {
                path.choices.push(Choice(frame.choice));
            }
            swept.depth = swept.depth.max(frame.depth);
            if watch.is_deepest(frame.depth) {
                cut += 1;
                continue;
            }
            if set.len.is_multiple_of(LOOK) || bounds.max_states.is_some() {
                let memory = set.memory() + stack.capacity() * size_of::<Frame<S::State>>();
                swept.memory = swept.memory.max(memory);
                if let Some(by) = watch.hit(set.len, u64::MAX, memory) {
                    swept.stopped = Some(Stopped { by, frontier: stack.len() as u64 + 1 });
                    break 'starts;
                }
            }
            steps.clear();
            system.successors(&frame.state, &mut |step| {
                let fingerprint = Fingerprints::of(&step.state);
                set.prefetch(fingerprint);
                steps.push((step, fingerprint));
            });
            swept.transitions += steps.len() as u64;
            if steps.is_empty() {
                swept.terminals += 1;
                if !system.is_final(&frame.state) {
                    swept.deadlocks += 1;
                    if swept.first_deadlock.is_none() {
                        swept.first_deadlock = Some(path.found(None));
                    }
                }
            }
            for (step, fingerprint) in &steps {
                swept.taken.insert(step.choice.0);
                swept.note(system, step.marks, &path, Some(step.choice));
                if set.insert(*fingerprint) {
                    swept.note(system, system.marks(&step.state), &path, Some(step.choice));
                    stack.push(Frame { state: step.state, choice: step.choice.0, depth: frame.depth + 1 });
                }
            }
        }
    }
    if swept.stopped.is_none() && cut > 0 {
        swept.stopped = Some(Stopped { by: Bound::Depth, frontier: cut });
    }
    swept.memory = swept.memory.max(set.memory());
    swept.states = set.len;
    swept
}

/// The path to the state that is being expanded.
struct Path {
    start: usize,
    choices: Vec<Choice>,
}

impl Path {
    fn found(&self, last: Option<Choice>) -> Found {
        Found { start: self.start, schedule: self.choices.iter().copied().chain(last).collect() }
    }
}

impl Swept {
    /// Keeps the first place of each mark, once replaying the schedule shows it: a path through two states that were
    /// taken for one would not replay.
    fn note<S: System>(&mut self, system: &S, marks: Marks, path: &Path, last: Option<Choice>) {
        for property in marks.iter() {
            if let Some(first @ None) = self.found.get_mut(property) {
                let found = path.found(last);
                if shows(system, &found, property) {
                    *first = Some(found);
                }
            }
        }
    }
}

/// Whether replaying `found` ends in a mark on `property`.
pub fn shows<S: System>(system: &S, found: &Found, property: usize) -> bool {
    let Ok(Replayed { first, steps }) = replay(system, found.start, &found.schedule) else { return false };
    let marks = match steps.last() {
        None => system.marks(&first),
        Some(step) => step.marks.and(system.marks(&step.state)),
    };
    marks.contains(property)
}

#[cfg(test)]
mod tests {
    use super::super::toys::call_loop::CallLoop;
    use super::super::toys::two_phase::TwoPhase;
    use super::super::{Options, explore};
    use super::*;

    #[test]
    fn a_sweep_counts_as_the_exact_search_does() {
        let system = CallLoop::<[u64; 4]>::new(1);
        let (swept, exact) = (sweep(&system, Bounds::default()), explore(&system, &Options::default()));
        assert_eq!(swept.states, exact.states());
        assert_eq!(swept.transitions, exact.transitions());
        assert_eq!(swept.terminals, exact.terminals());
        assert!(swept.collision_odds() > 0.0 && swept.collision_odds() < 1e-8);
        for property in 0..4 {
            assert_eq!(swept.verdict(property), exact.verdict(property));
        }
    }

    #[test]
    fn a_counterexample_of_a_sweep_replays() {
        let system = TwoPhase::aborting_late(3);
        let swept = sweep(&system, Bounds::default());
        let found = swept.first(0).expect("the mutant breaks consistency");
        assert!(shows(&system, found, 0));
        assert_eq!(swept.verdict(0), Verdict::Refuted);
    }

    #[test]
    fn a_bound_is_never_holds() {
        let bounds = Bounds { max_states: Some(100), ..Bounds::default() };
        let swept = sweep(&TwoPhase::new(5), bounds);
        assert_eq!(swept.verdict(0), Verdict::Bounded);
        assert!(swept.stopped.is_some_and(|stopped| stopped.frontier > 0));
    }
}
