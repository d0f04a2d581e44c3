//! The random world: answers and their order are drawn by weight, from a generator whose stream is fixed by its
//! specification (PCG XSH RR 64/32: the seed is its state, the run's number its stream).

use super::closed::{Choice, WorldState};
use super::outcome::{Outcome, Recorder};
use super::scripted::MAX_STEPS;
use crate::scenario::compile::Compiled;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;
use windtunnel_model::invariants::Invariant;

/// Who picks among the choices of a moment.
pub trait Picker {
    /// The index of the next choice.
    fn pick(&mut self, choices: &[Choice]) -> usize;
}

/// Draws by weight.
#[derive(Debug)]
pub struct Draw(Pcg32);

impl Draw {
    /// The generator of one run.
    pub fn new(seed: u64, run: u64) -> Self {
        Self(Pcg32::new(seed, run))
    }
}

impl Picker for Draw {
    fn pick(&mut self, choices: &[Choice]) -> usize {
        let total: u64 = choices.iter().map(|choice| u64::from(choice.weight)).sum();
        if total == 0 {
            return 0;
        }
        // Multiply-shift: no modulo bias worth naming for totals far below 2^32.
        let mut ticket = (u64::from(self.0.next_u32()) * total) >> 32;
        for (index, choice) in choices.iter().enumerate() {
            let weight = u64::from(choice.weight);
            if ticket < weight {
                return index;
            }
            ticket -= weight;
        }
        choices.len() - 1
    }
}

/// Follows a schedule; after its end, always the first choice.
#[derive(Clone, Debug)]
pub struct Follow<'a> {
    schedule: &'a [u16],
    at: usize,
}

impl<'a> Follow<'a> {
    /// Follows `schedule`.
    pub fn new(schedule: &'a [u16]) -> Self {
        Self { schedule, at: 0 }
    }
}

impl Picker for Follow<'_> {
    fn pick(&mut self, choices: &[Choice]) -> usize {
        let index = self.schedule.get(self.at).copied().map_or(0, usize::from);
        self.at += 1;
        index.min(choices.len() - 1)
    }
}

/// How far a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To its end.
    End,
    /// To the first step that breaks an invariant.
    Broken,
    /// So many steps, whatever they break.
    Steps(u32),
}

/// A run and the schedule that fixes it.
#[derive(Debug)]
pub struct Run {
    /// What it came to.
    pub outcome: Outcome,
    /// The picks at moments with more than one choice.
    pub schedule: Vec<u16>,
}

/// Runs a compiled scenario under a picker. The session is started anew.
pub fn run(compiled: &mut Compiled, picker: &mut dyn Picker, until: Until) -> Run {
    let Compiled { session, world, scripts, player, .. } = compiled;
    session.restart();
    player.restart();
    let mut recorder = Recorder::default();
    let mut state = WorldState::default();
    let mut choices: Vec<Choice> = Vec::new();
    let mut schedule = Vec::new();
    let most = if let Until::Steps(steps) = until { steps.min(MAX_STEPS) } else { MAX_STEPS };
    for _ in 0..most {
        world.choices(session.config(), session.state(), &state, &mut choices);
        let index = match choices.len() {
            0 => break,
            1 => 0,
            _ => {
                let index = picker.pick(&choices);
                schedule.push(u16::try_from(index).unwrap_or(u16::MAX));
                index
            }
        };
        let Some(choice) = choices.get(index).copied() else { break };
        let input = player.label(session, world, &state, scripts, &choice);
        let before = *session.state();
        match session.step(input, None) {
            Ok(step) => {
                world.apply(session.config(), &before, &choice, &mut state);
                player.hear(&step.outputs);
                let broken = !step.broken.is_empty();
                recorder.step(step);
                if broken && until == Until::Broken {
                    break;
                }
            }
            Err(error) => {
                recorder.rejected(error.to_string());
                break;
            }
        }
    }
    Run { outcome: recorder.finish(session), schedule }
}

/// Shrinks a schedule while the same invariant stays broken: shorter prefixes first, then single picks towards the
/// first choice, until nothing helps. The result is never longer than the given one.
pub fn shrink(compiled: &mut Compiled, schedule: &[u16], invariant: Invariant) -> Vec<u16> {
    let mut best = trimmed(schedule.to_vec());
    let mut breaks = |candidate: &[u16]| {
        let run = run(compiled, &mut Follow::new(candidate), Until::Broken);
        run.outcome.broken.contains_key(&invariant).then_some(run.schedule)
    };
    loop {
        let before = best.clone();
        let mut length = best.len();
        while length > 0 {
            length /= 2;
            if let Some(found) = best.get(..length).map(<[u16]>::to_vec).filter(|c| breaks(c).is_some()) {
                best = trimmed(found);
                length = best.len();
            } else if length == 0 {
                break;
            }
        }
        for index in (0..best.len()).rev() {
            // Trimming may have shortened it past this index.
            if index >= best.len() {
                continue;
            }
            let mut without = best.clone();
            without.remove(index);
            if breaks(&without).is_some() {
                best = trimmed(without);
                continue;
            }
            for smaller in 0..best.get(index).copied().unwrap_or(0) {
                let mut lower = best.clone();
                lower[index] = smaller;
                if breaks(&lower).is_some() {
                    best = trimmed(lower);
                    break;
                }
            }
        }
        if best == before || best.len() > before.len() {
            return best;
        }
    }
}

/// A schedule without picks of the first choice at its end: they follow of themselves.
fn trimmed(mut schedule: Vec<u16>) -> Vec<u16> {
    while schedule.last() == Some(&0) {
        schedule.pop();
    }
    schedule
}
