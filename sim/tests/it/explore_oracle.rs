//! The explorer against two oracles: Stateright explores the same systems and must agree on states, transitions and the
//! set of marked properties; a brute-force depth-limited search on tiny systems shows that counterexamples are shortest.
//!
//! The length of Stateright's own counterexamples is not compared: version 0.31.0 overwrites a discovery by a later one
//! as long as another property is open.

use stateright::{Checker as _, Model};
use std::sync::{Arc, Mutex};
use windtunnel::explore::harness::{Harness, Setup};
use windtunnel::explore::toys::call_loop::{CallLoop, Reductions};
use windtunnel::explore::toys::two_phase::TwoPhase;
use windtunnel::explore::{Choice, Exploration, Marks, Options, Property, Step, System, explore};
use windtunnel::scenario::compile::{Compiled, Place, compile};
use windtunnel::scenario::shipped;

/// A shipped scenario in one profile, as a system that owns what it explores: Stateright wants `'static`. The compiled
/// scenario is leaked, once a test.
#[derive(Clone, Copy)]
struct Shipped(&'static Harness<'static, 8>);

impl Shipped {
    fn new(compiled: Compiled) -> Self {
        let compiled: &'static Compiled = Box::leak(Box::new(compiled));
        let harness = Harness::new(compiled, &Setup::default()).expect("it can be explored");
        Self(Box::leak(Box::new(harness)))
    }
}

impl System for Shipped {
    type State = [u64; 8];

    fn initial(&self, emit: &mut impl FnMut([u64; 8])) {
        self.0.initial(emit);
    }

    fn successors(&self, state: &[u64; 8], emit: &mut impl FnMut(Step<[u64; 8]>)) {
        self.0.successors(state, emit);
    }

    fn properties(&self) -> &[Property] {
        self.0.properties()
    }

    fn marks(&self, state: &[u64; 8]) -> Marks {
        self.0.marks(state)
    }

    fn choices(&self) -> u16 {
        self.0.choices()
    }

    fn label(&self, state: &[u64; 8], choice: Choice) -> String {
        self.0.label(state, choice)
    }

    fn fields(&self, state: &[u64; 8]) -> Vec<(String, String)> {
        self.0.fields(state)
    }
}

/// States, transitions, depth and the set of broken invariants and reached outcomes, by two engines.
#[test]
fn stateright_agrees_on_every_shipped_scenario_in_each_of_its_profiles() {
    let mut agreed = 0;
    for loaded in shipped::all().expect("shipped scenarios parse") {
        for profile in loaded.profiles(None).expect("known profiles") {
            let compiled = compile(&loaded, profile, &Place::default()).expect("shipped scenarios compile");
            let skipped = loaded.scenario.explore.is_some_and(|explore| explore.skip)
                || !compiled.world.unmodelled.is_empty()
                || compiled.world.handshakes.iter().any(Option::is_none);
            if !skipped {
                agree(Shipped::new(compiled));
                agreed += 1;
            }
        }
    }
    println!("{agreed} searches agree");
    assert!(agreed >= 50, "only {agreed} searches");
}

/// A system behind Stateright's trait. Its properties are function pointers, so the marks are gathered on the side.
struct Peer<S> {
    system: S,
    marked: Arc<Mutex<u64>>,
}

impl<S, const W: usize> Model for Peer<S>
where
    S: System<State = [u64; W]>,
{
    type State = [u64; W];
    type Action = (u16, u64, [u64; W]);

    fn init_states(&self) -> Vec<Self::State> {
        let mut states = Vec::new();
        self.system.initial(&mut |state| states.push(state));
        states
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        self.system.successors(state, &mut |step: Step<Self::State>| {
            actions.push((step.choice.0, step.marks.0, step.state));
        });
    }

    fn next_state(&self, _: &Self::State, (_, marks, next): Self::Action) -> Option<Self::State> {
        *self.marked.lock().expect("one thread") |= marks | self.system.marks(&next).0;
        Some(next)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        vec![stateright::Property::always(
            "never fails, so that all is explored",
            |_: &Self, _: &[u64; W]| true,
        )]
    }
}

fn marked<S>(explored: &Exploration<S>) -> u64
where
    S: windtunnel::explore::Packed,
{
    (0..explored.properties().len())
        .filter(|&property| explored.first(property).is_some())
        .fold(0, |marks, property| marks | Marks::of(property).0)
}

fn agree<S, const W: usize>(system: S)
where
    S: System<State = [u64; W]> + Clone + Send + Sync + 'static,
{
    let ours = explore(&system, &Options::default());
    assert!(ours.stopped().is_none());
    let gathered = Arc::new(Mutex::new(0));
    let mut initial = 0;
    system.initial(&mut |state| initial |= system.marks(&state).0);
    let theirs = Peer { system: system.clone(), marked: Arc::clone(&gathered) }.checker().spawn_bfs().join();
    assert_eq!(ours.states(), theirs.unique_state_count() as u64);
    assert_eq!(ours.transitions(), theirs.state_count() as u64 - 1);
    assert_eq!(marked(&ours), *gathered.lock().expect("joined") | initial);
    assert_eq!(ours.depth() as usize + 1, theirs.max_depth());
}

#[test]
fn stateright_agrees_on_every_small_system() {
    for managers in 1..=5 {
        agree(TwoPhase::new(managers));
        agree(TwoPhase::aborting_late(managers));
    }
    for bits in 0..8 {
        let reductions =
            Reductions { local_hooks: bits & 1 != 0, fused: bits & 2 != 0, symmetry: bits & 4 != 0 };
        if bits != 0 {
            agree(CallLoop::<[u64; 1]>::reduced(1, reductions));
        }
    }
    agree(CallLoop::<[u64; 4]>::reduced(1, Reductions { local_hooks: true, fused: true, symmetry: true }));
}

/// The least number of steps after which some path marks `property`, by trying all paths of at most `limit` steps.
fn brute_force<S: System>(system: &S, property: usize, limit: usize) -> Option<usize> {
    fn within<S: System>(system: &S, state: &S::State, property: usize, left: usize) -> bool {
        if system.marks(state).contains(property) {
            return true;
        }
        if left == 0 {
            return false;
        }
        let mut steps = Vec::new();
        system.successors(state, &mut |step| steps.push(step));
        steps
            .iter()
            .any(|step| step.marks.contains(property) || within(system, &step.state, property, left - 1))
    }
    let mut initial = Vec::new();
    system.initial(&mut |state| initial.push(state));
    (0..=limit).find(|&depth| initial.iter().any(|state| within(system, state, property, depth)))
}

/// A random directed graph, with marks on some states and on some steps.
#[derive(Clone)]
struct Maze {
    steps: Vec<Vec<(u64, bool)>>,
    marked: u64,
    properties: Vec<Property>,
}

impl Maze {
    fn new(seed: u64) -> Self {
        // SplitMix64, written out: a handful of numbers a maze.
        let mut state = seed;
        let mut next = move |below: u64| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % below
        };
        let states = 4 + next(16);
        let steps =
            (0..states).map(|_| (0..next(4)).map(|_| (next(states), next(12) == 0)).collect()).collect();
        let properties = vec![Property::invariant("state"), Property::invariant("step")];
        Self { steps, marked: states - 1, properties }
    }
}

impl System for Maze {
    type State = [u64; 1];

    fn initial(&self, emit: &mut impl FnMut([u64; 1])) {
        emit([0]);
    }

    fn successors(&self, [at]: &[u64; 1], emit: &mut impl FnMut(Step<[u64; 1]>)) {
        for (choice, (to, marked)) in self.steps[*at as usize].iter().enumerate() {
            emit(Step { marks: Marks::when(*marked, 1), ..Step::new(choice as u16, [*to]) });
        }
    }

    fn properties(&self) -> &[Property] {
        &self.properties
    }

    fn marks(&self, [at]: &[u64; 1]) -> Marks {
        Marks::when(*at == self.marked, 0)
    }

    fn choices(&self) -> u16 {
        4
    }

    fn label(&self, _: &[u64; 1], choice: Choice) -> String {
        format!("door {}", choice.0)
    }

    fn fields(&self, [at]: &[u64; 1]) -> Vec<(String, String)> {
        vec![("room".to_owned(), at.to_string())]
    }
}

#[test]
fn counterexamples_are_shortest() {
    let (mut found, mut none) = (0, 0);
    for seed in 0..300 {
        let maze = Maze::new(seed);
        let explored = explore(&maze, &Options::default());
        for property in 0..2 {
            let ours = explored.first(property).map(|found| found.schedule.len());
            // Longer than the limit the brute force cannot see.
            let brute = brute_force(&maze, property, 7);
            match ours {
                Some(length) if length <= 7 => {
                    assert_eq!(Some(length), brute, "seed {seed}, property {property}");
                    found += 1;
                }
                _ => {
                    assert_eq!(brute, None, "seed {seed}, property {property}");
                    none += 1;
                }
            }
        }
    }
    assert!(found > 100 && none > 50, "{found} found, {none} not: the mazes are too much alike");
    let system = TwoPhase::aborting_late(2);
    let ours = explore(&system, &Options::default()).first(0).map(|found| found.schedule.len());
    assert_eq!(ours, brute_force(&system, 0, 8));
}

#[test]
fn stateright_agrees_on_mazes_with_marked_steps() {
    for seed in 0..200 {
        agree(Maze::new(seed));
    }
}
