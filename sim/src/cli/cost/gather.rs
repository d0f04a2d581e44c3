//! Getting the tool lists and skills that are to be counted: from files, and from servers that are started and asked.

use super::CostArgs;
use crate::cli::{CliError, Io};
use crate::mcp_client::Target;
use crate::mcp_lists;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windtunnel_model::context::definition::{Definition, read_catalogue};
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
        let server = ask(name, mcp_lists::of_command(command, &io.cwd))
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
    crate::files::read_lossy(path).map_err(|source| CliError::File { path: path.to_owned(), source })
}

pub(super) fn read_json(path: &Path) -> Result<Value, CliError> {
    serde_json::from_str(&read_text(path)?).map_err(|error| {
        CliError::input(format!("{}:{}:{}: {error}", path.display(), error.line(), error.column()))
    })
}

/// Starts or reaches the servers of an .mcp.json and asks each. One that does not answer is said to be not counted.
pub(super) fn mcp_config(path: &Path, gathered: &mut Gathered) -> Result<(), CliError> {
    let document = read_json(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let servers = mcp_lists::configured(&document, folder, |name| std::env::var(name).ok())
        .ok_or_else(|| CliError::input(format!("{}: expected an object `mcpServers`", path.display())))?;
    for server in servers {
        let name = server.name;
        match server.target.and_then(|target| ask(&name, target)) {
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

/// Asks a server for its tools.
fn ask(name: &str, target: Target) -> Result<Server, String> {
    let lists = mcp_lists::ask(target)?;
    let tools = read_catalogue(name, &json!({ "tools": lists.tools })).map_err(|error| error.to_string())?;
    Ok(Server { name: name.to_owned(), tools, instructions: lists.instructions })
}
