//! What `run` prints and writes at its end: failing scenarios in domain words, the summary, JSON, reports.

use super::run::{ScenarioRun, write_document};
use super::{CliError, Format, Io};
use serde_json::{Value, json};
use std::path::Path;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::verdict::Verdict;

/// Prints the failing scenarios and the summary, or the one JSON document, and writes the report.
///
/// # Errors
/// When something cannot be written.
pub(super) fn finish(
    report: Option<&Path>,
    format: Format,
    runs: &[ScenarioRun],
    io: &mut Io<'_>,
) -> Result<(), CliError> {
    if let Some(path) = report {
        let path = io.cwd.join(path);
        write_report(&path, runs)?;
        if format == Format::Text {
            writeln!(io.stdout, "report: {}", path.display())?;
        }
    }
    match format {
        Format::Json => write_document(&document(runs), io),
        Format::Text => text(runs, io).map_err(CliError::from),
    }
}

fn count(runs: &[ScenarioRun], verdict: Verdict) -> usize {
    runs.iter().filter(|run| run.verdict == verdict).count()
}

fn text(runs: &[ScenarioRun], io: &mut Io<'_>) -> std::io::Result<()> {
    for run in runs.iter().filter(|run| matches!(run.verdict, Verdict::Refuted | Verdict::Unknown)) {
        writeln!(io.stdout, "\n{}: {} [{}, {}]", run.loaded.id, run.verdict, run.world.word(), run.profile)?;
        writeln!(io.stdout, "  {}", run.loaded.scenario.title)?;
        for reason in &run.reasons {
            writeln!(io.stdout, "  - {reason}")?;
        }
        for line in steps(run).lines() {
            writeln!(io.stdout, "    {line}")?;
        }
        writeln!(io.stdout, "reproduce: {}", run.reproduce)?;
    }
    let processes = runs.iter().filter(|run| run.world == super::super::scenario::WorldName::Process);
    let real = processes.filter(|run| run.verdict != Verdict::Skipped).count();
    let scenarios: std::collections::BTreeSet<&str> = runs.iter().map(|run| run.loaded.id.as_str()).collect();
    writeln!(
        io.stdout,
        "\n{} scenarios, {} runs ({real} on real processes): {} hold, {} refuted, {} skipped, {} unknown",
        scenarios.len(),
        runs.len(),
        count(runs, Verdict::Holds),
        count(runs, Verdict::Refuted),
        count(runs, Verdict::Skipped),
        count(runs, Verdict::Unknown),
    )
}

/// The fields of the command-line contract.
fn document(runs: &[ScenarioRun]) -> Value {
    let sampled: u64 = runs.iter().filter_map(|run| run.sampled).map(|(n, _)| n).sum();
    let seconds: f64 = runs.iter().filter_map(|run| run.sampled).map(|(_, s)| s).sum();
    let mut document = json!({
        "passed": count(runs, Verdict::Holds),
        "failed": count(runs, Verdict::Refuted),
        "skipped": count(runs, Verdict::Skipped),
        "unknown": count(runs, Verdict::Unknown),
        "scenarios": runs.iter().map(scenario).collect::<Vec<_>>(),
    });
    if sampled > 0
        && let Some(fields) = document.as_object_mut()
    {
        fields.insert("runs".to_owned(), json!(sampled));
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        fields.insert("runs_per_second".to_owned(), json!(sampled as f64 / seconds.max(1e-9)));
    }
    document
}

fn scenario(run: &ScenarioRun) -> Value {
    let calls: Vec<Value> = run
        .outcome
        .calls
        .iter()
        .map(|call| {
            json!({
                "id": call.id,
                "tool": call.tool,
                "decision": call.decision.map(|decision| decision.word()),
                "executed": call.executed,
                "end": call.end.map(|end| end.word()),
            })
        })
        .collect();
    let mut value = json!({
        "id": run.loaded.id,
        "path": run.loaded.file,
        "title": run.loaded.scenario.title,
        "world": run.world.word(),
        "profile": run.profile.word(),
        "verdict": run.verdict.word(),
        "steps": run.outcome.steps.len(),
        "model_calls": run.outcome.model_calls,
        "end": run.outcome.end.map(|end| end.word()),
        "calls": calls,
        "invariants": invariants(run),
        "reproduce": run.reproduce,
    });
    if let Some(fields) = value.as_object_mut() {
        if !run.reasons.is_empty() {
            fields.insert("reason".to_owned(), json!(run.reasons.join("; ")));
        }
        if let Some(seed) = run.seed {
            fields.insert("seed".to_owned(), json!(seed));
        }
        if let Some((runs, seconds)) = run.sampled {
            fields.insert("runs".to_owned(), json!(runs));
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            fields.insert("runs_per_second".to_owned(), json!(runs as f64 / seconds.max(1e-9)));
        }
        if let Some(schedule) = &run.schedule {
            fields.insert("schedule".to_owned(), json!(schedule));
        }
    }
    value
}

/// Every invariant with its verdict in this run; none in a run that did not take place.
fn invariants(run: &ScenarioRun) -> Vec<Value> {
    let took_place = !run.outcome.steps.is_empty();
    let verdict = |invariant: &Invariant| {
        if run.outcome.broken.contains_key(invariant) { Verdict::Refuted } else { Verdict::Holds }
    };
    Invariant::ALL
        .iter()
        .filter(|_| took_place)
        .map(|invariant| json!({"name": invariant.name(), "verdict": verdict(invariant).word()}))
        .collect()
}

fn write_report(path: &Path, runs: &[ScenarioRun]) -> Result<(), CliError> {
    let file_error = |source| CliError::File { path: path.to_owned(), source };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let text = match extension {
        "json" => {
            let mut text = serde_json::to_string_pretty(&document(runs))?;
            text.push('\n');
            text
        }
        other => {
            return Err(CliError::with_hint(
                format!("cannot write a report with the ending `.{other}`"),
                "expected .html, .md, .json or .xml (JUnit)",
            ));
        }
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(file_error)?;
    }
    std::fs::write(path, text).map_err(file_error)
}

fn steps(run: &ScenarioRun) -> String {
    run.outcome
        .steps
        .iter()
        .map(|s| format!("{} {}\n", s.step, serde_json::to_string(s).unwrap_or_default()))
        .collect()
}
