//! `windtunnel mcp lint TOOLS.json|--server …`: checks catalogues of tools.

use super::input::{self, FailOn, Source};
use crate::cli::{CliError, Exit, Format, Io, write_json};
use serde_json::{Value, json};
use std::path::PathBuf;
use windtunnel_model::finding::{Finding, Severity};
use windtunnel_model::mcp::catalogue::{ServerTools, lint, visible_length};
use windtunnel_model::mcp::names;

/// Arguments of `mcp lint`.
#[derive(Debug, clap::Args)]
pub struct LintArgs {
    /// Catalogues: results of tools/list, arrays of tools, or the form `tools` of the field reports; `-` is stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The server's name, for the names that the assistant sees.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Exit with 1 when a finding is at least this severe.
    #[arg(long, value_enum, default_value = "warning")]
    fail_on: FailOn,
    /// The output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Lints each file.
///
/// # Errors
/// When a file cannot be read or holds no catalogue.
pub fn run(args: &LintArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut count = 0;
    for path in &args.files {
        let source = Source::read(io, path)?;
        let value: Value = serde_json::from_str(&source.text).map_err(|error| {
            CliError::input(format!("{}:{}:{}: not JSON: {error}", source.name, error.line(), error.column()))
        })?;
        let before = count;
        catalogues(&value, "", args.server.as_deref(), &mut |servers, lengths| {
            count += servers.iter().map(|server| server.tools.len()).sum::<usize>() + lengths.len();
            let located = lint(servers);
            findings.extend(
                located.into_iter().map(|(pointer, finding)| finding.with_place(source.at(&pointer))),
            );
            findings.extend(lengths.iter().map(|finding| finding.clone().with_place(source.at(""))));
        });
        if count == before {
            return Err(CliError::with_hint(
                format!("{}: no catalogue in it", source.name),
                "a catalogue is a result of tools/list, an array of tools, or an object with `tools` or `servers`",
            ));
        }
    }
    match args.format {
        Format::Json => write_json(io, "mcp lint", &json!({"findings": findings, "tools": count}))?,
        Format::Text => input::print(io, &findings)?,
    }
    Ok(input::exit(&findings, args.fail_on.into()))
}

/// Calls `each` for every catalogue inside a value.
fn catalogues(
    value: &Value,
    at: &str,
    server: Option<&str>,
    each: &mut dyn FnMut(&[ServerTools<'_>], &[Finding]),
) {
    match value {
        Value::Array(items) if is_tools(items) => {
            each(&[ServerTools { server, pointer: at.to_owned(), tools: items }], &[]);
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                catalogues(item, &format!("{at}/{number}"), server, each);
            }
        }
        Value::Object(object) => {
            let named = object.get("server").and_then(Value::as_str).or(server);
            if let Some(result) = object.get("result") {
                catalogues(result, &format!("{at}/result"), named, each);
            } else if let Some(tools) = object.get("tools").and_then(Value::as_array) {
                each(&[ServerTools { server: named, pointer: format!("{at}/tools"), tools }], &[]);
            } else if let Some(Value::Object(servers)) = object.get("servers") {
                let all: Vec<ServerTools<'_>> = servers
                    .iter()
                    .filter_map(|(name, tools)| {
                        let list = tools.as_array().or_else(|| tools.get("tools")?.as_array())?;
                        let part = if tools.is_array() { "" } else { "/tools" };
                        let pointer =
                            format!("{at}/servers/{}{part}", name.replace('~', "~0").replace('/', "~1"));
                        Some(ServerTools { server: Some(name), pointer, tools: list })
                    })
                    .collect();
                each(&all, &[]);
            } else if let Some(inputs) = object.get("inputs") {
                catalogues(inputs, &format!("{at}/inputs"), named, each);
            } else if let Some(findings) = lengths(object, named) {
                each(&[], &findings);
            }
        }
        _ => {}
    }
}

/// Only a value that says it is a list of tools is one: an array of field reports or of plain words is not.
fn is_tools(items: &[Value]) -> bool {
    !items.is_empty()
        && items.iter().all(|item| item.get("name").is_some() || item.get("inputSchema").is_some())
}

/// A form that gives lengths instead of names (`tool_name_length`, `visible_name_length`, `probe_lengths`).
fn lengths(object: &serde_json::Map<String, Value>, server: Option<&str>) -> Option<Vec<Finding>> {
    let number = |key: &str| object.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let computed = number("tool_name_length")
        .zip(server)
        .map(|(length, server)| names::server_prefix(server).len() + length);
    let stated = number("visible_name_length");
    if computed.is_none() && stated.is_none() {
        return None;
    }
    let mut findings = Vec::new();
    if let (Some(computed), Some(stated)) = (computed, stated) {
        let says = format!(
            "visible name: prefix `{}` and the tool's name, {computed} characters",
            names::server_prefix(server.unwrap_or_default())
        );
        let finding = if computed == stated {
            Finding::new(
                "visible-name-length",
                Severity::Note,
                says,
                "64 is the portable limit, 128 that of newer APIs",
            )
        } else {
            Finding::new(
                "visible-name-length-differs",
                Severity::Warning,
                format!("{says}, not {stated}"),
                "check the visible name, not the bare one",
            )
        };
        findings.push(finding);
    }
    let probes = object.get("probe_lengths").and_then(Value::as_array).into_iter().flatten();
    let probes = probes.filter_map(Value::as_u64).filter_map(|n| usize::try_from(n).ok());
    for length in computed.or(stated).into_iter().chain(probes) {
        findings.extend(visible_length(&format!("{}…", names::server_prefix(server.unwrap_or("?"))), length));
    }
    Some(findings)
}
