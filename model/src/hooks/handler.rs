//! Handlers and groups, read from the users' own `hooks` format.
//!
//! Source: gate-and-hooks, sections 3.1 (shape and validity) and 3.3 (handler fields). Reading is total: it gives what
//! is well-formed and a list of defects; whether a defect costs the whole file is a rule of settings
//! ([`crate::sources::settings`]).

use super::event::Event;
use super::matcher::Matcher;
use serde_json::{Map, Value};

/// What a failed handler does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The event goes on as if the handler had said nothing.
    #[default]
    Continue,
    /// The event is blocked.
    Block,
}

/// The five kinds of handlers.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerKind {
    /// A program: a line for the shell, or, with `args`, a program started without one.
    Command {
        /// The line, or the program.
        command: String,
        /// The arguments of the exec form.
        args: Option<Vec<String>>,
    },
    /// A POST of the payload.
    Http {
        /// Where to.
        url: String,
        /// Headers; `$NAME` of allowed variables is replaced.
        headers: Vec<(String, String)>,
        /// The variables that may be used; others become empty.
        allowed_env: Vec<String>,
    },
    /// A call of a tool of a connected MCP server; its text is read as stdout at exit 0.
    McpTool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// Its input; `${tool_input.field}` is replaced.
        input: Value,
    },
    /// A question to the model.
    Prompt {
        /// The question; `$ARGUMENTS` is the payload.
        prompt: String,
        /// Whether the run goes on when it blocks.
        continue_on_block: bool,
    },
    /// A question to an agent.
    Agent {
        /// The question.
        prompt: String,
    },
}

impl HandlerKind {
    /// The word of `type`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Http { .. } => "http",
            Self::McpTool { .. } => "mcp_tool",
            Self::Prompt { .. } => "prompt",
            Self::Agent { .. } => "agent",
        }
    }
}

/// One handler.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// What it is.
    pub kind: HandlerKind,
    /// One permission rule that has to hold for it to run (tool events only).
    pub condition: Option<String>,
    /// Its own time limit, in seconds.
    pub timeout: Option<f64>,
    /// What its failure does.
    pub on_failure: OnFailure,
    /// Whether it runs in the background.
    pub asynchronous: bool,
    /// Whether it runs in the background and its exit 2 wakes the model.
    pub async_rewake: bool,
    /// The JSON pointer of the handler in its file.
    pub pointer: String,
}

impl Handler {
    /// A command handler with every field at its default.
    pub fn command(line: impl Into<String>) -> Self {
        Self {
            kind: HandlerKind::Command { command: line.into(), args: None },
            condition: None,
            timeout: None,
            on_failure: OnFailure::Continue,
            asynchronous: false,
            async_rewake: false,
            pointer: String::new(),
        }
    }

    /// Whether it never blocks because it runs in the background.
    pub fn is_async(&self) -> bool {
        self.asynchronous || self.async_rewake
    }

    /// Its time limit on an event, in seconds.
    pub fn time_limit(&self, event: Event) -> f64 {
        self.timeout.unwrap_or(match self.kind {
            HandlerKind::Prompt { .. } => 30.0,
            HandlerKind::Agent { .. } => 60.0,
            _ => event.default_timeout(),
        })
    }

    /// What people call it: the command, the address, the tool, the beginning of the prompt.
    pub fn label(&self) -> String {
        match &self.kind {
            HandlerKind::Command { command, args } => {
                let mut label = command.clone();
                for arg in args.iter().flatten() {
                    label.push(' ');
                    label.push_str(arg);
                }
                label
            }
            HandlerKind::Http { url, .. } => url.clone(),
            HandlerKind::McpTool { server, tool, .. } => format!("mcp__{server}__{tool}"),
            HandlerKind::Prompt { prompt, .. } | HandlerKind::Agent { prompt } => {
                prompt.chars().take(60).collect()
            }
        }
    }
}

/// A matcher and its handlers.
#[derive(Clone, Debug)]
pub struct Group {
    /// The matcher.
    pub matcher: Matcher,
    /// The handlers, in the order of the file.
    pub handlers: Vec<Handler>,
    /// The JSON pointer of the group in its file.
    pub pointer: String,
}

/// Everything under `hooks` of one file.
#[derive(Clone, Debug, Default)]
pub struct HooksConfig {
    /// The groups of each event, in the order of the file.
    pub events: Vec<(Event, Vec<Group>)>,
}

impl HooksConfig {
    /// The groups of an event.
    pub fn groups(&self, event: Event) -> impl Iterator<Item = &Group> {
        self.events.iter().filter(move |(e, _)| *e == event).flat_map(|(_, groups)| groups)
    }

    /// How many handlers there are.
    pub fn handler_count(&self) -> usize {
        self.events.iter().flat_map(|(_, groups)| groups).map(|g| g.handlers.len()).sum()
    }
}

/// What a defect costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// The part is shrugged off.
    Part,
    /// The whole file counts for nothing (in managed settings: the part).
    File,
}

/// Something in a settings file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Stable id in kebab case.
    pub id: &'static str,
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What it costs.
    pub cost: Cost,
}

impl Defect {
    /// A defect.
    pub fn new(id: &'static str, pointer: impl Into<String>, message: impl Into<String>, cost: Cost) -> Self {
        Self { id, pointer: pointer.into(), message: message.into(), cost }
    }
}

/// Escapes one part of a JSON pointer.
pub fn pointer_part(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1")
}

/// Reads the value of `hooks`, which stands at `pointer`.
pub fn parse(value: &Value, pointer: &str, defects: &mut Vec<Defect>) -> HooksConfig {
    let mut config = HooksConfig::default();
    let events = match value {
        Value::Object(events) => events,
        Value::Array(items) if items.iter().any(Value::is_object) => {
            defects.push(Defect::new(
                "hooks-not-an-object",
                pointer,
                "`hooks` is an array; expected an object from event names to groups",
                Cost::File,
            ));
            return config;
        }
        _ => {
            defects.push(Defect::new(
                "hooks-not-an-object",
                pointer,
                "`hooks` is not an object from event names to groups",
                Cost::Part,
            ));
            return config;
        }
    };
    for (name, groups) in events {
        let pointer = format!("{pointer}/{}", pointer_part(name));
        let Some(event) = Event::from_name(name) else {
            let near = Event::ALL.iter().find(|event| event.name().eq_ignore_ascii_case(name));
            let hint = near.map(|event| format!("; did you mean `{event}`")).unwrap_or_default();
            defects.push(Defect::new(
                "unknown-event",
                pointer,
                format!("there is no event `{name}`{hint}"),
                Cost::Part,
            ));
            continue;
        };
        // Only PreToolUse is strict: a misshapen part there costs the file, elsewhere the part (corpus, section 3: root
        // keys, and the public files that were tried on the harness).
        let cost = if event == Event::PreToolUse { Cost::File } else { Cost::Part };
        let before = defects.len();
        let Value::Array(groups) = groups else {
            defects.push(Defect::new(
                "event-not-an-array",
                pointer,
                format!("the value of `{name}` is not an array of groups"),
                cost,
            ));
            continue;
        };
        let read = groups
            .iter()
            .enumerate()
            .filter_map(|(i, group)| parse_group(group, format!("{pointer}/{i}"), defects))
            .collect();
        for defect in defects.iter_mut().skip(before) {
            defect.cost = defect.cost.min(cost);
        }
        config.events.push((event, read));
    }
    config
}

fn parse_group(group: &Value, pointer: String, defects: &mut Vec<Defect>) -> Option<Group> {
    let Value::Object(fields) = group else {
        defects.push(Defect::new("group-not-an-object", pointer, "a group is not an object", Cost::File));
        return None;
    };
    let matcher = match fields.get("matcher") {
        None => Matcher::all(),
        Some(Value::String(text)) => Matcher::compile(text),
        Some(_) => {
            defects.push(Defect::new(
                "matcher-not-a-string",
                format!("{pointer}/matcher"),
                "the matcher is not a string",
                Cost::File,
            ));
            return None;
        }
    };
    let Some(handlers) = fields.get("hooks") else {
        let message = if fields.contains_key("type") {
            "a handler stands where a group is expected"
        } else {
            "a group has no `hooks`"
        };
        defects.push(Defect::new("group-without-hooks", pointer, message, Cost::File));
        return None;
    };
    let Value::Array(handlers) = handlers else {
        defects.push(Defect::new(
            "group-hooks-not-an-array",
            format!("{pointer}/hooks"),
            "`hooks` of a group is not an array of handlers",
            Cost::File,
        ));
        return None;
    };
    for name in fields.keys().filter(|name| !matches!(name.as_str(), "matcher" | "hooks" | "description")) {
        let message = if name == "onFailure" {
            "`onFailure` on a group has no effect; it belongs to the handler".to_owned()
        } else {
            format!("a group has no field `{name}`")
        };
        let pointer = format!("{pointer}/{}", pointer_part(name));
        defects.push(Defect::new("unknown-group-field", pointer, message, Cost::Part));
    }
    let handlers = handlers
        .iter()
        .enumerate()
        .filter_map(|(i, handler)| parse_handler(handler, format!("{pointer}/hooks/{i}"), defects))
        .collect();
    Some(Group { matcher, handlers, pointer })
}

/// Fields of handlers that are documented, or used by a vendor's own files and accepted.
const HANDLER_FIELDS: [&str; 22] = [
    "type",
    "command",
    "args",
    "if",
    "timeout",
    "async",
    "asyncRewake",
    "shell",
    "statusMessage",
    "onFailure",
    "url",
    "headers",
    "allowedEnvVars",
    "server",
    "tool",
    "input",
    "prompt",
    "model",
    "continueOnBlock",
    "once",
    "rewakeMessage",
    "rewakeSummary",
];

fn parse_handler(handler: &Value, pointer: String, defects: &mut Vec<Defect>) -> Option<Handler> {
    let Value::Object(fields) = handler else {
        defects.push(Defect::new("handler-not-an-object", pointer, "a handler is not an object", Cost::File));
        return None;
    };
    let before = defects.len();
    let kind = parse_kind(fields, &pointer, defects);
    let mut wrong = |name: &str, expected: &str| {
        defects.push(Defect::new(
            "handler-field-type",
            format!("{pointer}/{name}"),
            format!("`{name}` of a handler is not {expected}"),
            Cost::File,
        ));
    };
    let timeout = match fields.get("timeout") {
        None => None,
        Some(value) => match value.as_f64().filter(|seconds| *seconds > 0.0) {
            Some(seconds) => Some(seconds),
            None => {
                wrong("timeout", "a number of seconds above zero");
                None
            }
        },
    };
    let on_failure = match fields.get("onFailure").map(Value::as_str) {
        None | Some(Some("continue")) => OnFailure::Continue,
        Some(Some("block")) => OnFailure::Block,
        Some(_) => {
            wrong("onFailure", "`continue` or `block`");
            OnFailure::Continue
        }
    };
    for name in ["async", "asyncRewake", "once", "continueOnBlock"] {
        if fields.get(name).is_some_and(|value| !value.is_boolean()) {
            wrong(name, "a boolean");
        }
    }
    for name in ["if", "shell", "statusMessage", "model"] {
        if fields.get(name).is_some_and(|value| !value.is_string()) {
            wrong(name, "a string");
        }
    }
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    let broken = defects.len() > before;
    for name in fields.keys().filter(|name| !HANDLER_FIELDS.contains(&name.as_str())) {
        defects.push(Defect::new(
            "unknown-handler-field",
            format!("{pointer}/{}", pointer_part(name)),
            format!("a handler has no field `{name}`"),
            Cost::Part,
        ));
    }
    if broken {
        return None;
    }
    Some(Handler {
        kind: kind?,
        condition: fields.get("if").and_then(Value::as_str).map(str::to_owned),
        timeout,
        on_failure,
        asynchronous: flag("async"),
        async_rewake: flag("asyncRewake"),
        pointer,
    })
}

fn parse_kind(fields: &Map<String, Value>, pointer: &str, defects: &mut Vec<Defect>) -> Option<HandlerKind> {
    let mut defect = |id: &'static str, field: &str, message: String| {
        let at = if field.is_empty() { pointer.to_owned() } else { format!("{pointer}/{field}") };
        defects.push(Defect::new(id, at, message, Cost::File));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let Some(word) = fields.get("type") else {
        defect("handler-without-type", "", "a handler has no `type`".to_owned());
        return None;
    };
    let mut required = |name: &str| {
        let found = text(name);
        if found.is_none() {
            defect(
                "handler-field-missing",
                "",
                format!("a {} handler has no `{name}`", word.as_str().unwrap_or("")),
            );
        }
        found
    };
    match word.as_str() {
        Some("command") => {
            let command = required("command")?;
            let args = match fields.get("args") {
                None => None,
                Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                    Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                }
                Some(_) => {
                    defect(
                        "handler-field-type",
                        "args",
                        "`args` of a handler is not an array of strings".to_owned(),
                    );
                    return None;
                }
            };
            Some(HandlerKind::Command { command, args })
        }
        Some("http") => {
            let url = required("url")?;
            if !is_url(&url) {
                defect("handler-field-type", "url", format!("`{url}` is not a URL"));
                return None;
            }
            let headers = fields.get("headers").and_then(Value::as_object).map_or_else(Vec::new, |headers| {
                headers
                    .iter()
                    .filter_map(|(name, value)| value.as_str().map(|text| (name.clone(), text.to_owned())))
                    .collect()
            });
            let allowed_env =
                fields.get("allowedEnvVars").and_then(Value::as_array).map_or_else(Vec::new, |names| {
                    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                });
            Some(HandlerKind::Http { url, headers, allowed_env })
        }
        Some("mcp_tool") => {
            let server = required("server")?;
            let tool = required("tool")?;
            let input = fields.get("input").cloned().unwrap_or_else(|| Value::Object(Map::new()));
            Some(HandlerKind::McpTool { server, tool, input })
        }
        Some("prompt") => Some(HandlerKind::Prompt {
            prompt: required("prompt")?,
            continue_on_block: fields.get("continueOnBlock").and_then(Value::as_bool).unwrap_or(false),
        }),
        Some("agent") => Some(HandlerKind::Agent { prompt: required("prompt")? }),
        other => {
            let word = other.unwrap_or("not a string").to_owned();
            defect("handler-unknown-type", "type", format!("there is no handler type `{word}`"));
            None
        }
    }
}

/// Whether a text is an absolute URL with a scheme and something after it.
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        let mut letters = scheme.chars();
        letters.next().is_some_and(|c| c.is_ascii_alphabetic())
            && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
            && !rest.is_empty()
            && !rest.starts_with('/')
            && !rest.contains(char::is_whitespace)
    })
}
