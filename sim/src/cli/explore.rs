//! `windtunnel explore`: every reachable state of scenarios, with shortest counterexamples.

use super::explore_output::{Report, Termination, Violation, Witness, draw, print, save};
use super::{CliError, Exit, Format, Io, write_json};
use crate::explore::harness::{Harness, HarnessError, Reductions, Setup};
use crate::explore::{Bounds, Exploration, Found, Kind, Options, cycles, explore, export, shows, sweep};
use crate::scenario::compile::{Compiled, Place, compile};
use crate::scenario::load::{Loaded, load_paths};
use crate::scenario::shipped;
use std::path::PathBuf;
use std::time::Duration;
use windtunnel_model::agent_loop::Input;
use windtunnel_model::invariants::{Invariant, InvariantSet};
use windtunnel_model::profile::ProfileName;
use windtunnel_model::verdict::Verdict;

/// Arguments of `explore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel explore                                    every scenario that ships
  windtunnel explore my.json --profile teaching --save failures
  windtunnel explore my.json --invariant I-DENY --graph states.svg
  windtunnel explore my.json --witness call:refused_by_hook")]
pub struct ExploreArgs {
    /// Scenario files and folders; without any, the scenarios that ship.
    paths: Vec<PathBuf>,
    /// Judge this invariant only (may be given more than once); default: all that need no payloads.
    #[arg(long, value_name = "I")]
    invariant: Vec<Invariant>,
    /// Ask whether this can happen, e.g. `end:completed`, `call:timed_out`; refuted where it cannot.
    #[arg(long, value_name = "W")]
    witness: Vec<String>,
    /// The profile, instead of those that each scenario names (default: documented).
    #[arg(long, value_name = "P")]
    profile: Option<ProfileName>,
    /// Write the state graph of the (only) scenario: .dot, .svg, .aut or .graphml.
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Where counterexamples are saved: as a scenario that `run` replays, as text, as an ITF trace and as a drawing.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Threads of one search; the result is the same for each number.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Stop at so many states.
    #[arg(long, value_name = "N")]
    max_states: Option<u64>,
    /// Stop when the visited set takes so many bytes.
    #[arg(long, value_name = "BYTES")]
    max_memory: Option<usize>,
    /// Take no more steps than this.
    #[arg(long, value_name = "N")]
    max_depth: Option<u32>,
    /// Stop a search after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Keep 64-bit fingerprints instead of states: for what does not fit. The odds of a collision are printed.
    #[arg(long)]
    fingerprint: bool,
    /// Leave out steps that change no verdict. Counterexamples may then be longer than the shortest.
    #[arg(long)]
    reduce: bool,
    /// A search that a bound ended counts as not judged: exit code 2.
    #[arg(long)]
    require_complete: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Explores.
///
/// # Errors
/// When a scenario cannot be read, a witness has no such name, or something cannot be written.
pub fn run(args: &ExploreArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let scenarios = if args.paths.is_empty() {
        shipped::all().map_err(|error| vec![*error])
    } else {
        load_paths(&args.paths, &io.cwd)
    };
    let scenarios = match scenarios {
        Ok(scenarios) => scenarios,
        Err(errors) => return super::run::report_errors(&errors, io),
    };
    let jobs = jobs(args, &scenarios)?;
    if args.graph.is_some() && jobs.len() != 1 {
        return Err(CliError::with_hint(
            format!("--graph draws one search, found {} (scenario × profile)", jobs.len()),
            "name one scenario and, with --profile, one profile",
        ));
    }
    let mut reports = Vec::with_capacity(jobs.len());
    for (loaded, profile) in jobs {
        let report = match compile(loaded, profile, &Place::default()) {
            Ok(compiled) => one(args, loaded, profile, &compiled, io)?,
            Err(error) => return super::run::report_errors(&[*error], io),
        };
        if args.format == Format::Text {
            print(&report, io)?;
        }
        reports.push(report);
    }
    let exit = exit(args, &reports);
    if args.format == Format::Json {
        write_json(io, "explore", &serde_json::json!({ "scenarios": reports }))?;
    } else {
        summary(&reports, io)?;
    }
    Ok(exit)
}

fn exit(args: &ExploreArgs, reports: &[Report]) -> Exit {
    if reports.iter().any(|report| report.verdict == Verdict::Refuted && !report.expected) {
        return Exit::Refuted;
    }
    let open = |verdict| verdict == Verdict::Unknown || verdict == Verdict::Bounded && args.require_complete;
    if reports.iter().any(|report| open(report.verdict)) { Exit::CannotJudge } else { Exit::Holds }
}

fn jobs<'a>(args: &ExploreArgs, scenarios: &'a [Loaded]) -> Result<Vec<(&'a Loaded, ProfileName)>, CliError> {
    let mut jobs = Vec::new();
    for loaded in scenarios {
        let profiles = loaded
            .profiles(args.profile)
            .map_err(|error| CliError::input(format!("{}: {error}", loaded.file)))?;
        jobs.extend(profiles.into_iter().map(|profile| (loaded, profile)));
    }
    Ok(jobs)
}

fn summary(reports: &[Report], io: &mut Io<'_>) -> std::io::Result<()> {
    let count = |verdict| reports.iter().filter(|report| report.verdict == verdict).count();
    let states: u64 = reports.iter().map(|report| report.states).sum();
    let cpu: f64 = reports.iter().map(|report| report.cpu_seconds).sum();
    writeln!(
        io.stdout,
        "\n{} hold, {} refuted, {} bounded, {} unknown, {} skipped; {states} states, {cpu:.2} cpu-s",
        count(Verdict::Holds),
        count(Verdict::Refuted),
        count(Verdict::Bounded),
        count(Verdict::Unknown),
        count(Verdict::Skipped)
    )?;
    let shown = |name: &str| reports.iter().any(|report| report.coverage.iter().any(|shown| shown == name));
    let all: Vec<&str> =
        reports.iter().flat_map(|report| report.every_witness.iter().map(String::as_str)).collect();
    let mut missing: Vec<&str> = all.into_iter().filter(|name| !shown(name)).collect();
    missing.sort_unstable();
    missing.dedup();
    let total = reports.first().map_or(0, |report| report.every_witness.len());
    writeln!(io.stdout, "coverage: {} of {total} outcomes are reached", total - missing.len())?;
    if !missing.is_empty() {
        writeln!(io.stdout, "never reached: {}", missing.join(", "))?;
    }
    Ok(())
}

/// Processor seconds of this process so far.
fn cpu_seconds() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0.0 };
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn one(
    args: &ExploreArgs,
    loaded: &Loaded,
    profile: ProfileName,
    compiled: &Compiled,
    io: &mut Io<'_>,
) -> Result<Report, CliError> {
    let invariants: InvariantSet = if args.invariant.is_empty() {
        InvariantSet::all()
    } else {
        args.invariant.iter().copied().collect()
    };
    let reductions = if args.reduce { Reductions::ALL } else { Reductions::NONE };
    let setup = Setup { invariants, reductions, ..Setup::default() };
    let mut report = Report::new(loaded, profile);
    if loaded.scenario.explore.is_some_and(|explore| explore.skip) {
        report.verdict = Verdict::Skipped;
        report.reason = Some("the scenario asks not to be explored".to_owned());
        return Ok(report);
    }
    if compiled.world.handshakes.iter().any(Option::is_none) {
        report.verdict = Verdict::Skipped;
        report.reason = Some("a server has no script: only the process world can answer for it".to_owned());
        return Ok(report);
    }
    if let Some(what) = compiled.world.unmodelled.first() {
        report.verdict = Verdict::Skipped;
        report.reason = Some(format!("only the process world can play it: {what}"));
        return Ok(report);
    }
    let job = Job { args, loaded, compiled, setup: &setup };
    let words = match Harness::<8>::layout(compiled, &setup) {
        Ok(layout) => layout.words(),
        Err(error) => {
            report.verdict = Verdict::Unknown;
            report.reason = Some(error.to_string());
            return Ok(report);
        }
    };
    match words {
        0..=1 => job.search::<1>(report, io),
        2 => job.search::<2>(report, io),
        3..=4 => job.search::<4>(report, io),
        5..=8 => job.search::<8>(report, io),
        words => {
            report.verdict = Verdict::Unknown;
            report.reason = Some(HarnessError::TooWide { words }.to_string());
            Ok(report)
        }
    }
}

/// One search.
struct Job<'a> {
    args: &'a ExploreArgs,
    loaded: &'a Loaded,
    compiled: &'a Compiled,
    setup: &'a Setup,
}

impl Job<'_> {
    fn search<const W: usize>(&self, mut report: Report, io: &mut Io<'_>) -> Result<Report, CliError> {
        let harness: Harness<'_, W> = match Harness::new(self.compiled, self.setup) {
            Ok(harness) => harness,
            Err(error) => {
                report.verdict = Verdict::Unknown;
                report.reason = Some(error.to_string());
                return Ok(report);
            }
        };
        let own = self.loaded.scenario.explore.unwrap_or_default();
        let bounds = Bounds {
            max_states: self.args.max_states.or(own.max_states),
            max_memory: self.args.max_memory,
            max_depth: self.args.max_depth.or(own.max_depth),
            timeout: self.args.timeout.map(Duration::from_secs),
        };
        let before = cpu_seconds();
        let found = if self.args.fingerprint {
            self.swept(&harness, bounds, &mut report)
        } else {
            let options = Options { bounds, threads: usize::from(self.args.threads) };
            let explored = explore(&harness, &options);
            report.cpu_seconds = cpu_seconds() - before;
            self.explored(&harness, &explored, &mut report, io)?
        };
        if self.args.fingerprint {
            report.cpu_seconds = cpu_seconds() - before;
        }
        if let Some(failure) = harness.failure() {
            report.verdict = Verdict::Unknown;
            report.reason = Some(failure.to_string());
            return Ok(report);
        }
        if self.setup.reductions == Reductions::NONE {
            self.judge(&harness, found, &mut report, io)?;
            return Ok(report);
        }
        // What is told and saved is a run of the whole system, where every call keeps its place.
        let plain = Setup { reductions: Reductions::NONE, ..*self.setup };
        let plain: Harness<'_, W> = match Harness::new(self.compiled, &plain) {
            Ok(plain) => plain,
            Err(error) => return Err(CliError::input(error.to_string())),
        };
        let mut lifted = Vec::with_capacity(found.len());
        for (found, verdict) in found {
            let whole = found.as_ref().map(|found| harness.lift(&plain, found));
            match whole {
                Some(None) => {
                    report.verdict = Verdict::Unknown;
                    report.reason = Some("a run of the reduced search is no run of the whole one: report this".to_owned());
                    return Ok(report);
                }
                Some(whole) => lifted.push((whole, verdict)),
                None => lifted.push((None, verdict)),
            }
        }
        self.judge(&plain, lifted, &mut report, io)?;
        Ok(report)
    }

    /// The places of the marks of an exact search.
    fn explored<const W: usize>(
        &self,
        harness: &Harness<'_, W>,
        explored: &Exploration<[u64; W]>,
        report: &mut Report,
        io: &mut Io<'_>,
    ) -> Result<Vec<(Option<Found>, Verdict)>, CliError> {
        report.states = explored.states();
        report.transitions = explored.transitions();
        report.terminals = explored.terminals();
        report.deadlocks = explored.deadlocks();
        report.depth = explored.depth();
        report.depths = explored.depths();
        report.stopped = explored.stopped();
        report.bytes_per_state = explored.memory() as f64 / explored.states().max(1) as f64;
        report.never_taken = never_taken(harness, explored);
        report.termination = match cycles::without_progress(harness, explored) {
            cycles::Cycles::None => Termination { verdict: Verdict::Holds, stem: None, cycle: None },
            cycles::Cycles::Bounded => Termination { verdict: Verdict::Bounded, stem: None, cycle: None },
            cycles::Cycles::Found(lasso) => {
                let mut whole = lasso.stem.clone();
                whole.schedule.extend(&lasso.cycle);
                let told = export::sequence(harness, &whole).unwrap_or_default();
                let (stem, cycle) = told.split_at(lasso.stem.schedule.len().min(told.len()));
                Termination {
                    verdict: Verdict::Refuted,
                    stem: Some(stem.to_vec()),
                    cycle: Some(cycle.to_vec()),
                }
            }
        };
        if let Some(first) = explored.first_deadlock() {
            report.first_deadlock = export::sequence(harness, &first).ok();
        }
        if let Some(path) = &self.args.graph {
            /// More states than this nobody reads in a drawing; other formats are for programs.
            const DRAWN: usize = 400;
            let most = if path.extension().is_some_and(|ext| ext == "svg") { DRAWN } else { usize::MAX };
            let graph = export::graph(&self.loaded.id, harness, explored, most);
            draw(&graph, &io.cwd.join(path))?;
        }
        let count = explored.properties().len();
        Ok((0..count).map(|index| (explored.first(index), explored.verdict(index))).collect())
    }

    /// The places of the marks of a search by fingerprints.
    fn swept<const W: usize>(
        &self,
        harness: &Harness<'_, W>,
        bounds: Bounds,
        report: &mut Report,
    ) -> Vec<(Option<Found>, Verdict)> {
        let swept = sweep(harness, bounds);
        report.exact = false;
        report.collision_odds = Some(swept.collision_odds());
        report.states = swept.states;
        report.transitions = swept.transitions;
        report.terminals = swept.terminals;
        report.deadlocks = swept.deadlocks;
        report.depth = swept.depth;
        report.stopped = swept.stopped;
        report.bytes_per_state = swept.memory as f64 / swept.states.max(1) as f64;
        report.termination = Termination { verdict: Verdict::Unknown, stem: None, cycle: None };
        let count = harness.property_table().list().len();
        (0..count).map(|index| (swept.first(index).cloned(), swept.verdict(index))).collect()
    }

    fn judge<const W: usize>(
        &self,
        harness: &Harness<'_, W>,
        found: Vec<(Option<Found>, Verdict)>,
        report: &mut Report,
        io: &mut Io<'_>,
    ) -> Result<(), CliError> {
        let properties = harness.property_table();
        for name in &self.args.witness {
            if properties.position(name, Kind::Witness).is_none() {
                let names: Vec<&str> = properties.list()[properties.invariants()..]
                    .iter()
                    .map(|property| property.name.as_str())
                    .collect();
                return Err(CliError::with_hint(
                    format!("no witness `{name}`"),
                    format!("one of {}", names.join(", ")),
                ));
            }
        }
        let mut worst = if report.stopped.is_some() { Verdict::Bounded } else { Verdict::Holds };
        for (index, ((found, verdict), property)) in found.into_iter().zip(properties.list()).enumerate() {
            let asked = self.args.witness.contains(&property.name);
            if property.kind == Kind::Witness {
                report.every_witness.push(property.name.clone());
                if found.is_some() {
                    report.coverage.push(property.name.clone());
                }
                if asked {
                    if verdict == Verdict::Refuted {
                        worst = Verdict::Refuted;
                    }
                    report.witnesses.push(Witness::new(harness, &property.name, verdict, found.as_ref()));
                }
                continue;
            }
            let Some(found) = found else { continue };
            worst = Verdict::Refuted;
            let mut violation = Violation::new(harness, &property.name, &found);
            violation.confirmed = shows(harness, &found, index);
            if let Some(folder) = &self.args.save {
                let picks = harness.picks(&found.schedule);
                let folder = io.cwd.join(folder);
                violation.saved = Some(save(
                    self.loaded,
                    report.profile,
                    self.compiled,
                    harness,
                    &found,
                    &picks,
                    &violation,
                    &folder,
                )?);
            }
            violation.reproduce = match &violation.saved {
                Some(path) => format!("windtunnel run {path}"),
                None => format!(
                    "windtunnel explore {} --profile {} --invariant {}",
                    self.loaded.file, report.profile, property.name
                ),
            };
            report.violations.push(violation);
        }
        if report.termination.verdict == Verdict::Refuted && !self.compiled.world.repeats {
            worst = Verdict::Refuted;
        }
        if report.deadlocks > 0 {
            worst = Verdict::Refuted;
        }
        report.verdict = worst;
        self.compare(report);
        Ok(())
    }

    /// Whether what is refuted is exactly what the scenario says.
    fn compare(&self, report: &mut Report) {
        let expected = self.loaded.scenario.expectation(report.profile.word()).breaks;
        let judged = |name: &String| {
            self.args.invariant.is_empty() || self.args.invariant.iter().any(|i| i.name() == name)
        };
        let broken: Vec<&String> = report.violations.iter().map(|violation| &violation.invariant).collect();
        let missing: Vec<&String> = expected
            .iter()
            .filter(|name| judged(name) && !broken.contains(name) && name.as_str() != Invariant::Cost.name())
            .collect();
        let witnessed = report.witnesses.iter().all(|witness| witness.verdict != Verdict::Refuted);
        let terminates = report.termination.verdict != Verdict::Refuted
            || self.compiled.world.repeats
            || !expected.is_empty();
        report.expected = missing.is_empty()
            && broken.iter().all(|name| expected.contains(name))
            && report.deadlocks == 0
            && witnessed
            && terminates;
        if !missing.is_empty() && report.stopped.is_none() {
            report.verdict = Verdict::Refuted;
            let names: Vec<&str> = missing.iter().map(|name| name.as_str()).collect();
            report.reason =
                Some(format!("the scenario says that {} breaks, and it does not", names.join(", ")));
        }
    }
}

/// Hooks that never run and replies that are never given, in the words of the domain: what a scenario says in vain.
fn never_taken<const W: usize>(harness: &Harness<'_, W>, explored: &Exploration<[u64; W]>) -> Vec<String> {
    let config = harness.config();
    let mut hooks: Vec<bool> = vec![false; config.hooks.len()];
    let mut replies: Vec<bool> = vec![false; config.replies.len()];
    for number in 0..explored.states() as u32 {
        if hooks.iter().chain(&replies).all(|taken| *taken) {
            break;
        }
        for answer in harness.answers(&harness.moment(explored.log().state(number))) {
            match answer.input {
                Input::HookFinished { hook, .. } => {
                    if let Some(taken) = hooks.get_mut(hook.index()) {
                        *taken = true;
                    }
                }
                Input::ModelReplied(reply) => {
                    if let Some(taken) = replies.get_mut(reply.index()) {
                        *taken = true;
                    }
                }
                _ => {}
            }
        }
    }
    let hooks = config
        .hooks
        .iter()
        .zip(hooks)
        .filter(|(_, taken)| !taken)
        .map(|(hook, _)| format!("{} hook `{}` never runs", hook.event.word(), hook.name));
    let replies = replies
        .iter()
        .enumerate()
        .filter(|(_, taken)| !**taken)
        .map(|(index, _)| format!("reply {index} of the assistant is never given"));
    hooks.chain(replies).collect()
}
