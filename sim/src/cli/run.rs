//! `windtunnel run`: scenarios in the model, at random, and on real processes.

use super::{CliError, Exit, Format, Io, write_json};
use crate::process::environment::PassEnv;
use crate::scenario::check::differences;
use crate::scenario::compile::{Place, compile};
use crate::scenario::load::{Loaded, ScenarioError, load_paths};
use crate::scenario::{Expectation, WorldName, shipped};
use crate::world::outcome::Outcome;
use crate::world::process::{ProcessOptions, missing, npm_roots};
use crate::world::random::{Draw, Follow, Until, shrink};
use crate::world::shrink::{Failure, shrink_configuration};
use crate::world::{process, random, scripted};
use std::path::PathBuf;
use std::time::Instant;
use windtunnel_model::profile::ProfileName;
use windtunnel_model::trace::{Header, TRACE_VERSION, Trace};
use windtunnel_model::verdict::Verdict;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel run                                   all scenarios that ship, each in its own worlds
  windtunnel run my.json --profile claude-code-2.1.332
  windtunnel run scenarios/random --world random --runs 100000 --seed 7
  windtunnel run my.json --world process --trace my.jsonl --report my.html")]
pub struct RunArgs {
    /// Scenario files and folders; without any, the scenarios that ship.
    paths: Vec<PathBuf>,
    /// The world, instead of those that each scenario names.
    #[arg(long, value_enum)]
    world: Option<WorldName>,
    /// The seed of random runs; it is printed and can be given back.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How many runs in the random world.
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// The profile, instead of those that each scenario names (default: documented).
    #[arg(long, value_name = "P")]
    profile: Option<ProfileName>,
    /// Write the trace of the (only) run to this file, as JSON Lines.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write a report: .html, .md, .json or .xml (JUnit).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where a failing random run is saved as a scenario.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Pass an environment variable on to real processes; `all` for the whole environment.
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Default for RunArgs {
    /// What `windtunnel` without arguments runs: everything that ships, with an HTML report.
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            world: None,
            seed: 1,
            runs: 200,
            profile: None,
            trace: None,
            report: Some(PathBuf::from("target/windtunnel-report.html")),
            save: None,
            pass_env: Vec::new(),
            format: Format::Text,
        }
    }
}

/// One scenario in one profile and one world.
#[derive(Debug)]
pub struct ScenarioRun {
    /// The scenario.
    pub loaded: Loaded,
    /// The profile.
    pub profile: ProfileName,
    /// The world.
    pub world: WorldName,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is refuted, skipped or unknown.
    pub reasons: Vec<String>,
    /// The run that is shown: the only one, or the failing or last one of many.
    pub outcome: Outcome,
    /// The seed, in the random world.
    pub seed: Option<u64>,
    /// Runs and seconds they took, in the random world.
    pub sampled: Option<(u64, f64)>,
    /// How to run it again.
    pub reproduce: String,
    /// The shrunk schedule of a failing random run.
    pub schedule: Option<Vec<u16>>,
}

/// Runs.
///
/// # Errors
/// When a scenario cannot be read, or something cannot be written.
pub fn run(args: &RunArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let scenarios = match load(args, io) {
        Ok(scenarios) => scenarios,
        Err(errors) => return report_errors(&errors, io),
    };
    let options = ProcessOptions {
        pass_env: PassEnv::from_flags(&args.pass_env),
        program: std::env::current_exe()?,
        npm: npm_roots(&io.cwd),
    };
    let jobs = jobs(args, &scenarios)?;
    if args.trace.is_some() && jobs.len() != 1 {
        let message = format!("--trace takes one run, found {} (scenario × profile × world)", jobs.len());
        return Err(CliError::with_hint(
            message,
            "name one scenario, and with --profile and --world one run of it",
        ));
    }
    let bar = progress(io, jobs.len());
    let mut runs = Vec::with_capacity(jobs.len());
    for (loaded, profile, world) in jobs {
        bar.set_message(loaded.id.clone());
        match one(args, loaded, profile, world, &options) {
            Ok(run) => {
                if args.format == Format::Text {
                    unless_closed(bar.suspend(|| line(&run, io)).map_err(CliError::from))?;
                }
                runs.push(run);
            }
            Err(error) => return report_errors(&[*error], io),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(path) = &args.trace {
        write_trace(&runs, &io.cwd.join(path))?;
    }
    if let Some(folder) = &args.save {
        save_failures(&runs, &io.cwd.join(folder), io)?;
    }
    unless_closed(super::run_output::finish(args.report.as_deref(), args.format, &runs, io))?;
    let failed = runs.iter().any(|run| run.verdict == Verdict::Refuted);
    let unknown = runs.iter().any(|run| run.verdict == Verdict::Unknown);
    Ok(if failed {
        Exit::Refuted
    } else if unknown {
        Exit::CannotJudge
    } else {
        Exit::Holds
    })
}

/// Whoever closed our output has seen enough of it, but the runs go on and the exit code stays theirs.
fn unless_closed(result: Result<(), CliError>) -> Result<(), CliError> {
    match result {
        Err(CliError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn load(args: &RunArgs, io: &Io<'_>) -> Result<Vec<Loaded>, Vec<ScenarioError>> {
    if args.paths.is_empty() {
        shipped::all().map_err(|error| vec![*error])
    } else {
        load_paths(&args.paths, &io.cwd)
    }
}

/// Prints scenario errors with the place in the file; always exit code 2.
pub(super) fn report_errors(errors: &[ScenarioError], io: &mut Io<'_>) -> Result<Exit, CliError> {
    for error in errors {
        writeln!(io.stderr, "error: {error}")?;
        if let (Some(line), Some(number)) = (&error.line, error.place.line) {
            writeln!(io.stderr, "  {number} | {line}")?;
        }
        if let Some(hint) = &error.hint {
            writeln!(io.stderr, "  hint: {hint}")?;
        }
    }
    Ok(Exit::CannotJudge)
}

type Job<'a> = (&'a Loaded, ProfileName, WorldName);

fn jobs<'a>(args: &RunArgs, scenarios: &'a [Loaded]) -> Result<Vec<Job<'a>>, CliError> {
    let mut jobs = Vec::new();
    for loaded in scenarios {
        let profiles = loaded
            .profiles(args.profile)
            .map_err(|error| CliError::input(format!("{}: {error}", loaded.file)))?;
        let worlds = match args.world {
            Some(world) => vec![world],
            None if loaded.scenario.worlds.is_empty() => vec![WorldName::Scripted],
            None => loaded.scenario.worlds.clone(),
        };
        for profile in profiles {
            jobs.extend(worlds.iter().map(|world| (loaded, profile, *world)));
        }
    }
    Ok(jobs)
}

fn progress(io: &Io<'_>, length: usize) -> indicatif::ProgressBar {
    if !io.progress || length < 2 {
        return indicatif::ProgressBar::hidden();
    }
    let style = indicatif::ProgressStyle::with_template("{pos}/{len} {wide_msg}");
    let bar = indicatif::ProgressBar::new(length as u64);
    bar.set_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()));
    bar
}

fn one(
    args: &RunArgs,
    loaded: &Loaded,
    profile: ProfileName,
    world: WorldName,
    options: &ProcessOptions,
) -> Result<ScenarioRun, Box<ScenarioError>> {
    let expect = loaded.scenario.expectation(profile.word());
    let mut run = ScenarioRun {
        loaded: loaded.clone(),
        profile,
        world,
        verdict: Verdict::Holds,
        reasons: Vec::new(),
        outcome: Outcome::default(),
        seed: None,
        sampled: None,
        reproduce: format!("windtunnel run {} --world {} --profile {profile}", loaded.file, world.word()),
        schedule: None,
    };
    if world != WorldName::Process && loaded.scenario.worlds == [WorldName::Process] {
        return Ok(skipped(run, "it describes real processes only (`worlds`)".to_owned()));
    }
    match world {
        WorldName::Process => run_process(&mut run, &expect, options)?,
        WorldName::Scripted => {
            let mut compiled = compile(loaded, profile, &Place::default())?;
            if let Some(reason) = unmodelled(&compiled.world) {
                return Ok(skipped(run, reason));
            }
            run.outcome = match &loaded.scenario.world.schedule {
                None => scripted::run(&mut compiled),
                Some(schedule) => {
                    let table = compiled.world.table_hash(compiled.session.config());
                    if table != schedule.table {
                        run.verdict = Verdict::Unknown;
                        run.reasons.push(format!(
                            "the schedule was made for the choice table {}, this scenario has {table}",
                            schedule.table
                        ));
                        return Ok(run);
                    }
                    random::run(&mut compiled, &mut Follow::new(&schedule.choices), Until::End).outcome
                }
            };
            run.reasons = differences(&expect, &run.outcome, world);
        }
        WorldName::Random => run_random(args, &mut run, &expect)?,
    }
    if !run.reasons.is_empty() && run.verdict == Verdict::Holds {
        run.verdict = Verdict::Refuted;
    }
    Ok(run)
}

fn skipped(mut run: ScenarioRun, reason: String) -> ScenarioRun {
    run.verdict = Verdict::Skipped;
    run.reasons = vec![reason];
    run
}

/// What keeps a scenario out of the worlds without processes.
fn unmodelled(world: &crate::world::closed::ClosedWorld) -> Option<String> {
    if world.handshakes.iter().any(Option::is_none) {
        return Some("a server of mcpServers has no script: only the process world can run it".to_owned());
    }
    world.unmodelled.first().map(|what| format!("only the process world can run it: {what}"))
}

fn run_process(
    run: &mut ScenarioRun,
    expect: &Expectation,
    options: &ProcessOptions,
) -> Result<(), Box<ScenarioError>> {
    if let Some(reason) = missing(&run.loaded.scenario.needs, &options.npm) {
        run.verdict = Verdict::Skipped;
        run.reasons.push(reason);
        return Ok(());
    }
    match process::run(&run.loaded, run.profile, options) {
        Ok(done) => {
            run.outcome = done.outcome;
            run.reasons = differences(expect, &run.outcome, run.world);
            for (path, expected) in &expect.files {
                let found = done.files.get(path).cloned().flatten();
                if *expected != found {
                    let word = |text: &Option<String>| match text {
                        Some(text) => format!("`{text}`"),
                        None => "no file".to_owned(),
                    };
                    run.reasons.push(format!(
                        "file {path}: expected {}, found {}",
                        word(expected),
                        word(&found)
                    ));
                }
            }
            Ok(())
        }
        Err(process::ProcessError::Scenario(error)) => Err(error),
        Err(error @ process::ProcessError::Workspace(_)) => {
            run.verdict = Verdict::Unknown;
            run.reasons.push(error.to_string());
            Ok(())
        }
    }
}

fn run_random(args: &RunArgs, run: &mut ScenarioRun, expect: &Expectation) -> Result<(), Box<ScenarioError>> {
    let mut compiled = compile(&run.loaded, run.profile, &Place::default())?;
    if let Some(reason) = unmodelled(&compiled.world) {
        run.verdict = Verdict::Skipped;
        run.reasons.push(reason);
        return Ok(());
    }
    run.seed = Some(args.seed);
    run.reproduce = format!("{} --seed {} --runs {}", run.reproduce, args.seed, args.runs);
    let started = Instant::now();
    let mut done = 0;
    for number in 0..args.runs {
        let mut drawn = random::run(&mut compiled, &mut Draw::new(args.seed, number), Until::Broken);
        done = number + 1;
        let unexpected = crate::scenario::check::broken_unexpectedly(expect, &drawn.outcome);
        if let Some(invariant) = unexpected.first().copied() {
            let schedule = shrink(&mut compiled, &drawn.schedule, invariant);
            let failure = Failure { profile: run.profile, invariant, mutant: None, seed: args.seed };
            let (smaller, schedule) = shrink_configuration(&run.loaded, &schedule, failure);
            let mut compiled = compile(&smaller, run.profile, &Place::default())?;
            drawn = random::run(&mut compiled, &mut Follow::new(&schedule), Until::Broken);
            run.reasons.push(format!(
                "{invariant} broken in run {number} of seed {}: {} (shrunk to {} picks)",
                args.seed,
                invariant.sentence(),
                schedule.len()
            ));
            run.loaded = smaller;
            run.schedule = Some(schedule);
            run.outcome = drawn.outcome;
            break;
        }
        let cut = drawn.outcome.broken.is_empty();
        let reasons = if cut { differences(expect, &drawn.outcome, run.world) } else { Vec::new() };
        run.outcome = drawn.outcome;
        if !reasons.is_empty() {
            run.reasons = reasons;
            run.schedule = Some(drawn.schedule);
            break;
        }
    }
    run.sampled = Some((done, started.elapsed().as_secs_f64()));
    Ok(())
}

/// The line of one run.
fn line(run: &ScenarioRun, io: &mut Io<'_>) -> std::io::Result<()> {
    let style = match run.verdict {
        Verdict::Holds => anstyle::AnsiColor::Green,
        Verdict::Refuted => anstyle::AnsiColor::Red,
        Verdict::Skipped | Verdict::Unknown | Verdict::Bounded => anstyle::AnsiColor::Yellow,
    }
    .on_default();
    let world = run.world.word();
    write!(io.stdout, "{style}{:8}{style:#} {} [{world}, {}]", run.verdict, run.loaded.id, run.profile)?;
    if let Some((runs, seconds)) = run.sampled {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = runs as f64 / seconds.max(1e-9);
        write!(
            io.stdout,
            " {runs} runs, seed {}, {rate:.0} runs/s, invariants only",
            run.seed.unwrap_or_default()
        )?;
    }
    if run.verdict == Verdict::Skipped {
        write!(io.stdout, ": {}", run.reasons.join("; "))?;
    }
    writeln!(io.stdout)
}

fn write_trace(runs: &[ScenarioRun], path: &std::path::Path) -> Result<(), CliError> {
    let Some(run) = runs.first() else { return Ok(()) };
    let trace = Trace {
        header: Header {
            version: TRACE_VERSION,
            scenario: run.loaded.id.clone(),
            profile: run.profile.word().to_owned(),
            world: run.world.word().to_owned(),
            seed: run.seed,
        },
        steps: run.outcome.steps.clone(),
    };
    std::fs::write(path, trace.to_jsonl()?).map_err(|source| CliError::File { path: path.to_owned(), source })
}

/// Saves each failing random run as a scenario that `run` replays.
fn save_failures(runs: &[ScenarioRun], folder: &std::path::Path, io: &mut Io<'_>) -> Result<(), CliError> {
    for run in runs {
        let Some(schedule) = &run.schedule else { continue };
        let compiled = compile(&run.loaded, run.profile, &Place::default())
            .map_err(|error| CliError::input(error.to_string()))?;
        let mut scenario = run.loaded.scenario.clone();
        scenario.title = format!("{} (a failing run)", scenario.title);
        scenario.profiles = vec![run.profile.word().to_owned()];
        scenario.worlds = vec![WorldName::Scripted];
        scenario.world.schedule = Some(crate::scenario::Schedule {
            choices: schedule.clone(),
            table: compiled.world.table_hash(compiled.session.config()),
        });
        scenario.expect.breaks = run.outcome.broken.keys().map(|i| i.name().to_owned()).collect();
        std::fs::create_dir_all(folder)
            .map_err(|source| CliError::File { path: folder.to_owned(), source })?;
        let path = folder.join(format!("{}.{}.json", run.loaded.id.replace('/', "-"), run.profile));
        let text = serde_json::to_string_pretty(&scenario)?;
        std::fs::write(&path, text + "\n").map_err(|source| CliError::File { path: path.clone(), source })?;
        writeln!(io.stderr, "saved {}", path.display())?;
    }
    Ok(())
}

/// Prints the one document of `--format json`, or the summary.
pub(super) fn write_document(document: &serde_json::Value, io: &mut Io<'_>) -> Result<(), CliError> {
    write_json(io, "run", document)
}
