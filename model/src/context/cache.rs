//! The prompt cache: entries are written at breakpoints, found by exact prefix, and die with time
//! (Messages API documentation, prompt caching; Cache 3.3; context-cost 5.1).

use super::price::Usage;
use rustc_hash::FxHashMap;

/// How long an entry lives after it was last used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Lifetime {
    /// Five minutes.
    FiveMinutes,
    /// One hour.
    OneHour,
}

impl Lifetime {
    /// In seconds.
    pub fn seconds(self) -> u64 {
        match self {
            Self::FiveMinutes => 300,
            Self::OneHour => 3_600,
        }
    }
}

/// The lifetime that a harness asks for, or `None` where the environment switches caching off for this model
/// (context-cost 5.2: `DISABLE_PROMPT_CACHING`, the same for the model's family, `ENABLE_PROMPT_CACHING_1H`,
/// `FORCE_PROMPT_CACHING_5M`, which wins).
pub fn policy<'a>(environment: impl Fn(&str) -> Option<&'a str>, model: &str) -> Option<Lifetime> {
    let on = |name: &str| environment(name).is_some_and(|value| !matches!(value, "" | "0" | "false"));
    let family =
        ["OPUS", "SONNET", "HAIKU", "FABLE"].into_iter().find(|name| model.contains(&name.to_lowercase()));
    if on("DISABLE_PROMPT_CACHING")
        || family.is_some_and(|name| on(&format!("DISABLE_PROMPT_CACHING_{name}")))
    {
        return None;
    }
    if on("ENABLE_PROMPT_CACHING_1H") && !on("FORCE_PROMPT_CACHING_5M") {
        return Some(Lifetime::OneHour);
    }
    Some(Lifetime::FiveMinutes)
}

/// A block of the rendered prompt. Two blocks are the same exactly when their `text` is, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it says, or anything that stands for it.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
}

/// A breakpoint: the entry that ends with this block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// The index of the block.
    pub block: usize,
    /// How long the entry lives.
    pub lifetime: Lifetime,
}

/// A cache of prompts. Time is passed in.
#[derive(Clone, Debug)]
pub struct PromptCache {
    minimum_tokens: u64,
    look_back: usize,
    // A prefix is a node of a trie: (node of the prefix before, last block) -> node. Equality is exact, no hash decides.
    nodes: FxHashMap<(usize, String), usize>,
    entries: FxHashMap<usize, (u64, Lifetime)>,
}

impl PromptCache {
    /// The most breakpoints that a request may carry.
    pub const MOST_BREAKPOINTS: usize = 4;

    /// An empty cache for a model that caches no prefix shorter than `minimum_tokens` and looks at `look_back` blocks
    /// for each breakpoint, the breakpoint's own counted.
    pub fn new(minimum_tokens: u64, look_back: usize) -> Self {
        Self { minimum_tokens, look_back, nodes: FxHashMap::default(), entries: FxHashMap::default() }
    }

    /// A request with these blocks at `now` seconds: what is read, written and paid in full.
    ///
    /// # Errors
    /// When there are more than four breakpoints, or one stands on no block.
    pub fn request(
        &mut self,
        blocks: &[Block],
        breakpoints: &[Breakpoint],
        now: u64,
    ) -> Result<Usage, CacheError> {
        if breakpoints.len() > Self::MOST_BREAKPOINTS {
            return Err(CacheError::TooManyBreakpoints(breakpoints.len()));
        }
        if let Some(stray) = breakpoints.iter().find(|point| point.block >= blocks.len()) {
            return Err(CacheError::NoSuchBlock(stray.block));
        }
        self.entries.retain(|_, (until, _)| *until > now);
        // nodes and tokens of every prefix.
        let mut prefixes = Vec::with_capacity(blocks.len());
        let (mut node, mut tokens) = (0, 0);
        for block in blocks {
            let next = self.nodes.len() + 1;
            node = *self.nodes.entry((node, block.text.clone())).or_insert(next);
            tokens += block.tokens;
            prefixes.push((node, tokens));
        }
        let mut points = breakpoints.to_vec();
        points.sort_by_key(|point| point.block);
        let read = self.longest_read(&prefixes, &points, now);
        let mut usage = Usage { read, ..Usage::default() };
        let mut covered = read;
        for point in &points {
            let Some(&(node, upto)) = prefixes.get(point.block) else { continue };
            if upto < self.minimum_tokens {
                continue;
            }
            self.entries.insert(node, (now + point.lifetime.seconds(), point.lifetime));
            let written = upto.saturating_sub(covered);
            match point.lifetime {
                Lifetime::FiveMinutes => usage.write_5m += written,
                Lifetime::OneHour => usage.write_1h += written,
            }
            covered = covered.max(upto);
        }
        usage.input = tokens - covered;
        Ok(usage)
    }

    // The longest prefix that some breakpoint finds; a hit refreshes the entry.
    fn longest_read(&mut self, prefixes: &[(usize, u64)], points: &[Breakpoint], now: u64) -> u64 {
        // `entries` holds only what lives: `request` has just thrown the rest out.
        let mut best: Option<(usize, u64)> = None;
        for point in points {
            let looked_at = prefixes.iter().take(point.block + 1).rev().take(self.look_back);
            if let Some(&(node, tokens)) =
                looked_at.into_iter().find(|(node, _)| self.entries.contains_key(node))
                && best.is_none_or(|(_, most)| tokens > most)
            {
                best = Some((node, tokens));
            }
        }
        let Some((node, tokens)) = best else { return 0 };
        if let Some((until, lifetime)) = self.entries.get_mut(&node) {
            *until = now + lifetime.seconds();
        }
        tokens
    }
}

/// A request that the API would refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// More than four breakpoints.
    #[error("{0} breakpoints, at most 4 are allowed")]
    TooManyBreakpoints(usize),
    /// A breakpoint on no block.
    #[error("a breakpoint on block {0}, which is not there")]
    NoSuchBlock(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(texts: &[&str]) -> Vec<Block> {
        texts.iter().map(|text| Block { text: (*text).to_owned(), tokens: 1_000 }).collect()
    }

    fn at(block: usize) -> Breakpoint {
        Breakpoint { block, lifetime: Lifetime::FiveMinutes }
    }

    #[test]
    fn an_extension_reads_what_was_written_and_writes_the_rest() {
        let mut cache = PromptCache::new(512, 20);
        let first = cache.request(&blocks(&["a", "b"]), &[at(1)], 0).unwrap();
        assert_eq!(first, Usage { write_5m: 2_000, ..Usage::default() });
        let second = cache.request(&blocks(&["a", "b", "c"]), &[at(2)], 299).unwrap();
        assert_eq!(second, Usage { read: 2_000, write_5m: 1_000, ..Usage::default() });
        let late = cache.request(&blocks(&["a", "b", "c"]), &[at(2)], 900).unwrap();
        assert_eq!(late.read, 0, "entries die after five minutes");
    }

    #[test]
    fn a_breakpoint_hits_the_last_entry_if_and_only_if_at_most_19_blocks_were_appended() {
        for appended in 0..40 {
            let mut cache = PromptCache::new(0, 20);
            let names: Vec<String> = (0..=appended).map(|n| n.to_string()).collect();
            let texts: Vec<&str> = names.iter().map(String::as_str).collect();
            cache.request(&blocks(&texts[..1]), &[at(0)], 0).unwrap();
            let usage = cache.request(&blocks(&texts), &[at(appended)], 1).unwrap();
            assert_eq!(usage.read > 0, appended <= 19, "{appended} blocks appended");
        }
    }

    #[test]
    fn short_prefixes_are_not_cached_and_no_error() {
        let mut cache = PromptCache::new(1_001, 20);
        for _ in 0..2 {
            let usage = cache.request(&blocks(&["a"]), &[at(0)], 0).unwrap();
            assert_eq!(usage, Usage { input: 1_000, ..Usage::default() });
        }
        assert_eq!(cache.request(&blocks(&["a"]), &[at(0); 5], 0), Err(CacheError::TooManyBreakpoints(5)));
    }

    proptest! {
        /// Cache 3.3: a breakpoint before the first changed block still hits; every one at or after it misses.
        #[test]
        fn cache_3_3(length in 1usize..12, changed in 0usize..12, point in 0usize..12) {
            let (changed, point) = (changed % length, point % length);
            let mut texts: Vec<String> = (0..length).map(|n| n.to_string()).collect();
            let build = |texts: &[String]| texts.iter().map(|text| Block { text: text.clone(), tokens: 10 }).collect::<Vec<_>>();
            let mut cache = PromptCache::new(0, 20);
            cache.request(&build(&texts), &[at(point)], 0).unwrap();
            texts[changed] = "changed".to_owned();
            let usage = cache.request(&build(&texts), &[at(point)], 1).unwrap();
            prop_assert_eq!(usage.read > 0, point < changed);
            prop_assert_eq!(usage.read + usage.write_5m + usage.input, 10 * length as u64);
        }
    }
}
