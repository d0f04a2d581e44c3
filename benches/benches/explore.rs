//! The explorer against Stateright, on the same systems, in the same run, on one thread.
//!
//! `cargo bench -p windtunnel-benches --bench explore -- [--json] [--rounds N] [--only TEXT] [--large] [--plot FILE]`
//!
//! `--large` measures what takes minutes and gigabytes; `--plot` measures the same systems at growing sizes, once each,
//! and draws states a processor second against states as SVG.
//!
//! Every line prints unique states and transitions, so that a faster run that explores less is caught.

use stateright::{Checker, Model};
use std::hash::Hash;
use std::path::PathBuf;
use windtunnel::explore::harness::{Harness, Reductions, Setup};
use windtunnel::explore::toys::call_loop::{self as toys, CallLoop};
use windtunnel::explore::toys::two_phase::TwoPhase;
use windtunnel::explore::{Bounds, Options, System, explore, sweep};
use windtunnel::scenario::compile::{Compiled, Place, compile};
use windtunnel::scenario::load::parse;
use windtunnel::world::random;
use windtunnel_benches::measure::{self, Sample};
use windtunnel_benches::peers::{Packed, idiomatic};
use windtunnel_model::profile::ProfileName;
use windtunnel_reports::plot::{Chart, Lines, Series};

/// One measurement: a system, the engine that explores it, and how to run it.
struct Subject {
    /// What the flags and the child know it by.
    id: &'static str,
    /// The system.
    system: &'static str,
    /// The engine and the form of the state.
    engine: &'static str,
    /// The work that is measured.
    run: fn() -> Sample,
    /// When it is measured.
    set: Set,
}

/// What is measured together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    /// Without flags.
    Usual,
    /// By `--large`.
    Large,
    /// By `--plot`.
    Scaling,
}

const LOOP: &str = "toy loop, 2 turns";
/// The engine that keeps 64-bit fingerprints: its odds of a lost state are told.
const FINGERPRINTS: &str = "ours, fingerprints";
const COMMIT: &str = "two-phase commit, 8 managers";

/// Everything that is measured, peers included.
const SUBJECTS: [Subject; 36] = [
    small("loop-ours-8", LOOP, "ours, 8-byte states", || ours(&CallLoop::<[u64; 1]>::new(2), 1)),
    small("loop-ours-32", LOOP, "ours, 32-byte states", || ours(&CallLoop::<[u64; 4]>::new(2), 1)),
    small("loop-ours-64", LOOP, "ours, 64-byte states", || ours(&CallLoop::<[u64; 8]>::new(2), 1)),
    small("loop-ours-8-two", LOOP, "ours, 8-byte states, 2 threads", || {
        ours(&CallLoop::<[u64; 1]>::new(2), 2)
    }),
    small("loop-local", "toy loop, 2 turns, local hooks", "ours, 8-byte states", || {
        reduced(toys::Reductions { local_hooks: true, ..toys::Reductions::default() })
    }),
    small("loop-fused", "toy loop, 2 turns, hook and rule fused", "ours, 8-byte states", || {
        reduced(toys::Reductions { fused: true, ..toys::Reductions::default() })
    }),
    small("loop-symmetry", "toy loop, 2 turns, symmetry", "ours, 8-byte states", || {
        reduced(toys::Reductions { symmetry: true, ..toys::Reductions::default() })
    }),
    small("loop-reduced", "toy loop, 2 turns, all three", "ours, 8-byte states", || {
        reduced(toys::Reductions { local_hooks: true, fused: true, symmetry: true })
    }),
    small("loop-dfs-packed", LOOP, "stateright dfs, packed", || depth_first(packed_loop())),
    small("loop-bfs-packed", LOOP, "stateright bfs, packed", || breadth_first(packed_loop())),
    small("loop-dfs-idiomatic", LOOP, "stateright dfs, idiomatic", || {
        depth_first(idiomatic::Loop { turns: 2 })
    }),
    small("loop-bfs-idiomatic", LOOP, "stateright bfs, idiomatic", || {
        breadth_first(idiomatic::Loop { turns: 2 })
    }),
    small("2pc-ours", COMMIT, "ours, 8-byte states", || ours(&TwoPhase::new(8), 1)),
    small("2pc-dfs", COMMIT, "stateright dfs, packed", || depth_first(Packed(TwoPhase::new(8)))),
    small("2pc-bfs", COMMIT, "stateright bfs, packed", || breadth_first(Packed(TwoPhase::new(8)))),
    small("harness-1", "harness, 1 turn", "ours", || harness(1, Reductions::NONE)),
    small("harness-2", "harness, 2 turns", "ours", || harness(2, Reductions::NONE)),
    small("harness-4", "harness, 4 turns", "ours", || harness(4, Reductions::NONE)),
    small("harness-4-reduced", "harness, 4 turns, reduced", "ours", || harness(4, Reductions::ALL)),
    small(
        "harness-random",
        "harness, 4 turns, 20,000 random runs",
        "ours, steps of the whole session",
        || random_steps(4),
    ),
    large("harness-large", "harness, 18 turns", FINGERPRINTS, || swept(18)),
    large("loop-large", "toy loop, 35 turns", "ours, 8-byte states", || {
        ours(&CallLoop::<[u64; 1]>::new(35), 1)
    }),
    large("loop-large-64", "toy loop, 8 turns", "ours, 64-byte states", || {
        ours(&CallLoop::<[u64; 8]>::new(8), 1)
    }),
    scaling("scale-loop-1", "toy loop, 1 turn", "ours, 8-byte states", || toy(1)),
    scaling("scale-loop-2", LOOP, "ours, 8-byte states", || toy(2)),
    scaling("scale-loop-4", "toy loop, 4 turns", "ours, 8-byte states", || toy(4)),
    scaling("scale-loop-8", "toy loop, 8 turns", "ours, 8-byte states", || toy(8)),
    scaling("scale-dfs-1", "toy loop, 1 turn", "stateright dfs, packed", || {
        depth_first(Packed(CallLoop::<[u64; 1]>::new(1)))
    }),
    scaling("scale-dfs-2", LOOP, "stateright dfs, packed", || depth_first(packed_loop())),
    scaling("scale-dfs-4", "toy loop, 4 turns", "stateright dfs, packed", || {
        depth_first(Packed(CallLoop::<[u64; 1]>::new(4)))
    }),
    scaling("scale-bfs-1", "toy loop, 1 turn", "stateright bfs, packed", || {
        breadth_first(Packed(CallLoop::<[u64; 1]>::new(1)))
    }),
    scaling("scale-bfs-2", LOOP, "stateright bfs, packed", || breadth_first(packed_loop())),
    scaling("scale-harness-1", "harness, 1 turn", "ours, the real harness", || harness(1, Reductions::NONE)),
    scaling("scale-harness-2", "harness, 2 turns", "ours, the real harness", || harness(2, Reductions::NONE)),
    scaling("scale-harness-4", "harness, 4 turns", "ours, the real harness", || harness(4, Reductions::NONE)),
    scaling("scale-harness-8", "harness, 8 turns", "ours, the real harness", || harness(8, Reductions::NONE)),
];

const fn small(id: &'static str, system: &'static str, engine: &'static str, run: fn() -> Sample) -> Subject {
    Subject { id, system, engine, run, set: Set::Usual }
}

const fn large(id: &'static str, system: &'static str, engine: &'static str, run: fn() -> Sample) -> Subject {
    Subject { id, system, engine, run, set: Set::Large }
}

const fn scaling(
    id: &'static str,
    system: &'static str,
    engine: &'static str,
    run: fn() -> Sample,
) -> Subject {
    Subject { id, system, engine, run, set: Set::Scaling }
}

/// A ratio that is promised: how many times faster `ours` is than `peer` in states per processor second.
struct Target {
    ours: &'static str,
    peer: &'static str,
    least: f64,
    aim: f64,
}

const TARGETS: [Target; 3] = [
    Target { ours: "loop-ours-8", peer: "loop-dfs-packed", least: 2.0, aim: 2.5 },
    Target { ours: "loop-ours-8", peer: "loop-bfs-packed", least: 5.0, aim: 6.0 },
    Target { ours: "loop-ours-8", peer: "loop-bfs-idiomatic", least: 10.0, aim: 12.0 },
];

/// The promised bytes a state, of the whole process at its peak.
const MOST_BYTES: [(&str, f64); 2] = [("loop-ours-8", 45.0), ("loop-ours-64", 95.0)];

fn reduced(reductions: toys::Reductions) -> Sample {
    ours(&CallLoop::<[u64; 1]>::reduced(2, reductions), 1)
}

fn toy(turns: u8) -> Sample {
    ours(&CallLoop::<[u64; 1]>::new(turns), 1)
}

fn packed_loop() -> Packed<CallLoop<[u64; 1]>> {
    Packed(CallLoop::new(2))
}

fn ours<S: System>(system: &S, threads: usize) -> Sample {
    let found = explore(system, &Options { threads, ..Options::default() });
    assert!(found.stopped().is_none(), "the search is complete");
    Sample { states: Some(found.states()), transitions: Some(found.transitions()), ..Sample::default() }
}

/// The real harness, with all invariants that need no payloads.
fn harness(turns: u8, reductions: Reductions) -> Sample {
    let compiled = compiled(turns);
    let setup = Setup { reductions, ..Setup::default() };
    match Harness::<8>::layout(&compiled, &setup).expect("it fits").words() {
        0..=2 => exact(&Harness::<2>::new(&compiled, &setup).expect("it fits")),
        3..=4 => exact(&Harness::<4>::new(&compiled, &setup).expect("it fits")),
        _ => exact(&Harness::<8>::new(&compiled, &setup).expect("it fits")),
    }
}

fn exact<const W: usize>(harness: &Harness<'_, W>) -> Sample {
    let sample = ours(harness, 1);
    assert_eq!(harness.failure(), None);
    sample
}

/// The harness by fingerprints.
fn swept(turns: u8) -> Sample {
    let compiled = compiled(turns);
    let harness = Harness::<4>::new(&compiled, &Setup::default()).expect("it fits");
    let swept = sweep(&harness, Bounds::default());
    assert!(swept.stopped.is_none() && harness.failure().is_none(), "the search is complete");
    Sample { states: Some(swept.states), transitions: Some(swept.transitions), ..Sample::default() }
}

/// Random runs of the whole session, payloads and all.
fn random_steps(turns: u8) -> Sample {
    let mut compiled = compiled(turns);
    let mut steps = 0;
    for number in 0..20_000 {
        let run = random::run(&mut compiled, &mut random::Draw::new(1, number), random::Until::Broken);
        steps += run.outcome.steps.len() as u64;
    }
    Sample { operations: Some(steps), ..Sample::default() }
}

fn compiled(turns: u8) -> Compiled {
    let loaded =
        parse("harness.json", windtunnel_benches::harness::scenario(turns)).expect("the scenario parses");
    compile(&loaded, ProfileName::Documented, &Place::default()).expect("the scenario compiles")
}

fn depth_first<M>(model: M) -> Sample
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + PartialEq,
{
    peer(&model.checker().threads(1).spawn_dfs().join())
}

fn breadth_first<M>(model: M) -> Sample
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + PartialEq,
{
    peer(&model.checker().threads(1).spawn_bfs().join())
}

/// Stateright's `state_count` counts the initial state and every successor, known ones too.
fn peer<M: Model>(checker: &impl Checker<M>) -> Sample {
    Sample {
        states: Some(checker.unique_state_count() as u64),
        transitions: Some(checker.state_count() as u64 - 1),
        ..Sample::default()
    }
}

/// The flags of the benchmark; `--bench` comes from cargo.
struct Flags {
    json: bool,
    rounds: usize,
    only: Option<String>,
    large: bool,
    plot: Option<PathBuf>,
}

fn flags() -> Result<Flags, String> {
    let mut flags = Flags { json: false, rounds: 3, only: None, large: false, plot: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            "--json" => flags.json = true,
            "--large" => flags.large = true,
            "--plot" => {
                flags.plot = Some(arguments.next().ok_or("--plot needs the name of an SVG file")?.into());
            }
            "--only" => flags.only = Some(arguments.next().ok_or("--only needs a text")?),
            "--rounds" => {
                flags.rounds = arguments
                    .next()
                    .and_then(|rounds| rounds.parse().ok())
                    .ok_or("--rounds needs a number")?;
            }
            other => return Err(format!("unknown flag {other}")),
        }
    }
    Ok(flags)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(id) = measure::asked_for() {
        let subject = SUBJECTS.iter().find(|subject| subject.id == id).ok_or("no such subject")?;
        measure::be_child(subject.run)?;
        return Ok(());
    }
    let flags = flags()?;
    let set = match (&flags.plot, flags.large) {
        (Some(_), _) => Set::Scaling,
        (None, true) => Set::Large,
        (None, false) => Set::Usual,
    };
    let chosen: Vec<&Subject> = SUBJECTS
        .iter()
        .filter(|subject| subject.set == set)
        .filter(|subject| flags.only.as_deref().is_none_or(|text| subject.id.contains(text)))
        .collect();
    let ids: Vec<&str> = chosen.iter().map(|subject| subject.id).collect();
    let samples = measure::rounds(&ids, if set == Set::Usual { flags.rounds } else { 1 })?;
    let measured: Vec<(&Subject, Sample)> = chosen.into_iter().zip(samples).collect();
    agree(&measured)?;
    for (subject, sample) in &measured {
        let ratios = ratios(subject, &measured);
        if flags.json {
            println!("{}", line(subject, sample, &ratios));
        } else {
            row(subject, sample, &ratios);
        }
    }
    if let Some(path) = &flags.plot {
        std::fs::write(path, windtunnel_reports::plot::svg(&scaling_chart(&measured))?)?;
    }
    Ok(())
}

/// States a processor second against states, a line an engine.
fn scaling_chart(measured: &[(&Subject, Sample)]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for (subject, sample) in measured {
        let states = sample.states.unwrap_or(0) as f64;
        let point = (states / 1e6, states / sample.cpu_seconds.max(1e-9) / 1e6);
        match series.iter_mut().find(|series| series.name == subject.engine) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: subject.engine.to_owned(), points: vec![point] }),
        }
    }
    Chart::Lines(Lines {
        title: "Exploring: speed as systems grow, one thread".to_owned(),
        x: "states (millions)".to_owned(),
        y: "states a processor second (millions)".to_owned(),
        series,
        markers: Vec::new(),
    })
}

/// All engines must see the same numbers of states and transitions of one system.
fn agree(measured: &[(&Subject, Sample)]) -> Result<(), String> {
    for (subject, sample) in measured {
        for (other, theirs) in measured.iter().filter(|(other, _)| other.system == subject.system) {
            if (sample.states, sample.transitions) != (theirs.states, theirs.transitions) {
                return Err(format!("{} and {} differ: {sample:?}, {theirs:?}", subject.id, other.id));
            }
        }
    }
    Ok(())
}

/// The promised ratios of `subject` with what was measured, and whether each is met.
fn ratios<'a>(
    subject: &Subject,
    measured: &[(&'a Subject, Sample)],
) -> Vec<(&'a Subject, f64, Option<&'static Target>)> {
    let time =
        |id: &str| measured.iter().find(|(other, _)| other.id == id).map(|(_, sample)| sample.cpu_seconds);
    let Some(ours) = time(subject.id).filter(|_| subject.engine.starts_with("ours")) else {
        return Vec::new();
    };
    measured
        .iter()
        .filter(|(other, _)| other.system == subject.system && !other.engine.starts_with("ours"))
        .map(|(other, sample)| {
            let target = TARGETS.iter().find(|target| target.ours == subject.id && target.peer == other.id);
            (*other, sample.cpu_seconds / ours, target)
        })
        .collect()
}

/// The odds that two states of a search by fingerprints share one: `n^2 / 2^65`.
fn collision_odds(subject: &Subject, sample: &Sample) -> Option<f64> {
    let states = sample.states.filter(|_| subject.engine == FINGERPRINTS)? as f64;
    Some(states * states / 2f64.powi(65))
}

fn bytes_per_state(sample: &Sample) -> Option<f64> {
    sample.states.map(|states| sample.peak_bytes as f64 / states as f64)
}

fn line(
    subject: &Subject,
    sample: &Sample,
    ratios: &[(&Subject, f64, Option<&Target>)],
) -> serde_json::Value {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let mut line = serde_json::json!({
        "bench": "explore",
        "subject": subject.system,
        "engine": subject.engine,
        "states": sample.states,
        "transitions": sample.transitions,
        "operations": sample.operations,
        "cpu_seconds": rounded(sample.cpu_seconds),
        "bytes_per_state": bytes_per_state(sample).map(rounded),
        "peak_bytes": sample.peak_bytes,
        "states_per_cpu_second": sample.states.map(|states| (states as f64 / sample.cpu_seconds).round()),
    });
    if let Some(odds) = collision_odds(subject, sample) {
        line["collision_odds"] = odds.into();
    }
    if let Some((_, most)) = MOST_BYTES.iter().find(|(id, _)| *id == subject.id) {
        line["most_bytes_per_state"] = (*most).into();
    }
    if !ratios.is_empty() {
        line["times_faster_than"] = ratios
            .iter()
            .map(|(peer, ratio, target)| {
                let mut entry = serde_json::json!({ "engine": peer.engine, "ratio": rounded(*ratio) });
                if let Some(target) = target {
                    entry["least"] = target.least.into();
                    entry["aim"] = target.aim.into();
                    entry["met"] = (*ratio >= target.least).into();
                }
                entry
            })
            .collect();
    }
    line
}

fn row(subject: &Subject, sample: &Sample, ratios: &[(&Subject, f64, Option<&Target>)]) {
    if let Some(operations) = sample.operations {
        let (seconds, rate) = (sample.cpu_seconds, operations as f64 / sample.cpu_seconds);
        println!(
            "{:36} {:30} {operations:>11} steps {seconds:>8.3} cpu-s {rate:>10.0} steps/cpu-s",
            subject.system, subject.engine
        );
        return;
    }
    let states = sample.states.unwrap_or(0);
    println!(
        "{:30} {:30} {states:>11} states {:>12} transitions {:>8.3} cpu-s {:>6.2} M states/cpu-s {:>6.1} B/state",
        subject.system,
        subject.engine,
        sample.transitions.unwrap_or(0),
        sample.cpu_seconds,
        states as f64 / sample.cpu_seconds / 1e6,
        bytes_per_state(sample).unwrap_or(0.0),
    );
    if let Some(odds) = collision_odds(subject, sample) {
        println!("{:30}   odds of a lost state {odds:.1e}", "");
    }
    for (peer, ratio, target) in ratios {
        let promise = target.map_or(String::new(), |target| {
            let word = if *ratio >= target.aim {
                "aim met"
            } else if *ratio >= target.least {
                "met"
            } else {
                "NOT MET"
            };
            format!(" (at least {}, aim {}: {word})", target.least, target.aim)
        });
        println!("{:30}   {ratio:.2} times {}{promise}", "", peer.engine);
    }
}
