//! `windtunnel completions SHELL`.

use super::{CliError, Exit, Io};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Prints the script.
///
/// # Errors
/// When stdout is gone.
pub fn run(args: &CompletionsArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "windtunnel", &mut script);
    io.stdout.write_all(&script)?;
    Ok(Exit::Holds)
}
