//! Getting the tool lists and skills that are to be counted: from files, and from servers that are started and asked.

use super::CostArgs;
use crate::cli::{CliError, Io};
use crate::process::child::CommandLine;
use crate::transport::Delivery;
use crate::transport::stdio::{SHUTDOWN_SPECIFICATION, StdioConnection, StdioSpec};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windtunnel_model::context::definition::{Definition, read_catalogue};
use windtunnel_model::mcp::jsonrpc::{Message, RequestId};
use windtunnel_model::sources::skills::{Skill, read_skill};

/// A server's tools and instructions.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) tools: Vec<Definition>,
    pub(super) instructions: String,
}

/// All that was got, and what could not be.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) servers: Vec<Server>,
    pub(super) skills: Vec<Skill>,
    /// What could not be read or asked, in words.
    pub(super) not_counted: Vec<String>,
}

/// How long a server has to answer each request.
const ANSWER: Duration = Duration::from_secs(30);

pub(super) fn gather(args: &CostArgs, io: &Io<'_>) -> Result<Gathered, CliError> {
    let mut gathered = Gathered::default();
    for entry in &args.tools {
        let (name, file) = match entry.split_once('=') {
            Some((name, file)) => (Some(name.to_owned()), file),
            None => (None, entry.as_str()),
        };
        let path = io.cwd.join(file);
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.unwrap_or(stem);
        let document = read_json(&path)?;
        let tools = read_catalogue(&name, &document)
            .map_err(|error| CliError::input(format!("{}: {error}", path.display())))?;
        gathered.servers.push(Server { name, tools, instructions: String::new() });
    }
    for entry in &args.server {
        let (name, command) = entry.split_once('=').ok_or_else(|| {
            CliError::with_hint(
                format!("--server {entry}: no `=`"),
                "write NAME=COMMAND, e.g. --server git='uvx mcp-server-git'",
            )
        })?;
        let server = ask(name, CommandLine::Shell(command.to_owned()), Vec::new(), &io.cwd)
            .map_err(|why| CliError::input(format!("server {name}: {why}")))?;
        gathered.servers.push(server);
    }
    if let Some(file) = &args.mcp_config {
        mcp_config(&io.cwd.join(file), &mut gathered)?;
    }
    for folder in &args.skills {
        skills_below(&io.cwd.join(folder), &mut gathered)?;
    }
    Ok(gathered)
}

pub(super) fn read_text(path: &Path) -> Result<String, CliError> {
    let bytes = std::fs::read(path).map_err(|source| CliError::File { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn read_json(path: &Path) -> Result<Value, CliError> {
    serde_json::from_str(&read_text(path)?).map_err(|error| {
        CliError::input(format!("{}:{}:{}: {error}", path.display(), error.line(), error.column()))
    })
}

/// Starts the stdio servers of an .mcp.json and asks each. One that does not answer is said to be not counted.
pub(super) fn mcp_config(path: &Path, gathered: &mut Gathered) -> Result<(), CliError> {
    let document = read_json(path)?;
    let servers = document
        .get("mcpServers")
        .and_then(Value::as_object)
        .ok_or_else(|| CliError::input(format!("{}: expected an object `mcpServers`", path.display())))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    for (name, entry) in servers {
        let Some(program) = entry.get("command").and_then(Value::as_str) else {
            gathered
                .not_counted
                .push(format!("server {name}: not a stdio server, its tools were not asked for"));
            continue;
        };
        let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
        let args = args.filter_map(Value::as_str).map(str::to_owned).collect();
        let env = entry.get("env").and_then(Value::as_object).into_iter().flatten();
        let env = env.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        let command = CommandLine::Exec { program: program.to_owned(), args };
        match ask(name, command, env, folder) {
            Ok(server) => gathered.servers.push(server),
            Err(why) => gathered.not_counted.push(format!("server {name}: {why}")),
        }
    }
    Ok(())
}

/// Every `<folder>/<name>/SKILL.md`, in the order of the names.
pub(super) fn skills_below(folder: &Path, gathered: &mut Gathered) -> Result<(), CliError> {
    for path in sorted(folder)? {
        let file = path.join("SKILL.md");
        if file.is_file() {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            gathered.skills.push(read_skill(&name, &read_text(&file)?));
        }
    }
    Ok(())
}

/// The entries of a folder, by name.
pub(super) fn sorted(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::File { path: folder.to_owned(), source };
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(failed)?.collect();
    let mut paths: Vec<PathBuf> = entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Starts a server, opens a connection of the legacy era, lists its tools over all pages, and ends it.
fn ask(name: &str, command: CommandLine, env: Vec<(String, String)>, cwd: &Path) -> Result<Server, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut spec = StdioSpec::new(command, cwd.to_owned());
        spec.env = env;
        let mut connection =
            StdioConnection::open(&spec).map_err(|error| format!("cannot start: {error}"))?;
        let listed = list(name, &mut connection).await;
        connection.shutdown(&SHUTDOWN_SPECIFICATION).await;
        listed
    })
}

/// Pages that are asked for at most: a cursor that never ends is a server's fault, not ours to follow for ever.
const MOST_PAGES: usize = 1_000;

async fn list(name: &str, connection: &mut StdioConnection) -> Result<Server, String> {
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "windtunnel", "version": env!("CARGO_PKG_VERSION")}
    });
    let opened = request(connection, 0, "initialize", hello).await?;
    send(connection, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    let instructions = opened.get("instructions").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut tools = Vec::new();
    let mut cursor: Option<Value> = None;
    for page in 1..=MOST_PAGES {
        let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let result = request(connection, page, "tools/list", params).await?;
        tools.extend(read_catalogue(name, &result).map_err(|error| error.to_string())?);
        match result.get("nextCursor") {
            None | Some(Value::Null) => return Ok(Server { name: name.to_owned(), tools, instructions }),
            Some(next) => cursor = Some(next.clone()),
        }
    }
    Err(format!("tools/list did not end after {MOST_PAGES} pages"))
}

fn send(connection: &StdioConnection, message: &Value) -> Result<(), String> {
    connection.send(&message.to_string()).map_err(|error| error.to_string())
}

async fn request(
    connection: &mut StdioConnection,
    id: usize,
    method: &str,
    params: Value,
) -> Result<Value, String> {
    send(connection, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
    let deadline = tokio::time::Instant::now() + ANSWER;
    loop {
        let delivery = tokio::time::timeout_at(deadline, connection.receive())
            .await
            .map_err(|_| format!("no answer to {method} within {} s", ANSWER.as_secs()))?;
        match delivery {
            Delivery::Message(Message::Response { id: answered, result })
                if answered == RequestId::Integer(i64::try_from(id).unwrap_or(i64::MAX)) =>
            {
                return Ok(result);
            }
            Delivery::Message(Message::Error { error, .. }) => return Err(format!("{method}: {error:?}")),
            Delivery::Closed => {
                let said = connection.stderr();
                let last = said.lines().last().unwrap_or("nothing on stderr");
                return Err(format!("the server ended before it answered {method}: {last}"));
            }
            // Notifications, requests and noise do not answer us.
            _ => {}
        }
    }
}
