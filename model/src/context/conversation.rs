//! A conversation: the requests that a session sends, built element by element, with the ledger kept beside them.
//!
//! Rule of the whole module (context-cost 10, invariant 1): the conversation only grows at its end. The exceptions are
//! events that say so: [`Conversation::list_changed`] with definitions upfront, and [`Conversation::compact`].

use super::cache::{Block, Breakpoint, Lifetime};
use super::compaction::{Invoked, Reattached, reattach};
use super::cut;
use super::definition::{Definition, sort_for_sending};
use super::ledger::{Ledger, Part};
use super::listing::Line;
use super::loading::Loading;
use super::request::{Layer, Request, compact};
use super::search::search;
use super::tokens::Counter;
use crate::profile::context::{ContextParameters, DeferredWire};
use serde_json::{Value, json};

const SEARCH_TOOL: &str = "ToolSearch";
const PLACEHOLDER: &str = "DeferredToolPlaceholder";
// Our own wording: the harness's headings are about as long (context-cost 2.4).
const NAMES_HEADING: &str = "These tools can be loaded with ToolSearch; only their names are known so far. Load a tool with the query \
     select:<name>[,<name>...] before it is called, so that its parameters are known to you:";
const INSTRUCTIONS_HEADING: &str = "Instructions of MCP servers:";
const SKILLS_HEADING: &str = "Skills that can be invoked with the Skill tool:";

/// What a session starts with.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Built-in definitions and all servers' tools.
    pub definitions: Vec<Definition>,
    /// System blocks.
    pub system: Vec<String>,
    /// The text of CLAUDE.md and what it brings along; none where empty.
    pub claude_md: String,
    /// Server instructions: (server, text), uncut.
    pub instructions: Vec<(String, String)>,
    /// The skills listing.
    pub skills: Vec<Line>,
    /// The first prompt.
    pub prompt: String,
}

/// Whether a session's late information is a message of its own or part of a user message (context-cost 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A message with the role `system` (models of generation 5 and unknown ones).
    SystemMessage,
    /// Reminders inside the user message (generation 4).
    UserReminder,
}

/// A session's requests and their account.
pub struct Conversation<'a> {
    parameters: ContextParameters,
    loading: Loading,
    layout: Layout,
    counter: &'a dyn Counter,
    definitions: Vec<Definition>,
    request: Request,
    loaded: Vec<String>,
    invoked: Vec<Invoked>,
    ledger: Ledger,
}

impl<'a> Conversation<'a> {
    /// Starts a session. `announce` says whether names are announced although definitions stand upfront
    /// ([`super::loading::Decision::names_announced_too`]).
    pub fn start(
        mut start: Start,
        loading: Loading,
        announce: bool,
        layout: Layout,
        parameters: &ContextParameters,
        counter: &'a dyn Counter,
    ) -> Self {
        let mut this = Self {
            parameters: *parameters,
            loading,
            layout,
            counter,
            definitions: std::mem::take(&mut start.definitions),
            request: Request::default(),
            loaded: Vec::new(),
            invoked: Vec::new(),
            ledger: Ledger::new(),
        };
        sort_for_sending(&mut this.definitions);
        this.place_tools();
        for text in &start.system {
            this.push(Layer::System, Part::System, "system", json!({"type": "text", "text": text}));
        }
        this.first_messages(&start, announce);
        this
    }

    fn deferred(&self, definition: &Definition) -> bool {
        self.loading == Loading::Deferred && !definition.always_load
    }

    // The tools layer, from nothing: definitions that stand upfront, what was loaded, the search tool.
    fn place_tools(&mut self) {
        let mut elements = Vec::new();
        for definition in &self.definitions {
            let name = definition.qualified();
            let part = if definition.server.is_some() { Part::McpTool } else { Part::BuiltinTool };
            if !self.deferred(definition) {
                elements.push((part, name, definition.wire(&self.parameters)));
            } else if self.loaded.contains(&name)
                || self.parameters.deferred_wire.value == DeferredWire::SentWithFlag
            {
                elements.push((Part::LoadedTool, name, definition.wire_loaded(&self.parameters)));
            }
        }
        if self.definitions.iter().any(|definition| self.deferred(definition)) {
            elements.push((Part::SearchTool, SEARCH_TOOL.to_owned(), search_tool()));
            if self.parameters.deferred_wire.value == DeferredWire::NotSent {
                elements.push((Part::SearchTool, PLACEHOLDER.to_owned(), placeholder()));
            }
        }
        for (part, label, element) in elements {
            self.push(Layer::Tools, part, &label, element);
        }
    }

    fn first_messages(&mut self, start: &Start, announce: bool) {
        if !start.claude_md.is_empty() {
            self.user(Part::ClaudeMd, "CLAUDE.md", vec![text_block(&start.claude_md)]);
        }
        let names: Vec<String> = self
            .definitions
            .iter()
            .filter(|definition| self.deferred(definition) || (announce && !definition.always_load))
            .map(Definition::qualified)
            .collect();
        if !names.is_empty() {
            self.announce(&names);
        }
        if !start.instructions.is_empty() {
            let (cap, suffix) = (self.parameters.mcp_text_cap.value, self.parameters.mcp_text_suffix.value);
            let mut text = INSTRUCTIONS_HEADING.to_owned();
            for (server, instructions) in &start.instructions {
                text.push_str(&format!("\n## {server}\n{}", cut::with_suffix(instructions, cap, suffix)));
            }
            self.information(Part::ServerInstructions, "instructions", &text);
        }
        if !start.skills.is_empty() {
            let mut text = SKILLS_HEADING.to_owned();
            for line in &start.skills {
                text.push('\n');
                text.push_str(&line.text);
            }
            self.information(Part::SkillListing, "skills", &text);
        }
        self.user(Part::Prompt, "prompt", vec![text_block(&start.prompt)]);
    }

    fn announce(&mut self, names: &[String]) {
        let text = format!("{NAMES_HEADING}\n{}", names.join("\n"));
        self.information(Part::DeferredNames, "names", &text);
    }

    fn information(&mut self, part: Part, label: &str, text: &str) {
        let message = match self.layout {
            Layout::SystemMessage => json!({"role": "system", "content": [text_block(text)]}),
            Layout::UserReminder => {
                let reminder = format!("<system-reminder>\n{text}\n</system-reminder>");
                json!({"role": "user", "content": [text_block(&reminder)]})
            }
        };
        self.push(Layer::Messages, part, label, message);
    }

    fn user(&mut self, part: Part, label: &str, content: Vec<Value>) {
        self.push(Layer::Messages, part, label, json!({"role": "user", "content": content}));
    }

    fn push(&mut self, layer: Layer, part: Part, label: &str, element: Value) {
        self.ledger.add(layer, part, label, &element, self.counter);
        match layer {
            Layer::Tools => self.request.tools.push(element),
            Layer::System => self.request.system.push(element),
            Layer::Messages => self.request.messages.push(element),
        }
    }

    /// The request that would be sent now; the ledger notes it.
    pub fn send(&mut self) -> Request {
        self.ledger.request();
        self.request.clone()
    }

    /// The account.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The assistant replies with these blocks.
    pub fn reply(&mut self, content: Vec<Value>) {
        self.push(Layer::Messages, Part::Reply, "reply", json!({"role": "assistant", "content": content}));
    }

    /// The user, or the harness in the user's name, answers with these blocks.
    pub fn answer(&mut self, content: Vec<Value>) {
        self.user(Part::ToolResult, "result", content);
    }

    /// The assistant searches: call, references, and the found definitions in `tools` of the next request. Loading a
    /// tool again repeats the reference and adds no definition.
    pub fn search(&mut self, call_id: &str, query: &str) -> Vec<String> {
        let input =
            json!({"type": "tool_use", "id": call_id, "name": SEARCH_TOOL, "input": {"query": query}});
        self.push(Layer::Messages, Part::Reply, "search", json!({"role": "assistant", "content": [input]}));
        let found: Vec<String> =
            search(&self.definitions, query, self.parameters.search_results_default.value)
                .tools
                .iter()
                .map(|definition| definition.qualified())
                .collect();
        let content = if found.is_empty() {
            json!("Nothing found")
        } else {
            found.iter().map(|name| json!({"type": "tool_reference", "tool_name": name})).collect()
        };
        let mut answer = vec![json!({"type": "tool_result", "tool_use_id": call_id, "content": content})];
        if !found.is_empty() {
            answer.push(text_block("Tool loaded."));
        }
        self.user(Part::SearchResult, "search", answer);
        let new: Vec<String> = found.iter().filter(|name| !self.loaded.contains(name)).cloned().collect();
        let wires: Vec<(String, Value)> = self
            .definitions
            .iter()
            .filter(|definition| self.deferred(definition) && new.contains(&definition.qualified()))
            .map(|definition| (definition.qualified(), definition.wire_loaded(&self.parameters)))
            .collect();
        for (name, wire) in wires {
            if self.parameters.deferred_wire.value == DeferredWire::NotSent {
                self.push(Layer::Tools, Part::LoadedTool, &name, wire);
            }
            self.loaded.push(name);
        }
        found
    }

    /// A skill is invoked by the model: its body enters as a block beside the result; tools and system stay.
    pub fn invoke_skill(&mut self, call_id: &str, skill: &str, body: &str) {
        let call = json!({"type": "tool_use", "id": call_id, "name": "Skill", "input": {"skill": skill}});
        self.push(Layer::Messages, Part::Reply, "skill", json!({"role": "assistant", "content": [call]}));
        let result = json!({"type": "tool_result", "tool_use_id": call_id, "content": format!("Launching skill: {skill}")});
        self.user(Part::SkillBody, skill, vec![result, text_block(body)]);
        self.invoked.push(Invoked { name: skill.to_owned(), text: body.to_owned() });
    }

    /// A server's list changes: `added` tools come. Deferred, their names are appended; upfront, their definitions are
    /// put among the others, before system and messages.
    pub fn list_changed(&mut self, added: Vec<Definition>) {
        let names: Vec<String> =
            added.iter().filter(|definition| self.deferred(definition)).map(Definition::qualified).collect();
        let upfront = added.iter().any(|definition| !self.deferred(definition));
        self.definitions.extend(added);
        sort_for_sending(&mut self.definitions);
        if upfront || self.parameters.deferred_wire.value == DeferredWire::SentWithFlag {
            self.ledger.remove(|entry| entry.layer == Layer::Tools);
            self.request.tools.clear();
            self.place_tools();
        }
        if !names.is_empty() {
            self.announce(&names);
        }
    }

    /// Compaction: the messages are replaced by a summary, what stands in every session, and the skills that come back.
    pub fn compact(&mut self, summary: &str, claude_md: &str) -> Vec<Reattached> {
        self.ledger.remove(|entry| entry.layer == Layer::Messages);
        self.request.messages.clear();
        self.user(Part::Summary, "summary", vec![text_block(summary)]);
        if !claude_md.is_empty() {
            self.user(Part::ClaudeMd, "CLAUDE.md", vec![text_block(claude_md)]);
        }
        let back = reattach(&self.invoked, &self.parameters);
        for skill in &back {
            self.information(Part::SkillBody, &skill.name, &skill.text);
        }
        let names: Vec<String> = self
            .definitions
            .iter()
            .filter(|definition| self.deferred(definition))
            .map(Definition::qualified)
            .collect();
        if !names.is_empty() {
            self.announce(&names);
        }
        back
    }

    /// The breakpoints of the request that stands, as indices into [`rendered`]: two on the last system blocks, one on
    /// the last block of the last message (context-cost 5.2).
    pub fn breakpoints(&self, lifetime: Lifetime) -> Vec<Breakpoint> {
        let tools = self.request.tools.iter().filter(|tool| !is_deferred(tool)).count();
        let system = self.request.system.len();
        let all = rendered(&self.request, self.counter).len();
        let mut points: Vec<usize> = (0..system)
            .rev()
            .take(self.parameters.system_breakpoints.value)
            .map(|index| tools + index)
            .collect();
        if all > tools + system && self.parameters.message_breakpoints.value > 0 {
            points.push(all - 1);
        }
        points.sort_unstable();
        points.into_iter().map(|block| Breakpoint { block, lifetime }).collect()
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn search_tool() -> Value {
    json!({
        "name": SEARCH_TOOL,
        "description": "Finds tools whose definitions are not loaded yet and loads them. Queries: select:<name>,... for \
            named tools; mcp__<server> for a server's tools; words to look for, with + for words that the name must hold.",
        "input_schema": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "max_results": {"type": "number", "default": 5}},
            "required": ["query"]
        }
    })
}

fn placeholder() -> Value {
    json!({
        "name": PLACEHOLDER, "description": "Stands for tools that can be loaded.",
        "input_schema": {"type": "object", "properties": {}}, "defer_loading": true
    })
}

fn is_deferred(tool: &Value) -> bool {
    tool.get("defer_loading").and_then(Value::as_bool).unwrap_or(false)
}

/// The rendered prompt R (context-cost 2.3): tools that are not deferred, then system, then the blocks of the messages,
/// with each reference replaced by the definition that it names. On R the prefix property of proposition 3.8 part 4 is
/// stated: the raw JSON of `tools` changes in the middle after a search, what the model reads does not.
pub fn rendered(request: &Request, counter: &dyn Counter) -> Vec<Block> {
    let block = |text: String| Block { tokens: counter.count(&text), text };
    let mut blocks: Vec<Block> =
        request.tools.iter().filter(|tool| !is_deferred(tool)).map(|tool| block(compact(tool))).collect();
    blocks.extend(request.system.iter().map(|element| block(compact(element))));
    for message in &request.messages {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        match message.get("content") {
            Some(Value::Array(content)) => {
                for element in content {
                    blocks.push(block(format!("{role}: {}", compact(&expanded(element, &request.tools)))));
                }
            }
            // A bare string is one text block (normal form of context-cost 1).
            Some(Value::String(text)) => {
                blocks.push(block(format!("{role}: {}", compact(&text_block(text)))))
            }
            _ => blocks.push(block(compact(message))),
        }
    }
    blocks
}

// A tool result with its references replaced by definitions.
fn expanded(element: &Value, tools: &[Value]) -> Value {
    let mut element = element.clone();
    if let Some(content) = element.get_mut("content").and_then(Value::as_array_mut) {
        for part in content {
            let Some(name) = part.get("tool_name").and_then(Value::as_str) else { continue };
            if let Some(tool) =
                tools.iter().find(|tool| tool.get("name").and_then(Value::as_str) == Some(name))
            {
                *part = tool.clone();
            }
        }
    }
    element
}

/// Whether the rendered prompt of `earlier` is a prefix of that of `later`; else the index of the first difference.
///
/// # Errors
/// The index of the first block that differs or is missing.
pub fn extends(earlier: &[Block], later: &[Block]) -> Result<(), usize> {
    match earlier.iter().zip(later).position(|(a, b)| a.text != b.text) {
        Some(index) => Err(index),
        None if later.len() < earlier.len() => Err(later.len()),
        None => Ok(()),
    }
}
