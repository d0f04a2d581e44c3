//! Counting tokens: one trait, so that every figure can say how it was counted and what is known of its error.

use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Counts the tokens of a text, for reports. What a profile decides by is a parameter of the profile, never this.
pub trait Counter {
    /// The name of the encoding, as reports print it.
    fn name(&self) -> String;
    /// What is known of the error against the tokenizer of the models in question.
    fn known_error(&self) -> &'static str;
    /// The number of tokens of `text`.
    fn count(&self, text: &str) -> u64;
}

/// Characters divided by a ratio, rounded up: deterministic and without a vocabulary.
///
/// Characters are UTF-16 units, because that is what the observed harness counts in (context-cost 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Characters {
    /// Tenths of a character per token: 40 for four characters a token.
    pub tenths_per_token: u64,
}

impl Characters {
    /// Four characters a token.
    pub const FOUR: Self = Self { tenths_per_token: 40 };
    /// Three characters a token.
    pub const THREE: Self = Self { tenths_per_token: 30 };
}

/// The length in UTF-16 units.
pub fn utf16_len(text: &str) -> u64 {
    // A text's length in UTF-16 is at most its length in bytes.
    if text.is_ascii() { text.len() as u64 } else { text.encode_utf16().count() as u64 }
}

impl Counter for Characters {
    fn name(&self) -> String {
        let (whole, tenth) = (self.tenths_per_token / 10, self.tenths_per_token % 10);
        if tenth == 0 { format!("chars/{whole}") } else { format!("chars/{whole}.{tenth}") }
    }

    fn known_error(&self) -> &'static str {
        "characters, not tokens: within about 4 % of BPE encodings on English JSON, half of them on lists of \
         identifiers, about 2.8 times too low on Japanese (context-cost 5.5)"
    }

    fn count(&self, text: &str) -> u64 {
        (utf16_len(text) * 10).div_ceil(self.tenths_per_token.max(1))
    }
}

/// Counts that were recorded with the API's answers: exact for the texts in the table, an estimate elsewhere.
pub struct Recorded<C> {
    table: FxHashMap<String, u64>,
    fallback: C,
}

impl<C: Counter> Recorded<C> {
    /// A counter that knows the texts of `table` and asks `fallback` for every other text.
    pub fn new(table: impl IntoIterator<Item = (String, u64)>, fallback: C) -> Self {
        Self { table: table.into_iter().collect(), fallback }
    }
}

impl<C: Counter> Counter for Recorded<C> {
    fn name(&self) -> String {
        format!("recorded, else {}", self.fallback.name())
    }

    fn known_error(&self) -> &'static str {
        "exact for recorded texts; for others the error of the counter that stands in"
    }

    fn count(&self, text: &str) -> u64 {
        self.table.get(text).copied().unwrap_or_else(|| self.fallback.count(text))
    }
}

/// Remembers what was counted: a definition is sent with every request but counted once.
pub struct Remembering<C> {
    inner: C,
    seen: RefCell<FxHashMap<String, u64>>,
}

impl<C: Counter> Remembering<C> {
    /// A counter that asks `inner` once for each text.
    pub fn new(inner: C) -> Self {
        Self { inner, seen: RefCell::default() }
    }
}

impl<C: Counter> Counter for Remembering<C> {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn known_error(&self) -> &'static str {
        self.inner.known_error()
    }

    fn count(&self, text: &str) -> u64 {
        if let Some(tokens) = self.seen.borrow().get(text) {
            return *tokens;
        }
        let tokens = self.inner.count(text);
        self.seen.borrow_mut().insert(text.to_owned(), tokens);
        tokens
    }
}

impl<C: Counter + ?Sized> Counter for &C {
    fn name(&self) -> String {
        (**self).name()
    }

    fn known_error(&self) -> &'static str {
        (**self).known_error()
    }

    fn count(&self, text: &str) -> u64 {
        (**self).count(text)
    }
}

impl<C: Counter + ?Sized> Counter for Box<C> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn known_error(&self) -> &'static str {
        (**self).known_error()
    }

    fn count(&self, text: &str) -> u64 {
        (**self).count(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_round_up_and_count_utf16_units() {
        assert_eq!(Characters::FOUR.count(""), 0);
        assert_eq!(Characters::FOUR.count("abcde"), 2);
        assert_eq!(Characters::FOUR.count("😀😀"), 1, "an emoji outside the BMP is two units");
        assert_eq!(Characters { tenths_per_token: 25 }.count("abcde"), 2);
        assert_eq!(Characters { tenths_per_token: 25 }.name(), "chars/2.5");
    }

    #[test]
    fn recorded_counts_win_over_the_estimate() {
        let counter = Recorded::new([("abcd".to_owned(), 7)], Characters::FOUR);
        assert_eq!(counter.count("abcd"), 7);
        assert_eq!(counter.count("abcdabcd"), 2);
    }

    #[test]
    fn remembering_asks_once() {
        struct Once(std::cell::Cell<u32>);
        impl Counter for Once {
            fn name(&self) -> String {
                "once".to_owned()
            }
            fn known_error(&self) -> &'static str {
                "none"
            }
            fn count(&self, _: &str) -> u64 {
                self.0.set(self.0.get() + 1);
                3
            }
        }
        let counter = Remembering::new(Once(std::cell::Cell::new(0)));
        assert_eq!((counter.count("a"), counter.count("a"), counter.count("a")), (3, 3, 3));
        assert_eq!(counter.inner.0.get(), 1);
    }
}
