//! `windtunnel explore`: every reachable state of scenarios, with shortest counterexamples.

mod job;
mod output;

use self::job::Job;
use self::output::{Report, print};
use super::{CliError, Exit, Format, Io, write_json};
use crate::explore::harness::{Harness, HarnessError, Reductions, Setup};
use crate::scenario::compile::{Compiled, Place, compile};
use crate::scenario::load::{Loaded, load_paths};
use crate::scenario::shipped;
use std::collections::BTreeSet;
use std::path::PathBuf;
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
    /// Leave out steps and states that change no verdict (with `checked`, search the whole as well, compare, and print the
    /// factor saved). Counterexamples may then be longer than the shortest.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "on", value_name = "HOW")]
    reduce: Option<Reduce>,
    /// Where a bound ended the search, take so many random walks from the start: they refute, they prove nothing.
    #[arg(long, value_name = "WALKS")]
    simulate: Option<u64>,
    /// The seed of the walks.
    #[arg(long, default_value_t = 1, value_name = "N", requires = "simulate")]
    seed: u64,
    /// A search that a bound ended counts as not judged: exit code 2.
    #[arg(long)]
    require_complete: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What becomes of the steps and states that change no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Reduce {
    /// They are left out.
    On,
    /// They are left out in one search and taken in another, and the two are compared.
    Checked,
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
        Err(errors) => return crate::cli::run::report_errors(&errors, io),
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
            Err(error) => return crate::cli::run::report_errors(&[*error], io),
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
        summary(args, &reports, io)?;
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

fn summary(args: &ExploreArgs, reports: &[Report], io: &mut Io<'_>) -> std::io::Result<()> {
    let count = |verdict| reports.iter().filter(|report| report.verdict == verdict).count();
    let states: u64 = reports.iter().map(|report| report.states).sum();
    let cpu: f64 = reports.iter().map(|report| report.cpu_seconds).sum();
    let shown = |name: &str| reports.iter().any(|report| report.coverage.iter().any(|shown| shown == name));
    let all: BTreeSet<&str> =
        reports.iter().flat_map(|report| report.every_witness.iter().map(String::as_str)).collect();
    let missing: Vec<&str> = all.iter().copied().filter(|name| !shown(name)).collect();
    writeln!(io.stdout, "\ncoverage: {} of {} outcomes are reached", all.len() - missing.len(), all.len())?;
    // What one scenario of its own does not reach is no news; of all that ship, it is.
    if !missing.is_empty() && args.paths.is_empty() {
        writeln!(io.stdout, "never reached: {}", missing.join(", "))?;
    }
    writeln!(
        io.stdout,
        "{} hold, {} refuted, {} bounded, {} unknown, {} skipped; {states} states, {cpu:.2} cpu-s",
        count(Verdict::Holds),
        count(Verdict::Refuted),
        count(Verdict::Bounded),
        count(Verdict::Unknown),
        count(Verdict::Skipped)
    )
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
    let reductions = if args.reduce.is_some() { Reductions::ALL } else { Reductions::NONE };
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
