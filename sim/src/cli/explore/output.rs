//! What `windtunnel explore` prints, draws and saves.

use crate::cli::{CliError, Io};
use crate::explore::export::{Told, itf, sequence};
use crate::explore::harness::Harness;
use crate::explore::{Choice, Found, Stopped};
use crate::scenario::compile::Compiled;
use crate::scenario::load::Loaded;
use crate::scenario::{Schedule, WorldName};
use serde::Serialize;
use std::path::Path;
use windtunnel_model::profile::ProfileName;
use windtunnel_model::state_graph::{StateEdge, StateGraph, StateKind, StateNode};
use windtunnel_model::verdict::Verdict;
use windtunnel_reports::state_graph;

/// A broken invariant.
#[derive(Debug, Serialize)]
pub(super) struct Violation {
    pub(super) invariant: String,
    pub(super) length: usize,
    pub(super) schedule: Vec<Choice>,
    pub(super) steps: Vec<Told>,
    /// Whether a replay shows it again.
    pub(super) confirmed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) saved: Option<String>,
    pub(super) reproduce: String,
}

impl Violation {
    pub(super) fn new<const W: usize>(harness: &Harness<'_, W>, name: &str, found: &Found) -> Self {
        Self {
            invariant: name.to_owned(),
            length: found.schedule.len(),
            schedule: found.schedule.clone(),
            steps: sequence(harness, found).unwrap_or_default(),
            confirmed: false,
            saved: None,
            reproduce: String::new(),
        }
    }
}

/// The answer to "can this happen?".
#[derive(Debug, Serialize)]
pub(super) struct Witness {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) length: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<Told>,
}

impl Witness {
    pub(super) fn new<const W: usize>(
        harness: &Harness<'_, W>,
        name: &str,
        verdict: Verdict,
        found: Option<&Found>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            verdict,
            length: found.map(|found| found.schedule.len()),
            steps: found.and_then(|found| sequence(harness, found).ok()).unwrap_or_default(),
        }
    }
}

/// Whether every run ends.
#[derive(Debug, Serialize)]
pub(super) struct Termination {
    pub(super) verdict: Verdict,
    /// The way into a cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stem: Option<Vec<Told>>,
    /// Once around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cycle: Option<Vec<Told>>,
}

/// Random walks beyond the bound of a search.
#[derive(Debug, Serialize)]
pub(super) struct Simulated {
    pub(super) walks: u64,
    pub(super) seed: u64,
    /// The most steps of one walk.
    pub(super) most_steps: u32,
    /// Steps of all walks together.
    pub(super) steps: u64,
    /// Different states met.
    pub(super) distinct: u64,
    /// Those met in the second half of the walks only.
    pub(super) new_late: u64,
}

/// One scenario in one profile, explored.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) scenario: String,
    #[serde(serialize_with = "profile_word")]
    pub(super) profile: ProfileName,
    pub(super) verdict: Verdict,
    /// Whether what is refuted is exactly what the scenario says.
    pub(super) expected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) states: u64,
    pub(super) transitions: u64,
    pub(super) terminals: u64,
    pub(super) deadlocks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_deadlock: Option<Vec<Told>>,
    pub(super) depth: u32,
    pub(super) depths: Vec<u64>,
    pub(super) cpu_seconds: f64,
    pub(super) bytes_per_state: f64,
    pub(super) exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) collision_odds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<Stopped>,
    /// States of the search without reductions, where both were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) whole_states: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) simulated: Option<Simulated>,
    pub(super) violations: Vec<Violation>,
    pub(super) termination: Termination,
    pub(super) never_taken: Vec<String>,
    pub(super) witnesses: Vec<Witness>,
    /// Outcomes that are reached.
    pub(super) coverage: Vec<String>,
    #[serde(skip)]
    pub(super) every_witness: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn profile_word<S: serde::Serializer>(profile: &ProfileName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(profile.word())
}

impl Report {
    pub(super) fn new(loaded: &Loaded, profile: ProfileName) -> Self {
        Self {
            scenario: loaded.id.clone(),
            profile,
            verdict: Verdict::Unknown,
            expected: true,
            reason: None,
            states: 0,
            transitions: 0,
            terminals: 0,
            deadlocks: 0,
            first_deadlock: None,
            depth: 0,
            depths: Vec::new(),
            cpu_seconds: 0.0,
            bytes_per_state: 0.0,
            exact: true,
            collision_odds: None,
            stopped: None,
            whole_states: None,
            simulated: None,
            violations: Vec::new(),
            termination: Termination { verdict: Verdict::Unknown, stem: None, cycle: None },
            never_taken: Vec::new(),
            witnesses: Vec::new(),
            coverage: Vec::new(),
            every_witness: Vec::new(),
        }
    }
}

impl Report {
    /// The report of a search that could not judge.
    pub(super) fn unknown(mut self, reason: impl Into<String>) -> Self {
        self.verdict = Verdict::Unknown;
        self.reason = Some(reason.into());
        self
    }
}

/// Prints one report for people.
pub(super) fn print(report: &Report, io: &mut Io<'_>) -> std::io::Result<()> {
    let style = match report.verdict {
        Verdict::Holds => anstyle::AnsiColor::Green,
        Verdict::Refuted => anstyle::AnsiColor::Red,
        Verdict::Bounded | Verdict::Unknown | Verdict::Skipped => anstyle::AnsiColor::Yellow,
    }
    .on_default();
    let out = &mut *io.stdout;
    write!(out, "{style}{:8}{style:#} {} [{}]", report.verdict.word(), report.scenario, report.profile)?;
    if report.states > 0 {
        let exact = if report.exact { "" } else { " by fingerprint" };
        write!(
            out,
            " {} states{exact}, {} transitions, {} terminal, depth {}",
            report.states, report.transitions, report.terminals, report.depth
        )?;
    }
    if let Some(odds) = report.collision_odds {
        write!(out, ", odds of a lost state {odds:.1e}")?;
    }
    if let Some(reason) = &report.reason {
        write!(out, ": {reason}")?;
    }
    if report.verdict == Verdict::Refuted && report.expected {
        write!(out, ", as the scenario says")?;
    }
    writeln!(out)?;
    if let Some(stopped) = report.stopped {
        writeln!(out, "  stopped by {}: {} states were not expanded", stopped.by.flag(), stopped.frontier)?;
    }
    if let Some(whole) = report.whole_states {
        let factor = whole as f64 / report.states.max(1) as f64;
        writeln!(out, "  {whole} states without reductions, {factor:.2} times as many; the same verdicts")?;
    }
    if let Some(walks) = &report.simulated {
        writeln!(
            out,
            "  {} random walks of at most {} steps beyond it (seed {}): {} steps, {} different states, {} of them only in the second half",
            walks.walks, walks.most_steps, walks.seed, walks.steps, walks.distinct, walks.new_late
        )?;
    }
    for violation in &report.violations {
        let confirmed = if violation.confirmed { "" } else { " (NOT CONFIRMED by a replay)" };
        writeln!(out, "  {} is broken after {} steps{confirmed}:", violation.invariant, violation.length)?;
        told(&violation.steps, out)?;
        writeln!(out, "  reproduce: {}", violation.reproduce)?;
    }
    if let (Some(stem), Some(cycle)) = (&report.termination.stem, &report.termination.cycle) {
        writeln!(out, "  a run may go on for ever: after")?;
        told(stem, out)?;
        writeln!(out, "  again and again")?;
        told(cycle, out)?;
    }
    if let Some(steps) = &report.first_deadlock {
        writeln!(out, "  {} states have no next step and are no end:", report.deadlocks)?;
        told(steps, out)?;
    }
    for witness in &report.witnesses {
        match witness.length {
            Some(length) => writeln!(out, "  {} happens after {length} steps:", witness.name)?,
            None if witness.verdict == Verdict::Refuted => writeln!(out, "  {} cannot happen", witness.name)?,
            None => writeln!(out, "  {} was not found within the bounds", witness.name)?,
        }
        told(&witness.steps, out)?;
    }
    for what in &report.never_taken {
        writeln!(out, "  note: {what}")?;
    }
    Ok(())
}

/// A sequence, with what each step changes.
fn told(steps: &[Told], out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let bold = anstyle::Style::new().bold();
    for (index, step) in steps.iter().enumerate() {
        writeln!(out, "  {:>4}. {}", index + 1, step.choice)?;
        for change in &step.changed {
            let to = change.to.as_deref().unwrap_or("–");
            match &change.from {
                Some(from) => writeln!(out, "          {}: {from} → {bold}{to}{bold:#}", change.field)?,
                None => writeln!(out, "          {}: {bold}{to}{bold:#}", change.field)?,
            }
        }
    }
    Ok(())
}

/// Writes a state graph in the format that the file's name asks for.
pub(super) fn draw(graph: &StateGraph, path: &Path) -> Result<(), CliError> {
    let mut text = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("dot") => state_graph::dot(graph, &mut text)?,
        Some("svg") => state_graph::svg(graph, &mut text)?,
        Some("aut") => state_graph::aut(graph, &mut text)?,
        Some("graphml") => state_graph::graphml(graph, &mut text)?,
        _ => {
            return Err(CliError::with_hint(
                format!("`{}` names no format of a state graph", path.display()),
                "the file's name ends in .dot, .svg, .aut or .graphml",
            ));
        }
    }
    write(path, &text)
}

fn write(path: &Path, text: &[u8]) -> Result<(), CliError> {
    std::fs::write(path, text).map_err(|source| CliError::File { path: path.to_owned(), source })
}

/// Saves a counterexample: the scenario that `run` replays, its text, an ITF trace, and a drawing. Gives the path of
/// the scenario.
#[expect(clippy::too_many_arguments, reason = "everything that the four files are made from")]
pub(super) fn save<const W: usize>(
    loaded: &Loaded,
    profile: ProfileName,
    compiled: &Compiled,
    harness: &Harness<'_, W>,
    found: &Found,
    picks: &[u16],
    violation: &Violation,
    folder: &Path,
) -> Result<String, CliError> {
    std::fs::create_dir_all(folder).map_err(|source| CliError::File { path: folder.to_owned(), source })?;
    let stem = format!("{}.{profile}.{}", loaded.id.replace('/', "-"), violation.invariant);
    let mut scenario = loaded.scenario.clone();
    scenario.title = format!("{} (breaks {})", scenario.title, violation.invariant);
    scenario.profiles = vec![profile.word().to_owned()];
    scenario.worlds = vec![WorldName::Scripted];
    scenario.world.schedule = Some(Schedule {
        choices: picks.to_vec(),
        table: compiled.world.table_hash(compiled.session.config()),
    });
    scenario.expect = crate::scenario::Expectation {
        breaks: vec![violation.invariant.clone()],
        ..crate::scenario::Expectation::default()
    };
    scenario.expect_in.clear();
    let path = folder.join(format!("{stem}.json"));
    write(&path, (serde_json::to_string_pretty(&scenario)? + "\n").as_bytes())?;
    if let Ok(trace) = itf(&loaded.file, harness, found) {
        write(
            &folder.join(format!("{stem}.itf.json")),
            (serde_json::to_string_pretty(&trace)? + "\n").as_bytes(),
        )?;
    }
    let mut text = Vec::new();
    writeln!(
        text,
        "{} [{profile}]: {} is broken after {} steps",
        loaded.id, violation.invariant, violation.length
    )?;
    told(&violation.steps, &mut text)?;
    write(&folder.join(format!("{stem}.txt")), anstream::adapter::strip_bytes(&text).into_vec().as_slice())?;
    draw(&path_graph(&stem, violation), &folder.join(format!("{stem}.svg")))?;
    Ok(path.display().to_string())
}

use std::io::Write as _;

/// A counterexample as a graph: one state after the other.
fn path_graph(name: &str, violation: &Violation) -> StateGraph {
    let mut graph = StateGraph { name: name.to_owned(), ..StateGraph::default() };
    let start = vec![("phase".to_owned(), "start".to_owned())];
    graph.nodes.push(StateNode { fields: start, kind: StateKind::Initial, depth: 0 });
    for (index, step) in violation.steps.iter().enumerate() {
        let fields = step
            .changed
            .iter()
            .filter_map(|change| Some((change.field.clone(), change.to.clone()?)))
            .collect();
        let last = index + 1 == violation.steps.len();
        graph.nodes.push(StateNode {
            fields,
            kind: if last { StateKind::Violation } else { StateKind::Inner },
            depth: u32::try_from(index + 1).unwrap_or(u32::MAX),
        });
        graph.edges.push(StateEdge { from: index, to: index + 1, label: step.choice.clone() });
    }
    graph
}
