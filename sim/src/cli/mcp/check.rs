//! `windtunnel mcp check FILE…`: judges exchanges.

use super::input::{self, FailOn, Kind, Source};
use crate::cli::{CliError, Exit, Format, Io, write_json};
use serde_json::json;
use std::path::PathBuf;
use windtunnel_model::finding::Finding;
use windtunnel_model::mcp::check::{Judgement, check, check_http};

/// Arguments of `mcp check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Exchanges: the forms `mcp` and `http` of the field reports, or traces of `mcp record`; `-` is stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Exit with 1 when a finding is at least this severe.
    #[arg(long, value_enum, default_value = "warning")]
    fail_on: FailOn,
    /// The output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Judges each file.
///
/// # Errors
/// When a file cannot be read or holds no exchange.
pub fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut exchanges = Vec::new();
    for path in &args.files {
        let source = Source::read(io, path)?;
        for case in input::cases(&source)? {
            let (located, judgement) = match &case.kind {
                Kind::Messages(entries) => {
                    let mut judgement = check(entries);
                    (std::mem::take(&mut judgement.findings), judgement)
                }
                Kind::Http(lines) => (check_http(lines), Judgement::default()),
            };
            let results: Vec<_> = judgement
                .results
                .iter()
                .map(|(id, text, is_error)| json!({"id": id, "text": text, "is_error": is_error}))
                .collect();
            exchanges.push(json!({
                "file": source.name,
                "findings": located.len(),
                "era": judgement.era.map(|era| era.word()),
                "version": judgement.version,
                "tools": judgement.tools,
                "results": results,
                "matches": judgement
                    .matches
                    .iter()
                    .map(|(id, method)| json!({"id": id, "method": method}))
                    .collect::<Vec<_>>(),
            }));
            findings.extend(located.into_iter().map(|located| match case.places.get(located.entry) {
                Some(spot) => located.finding.with_place(spot.place(&source)),
                None => located.finding,
            }));
        }
    }
    match args.format {
        Format::Json => {
            write_json(io, "mcp check", &json!({"findings": findings, "exchanges": exchanges}))?;
        }
        Format::Text => input::print(io, &findings)?,
    }
    Ok(input::exit(&findings, args.fail_on.into()))
}
