//! `windtunnel cost`: what servers, skills and instructions cost, counted in tokens and priced in money.

mod gather;
mod plots;
mod project;
mod replay;
mod report;
mod settings;
mod text;

use crate::cli::{CliError, Exit, Io, write_json};
use crate::tokens::Encoding;
use std::path::PathBuf;
use windtunnel_model::context::price::{Models, SHIPPED};
use windtunnel_model::context::tokens::Remembering;
use windtunnel_model::profile::ProfileName;

/// How a cost report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CostFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// A line a definition.
    Csv,
    /// A table a server, for a README.
    Markdown,
}

/// Arguments of `cost`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CostArgs {
    #[command(subcommand)]
    command: Option<CostCommand>,
    /// A file with a `tools/list` result; the server is named after the file, or NAME=FILE. Repeatable.
    #[arg(long, value_name = "FILE.json", num_args = 1..)]
    tools: Vec<String>,
    /// A stdio server to start and ask for its tools, as NAME=COMMAND with arguments. Repeatable.
    #[arg(long, value_name = "NAME=COMMAND")]
    server: Vec<String>,
    /// An .mcp.json file whose stdio servers are started and asked.
    #[arg(long, value_name = "FILE")]
    mcp_config: Option<PathBuf>,
    /// A folder of skills, a folder each with a SKILL.md.
    #[arg(long, value_name = "DIR")]
    skills: Vec<PathBuf>,
    /// A project: its settings, .mcp.json, skills, commands, plugins and CLAUDE.md, part by part.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    session: SessionArgs,
    /// Names of the tools that the session uses, separated by commas.
    #[arg(long = "use", value_name = "SET", value_delimiter = ',')]
    used: Vec<String>,
    /// Instead of a set: each tool is used with this probability; the expected cost is exact, the session is that of as
    /// many tools spread over the list.
    #[arg(long, value_name = "P", conflicts_with = "used")]
    use_random: Option<f64>,
    /// What ENABLE_TOOL_SEARCH would be set to, to say which loading would be chosen.
    #[arg(long, value_name = "VALUE")]
    strategy: Option<String>,
    /// Draws plots: FILE becomes FILE-used, FILE-turns, FILE-grid, FILE-layers and, with skills, FILE-listing.
    #[arg(long, value_name = "FILE.svg|png")]
    plot: Option<PathBuf>,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t)]
    format: CostFormat,
}

/// What a session is like, for `cost` and `cost replay`.
#[derive(Clone, Debug, clap::Args)]
pub struct SessionArgs {
    /// The model whose window and prices count.
    #[arg(long, value_name = "NAME", default_value = "claude-opus-5-5")]
    pub model: String,
    /// A table of models and prices instead of the one that ships.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// The counter of tokens.
    #[arg(long, value_enum, default_value_t)]
    pub encoding: Encoding,
    /// The profile whose rules hold.
    #[arg(long, value_name = "PROFILE", default_value_t = ProfileName::ClaudeCode)]
    pub profile: ProfileName,
    /// Requests of the session, searches not counted.
    #[arg(long, value_name = "T", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub turns: u64,
    /// Tokens that stand in every request beside the tools counted here (built-ins, system prompt).
    #[arg(long, value_name = "TOKENS", default_value_t = 12_000)]
    pub base: u64,
    /// Tokens that each request adds to the conversation.
    #[arg(long, value_name = "TOKENS", default_value_t = 1_000)]
    pub growth: u64,
    /// Tokens of output of each request.
    #[arg(long, value_name = "TOKENS", default_value_t = 300)]
    pub output: u64,
    /// Seconds between requests; above 300 the cache of five minutes is lost.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub pause: u64,
    /// Tools that one search loads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub per_search: usize,
}

/// What is done under `cost`.
#[derive(Debug, clap::Subcommand)]
enum CostCommand {
    /// Replays recorded sessions: what was resident, what was used, what deferring would have changed.
    Replay(replay::ReplayArgs),
}

/// The table of models that counts.
pub(crate) fn models(session: &SessionArgs, io: &Io<'_>) -> Result<Models, CliError> {
    let Some(path) = &session.prices else {
        return Models::read(SHIPPED).map_err(CliError::from);
    };
    let path = io.cwd.join(path);
    let text =
        crate::files::read_text(&path).map_err(|source| CliError::File { path: path.clone(), source })?;
    Models::read(&text).map_err(|error| CliError::input(format!("{}: {error}", path.display())))
}

/// Runs `cost`.
///
/// # Errors
/// When something that was given cannot be read, or there is nothing to count.
pub fn run(args: &CostArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    if let Some(CostCommand::Replay(args)) = &args.command {
        return replay::run(args, io);
    }
    if args.use_random.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
        return Err(CliError::input("--use-random: a probability is between 0 and 1"));
    }
    let counter = Remembering::new(args.session.encoding.counter());
    let mut gathered = gather::gather(args, io)?;
    let (parts, in_force) = match &args.project {
        None => (None, settings::InForce::default()),
        Some(folder) => {
            let folder = io.cwd.join(folder);
            let parts = project::read(&folder, io.home.as_deref(), &mut gathered)?;
            let profile = args.session.profile.profile();
            (Some(parts), settings::read(&folder, io.home.as_deref(), &profile))
        }
    };
    if gathered.servers.is_empty() && gathered.skills.is_empty() && parts.is_none() {
        return Err(CliError::with_hint(
            "nothing to count",
            "give --tools FILE.json, --server NAME=COMMAND, --mcp-config FILE, --skills DIR or --project DIR",
        ));
    }
    let models = models(&args.session, io)?;
    let report = report::build(args, &gathered, parts, &in_force, &models, &counter)?;
    match args.format {
        CostFormat::Text => text::text(&report, io)?,
        CostFormat::Json => write_json(io, "cost", &report)?,
        CostFormat::Csv => text::csv(&report, io)?,
        CostFormat::Markdown => text::markdown(&report, io)?,
    }
    if let Some(path) = &args.plot {
        for written in plots::write(&io.cwd.join(path), args, &report, &models, &gathered, &in_force)? {
            writeln!(io.stderr, "plot: {}", written.display())?;
        }
    }
    Ok(Exit::Holds)
}
