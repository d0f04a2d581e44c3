//! `windtunnel gate explain|test|diff`: would this call run, and why; kept as a test; compared between two settings.

pub mod test;

use super::{CliError, Exit, Io};
use clap::{Args, Subcommand};
use windtunnel_model::profile::ProfileName;

/// Arguments of `gate`.
#[derive(Debug, Args)]
pub struct GateArgs {
    #[command(subcommand)]
    command: GateCommand,
}

#[derive(Debug, Subcommand)]
enum GateCommand {
    /// Judge expectations that are kept beside settings.
    Test(test::TestArgs),
}

/// Runs the subcommand.
///
/// # Errors
/// As the subcommand's.
pub fn run(args: &GateArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.command {
        GateCommand::Test(args) => test::run(args, io),
    }
}

/// The profile of a command; the observed harness by default.
#[derive(Clone, Copy, Debug, Args)]
pub struct ProfileArg {
    /// Which rules are in force: `teaching`, `documented` or `claude-code-2.1.332`
    #[arg(long, default_value = ProfileName::ClaudeCode.word(), value_name = "PROFILE")]
    pub profile: ProfileName,
}
