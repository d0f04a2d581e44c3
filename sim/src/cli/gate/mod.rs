//! `windtunnel gate explain|test|diff`: would this call run, and why; kept as a test; compared between two settings.

pub mod diff;
pub mod explain;
pub mod init;
pub mod test;

use super::{CliError, Exit, Io};
use crate::gate::load::{self, Flags, FoundFile, Inputs};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use windtunnel_model::finding::Finding;
use windtunnel_model::gate::Mode;
use windtunnel_model::gate::pipeline::Session;
use windtunnel_model::gate::tools::ToolTable;
use windtunnel_model::profile::{Profile, ProfileName};
use windtunnel_model::sources::settings::{Level, with_comments};

/// Arguments of `gate`.
#[derive(Debug, Args)]
pub struct GateArgs {
    #[command(subcommand)]
    command: GateCommand,
}

#[derive(Debug, Subcommand)]
enum GateCommand {
    /// Say what would become of one call, who decides, and what would turn it.
    Explain(explain::ExplainArgs),
    /// Judge expectations that are kept beside settings.
    Test(test::TestArgs),
    /// List the calls whose decision differs between two settings.
    Diff(diff::DiffArgs),
}

/// Runs the subcommand.
///
/// # Errors
/// As the subcommand's.
pub fn run(args: &GateArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.command {
        GateCommand::Explain(args) => explain::run(args, io),
        GateCommand::Test(args) => test::run(args, io),
        GateCommand::Diff(args) => diff::run(args, io),
    }
}

/// The profile of a command; the observed harness by default.
#[derive(Clone, Copy, Debug, Args)]
pub struct ProfileArg {
    /// Which rules are in force: `teaching`, `documented` or `claude-code-2.1.332`
    #[arg(long, default_value = ProfileName::ClaudeCode.word(), value_name = "PROFILE")]
    pub profile: ProfileName,
}

/// Which settings are in force.
#[derive(Clone, Debug, Default, Args)]
pub struct SettingsArgs {
    /// Settings files instead of those of this folder and home, lowest level first
    #[arg(long, value_name = "FILE")]
    pub settings: Vec<PathBuf>,
    /// The administrator's settings file
    #[arg(long, value_name = "FILE")]
    pub managed: Option<PathBuf>,
    /// The permission mode, as with the harness's --permission-mode
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// The project folder
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Take the folder as trusted, so that the project's allow rules count
    #[arg(long)]
    pub trusted: bool,
}

impl SettingsArgs {
    /// The session that the settings make.
    ///
    /// # Errors
    /// When a file cannot be read or the folder does not exist.
    pub fn session(&self, profile: Profile, io: &Io<'_>) -> Result<(Session, Vec<Finding>), CliError> {
        let cwd = self.cwd.as_ref().map_or_else(|| io.cwd.clone(), |dir| io.cwd.join(dir));
        let project = cwd.canonicalize().map_err(|source| CliError::File { path: cwd.clone(), source })?;
        let home = load::home_or_none(io.home.as_deref());
        let managed = self.managed.as_ref().map(|path| io.cwd.join(path));
        let mut files = if self.settings.is_empty() {
            load::hierarchy(&project, Some(&home), None)
        } else {
            self.settings.iter().map(|path| read(path, level_of(path), io)).collect::<Result<_, _>>()?
        };
        if let Some(path) = &managed {
            files.push(read(path, Level::Managed, io)?);
        }
        let name = project.to_string_lossy().into_owned();
        let mut tools = ToolTable { tool_search: true, ..ToolTable::default() };
        load::skills_below(&project, &mut tools);
        load::skills_below(&home, &mut tools);
        let inputs = Inputs {
            files,
            flags: Flags { mode: self.mode, ..Flags::default() },
            trusted: self.trusted || load::is_trusted(&home, &name),
            project: name,
            home: home.to_string_lossy().into_owned(),
            tools,
            profile,
        };
        Ok(load::session(&inputs))
    }
}

fn read(path: &Path, level: Level, io: &Io<'_>) -> Result<FoundFile, CliError> {
    let text = crate::files::read_lossy(&io.cwd.join(path))
        .map_err(|source| CliError::File { path: path.to_owned(), source })?;
    Ok(FoundFile { level, name: path.to_string_lossy().into_owned(), text })
}

/// What is wrong with the settings, on stderr.
pub(crate) fn print_findings(findings: &[Finding], io: &mut Io<'_>) -> Result<(), CliError> {
    for finding in findings {
        let at = finding.at.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        writeln!(io.stderr, "{}: {at}{} [{}]", finding.severity.word(), finding.message, finding.id)?;
    }
    Ok(())
}

/// Refuses a file that is not JSON, not even with comments. An empty file counts as an empty object, as with the
/// harness.
fn expect_json(file: &FoundFile) -> Result<(), CliError> {
    let text = file.text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(());
    }
    let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) else { return Ok(()) };
    if with_comments(text).is_some() {
        return Ok(());
    }
    Err(CliError::input(format!(
        "{}:{}:{}: not JSON: {error}; expected a settings file",
        file.name,
        error.line(),
        error.column()
    )))
}

/// The level a file stands at by its name: `settings.local.json` is local, `.claude/settings.json` of a project is the
/// project's, anything else counts as the user's.
fn level_of(path: &Path) -> Level {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let in_claude = path.parent().is_some_and(|dir| dir.ends_with(".claude"));
    match name.as_str() {
        "settings.local.json" => Level::Local,
        "settings.json" if in_claude => Level::Project,
        "managed-settings.json" => Level::Managed,
        _ => Level::User,
    }
}
