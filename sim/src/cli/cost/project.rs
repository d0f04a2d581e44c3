//! `cost --project`: what a project's own files put into every session, part by part.

use super::gather::{Gathered, read_json, read_text, skills_below, sorted};
use crate::cli::CliError;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use windtunnel_model::sources::skills::read_skill;

/// One part.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PartRow {
    pub(super) part: String,
    pub(super) bytes: u64,
    pub(super) tokens: u64,
    /// The text; counted later, when the counter is known.
    #[serde(skip)]
    pub(super) text: String,
}

/// Hops that imports are followed (context-cost 4: four are loaded, the fifth is not).
const IMPORT_HOPS: usize = 4;

/// Reads the project's parts; skills and servers go to `gathered`.
pub(super) fn read(
    folder: &Path,
    home: Option<&Path>,
    gathered: &mut Gathered,
) -> Result<Vec<PartRow>, CliError> {
    if !folder.is_dir() {
        return Err(CliError::input(format!("{}: not a folder", folder.display())));
    }
    let mut parts = Vec::new();
    let mut instructions: Vec<PathBuf> = Vec::new();
    instructions.extend(home.map(|home| home.join(".claude/CLAUDE.md")));
    instructions.extend(["CLAUDE.md", ".claude/CLAUDE.md"].map(|file| folder.join(file)));
    let rules = folder.join(".claude/rules");
    if rules.is_dir() {
        for rule in sorted(&rules)? {
            // A rule with `paths` enters later, with the first file below them.
            if rule.extension().is_some_and(|e| e == "md") && !has_paths(&read_text(&rule)?) {
                instructions.push(rule);
            }
        }
    }
    instructions.push(folder.join("CLAUDE.local.md"));
    for file in instructions.iter().filter(|file| file.is_file()) {
        instruction(file, folder, 0, &mut parts)?;
    }
    for base in home.into_iter().chain([folder]) {
        for (below, of) in [("skills", None), ("commands", Some("command")), ("agents", Some("agent"))] {
            let place = base.join(".claude").join(below);
            match of {
                _ if !place.is_dir() => {}
                None => skills_below(&place, gathered)?,
                Some(kind) => single_files(&place, kind, folder, gathered, &mut parts)?,
            }
        }
    }
    plugins(folder, gathered)?;
    let servers = folder.join(".mcp.json");
    if servers.is_file() {
        declared_servers(&servers, gathered)?;
    }
    Ok(parts)
}

fn has_paths(text: &str) -> bool {
    text.strip_prefix("---\n")
        .and_then(|rest| rest.split("\n---").next())
        .is_some_and(|front| front.lines().any(|line| line.starts_with("paths:")))
}

fn shown(file: &Path, folder: &Path) -> String {
    file.strip_prefix(folder).map_or_else(
        |_| {
            format!(
                "~/{}",
                file.components()
                    .rev()
                    .take(2)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .map(|c| c.as_os_str().to_string_lossy())
                    .collect::<Vec<_>>()
                    .join("/")
            )
        },
        |inside| inside.display().to_string(),
    )
}

/// A file of instructions and what it imports with `@path`, outside code.
fn instruction(file: &Path, folder: &Path, hop: usize, parts: &mut Vec<PartRow>) -> Result<(), CliError> {
    let text = read_text(file)?;
    let label = shown(file, folder);
    let name = if hop == 0 { label } else { format!("{label} (imported)") };
    if parts.iter().any(|part| part.part == name) {
        return Ok(());
    }
    parts.push(PartRow { part: name, bytes: text.len() as u64, tokens: 0, text: text.clone() });
    if hop == IMPORT_HOPS {
        return Ok(());
    }
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        // Words inside code spans are no imports: only the pieces outside them are looked at.
        let outside = line.split('`').step_by(2).flat_map(str::split_whitespace);
        for path in outside.filter(|_| !fenced).filter_map(|word| word.strip_prefix('@')) {
            let imported = file.parent().unwrap_or(folder).join(path);
            if imported.is_file() {
                instruction(&imported, folder, hop + 1, parts)?;
            }
        }
    }
    Ok(())
}

/// Commands are listed like skills; of an agent, name and description stand in the list of agents.
fn single_files(
    place: &Path,
    kind: &str,
    folder: &Path,
    gathered: &mut Gathered,
    parts: &mut Vec<PartRow>,
) -> Result<(), CliError> {
    for file in sorted(place)?.into_iter().filter(|file| file.extension().is_some_and(|e| e == "md")) {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let read = read_skill(&stem, &read_text(&file)?);
        if kind == "command" {
            // A skill of the same name wins (000, section 5).
            if !gathered.skills.iter().any(|skill| skill.name == read.name) {
                gathered.skills.push(read);
            }
        } else {
            let text = format!("- {}: {}", read.name, read.description);
            let part = format!("{} (name and description)", shown(&file, folder));
            parts.push(PartRow { part, bytes: text.len() as u64, tokens: 0, text });
        }
    }
    Ok(())
}

/// Plugins that stand in the project itself: at its root, or in a folder of it.
fn plugins(folder: &Path, gathered: &mut Gathered) -> Result<(), CliError> {
    let mut places = vec![folder.to_owned()];
    for base in [folder.to_owned(), folder.join("plugins"), folder.join(".claude/plugins")] {
        if base.is_dir() {
            places.extend(sorted(&base)?.into_iter().filter(|place| place.is_dir()));
        }
    }
    places.dedup();
    for place in places {
        let manifest = place.join(".claude-plugin/plugin.json");
        let skills = place.join("skills");
        if !manifest.is_file() || !skills.is_dir() {
            continue;
        }
        let document = read_json(&manifest)?;
        let name = document.get("name").and_then(Value::as_str).unwrap_or("plugin").to_owned();
        let before = gathered.skills.len();
        skills_below(&skills, gathered)?;
        for skill in gathered.skills.iter_mut().skip(before) {
            skill.name = format!("{name}:{}", skill.name);
        }
    }
    Ok(())
}

/// Servers are programs of the project: they are started only when asked for.
fn declared_servers(path: &Path, gathered: &mut Gathered) -> Result<(), CliError> {
    let document = read_json(path)?;
    for name in
        document.get("mcpServers").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name)
    {
        if !gathered.servers.iter().any(|server| server.name == *name) {
            gathered.not_counted.push(format!(
                "server {name} of .mcp.json: it is a program of the project; --mcp-config starts it, --tools {name}=FILE.json counts a saved list"
            ));
        }
    }
    Ok(())
}
