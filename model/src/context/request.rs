//! The Messages-API request that the harness would send, and its bytes.

use serde_json::Value;

/// The layers of a request, in the order in which the API reads them (Messages API documentation, prompt caching).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Tool definitions.
    Tools,
    /// System blocks.
    System,
    /// The conversation.
    Messages,
}

impl Layer {
    /// All of them, in prefix order.
    pub const ALL: [Self; 3] = [Self::Tools, Self::System, Self::Messages];

    /// The key of the layer in the request's JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::System => "system",
            Self::Messages => "messages",
        }
    }
}

/// One request, as JSON values in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `tools`.
    pub tools: Vec<Value>,
    /// `system`.
    pub system: Vec<Value>,
    /// `messages`.
    pub messages: Vec<Value>,
}

/// Compact JSON of a value. `serde_json`'s own `Display` cannot fail on a `Value`.
pub fn compact(value: &Value) -> String {
    value.to_string()
}

impl Request {
    /// The elements of one layer.
    pub fn layer(&self, layer: Layer) -> &[Value] {
        match layer {
            Layer::Tools => &self.tools,
            Layer::System => &self.system,
            Layer::Messages => &self.messages,
        }
    }

    /// The request's body: compact JSON, layers in prefix order, keys in the order in which they were built.
    pub fn serialise(&self) -> String {
        let mut out = String::from("{");
        for (index, layer) in Layer::ALL.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push('"');
            out.push_str(layer.word());
            out.push_str("\":[");
            for (place, element) in self.layer(layer).iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(&compact(element));
            }
            out.push(']');
        }
        out.push('}');
        out
    }
}
