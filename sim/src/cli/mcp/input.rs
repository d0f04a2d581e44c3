//! Reading what `mcp check` and `mcp lint` are given: forms of field reports, recorded traces, catalogues.

use crate::cli::CliError;
pub(super) use crate::cli::findings::{FailOn, exit, print};
pub(super) use crate::cli::source::Source;
use serde_json::Value;
use windtunnel_model::mcp::check::Entry;
use windtunnel_model::place::Place;

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
