//! The faults in the pairing of one conversation.

use super::{Message, Part, Spot};
use crate::finding::{Finding, Severity};
use crate::message::Role;
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong. The names are those of the field reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A call has no result, and the conversation went on.
    MissingResult,
    /// A result whose call is not in the conversation.
    OrphanResult,
    /// An id that an earlier call of the conversation carries.
    DupUse,
    /// A second result for one call.
    DupResult,
    /// A result that is not in the message right after the calls, though before the assistant spoke again.
    ResultsSplit,
    /// A result that came when the assistant had already spoken again.
    ResultLate,
    /// A call or a result without an id.
    EmptyId,
    /// A call of the last message: it waits for its result. Legal in a record, not in a request.
    Open,
}

impl FaultKind {
    /// All, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::MissingResult,
        Self::OrphanResult,
        Self::DupUse,
        Self::DupResult,
        Self::ResultsSplit,
        Self::ResultLate,
        Self::EmptyId,
        Self::Open,
    ];

    /// The name of the finding.
    pub fn id(self) -> &'static str {
        match self {
            Self::MissingResult => "MISSING_RESULT",
            Self::OrphanResult => "ORPHAN_RESULT",
            Self::DupUse => "DUP_USE",
            Self::DupResult => "DUP_RESULT",
            Self::ResultsSplit => "RESULTS_SPLIT",
            Self::ResultLate => "RESULT_LATE",
            Self::EmptyId => "EMPTY_ID",
            Self::Open => "OPEN",
        }
    }
}

/// One fault, with where it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The id of the call; empty where it has none.
    pub id: String,
    /// Where: the message that should have held the result, or the part at fault.
    pub at: Spot,
}

impl Fault {
    /// The fault as a finding, without a place in a file.
    pub fn finding(&self) -> Finding {
        let Self { kind, id, at } = self;
        let (severity, message, remedy) = match kind {
            FaultKind::MissingResult => (
                Severity::Error,
                format!("call {id} has no result at {at}"),
                "give it an error result there, before any text, or drop the call",
            ),
            FaultKind::OrphanResult => (
                Severity::Error,
                format!("the result at {at} answers {id}, and no call before it carries that id"),
                "drop the result, or keep its call: pairs are kept or dropped together",
            ),
            FaultKind::DupUse => (
                Severity::Error,
                format!("the call at {at} carries the id {id} of an earlier call"),
                "give each call an id of its own",
            ),
            FaultKind::DupResult => (
                Severity::Error,
                format!("the result at {at} is the second one for call {id}"),
                "keep one result a call",
            ),
            FaultKind::ResultsSplit => (
                Severity::Error,
                format!("the result of {id} at {at} is not in the message right after the calls"),
                "put all results of one assistant message into the next message, before any text",
            ),
            FaultKind::ResultLate => (
                Severity::Warning,
                format!("the result of {id} at {at} came after the assistant had spoken again"),
                "send the results before the model is called again",
            ),
            FaultKind::EmptyId => (
                Severity::Error,
                format!("the call at {at} has no id"),
                "refuse a call without an id at the door",
            ),
            FaultKind::Open => (
                Severity::Note,
                format!("call {id} at {at} waits for its result"),
                "legal where the record ends, not as the end of a request",
            ),
        };
        let why = "the Messages API refuses a request whose calls and results do not pair up (Loop 3.4)";
        Finding::new(kind.id(), severity, message, why).with_remedy(remedy)
    }
}

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Its result belongs in the next message.
    Next,
    /// The next message passed without it, at this spot; the assistant has not spoken since.
    Passed(Spot),
    /// The assistant has spoken since.
    Late(Spot),
    /// It has its result.
    Answered,
}

/// Every fault of a conversation, in the order of the places where they show.
///
/// ```
/// use windtunnel_model::transcript::{FaultKind, faults, read};
/// let text = r#"[{"role": "user", "content": "hi"},
///     {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]},
///     {"role": "user", "content": "and?"}]"#;
/// let transcript = read(text).unwrap();
/// let found = faults(&transcript.conversations[0]);
/// assert_eq!((found[0].kind, found[0].id.as_str()), (FaultKind::MissingResult, "t1"));
/// ```
pub fn faults(messages: &[Message]) -> Vec<Fault> {
    let mut found: Vec<Fault> = Vec::new();
    let mut calls: BTreeMap<&str, Waiting> = BTreeMap::new();
    for message in messages {
        let mut uses: BTreeSet<&str> = BTreeSet::new();
        let begins = message.role == Role::Assistant;
        for (part, at) in &message.parts {
            let mut note = |kind, id: &str| found.push(Fault { kind, id: id.to_owned(), at: *at });
            match part {
                Part::Other => {}
                Part::Use(id) | Part::Result(id) if id.is_empty() => note(FaultKind::EmptyId, id),
                Part::Use(id) => {
                    let (known, twice) = (calls.contains_key(id.as_str()), !uses.insert(id));
                    if known || twice {
                        note(FaultKind::DupUse, id);
                    }
                }
                Part::Result(id) => match calls.get_mut(id.as_str()) {
                    None => note(FaultKind::OrphanResult, id),
                    Some(waiting) => {
                        match waiting {
                            Waiting::Next => {}
                            Waiting::Passed(_) => note(FaultKind::ResultsSplit, id),
                            Waiting::Late(_) => note(FaultKind::ResultLate, id),
                            Waiting::Answered => note(FaultKind::DupResult, id),
                        }
                        *waiting = Waiting::Answered;
                    }
                },
            }
        }
        for waiting in calls.values_mut() {
            *waiting = match *waiting {
                Waiting::Next if begins => Waiting::Late(message.at),
                Waiting::Next => Waiting::Passed(message.at),
                Waiting::Passed(at) if begins => Waiting::Late(at),
                other => other,
            };
        }
        for id in uses {
            // An id used again begins a call of its own; the one before may have been left without a result.
            if let Some(Waiting::Passed(at) | Waiting::Late(at)) = calls.insert(id, Waiting::Next) {
                found.push(Fault { kind: FaultKind::MissingResult, id: id.to_owned(), at });
            }
        }
    }
    for (id, waiting) in calls {
        let fault = |kind, at| Fault { kind, id: id.to_owned(), at };
        match waiting {
            Waiting::Answered => {}
            Waiting::Next => {
                let last = messages.last().map_or(Spot::Message(0), |message| message.at);
                found.push(fault(FaultKind::Open, last));
            }
            Waiting::Passed(at) | Waiting::Late(at) => found.push(fault(FaultKind::MissingResult, at)),
        }
    }
    found.sort_by_key(|fault| fault.at);
    found
}
