//! Cases: settings, calls and what is expected of each, in the form `gate` of the field reports and in the short form.

use super::load::Flags;
use super::said::{Said, SaidHooks};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use windtunnel_model::gate::Mode;
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
    /// Told behaviour of hooks.
    pub hooks_say: SaidHooks,
}

/// Reads a document that holds one case or an array of cases.
///
/// # Errors
/// What is wrong, with the index of the case.
pub fn parse_document(text: &str, name: &str) -> Result<Vec<Case>, String> {
    let root: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let items = match root {
        Value::Array(items) => items,
        one => vec![one],
    };
    items
        .iter()
        .enumerate()
        .filter(|(_, item)| item.get("type").is_none_or(|kind| kind == "gate"))
        .map(|(i, item)| parse(item, name, i).map_err(|why| format!("case {i}: {why}")))
        .collect()
}

fn parse(item: &Value, name: &str, index: usize) -> Result<Case, String> {
    let Value::Object(fields) = item else { return Err("expected an object".to_owned()) };
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
        Some(_) => return Err("`args` is not an array of strings".to_owned()),
    };
    case.flags = Flags::parse(&args);
    if let Some(mode) = fields.get("mode") {
        let mode =
            mode.as_str().and_then(Mode::from_name).ok_or_else(|| format!("there is no mode {mode}"))?;
        case.flags.mode = Some(mode);
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
    let Some(Value::Array(calls)) = fields.get("calls") else { return Err("no `calls`".to_owned()) };
    for call in calls {
        let parts =
            call.as_array().filter(|parts| parts.len() >= 2).ok_or("a call is not `[id, tool, input]`")?;
        let text = |i: usize| parts.get(i).and_then(Value::as_str).map(str::to_owned);
        case.calls.push(CaseCall {
            id: text(0).ok_or("the id of a call is not a string")?,
            tool: text(1).ok_or("the tool of a call is not a string")?,
            input: parts.get(2).cloned().unwrap_or_else(|| Value::Object(Map::new())),
        });
    }
    if let Some(Value::Object(expect)) = fields.get("expect") {
        case.expect = expect.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    if let Some(Value::Object(say)) = fields.get("hooks_say") {
        for (label, said) in say {
            case.hooks_say.by_label.insert(label.clone(), Said::from_json(said)?);
        }
    }
    Ok(case)
}

fn parse_settings(settings: &Value) -> Result<Vec<(Level, String)>, String> {
    let Value::Object(levels) = settings else {
        return Err("`settings` is not an object by source".to_owned());
    };
    levels
        .iter()
        .map(|(level, value)| {
            let level = match level.as_str() {
                "user" => Level::User,
                "project" => Level::Project,
                "local" => Level::Local,
                "managed" => Level::Managed,
                other => return Err(format!("there is no settings source `{other}`")),
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
