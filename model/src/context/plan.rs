//! What a session of T requests costs, with the prompt cache, for a strategy of loading tools.
//!
//! Every figure comes from the cache of [`super::cache`] fed with the session's blocks; the closed form of context-cost
//! 5.4 is only a test of it.

use super::cache::{Block, Breakpoint, CacheError, Lifetime, PromptCache};
use super::price::{ModelFacts, Usage};
use serde::Serialize;

/// What deferring takes beside the names: search tool (1,475 bytes), placeholder (214) and heading (about 290), as
/// seen on the wire of Claude Code 2.1.332 (context-cost 2.4).
pub const OVERHEAD_BYTES: u64 = 1_475 + 214 + 290;

/// What one search that finds `found` tools adds to the messages beside the definitions, in bytes (context-cost 2.4).
pub fn search_bytes(found: u64) -> u64 {
    110 + 60 * found + 40
}

/// A tool as the plan sees it, in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its qualified name.
    pub name: String,
    /// Its definition.
    pub definition: u64,
    /// Its line in the list of names.
    pub name_tokens: u64,
}

/// How tools are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Definitions in the first layer.
    Upfront,
    /// Names at first; a search for each group of used tools.
    Deferred,
}

/// What a session is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Requests that the work itself takes; each search adds one.
    pub turns: u64,
    /// What stands in every request beside these tools (built-ins, system), in tokens.
    pub base: u64,
    /// What each request adds to the conversation, in tokens.
    pub growth: u64,
    /// Output of each request, in tokens.
    pub output: u64,
    /// Search tool, placeholder and heading, in tokens: only where tools are deferred.
    pub overhead: u64,
    /// What one search adds to the conversation beside the definitions, in tokens.
    pub search: u64,
    /// How many of the used tools one search loads.
    pub per_search: usize,
    /// Lifetime of the cache entries.
    pub lifetime: Lifetime,
    /// Seconds between requests.
    pub pause: u64,
    /// Whether the order of the tools, or of their names, changes from request to request.
    pub order_changes: bool,
}

/// A session's cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Requests that were sent, searches included.
    pub requests: u64,
    /// All tokens by what they are charged as.
    pub usage: Usage,
    /// USD; `None` where a price is not known.
    pub usd: Option<f64>,
    /// Tokens of the last request.
    pub last_request: u64,
}

/// Costs a session in which the tools `used` (indices) are used.
///
/// # Errors
/// Never for these blocks; the cache's own checks are passed on.
pub fn cost(
    tools: &[Tool],
    used: &[usize],
    strategy: Strategy,
    session: &Session,
    model: &ModelFacts,
    look_back: usize,
) -> Result<Cost, CacheError> {
    let mut cache = PromptCache::new(model.minimum_cacheable.unwrap_or(0), look_back);
    let mut total = Cost { usd: Some(0.0), ..Cost::default() };
    let searches = match strategy {
        Strategy::Upfront => Vec::new(),
        Strategy::Deferred => used.chunks(session.per_search.max(1)).collect(),
    };
    let mut tail: Vec<Block> = Vec::new();
    let mut pending = searches.iter();
    let requests = session.turns + searches.len() as u64;
    let mut work = 0;
    for request in 0..requests {
        let mut blocks = first_layer(tools, strategy, session, request);
        let system_at = blocks.len() - 1;
        if strategy == Strategy::Deferred {
            let mark = if session.order_changes { request } else { 0 };
            let names = tools.iter().map(|tool| tool.name_tokens).sum();
            blocks.push(Block { text: format!("names {mark}"), tokens: names });
        }
        // The first prompt is part of the growth of the first request.
        blocks.push(Block { text: "prompt".to_owned(), tokens: session.growth });
        blocks.extend(tail.iter().cloned());
        let last = blocks.len() - 1;
        let points = [system_at, last].map(|block| Breakpoint { block, lifetime: session.lifetime });
        let mut usage = cache.request(&blocks, &points, request * session.pause)?;
        usage.output = session.output;
        total.usd = total.usd.zip(model.cost(&usage)).map(|(sum, more)| sum + more);
        total.usage += usage;
        total.last_request = blocks.iter().map(|block| block.tokens).sum();
        // Used tools are searched for in the first requests, one search a request, then the work goes on.
        if let Some(group) = pending.next() {
            let definitions: u64 =
                group.iter().filter_map(|&index| tools.get(index)).map(|tool| tool.definition).sum();
            tail.push(Block { text: format!("search {request}"), tokens: session.search + definitions });
        } else {
            work += 1;
            tail.push(Block { text: format!("turn {work}"), tokens: session.growth });
        }
    }
    total.requests = requests;
    Ok(total)
}

fn first_layer(tools: &[Tool], strategy: Strategy, session: &Session, request: u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    if strategy == Strategy::Upfront {
        let mark = if session.order_changes { request } else { 0 };
        let definitions = tools.iter().map(|tool| tool.definition).sum();
        blocks.push(Block { text: format!("tools {mark}"), tokens: definitions });
    }
    let overhead = if strategy == Strategy::Deferred { session.overhead } else { 0 };
    blocks.push(Block { text: "base".to_owned(), tokens: session.base + overhead });
    blocks
}

/// The first number of turns from which on deferring costs no more money than upfront, up to `most`; `None` where there
/// is none, or a price is not known.
///
/// # Errors
/// As [`cost`].
pub fn crossover_in_turns(
    tools: &[Tool],
    used: &[usize],
    session: &Session,
    model: &ModelFacts,
    look_back: usize,
    most: u64,
) -> Result<Option<u64>, CacheError> {
    let mut from = None;
    for turns in 1..=most {
        let session = Session { turns, ..session.clone() };
        let upfront = cost(tools, used, Strategy::Upfront, &session, model, look_back)?.usd;
        let deferred = cost(tools, used, Strategy::Deferred, &session, model, look_back)?.usd;
        match upfront.zip(deferred) {
            None => return Ok(None),
            Some((upfront, deferred)) if deferred <= upfront => from = from.or(Some(turns)),
            Some(_) => from = None,
        }
    }
    Ok(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::price::{Models, SHIPPED};

    fn session(turns: u64) -> Session {
        Session {
            turns,
            base: 10_000,
            growth: 700,
            output: 0,
            overhead: 450,
            search: 60,
            per_search: 1,
            lifetime: Lifetime::FiveMinutes,
            pause: 20,
            order_changes: false,
        }
    }

    fn tools(n: usize) -> Vec<Tool> {
        (0..n).map(|index| Tool { name: format!("t{index}"), definition: 300, name_tokens: 10 }).collect()
    }

    #[test]
    fn hits_throughout_cost_the_closed_form() {
        // Context-cost 5.4: p_in [1.25 (P + n g) + rho ((n - 1) P + g n (n - 1) / 2)].
        let models = Models::read(SHIPPED).unwrap();
        for id in ["opus-5-5", "sonnet-4-5", "haiku-4-5"] {
            let model = models.find(id).unwrap();
            for n in [1_u32, 2, 3, 10, 30] {
                let session = session(u64::from(n));
                let cost = cost(&tools(20), &[], Strategy::Upfront, &session, model, 20).unwrap();
                let (n, p, g) = (f64::from(n), 16_000.0, 700.0);
                let written = 1.25 * (p + n * g);
                let read = model.read / model.input * ((n - 1.0) * p + g * n * (n - 1.0) / 2.0);
                let closed = model.input * (written + read) / 1e6;
                assert!(
                    (cost.usd.unwrap() - closed).abs() < 1e-9,
                    "{id}, n = {n}: {cost:?} against {closed}"
                );
            }
        }
    }

    #[test]
    fn an_order_that_changes_loses_every_hit_upfront() {
        let models = Models::read(SHIPPED).unwrap();
        let model = models.find("opus-5-5").unwrap();
        let changing = Session { order_changes: true, ..session(10) };
        let cost_of =
            |session: &Session, strategy| cost(&tools(20), &[], strategy, session, model, 20).unwrap();
        assert_eq!(cost_of(&changing, Strategy::Upfront).usage.read, 0);
        assert!(cost_of(&session(10), Strategy::Upfront).usage.read > 0);
        // Deferred, the first layer holds no server's tool: the prefix up to it is still read.
        assert_eq!(cost_of(&changing, Strategy::Deferred).usage.read, 9 * 10_450);
    }
}
