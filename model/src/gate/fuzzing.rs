//! What the fuzzers call: one function for each kind of text that people hand to the gate. Each has to return.

use super::command::directory_after;
use super::permission::Policy;
use super::rule::Behaviour;
use super::tools::ToolTable;
use super::workspace::Workspace;
use super::{NoFiles, permission};
use crate::hooks::{Event, Handler, HandlerEnd, Matcher, interpret};
use crate::profile::ProfileName;
use crate::sources::lint::{NoScripts, lint};
use crate::sources::merge::Merged;
use crate::sources::settings::Level;
use serde_json::json;

fn policy(rule: &str) -> Policy {
    let mut merged = Merged::default();
    for behaviour in [Behaviour::Deny, Behaviour::Ask, Behaviour::Allow] {
        merged.push_rule(behaviour, rule, Level::User, "settings.json");
    }
    let workspace = Workspace::new("/w", "/h");
    Policy::new(&merged, &workspace.bases(), ToolTable::default(), &ProfileName::ClaudeCode.profile().gate)
}

/// A rule, a matcher and a path made of the text.
pub fn rule(text: &str) {
    let policy = policy(text);
    let workspace = Workspace::new("/w", "/h");
    for (tool, input) in [
        ("Bash", json!({"command": "foo a && ls"})),
        ("Read", json!({"file_path": text})),
        ("Write", json!({"file_path": "src/a", "content": ""})),
        ("WebFetch", json!({"url": text, "prompt": ""})),
        (text, json!({})),
    ] {
        let _ = permission(&policy, &workspace, &NoFiles, tool, &input);
    }
    let _ = Matcher::compile(text).matches_tool("mcp__server__tool");
}

/// A command.
pub fn command(text: &str) {
    let policy = policy("Bash(foo *)");
    let workspace = Workspace::new("/w", "/h");
    let _ = permission(&policy, &workspace, &NoFiles, "Bash", &json!({"command": text}));
    let _ = directory_after(&workspace, &NoFiles, text);
}

/// A settings file: loaded, merged, linted.
pub fn settings(text: &str) {
    let _ = lint(Level::User, "settings.json", text, &ProfileName::ClaudeCode.profile(), &NoScripts);
}

/// The output of a hook on every event.
pub fn hook_output(text: &str) {
    for name in ProfileName::ALL {
        for event in Event::ALL {
            let end = HandlerEnd::exited(0, text, "");
            let _ = interpret(*event, &Handler::command("x"), &end, &name.profile().hooks);
        }
    }
}
