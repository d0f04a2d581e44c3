//! `windtunnel replay`: judges recorded conversations.

use super::findings::{FailOn, exit, print};
use super::source::Source;
use super::{CliError, Exit, Format, Io, write_json};
use serde::Serialize;
use std::path::PathBuf;
use windtunnel_model::finding::{Finding, Severity};
use windtunnel_model::place::Place;
use windtunnel_model::transcript::{Fault, FaultKind, Form, Spot, Transcript, faults, read};

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel replay session.jsonl                       a session as the harness wrote it
  windtunnel replay request.json --format json          a request of the Messages API, or its list of messages

A finding names the call and the place: MISSING_RESULT, ORPHAN_RESULT, DUP_USE, DUP_RESULT, RESULTS_SPLIT, RESULT_LATE,
EMPTY_ID, OPEN (a call of the last message: a fault in a request, a note in a session).")]
pub struct ReplayArgs {
    /// Sessions (JSON Lines), requests of the Messages API, lists of messages; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Exit with 1 when a finding is at least this severe.
    #[arg(long, value_enum, default_value = "warning")]
    fail_on: FailOn,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What was read of one file.
#[derive(Debug, Serialize)]
struct Record {
    file: String,
    conversations: usize,
    messages: usize,
    calls: usize,
    results: usize,
    findings: usize,
}

/// Judges each file.
///
/// # Errors
/// When a file cannot be read or holds no conversation.
pub fn run(args: &ReplayArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let (mut findings, mut records) = (Vec::new(), Vec::new());
    for path in &args.files {
        let source = Source::read(io, path)?;
        let transcript =
            read(&source.text).map_err(|error| CliError::input(format!("{}: {error}", source.name)))?;
        let before = findings.len();
        judge(&transcript, &source, &mut findings);
        records.push(record(&transcript, &source.name, findings.len() - before));
    }
    match args.format {
        Format::Json => {
            write_json(io, "replay", &serde_json::json!({ "findings": findings, "transcripts": records }))?;
        }
        Format::Text => {
            for record in &records {
                writeln!(
                    io.stdout,
                    "{}: {} messages in {} conversations, {} calls, {} results",
                    record.file, record.messages, record.conversations, record.calls, record.results
                )?;
            }
            print(io, &findings)?;
        }
    }
    Ok(exit(&findings, args.fail_on.into()))
}

fn judge(transcript: &Transcript, source: &Source, findings: &mut Vec<Finding>) {
    let place = |spot: Spot| match spot {
        Spot::Message(index) => {
            let list = if source.text.trim_start().starts_with('[') { "" } else { "/messages" };
            Place::at_pointer(source.name.as_str(), &source.text, &format!("{list}/{index}"))
        }
        Spot::Line(line) => {
            let line = u32::try_from(line).ok();
            Place { line, column: Some(1), ..Place::file(source.name.as_str()) }
        }
    };
    for fault in transcript.conversations.iter().flat_map(|conversation| faults(conversation)) {
        let mut finding = fault.finding().with_place(place(fault.at));
        if open_request(&fault, transcript.form) {
            finding.severity = Severity::Error;
        }
        findings.push(finding);
    }
    for line in &transcript.unreadable {
        let finding = Finding::new(
            "unreadable-line",
            Severity::Warning,
            format!("line {line} is no JSON object"),
            "what it held is lost to whoever resumes or replays the session",
        );
        findings.push(finding.with_place(place(Spot::Line(*line))));
    }
    for line in &transcript.repeated {
        let finding = Finding::new(
            "repeated-line",
            Severity::Note,
            format!("line {line} repeats the uuid of an earlier line and was left out"),
            "a uuid names one line",
        );
        findings.push(finding.with_place(place(Spot::Line(*line))));
    }
}

/// A request may not end in an unanswered call; a session may.
fn open_request(fault: &Fault, form: Form) -> bool {
    fault.kind == FaultKind::Open && form != Form::Session
}

fn record(transcript: &Transcript, file: &str, findings: usize) -> Record {
    use windtunnel_model::transcript::Part;
    let parts = || transcript.conversations.iter().flatten().flat_map(|message| &message.parts);
    Record {
        file: file.to_owned(),
        conversations: transcript.conversations.len(),
        messages: transcript.conversations.iter().map(Vec::len).sum(),
        calls: parts().filter(|(part, _)| matches!(part, Part::Use(_))).count(),
        results: parts().filter(|(part, _)| matches!(part, Part::Result(_))).count(),
        findings,
    }
}
