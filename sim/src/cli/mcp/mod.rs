//! `windtunnel mcp …`: one file a subcommand.

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
    /// Serve as a script says, well or badly: a server for testing clients.
    Serve(serve::ServeArgs),
}

/// Runs a subcommand of `mcp`.
///
/// # Errors
/// As the subcommand does.
pub fn run(args: &McpArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.command {
        McpCommand::Serve(args) => serve::run(args, io),
    }
}
