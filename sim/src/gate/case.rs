//! Cases: settings, calls and what is expected of each, in the form `gate` of the field reports and in the short form.

use super::load::Flags;
use super::said::{Said, SaidHooks};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use windtunnel_model::gate::Mode;
use windtunnel_model::gate::pipeline::Outcome;
use windtunnel_model::place::Place;
use windtunnel_model::sources::settings::Level;

/// One call of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseCall {
    /// Its id; `m1/s1` is made inside the subagent that `m1` started.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
}

/// An MCP server of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseServer {
    /// Only its tools are named.
    Tools(Vec<String>),
    /// It is started.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// A case.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// Settings text by level; `None` in the short form, which is judged under the current folder's own settings.
    pub settings: Option<Vec<(Level, String)>>,
    /// Flags, with the mode.
    pub flags: Flags,
    /// Files of the workspace.
    pub files: Vec<(String, String)>,
    /// Files of home.
    pub home_files: Vec<(String, String)>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// MCP servers by name; those of a plugin under their full prefix.
    pub servers: BTreeMap<String, CaseServer>,
    /// Whether the folder is trusted.
    pub trusted: Option<bool>,
    /// The calls.
    pub calls: Vec<CaseCall>,
    /// The expectation of each call, and what else is expected.
    pub expect: Vec<(String, Value)>,
    /// Told behaviour of hooks; in real runs, of those that only a model could answer.
    pub hooks_say: SaidHooks,
    /// What it says without effect, with the place.
    pub warnings: Vec<CaseError>,
}

/// Why a document holds no cases: where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct CaseError {
    /// File, line and column.
    pub place: Place,
    /// What is there and what was expected.
    pub message: String,
}

/// A wrong part: its RFC 6901 pointer within the case, and what was expected.
type Wrong = (String, String);

fn wrong<T>(pointer: impl Into<String>, message: impl Into<String>) -> Result<T, Wrong> {
    Err((pointer.into(), message.into()))
}

/// Reads a document that holds one case or an array of cases. Elements of another `type` than `gate` are passed over.
///
/// # Errors
/// What is wrong, and where.
pub fn parse_document(text: &str, name: &str) -> Result<Vec<Case>, CaseError> {
    let root: Value = serde_json::from_str(text).map_err(|error| CaseError {
        place: Place {
            file: name.to_owned(),
            line: u32::try_from(error.line()).ok(),
            column: u32::try_from(error.column()).ok(),
        },
        message: format!("not JSON: {error}"),
    })?;
    let (items, is_list) = match root {
        Value::Array(items) => (items, true),
        one => (vec![one], false),
    };
    items
        .iter()
        .enumerate()
        .filter(|(_, item)| item.get("type").is_none_or(|kind| kind == "gate"))
        .map(|(i, item)| {
            let at = |(pointer, message): Wrong| {
                let pointer = if is_list { format!("/{i}{pointer}") } else { pointer };
                CaseError { place: Place::at_pointer(name, text, &pointer), message }
            };
            let mut case = parse(item, name, i).map_err(at)?;
            if let Value::Object(fields) = item {
                case.warnings = idle_parts(fields, &case).into_iter().map(at).collect();
            }
            Ok(case)
        })
        .collect()
}

fn parse(item: &Value, name: &str, index: usize) -> Result<Case, Wrong> {
    let Value::Object(fields) = item else {
        return wrong("", format!("a case is an object, this is {}", kind(item)));
    };
    let mut case = Case {
        id: fields.get("id").and_then(Value::as_str).map_or_else(|| format!("{name}#{index}"), str::to_owned),
        ..Case::default()
    };
    if let Some(settings) = fields.get("settings") {
        case.settings = Some(parse_settings(settings)?);
    }
    let args: Vec<String> = match fields.get("args") {
        None => Vec::new(),
        Some(Value::Array(args)) => args.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(other) => {
            return wrong("/args", format!("`args` is an array of strings, this is {}", kind(other)));
        }
    };
    case.flags = Flags::parse(&args);
    if let Some(mode) = fields.get("mode") {
        let Some(known) = mode.as_str().and_then(Mode::from_name) else {
            return wrong("/mode", format!("there is no permission mode {mode}"));
        };
        case.flags.mode = Some(known);
    }
    case.files = texts(fields.get("files"));
    case.home_files = texts(fields.get("home_files"));
    case.env = texts(fields.get("env"));
    case.trusted = fields.get("trusted").and_then(Value::as_bool);
    if let Some(mcp) = fields.get("mcp") {
        parse_servers(mcp.get("mcpServers").unwrap_or(mcp), "", &mut case);
    }
    if let Some(plugin) = fields.get("plugin") {
        let plugin_name = plugin.get("name").and_then(Value::as_str).unwrap_or("plugin");
        if let Some(mcp) = plugin.get("mcp") {
            parse_servers(mcp, &format!("plugin_{plugin_name}_"), &mut case);
        }
    }
    match fields.get("calls") {
        Some(Value::Array(calls)) => {
            for (i, call) in calls.iter().enumerate() {
                case.calls.push(parse_call(call).map_err(|(at, why)| (format!("/calls/{i}{at}"), why))?);
            }
        }
        Some(other) => {
            return wrong(
                "/calls",
                format!("`calls` is an array of [id, tool, input], this is {}", kind(other)),
            );
        }
        None => return wrong("", "the case has no `calls`: an array of [id, tool, input]"),
    }
    case.expect = parse_expect(fields.get("expect"), &case.calls)?;
    match fields.get("hooks_say") {
        None => {}
        Some(Value::Object(say)) => {
            for (label, said) in say {
                let said = Said::from_json(said).map_err(|why| (pointer("/hooks_say", label), why))?;
                case.hooks_say.by_label.insert(label.clone(), said);
            }
        }
        Some(other) => {
            return wrong(
                "/hooks_say",
                format!("`hooks_say` is an object by command, this is {}", kind(other)),
            );
        }
    }
    Ok(case)
}

/// The fields of a case that are read; the last three say more of an observed case and are not.
const FIELDS: [&str; 17] = [
    "type",
    "id",
    "settings",
    "args",
    "mode",
    "files",
    "home_files",
    "env",
    "trusted",
    "mcp",
    "plugin",
    "calls",
    "expect",
    "hooks_say",
    "group",
    "decided",
    "headless",
];

fn pointer(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// What a case says that has no effect: unknown fields, expectations of calls that are not made.
fn idle_parts(fields: &Map<String, Value>, case: &Case) -> Vec<Wrong> {
    let mut idle: Vec<Wrong> = fields
        .keys()
        .filter(|name| !FIELDS.contains(&name.as_str()))
        .map(|name| (pointer("", name), format!("`{name}` is not read from a case: it is passed over")))
        .collect();
    let known = |name: &str| {
        matches!(name, "hook_runs" | "log" | "lint" | "turn") || case.calls.iter().any(|call| call.id == name)
    };
    idle.extend(case.expect.iter().filter(|(name, _)| !known(name)).map(|(name, _)| {
        (pointer("/expect", name), format!("there is no call `{name}`: nothing is checked"))
    }));
    idle
}

/// What a JSON value is, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn parse_call(call: &Value) -> Result<CaseCall, Wrong> {
    let Some(parts) = call.as_array().filter(|parts| (2..=3).contains(&parts.len())) else {
        return wrong("", "a call is [id, tool, input]");
    };
    let text = |i: usize, what: &str| match parts.get(i) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => {
            let found = other.map_or("nothing", kind);
            wrong(format!("/{i}"), format!("the {what} of a call is a string, this is {found}"))
        }
    };
    Ok(CaseCall {
        id: text(0, "id")?,
        tool: text(1, "tool")?,
        input: parts.get(2).cloned().unwrap_or_else(|| Value::Object(Map::new())),
    })
}

/// Expectations by call; besides them `hook_runs` and `log`. Any text may be expected: what no call can come to fails.
fn parse_expect(expect: Option<&Value>, calls: &[CaseCall]) -> Result<Vec<(String, Value)>, Wrong> {
    let expect = match expect {
        None => return Ok(Vec::new()),
        Some(Value::Object(expect)) => expect,
        Some(other) => {
            return wrong("/expect", format!("`expect` is an object by call, this is {}", kind(other)));
        }
    };
    for (name, value) in expect {
        if calls.iter().any(|call| call.id == *name) && !value.is_string() {
            let words = Outcome::ALL.map(Outcome::word).join(", ");
            return wrong(
                pointer("/expect", name),
                format!(
                    "an outcome is {words}, `not reached` or `run with FIELD VALUE`, this is {}",
                    kind(value)
                ),
            );
        }
    }
    Ok(expect.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn parse_settings(settings: &Value) -> Result<Vec<(Level, String)>, Wrong> {
    let Value::Object(levels) = settings else {
        return wrong("/settings", format!("`settings` is an object by source, this is {}", kind(settings)));
    };
    levels
        .iter()
        .map(|(level, value)| {
            let level = match level.as_str() {
                "user" => Level::User,
                "project" => Level::Project,
                "local" => Level::Local,
                "managed" => Level::Managed,
                other => {
                    return wrong(
                        pointer("/settings", other),
                        format!(
                            "there is no settings source `{other}`; expected user, project, local or managed"
                        ),
                    );
                }
            };
            let text = match value {
                Value::String(text) => text.clone(),
                other => serde_json::to_string_pretty(other).unwrap_or_default(),
            };
            Ok((level, text))
        })
        .collect()
}

fn texts(value: Option<&Value>) -> Vec<(String, String)> {
    let Some(Value::Object(fields)) = value else { return Vec::new() };
    fields
        .iter()
        .map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (name.clone(), text)
        })
        .collect()
}

fn parse_servers(servers: &Value, prefix: &str, case: &mut Case) {
    let Value::Object(servers) = servers else { return };
    for (name, server) in servers {
        let server = match server {
            Value::Array(tools) => {
                CaseServer::Tools(tools.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            other => CaseServer::Command {
                program: other.get("command").and_then(Value::as_str).unwrap_or("").to_owned(),
                args: other
                    .get("args")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            },
        };
        case.servers.insert(format!("{prefix}{name}"), server);
    }
}
