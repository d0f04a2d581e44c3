//! Seeded random walks through a system, for what no search reaches the end of. Sampling: it refutes, it never proves.

use super::packed::Packed;
use super::search::Found;
use super::system::{Choice, Step, System};
use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashSet;

/// How to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walks {
    /// The seed; the same one gives the same walks.
    pub seed: u64,
    /// How many walks.
    pub runs: u64,
    /// The most steps of one walk.
    pub steps: u32,
}

/// What the walks found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Steps taken in all.
    pub steps: u64,
    /// Different fingerprints met.
    pub distinct: u64,
    /// Different fingerprints met in the second half of the walks only: near zero where walks meet nothing new any more.
    pub new_late: u64,
    /// Where each property was marked first.
    pub found: Vec<Option<Found>>,
}

/// Walks through `system`.
pub fn walk<S: System>(system: &S, walks: &Walks) -> Sampled {
    let mut random = Pcg64Mcg::seed_from_u64(walks.seed);
    let mut initial = Vec::new();
    system.initial(&mut |state| initial.push(state));
    let mut seen: FxHashSet<u64> = FxHashSet::default();
    let mut sampled =
        Sampled { steps: 0, distinct: 0, new_late: 0, found: vec![None; system.properties().len()] };
    if initial.is_empty() {
        return sampled;
    }
    let mut half = 0;
    let mut steps: Vec<Step<S::State>> = Vec::new();
    for run in 0..walks.runs {
        if run == walks.runs / 2 {
            half = seen.len();
        }
        let start = pick(&mut random, initial.len());
        let mut state = initial[start];
        let mut schedule: Vec<Choice> = Vec::new();
        seen.insert(state.fingerprint());
        let mut marks = system.marks(&state);
        for _ in 0..walks.steps {
            for property in marks.iter() {
                if let Some(first) = sampled.found.get_mut(property) {
                    first.get_or_insert_with(|| Found { start, schedule: schedule.clone() });
                }
            }
            steps.clear();
            system.successors(&state, &mut |step| steps.push(step));
            if steps.is_empty() {
                break;
            }
            let step = steps[pick(&mut random, steps.len())];
            schedule.push(step.choice);
            state = step.state;
            sampled.steps += 1;
            seen.insert(state.fingerprint());
            marks = step.marks.and(system.marks(&state));
        }
        for property in marks.iter() {
            if let Some(first) = sampled.found.get_mut(property) {
                first.get_or_insert_with(|| Found { start, schedule: schedule.clone() });
            }
        }
    }
    sampled.distinct = seen.len() as u64;
    sampled.new_late = (seen.len() - half) as u64;
    sampled
}

/// A number below `len`. Scaled rather than drawn from a range: the library may change how it draws ranges, the stream
/// of words is fixed by the generator's specification.
fn pick(random: &mut Pcg64Mcg, len: usize) -> usize {
    ((u128::from(random.next_u64()) * len as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::super::fingerprint::shows;
    use super::super::toys::two_phase::TwoPhase;
    use super::*;

    #[test]
    fn the_same_seed_walks_the_same_way_and_finds_the_mutant() {
        let system = TwoPhase::aborting_late(2);
        let walks = Walks { seed: 7, runs: 5_000, steps: 40 };
        let sampled = walk(&system, &walks);
        assert_eq!(sampled, walk(&system, &walks));
        let found = sampled.found[0].as_ref().expect("five thousand walks meet it");
        assert!(shows(&system, found, 0));
        assert_ne!(sampled.found, walk(&system, &Walks { seed: 8, ..walks }).found);
    }
}
