//! `windtunnel gate diff OLD NEW`: which calls change decision between two settings.

use super::ProfileArg;
use crate::cli::{CliError, Exit, Format, Io, write_json};
use crate::gate::load::{self, Flags, Inputs};
use serde::Serialize;
use std::path::{Path, PathBuf};
use windtunnel_model::finding::Finding;
use windtunnel_model::gate::Mode;
use windtunnel_model::gate::diff::{Difference, atoms, diff};
use windtunnel_model::gate::pipeline::Session;
use windtunnel_model::gate::tools::{McpTool, ToolTable};
use windtunnel_model::profile::Profile;
use windtunnel_model::sources::settings::Level;

/// Arguments of `gate diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// A settings file, or a folder with `.claude/settings.json`
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// What it is compared with
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// The permission mode of both
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    #[command(flatten)]
    profile: ProfileArg,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Report {
    profile: &'static str,
    compared: usize,
    differences: Vec<Difference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

/// Runs it.
///
/// # Errors
/// When a file cannot be read.
pub fn run(args: &DiffArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let profile = args.profile.profile;
    let (mut old, mut findings) = session(&args.old, args.mode, profile.profile(), io)?;
    let (mut new, more) = session(&args.new, args.mode, profile.profile(), io)?;
    findings.extend(more);
    offer_named_tools(&mut old, &mut new);
    let report = Report {
        profile: profile.word(),
        compared: atoms(&old, &new).len(),
        differences: diff(&old, &new),
        findings,
    };
    match args.format {
        Format::Json => write_json(io, "gate diff", &report)?,
        Format::Text => {
            super::print_findings(&report.findings, io)?;
            for d in &report.differences {
                writeln!(io.stdout, "{:<6} -> {:<6} {} {}", d.old, d.new, d.tool, d.input)?;
            }
            writeln!(
                io.stdout,
                "{} of {} compared calls change their decision (profile {}; hooks taken as saying nothing, \
                 folders as trusted)",
                report.differences.len(),
                report.compared,
                report.profile
            )?;
        }
    }
    Ok(if report.differences.is_empty() { Exit::Holds } else { Exit::Refuted })
}

/// What is not JSON at all is refused: the harness would pass it over without a word, but here a wrong name is likelier.
fn session(
    path: &Path,
    mode: Option<Mode>,
    profile: Profile,
    io: &Io<'_>,
) -> Result<(Session, Vec<Finding>), CliError> {
    let full = io.cwd.join(path);
    let files = if full.is_dir() {
        load::hierarchy(&full, None, None)
    } else {
        let file = super::read(path, Level::User, io)?;
        super::expect_json(&file)?;
        vec![file]
    };
    let inputs = Inputs {
        files,
        flags: Flags { mode, ..Flags::default() },
        trusted: true,
        project: "/project".to_owned(),
        home: "/home/user".to_owned(),
        tools: ToolTable { tool_search: true, ..ToolTable::default() },
        profile,
    };
    Ok(load::session(&inputs))
}

/// Servers are not asked: the MCP tools that rules of either side name are taken to be offered.
fn offer_named_tools(old: &mut Session, new: &mut Session) {
    use windtunnel_model::gate::examples::{caught, near_miss};
    let mut names = Vec::new();
    for session in [&*old, &*new] {
        for (_, pattern) in &session.policy.rules.patterns {
            let examples = caught(pattern, &session.policy.tools).into_iter().chain(near_miss(pattern));
            names.extend(examples.map(|example| example.tool).filter(|tool| tool.starts_with("mcp__")));
        }
    }
    for name in names {
        old.policy.tools.mcp.insert(name.clone(), McpTool::default());
        new.policy.tools.mcp.insert(name, McpTool::default());
    }
}
