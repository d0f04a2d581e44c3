//! What servers list: started or reached, asked in whichever era they speak, ended again. For commands that count or
//! judge a catalogue; no tool is called.

use crate::mcp_client::{Driver, Target};
use crate::process::child::CommandLine;
use crate::transport::stdio::{SHUTDOWN_SPECIFICATION, StdioSpec};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use windtunnel_model::mcp::negotiation::client::{ListKind, Phase};
use windtunnel_model::mcp::negotiation::messages::ClientIdentity;
use windtunnel_model::mcp::profile::ClientProfile;
use windtunnel_model::mcp::servers::{Transport, entries, expand, read_entry};
use windtunnel_model::mcp::version::Version;

/// How long a server has, from its start to the end of its lists.
const LIMIT: Duration = Duration::from_secs(60);

/// A server's lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Lists {
    /// The tools, over all pages.
    pub tools: Vec<Value>,
    /// Its instructions; empty where it has none.
    pub instructions: String,
    /// The version that was agreed.
    pub version: Option<Version>,
}

/// A server of a configuration, and how it is reached; or why it is not.
#[derive(Clone, Debug)]
pub struct Configured {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub target: Result<Target, String>,
}

/// The servers of a `.mcp.json`, variables expanded by `variable`; processes start in the file's folder.
///
/// `None` when the document has no object `mcpServers`.
pub fn configured(
    document: &Value,
    folder: &Path,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<Vec<Configured>> {
    let target = |entry: &Value| match read_entry(entry) {
        Err(error) => Err(error.to_string()),
        Ok(Transport::Remote { kind, url }) if kind == "http" || kind == "streamable-http" => {
            Ok(Target::Http(expand(&url, &variable)))
        }
        Ok(Transport::Remote { kind, .. }) => Err(format!("the transport `{kind}` is not spoken here")),
        Ok(Transport::Stdio { argv }) => {
            let mut argv = argv.iter().map(|word| expand(word, &variable));
            let program = argv.next().unwrap_or_default();
            let command = CommandLine::Exec { program, args: argv.collect() };
            let mut spec = StdioSpec::new(command, folder.to_owned());
            let env = entry.get("env").and_then(Value::as_object).into_iter().flatten();
            spec.env = env
                .filter_map(|(key, value)| Some((key.clone(), expand(value.as_str()?, &variable))))
                .collect();
            Ok(Target::Stdio(spec))
        }
    };
    let entries = entries(document)?;
    Some(
        entries
            .iter()
            .map(|(name, entry)| Configured { name: name.clone(), target: target(entry) })
            .collect(),
    )
}

/// A server given as a shell command.
pub fn of_command(command: &str, folder: &Path) -> Target {
    Target::Stdio(StdioSpec::new(CommandLine::Shell(command.to_owned()), folder.to_owned()))
}

/// Asks a server for its lists, as the specification's dual-era client, and ends it.
///
/// # Errors
/// With the reason: it cannot be started, does not answer in time, ends, or refuses.
pub fn ask(target: Target) -> Result<Lists, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let identity = ClientIdentity::new("windtunnel", env!("CARGO_PKG_VERSION"));
        let profile = ClientProfile::specification();
        let mut driver = Driver::new(profile, identity, target, &SHUTDOWN_SPECIFICATION);
        let connected = driver.connect(LIMIT).await;
        let lists = if connected {
            let client = driver.client();
            Ok(Lists {
                tools: client.list(ListKind::Tools).to_vec(),
                instructions: client.instructions().unwrap_or_default().to_owned(),
                version: client.version(),
            })
        } else {
            Err(match (&driver.failure, driver.client().phase()) {
                (Some(failure), _) => failure.to_string(),
                (None, Phase::Listing) => {
                    format!("its lists did not end within {} s", LIMIT.as_secs())
                }
                (None, _) => format!("it did not answer within {} s", LIMIT.as_secs()),
            })
        };
        driver.finish().await;
        lists.map_err(|why| match driver.stderr.lines().last() {
            Some(said) if !said.trim().is_empty() => format!("{why} (last on its stderr: {})", said.trim()),
            _ => why,
        })
    })
}
