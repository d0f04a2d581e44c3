//! Mistakes in settings, rules, hooks and matchers: what is written but does not take effect, or not as meant.
//!
//! Source: the field reports and section 3 of the corpus. Each finding has an id, a place, why it matters and a remedy.
//! [`lint`] is total and asks about files only through [`ScriptFacts`].

mod hooks;
mod rules;

use super::merge::merge;
use super::settings::{Level, Settings, load};
use crate::finding::{Finding, Severity};
use crate::gate::tools::ToolTable;
use crate::gate::{Policy, Workspace};
use crate::place::{Place, nesting};
use crate::profile::Profile;

/// What is known of a script that a hook names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// It cannot be told (a variable in the path, another machine).
    Unknown,
    /// It is not there.
    Missing,
    /// It is there, but not executable.
    NotExecutable,
    /// It is there and executable.
    Executable,
}

/// Answers about scripts.
pub trait ScriptFacts {
    /// What is known of the script at `path`, as the hook writes it.
    fn script(&self, path: &str) -> Script;
}

/// Nothing is known of any script.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoScripts;

impl ScriptFacts for NoScripts {
    fn script(&self, _: &str) -> Script {
        Script::Unknown
    }
}

/// Lints one settings file.
pub fn lint(
    level: Level,
    file: &str,
    text: &str,
    profile: &Profile,
    scripts: &dyn ScriptFacts,
) -> Vec<Finding> {
    let (settings, mut findings) = load(level, file, text, &profile.settings);
    duplicate_keys(&settings, &mut findings);
    // A dropped file is linted as it would be once the part that costs it is corrected.
    let lenient = {
        let mut parameters = profile.settings;
        parameters.wrong_shape_drops_file.value = false;
        load(level, file, text, &parameters).0
    };
    let (merged, _) = merge(std::slice::from_ref(&lenient), true, false, &profile.settings);
    let workspace = Workspace::new("/project", "/home/user");
    let policy = Policy::new(&merged, &workspace.bases(), ToolTable::default(), &profile.gate);
    rules::lint(&lenient, &merged, &policy, &workspace, &mut findings);
    hooks::lint(&lenient, profile, scripts, &mut findings);
    findings.sort_by(|a, b| {
        let key = |finding: &Finding| {
            let place = finding.at.as_ref();
            (place.and_then(|p| p.line), place.and_then(|p| p.column), finding.id.clone())
        };
        key(a).cmp(&key(b))
    });
    findings
}

/// A finding at a pointer of a file.
fn at(
    settings: &Settings,
    pointer: &str,
    id: &str,
    severity: Severity,
    message: impl Into<String>,
    why: &str,
    remedy: &str,
) -> Finding {
    Finding::new(id, severity, message, why).with_place(settings.place(pointer)).with_remedy(remedy)
}

/// The same key twice in one object: the last one wins, without a word.
fn duplicate_keys(settings: &Settings, findings: &mut Vec<Finding>) {
    use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
    let text = settings.text.trim_start_matches('\u{feff}');
    if nesting(text) > 128 {
        return;
    }
    let Ok(parsed) = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()) else { return };
    let mut open: Vec<&ast::Value<'_>> = parsed.value.iter().collect();
    while let Some(value) = open.pop() {
        match value {
            ast::Value::Object(object) => {
                let mut seen = std::collections::BTreeSet::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    if !seen.insert(name.to_owned()) {
                        let offset = jsonc_parser::common::Ranged::range(property).start;
                        findings.push(
                            Finding::new(
                                "duplicate-key",
                                Severity::Error,
                                format!("the key `{name}` stands twice in one object"),
                                "only the last one counts; everything under the first is lost without a word",
                            )
                            .with_place(Place::at_offset(&settings.file, text, offset))
                            .with_remedy("merge the two values into one key"),
                        );
                    }
                    open.push(&property.value);
                }
            }
            ast::Value::Array(array) => open.extend(&array.elements),
            _ => {}
        }
    }
}

/// Tools that were retired, and what stands in their place.
fn retired(tool: &str) -> Option<&'static str> {
    Some(match tool {
        "MultiEdit" => "Edit",
        "SlashCommand" => "Skill",
        "LS" => "Bash(ls *)",
        "TodoRead" | "TodoWrite" => "TaskList, TaskCreate, TaskUpdate",
        "NotebookRead" => "Read",
        "TeamCreate" | "TeamDelete" => "Agent",
        "KillShell" | "KillBash" | "BashOutput" => "TaskStop, TaskOutput",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
