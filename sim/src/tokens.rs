//! Counting tokens with BPE encodings: the counter that reports use unless told otherwise.

use tiktoken_rs::CoreBPE;
use windtunnel_model::context::tokens::{Characters, Counter};

/// A BPE encoding that ships inside a library: offline, deterministic, another vendor's vocabulary.
pub struct Bpe {
    name: &'static str,
    encoding: &'static CoreBPE,
}

impl Counter for Bpe {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn known_error(&self) -> &'static str {
        "another vendor's encoding: models from Opus 4.7 on are documented to need about 30 % more tokens; use it to \
         compare (context-cost 5.5)"
    }

    fn count(&self, text: &str) -> u64 {
        self.encoding.encode_ordinary(text).len() as u64
    }
}

/// The counters that can be asked for by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Encoding {
    /// The o200k_base vocabulary.
    #[default]
    #[value(name = "o200k")]
    O200k,
    /// The cl100k_base vocabulary.
    #[value(name = "cl100k")]
    Cl100k,
    /// Four characters a token.
    #[value(name = "chars4")]
    Chars4,
    /// Three characters a token.
    #[value(name = "chars3")]
    Chars3,
}

impl Encoding {
    /// The counter. A vocabulary is read once a process.
    pub fn counter(self) -> Box<dyn Counter> {
        match self {
            Self::O200k => {
                Box::new(Bpe { name: "o200k_base", encoding: tiktoken_rs::o200k_base_singleton() })
            }
            Self::Cl100k => {
                Box::new(Bpe { name: "cl100k_base", encoding: tiktoken_rs::cl100k_base_singleton() })
            }
            Self::Chars4 => Box::new(Characters::FOUR),
            Self::Chars3 => Box::new(Characters::THREE),
        }
    }
}
