//! Calls that a rule catches, and near misses: for drafts of expectations, for comparing settings, for the linter.

use super::paths::{Anchor, PathPattern};
use super::rule::{BashPattern, Pattern, Wildcard};
use super::tools::ToolTable;
use serde_json::{Value, json};

/// A tool and its input.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The tool.
    pub tool: String,
    /// The input.
    pub input: Value,
}

fn example(tool: &str, input: Value) -> Example {
    Example { tool: tool.to_owned(), input }
}

/// An input that a tool accepts, without anything that a rule would look at.
pub fn plain_input(tool: &str) -> Value {
    match tool {
        "Bash" => json!({"command": "zz-plain"}),
        "Read" => json!({"file_path": "zz-plain.txt"}),
        "Write" => json!({"file_path": "zz-plain.txt", "content": "x"}),
        "Edit" => json!({"file_path": "zz-plain.txt", "old_string": "a", "new_string": "b"}),
        "NotebookEdit" => json!({"notebook_path": "zz-plain.ipynb", "new_source": "x"}),
        "WebFetch" => json!({"url": "http://zz-plain.example/", "prompt": "p"}),
        "WebSearch" => json!({"query": "zz"}),
        "Agent" => json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"}),
        "Skill" => json!({"skill": "zz-plain"}),
        "TaskStop" => json!({"task_id": "zz"}),
        "ToolSearch" => json!({"query": "zz"}),
        "TaskCreate" => json!({"subject": "s", "description": "d"}),
        "TaskUpdate" => json!({"taskId": "1"}),
        _ => json!({}),
    }
}

/// A call that the pattern catches, where one can be built.
pub fn caught(pattern: &Pattern, tools: &ToolTable) -> Option<Example> {
    match pattern {
        Pattern::Tool(name) => Some(example(name, plain_input(name))),
        Pattern::ToolGlob(glob) => {
            let known = super::tools::builtin_names().find(|name| glob.matches(name)).map(str::to_owned);
            let name = known
                .or_else(|| tools.mcp.keys().find(|name| glob.matches(name)).cloned())
                .unwrap_or_else(|| glob.example("x"));
            Some(example(&name, plain_input(&name)))
        }
        Pattern::McpServer(server) => {
            let prefix = format!("mcp__{server}__");
            let name = tools.mcp.keys().find(|name| name.starts_with(&prefix)).cloned();
            Some(example(&name.unwrap_or_else(|| format!("{prefix}x")), json!({})))
        }
        Pattern::Bash(BashPattern::Exact(text)) => Some(example("Bash", json!({"command": text}))),
        Pattern::Bash(BashPattern::Wild { pattern, .. }) => {
            Some(example("Bash", json!({"command": fill(pattern, "x")})))
        }
        Pattern::ReadPath(path) => Some(example("Read", json!({"file_path": path_example(path)?}))),
        Pattern::EditPath(path) => {
            Some(example("Write", json!({"file_path": path_example(path)?, "content": "x"})))
        }
        Pattern::Domain(domain) => {
            let host = domain.replace('*', "x");
            Some(example("WebFetch", json!({"url": format!("https://{host}/"), "prompt": "p"})))
        }
        Pattern::AgentType(name) => {
            Some(example("Agent", json!({"description": "d", "prompt": "p", "subagent_type": name})))
        }
        Pattern::SkillName(name) => Some(example("Skill", json!({"skill": name}))),
        Pattern::Parameter { tool, field, value, .. } => {
            let mut input = plain_input(tool);
            let typed = match value.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                text => text.parse::<i64>().map_or_else(|_| json!(text), Value::from),
            };
            input.as_object_mut()?.insert(field.clone(), typed);
            Some(example(tool, input))
        }
        Pattern::Never(_) => None,
    }
}

/// A call close by that the pattern does not catch.
pub fn near_miss(pattern: &Pattern) -> Option<Example> {
    match pattern {
        Pattern::Tool(name) if name == "Bash" => Some(example("Read", plain_input("Read"))),
        Pattern::Tool(name) => {
            let other = if name == "Write" { "Edit" } else { "Write" };
            Some(example(other, plain_input(other)))
        }
        Pattern::ToolGlob(_) => None,
        Pattern::McpServer(server) => Some(example(&format!("mcp__{server}x__x"), json!({}))),
        Pattern::Bash(BashPattern::Exact(text)) => {
            Some(example("Bash", json!({"command": format!("{text} x")})))
        }
        Pattern::Bash(BashPattern::Wild { pattern, .. }) => {
            // The words before the star with a letter more are another command; where the star reaches that letter,
            // the first word is changed.
            let head = pattern.head().trim_end();
            let word = head.split(' ').next().filter(|word| !word.is_empty())?;
            let command = [head, word]
                .map(|text| format!("{text}x y"))
                .into_iter()
                .find(|text| !pattern.matches(text))?;
            Some(example("Bash", json!({"command": command})))
        }
        Pattern::ReadPath(path) => {
            let caught = path_example(path)?;
            Some(example("Read", json!({"file_path": format!("{caught}.zz-other")})))
        }
        Pattern::EditPath(path) => {
            let caught = path_example(path)?;
            Some(example("Write", json!({"file_path": format!("{caught}.zz-other"), "content": "x"})))
        }
        Pattern::Domain(domain) => {
            let host = domain.replace('*', "x");
            Some(example("WebFetch", json!({"url": format!("https://{host}.zz.example/"), "prompt": "p"})))
        }
        Pattern::AgentType(name) => Some(example(
            "Agent",
            json!({"description": "d", "prompt": "p", "subagent_type": format!("{name}x")}),
        )),
        Pattern::SkillName(name) => Some(example("Skill", json!({"skill": format!("{name}x")}))),
        Pattern::Parameter { tool, .. } => Some(example(tool, plain_input(tool))),
        Pattern::Never(_) => None,
    }
}

fn fill(pattern: &Wildcard, with: &str) -> String {
    pattern.example(with).split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A path that a pattern covers: stars become a letter, character classes their first member.
pub fn path_example(pattern: &PathPattern) -> Option<String> {
    let mut path = String::new();
    let mut chars = pattern.line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '*' => {
                while chars.next_if_eq(&'*').is_some() {}
                path.push('x');
            }
            '?' => path.push('x'),
            '\\' => path.extend(chars.next()),
            '[' => {
                let class: String = chars.by_ref().take_while(|c| *c != ']').collect();
                path.push(class.chars().find(|c| !matches!(c, '!' | '^'))?);
            }
            c => path.push(c),
        }
    }
    let path = path.trim_start_matches('/');
    let path = if path.ends_with('/') { format!("{path}x") } else { path.to_owned() };
    Some(match pattern.anchor {
        Anchor::Root => format!("/{path}"),
        Anchor::Home => format!("~/{path}"),
        Anchor::Level | Anchor::Cwd => path,
    })
}
