//! The built-in tools, executed in a temporary workspace: Read, Write, Edit, Bash, Glob, Grep.
//!
//! They are as small as scenarios need: texts, not images; no paging of results beyond a bound. The gate has decided
//! before anything here runs; as a second wall, file tools refuse paths outside the workspace.

use crate::process::child::{ChildSpec, ChildStatus, CommandLine, run};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Characters of a result; the rest is cut with a note.
const RESULT_LIMIT: usize = 30_000;
/// Files that a search visits.
const FILES: usize = 10_000;

/// One call of a built-in tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Which tool.
    pub name: String,
    /// Its input, which fits the tool's schema.
    pub input: Value,
    /// The workspace.
    pub workspace: PathBuf,
    /// The environment of commands.
    pub env: Vec<(OsString, OsString)>,
}

impl Tool {
    /// Runs it: the text of its result, and whether it failed.
    pub async fn run(&self) -> (String, bool) {
        if self.name == "Bash" {
            return self.bash().await;
        }
        let tool = self.clone();
        let done = tokio::task::spawn_blocking(move || tool.files()).await;
        match done {
            Ok(Ok(text)) => (cut(text), false),
            Ok(Err(text)) => (cut(text), true),
            Err(_) => ("the tool was stopped".to_owned(), true),
        }
    }

    fn text(&self, key: &str) -> &str {
        self.input.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    async fn bash(&self) -> (String, bool) {
        let ended = run(&ChildSpec {
            command: CommandLine::Shell(self.text("command").to_owned()),
            cwd: self.workspace.clone(),
            env: self.env.clone(),
            stdin: Vec::new(),
            // The call's own deadline is the harness's; this is the last wall.
            deadline: Duration::from_secs(600),
            output_limit: 1024 * 1024,
        })
        .await;
        let mut text = String::from_utf8_lossy(&ended.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&ended.stderr));
        let failed = match ended.status {
            ChildStatus::Exited(0) => None,
            ChildStatus::Exited(code) => Some(format!("exit code {code}")),
            ChildStatus::Signalled(signal) => Some(format!("ended by signal {signal}")),
            ChildStatus::TimedOut => Some("timed out".to_owned()),
            ChildStatus::CannotStart(reason) => Some(format!("cannot start: {reason}")),
        };
        match failed {
            None => (cut(text), false),
            Some(reason) => (cut(format!("{reason}\n{text}")), true),
        }
    }

    fn files(&self) -> Result<String, String> {
        match self.name.as_str() {
            "Read" => {
                let path = self.inside(self.text("file_path"))?;
                std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", self.text("file_path")))
            }
            "Write" => {
                let path = self.inside(self.text("file_path"))?;
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
                }
                std::fs::write(&path, self.text("content")).map_err(|error| error.to_string())?;
                Ok(format!("wrote {} bytes to {}", self.text("content").len(), self.text("file_path")))
            }
            "Edit" => self.edit(),
            "Glob" => {
                let found = self.matching(self.text("pattern"))?;
                Ok(found.join("\n"))
            }
            "Grep" => self.grep(),
            other => Err(format!("{other} cannot be executed by this world")),
        }
    }

    fn edit(&self) -> Result<String, String> {
        let path = self.inside(self.text("file_path"))?;
        let old = self.text("old_string");
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let count = if old.is_empty() { 0 } else { text.matches(old).count() };
        let all = self.input.get("replace_all") == Some(&Value::Bool(true));
        let edited = match count {
            0 => return Err("old_string was not found".to_owned()),
            1 => text.replacen(old, self.text("new_string"), 1),
            _ if all => text.replace(old, self.text("new_string")),
            _ => return Err(format!("old_string stands {count} times; expected once, or replace_all")),
        };
        std::fs::write(&path, edited).map_err(|error| error.to_string())?;
        Ok(format!("edited {}", self.text("file_path")))
    }

    fn grep(&self) -> Result<String, String> {
        let pattern = regress::Regex::new(self.text("pattern")).map_err(|error| error.to_string())?;
        let glob = self.text("glob");
        let files = self.matching(if glob.is_empty() { "**/*" } else { glob })?;
        let mode = self.text("output_mode");
        let mut lines = Vec::new();
        for file in files {
            let Ok(text) = std::fs::read_to_string(self.workspace.join(&file)) else { continue };
            let hits: Vec<(usize, &str)> =
                text.lines().enumerate().filter(|(_, line)| pattern.find(line).is_some()).collect();
            match mode {
                _ if hits.is_empty() => {}
                "content" => lines.extend(hits.iter().map(|(n, line)| format!("{file}:{}:{line}", n + 1))),
                "count" => lines.push(format!("{file}:{}", hits.len())),
                _ => lines.push(file),
            }
        }
        Ok(lines.join("\n"))
    }

    /// Files of the workspace that match a glob pattern, relative and sorted.
    fn matching(&self, pattern: &str) -> Result<Vec<String>, String> {
        let mut builder = ignore::gitignore::GitignoreBuilder::new(&self.workspace);
        builder.add_line(None, pattern).map_err(|error| error.to_string())?;
        let matcher = builder.build().map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        visit(&self.workspace, &self.workspace, &mut found);
        found.retain(|file| matcher.matched(file, false).is_ignore());
        found.sort();
        Ok(found)
    }

    /// The absolute path of a file that must lie in the workspace, also after links are resolved.
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        let joined = self.workspace.join(path);
        let escapes = || format!("{path} is outside the workspace");
        if joined.components().any(|part| part == Component::ParentDir) {
            return Err(escapes());
        }
        let existing = joined.ancestors().find(|path| path.exists()).unwrap_or(&self.workspace);
        let real = existing.canonicalize().map_err(|error| error.to_string())?;
        if real.starts_with(&self.workspace) { Ok(joined) } else { Err(escapes()) }
    }
}

fn visit(root: &Path, folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if found.len() >= FILES {
            return;
        }
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => visit(root, &path, found),
            Ok(kind) if kind.is_file() => {
                let relative = path.strip_prefix(root).unwrap_or(&path);
                found.push(relative.to_string_lossy().into_owned());
            }
            _ => {}
        }
    }
}

/// A text within the limit, with a note of what was cut.
fn cut(text: String) -> String {
    match text.char_indices().nth(RESULT_LIMIT) {
        None => text,
        Some((at, _)) => format!("{}\n[{} more characters]", &text[..at], text[at..].chars().count()),
    }
}
