//! `windtunnel profile list|show|diff`: the parameters of the profiles, with their sources, read off the tables.

use super::{CliError, Exit, Format, Io, write_json};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use windtunnel_model::profile::{ProfileName, Row, Source};

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(subcommand)]
    command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Name the profiles, and what each is for.
    List {
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print every parameter of a profile: its value, what it decides and where that comes from.
    Show {
        /// The profile
        #[arg(value_name = "PROFILE")]
        profile: ProfileName,
        /// Only parameters whose name contains this text, e.g. `gate.`
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print the parameters in which two profiles differ.
    Diff {
        /// A profile
        #[arg(value_name = "OLD")]
        old: ProfileName,
        /// What it is compared with
        #[arg(value_name = "NEW")]
        new: ProfileName,
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

/// Runs the subcommand. `diff` ends with 1 when the profiles differ.
///
/// # Errors
/// When stdout is gone.
pub fn run(args: &ProfileArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.command {
        ProfileCommand::List { format } => list(*format, io),
        ProfileCommand::Show { profile, filter, format } => show(*profile, filter.as_deref(), *format, io),
        ProfileCommand::Diff { old, new, format } => diff(*old, *new, *format, io),
    }
}

/// How many parameters are documented, observed and inferred.
fn by_source(rows: &[Row]) -> (usize, usize, usize) {
    let count = |wanted: fn(&Source) -> bool| rows.iter().filter(|row| wanted(&row.source)).count();
    (
        count(|source| matches!(source, Source::Doc(_))),
        count(|source| matches!(source, Source::Seen(_))),
        count(|source| matches!(source, Source::Inferred(_))),
    )
}

fn list(format: Format, io: &mut Io<'_>) -> Result<Exit, CliError> {
    if format == Format::Json {
        let profiles: Vec<Value> = ProfileName::ALL
            .into_iter()
            .map(|name| {
                let rows = name.profile().rows();
                let (documented, seen, inferred) = by_source(&rows);
                json!({
                    "profile": name.word(),
                    "meaning": name.meaning(),
                    "parameters": rows.len(),
                    "documented": documented,
                    "seen": seen,
                    "inferred": inferred,
                })
            })
            .collect();
        write_json(io, "profile list", &json!({ "profiles": profiles }))?;
        return Ok(Exit::Holds);
    }
    for name in ProfileName::ALL {
        let rows = name.profile().rows();
        let (documented, seen, inferred) = by_source(&rows);
        writeln!(io.stdout, "{:<20} {}", name.word(), name.meaning())?;
        writeln!(
            io.stdout,
            "{:<20} {} parameters: {documented} documented, {seen} seen, {inferred} inferred",
            "",
            rows.len()
        )?;
    }
    Ok(Exit::Holds)
}

fn show(
    profile: ProfileName,
    filter: Option<&str>,
    format: Format,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    let mut rows = profile.profile().rows();
    let all = rows.len();
    if let Some(text) = filter {
        rows.retain(|row| row.name.contains(text));
        if rows.is_empty() {
            return Err(CliError::input(format!(
                "no parameter of {profile} has `{text}` in its name; without --filter all {all} are printed"
            )));
        }
    }
    match format {
        Format::Json => {
            write_json(io, "profile show", &json!({ "profile": profile.word(), "parameters": rows }))?;
        }
        Format::Text => {
            for row in &rows {
                writeln!(io.stdout, "{} = {}", row.name, row.value)?;
                writeln!(io.stdout, "    {}", row.meaning.trim())?;
                writeln!(io.stdout, "    {}", row.source)?;
            }
            writeln!(io.stdout, "{} of {all} parameters of {profile}", rows.len())?;
        }
    }
    Ok(Exit::Holds)
}

fn diff(old: ProfileName, new: ProfileName, format: Format, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let (a, b) = (old.profile().rows(), new.profile().rows());
    let compared = a.len();
    let differing: Vec<(Row, Row)> = a.into_iter().zip(b).filter(|(a, b)| a.value != b.value).collect();
    match format {
        Format::Json => {
            let differences: Vec<Value> = differing
                .iter()
                .map(|(a, b)| {
                    json!({
                        "name": a.name,
                        "meaning": a.meaning.trim(),
                        "old": {"value": a.value, "source": a.source},
                        "new": {"value": b.value, "source": b.source},
                    })
                })
                .collect();
            let body = json!({
                "old": old.word(),
                "new": new.word(),
                "compared": compared,
                "differences": differences,
            });
            write_json(io, "profile diff", &body)?;
        }
        Format::Text => {
            for (a, b) in &differing {
                writeln!(io.stdout, "{}: {}", a.name, a.meaning.trim())?;
                writeln!(io.stdout, "    {old}: {}  {}", a.value, a.source)?;
                writeln!(io.stdout, "    {new}: {}  {}", b.value, b.source)?;
            }
            writeln!(io.stdout, "{} of {compared} parameters differ", differing.len())?;
        }
    }
    Ok(if differing.is_empty() { Exit::Holds } else { Exit::Refuted })
}
