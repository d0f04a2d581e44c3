//! Permission rules: syntax, and what each form can match.
//!
//! Source: gate-and-hooks, section 7.1, 7.2 (first table) and 7.4. A rule that cannot be read or can never match is
//! kept as [`Pattern::Never`] with its reason; it is reported, never silently dropped (I-LOAD).

use super::paths::{self, PathPattern};
use super::tools;
use crate::profile::gate::GateParameters;
use serde::{Deserialize, Serialize};

/// The list a rule stands in, in the order of evaluation: deny, then ask, then allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behaviour {
    /// The call is refused.
    Deny,
    /// The user is asked.
    Ask,
    /// The call runs.
    Allow,
}

impl Behaviour {
    /// The word in settings and messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// A text with `*` as its only wildcard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    /// The literal pieces between the stars.
    pieces: Vec<String>,
}

impl Wildcard {
    /// Reads a pattern.
    pub fn new(pattern: &str) -> Self {
        Self { pieces: pattern.split('*').map(str::to_owned).collect() }
    }

    /// Whether the whole text fits.
    pub fn matches(&self, text: &str) -> bool {
        let mut pieces = self.pieces.iter();
        let Some(first) = pieces.next() else { return text.is_empty() };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        for piece in pieces {
            match rest.find(piece.as_str()) {
                Some(at) => rest = rest.get(at + piece.len()..).unwrap_or(""),
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }

    /// The literal text before the first star.
    pub fn head(&self) -> &str {
        self.pieces.first().map_or("", String::as_str)
    }

    /// A text that it matches: every star filled with `fill`.
    pub fn example(&self, fill: &str) -> String {
        self.pieces.join(fill)
    }
}

/// What a `Bash(…)` rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BashPattern {
    /// The text of a command, as it is.
    Exact(String),
    /// A command with wildcards; `optional_tail`: a final ` *` also matches the command without arguments.
    Wild {
        /// The pattern, white space folded.
        pattern: Wildcard,
        /// The text before a final ` *`.
        bare: Option<Wildcard>,
    },
}

impl BashPattern {
    /// Reads the specifier.
    ///
    /// # Errors
    /// Why it can match nothing.
    pub fn parse(specifier: &str) -> Result<Self, &'static str> {
        let body = match specifier.strip_suffix(":*") {
            Some("") => return Err("`:*` without a command matches nothing"),
            Some(prefix) => format!("{prefix} *"),
            None if specifier.is_empty() => return Err("an empty specifier matches nothing"),
            None => specifier.to_owned(),
        };
        if body.contains("\\*") {
            return Err("an escaped star matches nothing");
        }
        if !body.contains('*') {
            if body.trim() != body {
                return Err("blanks around an exact command are part of it, and commands are trimmed");
            }
            return Ok(Self::Exact(body));
        }
        let bare = body.strip_suffix(" *").map(Wildcard::new);
        Ok(Self::Wild { pattern: Wildcard::new(&body), bare })
    }

    /// Whether it matches a command whose white space is folded.
    pub fn matches_folded(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Wild { pattern, bare } => {
                pattern.matches(text)
                    || bare
                        .as_ref()
                        .is_some_and(|bare| bare.pieces.iter().all(String::is_empty) || bare.matches(text))
            }
        }
    }

    /// The first word when it is literal: an index for large rule sets.
    pub fn first_word(&self) -> Option<&str> {
        let head = match self {
            Self::Exact(exact) => exact,
            Self::Wild { pattern, .. } => pattern.head(),
        };
        let (word, _) = head.split_once(' ')?;
        (!word.is_empty()).then_some(word)
    }
}

/// What a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A tool by its name.
    Tool(String),
    /// Tools by a name with stars.
    ToolGlob(Wildcard),
    /// All tools of an MCP server.
    McpServer(String),
    /// Commands.
    Bash(BashPattern),
    /// Paths that are read.
    ReadPath(PathPattern),
    /// Paths that are written.
    EditPath(PathPattern),
    /// Hosts of WebFetch.
    Domain(String),
    /// A subagent type.
    AgentType(String),
    /// A skill by its name.
    SkillName(String),
    /// A top-level scalar of the input; `tool`, field, value.
    Parameter {
        /// The tool.
        tool: String,
        /// The field.
        field: String,
        /// Its value as text.
        value: String,
        /// What else the specifier could mean.
        or: Option<Box<Pattern>>,
    },
    /// Nothing; why.
    Never(String),
}

impl Pattern {
    /// Reads one rule. Total: what cannot be read matches nothing and says why.
    pub fn parse(behaviour: Behaviour, text: &str, parameters: &GateParameters) -> Self {
        match parse(behaviour, text, parameters) {
            Ok(pattern) => pattern,
            Err(why) => Self::Never(why),
        }
    }

    /// Why it can match nothing; `None` when it can.
    pub fn never(&self) -> Option<&str> {
        match self {
            Self::Never(why) => Some(why),
            _ => None,
        }
    }
}

/// `Task` is the old name of the agent tool.
fn canonical(tool: &str) -> &str {
    if tool == "Task" { "Agent" } else { tool }
}

fn parse(behaviour: Behaviour, text: &str, parameters: &GateParameters) -> Result<Pattern, String> {
    if text.trim().is_empty() {
        return Err("an empty rule matches nothing".to_owned());
    }
    if text.trim() != text {
        return Err("blanks around a rule make it match nothing".to_owned());
    }
    let Some(open) = text.find('(') else {
        if text.contains(')') {
            return Err("the parenthesis is not opened".to_owned());
        }
        return parse_name(behaviour, text);
    };
    let Some(specifier) = text.get(open + 1..).and_then(|rest| rest.strip_suffix(')')) else {
        return Err("the parenthesis is not closed at the end".to_owned());
    };
    let tool = text.get(..open).unwrap_or("");
    if tool.trim() != tool || tool.is_empty() {
        return Err("no blank may stand between the tool and its parenthesis".to_owned());
    }
    let tool = canonical(tool);
    if tool.starts_with("mcp__") {
        if parameters.parameter_rules_cover_mcp.value
            && behaviour != Behaviour::Allow
            && let Some(pattern) = parameter(tool, specifier, None)
        {
            return Ok(pattern);
        }
        return Err("rules for MCP tools take no parenthesis".to_owned());
    }
    if tool.contains('*') {
        return Err("a tool name with a star takes no parenthesis".to_owned());
    }
    let own = parse_specifier(behaviour, tool, specifier, parameters);
    if behaviour == Behaviour::Allow {
        return own;
    }
    match parameter(tool, specifier, own.as_ref().ok().cloned().map(Box::new)) {
        Some(pattern) => Ok(pattern),
        None => own,
    }
}

fn parse_name(behaviour: Behaviour, name: &str) -> Result<Pattern, String> {
    let name = canonical(name);
    let server = name.strip_prefix("mcp__");
    if let Some(server) = server {
        let (server, tool) = server.split_once("__").map_or((server, None), |(s, t)| (s, Some(t)));
        let server_has_star = server.contains('*');
        return match tool {
            _ if server_has_star && behaviour == Behaviour::Allow => {
                Err("a star in the server's name grants nothing in allow".to_owned())
            }
            _ if server_has_star => Ok(Pattern::ToolGlob(Wildcard::new(name))),
            None => Ok(Pattern::McpServer(server.to_owned())),
            Some("") => Err("the tool's name is missing".to_owned()),
            Some("*" | "**") => Ok(Pattern::McpServer(server.to_owned())),
            Some(tool) if tool.contains('*') => Ok(Pattern::ToolGlob(Wildcard::new(name))),
            Some(_) => Ok(Pattern::Tool(name.to_owned())),
        };
    }
    if name.contains('*') {
        return if behaviour == Behaviour::Allow {
            Err("a star in a tool's name grants nothing in allow".to_owned())
        } else {
            Ok(Pattern::ToolGlob(Wildcard::new(name)))
        };
    }
    Ok(Pattern::Tool(name.to_owned()))
}

/// `field:value` in deny and ask rules.
fn parameter(tool: &str, specifier: &str, or: Option<Box<Pattern>>) -> Option<Pattern> {
    let (field, value) = specifier.split_once(':')?;
    let is_name = field.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_content = matches!(
        (tool, field),
        ("Bash", "command") | ("WebFetch", "domain" | "url") | ("Read" | "Write" | "Edit", "file_path")
    );
    if !is_name || value.is_empty() || value == "*" || is_content {
        return None;
    }
    Some(Pattern::Parameter { tool: tool.to_owned(), field: field.to_owned(), value: value.to_owned(), or })
}

fn parse_specifier(
    behaviour: Behaviour,
    tool: &str,
    specifier: &str,
    parameters: &GateParameters,
) -> Result<Pattern, String> {
    let path = |specifier: &str| -> Result<PathPattern, String> {
        let pattern = PathPattern::parse(specifier, behaviour)?;
        if paths::line_is_usable(&pattern.line, parameters.paths_ignore_case.value) {
            Ok(pattern)
        } else {
            Err("gitignore cannot read this pattern".to_owned())
        }
    };
    let is_star = specifier == "*";
    match tool {
        "Bash" if is_star => Ok(Pattern::Tool(tool.to_owned())),
        "Bash" => Ok(Pattern::Bash(BashPattern::parse(specifier)?)),
        "Read" if is_star && (parameters.star_equals_bare.value || behaviour == Behaviour::Deny) => {
            Ok(Pattern::Tool(tool.to_owned()))
        }
        "Read" => Ok(Pattern::ReadPath(path(specifier)?)),
        "Edit" if is_star => Ok(Pattern::Tool(tool.to_owned())),
        "Edit" => Ok(Pattern::EditPath(path(specifier)?)),
        "WebFetch" if is_star => Ok(Pattern::Tool(tool.to_owned())),
        "WebFetch" => match specifier.strip_prefix("domain:") {
            Some("") => Err("no domain is named".to_owned()),
            Some(domain) => Ok(Pattern::Domain(domain.to_owned())),
            None => Err("WebFetch rules have the form `WebFetch(domain:host)`".to_owned()),
        },
        "Agent" if is_star => Ok(Pattern::Tool(tool.to_owned())),
        "Agent" => Ok(Pattern::AgentType(specifier.to_owned())),
        "Skill" if is_star => Ok(Pattern::Tool(tool.to_owned())),
        "Skill" => {
            let name = specifier.strip_suffix(":*").unwrap_or(specifier);
            if name.contains('*') || name.is_empty() {
                return Err("skill rules know `Skill(name)` and `Skill(name:*)` only".to_owned());
            }
            Ok(Pattern::SkillName(name.to_owned()))
        }
        _ if is_star => Ok(Pattern::Tool(tool.to_owned())),
        "Write" | "NotebookEdit" | "MultiEdit" | "Glob" | "Grep" | "LS" => {
            let instead = if matches!(tool, "Glob" | "Grep" | "LS") { "Read" } else { "Edit" };
            Err(format!("path rules of {tool} are never consulted; `{instead}(…)` governs these paths"))
        }
        _ if tools::is_builtin(tool) => Err(format!("{tool} takes no specifier")),
        _ => Err(format!("there is no tool `{tool}`")),
    }
}
