//! What was explored, for other eyes: as a state graph, and a counterexample as an ITF trace (the JSON format of
//! Apalache and Quint, ADR 015 of Apalache).

use super::search::{Exploration, Found};
use super::system::{Kind, Marks, ReplayError, Replayed, Step, System, replay};
use serde_json::{Map, Value, json};
use windtunnel_model::state_graph::{StateEdge, StateGraph, StateKind, StateNode};

/// The graph of the first `most` states in breadth-first order.
pub fn graph<S: System>(name: &str, system: &S, explored: &Exploration<S::State>, most: usize) -> StateGraph {
    let drawn = explored.log().len().min(most) as u32;
    let invariants = system
        .properties()
        .iter()
        .enumerate()
        .filter(|(_, property)| property.kind == Kind::Invariant)
        .fold(Marks::NONE, |marks, (index, _)| marks.and(Marks::of(index)));
    let broken = |marks: Marks| marks.0 & invariants.0 != 0;
    let mut nodes: Vec<StateNode> = (0..drawn)
        .map(|number| {
            let state = explored.log().state(number);
            let kind = if broken(system.marks(state)) {
                StateKind::Violation
            } else if explored.log().origin(number).is_none() {
                StateKind::Initial
            } else {
                StateKind::Inner
            };
            StateNode { fields: system.fields(state), kind, depth: explored.depth_of(number) }
        })
        .collect();
    let mut edges = Vec::new();
    let mut truncated = explored.stopped().is_some() || explored.log().len() > most;
    for from in 0..drawn {
        let state = *explored.log().state(from);
        let mut steps = 0;
        system.successors(&state, &mut |step: Step<S::State>| {
            steps += 1;
            match explored.number(&step.state).filter(|&to| to < drawn) {
                Some(to) => {
                    if broken(step.marks) {
                        nodes[to as usize].kind = StateKind::Violation;
                    }
                    edges.push(StateEdge {
                        from: from as usize,
                        to: to as usize,
                        label: system.label(&state, step.choice),
                    });
                }
                None => truncated = true,
            }
        });
        let node = &mut nodes[from as usize];
        if steps == 0 && node.kind == StateKind::Inner {
            node.kind = if system.is_final(&state) { StateKind::Final } else { StateKind::Deadlock };
        }
    }
    StateGraph { name: name.to_owned(), nodes, edges, truncated }
}

/// A schedule as an ITF trace: one record a state with its fields, and the choice that led to it.
///
/// # Errors
/// When the schedule does not replay.
pub fn itf<S: System>(source: &str, system: &S, found: &Found) -> Result<Value, ReplayError> {
    let Replayed { first, steps } = replay(system, found.start, &found.schedule)?;
    let record = |index: usize, state: &S::State, action: &str| {
        let mut record = Map::new();
        record.insert("#meta".to_owned(), json!({ "index": index }));
        record.insert("action".to_owned(), action.into());
        for (name, value) in system.fields(state) {
            record.insert(name, value.into());
        }
        Value::Object(record)
    };
    let mut states = vec![record(0, &first, "start")];
    let mut before = first;
    for (index, step) in steps.iter().enumerate() {
        states.push(record(index + 1, &step.state, &system.label(&before, step.choice)));
        before = step.state;
    }
    // Fields that exist in some states only (a call's, say) are empty in the others: ITF wants every variable in each.
    let mut names: Vec<String> = Vec::new();
    for state in states.iter().filter_map(Value::as_object) {
        for name in state.keys().filter(|name| *name != "#meta") {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    for state in states.iter_mut().filter_map(Value::as_object_mut) {
        for name in &names {
            state.entry(name.clone()).or_insert_with(|| "".into());
        }
    }
    Ok(json!({ "#meta": { "format": "ITF", "source": source }, "vars": names, "states": states }))
}

/// A counterexample in the words of the domain: each step with the fields that it changed.
///
/// # Errors
/// When the schedule does not replay.
pub fn sequence<S: System>(system: &S, found: &Found) -> Result<Vec<Told>, ReplayError> {
    let Replayed { first, steps } = replay(system, found.start, &found.schedule)?;
    let mut from = first;
    let mut before = system.fields(&first);
    Ok(steps
        .iter()
        .map(|step| {
            let after = system.fields(&step.state);
            let mut changed: Vec<Change> = Vec::new();
            for (name, value) in &after {
                let old = before.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
                if old.as_ref() != Some(value) {
                    changed.push(Change { field: name.clone(), from: old, to: Some(value.clone()) });
                }
            }
            for (name, value) in &before {
                if after.iter().all(|(other, _)| other != name) {
                    changed.push(Change { field: name.clone(), from: Some(value.clone()), to: None });
                }
            }
            before = after;
            let choice = system.label(&from, step.choice);
            from = step.state;
            Told { choice, changed }
        })
        .collect())
}

/// One step of a counterexample.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Told {
    /// The choice in the words of the domain.
    pub choice: String,
    /// What it changed.
    pub changed: Vec<Change>,
}

/// A field that a step changed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Its name.
    pub field: String,
    /// Its value before; none where it was not there.
    pub from: Option<String>,
    /// Its value after; none where it is gone.
    pub to: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::toys::two_phase::TwoPhase;
    use super::super::{Options, explore};
    use super::*;

    #[test]
    fn the_graph_has_every_state_and_step_and_marks_the_violation() {
        let system = TwoPhase::aborting_late(2);
        let explored = explore(&system, &Options::default());
        let graph = graph("two-phase commit", &system, &explored, 10_000);
        assert_eq!(graph.nodes.len() as u64, explored.states());
        assert_eq!(graph.edges.len() as u64, explored.transitions());
        assert!(!graph.truncated);
        assert!(graph.nodes.iter().any(|node| node.kind == StateKind::Violation));
        assert!(super::graph("part", &system, &explored, 5).truncated);
    }

    #[test]
    fn an_itf_trace_has_every_variable_in_every_state() {
        let system = TwoPhase::aborting_late(2);
        let explored = explore(&system, &Options::default());
        let found = explored.first(0).expect("the mutant breaks consistency");
        let trace = itf("two-phase", &system, &found).expect("it replays");
        let states = trace["states"].as_array().expect("states");
        assert_eq!(states.len(), found.schedule.len() + 1);
        let vars = trace["vars"].as_array().expect("vars");
        assert!(
            states.iter().all(|state| vars.iter().all(|var| state.get(var.as_str().unwrap_or("")).is_some()))
        );
        let told = sequence(&system, &found).expect("it replays");
        assert!(told.iter().all(|step| !step.changed.is_empty()));
    }
}
