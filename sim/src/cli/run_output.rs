//! What `run` prints and writes at its end: failing scenarios in domain words, the summary, JSON, reports.

use super::run::{ScenarioRun, write_document};
use super::{CliError, Format, Io, run_report};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::verdict::Verdict;
use windtunnel_reports::{html, junit, markdown};

/// Columns of a failing scenario's sequence.
const WIDTH: usize = 110;

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
        write!(io.stdout, "{}", windtunnel_reports::sequence::text(&run.outcome.steps, WIDTH))?;
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

fn invariants(run: &ScenarioRun) -> Vec<Value> {
    let value = |(invariant, verdict): (Invariant, Verdict)| json!({"name": invariant.name(), "verdict": verdict.word()});
    run_report::invariants(run).into_iter().map(value).collect()
}

fn write_report(path: &Path, runs: &[ScenarioRun]) -> Result<(), CliError> {
    let file_error = |source| CliError::File { path: path.to_owned(), source };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut bytes = Vec::new();
    let written = match extension {
        "html" => html::write(&run_report::report(runs), &mut bytes),
        "md" => markdown::write(&run_report::report(runs), &mut bytes),
        "xml" => junit::write(&run_report::report(runs), &mut bytes),
        "json" => writeln!(bytes, "{}", serde_json::to_string_pretty(&document(runs))?),
        other => {
            return Err(CliError::with_hint(
                format!("cannot write a report with the ending `.{other}`"),
                "expected .html, .md, .json or .xml (JUnit)",
            ));
        }
    };
    written.map_err(file_error)?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(file_error)?;
    }
    std::fs::write(path, bytes).map_err(file_error)
}
