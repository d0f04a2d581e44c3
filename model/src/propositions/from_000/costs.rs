//! What the parts of 3.8 share: sessions with tools of given sizes, sent by the model's own conversation.

use crate::context::cache::Block;
use crate::context::conversation::{Conversation, Layout, Start, rendered};
use crate::context::definition::Definition;
use crate::context::loading::Loading;
use crate::context::request::compact;
use crate::context::tokens::Counter;
use crate::profile::context::ContextParameters;
use serde_json::json;

/// Counts bytes: the statements hold in any unit in which a text takes the sum of its parts.
#[derive(Clone, Copy, Debug)]
pub(in crate::propositions) struct Bytes;

impl Counter for Bytes {
    fn name(&self) -> String {
        "bytes".to_owned()
    }

    fn known_error(&self) -> &'static str {
        "none: bytes are what is sent"
    }

    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

/// A tool of a server `s` whose description has `size` characters.
pub(in crate::propositions) fn tool(number: usize, size: usize) -> Definition {
    Definition::from_listed(
        "s",
        &json!({
            "name": format!("t{number:03}"),
            "description": "d".repeat(size),
            "inputSchema": {"type": "object"},
        }),
    )
}

/// A session with these tools, loaded in a way; the first prompt stands, nothing is sent yet.
pub(in crate::propositions) fn session<'a>(
    tools: &[Definition],
    loading: Loading,
    parameters: &ContextParameters,
) -> Conversation<'a> {
    let start = Start {
        definitions: tools.to_vec(),
        system: vec!["You are a harness.".to_owned()],
        prompt: "Go on.".to_owned(),
        ..Start::default()
    };
    Conversation::start(start, loading, false, Layout::SystemMessage, parameters, &Bytes)
}

/// The rendered prompt of what stands now.
pub(in crate::propositions) fn prompt(session: &mut Conversation<'_>) -> Vec<Block> {
    rendered(&session.send(), &Bytes)
}

/// The bytes of a rendered prompt.
pub(in crate::propositions) fn size(blocks: &[Block]) -> u64 {
    blocks.iter().map(|block| block.tokens).sum()
}

/// d: the bytes of a definition as it is sent upfront.
pub(in crate::propositions) fn definition(tool: &Definition, parameters: &ContextParameters) -> u64 {
    compact(&tool.wire(parameters)).len() as u64
}

/// The bytes of a definition as it stands in a prompt after it was loaded: the mark of deferral is part of it.
pub(in crate::propositions) fn loaded(tool: &Definition, parameters: &ContextParameters) -> u64 {
    compact(&tool.wire_loaded(parameters)).len() as u64
}

/// m: the bytes of a name in the list of deferred tools, with the end of its line as JSON writes it.
pub(in crate::propositions) fn name(tool: &Definition) -> u64 {
    tool.qualified().len() as u64 + 2
}

/// The lists of `n` description sizes, each out of a short and a long one.
pub(in crate::propositions) fn sizes(n: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1u32 << n.min(16)).map(move |code| (0..n).map(|k| if code >> k & 1 == 1 { 90 } else { 3 }).collect())
}
