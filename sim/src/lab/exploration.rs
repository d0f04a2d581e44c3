//! Explores the scenario of a check, and tells what was found in the model's words.

use crate::explore::harness::{Harness, HarnessError, Setup};
use crate::explore::{Bounds, Kind, Options, cycles, explore, export};
use crate::scenario::compile::{Compiled, Place, compile};
use crate::scenario::load::parse;
use crate::world::random::{Follow, Until, run};
use windtunnel_model::invariants::Invariant;
use windtunnel_model::propositions::{Broken, Exploration, Explored, Lasso};

/// No check needs more states; beyond them its answer is `bounded`.
const MOST_STATES: u64 = 20_000_000;

/// Explores.
pub(super) fn explored(question: &Exploration) -> Result<Explored, String> {
    let text = serde_json::to_string_pretty(&question.scenario).map_err(|error| error.to_string())?;
    let loaded = parse("check.json", text).map_err(|error| error.to_string())?;
    let profiles = loaded.profiles(None).map_err(|error| error.to_string())?;
    let [profile] = profiles.as_slice() else {
        return Err("a check explores one profile at a time".to_owned());
    };
    let mut compiled = compile(&loaded, *profile, &Place::default()).map_err(|error| error.to_string())?;
    compiled.session.set_mutant(question.mutant);
    let setup = Setup { invariants: question.invariants, ..Setup::default() };
    let layout = Harness::<8>::layout(&compiled, &setup).map_err(|error| error.to_string())?;
    match layout.words() {
        0..=1 => search::<1>(&mut compiled, &setup),
        2 => search::<2>(&mut compiled, &setup),
        3..=4 => search::<4>(&mut compiled, &setup),
        5..=8 => search::<8>(&mut compiled, &setup),
        words => Err(HarnessError::TooWide { words }.to_string()),
    }
}

fn search<const W: usize>(compiled: &mut Compiled, setup: &Setup) -> Result<Explored, String> {
    let mut result = Explored::default();
    // The picks of each broken invariant's shortest run; the runs are replayed with payloads afterwards.
    let mut broken: Vec<(Invariant, Vec<u16>, usize)> = Vec::new();
    {
        let harness: Harness<'_, W> = Harness::new(compiled, setup).map_err(|error| error.to_string())?;
        let bounds = Bounds { max_states: Some(MOST_STATES), ..Bounds::default() };
        let explored = explore(&harness, &Options { bounds, threads: 1 });
        if let Some(failure) = harness.failure() {
            return Err(failure.to_string());
        }
        result.states = explored.states();
        result.transitions = explored.transitions();
        result.depth = explored.depth();
        result.deadlocks = explored.deadlocks();
        result.stopped = explored.stopped().map(|stopped| format!("stopped by {}", stopped.by.flag()));
        for (index, property) in explored.properties().iter().enumerate() {
            let Some(found) = explored.first(index) else { continue };
            match property.kind {
                Kind::Witness => result.reached.push(property.name.clone()),
                Kind::Invariant => {
                    let invariant = property.name.parse::<Invariant>().map_err(|error| error.to_string())?;
                    broken.push((invariant, harness.picks(&found.schedule), found.schedule.len()));
                }
            }
        }
        if let cycles::Cycles::Found(lasso) = cycles::without_progress(&harness, &explored) {
            let mut whole = lasso.stem.clone();
            whole.schedule.extend(&lasso.cycle);
            let told = export::sequence(&harness, &whole).map_err(|error| format!("{error:?}"))?;
            let mut choices = told.into_iter().map(|step| step.choice);
            let stem = choices.by_ref().take(lasso.stem.schedule.len()).collect();
            result.lasso = Some(Lasso { stem, cycle: choices.collect() });
        }
    }
    for (invariant, picks, length) in broken {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let replayed = run(compiled, &mut Follow::new(&picks), Until::Steps(length));
        let steps = replayed.outcome.steps;
        if !steps.last().is_some_and(|step| step.broken.contains(&invariant)) {
            return Err(format!("the counterexample of {} does not replay", invariant.name()));
        }
        result.broken.push(Broken { invariant, steps });
    }
    // The shortest run first.
    result.broken.sort_by_key(|broken| broken.steps.len());
    Ok(result)
}
