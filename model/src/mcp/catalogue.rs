//! Lints a catalogue of tools against the rules of the protocol and of the model APIs.
//!
//! Source: mcp.md 1.10, 1.12 (protocol), 3.8 (what a real client does with it); field reports F83 to F87. Faults are
//! named a tool at a time: one bad definition must not hide the others (I-SCHEMA).

use super::names;
use super::schema::{DEEPEST, depth};
use crate::finding::{Finding, Severity};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The tools of one server.
#[derive(Clone, Debug)]
pub struct ServerTools<'a> {
    /// The server's name, as far as it is known: without it visible names cannot be judged.
    pub server: Option<&'a str>,
    /// Pointer of the tools' array inside the file.
    pub pointer: String,
    /// The definitions.
    pub tools: &'a [Value],
}

/// A finding and the RFC 6901 pointer of what it is about.
pub type Located = (String, Finding);

/// A description longer than this is cut by the documented harness.
const DESCRIPTION_DOCUMENTED: usize = 2_048;
/// A description longer than this is cut by the observed one.
const DESCRIPTION_OBSERVED: usize = 4_096;
/// A definition longer than this (in characters of JSON) is worth a note.
const LARGE_DEFINITION: usize = 8_000;

/// Lints the tools of all servers together.
pub fn lint(servers: &[ServerTools<'_>]) -> Vec<Located> {
    let mut lint = Lint { found: Vec::new() };
    for server in servers {
        lint.server(server);
    }
    lint.across(servers);
    lint.found
}

/// What a visible name of this length means for the model APIs (F83).
pub fn visible_length(name: &str, length: usize) -> Option<Finding> {
    let (id, severity, message, why) = if length > names::LONGEST {
        (
            "visible-name-too-long",
            Severity::Error,
            format!("the visible name `{name}` has {length} characters; no model API takes more than 128"),
            "the tool is left out, or every request of the session fails",
        )
    } else if length > names::PORTABLE_LENGTH {
        (
            "visible-name-not-portable",
            Severity::Warning,
            format!(
                "the visible name `{name}` has {length} characters: over 64, the portable limit (newer model APIs take 128)"
            ),
            "an API with the lower limit refuses every request that carries the tool",
        )
    } else {
        return None;
    };
    Some(Finding::new(id, severity, message, why).with_remedy("shorten the tool's or the server's name"))
}

/// What stays the same while one schema is walked.
#[derive(Clone, Copy)]
struct Walk<'a> {
    root: &'a Value,
    is_input: bool,
    first: usize,
}

struct Lint {
    found: Vec<Located>,
}

impl Lint {
    fn report(&mut self, at: &str, id: &str, severity: Severity, clause: &str, message: String, why: &str) {
        self.found.push((
            at.to_owned(),
            Finding::new(id, severity, message, why).with_party("server").with_clause(clause),
        ));
    }

    fn server(&mut self, server: &ServerTools<'_>) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (number, tool) in server.tools.iter().enumerate() {
            let at = format!("{}/{number}", server.pointer);
            let bare = tool.as_str();
            if bare.is_none() && !tool.is_object() {
                self.report(
                    &at,
                    "tool-not-an-object",
                    Severity::Error,
                    DEFINITION,
                    format!("tool {number} is no object"),
                    "it cannot be read",
                );
                continue;
            }
            let Some(name) = bare.or(tool.get("name").and_then(Value::as_str)) else {
                self.report(
                    &at,
                    "tool-without-name",
                    Severity::Error,
                    DEFINITION,
                    format!("tool {number} has no name"),
                    "it cannot be called",
                );
                continue;
            };
            self.name(&at, server.server, name);
            if !seen.insert(name) {
                self.report(
                    &at,
                    "tool-name-twice",
                    Severity::Error,
                    NAMES,
                    format!("`{name}` is listed twice"),
                    "one name, one definition; the first listed wins",
                );
            }
            if let Value::Object(definition) = tool {
                self.definition(&at, name, definition);
            }
        }
    }

    fn name(&mut self, at: &str, server: Option<&str>, name: &str) {
        let at = format!("{at}/name");
        if name.is_empty() {
            self.report(
                &at,
                "tool-name-empty",
                Severity::Error,
                NAMES,
                "a tool's name is empty".to_owned(),
                "it cannot be called",
            );
            return;
        }
        let length = name.chars().count();
        if length > 128 {
            self.report(
                &at,
                "tool-name-too-long",
                Severity::Error,
                NAMES,
                format!("`{name}` has {length} characters; 1 to 128 are allowed"),
                "clients leave the tool out",
            );
        }
        if let Some(character) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || "_.-".contains(*c))) {
            self.report(
                &at,
                "tool-name-characters",
                Severity::Warning,
                NAMES,
                format!(
                    "`{name}` has the character `{character}`; letters, digits, `_`, `.` and `-` are allowed"
                ),
                "clients replace it, and names may collide",
            );
        } else if name.contains('.') {
            self.report(
                &at,
                "tool-name-not-portable",
                Severity::Note,
                "model APIs, tools: names are letters, digits, `_` and `-`",
                format!("`{name}` has a `.`, which model APIs do not take"),
                "clients replace it by `_`",
            );
        }
        if let Some(server) = server {
            let visible = names::qualify(server, name);
            if let Some(finding) = visible_length(&visible, visible.chars().count()) {
                let finding = finding.with_party("server").with_clause("model APIs, tools: length of names");
                self.found.push((at, finding));
            }
        }
    }

    fn definition(&mut self, at: &str, name: &str, definition: &Map<String, Value>) {
        match definition.get("description") {
            None => self.report(
                at,
                "description-missing",
                Severity::Warning,
                DEFINITION,
                format!("`{name}` has no description"),
                "the assistant has nothing to choose it by",
            ),
            Some(Value::String(text)) => self.description(at, name, text),
            Some(_) => self.report(
                &format!("{at}/description"),
                "description-not-a-string",
                Severity::Error,
                DEFINITION,
                format!("the description of `{name}` is no string"),
                "the definition is refused",
            ),
        }
        match definition.get("inputSchema").or_else(|| definition.get("input_schema")) {
            None => self.report(
                at,
                "input-schema-missing",
                Severity::Error,
                DEFINITION,
                format!("`{name}` has no inputSchema"),
                "observed: the whole list is rejected",
            ),
            Some(Value::Object(schema)) => self.input_schema(&format!("{at}/inputSchema"), name, schema),
            Some(other) => self.report(
                &format!("{at}/inputSchema"),
                "input-schema-not-an-object",
                Severity::Error,
                DEFINITION,
                format!("the inputSchema of `{name}` is {}", kind(other)),
                "it is never null; observed: the whole list is rejected",
            ),
        }
        if let Some(schema) = definition.get("outputSchema") {
            let at = format!("{at}/outputSchema");
            if schema.is_object() || schema.is_boolean() {
                self.meta(&at, name, "outputSchema", schema);
            } else {
                self.report(
                    &at,
                    "output-schema-not-an-object",
                    Severity::Error,
                    DEFINITION,
                    format!("the outputSchema of `{name}` is {}", kind(schema)),
                    "results cannot be checked against it",
                );
            }
        }
        self.annotations(at, name, definition.get("annotations"));
        if let Some(support) = definition.get("execution").and_then(|execution| execution.get("taskSupport"))
            && !["required", "optional", "forbidden"].map(Value::from).contains(support)
        {
            self.report(
                &format!("{at}/execution/taskSupport"),
                "task-support-unknown",
                Severity::Error,
                "2025-11-25, tasks: required, optional or forbidden",
                format!("taskSupport of `{name}` is {support}"),
                "clients cannot tell whether to make a task of a call",
            );
        }
        let size = Value::Object(definition.clone()).to_string().chars().count();
        if size > LARGE_DEFINITION {
            self.report(
                at,
                "definition-large",
                Severity::Note,
                "proposition 3.8",
                format!("the definition of `{name}` has {size} characters"),
                "loaded upfront it is paid for in every request",
            );
        }
    }

    fn description(&mut self, at: &str, name: &str, text: &str) {
        let at = format!("{at}/description");
        let length = text.chars().count();
        if text.trim().is_empty() {
            self.report(
                &at,
                "description-missing",
                Severity::Warning,
                DEFINITION,
                format!("the description of `{name}` is empty"),
                "the assistant has nothing to choose it by",
            );
        } else if length > DESCRIPTION_OBSERVED {
            self.report(&at, "description-cut", Severity::Warning, "harness documentation: descriptions are cut", format!("the description of `{name}` has {length} characters; what is beyond 4096 (documented: 2048) is cut"), "the assistant never sees the rest");
        } else if length > DESCRIPTION_DOCUMENTED {
            self.report(&at, "description-cut", Severity::Note, "harness documentation: descriptions are cut", format!("the description of `{name}` has {length} characters; the documentation says that 2048 are kept (observed: 4096)"), "a harness may cut the rest");
        }
    }

    fn annotations(&mut self, at: &str, name: &str, annotations: Option<&Value>) {
        let Some(annotations) = annotations else { return };
        let at = format!("{at}/annotations");
        let Some(members) = annotations.as_object() else {
            self.report(
                &at,
                "annotations-not-an-object",
                Severity::Error,
                DEFINITION,
                format!("the annotations of `{name}` are {}", kind(annotations)),
                "the definition is refused",
            );
            return;
        };
        for key in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            if members.get(key).is_some_and(|value| !value.is_boolean()) {
                self.report(
                    &format!("{at}/{key}"),
                    "annotation-not-boolean",
                    Severity::Error,
                    DEFINITION,
                    format!("{key} of `{name}` is no boolean"),
                    "the hint is unusable",
                );
            }
        }
        let flag = |key: &str| members.get(key) == Some(&Value::Bool(true));
        if flag("readOnlyHint") && flag("destructiveHint") {
            self.report(&at, "annotations-contradict", Severity::Warning, "server features, tools, annotations: destructiveHint means something only where readOnlyHint is false", format!("`{name}` is both read-only and destructive"), "clients run read-only tools concurrently and with fewer questions");
        }
    }

    fn input_schema(&mut self, at: &str, name: &str, schema: &Map<String, Value>) {
        match schema.get("type") {
            Some(Value::String(kind)) if kind == "object" => {}
            None => self.report(
                at,
                "input-schema-type-missing",
                Severity::Error,
                DEFINITION,
                format!("the inputSchema of `{name}` has no `type`"),
                "it must say `\"type\": \"object\"`; clients refuse it",
            ),
            Some(other) => self.report(
                &format!("{at}/type"),
                "input-schema-type",
                Severity::Error,
                DEFINITION,
                format!("the inputSchema of `{name}` is of type {other}, not \"object\""),
                "arguments are an object",
            ),
        }
        for keyword in ["oneOf", "anyOf", "allOf"] {
            if schema.contains_key(keyword) {
                let message = format!("`{keyword}` at top level of the inputSchema of `{name}`");
                let why = "model APIs refuse every request that carries it; a client that removes it loses the constraint without notice";
                let finding = Finding::new("schema-alternative-at-top", Severity::Error, message, why)
                    .with_party("server")
                    .with_clause("model APIs, tools: no oneOf, anyOf, allOf at the top level of an input schema")
                    .with_remedy("portable form: drop it and state the rule in the description; nested alternatives are fine");
                self.found.push((format!("{at}/{keyword}"), finding));
            }
        }
        let whole = Value::Object(schema.clone());
        self.meta(at, name, "inputSchema", &whole);
        self.required(at, name, schema);
        self.headers(at, name, schema);
    }

    /// The rules of the meta-schema, and those on keywords wherever they stand.
    fn meta(&mut self, at: &str, name: &str, member: &str, schema: &Value) {
        if depth(schema) > DEEPEST {
            self.report(
                at,
                "schema-too-deep",
                Severity::Warning,
                DIALECT,
                format!("the {member} of `{name}` is nested deeper than {DEEPEST}"),
                "it is not judged further, and clients may refuse it",
            );
            return;
        }
        let before = self.found.len();
        self.walk(at, name, Walk { root: schema, is_input: member == "inputSchema", first: before }, schema);
        let specific = self.found.iter().skip(before).any(|(_, finding)| finding.severity == Severity::Error);
        if !specific && let Err(error) = jsonschema::meta::validate(schema) {
            self.report(
                &format!("{at}{}", error.instance_path()),
                "schema-invalid",
                Severity::Error,
                DIALECT,
                format!("the {member} of `{name}` is no valid JSON Schema: {error}"),
                "typos in a schema pass every check until the first call",
            );
        }
    }

    fn walk(&mut self, at: &str, name: &str, walk: Walk<'_>, schema: &Value) {
        let is_input = walk.is_input;
        let Value::Object(members) = schema else { return };
        const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
        let types: Vec<&Value> = match members.get("type") {
            Some(Value::Array(types)) => types.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        for unknown in types.iter().filter(|kind| !kind.as_str().is_some_and(|kind| TYPES.contains(&kind))) {
            let shown = unknown.as_str().map_or_else(|| unknown.to_string(), str::to_owned);
            self.report(&format!("{at}/type"), "schema-type-unknown", Severity::Error, DIALECT, format!("unknown type {shown} in a schema of `{name}`"), "typos in a schema pass every check until the first call; observed: the tool is left out silently");
        }
        if is_input
            && types.first().and_then(|kind| kind.as_str()) == Some("array")
            && !members.contains_key("items")
            && !members.contains_key("prefixItems")
        {
            self.report(
                at,
                "array-without-items",
                Severity::Warning,
                "model APIs, tools: arrays say what they hold",
                format!("an array without `items` in a schema of `{name}`"),
                "some model APIs refuse it",
            );
        }
        self.reference(at, name, walk, members);
        if let Some(Value::Object(properties)) = members.get("properties") {
            for (key, value) in properties {
                let fits = (1..=64).contains(&key.chars().count())
                    && key.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
                let at = format!("{at}/properties/{}", escaped(key));
                if is_input && !fits {
                    self.report(
                        &at,
                        "property-name",
                        Severity::Error,
                        "model APIs, tools: property names",
                        format!("property name `{key}` of `{name}` is outside letters, digits, _ . - (1-64)"),
                        "model APIs refuse it; observed: the tool is left out silently",
                    );
                }
                self.walk(&at, name, walk, value);
            }
        }
        for key in ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"]
        {
            if let Some(value) = members.get(key) {
                self.walk(&format!("{at}/{key}"), name, walk, value);
            }
        }
        for key in ["oneOf", "anyOf", "allOf", "prefixItems"] {
            for (number, value) in
                members.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.walk(&format!("{at}/{key}/{number}"), name, walk, value);
            }
        }
        for key in ["$defs", "definitions", "patternProperties", "dependentSchemas"] {
            for (inner, value) in members.get(key).and_then(Value::as_object).into_iter().flatten() {
                self.walk(&format!("{at}/{key}/{}", escaped(inner)), name, walk, value);
            }
        }
    }

    /// Uses of `$ref`: reported once for a tool (`first` is the number of its first finding), and in inputs only.
    fn reference(&mut self, at: &str, name: &str, walk: Walk<'_>, members: &Map<String, Value>) {
        let Walk { root, is_input, first } = walk;
        let Some(reference) = members.get("$ref") else { return };
        let at = format!("{at}/$ref");
        let Some(target) = reference.as_str() else {
            self.report(
                &at,
                "schema-ref-invalid",
                Severity::Error,
                DIALECT,
                format!("`$ref` of `{name}` is no string"),
                "it names nothing",
            );
            return;
        };
        let Some(pointer) = target.strip_prefix('#') else {
            self.report(
                &at,
                "schema-ref-external",
                Severity::Error,
                "server features, tools, security: an external $ref MUST NOT be fetched automatically",
                format!("`$ref` of `{name}` points outside the schema: {target}"),
                "the part stays unchecked, or a client is made to fetch it",
            );
            return;
        };
        let found = if pointer.is_empty() {
            Some(root)
        } else if pointer.starts_with('/') {
            root.pointer(pointer)
        } else {
            // An anchor: the meta-schema is silent about it, and so are we.
            return;
        };
        match found {
            None => self.report(
                &at,
                "schema-ref-unresolved",
                Severity::Error,
                DIALECT,
                format!("`$ref` of `{name}` names nothing: {target}"),
                "clients refuse the schema or drop the part",
            ),
            Some(_)
                if !is_input
                    || self.found.iter().skip(first).any(|(_, finding)| finding.id == "schema-ref") => {}
            Some(found) => {
                let shown = found
                    .get("type")
                    .and_then(Value::as_str)
                    .map_or(String::new(), |kind| format!(" (equivalent inlined schema: type = {kind})"));
                self.report(&at, "schema-ref", Severity::Warning, "model APIs, tools: some refuse $ref", format!("`$ref` {target} in a schema of `{name}`{shown}; some APIs refuse $ref in tool schemas"), "clients that do not resolve it lose the argument's type");
            }
        }
    }

    fn required(&mut self, at: &str, name: &str, schema: &Map<String, Value>) {
        let Some(required) = schema.get("required").and_then(Value::as_array) else { return };
        let properties = schema.get("properties").and_then(Value::as_object);
        for (number, key) in required.iter().enumerate() {
            if let Some(key) = key.as_str()
                && !properties.is_some_and(|properties| properties.contains_key(key))
                && !schema.contains_key("patternProperties")
            {
                self.report(
                    &format!("{at}/required/{number}"),
                    "required-not-a-property",
                    Severity::Warning,
                    DIALECT,
                    format!("`{key}` is required by `{name}` but is no property"),
                    "the assistant is not told what it is",
                );
            }
        }
    }

    /// `x-mcp-header` stands on statically reachable strings, integers and booleans only (mcp.md 1.12).
    fn headers(&mut self, at: &str, name: &str, schema: &Map<String, Value>) {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for (pointer, header, property) in header_annotations(schema) {
            let at = format!("{at}{pointer}");
            let problem = match header.as_str() {
                None => Some("is no string".to_owned()),
                Some(text) if !is_token(text) => Some(format!("`{text}` is no header name")),
                Some(text) if !seen.insert(text.to_ascii_lowercase()) => {
                    Some(format!("`{text}` is used twice"))
                }
                Some(_) => match property.get("type").and_then(Value::as_str) {
                    Some("string" | "integer" | "boolean") => None,
                    other => Some(format!("stands on a property of type {}", other.unwrap_or("none"))),
                },
            };
            if let Some(problem) = problem {
                self.report(&at, "header-annotation-invalid", Severity::Error, "2026-07-28, transports, Streamable HTTP: clients MUST drop a tool with an invalid x-mcp-header", format!("x-mcp-header of `{name}` {problem}"), "the tool disappears over HTTP");
            }
        }
    }

    /// Names over all servers: collisions after sanitising, and servers whose names can clash (B2).
    fn across(&mut self, servers: &[ServerTools<'_>]) {
        let mut all = Vec::new();
        for server in servers {
            let mut names_here: BTreeSet<&str> = BTreeSet::new();
            for tool in server.tools {
                let name = tool.as_str().or(tool.get("name").and_then(Value::as_str)).unwrap_or_default();
                if names_here.insert(name) {
                    all.push((server.server.unwrap_or_default(), name));
                }
            }
        }
        let pointer = servers.first().map(|server| server.pointer.clone()).unwrap_or_default();
        for collision in names::collisions(all.iter().copied()) {
            let tools: Vec<String> = collision
                .tools
                .iter()
                .map(|(s, t)| if s.is_empty() { format!("`{t}`") } else { format!("`{t}` of `{s}`") })
                .collect();
            let shown = if servers.iter().any(|s| s.server.is_some()) {
                collision.name.clone()
            } else {
                names::sanitise(&collision.tools.first().map(|(_, t)| t.clone()).unwrap_or_default())
            };
            self.report(
                &pointer,
                "visible-name-collision",
                Severity::Error,
                "names (M1): one name, one definition (P6.2)",
                format!("{} have one visible name, `{shown}`", tools.join(" and ")),
                "calls reach the first listed only",
            );
        }
        let names_of: Vec<(&ServerTools<'_>, String)> =
            servers.iter().filter_map(|s| s.server.map(|name| (s, names::sanitise(name)))).collect();
        for (number, (_, one)) in names_of.iter().enumerate() {
            for (server, other) in names_of.iter().skip(number + 1) {
                if names::can_clash(one, other) {
                    self.report(
                        &server.pointer.clone(),
                        "server-names-ambiguous",
                        Severity::Warning,
                        "names (B2)",
                        format!("servers `{one}` and `{other}`: a name can be read as a tool of either"),
                        "removing one server's tools by prefix removes the other's too",
                    );
                }
            }
        }
        for (server, name) in &names_of {
            if !names::is_self_delimiting(name) {
                self.report(
                    &server.pointer.clone(),
                    "server-name-not-delimiting",
                    Severity::Warning,
                    "names (B2)",
                    format!("the server name `{name}` cannot be read back from a visible name"),
                    "rules and hooks that split at the first `__` see another server",
                );
            }
        }
        // Bare names offered twice by different servers are fine when qualified, but not in an unprefixed catalogue.
        let mut bare: BTreeSet<&str> = BTreeSet::new();
        for (server, name) in &all {
            if !server.is_empty() && !bare.insert(name) {
                self.report(
                    &pointer,
                    "bare-name-shared",
                    Severity::Note,
                    "names (M1): names are qualified by the server",
                    format!(
                        "`{name}` is offered by more than one server; qualified, each call reaches its own"
                    ),
                    "an unprefixed catalogue must be refused or made unique",
                );
            }
        }
    }
}

/// The `x-mcp-header` annotations of an input schema that can be reached through `properties`: pointer, value, property.
pub fn header_annotations(schema: &Map<String, Value>) -> Vec<(String, &Value, &Map<String, Value>)> {
    let mut found = Vec::new();
    let mut todo = vec![(String::new(), schema, 0usize)];
    while let Some((at, schema, deep)) = todo.pop() {
        for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let Some(property) = property.as_object() else { continue };
            let at = format!("{at}/properties/{}", escaped(key));
            if let Some(header) = property.get("x-mcp-header") {
                found.push((format!("{at}/x-mcp-header"), header, property));
            }
            if deep < DEEPEST {
                todo.push((at, property, deep + 1));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Whether a text is an HTTP token (RFC 9110), and so can name a header.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

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

const DEFINITION: &str = "server features, tools, definition";
const NAMES: &str = "server features, tools: names are 1 to 128 of [A-Za-z0-9_.-], unique in a server";
const DIALECT: &str = "server features, tools: schemas are JSON Schema (default 2020-12)";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(tools: &Value) -> Vec<String> {
        let tools = tools.as_array().expect("an array");
        let server = ServerTools { server: Some("s"), pointer: "/tools".into(), tools };
        lint(&[server]).into_iter().map(|(_, finding)| finding.id).collect()
    }

    #[test]
    fn a_clean_definition_has_no_findings() {
        let clean = json!([{"name": "a", "description": "d", "inputSchema": {"type": "object",
            "properties": {"p": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["p"]}}]);
        assert_eq!(ids(&clean), Vec::<String>::new());
    }

    #[test]
    fn each_fault_is_found_where_it_is() {
        let with = |schema: Value| ids(&json!([{"name": "x", "description": "d", "inputSchema": schema}]));
        assert_eq!(with(json!({"properties": {}})), ["input-schema-type-missing"]);
        assert_eq!(with(Value::Null), ["input-schema-not-an-object"]);
        assert_eq!(with(json!({"type": "object", "oneOf": []}))[0], "schema-alternative-at-top");
        assert_eq!(
            with(json!({"type": "object", "properties": {"c": {"type": "strng"}}})),
            ["schema-type-unknown"]
        );
        assert_eq!(with(json!({"type": "object", "properties": {"a b$": {}}})), ["property-name"]);
        assert_eq!(with(json!({"type": "object", "minProperties": "x"})), ["schema-invalid"]);
        assert_eq!(
            with(json!({"type": "object", "properties": {"r": {"$ref": "#/$defs/R"}}, "$defs": {"R": {}}})),
            ["schema-ref"]
        );
        assert_eq!(
            with(json!({"type": "object", "properties": {"r": {"$ref": "#/$defs/Q"}}})),
            ["schema-ref-unresolved"]
        );
        assert_eq!(
            with(json!({"type": "object", "properties": {"r": {"type": "number", "x-mcp-header": "A"}}})),
            ["header-annotation-invalid"]
        );
    }

    #[test]
    fn lengths_are_those_of_the_visible_name() {
        for (length, expected) in [
            (57, None),
            (64, None),
            (65, Some("visible-name-not-portable")),
            (128, Some("visible-name-not-portable")),
            (129, Some("visible-name-too-long")),
        ] {
            assert_eq!(visible_length("n", length).map(|f| f.id).as_deref(), expected, "{length}");
        }
    }
}
