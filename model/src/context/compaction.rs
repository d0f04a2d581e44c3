//! Compaction: what is kept of the conversation, and which skills come back after it.

use super::cut;
use super::tokens::utf16_len;
use crate::message::{Block, Message};
use crate::profile::context::{ContextParameters, ReattachOverflow};

/// A skill that was invoked: its name and the text that its invocation put into the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoked {
    /// The skill.
    pub name: String,
    /// The text, with the line that names its folder.
    pub text: String,
}

/// A skill that comes back after compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reattached {
    /// The skill.
    pub name: String,
    /// What of its text comes back, without the mark that it was cut.
    pub text: String,
    /// Whether it was cut.
    pub cut: bool,
}

/// The skills that come back after compaction, newest invocation first (proposition 5.2 part 2).
///
/// `invocations` is in the order of invocation; of one skill only the newest counts. Each gets at most
/// `reattach_each`, all together at most `reattach_total`; what happens to one that does not fit is the profile's.
pub fn reattach(invocations: &[Invoked], parameters: &ContextParameters) -> Vec<Reattached> {
    let per_token = parameters.reattach_chars_per_token.value;
    let each = parameters.reattach_each_tokens.value.saturating_mul(per_token);
    let mut room = parameters.reattach_total_tokens.value.saturating_mul(per_token);
    let mark = parameters.reattach_mark_chars.value as u64;
    let mut back: Vec<Reattached> = Vec::new();
    // Also of a skill that is skipped because it does not fit, no older invocation counts.
    let mut seen: Vec<&str> = Vec::new();
    for skill in invocations.iter().rev() {
        if seen.contains(&skill.name.as_str()) {
            continue;
        }
        seen.push(&skill.name);
        let whole = utf16_len(&skill.text);
        let wanted = whole.min(each);
        let given = if wanted <= room {
            wanted
        } else {
            match parameters.reattach_overflow.value {
                ReattachOverflow::Skip => continue,
                ReattachOverflow::CutThenStop => room,
            }
        };
        if given == 0 {
            if whole == 0 {
                continue;
            }
            break;
        }
        let cut = given < whole;
        // The mark is part of what the skill was given.
        let units = if cut { given.saturating_sub(mark) } else { given };
        let text = cut::prefix(&skill.text, usize::try_from(units).unwrap_or(usize::MAX)).to_owned();
        room -= given;
        back.push(Reattached { name: skill.name.clone(), text, cut });
    }
    back
}

/// Whether the conversation may be cut before message `at`: no call that stands before the cut has its result at or
/// after it (B4: compaction keeps pairing if and only if it never cuts between a call and its result).
///
/// A call that is answered nowhere forbids no cut, and a result whose call is nowhere forbids none: such a list was
/// ill-paired before, and the cut does not make it so.
pub fn may_cut_before(messages: &[Message], at: usize) -> bool {
    let (before, after) = messages.split_at(at.min(messages.len()));
    let uses = |id: &str| {
        before
            .iter()
            .flat_map(|message| &message.content)
            .any(|block| matches!(block, Block::ToolUse { id: used, .. } if used == id))
    };
    !after
        .iter()
        .flat_map(|message| &message.content)
        .any(|block| matches!(block, Block::ToolResult { tool_use_id, .. } if uses(tool_use_id)))
}

/// The legal cuts of a conversation, as the indices of the first message that is kept.
pub fn legal_cuts(messages: &[Message]) -> Vec<usize> {
    (0..=messages.len()).filter(|&at| may_cut_before(messages, at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Role, pairing_faults};
    use crate::profile::context::{CLAUDE_CODE, DOCUMENTED};
    use serde_json::json;

    fn invoked(sizes: &[usize]) -> Vec<Invoked> {
        sizes
            .iter()
            .enumerate()
            .map(|(k, n)| Invoked { name: format!("k{k}"), text: "x".repeat(*n) })
            .collect()
    }

    #[test]
    fn exercise_9_4() {
        // Seven skills of 6,000 tokens (24,000 characters at four a token): 25,000 tokens come back, of exactly five
        // skills; the two oldest get nothing.
        for parameters in [&DOCUMENTED, &CLAUDE_CODE] {
            let back = reattach(&invoked(&[24_000; 7]), parameters);
            let names: Vec<&str> = back.iter().map(|skill| skill.name.as_str()).collect();
            assert_eq!(names, ["k6", "k5", "k4", "k3", "k2"]);
            let mark = parameters.reattach_mark_chars.value as u64;
            let budgeted: u64 = back.iter().map(|skill| utf16_len(&skill.text) + mark).sum();
            assert_eq!(budgeted / parameters.reattach_chars_per_token.value, 25_000);
        }
    }

    #[test]
    fn the_amount_is_at_most_min_ka_and_a_total() {
        for k in 0..10_usize {
            for size in [1, 3_000, 19_999, 20_000, 20_001, 90_000] {
                for parameters in [&DOCUMENTED, &CLAUDE_CODE] {
                    let back = reattach(&invoked(&vec![size; k]), parameters);
                    let total: u64 = back.iter().map(|skill| utf16_len(&skill.text)).sum();
                    assert!(total <= (k as u64 * 20_000).min(100_000), "k = {k}, size = {size}: {total}");
                }
            }
        }
    }

    #[test]
    fn a_cut_keeps_pairing_if_and_only_if_it_is_legal() {
        // Every conversation of up to three turns with zero to two calls, and every cut of it (B4).
        for shape in 0..27 {
            let mut messages = vec![Message::text(Role::User, "go")];
            for turn in 0..3 {
                let calls = shape / 3_usize.pow(turn) % 3;
                let ids: Vec<String> = (0..calls).map(|call| format!("t{turn}{call}")).collect();
                let uses = ids.iter().map(|id| Block::ToolUse {
                    id: id.clone(),
                    name: "T".to_owned(),
                    input: json!({}),
                });
                let mut reply: Vec<Block> = uses.collect();
                reply.push(Block::Text { text: "so".to_owned() });
                messages.push(Message { role: Role::Assistant, content: reply });
                let results = ids.into_iter().map(|id| Block::ToolResult {
                    tool_use_id: id,
                    content: String::new(),
                    is_error: false,
                });
                let mut user: Vec<Block> = results.collect();
                user.push(Block::Text { text: "next".to_owned() });
                messages.push(Message { role: Role::User, content: user });
            }
            assert!(pairing_faults(&messages).is_empty());
            for at in 0..=messages.len() {
                let paired = pairing_faults(&messages[at..]).is_empty();
                assert_eq!(may_cut_before(&messages, at), paired, "shape {shape}, cut before message {at}");
            }
        }
    }
}
