//! The parser, and the texts that are small enough for it.

use super::NESTING_LIMIT;
use brush_parser::{ParserOptions, TokenizerOptions, ast};

/// Characters beyond which a text is not parsed.
const LENGTH_LIMIT: usize = 20_000;
/// Compound keywords beyond which a text is not parsed.
const KEYWORD_LIMIT: usize = 48;

pub(super) fn options() -> ParserOptions {
    ParserOptions::default()
}

pub(super) fn parse(text: &str) -> Option<ast::Program> {
    let tokenizer = TokenizerOptions::default();
    let tokens = brush_parser::uncached_tokenize_str(text, &tokenizer).ok()?;
    brush_parser::parse_tokens(&tokens, &options()).ok()
}

/// Bounds on what a recursive, backtracking parser is given.
pub(super) fn is_within_limits(text: &str) -> bool {
    if text.len() > LENGTH_LIMIT {
        return false;
    }
    let (mut depth, mut deepest, mut backquotes) = (0_usize, 0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b'}' => depth = depth.saturating_sub(1),
            b'`' => backquotes += 1,
            _ => {}
        }
    }
    let keywords = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '!')
        .filter(|word| {
            matches!(
                *word,
                "if" | "while"
                    | "until"
                    | "for"
                    | "case"
                    | "select"
                    | "function"
                    | "coproc"
                    | "time"
                    | "!"
                    | "do"
                    | "then"
                    | "elif"
            )
        })
        .count();
    deepest <= NESTING_LIMIT && backquotes <= 2 * NESTING_LIMIT && keywords <= KEYWORD_LIMIT
}

/// The text between two character positions.
pub(super) fn slice_chars(text: &str, start: usize, end: usize) -> Option<&str> {
    if text.is_ascii() {
        return text.get(start..end);
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(i, _)| i);
    text.get(at(start)..at(end))
}
