//! `cost replay`: a recorded session's own figures, and what deferring would have changed.

use super::{SessionArgs, gather, models};
use crate::cli::{CliError, Exit, Format, Io, write_json};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use windtunnel_model::context::definition::{Definition, read_catalogue};
use windtunnel_model::context::price::Usage;
use windtunnel_model::context::tokens::{Counter, Remembering};

/// Arguments of `cost replay`.
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// Recorded sessions, JSON Lines as the harness writes them.
    #[arg(value_name = "TRANSCRIPT.jsonl", required = true)]
    transcripts: Vec<PathBuf>,
    /// Tool lists of the session's servers, NAME=FILE: without them the size of definitions is not known.
    #[arg(long, value_name = "NAME=FILE.json")]
    tools: Vec<String>,
    #[command(flatten)]
    session: SessionArgs,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What deferring changes, by the sizes of the lists that were given.
#[derive(Debug, Serialize)]
struct Deferral {
    /// Tokens of all definitions and of all names.
    upfront_tokens: u64,
    names_tokens: u64,
    /// Tokens of the definitions of the tools that were called.
    used_tokens: u64,
    /// Tokens fewer in the last request, deferred instead of upfront.
    saved_tokens: i128,
    /// USD fewer over the session, taking each request after the first as a cache hit where the recording shows reads.
    saved_usd: f64,
}

/// One session.
#[derive(Debug, Serialize)]
struct SessionReport {
    file: String,
    model: Option<String>,
    /// API messages with usage; repeated lines of one message count once.
    requests: u64,
    usage: Usage,
    /// USD at the prices of the table; absent where the model has none.
    usd: Option<f64>,
    /// USD if nothing had been cached.
    usd_without_cache: Option<f64>,
    /// Tokens of the first request: what was resident, and the first prompt.
    first_request_tokens: Option<u64>,
    /// The share of input that was read from the cache, in percent.
    cached_percent: Option<u64>,
    /// Names that were announced as deferred.
    deferred_names: BTreeSet<String>,
    deferred_names_tokens: u64,
    skill_listing_tokens: u64,
    /// How often each tool was called.
    calls: BTreeMap<String, u64>,
    /// Deferred tools that were called.
    deferred_and_used: Vec<String>,
    deferral: Option<Deferral>,
    /// Why there is no figure for deferring.
    deferral_unknown: Option<String>,
    unreadable_lines: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    encoding: String,
    encoding_error: &'static str,
    prices_of: String,
    sessions: Vec<SessionReport>,
}

pub(super) fn run(args: &ReplayArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let counter = Remembering::new(args.session.encoding.counter());
    let models = models(&args.session, io)?;
    let mut catalogue: Vec<Definition> = Vec::new();
    for entry in &args.tools {
        let (name, file) = entry
            .split_once('=')
            .ok_or_else(|| CliError::input(format!("--tools {entry}: expected NAME=FILE")))?;
        let path = io.cwd.join(file);
        let tools = read_catalogue(name, &gather::read_json(&path)?)
            .map_err(|error| CliError::input(format!("{}: {error}", path.display())))?;
        catalogue.extend(tools);
    }
    let mut report = Report {
        encoding: counter.name(),
        encoding_error: counter.known_error(),
        prices_of: models.date.clone(),
        sessions: Vec::new(),
    };
    for file in &args.transcripts {
        let text = gather::read_text(&io.cwd.join(file))?;
        let mut session = read(&text, &counter);
        session.file = file.display().to_string();
        let id = session.model.clone().unwrap_or_else(|| args.session.model.clone());
        if let Some(model) = models.find(&id) {
            // Without a window of its own every request is priced alone, as it was billed; sums hide long inputs.
            session.usd = model.cost(&session.usage);
            let flat = Usage {
                input: session.usage.input
                    + session.usage.read
                    + session.usage.write_5m
                    + session.usage.write_1h,
                output: session.usage.output,
                ..Usage::default()
            };
            session.usd_without_cache = model.cost(&flat);
        }
        defer(&mut session, &catalogue, args, &models, &counter)?;
        report.sessions.push(session);
    }
    match args.format {
        Format::Json => write_json(io, "cost replay", &report)?,
        Format::Text => text(&report, io)?,
    }
    Ok(Exit::Holds)
}

fn read(text: &str, counter: &dyn Counter) -> SessionReport {
    let mut usages: BTreeMap<String, (usize, Usage)> = BTreeMap::new();
    let mut names = BTreeSet::new();
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    let mut seen_calls = BTreeSet::new();
    let (mut model, mut listing, mut unreadable) = (None, 0, 0);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            unreadable += 1;
            continue;
        };
        if let Some(attachment) = line.get("attachment") {
            let strings =
                |key: &str| attachment.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
            match attachment.get("type").and_then(Value::as_str) {
                Some("deferred_tools_delta") => {
                    names.extend(strings("addedNames").iter().filter_map(Value::as_str).map(str::to_owned));
                }
                Some("skill_listing") => {
                    listing +=
                        counter.count(attachment.get("content").and_then(Value::as_str).unwrap_or_default());
                }
                _ => {}
            }
        }
        if line.get("type").and_then(Value::as_str) != Some("assistant") {
            continue;
        }
        let Some(message) = line.get("message") else { continue };
        if let Some(id) = message.get("model").and_then(Value::as_str).filter(|id| *id != "<synthetic>") {
            model.get_or_insert_with(|| id.to_owned());
        }
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            let is_call = block.get("type").and_then(Value::as_str) == Some("tool_use");
            let id = block.get("id").and_then(Value::as_str).unwrap_or_default();
            if is_call && seen_calls.insert(id.to_owned()) {
                *calls
                    .entry(block.get("name").and_then(Value::as_str).unwrap_or_default().to_owned())
                    .or_default() += 1;
            }
        }
        if let Some(usage) = message.get("usage") {
            // A message stands on a line a block, each with usage: the last line counts, once a message (corpus 6).
            let id = message
                .get("id")
                .and_then(Value::as_str)
                .map_or_else(|| format!("line {number}"), str::to_owned);
            let first = usages.get(&id).map_or(number, |(first, _)| *first);
            usages.insert(id, (first, usage_of(usage)));
        }
    }
    let mut total = Usage::default();
    usages.values().for_each(|(_, usage)| total += *usage);
    let input = |usage: &Usage| usage.input + usage.write_5m + usage.write_1h + usage.read;
    let first = usages.values().min_by_key(|(line, _)| *line).map(|(_, usage)| input(usage));
    let lines: String = names.iter().map(|name: &String| format!("{name}\n")).collect();
    SessionReport {
        file: String::new(),
        model,
        requests: usages.len() as u64,
        usd: None,
        usd_without_cache: None,
        first_request_tokens: first,
        cached_percent: (input(&total) > 0).then(|| total.read * 100 / input(&total)),
        deferred_and_used: calls.keys().filter(|name| names.contains(*name)).cloned().collect(),
        deferred_names_tokens: if lines.is_empty() { 0 } else { counter.count(&lines) },
        deferred_names: names,
        skill_listing_tokens: listing,
        calls,
        usage: total,
        deferral: None,
        deferral_unknown: None,
        unreadable_lines: unreadable,
    }
}

fn usage_of(usage: &Value) -> Usage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    let written = number("/cache_creation_input_tokens").unwrap_or(0);
    let hour = number("/cache_creation/ephemeral_1h_input_tokens").unwrap_or(0);
    Usage {
        input: number("/input_tokens").unwrap_or(0),
        write_5m: written.saturating_sub(hour),
        write_1h: hour.min(written),
        read: number("/cache_read_input_tokens").unwrap_or(0),
        output: number("/output_tokens").unwrap_or(0),
    }
}

fn defer(
    session: &mut SessionReport,
    catalogue: &[Definition],
    args: &ReplayArgs,
    models: &windtunnel_model::context::price::Models,
    counter: &dyn Counter,
) -> Result<(), CliError> {
    if catalogue.is_empty() {
        session.deferral_unknown = Some(
            "a transcript does not hold the definitions; give the servers' lists with --tools".to_owned(),
        );
        return Ok(());
    }
    let parameters = args.session.profile.profile().context;
    let size = |tool: &Definition| counter.count(&tool.wire(&parameters).to_string());
    let upfront: u64 = catalogue.iter().map(size).sum();
    let names: u64 = catalogue.iter().map(|tool| counter.count(&format!("{}\n", tool.qualified()))).sum();
    let used: u64 =
        catalogue.iter().filter(|tool| session.calls.contains_key(&tool.qualified())).map(size).sum();
    let saved = i128::from(upfront) - i128::from(names) - i128::from(used);
    let id = session.model.clone().unwrap_or_else(|| args.session.model.clone());
    let Some(model) = models.find(&id) else {
        session.deferral_unknown = Some(format!("no prices for model `{id}`"));
        return Ok(());
    };
    // Written once, then read where the recording shows a cache at work, else paid in full each time.
    let later = if session.usage.read > 0 { model.read } else { model.input };
    let first = if session.usage.read > 0 { model.write_5m } else { model.input };
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    let saved_usd = saved as f64 * (session.requests.saturating_sub(1) as f64).mul_add(later, first) / 1e6;
    session.deferral = Some(Deferral {
        upfront_tokens: upfront,
        names_tokens: names,
        used_tokens: used,
        saved_tokens: saved,
        saved_usd,
    });
    Ok(())
}

fn text(report: &Report, io: &mut Io<'_>) -> Result<(), CliError> {
    let out = &mut *io.stdout;
    writeln!(out, "tokens not taken from recorded usage by {}: {}", report.encoding, report.encoding_error)?;
    for session in &report.sessions {
        let money = |usd: Option<f64>| usd.map_or_else(|| "unknown".to_owned(), |usd| format!("${usd:.4}"));
        writeln!(out, "\n{}: model {}", session.file, session.model.as_deref().unwrap_or("unknown"))?;
        let usage = &session.usage;
        writeln!(
            out,
            "  {} requests: {} uncached, {} written ({} for an hour), {} read, {} output",
            session.requests,
            usage.input,
            usage.write_5m + usage.write_1h,
            usage.write_1h,
            usage.read,
            usage.output
        )?;
        let cached =
            session.cached_percent.map_or_else(|| "unknown".to_owned(), |percent| format!("{percent} %"));
        writeln!(
            out,
            "  {} at the prices of {}; {} without a cache; {cached} of the input was read from it",
            money(session.usd),
            report.prices_of,
            money(session.usd_without_cache)
        )?;
        if let Some(first) = session.first_request_tokens {
            writeln!(
                out,
                "  first request: {first} tokens, of which names of {} deferred tools {} and skills listing {}",
                session.deferred_names.len(),
                session.deferred_names_tokens,
                session.skill_listing_tokens
            )?;
        }
        let calls: Vec<String> =
            session.calls.iter().map(|(name, count)| format!("{name} {count}")).collect();
        writeln!(
            out,
            "  called: {}",
            if calls.is_empty() { "nothing".to_owned() } else { calls.join(", ") }
        )?;
        if !session.deferred_and_used.is_empty() {
            writeln!(out, "  deferred and called: {}", session.deferred_and_used.join(", "))?;
        }
        match (&session.deferral, &session.deferral_unknown) {
            (Some(deferral), _) => writeln!(
                out,
                "  deferring: {} tokens of definitions against {} of names and {} of used ones: {} tokens and ${:.4} fewer",
                deferral.upfront_tokens,
                deferral.names_tokens,
                deferral.used_tokens,
                deferral.saved_tokens,
                deferral.saved_usd
            )?,
            (None, Some(why)) => writeln!(out, "  deferring: unknown, {why}")?,
            (None, None) => {}
        }
        if session.unreadable_lines > 0 {
            writeln!(out, "  {} lines could not be read", session.unreadable_lines)?;
        }
    }
    Ok(())
}
