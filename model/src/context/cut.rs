//! Cutting texts at a cap counted in UTF-16 units, as the observed harness counts characters.

use super::tokens::utf16_len;

/// The longest prefix of `text` with at most `units` UTF-16 units. A character of two units is never halved.
pub fn prefix(text: &str, units: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += character.len_utf16();
        if used > units {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

/// `text` if it has at most `cap` units, else its first `cap` units and `suffix` after them.
///
/// Rule: tool descriptions and server instructions are cut (000, section 3.8; context-cost 2.4: 4,096 untouched,
/// 4,097 becomes 4,096 and the suffix).
pub fn with_suffix(text: &str, cap: usize, suffix: &str) -> String {
    if utf16_len(text) <= cap as u64 { text.to_owned() } else { format!("{}{suffix}", prefix(text, cap)) }
}

/// `text` if it has at most `cap` units, else its first `cap - 1` units and an ellipsis, so that the result has `cap`.
///
/// Rule: a skill's description in the listing (context-cost 3.1: 1,535 and the ellipsis).
pub fn with_ellipsis(text: &str, cap: usize) -> String {
    if utf16_len(text) <= cap as u64 {
        text.to_owned()
    } else {
        format!("{}…", prefix(text, cap.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_in_utf16_units_and_never_halve_a_character() {
        assert_eq!(prefix("a😀b", 2), "a");
        assert_eq!(prefix("a😀b", 3), "a😀");
        assert_eq!(with_suffix("abc", 3, "!"), "abc");
        assert_eq!(with_suffix("abcd", 3, "!"), "abc!");
        assert_eq!(with_ellipsis("abcd", 3), "ab…");
        assert_eq!(with_ellipsis("", 0), "");
    }
}
