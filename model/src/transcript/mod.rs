//! Recorded conversations: reading them, and the pairing of calls with results over the whole of what was sent
//! (Loop 3.4; the findings carry the names of the field reports).
//!
//! [`message::pairing_faults`](crate::message::pairing_faults) judges one request of a run; here a record is judged
//! that may have been cut, compacted, merged or written while the answer was still coming in, with the place of each
//! fault.

mod pairing;
mod read;

pub use pairing::{Fault, FaultKind, faults};
pub use read::{Form, Transcript, TranscriptError, read};

use crate::message::Role;

/// A part of a message, as far as pairing reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text, an image, thinking: nothing that has to be paired.
    Other,
    /// A `tool_use` with its id; empty where it has none.
    Use(String),
    /// A `tool_result` with the id of its call.
    Result(String),
}

/// A message of one conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Its parts in order, each with where it stands.
    pub parts: Vec<(Part, Spot)>,
    /// Where the message begins.
    pub at: Spot,
}

/// Where something stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// The position in the list of messages, from 0.
    Message(usize),
    /// The line of a JSON Lines file, from 1.
    Line(usize),
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message(index) => write!(f, "message {index}"),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}
