//! Counting tokens: megabytes a second over real tool lists where they are beside the repository, cold (every text
//! encoded) and with cached definitions (each text encoded once, then remembered), and the encoder's plain call as the
//! peer. One JSON line a measurement with `--json`.

use serde_json::{Value, json};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use windtunnel::tokens::Encoding;
use windtunnel_model::context::definition::read_catalogue;
use windtunnel_model::context::tokens::{Counter, Remembering};
use windtunnel_model::profile::context::CLAUDE_CODE;

/// Rounds over the texts: enough for a second or so.
const ROUNDS: usize = 20;

fn texts() -> (Vec<String>, &'static str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/tools-list");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut texts = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "json")) {
        let document =
            std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let tools =
            document.and_then(|document| read_catalogue("server", &document).ok()).unwrap_or_default();
        texts.extend(tools.iter().map(|tool| tool.wire(&CLAUDE_CODE).to_string()));
    }
    if texts.is_empty() {
        let made = (0..200).map(|n| json!({"name": format!("tool_{n}"), "description": "Reads one of the files of the project and says what stands in it. ".repeat(8)}).to_string());
        return (made.collect(), "made definitions");
    }
    (texts, "real definitions")
}

fn measure(texts: &[String], counter: &dyn Counter) -> (f64, u64) {
    let bytes: usize = texts.iter().map(String::len).sum();
    let (began, mut tokens) = (Instant::now(), 0);
    for _ in 0..ROUNDS {
        tokens = texts.iter().map(|text| black_box(counter.count(black_box(text)))).sum();
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred megabytes")]
    let rate = (bytes * ROUNDS) as f64 / 1e6 / began.elapsed().as_secs_f64();
    (rate, tokens)
}

fn main() {
    let as_json = std::env::args().any(|argument| argument == "--json");
    let (texts, subject) = texts();
    for encoding in [Encoding::O200k, Encoding::Cl100k, Encoding::Chars4] {
        let began = Instant::now();
        let cold = encoding.counter();
        let load = began.elapsed().as_secs_f64();
        let cached = Remembering::new(encoding.counter());
        texts.iter().for_each(|text| {
            cached.count(text);
        });
        for (kind, counter) in [("cold", &cold as &dyn Counter), ("cached", &cached)] {
            let (rate, tokens) = measure(&texts, counter);
            let name = counter.name();
            if as_json {
                println!(
                    "{}",
                    json!({"bench": "tokens", "subject": format!("{subject}, {kind}"), "engine": name, "operations": tokens, "megabytes_per_second": rate, "load_seconds": load})
                );
            } else {
                println!(
                    "{name:<12} {kind:<7} {rate:>9.1} MB/s  {tokens} tokens of {} {subject}; vocabulary read in {load:.3} s",
                    texts.len()
                );
            }
        }
    }
}
