//! `windtunnel gate test FILE… [--run-hooks]`.

use super::ProfileArg;
use crate::cli::{CliError, Exit, Format, Io, write_json};
use crate::gate::case::{self, Case};
use crate::gate::test_case::{self, CallResult, CaseResult, Options};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Arguments of `gate test`.
#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// Files with cases: one case or an array, with settings of their own or judged under this folder's
    #[arg(value_name = "FILE", required_unless_present = "init")]
    files: Vec<PathBuf>,
    /// Run hook commands for real, in a temporary workspace for each case
    #[arg(long)]
    run_hooks: bool,
    /// Only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Fail when fewer rules and hooks than this took part in a decision
    #[arg(long, value_name = "PERCENT")]
    min_coverage: Option<f64>,
    /// Write JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print a draft of expectations for this folder's settings: a call for each rule and a near miss
    #[arg(long)]
    init: bool,
    #[command(flatten)]
    profile: ProfileArg,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Line<'a> {
    file: String,
    #[serde(flatten)]
    call: &'a CallResult,
}

#[derive(Serialize)]
struct CoverageReport {
    rules_and_hooks: usize,
    exercised: usize,
    percent: f64,
    never: Vec<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    profile: &'static str,
    passed: usize,
    failed: usize,
    unknown: usize,
    cases: Vec<Line<'a>>,
    coverage: CoverageReport,
}

/// Runs it.
///
/// # Errors
/// When a file cannot be read or is no case.
pub fn run(args: &TestArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let profile = args.profile.profile;
    if args.init {
        let settings = super::SettingsArgs { trusted: true, ..super::SettingsArgs::default() };
        let (session, findings) = settings.session(profile.profile(), io)?;
        super::print_findings(&findings, io)?;
        super::init::print(&session, io)?;
        return Ok(Exit::Holds);
    }
    let mut cases: Vec<(String, Case)> = Vec::new();
    for path in &args.files {
        let full = io.cwd.join(path);
        let text =
            crate::files::read_text(&full).map_err(|source| CliError::File { path: path.clone(), source })?;
        let name = path.to_string_lossy().into_owned();
        let parsed =
            case::parse_document(&text, &name).map_err(|error| CliError::input(error.to_string()))?;
        for warning in parsed.iter().flat_map(|case| &case.warnings) {
            writeln!(io.stderr, "warning: {warning}")?;
        }
        cases.extend(parsed.into_iter().map(|case| (name.clone(), case)));
    }
    if let Some(filter) = &args.filter {
        cases.retain(|(_, case)| case.id.contains(filter.as_str()));
    }
    let options = Options {
        run_hooks: args.run_hooks,
        profile: profile.profile(),
        cwd: io.cwd.clone(),
        home: io.home.clone(),
    };
    let results = run_all(&cases, &options);
    let mut lines = Vec::new();
    let (mut all, mut exercised) = (BTreeSet::new(), BTreeSet::new());
    for ((file, case), result) in cases.iter().zip(&results) {
        // Cases without settings of their own share those of this folder.
        let of = |name: &String| match case.settings {
            Some(_) => format!("{}: {name}", case.id),
            None => name.clone(),
        };
        all.extend(result.coverage.all.iter().map(of));
        exercised.extend(result.coverage.exercised.iter().map(of));
        lines.extend(result.calls.iter().map(|call| Line { file: file.clone(), call }));
    }
    let count = |verdict: &str| lines.iter().filter(|line| line.call.verdict == verdict).count();
    let (passed, failed, unknown) = (count("holds"), count("refuted"), count("unknown"));
    let never: Vec<String> = all.difference(&exercised).cloned().collect();
    let percent =
        if all.is_empty() { 100.0 } else { 100.0 * (all.len() - never.len()) as f64 / all.len() as f64 };
    let report = Report {
        profile: profile.word(),
        passed,
        failed,
        unknown,
        cases: lines,
        coverage: CoverageReport {
            rules_and_hooks: all.len(),
            exercised: all.len() - never.len(),
            percent,
            never,
        },
    };
    if let Some(path) = &args.junit {
        write_junit(path, &report, io)?;
    }
    match args.format {
        Format::Json => write_json(io, "gate test", &report)?,
        Format::Text => print_text(&report, args, io)?,
    }
    let covered = args.min_coverage.is_none_or(|least| percent >= least);
    Ok(if failed > 0 || !covered {
        Exit::Refuted
    } else if unknown > 0 {
        Exit::CannotJudge
    } else {
        Exit::Holds
    })
}

/// Runs all cases on a few threads; results stand in the order of the cases. Cases that talk to fixed ports on this
/// machine take turns.
fn run_all(cases: &[(String, Case)], options: &Options) -> Vec<CaseResult> {
    let next = AtomicUsize::new(0);
    let ports = Mutex::new(());
    let results: Vec<Mutex<CaseResult>> = cases.iter().map(|_| Mutex::default()).collect();
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(1, 8) * 2;
    std::thread::scope(|scope| {
        for _ in 0..workers.min(cases.len()) {
            scope.spawn(|| {
                while let Some((_, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let index = cases.iter().position(|(_, other)| std::ptr::eq(other, case)).unwrap_or(0);
                    let fixed_port =
                        case.settings.iter().flatten().any(|(_, text)| text.contains("http://127.0.0.1:"));
                    let guard = if fixed_port && options.run_hooks { ports.lock().ok() } else { None };
                    let result = test_case::run(case, options).unwrap_or_else(|why| cannot_run(case, &why));
                    drop(guard);
                    if let Some(slot) = results.get(index)
                        && let Ok(mut slot) = slot.lock()
                    {
                        *slot = result;
                    }
                }
            });
        }
    });
    results.into_iter().map(|slot| slot.into_inner().unwrap_or_default()).collect()
}

fn cannot_run(case: &Case, why: &str) -> CaseResult {
    let calls = case
        .expect
        .iter()
        .filter_map(|(id, expected)| Some((id, expected.as_str()?)))
        .map(|(id, expected)| CallResult {
            case: case.id.clone(),
            call: id.clone(),
            expected: expected.to_owned(),
            got: "unknown".to_owned(),
            decided_by: None,
            verdict: "unknown",
            reason: Some(why.to_owned()),
        })
        .collect();
    CaseResult { calls, ..CaseResult::default() }
}

fn print_text(report: &Report<'_>, args: &TestArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    for line in report.cases.iter().filter(|line| line.call.verdict != "holds") {
        let call = line.call;
        let word = if call.verdict == "unknown" { "unknown" } else { "FAIL" };
        writeln!(
            io.stdout,
            "{word} {} {}: expected {}, got {}",
            call.case, call.call, call.expected, call.got
        )?;
        if let Some(by) = &call.decided_by {
            let source = by.source.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
            writeln!(io.stdout, "     decided by {}: {}{source}", by.kind, by.text)?;
        }
        if let Some(reason) = &call.reason {
            writeln!(io.stdout, "     {reason}")?;
        }
    }
    writeln!(
        io.stdout,
        "{} passed, {} failed, {} unknown (profile {})",
        report.passed, report.failed, report.unknown, report.profile
    )?;
    let coverage = &report.coverage;
    writeln!(
        io.stdout,
        "coverage: {} of {} rules and hooks took part in a decision ({:.1} %)",
        coverage.exercised, coverage.rules_and_hooks, coverage.percent
    )?;
    if args.min_coverage.is_some() {
        for name in &coverage.never {
            writeln!(io.stdout, "  never: {name}")?;
        }
    }
    if report.failed > 0 {
        let files: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
        let hooks = if args.run_hooks { " --run-hooks" } else { "" };
        writeln!(
            io.stdout,
            "reproduce: windtunnel gate test {}{hooks} --profile {}",
            files.join(" "),
            report.profile
        )?;
    }
    Ok(())
}

fn write_junit(path: &std::path::Path, report: &Report<'_>, io: &Io<'_>) -> Result<(), CliError> {
    use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
    let mut junit = Junit::new("windtunnel gate test");
    let mut suites: Vec<TestSuite> = Vec::new();
    for line in &report.cases {
        let call = line.call;
        let status = match call.verdict {
            "holds" => TestCaseStatus::success(),
            "unknown" => TestCaseStatus::skipped(),
            _ => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(format!("expected {}, got {}", call.expected, call.got));
                status
            }
        };
        let mut case = TestCase::new(format!("{} {}", call.case, call.call), status);
        case.set_classname(line.file.clone());
        match suites.iter_mut().find(|suite| suite.name.as_str() == line.file) {
            Some(suite) => {
                suite.add_test_case(case);
            }
            None => {
                let mut suite = TestSuite::new(line.file.clone());
                suite.add_test_case(case);
                suites.push(suite);
            }
        }
    }
    junit.add_test_suites(suites);
    let text = junit.to_string().map_err(|error| CliError::input(format!("JUnit: {error}")))?;
    std::fs::write(io.cwd.join(path), text).map_err(|source| CliError::File { path: path.to_owned(), source })
}
