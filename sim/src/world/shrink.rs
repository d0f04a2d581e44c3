//! Shrinking the configuration of a failing run: whatever part of the scenario can be left out while the same invariant
//! stays broken is left out, then the schedule is shrunk again.

use super::random::{Draw, Follow, Until, run, shrink};
use crate::scenario::compile::{Compiled, Place, compile};
use crate::scenario::load::{Loaded, parse};
use serde_json::Value;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::mutant::Mutant;
use windtunnel_model::profile::ProfileName;

/// Random runs that a smaller scenario gets to break the invariant once more.
const DRAWS: u64 = 40;
/// Passes over all parts; each pass that removes nothing is the last.
const PASSES: usize = 4;

/// What is kept the same while the scenario gets smaller.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// The profile in force.
    pub profile: ProfileName,
    /// The invariant that is broken.
    pub invariant: Invariant,
    /// The wrong rule in force, in tests of the checks.
    pub mutant: Option<Mutant>,
    /// The seed of the draws.
    pub seed: u64,
}

/// A smaller scenario and the schedule that breaks the same invariant in it. The scenario's expectations are left out:
/// they speak of the whole one.
pub fn shrink_configuration(loaded: &Loaded, schedule: &[u16], failure: Failure) -> (Loaded, Vec<u16>) {
    let mut best = (loaded.clone(), schedule.to_vec());
    let Ok(mut value) = serde_json::to_value(&loaded.scenario) else { return best };
    if let Some(fields) = value.as_object_mut() {
        fields.remove("expect");
        fields.remove("expect_in");
    }
    for _ in 0..PASSES {
        let mut removed = false;
        // Deepest and last parts first, so that the pointers of those that are still to come stay valid.
        for pointer in parts(&value).into_iter().rev() {
            let mut candidate = value.clone();
            if !remove(&mut candidate, &pointer) {
                continue;
            }
            if let Some(found) = attempt(&best.0, &candidate, &best.1, failure) {
                best = found;
                value = candidate;
                removed = true;
            }
        }
        if !removed {
            break;
        }
    }
    best
}

/// Whether the candidate still breaks the invariant: under the old schedule, or in some draw.
fn attempt(
    loaded: &Loaded,
    candidate: &Value,
    schedule: &[u16],
    failure: Failure,
) -> Option<(Loaded, Vec<u16>)> {
    let text = serde_json::to_string_pretty(candidate).ok()?;
    let mut smaller = parse(&loaded.file, text).ok()?;
    smaller.id.clone_from(&loaded.id);
    let mut compiled = compile(&smaller, failure.profile, &Place::default()).ok()?;
    compiled.session.set_mutant(failure.mutant);
    let found = breaking(&mut compiled, schedule, failure)?;
    let schedule = shrink(&mut compiled, &found, failure.invariant);
    Some((smaller, schedule))
}

fn breaking(compiled: &mut Compiled, schedule: &[u16], failure: Failure) -> Option<Vec<u16>> {
    let followed = run(compiled, &mut Follow::new(schedule), Until::Broken);
    if followed.outcome.broken.contains_key(&failure.invariant) {
        return Some(followed.schedule);
    }
    (0..DRAWS).find_map(|number| {
        let drawn = run(compiled, &mut Draw::new(failure.seed, number), Until::Broken);
        drawn.outcome.broken.contains_key(&failure.invariant).then_some(drawn.schedule)
    })
}

/// Every part of harness and world that could be left out, parents before children.
fn parts(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for section in ["harness", "world"] {
        if let Some(part) = value.get(section) {
            collect(part, &format!("/{section}"), &mut found);
        }
    }
    found
}

fn collect(value: &Value, pointer: &str, found: &mut Vec<String>) {
    let mut child = |key: String, value: &Value| {
        let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        collect(value, &pointer, found);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| child(key.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, value)| child(n.to_string(), value)),
        _ => {}
    }
}

fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return false };
    let key = key.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.shift_remove(&key).is_some(),
        Some(Value::Array(items)) => match key.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}
