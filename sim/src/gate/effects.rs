//! What a call that is let through changes for the calls after it, inside a case's own workspace: files written by the
//! file tools, `cd`, and `echo … > file`. Commands are never run.

use std::path::Path;
use windtunnel_model::gate::directory_after;
use windtunnel_model::gate::pipeline::Session;
use windtunnel_model::gate::{paths, shell};

use super::files::Disk;
use serde_json::Value;

/// How a call that was let through ends, as far as it can be told without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEnd {
    /// Nothing speaks against success.
    Success,
    /// The command is `false` or `exit` with another code than 0.
    Failure,
}

/// Applies a call below `root` and says how it ends. Nothing outside `root` is touched.
pub fn apply(session: &mut Session, root: &Path, tool: &str, input: &Value) -> ToolEnd {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    match tool {
        "Write" => {
            let path = session.workspace.absolute(&text("file_path")).into_owned();
            write(root, &path, &text("content"));
            ToolEnd::Success
        }
        "Edit" => {
            let path = session.workspace.absolute(&text("file_path")).into_owned();
            if is_below(root, &path)
                && let Ok(content) = std::fs::read_to_string(&path)
            {
                write(root, &path, &content.replacen(&text("old_string"), &text("new_string"), 1));
            }
            ToolEnd::Success
        }
        "Bash" => {
            let command = text("command");
            let script = shell::decompose(&command, &session.workspace.home);
            let mut here = session.workspace.cwd.clone();
            for part in script.parts.iter().filter(|part| !part.nested) {
                if part.name() == "cd"
                    && let Some(target) = part.words.get(1)
                {
                    here = paths::normal(target.text(), &here, &session.workspace.home).into_owned();
                }
                if part.name() == "echo" {
                    let words: Vec<&str> = part.words.iter().skip(1).map(shell::Word::text).collect();
                    for redirect in part.redirects.iter().filter(|redirect| redirect.writes) {
                        let path = paths::normal(redirect.target.text(), &here, &session.workspace.home);
                        write(root, &path, &format!("{}\n", words.join(" ")));
                    }
                }
            }
            session.workspace.cwd = directory_after(&session.workspace, &Disk, &command);
            let last = script.parts.iter().rfind(|part| !part.nested);
            let fails = last.is_some_and(|part| match part.name() {
                "false" => true,
                "exit" => part.words.get(1).is_some_and(|code| code.text() != "0"),
                _ => false,
            });
            if fails { ToolEnd::Failure } else { ToolEnd::Success }
        }
        _ => ToolEnd::Success,
    }
}

fn is_below(root: &Path, path: &str) -> bool {
    use windtunnel_model::gate::Facts as _;
    paths::is_inside(&Disk.real_path(path), &root.to_string_lossy())
}

fn write(root: &Path, path: &str, text: &str) {
    if !is_below(root, path) || path.starts_with("/dev/") {
        return;
    }
    let path = Path::new(path);
    if path.parent().is_some_and(|parent| std::fs::create_dir_all(parent).is_ok()) {
        // A target that cannot be written (a folder, say) leaves everything as it is, as the tool's own failure would.
        let _ = std::fs::write(path, text);
    }
}
