//! From files and flags to a session that can judge calls.

use crate::files;
use std::path::{Path, PathBuf};
use windtunnel_model::finding::Finding;
use windtunnel_model::gate::pipeline::Session;
use windtunnel_model::gate::rule::Behaviour;
use windtunnel_model::gate::tools::ToolTable;
use windtunnel_model::gate::{Mode, Policy, Workspace};
use windtunnel_model::hooks::payload::Common;
use windtunnel_model::profile::Profile;
use windtunnel_model::sources::merge::merge;
use windtunnel_model::sources::settings::{Level, load};

/// The command-line flags of the real harness that the gate depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--allowedTools`.
    pub allowed: Vec<String>,
    /// `--disallowedTools`.
    pub disallowed: Vec<String>,
    /// `--add-dir`.
    pub add_dirs: Vec<String>,
    /// `--settings`: JSON text or the path of a file.
    pub settings: Option<String>,
    /// `--setting-sources`; `None` is all.
    pub sources: Option<Vec<Level>>,
    /// `--bare`.
    pub bare: bool,
    /// `--tools`.
    pub tools: Option<Vec<String>>,
    /// `--permission-prompt-tool`.
    pub prompt_tool: Option<String>,
    /// `--permission-mode`, `--dangerously-skip-permissions`.
    pub mode: Option<Mode>,
}

impl Flags {
    /// Reads the flags of a command line; flags that the gate does not depend on are passed over with their value.
    pub fn parse(args: &[String]) -> Self {
        let mut flags = Self::default();
        let mut i = 0;
        while let Some(flag) = args.get(i) {
            let values: Vec<String> =
                args.iter().skip(i + 1).take_while(|arg| !arg.starts_with("--")).cloned().collect();
            i += 1 + values.len();
            let first = values.first().cloned();
            match flag.as_str() {
                "--allowedTools" | "--allowed-tools" => {
                    flags.allowed.extend(values.iter().flat_map(|v| split_rules(v)))
                }
                "--disallowedTools" | "--disallowed-tools" => {
                    flags.disallowed.extend(values.iter().flat_map(|v| split_rules(v)));
                }
                "--add-dir" => flags.add_dirs.extend(values),
                "--settings" => flags.settings = first,
                "--setting-sources" => {
                    let names = first.unwrap_or_default();
                    flags.sources = Some(
                        names
                            .split(',')
                            .filter_map(|name| match name.trim() {
                                "user" => Some(Level::User),
                                "project" => Some(Level::Project),
                                "local" => Some(Level::Local),
                                _ => None,
                            })
                            .collect(),
                    );
                }
                "--bare" => flags.bare = true,
                "--tools" => {
                    let names = first.unwrap_or_default();
                    flags.tools = Some(
                        names.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
                    );
                }
                "--permission-prompt-tool" => flags.prompt_tool = first,
                "--permission-mode" => flags.mode = first.as_deref().and_then(Mode::from_name),
                "--dangerously-skip-permissions" => flags.mode = Some(Mode::Bypass),
                _ => {}
            }
        }
        flags
    }
}

/// Splits at commas and blanks outside parentheses.
fn split_rules(text: &str) -> Vec<String> {
    let (mut rules, mut current, mut depth) = (Vec::new(), String::new(), 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' if depth == 0 => {
                if !current.is_empty() {
                    rules.push(std::mem::take(&mut current));
                }
                continue;
            }
            _ => {}
        }
        current.push(c);
    }
    if !current.is_empty() {
        rules.push(current);
    }
    rules
}

/// A settings file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Its level.
    pub level: Level,
    /// Its name for messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Everything a session is made from.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The settings files.
    pub files: Vec<FoundFile>,
    /// The flags.
    pub flags: Flags,
    /// Whether the project's folder was trusted.
    pub trusted: bool,
    /// The start folder; absolute and canonical.
    pub project: String,
    /// Home; absolute and canonical.
    pub home: String,
    /// MCP tools, skills and the like.
    pub tools: ToolTable,
    /// The profile.
    pub profile: Profile,
}

/// Reads one settings file if it is there.
pub fn found(level: Level, path: &Path, name: &str) -> Option<FoundFile> {
    let text = files::read_lossy(path).ok()?;
    Some(FoundFile { level, name: name.to_owned(), text })
}

/// The settings files of a project and a home, by their places.
pub fn hierarchy(project: &Path, home: Option<&Path>, managed: Option<&Path>) -> Vec<FoundFile> {
    let mut files = Vec::new();
    if let Some(home) = home {
        files.extend(found(Level::User, &home.join(".claude/settings.json"), "~/.claude/settings.json"));
    }
    files.extend(found(Level::Project, &project.join(".claude/settings.json"), ".claude/settings.json"));
    files.extend(found(
        Level::Local,
        &project.join(".claude/settings.local.json"),
        ".claude/settings.local.json",
    ));
    if let Some(managed) = managed {
        files.extend(found(Level::Managed, managed, &managed.to_string_lossy()));
    }
    files
}

/// Home in its real path; a place without any settings where there is none.
pub fn home_or_none(home: Option<&Path>) -> PathBuf {
    let home = home.unwrap_or_else(|| Path::new("/nonexistent"));
    home.canonicalize().unwrap_or_else(|_| home.to_owned())
}

/// Whether `~/.claude.json` says that exactly this folder was trusted.
pub fn is_trusted(home: &Path, project: &str) -> bool {
    files::read_lossy(&home.join(".claude.json"))
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .and_then(|root| root.get("projects")?.get(project)?.get("hasTrustDialogAccepted")?.as_bool())
        .unwrap_or(false)
}

/// Builds the session, and says what was wrong with its files.
pub fn session(inputs: &Inputs) -> (Session, Vec<Finding>) {
    let mut findings = Vec::new();
    let parameters = &inputs.profile.settings;
    let mut files = inputs.files.clone();
    if let Some(sources) = &inputs.flags.sources {
        files.retain(|file| {
            matches!(file.level, Level::Managed | Level::Flag) || sources.contains(&file.level)
        });
    }
    if let Some(settings) = &inputs.flags.settings {
        let text = if settings.trim_start().starts_with('{') {
            settings.clone()
        } else {
            std::fs::read_to_string(settings).unwrap_or_default()
        };
        files.push(FoundFile { level: Level::Flag, name: "--settings".to_owned(), text });
    }
    let mut loaded = Vec::new();
    for file in &files {
        let (settings, more) = load(file.level, &file.name, &file.text, parameters);
        findings.extend(more);
        loaded.push(settings);
    }
    let (mut merged, more) = merge(&loaded, inputs.trusted, inputs.flags.bare, parameters);
    findings.extend(more);
    let managed_rules_only = loaded.iter().any(|s| s.level == Level::Managed && s.managed_rules_only);
    if !managed_rules_only {
        for rule in &inputs.flags.allowed {
            merged.push_rule(Behaviour::Allow, rule, Level::Flag, "--allowedTools");
        }
        for rule in &inputs.flags.disallowed {
            merged.push_rule(Behaviour::Deny, rule, Level::Flag, "--disallowedTools");
        }
    }
    let mut workspace = Workspace::new(&inputs.project, &inputs.home);
    for directory in merged.additional_directories.iter().chain(&inputs.flags.add_dirs) {
        workspace.add_directory(directory);
    }
    let mode = inputs.flags.mode.or(merged.default_mode).unwrap_or_default();
    workspace.mode = match mode {
        Mode::Bypass if merged.disable_bypass => Mode::Default,
        Mode::Auto if merged.disable_auto => Mode::Default,
        mode => mode,
    };
    workspace.plan_with_auto = !merged.disable_auto && merged.auto_during_plan;
    let mut tools = inputs.tools.clone();
    tools.only = inputs.flags.tools.clone();
    tools.bare = inputs.flags.bare;
    tools.named = inputs.flags.allowed.clone();
    let policy = Policy::new(&merged, &workspace.bases(), tools, &inputs.profile.gate);
    let hooks = merged.hooks.clone();
    let session = Session {
        policy,
        merged,
        hooks,
        workspace,
        profile: inputs.profile,
        common: Common {
            session_id: "00000000-0000-4000-8000-000000000000".to_owned(),
            transcript_path: format!("{}/.claude/projects/transcript.jsonl", inputs.home),
            ..Common::default()
        },
        prompt_tool: inputs.flags.prompt_tool.clone(),
        read_files: Vec::new(),
        refused_checks: 0,
    };
    (session, findings)
}

/// Skills below a folder: whether each has `allowed-tools` in its frontmatter.
pub fn skills_below(folder: &Path, tools: &mut ToolTable) {
    let Ok(entries) = std::fs::read_dir(folder.join(".claude/skills")) else { return };
    for entry in entries.filter_map(Result::ok) {
        let Ok(text) = files::read_lossy(&entry.path().join("SKILL.md")) else { continue };
        let frontmatter = text.strip_prefix("---").and_then(|rest| rest.split("\n---").next()).unwrap_or("");
        let has = frontmatter.lines().any(|line| line.starts_with("allowed-tools:"));
        tools.skills.insert(entry.file_name().to_string_lossy().into_owned(), has);
    }
}
