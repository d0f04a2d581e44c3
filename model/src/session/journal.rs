//! The journal: the payloads of a run, left out of exploration. It holds the conversation, and the ledger that counts
//! the bytes of each message as it is added.

use crate::message::{Block, Message, PairingFault, Role, pairing_faults};
use serde_json::value::RawValue;

/// Conversation and ledger.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    messages: Vec<Message>,
    ledger: Vec<u64>,
}

/// What is wrong with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFaults {
    /// Faults in the pairing of calls and results (I-PAIR).
    pub pairing: Vec<PairingFault>,
    /// The first message whose ledger entry differs from the recount: (index, ledger, recount), in bytes (I-COST).
    pub ledger: Option<(usize, u64, u64)>,
}

impl Journal {
    /// Adds a message and counts it. `counts` is false only under the mutant that forgets results.
    pub(super) fn push(&mut self, message: Message, counts: bool) {
        let bytes = if counts { serialised_len(&message) } else { 0 };
        self.ledger.push(bytes);
        self.messages.push(message);
    }

    /// The conversation so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Bytes of each message as serialised in a request.
    pub fn ledger(&self) -> &[u64] {
        &self.ledger
    }

    /// Bytes of all messages.
    pub fn total_bytes(&self) -> u64 {
        self.ledger.iter().sum()
    }

    /// The request body that would be sent, as bytes.
    pub fn request(&self) -> Vec<u8> {
        #[derive(serde::Serialize)]
        struct Request<'a> {
            messages: &'a [Message],
        }
        serde_json::to_vec(&Request { messages: &self.messages }).unwrap_or_default()
    }

    /// Judges the request that is sent now: pairing of its messages, and the ledger against a recount of the
    /// serialised request (not against itself: the bytes are parsed again and each message's span is measured).
    pub fn judge(&self) -> RequestFaults {
        RequestFaults {
            pairing: pairing_faults(&self.messages),
            ledger: recount(&self.request(), &self.ledger),
        }
    }

    /// The text that the assistant's last message says.
    pub fn last_text(&self) -> Option<&str> {
        let last = self.messages.iter().rev().find(|message| message.role == Role::Assistant)?;
        last.content.iter().rev().find_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
    }
}

fn serialised_len(message: &Message) -> u64 {
    let mut counter = Counter(0);
    // Writing into a counter does not fail.
    let _ = serde_json::to_writer(&mut counter, message);
    counter.0
}

/// Counts what is written and keeps nothing.
struct Counter(u64);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The first message whose entry differs from its span in the request.
fn recount(request: &[u8], ledger: &[u64]) -> Option<(usize, u64, u64)> {
    #[derive(serde::Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    let spans: Vec<u64> = serde_json::from_slice::<Request<'_>>(request)
        .map(|request| request.messages.iter().map(|raw| raw.get().len() as u64).collect())
        .unwrap_or_default();
    let longer = spans.len().max(ledger.len());
    (0..longer).find_map(|index| {
        let booked = ledger.get(index).copied().unwrap_or(0);
        let counted = spans.get(index).copied().unwrap_or(0);
        (booked != counted).then_some((index, booked, counted))
    })
}
