//! Reading what `mcp check` and `mcp lint` are given: forms of field reports, recorded traces, catalogues.

use crate::cli::{CliError, Io};
use serde_json::Value;
use std::path::Path;
use windtunnel_model::finding::{Finding, Severity};
use windtunnel_model::mcp::check::Entry;
use windtunnel_model::place::Place;

/// A file as it was read.
pub(super) struct Source {
    /// As the user named it.
    pub(super) name: String,
    /// Its text.
    pub(super) text: String,
}

impl Source {
    pub(super) fn read(io: &mut Io<'_>, path: &Path) -> Result<Self, CliError> {
        let name = path.display().to_string();
        if name == "-" {
            let mut text = String::new();
            io.stdin.read_to_string(&mut text)?;
            return Ok(Self { name: "stdin".to_owned(), text });
        }
        let full = io.cwd.join(path);
        let text = std::fs::read_to_string(&full).map_err(|source| CliError::File { path: full, source })?;
        Ok(Self { name, text })
    }

    /// The place of an RFC 6901 pointer.
    pub(super) fn at(&self, pointer: &str) -> Place {
        Place::at_pointer(self.name.as_str(), &self.text, pointer)
    }
}

/// One exchange to be judged: its entries, each with its place.
pub(super) struct Case {
    pub(super) kind: Kind,
    /// Pointer or line of each entry.
    pub(super) places: Vec<Spot>,
}

/// Where an entry is.
#[derive(Clone)]
pub(super) enum Spot {
    Pointer(String),
    Line(u32),
}

pub(super) enum Kind {
    Messages(Vec<Entry>),
    Http(Vec<(bool, String)>),
}

impl Spot {
    pub(super) fn place(&self, source: &Source) -> Place {
        match self {
            Self::Pointer(pointer) => source.at(pointer),
            Self::Line(line) => Place { file: source.name.clone(), line: Some(*line), column: Some(1) },
        }
    }
}

/// The exchanges of a file: a form, an array of forms or of field reports, an array of entries, or a recorded trace.
pub(super) fn cases(source: &Source) -> Result<Vec<Case>, CliError> {
    let wrong = |message: String| {
        CliError::with_hint(
            format!("{}: {message}", source.name),
            "an exchange is an object with `exchange`, an array of such objects, or a trace of `mcp record`",
        )
    };
    match serde_json::from_str::<Value>(&source.text) {
        Ok(value) if value.get("format").is_none() => {
            let mut found = Vec::new();
            collect(&value, String::new(), &mut found).map_err(wrong)?;
            if found.is_empty() {
                return Err(wrong("no exchange in it".to_owned()));
            }
            Ok(found)
        }
        Ok(_) => Ok(vec![trace(&source.text).map_err(wrong)?]),
        // More than one JSON value: a trace, one value a line.
        Err(error) if source.text.trim_start().starts_with('{') && source.text.contains("\"from\"") => {
            trace(&source.text).map(|case| vec![case]).map_err(|reason| wrong(format!("{reason} ({error})")))
        }
        Err(error) => Err(CliError::input(format!(
            "{}:{}:{}: not JSON: {error}",
            source.name,
            error.line(),
            error.column()
        ))),
    }
}

fn collect(value: &Value, at: String, found: &mut Vec<Case>) -> Result<(), String> {
    match value {
        Value::Array(items) if items.first().is_some_and(is_entry) => {
            found.push(exchange(items, &at, false)?);
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                collect(item, format!("{at}/{number}"), found)?;
            }
        }
        Value::Object(object) => {
            if let Some(items) = object.get("exchange") {
                let items = items.as_array().ok_or_else(|| format!("{at}/exchange is no array"))?;
                let http = object.get("type").and_then(Value::as_str) == Some("http");
                found.push(exchange(items, &format!("{at}/exchange"), http)?);
            } else if let Some(inputs) = object.get("inputs") {
                collect(inputs, format!("{at}/inputs"), found)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_entry(value: &Value) -> bool {
    let head = value.as_array().and_then(|parts| parts.first()).and_then(Value::as_str);
    head.is_some_and(|head| ["c", "s", "c-raw", "s-raw", "s-silent", "s-exit"].contains(&head))
}

fn exchange(items: &[Value], at: &str, http: bool) -> Result<Case, String> {
    let places = (0..items.len()).map(|number| Spot::Pointer(format!("{at}/{number}/1"))).collect();
    let pairs: Vec<(&str, &Value)> = items
        .iter()
        .enumerate()
        .map(|(number, item)| {
            let parts = item.as_array().map(Vec::as_slice);
            match parts {
                Some([Value::String(head), body, ..]) => Ok((head.as_str(), body)),
                _ => Err(format!(
                    "{at}/{number}: expected `[\"c\"|\"s\"|\"s-raw\"|\"s-silent\"|\"s-exit\", …]`"
                )),
            }
        })
        .collect::<Result<_, _>>()?;
    let prose = |(head, body): &(&str, &Value)| {
        ["c", "s"].contains(head).then(|| body.as_str()).flatten().map(|text| (*head == "c", text.to_owned()))
    };
    if http && let Some(lines) = pairs.iter().map(prose).collect::<Option<Vec<_>>>() {
        return Ok(Case { kind: Kind::Http(lines), places });
    }
    let entries = pairs
        .into_iter()
        .enumerate()
        .map(|(number, (head, body))| {
            entry(head, body).ok_or_else(|| format!("{at}/{number}: no such entry: {head}"))
        })
        .collect::<Result<_, _>>()?;
    Ok(Case { kind: Kind::Messages(entries), places })
}

fn entry(head: &str, body: &Value) -> Option<Entry> {
    let line = || body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    Some(match head {
        "c" => Entry::Client(body.clone()),
        "s" => Entry::Server(body.clone()),
        "c-raw" => Entry::ClientRaw(line()),
        "s-raw" => Entry::ServerRaw(line()),
        "s-silent" => Entry::ServerSilent(body.as_f64()?),
        "s-exit" => Entry::ServerExit(body.as_i64()?),
        _ => return None,
    })
}

/// A trace of `mcp record`: one JSON object a line.
fn trace(text: &str) -> Result<Case, String> {
    let (mut entries, mut places) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("line {}: not JSON: {error}", number + 1))?;
        let text = value.get("line").and_then(Value::as_str);
        let entry = match (value.get("from").and_then(Value::as_str), text) {
            (Some("client"), Some(text)) => Entry::ClientRaw(text.to_owned()),
            (Some("server"), Some(text)) => Entry::ServerRaw(text.to_owned()),
            _ => match value.get("exit").and_then(Value::as_i64) {
                Some(code) => Entry::ServerExit(code),
                // The head of the trace, stderr, and what later versions may add.
                None => continue,
            },
        };
        entries.push(entry);
        places.push(Spot::Line(u32::try_from(number + 1).unwrap_or(u32::MAX)));
    }
    if entries.is_empty() {
        Err("no message in it".to_owned())
    } else {
        Ok(Case { kind: Kind::Messages(entries), places })
    }
}

/// The exit code for findings and an asked severity.
pub(super) fn exit(findings: &[Finding], fail_on: Severity) -> crate::cli::Exit {
    if findings.iter().any(|finding| finding.severity >= fail_on) {
        crate::cli::Exit::Refuted
    } else {
        crate::cli::Exit::Holds
    }
}

/// Prints findings for people.
pub(super) fn print(io: &mut Io<'_>, findings: &[Finding]) -> Result<(), CliError> {
    for finding in findings {
        let place = finding.at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
        let party = finding.party.as_deref().map(|party| format!("{party}: ")).unwrap_or_default();
        writeln!(io.stdout, "{place}{} {}: {party}{}", finding.severity.word(), finding.id, finding.message)?;
        writeln!(io.stdout, "    why: {}", finding.why)?;
        if let Some(clause) = &finding.clause {
            writeln!(io.stdout, "    clause: {clause}")?;
        }
        if let Some(remedy) = &finding.remedy {
            writeln!(io.stdout, "    remedy: {remedy}")?;
        }
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    writeln!(
        io.stdout,
        "{} errors, {} warnings, {} notes",
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note)
    )?;
    Ok(())
}

/// The asked severity on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FailOn {
    Note,
    Warning,
    Error,
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Self {
        match fail_on {
            FailOn::Note => Self::Note,
            FailOn::Warning => Self::Warning,
            FailOn::Error => Self::Error,
        }
    }
}
