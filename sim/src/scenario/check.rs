//! Comparing a run with what its scenario expects. All invariants are judged besides, expected or not.

use super::{Expectation, WorldName};
use crate::world::outcome::Outcome;
use std::collections::BTreeMap;
use windtunnel_model::invariants::Invariant;

/// Every difference between a run and what is expected of it, in words; empty when there is none.
pub fn differences(expect: &Expectation, outcome: &Outcome, world: WorldName) -> Vec<String> {
    let mut differences = Vec::new();
    if let Some(why) = &outcome.rejected {
        differences.push(format!("the harness rejected what the world said: {why}"));
    }
    let end = outcome.end.map_or("did not end", |end| end.word());
    if outcome.end.is_none() {
        differences.push("the run did not end".to_owned());
    }
    // The random world has many runs; only what must hold in all of them is judged there.
    if world != WorldName::Random {
        if let Some(expected) = expect.end.as_deref().filter(|expected| *expected != end) {
            differences.push(format!("end: expected {expected}, found {end}"));
        }
        compare_calls(expect, outcome, &mut differences);
        compare_counts(expect, outcome, &mut differences);
        compare_maps("server", &expect.servers, &outcome.servers, &mut differences);
        for (server, expected) in &expect.sent {
            let found = outcome.sent.get(server).cloned().unwrap_or_default();
            if *expected != found {
                differences.push(format!(
                    "sent to {server}: expected {}, found {}",
                    expected.join(", "),
                    found.join(", ")
                ));
            }
        }
    }
    for invariant in broken_unexpectedly(expect, outcome) {
        let step = outcome.broken.get(&invariant).copied().unwrap_or_default();
        differences.push(format!("{invariant} broken at step {step}: {}", invariant.sentence()));
    }
    if world != WorldName::Random {
        for name in &expect.breaks {
            if !outcome.broken.keys().any(|invariant| invariant.name() == name) {
                differences.push(format!("{name}: expected to be broken, it holds"));
            }
        }
    }
    differences
}

/// Invariants that a run breaks although its scenario does not say so.
pub fn broken_unexpectedly(expect: &Expectation, outcome: &Outcome) -> Vec<Invariant> {
    let expected = |invariant: &&Invariant| expect.breaks.iter().any(|name| name == invariant.name());
    outcome.broken.keys().filter(|invariant| !expected(invariant)).copied().collect()
}

fn compare_calls(expect: &Expectation, outcome: &Outcome, differences: &mut Vec<String>) {
    for (id, expected) in &expect.calls {
        // The last call of an id: a script may repeat its turn.
        let found = outcome.calls.iter().rev().find(|call| call.id == *id);
        let end = match found {
            None => "no such call",
            Some(call) => match call.end {
                Some(end) => end.word(),
                None if call.decision == Some(windtunnel_model::hooks::HookDecision::Defer) => "deferred",
                None => "no result",
            },
        };
        if end != expected {
            differences.push(format!("call {id}: expected {expected}, found {end}"));
        }
    }
    for (id, expected) in &expect.texts {
        let found = outcome.calls.iter().rev().find(|call| call.id == *id);
        let text = found.map_or("", |call| call.text.as_str());
        if !text.contains(expected.as_str()) {
            differences.push(format!("text of {id}: expected to contain `{expected}`, found `{text}`"));
        }
    }
    if let Some(expected) = expect.result_order.as_ref().filter(|order| **order != outcome.result_order) {
        differences.push(format!(
            "order of results: expected {}, found {}",
            expected.join(", "),
            outcome.result_order.join(", ")
        ));
    }
}

fn compare_counts(expect: &Expectation, outcome: &Outcome, differences: &mut Vec<String>) {
    let counts = [
        ("model calls", expect.model_calls, outcome.model_calls),
        ("hook runs", expect.hook_runs, outcome.hook_runs),
    ];
    for (what, expected, found) in counts {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            differences.push(format!("{what}: expected {expected}, found {found}"));
        }
    }
}

fn compare_maps(
    what: &str,
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
    differences: &mut Vec<String>,
) {
    for (name, expected) in expected {
        let found = found.get(name).map_or("nothing", String::as_str);
        if found != expected {
            differences.push(format!("{what} {name}: expected {expected}, found {found}"));
        }
    }
}
