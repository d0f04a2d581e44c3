//! `windtunnel scenario schema|check`.

use super::{CliError, Exit, Io};
use crate::scenario::compile::{Place, compile};
use crate::scenario::load::load_paths;
use std::path::PathBuf;
use windtunnel_model::profile::ProfileName;

/// Arguments of `scenario`.
#[derive(Debug, clap::Args)]
pub struct ScenarioArgs {
    #[command(subcommand)]
    command: ScenarioCommand,
}

/// What to do with scenario files.
#[derive(Debug, clap::Subcommand)]
enum ScenarioCommand {
    /// Print the JSON Schema of scenario files.
    Schema,
    /// Read and compile scenarios without running them.
    #[command(after_help = "Example:\n  windtunnel scenario check my-scenarios/")]
    Check {
        /// Files and folders.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
}

/// Runs the subcommand.
///
/// # Errors
/// When something cannot be written.
pub fn run(args: &ScenarioArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.command {
        ScenarioCommand::Schema => {
            writeln!(io.stdout, "{}", schema()?)?;
            Ok(Exit::Holds)
        }
        ScenarioCommand::Check { paths } => {
            let loaded = match load_paths(paths, &io.cwd) {
                Ok(loaded) => loaded,
                Err(errors) => return super::run::report_errors(&errors, io),
            };
            let mut errors = Vec::new();
            for scenario in &loaded {
                for profile in ProfileName::ALL {
                    if let Err(error) = compile(scenario, profile, &Place::default()) {
                        errors.push(*error);
                        break;
                    }
                }
            }
            if !errors.is_empty() {
                return super::run::report_errors(&errors, io);
            }
            writeln!(io.stdout, "{} scenarios can be run", loaded.len())?;
            Ok(Exit::Holds)
        }
    }
}

/// The JSON Schema of scenario files, as checked in beside them.
///
/// # Errors
/// When it cannot be serialised.
pub fn schema() -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&schemars::schema_for!(crate::scenario::Scenario))
}
