//! The command line: one file a subcommand. [`run`] takes injected input, output and current folder, so that most
//! tests of it need no process.

pub mod check;
pub mod completions;
pub mod cost;
pub mod explore;
mod findings;
pub mod gate;
pub mod hook;
mod hook_play;
pub mod lint;
pub mod mcp;
pub mod new;
pub mod profile;
pub mod replay;
pub mod run;
mod run_output;
mod run_report;
pub mod scenario;
mod source;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;

/// What a command reads and writes.
pub struct Io<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output: only what could be piped on.
    pub stdout: &'a mut dyn Write,
    /// Standard error: progress, warnings, errors.
    pub stderr: &'a mut dyn Write,
    /// The current folder.
    pub cwd: PathBuf,
    /// The home folder, where user settings are.
    pub home: Option<PathBuf>,
    /// Whether progress may be drawn on stderr.
    pub progress: bool,
}

/// Exit codes, as the command-line contract states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All hold.
    Holds = 0,
    /// Something was refuted, or there is a finding at or above the asked severity.
    Refuted = 1,
    /// It could not be judged: misuse, unreadable input, a bound hit under `--require-complete`.
    CannotJudge = 2,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do its work; always exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Something that the user gave is wrong.
    #[error("{message}")]
    Input {
        /// What is wrong, where, and what was expected.
        message: String,
        /// What may help.
        hint: Option<String>,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Standard output is gone.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
    /// A document could not be serialised.
    #[error("cannot serialise: {0}")]
    Json(#[from] serde_json::Error),
}

impl CliError {
    /// An error about what the user gave.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: None }
    }

    /// The same with a hint.
    pub fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: Some(hint.into()) }
    }
}

/// An executable model of a coding-agent harness, and a test bench for real ones.
#[derive(Debug, Parser)]
#[command(name = "windtunnel", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

/// The subcommands, in the order of the help.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run scenarios in the model, at random, and on real processes.
    Run(run::RunArgs),
    /// Explore every reachable state of scenarios, with shortest counterexamples.
    Explore(explore::ExploreArgs),
    /// Check the propositions of the documents, or explain one.
    Check(check::CheckArgs),
    /// The rule sets: their parameters, each with its source, and where they differ.
    Profile(profile::ProfileArgs),
    /// Judge recorded conversations: does every call have its one result?
    Replay(replay::ReplayArgs),
    /// Write a scenario to start from.
    New(new::NewArgs),
    /// The format of scenario files: its JSON Schema, and a check.
    Scenario(scenario::ScenarioArgs),
    /// Probe, check, serve and record MCP servers and exchanges.
    Mcp(mcp::McpArgs),
    /// What servers, skills and instructions cost, in tokens and money.
    Cost(Box<cost::CostArgs>),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
    /// Would this call run, and why: explain, test and compare settings.
    Gate(gate::GateArgs),
    /// Try hooks on real processes.
    Hook(hook::HookArgs),
    /// Find mistakes in settings, rules, hooks and matchers.
    Lint(lint::LintArgs),
}

/// The whole command line as clap knows it: for the reference snapshot and for completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line `args` (the program's name first).
pub fn run(args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> Exit {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let text = error.render();
            // `--help` and `--version` are "errors" that belong on stdout.
            let wrote = if error.use_stderr() {
                write!(io.stderr, "{}", text.ansi())
            } else {
                write!(io.stdout, "{}", text.ansi())
            };
            let _ = wrote;
            return if error.use_stderr() { Exit::CannotJudge } else { Exit::Holds };
        }
    };
    let result = Cli::from_arg_matches(&matches)
        .map_err(|error| CliError::input(error.to_string()))
        .and_then(|cli| match cli.command {
            None => run::run(&run::RunArgs::default(), io),
            Some(Command::Run(args)) => run::run(&args, io),
            Some(Command::Explore(args)) => explore::run(&args, io),
            Some(Command::Check(args)) => check::run(&args, io),
            Some(Command::Profile(args)) => profile::run(&args, io),
            Some(Command::Replay(args)) => replay::run(&args, io),
            Some(Command::New(args)) => new::run(&args, io),
            Some(Command::Scenario(args)) => scenario::run(&args, io),
            Some(Command::Mcp(args)) => mcp::run(&args, io),
            Some(Command::Cost(args)) => cost::run(&args, io),
            Some(Command::Completions(args)) => completions::run(&args, io),
            Some(Command::Gate(args)) => gate::run(&args, io),
            Some(Command::Hook(args)) => hook::run(&args, io),
            Some(Command::Lint(args)) => lint::run(&args, io),
        });
    match result {
        Ok(exit) => exit,
        // Whoever closed our output has seen enough.
        Err(CliError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Holds,
        Err(error) => {
            let _ = writeln!(io.stderr, "error: {error}");
            if let CliError::Input { hint: Some(hint), .. } = &error {
                let _ = writeln!(io.stderr, "\nhint: {hint}");
            }
            Exit::CannotJudge
        }
    }
}

/// The output format of commands that speak to people and to programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document on stdout, as the command-line contract states.
    Json,
}

/// Writes the one JSON document of a command: `version` and `command` first, then the fields of `body`.
///
/// # Errors
/// When the document cannot be serialised or written.
pub fn write_json(io: &mut Io<'_>, command: &str, body: &impl serde::Serialize) -> Result<(), CliError> {
    let mut document = serde_json::Map::new();
    document.insert("version".to_owned(), 1.into());
    document.insert("command".to_owned(), command.into());
    if let serde_json::Value::Object(fields) = serde_json::to_value(body)? {
        document.extend(fields);
    }
    // Serialised first: a closed pipe is then an error of writing, not of the document.
    let text = serde_json::to_string_pretty(&document)?;
    writeln!(io.stdout, "{text}")?;
    Ok(())
}
