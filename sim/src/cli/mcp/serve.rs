//! `windtunnel mcp serve --script FILE`: a real server process that behaves as a script says.

use crate::cli::{CliError, Exit, Io};
use crate::mcp_server;
use std::path::PathBuf;
use windtunnel_model::mcp::negotiation::script::ServerScript;

/// Arguments of `mcp serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The script: a JSON file (its form: module `mcp::negotiation::script` of the model).
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
    /// Serve Streamable HTTP at this loopback port instead (0: any); the endpoint's URL is printed on stderr.
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,
}

/// Serves until the input ends or the script says otherwise. Reads and writes the process's own standard streams: a
/// server is a process of its own.
///
/// # Errors
/// When the script cannot be read.
pub fn run(args: &ServeArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let script = read_script(&io.cwd.join(&args.script))?;
    for line in &script.stderr {
        writeln!(io.stderr, "{line}")?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = match args.http {
        None => runtime.block_on(mcp_server::stdio::serve(script)),
        Some(port) => runtime.block_on(mcp_server::http::serve(script, port, |url| {
            // Whoever started us reads the URL there; without a reader there is nobody to tell.
            let _ = writeln!(io.stderr, "listening at {url}");
        }))?,
    };
    // The runtime's reader of stdin may be blocked for ever; and the script's exit code is not ours to translate.
    std::process::exit(code)
}

/// Reads a script, naming the field that is wrong.
pub(crate) fn read_script(path: &std::path::Path) -> Result<ServerScript, CliError> {
    let text =
        crate::files::read_text(path).map_err(|source| CliError::File { path: path.to_owned(), source })?;
    let mut reader = serde_json::Deserializer::from_str(&text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (at, inner) = (error.path().to_string(), error.inner());
        CliError::input(format!("{}:{}:{}: {at}: {inner}", path.display(), inner.line(), inner.column()))
    })
}
