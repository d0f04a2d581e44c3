//! `windtunnel mcp …`: one file a subcommand.

pub mod check;
pub mod conformance_client;
mod input;
pub mod lint;
pub mod probe;
pub mod record;
pub mod serve;

use super::{CliError, Exit, Io};
use clap::Subcommand;

/// Arguments of `mcp`.
#[derive(Debug, clap::Args)]
pub struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

/// The subcommands of `mcp`.
#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Find out how a server behaves towards a harness: eras, versions, lists, cost, faults. Calls no tool.
    Probe(probe::ProbeArgs),
    /// Check a catalogue of tools against the rules of the protocol and of the model APIs.
    Lint(lint::LintArgs),
    /// Judge an exchange: findings that name the party at fault and the clause.
    Check(check::CheckArgs),
    /// Sit between a client and a server, pass everything through, and write the trace.
    Record(record::RecordArgs),
    /// Be the client under test of the official conformance tool.
    ConformanceClient(conformance_client::ConformanceArgs),
    /// Serve as a script says, well or badly: a server for testing clients.
    Serve(serve::ServeArgs),
}

/// Runs a subcommand of `mcp`.
///
/// # Errors
/// As the subcommand does.
pub fn run(args: &McpArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.command {
        McpCommand::Probe(args) => probe::run(args, io),
        McpCommand::Record(args) => record::run(args, io),
        McpCommand::Lint(args) => lint::run(args, io),
        McpCommand::Check(args) => check::run(args, io),
        McpCommand::ConformanceClient(args) => conformance_client::run(args, io),
        McpCommand::Serve(args) => serve::run(args, io),
    }
}
