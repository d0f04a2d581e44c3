//! The account of what each request carries: kept entry by entry as texts enter and leave, so that no request is
//! counted twice. It is checked against a recount of the serialised request ([`recount`]), never against itself.

use super::request::{Layer, Request, compact};
use super::tokens::Counter;
use serde_json::Value;

/// What a text is, in the lines of a cost report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A built-in tool's definition.
    BuiltinTool,
    /// An MCP tool's definition that stands upfront.
    McpTool,
    /// A definition that was loaded by a search.
    LoadedTool,
    /// The search tool and the placeholder for deferred ones.
    SearchTool,
    /// A system block.
    System,
    /// CLAUDE.md and rules.
    ClaudeMd,
    /// Names of deferred tools.
    DeferredNames,
    /// Instructions of an MCP server.
    ServerInstructions,
    /// The skills listing.
    SkillListing,
    /// The body of an invoked skill.
    SkillBody,
    /// Other information of the session (environment, agents, date).
    SessionInfo,
    /// A prompt of the user.
    Prompt,
    /// A reply of the assistant.
    Reply,
    /// A tool's result.
    ToolResult,
    /// The result of a tool search.
    SearchResult,
    /// A summary that compaction left.
    Summary,
}

/// An amount of context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Amount {
    /// UTF-8 bytes of compact JSON.
    pub bytes: u64,
    /// Tokens, by the counter that the report names.
    pub tokens: u64,
}

impl std::ops::Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, tokens: self.tokens + other.tokens }
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |sum, amount| sum + amount)
    }
}

/// One line of the account: one element of a layer.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The layer that it stands in.
    pub layer: Layer,
    /// What it is.
    pub part: Part,
    /// Which one: a tool's name, a skill's name, the number of a turn.
    pub label: String,
    /// What it takes.
    pub amount: Amount,
}

/// What one request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RequestRow {
    /// The tools layer.
    pub tools: Amount,
    /// The system layer.
    pub system: Amount,
    /// The messages layer.
    pub messages: Amount,
}

impl RequestRow {
    /// All layers together.
    pub fn total(&self) -> Amount {
        self.tools + self.system + self.messages
    }

    fn layer_mut(&mut self, layer: Layer) -> &mut Amount {
        match layer {
            Layer::Tools => &mut self.tools,
            Layer::System => &mut self.system,
            Layer::Messages => &mut self.messages,
        }
    }

    /// One layer.
    pub fn layer(&self, layer: Layer) -> Amount {
        match layer {
            Layer::Tools => self.tools,
            Layer::System => self.system,
            Layer::Messages => self.messages,
        }
    }
}

/// The account: the entries that stand now, and a row for each request that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: Vec<Entry>,
    standing: RequestRow,
    rows: Vec<RequestRow>,
}

impl Ledger {
    /// An empty account.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one element of a layer and says what it takes.
    pub fn add(
        &mut self,
        layer: Layer,
        part: Part,
        label: &str,
        element: &Value,
        counter: &dyn Counter,
    ) -> Amount {
        let text = compact(element);
        let amount = Amount { bytes: text.len() as u64, tokens: counter.count(&text) };
        *self.standing.layer_mut(layer) += amount;
        self.entries.push(Entry { layer, part, label: label.to_owned(), amount });
        amount
    }

    /// Takes out every entry for which `gone` holds (compaction, a tool that leaves the pool).
    pub fn remove(&mut self, mut gone: impl FnMut(&Entry) -> bool) {
        self.entries.retain(|entry| !gone(entry));
        self.standing = RequestRow::default();
        for entry in &self.entries {
            *self.standing.layer_mut(entry.layer) += entry.amount;
        }
    }

    /// A request is sent with what stands now.
    pub fn request(&mut self) -> RequestRow {
        self.rows.push(self.standing);
        self.standing
    }

    /// What stands now.
    pub fn standing(&self) -> RequestRow {
        self.standing
    }

    /// The entries that stand now, in the order in which they came.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A row for each request, in order.
    pub fn rows(&self) -> &[RequestRow] {
        &self.rows
    }

    /// What the entries of one kind take now.
    pub fn part(&self, part: Part) -> Amount {
        self.entries.iter().filter(|entry| entry.part == part).map(|entry| entry.amount).sum()
    }

    /// The bytes of the whole body: the entries, the commas between elements, and the frame of the JSON object.
    pub fn body_bytes(&self) -> u64 {
        let mut bytes = 2 + Layer::ALL.len() as u64 - 1;
        for layer in Layer::ALL {
            let elements = self.entries.iter().filter(|entry| entry.layer == layer).count() as u64;
            // `"name":[` and `]`, and a comma between neighbours.
            bytes += layer.word().len() as u64 + 5 + elements.saturating_sub(1);
        }
        bytes + self.standing.total().bytes
    }
}

/// Counts a serialised request afresh: parses the bytes and measures every element of every layer.
///
/// # Errors
/// When `body` is not a JSON object with the three layers.
pub fn recount(body: &str, counter: &dyn Counter) -> Result<RequestRow, RecountError> {
    let parsed: Value = serde_json::from_str(body).map_err(|error| RecountError::Json(error.to_string()))?;
    let mut row = RequestRow::default();
    for layer in Layer::ALL {
        let elements =
            parsed.get(layer.word()).and_then(Value::as_array).ok_or(RecountError::Layer(layer.word()))?;
        for element in elements {
            let text = compact(element);
            *row.layer_mut(layer) += Amount { bytes: text.len() as u64, tokens: counter.count(&text) };
        }
    }
    Ok(row)
}

/// Why a body could not be recounted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecountError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// A layer is missing.
    #[error("no array `{0}`")]
    Layer(&'static str),
}

/// Compares an account with the bytes that were really built.
///
/// # Errors
/// The first difference, in words.
pub fn agree(ledger: &Ledger, request: &Request, counter: &dyn Counter) -> Result<(), String> {
    let body = request.serialise();
    if ledger.body_bytes() != body.len() as u64 {
        return Err(format!("the ledger says {} bytes, the body has {}", ledger.body_bytes(), body.len()));
    }
    let counted = recount(&body, counter).map_err(|error| error.to_string())?;
    if counted != ledger.standing() {
        return Err(format!("the ledger says {:?}, a recount says {counted:?}", ledger.standing()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tokens::Characters;
    use serde_json::json;

    #[test]
    fn the_account_equals_a_recount_of_the_bytes_and_a_missing_entry_is_caught() {
        let counter = Characters::FOUR;
        let mut request = Request::default();
        let mut ledger = Ledger::new();
        agree(&ledger, &request, &counter).unwrap();
        for index in 0..3 {
            let tool = json!({"name": format!("t{index}"), "description": "what it does — \"quoted\"", "input_schema": {}});
            ledger.add(Layer::Tools, Part::McpTool, "t", &tool, &counter);
            request.tools.push(tool);
            agree(&ledger, &request, &counter).unwrap();
        }
        let message = json!({"role": "user", "content": [{"type": "text", "text": "日本語\n"}]});
        request.messages.push(message.clone());
        assert!(agree(&ledger, &request, &counter).is_err(), "an element without an entry must be seen");
        ledger.add(Layer::Messages, Part::Prompt, "1", &message, &counter);
        agree(&ledger, &request, &counter).unwrap();
        ledger.remove(|entry| entry.layer == Layer::Messages);
        request.messages.clear();
        agree(&ledger, &request, &counter).unwrap();
    }

    #[test]
    fn parts_add_up_to_the_request() {
        let counter = Characters::FOUR;
        let mut ledger = Ledger::new();
        ledger.add(Layer::Tools, Part::McpTool, "a", &json!({"name": "a"}), &counter);
        ledger.add(Layer::Messages, Part::DeferredNames, "s", &json!("mcp__s__a"), &counter);
        let row = ledger.request();
        let parts = ledger.part(Part::McpTool) + ledger.part(Part::DeferredNames);
        assert_eq!(row.total(), parts);
        assert_eq!(ledger.rows(), &[row]);
    }
}
