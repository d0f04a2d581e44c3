//! `windtunnel hook play`: a scripted hook program, so that the process world needs nothing but this program.

use super::{CliError, Io};
use std::time::Duration;

/// Arguments of `hook play`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, as a hook's command in a scenario of the process world:
  windtunnel hook play --when-input '[.]env' --exit 2 --stderr protected")]
pub(super) struct PlayArgs {
    /// The exit code
    #[arg(long, default_value_t = 0, value_name = "N")]
    exit: i32,
    /// What it prints on stdout
    #[arg(long, default_value = "", value_name = "TEXT")]
    stdout: String,
    /// What it prints on stderr
    #[arg(long, default_value = "", value_name = "TEXT")]
    stderr: String,
    /// How long it takes
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    seconds: f64,
    /// Exit with 0 and print nothing unless the input matches this regular expression (ECMAScript)
    #[arg(long, value_name = "PATTERN")]
    when_input: Option<String>,
    /// Leave the input unread
    #[arg(long, conflicts_with = "when_input")]
    ignore_input: bool,
}

/// Plays the hook and exits with its code.
///
/// # Errors
/// When an argument is wrong.
pub(super) fn run(args: &PlayArgs, io: &mut Io<'_>) -> Result<std::convert::Infallible, CliError> {
    if !(0.0..=86_400.0).contains(&args.seconds) {
        return Err(CliError::input(format!("--seconds {}: expected 0 to 86400", args.seconds)));
    }
    let pattern = match &args.when_input {
        Some(text) => Some(
            regress::Regex::new(text).map_err(|error| CliError::input(format!("--when-input: {error}")))?,
        ),
        None => None,
    };
    let mut input = Vec::new();
    if !args.ignore_input {
        io.stdin.read_to_end(&mut input)?;
    }
    std::thread::sleep(Duration::from_secs_f64(args.seconds));
    let text = String::from_utf8_lossy(&input);
    if pattern.is_some_and(|pattern| pattern.find(&text).is_none()) {
        std::process::exit(0);
    }
    write!(io.stdout, "{}", args.stdout)?;
    write!(io.stderr, "{}", args.stderr)?;
    io.stdout.flush()?;
    io.stderr.flush()?;
    std::process::exit(args.exit)
}
