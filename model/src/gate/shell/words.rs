//! What a word comes to before the command runs, and what keeps that from being told.

use super::parse::options;
use super::walk::Walk;
use super::{Obstacle, Word};
use brush_parser::word::{self, Parameter, ParameterExpr, TildeExpr, WordPiece, WordPieceWithSource};

impl Walk<'_> {
    /// Reads one word and notes what it hides.
    pub(super) fn word(&mut self, raw: &str, depth: usize) -> Word {
        let is_plain = raw.bytes().all(|b| {
            b.is_ascii_alphanumeric()
                || matches!(b, b'-' | b'_' | b'.' | b'/' | b'=' | b':' | b',' | b'+' | b'@' | b'%')
        });
        if is_plain {
            return plain_word(raw);
        }
        let mut word = Word { raw: raw.to_owned(), ..Word::default() };
        let Ok(pieces) = word::parse(raw, &options()) else {
            self.obstacle(Obstacle::Unparsable);
            return word;
        };
        let mut value = Some(String::new());
        self.pieces(&pieces, false, depth, &mut word, &mut value);
        word.value = value;
        word
    }

    fn pieces(
        &mut self,
        pieces: &[WordPieceWithSource],
        quoted: bool,
        depth: usize,
        word: &mut Word,
        value: &mut Option<String>,
    ) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) => {
                    if !quoted {
                        word.glob |= text.contains(['*', '?', '[']) && text != "[";
                        if has_braces(text) {
                            self.obstacle(Obstacle::Braces);
                            *value = None;
                        }
                    }
                    push(value, text);
                }
                WordPiece::SingleQuotedText(text) => push(value, text),
                WordPiece::AnsiCQuotedText(_) => {
                    self.obstacle(Obstacle::Escapes);
                    *value = None;
                }
                WordPiece::DoubleQuotedSequence(inner) => self.pieces(inner, true, depth, word, value),
                WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.obstacle(Obstacle::Escapes);
                    self.pieces(inner, true, depth, word, value);
                }
                WordPiece::TildeExpansion(TildeExpr::Home) => {
                    word.tilde = true;
                    word.expands = true;
                    let home = self.home.to_owned();
                    push(value, &home);
                }
                WordPiece::TildeExpansion(_) => {
                    word.tilde = true;
                    word.expands = true;
                    *value = None;
                }
                WordPiece::ParameterExpansion(expression) => {
                    word.expands = true;
                    self.parameter(expression, value);
                }
                WordPiece::CommandSubstitution(text) if is_quoted_heredoc(text) => push(value, "text"),
                WordPiece::CommandSubstitution(text) | WordPiece::BackquotedCommandSubstitution(text) => {
                    word.expands = true;
                    *value = None;
                    self.obstacle(Obstacle::Substitution);
                    self.text(text, true, depth + 1);
                }
                WordPiece::EscapeSequence(text) => push(value, text.strip_prefix('\\').unwrap_or(text)),
                WordPiece::ArithmeticExpression(expression) => {
                    word.expands = true;
                    if expression.value.contains("$(") || expression.value.contains('`') {
                        self.obstacle(Obstacle::Substitution);
                    }
                    *value = None;
                }
            }
        }
    }

    fn parameter(&mut self, expression: &ParameterExpr, value: &mut Option<String>) {
        if let ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false } = expression {
            if name == "HOME" {
                let home = self.home.to_owned();
                push(value, &home);
                return;
            }
            if let Some((_, known)) = self.variables.iter().rev().find(|(known, _)| known == name) {
                // Deny and ask rules see the value; allow rules do not rely on it.
                match known.clone() {
                    Some(known) => push(value, &known),
                    None => *value = None,
                }
                self.obstacle(Obstacle::Variable);
                return;
            }
        }
        self.obstacle(Obstacle::Variable);
        *value = None;
    }
}

fn push(value: &mut Option<String>, text: &str) {
    if let Some(value) = value {
        value.push_str(text);
    }
}

pub(super) fn plain_word(text: &str) -> Word {
    Word { raw: text.to_owned(), value: Some(text.to_owned()), ..Word::default() }
}

/// `{a,b}` or `{1..3}` in unquoted text.
fn has_braces(text: &str) -> bool {
    text.split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .any(|(inside, _)| inside.contains(',') || inside.contains(".."))
}

/// `cat <<'EOF' … EOF`: text that nothing expands, the usual form of long commit messages.
fn is_quoted_heredoc(text: &str) -> bool {
    let Some(rest) = text.trim().strip_prefix("cat") else { return false };
    let Some(rest) = rest.trim_start().strip_prefix("<<") else { return false };
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start();
    let Some((tag, body)) = rest.split_once('\n') else { return false };
    let tag = tag.trim();
    let Some(tag) = tag
        .strip_prefix('\'')
        .and_then(|t| t.strip_suffix('\''))
        .or_else(|| tag.strip_prefix('"').and_then(|t| t.strip_suffix('"')))
        .or_else(|| tag.strip_prefix('\\'))
    else {
        return false;
    };
    let mut lines = body.lines().skip_while(|line| line.trim_start_matches('\t') != tag);
    lines.next().is_some() && lines.all(|line| line.trim().is_empty())
}
