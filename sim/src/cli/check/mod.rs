//! `windtunnel check`: every proposition with its verdicts, or one that explains itself.

mod markdown;
mod text;

use super::{CliError, Exit, Io, write_json};
use crate::lab::SeededLab;
use serde_json::{Value, json};
use windtunnel_model::profile::ProfileName;
use windtunnel_model::propositions::{self, Plan, Proposition, PropositionReport, judge};
use windtunnel_model::verdict::Verdict;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel check                     every proposition, as a table
  windtunnel check 3.4.2               one, with witness and reasons
  windtunnel check 3.4 --mutants       all of 3.4, with wrong rules that must be caught
  windtunnel check --format markdown   the table for a page")]
pub struct CheckArgs {
    /// Ids, e.g. `3.4.2`, or their beginnings, e.g. `3.4`; without any, all.
    ids: Vec<String>,
    /// Enumerate up to this bound instead of each check's own (at most what each check can bear).
    #[arg(long, value_name = "N")]
    bound: Option<usize>,
    /// So many random cases instead of each check's own number.
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// The seed of random cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Try wrong rules too: each must be caught.
    #[arg(long)]
    mutants: bool,
    /// Judge in this profile only; default: documented and claude-code-2.1.332.
    #[arg(long, value_name = "P")]
    profile: Option<ProfileName>,
    /// Leave out every time: the output is then the same, byte for byte, for the same seed.
    #[arg(long)]
    no_times: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: CheckFormat,
}

/// The formats of `check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum CheckFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON document on stdout, as the command-line contract states.
    Json,
    /// The table of verdicts, for a page.
    Markdown,
}

/// Checks.
///
/// # Errors
/// When an id names nothing, or something cannot be written.
pub fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let chosen = chosen(&args.ids)?;
    let plan = Plan {
        seed: args.seed,
        bound: args.bound,
        samples: args.cases,
        mutants: args.mutants,
        profile: args.profile,
        times: !args.no_times,
    };
    let mut lab = SeededLab::new(args.seed);
    let explains = args.format == CheckFormat::Text && chosen.len() == 1;
    let mut reports = Vec::with_capacity(chosen.len());
    for proposition in chosen {
        let report = judge(proposition, &plan, &mut lab);
        if args.format == CheckFormat::Text {
            if explains { text::explain(&report, io)? } else { text::line(&report, io)? }
        }
        reports.push(report);
    }
    match args.format {
        CheckFormat::Text if explains => {}
        CheckFormat::Text => text::summary(&reports, &plan, io)?,
        CheckFormat::Markdown => markdown::table(&reports, io)?,
        CheckFormat::Json => {
            let entries: Vec<Value> = reports.iter().map(entry).collect::<Result<_, _>>()?;
            write_json(io, "check", &json!({ "propositions": entries }))?;
        }
    }
    Ok(exit(&reports))
}

fn exit(reports: &[PropositionReport]) -> Exit {
    if reports.iter().any(|report| !report.is_as_stated() && !report.is_open()) {
        Exit::Refuted
    } else if reports.iter().any(PropositionReport::is_open) {
        Exit::CannotJudge
    } else {
        Exit::Holds
    }
}

/// The propositions that the ids name, each once, in the order of the registry.
fn chosen(ids: &[String]) -> Result<Vec<&'static Proposition>, CliError> {
    if ids.is_empty() {
        return Ok(propositions::all().collect());
    }
    let mut named: Vec<&'static str> = Vec::new();
    for id in ids {
        let found = propositions::named(id);
        if found.is_empty() {
            return Err(unknown(id));
        }
        named.extend(found.iter().map(|proposition| proposition.id));
    }
    Ok(propositions::all().filter(|proposition| named.contains(&proposition.id)).collect())
}

fn unknown(id: &str) -> CliError {
    let mut near: Vec<(usize, &str)> = propositions::all()
        .map(|proposition| {
            (strsim::levenshtein(&id.to_lowercase(), &proposition.id.to_lowercase()), proposition.id)
        })
        .collect();
    near.sort();
    let near: Vec<&str> = near.into_iter().take(5).map(|(_, id)| id).collect();
    CliError::with_hint(
        format!("no proposition `{id}`"),
        format!("near it: {}; without ids `windtunnel check` lists all", near.join(", ")),
    )
}

/// One proposition in the shape of the command-line contract: the verdict in `documented` first, the observed one beside.
fn entry(report: &PropositionReport) -> Result<Value, serde_json::Error> {
    let first = report.profiles.first();
    let in_profile = |name: ProfileName| report.profiles.iter().find(|p| p.profile == name.word());
    let documented = in_profile(ProfileName::Documented).or(first);
    let mut entry = json!({
        "id": report.id,
        "title": report.title,
        "statement": report.statement,
        "source": report.source,
        "verdict": documented.map_or(Verdict::Unknown, |p| p.verdict),
        "as_stated": report.is_as_stated(),
        "method": documented
            .map(|p| p.methods().iter().map(|m| m.word()).collect::<Vec<_>>().join(", "))
            .unwrap_or_default(),
        "bounds": documented.map(bounds).unwrap_or_default(),
        "cases": documented.map_or(0, |p| p.cases()),
    });
    let mut put = |key: &str, value: Value| {
        if let Some(fields) = entry.as_object_mut() {
            fields.insert(key.to_owned(), value);
        }
    };
    if let Some(seed) = report.seed {
        put("seed", seed.into());
    }
    if let Some(seconds) = report.seconds {
        put("seconds", seconds.into());
    }
    if let Some(profile) = documented
        && let Some(evidence) = profile.evidence()
    {
        let key = if profile.verdict == Verdict::Refuted { "counterexample" } else { "witness" };
        put(key, serde_json::to_value(evidence)?);
    }
    if let Some(observed) = in_profile(ProfileName::ClaudeCode) {
        let mut value = json!({
            "verdict": observed.verdict,
            "expected": observed.expected,
            "differences": observed.differences,
        });
        if let (Some(evidence), Some(fields)) = (observed.evidence(), value.as_object_mut()) {
            fields.insert("witness".to_owned(), serde_json::to_value(evidence)?);
        }
        put("observed", value);
    }
    put("profiles", serde_json::to_value(&report.profiles)?);
    put("ablations", serde_json::to_value(&report.ablations)?);
    let mutants: Vec<Value> = report
        .mutants
        .iter()
        .map(|mutant| {
            let caught = mutant.verdict == Verdict::Refuted;
            let by = mutant.counterexample.as_ref().map(|evidence| evidence.text.as_str());
            json!({ "name": mutant.name, "text": mutant.text, "caught": caught, "by": by, "cases": mutant.cases })
        })
        .collect();
    put("mutants", mutants.into());
    Ok(entry)
}

/// What the checks range over, each once.
fn bounds(profile: &propositions::ProfileReport) -> String {
    let mut all: Vec<&str> = Vec::new();
    for bound in profile.checks.iter().flat_map(|check| &check.bounds) {
        if !all.contains(&bound.as_str()) {
            all.push(bound);
        }
    }
    all.join("; ")
}
