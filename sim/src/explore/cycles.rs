//! Cycles without progress: what keeps a run from ending. One pass over the edges of a complete search, which are
//! generated anew; what lies on no cycle is peeled off first, the rest goes to petgraph's strongly connected components.

use super::search::{Exploration, Found};
use super::system::{Choice, Step, System};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::VecDeque;

/// A way into a cycle and once around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasso {
    /// The way in: a shortest schedule to the first state of the cycle.
    pub stem: Found,
    /// Once around: the choices of a shortest cycle through that state.
    pub cycle: Vec<Choice>,
}

/// What the search for cycles came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cycles {
    /// There is none: every run ends (or, where some steps are progress, makes progress for ever).
    None,
    /// There is one.
    Found(Lasso),
    /// The search was bounded and what was explored has none.
    Bounded,
}

/// Looks for a cycle of steps none of which is progress ([`System::is_progress`]).
pub fn without_progress<S: System>(system: &S, explored: &Exploration<S::State>) -> Cycles {
    let states = explored.states() as usize;
    let edges = |number: u32, emit: &mut dyn FnMut(u32, Choice)| {
        let from = *explored.log().state(number);
        system.successors(&from, &mut |step: Step<S::State>| {
            if !system.is_progress(&from, &step)
                && let Some(to) = explored.number(&step.state)
            {
                emit(to, step.choice);
            }
        });
    };
    // Peel off, again and again, what nothing leads to: the rest is cycles and what they lead to.
    let mut incoming = vec![0u32; states];
    for number in 0..states as u32 {
        edges(number, &mut |to, _| incoming[to as usize] += 1);
    }
    let mut free: Vec<u32> = (0..states as u32).filter(|&number| incoming[number as usize] == 0).collect();
    let mut left = states;
    while let Some(number) = free.pop() {
        left -= 1;
        edges(number, &mut |to, _| {
            incoming[to as usize] -= 1;
            if incoming[to as usize] == 0 {
                free.push(to);
            }
        });
    }
    if left == 0 {
        return if explored.stopped().is_none() { Cycles::None } else { Cycles::Bounded };
    }
    let rest: Vec<u32> = (0..states as u32).filter(|&number| incoming[number as usize] > 0).collect();
    let mut graph: DiGraph<u32, ()> = DiGraph::with_capacity(rest.len(), rest.len());
    for &number in &rest {
        graph.add_node(number);
    }
    for (position, &number) in rest.iter().enumerate() {
        edges(number, &mut |to, _| {
            if let Ok(target) = rest.binary_search(&to) {
                graph.update_edge(NodeIndex::new(position), NodeIndex::new(target), ());
            }
        });
    }
    let entry = petgraph::algo::kosaraju_scc(&graph)
        .into_iter()
        .filter(|component| {
            component.len() > 1 || component.iter().any(|&node| graph.find_edge(node, node).is_some())
        })
        .flatten()
        .map(|node| graph[node])
        .min();
    let Some(entry) = entry else {
        return if explored.stopped().is_none() { Cycles::None } else { Cycles::Bounded };
    };
    let (start, schedule) = explored.log().schedule(entry);
    let stem = Found { start: start as usize, schedule };
    Cycles::Found(Lasso { stem, cycle: around(entry, states, &edges) })
}

/// The shortest way from `entry` back to it.
fn around(entry: u32, states: usize, edges: &impl Fn(u32, &mut dyn FnMut(u32, Choice))) -> Vec<Choice> {
    let mut reached: Vec<Option<(u32, Choice)>> = vec![None; states];
    let mut queue = VecDeque::from([entry]);
    while let Some(number) = queue.pop_front() {
        edges(number, &mut |to, choice| {
            if let Some(origin @ None) = reached.get_mut(to as usize) {
                *origin = Some((number, choice));
                queue.push_back(to);
            }
        });
        if reached[entry as usize].is_some() {
            break;
        }
    }
    let mut cycle = Vec::new();
    let mut at = entry;
    while let Some((from, choice)) = reached[at as usize] {
        cycle.push(choice);
        at = from;
        if at == entry {
            break;
        }
    }
    cycle.reverse();
    cycle
}

#[cfg(test)]
mod tests {
    use super::super::system::{Property, replay};
    use super::super::toys::two_phase::TwoPhase;
    use super::super::{Bounds, Options, explore};
    use super::*;

    /// A stem of three states, then a ring of four whose last step may be progress.
    struct Ring {
        progress: bool,
    }

    impl System for Ring {
        type State = [u64; 1];

        fn initial(&self, emit: &mut impl FnMut([u64; 1])) {
            emit([0]);
        }

        fn successors(&self, [at]: &[u64; 1], emit: &mut impl FnMut(Step<[u64; 1]>)) {
            emit(Step::new(0, [if *at == 6 { 3 } else { at + 1 }]));
        }

        fn is_progress(&self, [from]: &[u64; 1], _: &Step<[u64; 1]>) -> bool {
            self.progress && *from == 6
        }

        fn choices(&self) -> u16 {
            1
        }

        fn label(&self, _: &[u64; 1], _: Choice) -> String {
            "on".to_owned()
        }

        fn fields(&self, [at]: &[u64; 1]) -> Vec<(String, String)> {
            vec![("at".to_owned(), at.to_string())]
        }

        fn properties(&self) -> &[Property] {
            &[]
        }
    }

    #[test]
    fn a_ring_is_found_with_its_stem_unless_it_makes_progress() {
        let ring = Ring { progress: false };
        let explored = explore(&ring, &Options::default());
        let Cycles::Found(lasso) = without_progress(&ring, &explored) else { panic!("there is a cycle") };
        assert_eq!((lasso.stem.schedule.len(), lasso.cycle.len()), (3, 4));
        let whole: Vec<Choice> = lasso.stem.schedule.iter().chain(&lasso.cycle).copied().collect();
        let steps = replay(&ring, 0, &whole).expect("it replays").steps;
        assert_eq!(steps[2].state, steps[6].state);
        let fair = Ring { progress: true };
        assert_eq!(without_progress(&fair, &explore(&fair, &Options::default())), Cycles::None);
    }

    #[test]
    fn what_a_bound_cut_off_is_not_judged() {
        let ring = Ring { progress: false };
        let bounds = Bounds { max_depth: Some(4), ..Bounds::default() };
        let explored = explore(&ring, &Options { bounds, threads: 1 });
        assert_eq!(without_progress(&ring, &explored), Cycles::Bounded);
    }

    #[test]
    fn steps_that_change_nothing_are_cycles() {
        // A manager that has heard the commit may hear it again.
        let system = TwoPhase::new(2);
        let explored = explore(&system, &Options::default());
        let Cycles::Found(lasso) = without_progress(&system, &explored) else { panic!("there is a cycle") };
        assert_eq!(lasso.cycle.len(), 1);
    }
}
