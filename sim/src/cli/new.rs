//! `windtunnel new NAME`: a scenario to start from.

use super::{CliError, Exit, Io};
use std::io::Write as _;
use std::path::PathBuf;

/// What a new scenario looks like: it runs and passes as it is.
const TEMPLATE: &str = include_str!("new.json");

/// Arguments of `new`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  windtunnel new my-guard && windtunnel run my-guard.json")]
pub struct NewArgs {
    /// The scenario's name; the file is NAME.json.
    name: PathBuf,
}

/// Writes the file; never over an existing one.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn run(args: &NewArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut path = args.name.clone();
    if path.extension().is_none_or(|extension| extension != "json") {
        path.as_mut_os_string().push(".json");
    }
    let absolute = io.cwd.join(&path);
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&absolute);
    let mut file = file.map_err(|source| CliError::File { path: path.clone(), source })?;
    file.write_all(TEMPLATE.as_bytes()).map_err(|source| CliError::File { path: path.clone(), source })?;
    writeln!(io.stdout, "wrote {0}\nrun it with: windtunnel run {0}", path.display())?;
    Ok(Exit::Holds)
}
