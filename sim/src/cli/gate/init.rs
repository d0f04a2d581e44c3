//! `windtunnel gate test --init`: a draft of expectations for the settings of a folder.

use crate::cli::{CliError, Io};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windtunnel_model::gate::diff::decide;
use windtunnel_model::gate::examples::{Example, caught, near_miss, plain_input};
use windtunnel_model::gate::pipeline::{Outcome, Session};
use windtunnel_model::gate::tools::{self, McpTool};
use windtunnel_model::hooks::{Event, Matcher};

/// Prints the draft: one case for the rules (for each rule a call that it catches and a near miss that it does not, with
/// what the gate says now), and one for each command on PreToolUse (a call on which it blocks, and one that it never
/// sees). People look it over and keep it. The folder is taken as trusted, and the draft says so. Rules for which no
/// call is drafted are named on stderr.
///
/// # Errors
/// When stdout is gone.
pub fn print(session: &Session, io: &mut Io<'_>) -> Result<(), CliError> {
    let mut session = session.clone();
    let calls = calls_of_rules(&session);
    // Servers are not asked: tools that rules name are taken to be offered, and the draft names them.
    for (_, example) in calls.iter().filter(|(_, example)| example.tool.starts_with("mcp__")) {
        session.policy.tools.mcp.insert(example.tool.clone(), McpTool::default());
    }
    let labels = labels(&session);
    let says = |blocks: Option<&str>| -> Map<String, Value> {
        let told = |label: &String| {
            (label.clone(), json!({"exit": if Some(label.as_str()) == blocks { 2 } else { 0 }}))
        };
        labels.iter().map(told).collect()
    };
    let mut rules = Draft::new("rules");
    let mut drafted = BTreeSet::new();
    for (rule, example) in &calls {
        if !session.policy.tools.offers(&example.tool) {
            continue;
        }
        if rule.kind == "caught" {
            drafted.insert(rule.index);
        }
        rules.add(&rule.name(), example, decide(&session, &example.tool, &example.input));
    }
    let mut cases = vec![rules.finish(says(None))];
    for (label, matcher) in guards(&session) {
        let mut hook = Draft::new(&format!("hook {label}"));
        for (name, tool) in [("seen", tool_where(&matcher, true)), ("not-seen", tool_where(&matcher, false))]
        {
            let Some(tool) = tool else { continue };
            let example = Example { tool: tool.to_owned(), input: plain_input(tool) };
            let seen = name == "seen";
            let outcome = decide(&session, tool, &example.input);
            // What a rule removes is gone before any hook is asked.
            let outcome = if seen && outcome != Outcome::Gone { Outcome::Blocked } else { outcome };
            hook.add(name, &example, outcome);
        }
        cases.push(hook.finish(says(Some(&label))));
    }
    for index in 0..session.policy.rules.patterns.len() {
        if !drafted.contains(&index) {
            let rule = session.rule_text(u32::try_from(index).unwrap_or(u32::MAX));
            writeln!(
                io.stderr,
                "note: no call is drafted for the {rule}: it catches none that can be made here"
            )?;
        }
    }
    serde_json::to_writer_pretty(&mut *io.stdout, &cases)?;
    writeln!(io.stdout)?;
    Ok(())
}

/// A rule and which of its calls this is.
struct OfRule {
    index: usize,
    behaviour: &'static str,
    kind: &'static str,
}

impl OfRule {
    fn name(&self) -> String {
        format!("{}-{}-{}", self.behaviour, self.index, self.kind)
    }
}

fn calls_of_rules(session: &Session) -> Vec<(OfRule, Example)> {
    let mut calls: Vec<(OfRule, Example)> = Vec::new();
    for (index, (behaviour, pattern)) in session.policy.rules.patterns.iter().enumerate() {
        let examples = [("caught", caught(pattern, &session.policy.tools)), ("near", near_miss(pattern))];
        for (kind, example) in examples {
            let Some(example) = example else { continue };
            let known = calls.iter().any(|(_, other)| *other == example);
            if kind == "caught" || !known {
                calls.push((OfRule { index, behaviour: behaviour.word(), kind }, example));
            }
        }
    }
    calls
}

/// One case of the draft.
struct Draft {
    id: String,
    calls: Vec<Value>,
    expect: Map<String, Value>,
    servers: BTreeMap<String, BTreeSet<String>>,
}

impl Draft {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), calls: Vec::new(), expect: Map::new(), servers: BTreeMap::new() }
    }

    fn add(&mut self, id: &str, example: &Example, outcome: Outcome) {
        self.calls.push(json!([id, example.tool, example.input]));
        self.expect.insert(id.to_owned(), outcome.word().into());
        if let Some((server, tool)) =
            example.tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"))
        {
            self.servers.entry(server.to_owned()).or_default().insert(tool.to_owned());
        }
    }

    fn finish(self, hooks_say: Map<String, Value>) -> Value {
        let mut case = Map::new();
        case.insert("id".to_owned(), self.id.into());
        case.insert("trusted".to_owned(), true.into());
        if !self.servers.is_empty() {
            case.insert("mcp".to_owned(), json!(self.servers));
        }
        if !hooks_say.is_empty() {
            case.insert("hooks_say".to_owned(), hooks_say.into());
        }
        case.insert("calls".to_owned(), self.calls.into());
        case.insert("expect".to_owned(), self.expect.into());
        Value::Object(case)
    }
}

/// The labels of all handlers that the gate asks.
fn labels(session: &Session) -> BTreeSet<String> {
    let sources = session.hooks.sources.iter();
    let groups = sources.flat_map(|source| {
        [Event::PreToolUse, Event::PermissionRequest]
            .into_iter()
            .flat_map(|event| source.config.groups(event))
    });
    groups.flat_map(|group| &group.handlers).map(windtunnel_model::hooks::Handler::label).collect()
}

/// The handlers of PreToolUse that may refuse, with their matchers; those with a condition of their own are left out,
/// since no call can be made up that holds it.
fn guards(session: &Session) -> Vec<(String, Matcher)> {
    let mut guards: Vec<(String, Matcher)> = Vec::new();
    for source in &session.hooks.sources {
        for group in source.config.groups(Event::PreToolUse) {
            for handler in group.handlers.iter().filter(|h| h.condition.is_none() && !h.is_async()) {
                let guard = (handler.label(), group.matcher.clone());
                if !guards
                    .iter()
                    .any(|(label, matcher)| *label == guard.0 && matcher.text() == guard.1.text())
                {
                    guards.push(guard);
                }
            }
        }
    }
    guards
}

/// A built-in tool that a matcher matches, or does not.
fn tool_where(matcher: &Matcher, matches: bool) -> Option<&'static str> {
    ["Bash", "Write", "Read", "WebFetch"]
        .into_iter()
        .chain(tools::builtin_names())
        .filter(|tool| tools::validate(tool, &plain_input(tool), false).is_ok())
        .filter(|tool| !matches!(*tool, "Edit" | "NotebookEdit" | "TaskStop" | "ToolSearch"))
        .find(|tool| matcher.matches_tool(tool) == matches)
}
