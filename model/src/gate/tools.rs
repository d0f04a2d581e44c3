//! The tools of a session: which are offered, what their input must look like, and which need no permission.
//!
//! Source: gate-and-hooks, sections 2 (steps 2, 4, 5), 7.4 and 8; the observed tool list in print mode.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The type of an input field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Text,
    Number,
    Boolean,
    List,
    Any,
}

/// A built-in tool.
struct Builtin {
    name: &'static str,
    required: &'static [(&'static str, Field)],
    optional: &'static [(&'static str, Field)],
    /// Whether it is offered in print mode without being named.
    offered: bool,
    /// Whether unknown fields are an error: only where the observed schema is known whole.
    closed: bool,
}

use Field::{Any, Boolean, List, Number, Text};

const BUILTIN: &[Builtin] = &[
    Builtin {
        name: "Agent",
        required: &[("description", Text), ("prompt", Text)],
        optional: &[("subagent_type", Text), ("model", Text), ("run_in_background", Boolean), ("name", Text)],
        offered: true,
        closed: false,
    },
    Builtin {
        name: "Bash",
        required: &[("command", Text)],
        optional: &[
            ("timeout", Number),
            ("description", Text),
            ("run_in_background", Boolean),
            ("dangerouslyDisableSandbox", Boolean),
        ],
        offered: true,
        closed: true,
    },
    Builtin {
        name: "Read",
        required: &[("file_path", Text)],
        optional: &[("offset", Number), ("limit", Number), ("pages", Text)],
        offered: true,
        closed: true,
    },
    Builtin {
        name: "Write",
        required: &[("file_path", Text), ("content", Text)],
        optional: &[],
        offered: true,
        closed: true,
    },
    Builtin {
        name: "Edit",
        required: &[("file_path", Text), ("old_string", Text), ("new_string", Text)],
        optional: &[("replace_all", Boolean)],
        offered: true,
        closed: true,
    },
    Builtin {
        name: "NotebookEdit",
        required: &[("notebook_path", Text), ("new_source", Text)],
        optional: &[("cell_id", Text), ("cell_type", Text), ("edit_mode", Text)],
        offered: true,
        closed: true,
    },
    Builtin {
        name: "WebFetch",
        required: &[("url", Text), ("prompt", Text)],
        optional: &[],
        offered: true,
        closed: true,
    },
    Builtin {
        name: "WebSearch",
        required: &[("query", Text)],
        optional: &[("allowed_domains", List), ("blocked_domains", List)],
        offered: true,
        closed: true,
    },
    Builtin {
        name: "Skill",
        required: &[("skill", Text)],
        optional: &[("args", Text)],
        offered: true,
        closed: false,
    },
    Builtin { name: "CronList", required: &[], optional: &[], offered: true, closed: false },
    Builtin { name: "CronCreate", required: &[], optional: &[], offered: true, closed: false },
    Builtin { name: "CronDelete", required: &[], optional: &[], offered: true, closed: false },
    Builtin { name: "ListAgents", required: &[], optional: &[], offered: true, closed: false },
    Builtin { name: "TaskStop", required: &[("task_id", Text)], optional: &[], offered: true, closed: false },
    Builtin {
        name: "ToolSearch",
        required: &[("query", Text)],
        optional: &[("max_results", Number)],
        offered: false,
        closed: false,
    },
    Builtin {
        name: "TaskCreate",
        required: &[("subject", Text), ("description", Text)],
        optional: &[("metadata", Any)],
        offered: false,
        closed: false,
    },
    Builtin {
        name: "TaskUpdate",
        required: &[("taskId", Text)],
        optional: &[],
        offered: false,
        closed: false,
    },
];

/// Built-in tools that exist but are not offered in print mode.
pub const ABSENT: [&str; 12] = [
    "AskUserQuestion",
    "ExitPlanMode",
    "EndConversation",
    "Glob",
    "Grep",
    "TodoWrite",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "MultiEdit",
    "LS",
    "NotebookRead",
];

/// Tools that exist outside print mode on Linux, or only with a feature: named so that a rule about them is no mistake.
const ELSEWHERE: [&str; 14] = [
    "PowerShell",
    "Monitor",
    "StructuredOutput",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "SendMessage",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "LSP",
    "SlashCommand",
    "KillShell",
    "BashOutput",
    "TodoRead",
];

/// Whether a tool of that name is known to exist, to have existed, or to exist elsewhere.
pub fn is_known(name: &str) -> bool {
    is_builtin(name) || ELSEWHERE.contains(&name)
}

/// The known tool whose name is nearest to a name that is no tool's: the same letters in another case, or at most two
/// slips away.
pub fn nearest(name: &str) -> Option<&'static str> {
    let known = || builtin_names().chain(ABSENT).chain(ELSEWHERE);
    if let Some(same) = known().find(|tool| tool.eq_ignore_ascii_case(name)) {
        return Some(same);
    }
    // A short name is near to everything: a third of its letters may be wrong.
    let bearable = (name.chars().count() / 3).min(2);
    known()
        .map(|tool| (strsim::damerau_levenshtein(name, tool), tool))
        .filter(|(slips, _)| *slips <= bearable)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, tool)| tool)
}

/// Whether a built-in tool of that name exists or existed.
pub fn is_builtin(name: &str) -> bool {
    name == "Task" || BUILTIN.iter().any(|tool| tool.name == name) || ABSENT.contains(&name)
}

/// Names of the built-in tools that can be called, in alphabetic groups of the documentation.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|tool| tool.name)
}

/// Tools that run without permission where nothing says otherwise.
pub fn needs_no_permission(name: &str) -> bool {
    matches!(
        name,
        "Agent" | "CronList" | "ListAgents" | "ToolSearch" | "TaskCreate" | "TaskUpdate" | "TaskStop"
    )
}

/// What is known of an MCP tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpTool {
    /// The server says that it only reads.
    pub read_only: bool,
}

/// The tools, skills and agents of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolTable {
    /// MCP tools by their full name.
    pub mcp: BTreeMap<String, McpTool>,
    /// Whether deferred tools are loaded through ToolSearch.
    pub tool_search: bool,
    /// `--tools`: only these built-in tools; `None` is the default set.
    pub only: Option<Vec<String>>,
    /// Tools that are named in `--allowedTools`, which offers some that are absent otherwise.
    pub named: Vec<String>,
    /// `--bare`: the small set.
    pub bare: bool,
    /// Skills by name; whether the skill has `allowed-tools`.
    pub skills: BTreeMap<String, bool>,
}

impl ToolTable {
    /// Whether a tool is offered, before deny rules are looked at.
    pub fn offers(&self, name: &str) -> bool {
        if let Some(only) = &self.only {
            return only.iter().any(|tool| tool == name);
        }
        if name.starts_with("mcp__") {
            return self.mcp.contains_key(name);
        }
        if self.bare {
            return matches!(name, "Bash" | "Read" | "Edit");
        }
        match name {
            "ToolSearch" => self.tool_search,
            "TaskCreate" | "TaskUpdate" => self.named.iter().any(|tool| tool == name),
            _ => BUILTIN.iter().any(|tool| tool.name == name && tool.offered),
        }
    }

    /// Whether an MCP tool only reads.
    pub fn is_read_only_mcp(&self, name: &str) -> bool {
        self.mcp.get(name).is_some_and(|tool| tool.read_only)
    }
}

/// Checks an input against the tool's schema (step 4). `lax`: unknown fields are tolerated, as after a hook's rewrite.
/// MCP inputs are not checked; tools whose schema is not known pass.
///
/// # Errors
/// What is wrong, in the words of the harness's kind.
pub fn validate(name: &str, input: &Value, lax: bool) -> Result<(), String> {
    let Some(tool) = BUILTIN.iter().find(|tool| tool.name == name) else { return Ok(()) };
    let Value::Object(fields) = input else {
        return Err(format!("the input of {name} is not an object"));
    };
    check_fields(tool, fields, lax)?;
    match name {
        "Bash" => {
            let command = fields.get("command").and_then(Value::as_str).unwrap_or("");
            if command.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
                return Err("the command contains control characters that would be hidden".to_owned());
            }
            Ok(())
        }
        "WebFetch" => match fields.get("url").and_then(Value::as_str).and_then(super::web::host) {
            Some(_) => Ok(()),
            None => Err("the URL could not be parsed".to_owned()),
        },
        _ => Ok(()),
    }
}

fn check_fields(tool: &Builtin, fields: &Map<String, Value>, lax: bool) -> Result<(), String> {
    for (name, field) in tool.required {
        match fields.get(*name) {
            None => return Err(format!("the required parameter `{name}` is missing")),
            Some(value) if !fits(*field, value) => {
                return Err(format!("the parameter `{name}` has the wrong type"));
            }
            Some(_) => {}
        }
    }
    for (name, value) in fields {
        match tool.required.iter().chain(tool.optional).find(|(known, _)| known == name) {
            Some((_, field)) if !fits(*field, value) => {
                return Err(format!("the parameter `{name}` has the wrong type"));
            }
            None if tool.closed && !lax => {
                return Err(format!("an unexpected parameter `{name}` was provided"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Texts of numbers and booleans are coerced.
fn fits(field: Field, value: &Value) -> bool {
    match field {
        Text => value.is_string(),
        Number => value.is_number() || value.as_str().is_some_and(|text| text.trim().parse::<f64>().is_ok()),
        Boolean => value.is_boolean() || matches!(value.as_str(), Some("true" | "false")),
        List => value.is_array(),
        Any => true,
    }
}

/// The path field of a file tool.
pub fn path_of<'a>(name: &str, input: &'a Value) -> Option<&'a str> {
    let field = match name {
        "Read" | "Write" | "Edit" => "file_path",
        "NotebookEdit" => "notebook_path",
        _ => return None,
    };
    input.get(field).and_then(Value::as_str)
}
