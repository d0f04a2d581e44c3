//! Cache 3.3, cited by 000: what a change does to the breakpoints.

use crate::context::cache::{Block, Breakpoint, Lifetime, PromptCache};
use crate::propositions::{
    Check, Draws, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "cache-3.3",
    title: "What a change does to the breakpoints",
    notion: "A prompt is a list of blocks; a breakpoint at block i writes the prefix that ends with i, and hits where that \
             very prefix was written before and still lives.",
    statement: "A breakpoint before the first changed block still hits; every breakpoint at or behind it misses.",
    source: "Prompt cache, proposition 3.3 (cited by 000, 3.8)",
    hypotheses: &[Hypothesis {
        text: "the entry still lives",
        why: "entries die five minutes (or an hour) after their last use: then nothing hits, changed or not",
    }],
    checks: &[
        Check {
            name: "every-change",
            method: Method::Bounded,
            claim: "over every length, breakpoint and first changed block, the cache reads the prefix exactly where the \
                    statement says so, and every token is read, written or paid in full",
            run: |trial| every_change(trial, 1, false),
        },
        Check {
            name: "far-beyond",
            method: Method::Random,
            claim: "the same for prompts of up to 200 blocks of up to 5,000 tokens and up to four breakpoints",
            run: far_beyond,
        },
    ],
    ablations: &[Variation {
        name: "entry-died",
        text: "the second request comes after six minutes",
        run: |trial| every_change(trial, 360, false),
    }],
    mutants: &[Variation {
        name: "block-compared-alone",
        text: "a breakpoint is said to hit where its own block is unchanged, whatever stands before it",
        run: |trial| every_change(trial, 1, true),
    }],
    differences: &[],
    real: None,
};

fn blocks(length: usize, changed: Option<usize>) -> Vec<Block> {
    (0..length)
        .map(|n| {
            let text = if changed == Some(n) { "changed".to_owned() } else { format!("block {n}") };
            Block { text, tokens: 10 }
        })
        .collect()
}

fn every_change(trial: &mut Trial<'_>, later: u64, alone: bool) -> Outcome {
    let most = trial.bound("blocks", 12, 18);
    let cases = (1..=most)
        .flat_map(|length| (0..length).flat_map(move |point| (0..=length).map(move |c| (length, point, c))));
    trial.every(cases, |(length, point, changed)| {
        let mut cache = PromptCache::new(0, 20);
        let at = [Breakpoint { block: point, lifetime: Lifetime::FiveMinutes }];
        let told = |error: crate::context::cache::CacheError| Evidence::said(error.to_string());
        cache.request(&blocks(length, None), &at, 0).map_err(told)?;
        // The last value stands for no change at all.
        let changed = (changed < length).then_some(changed);
        let usage = cache.request(&blocks(length, changed), &at, later).map_err(told)?;
        let hits = usage.read == 10 * (point as u64 + 1);
        let stated =
            if alone { changed != Some(point) } else { changed.is_none_or(|changed| point < changed) };
        ensure!(
            hits == stated,
            "{length} blocks, breakpoint at {point}, first change at {changed:?}: {} tokens are read",
            usage.read
        );
        ensure!(
            usage.read + usage.write_5m + usage.input == 10 * length as u64,
            "tokens are lost: {usage:?}"
        );
        Ok(())
    })
}

fn far_beyond(trial: &mut Trial<'_>) -> Outcome {
    trial.sampled(300, |draws: &mut Draws<'_>| {
        let length = 1 + draws.index(200);
        let mut list: Vec<Block> =
            (0..length).map(|n| Block { text: format!("block {n}"), tokens: draws.below(5_001) }).collect();
        let mut points: Vec<usize> = (0..1 + draws.index(4)).map(|_| draws.index(length)).collect();
        points.sort_unstable();
        points.dedup();
        let breakpoints: Vec<Breakpoint> = points
            .iter()
            .map(|block| Breakpoint { block: *block, lifetime: Lifetime::FiveMinutes })
            .collect();
        let mut cache = PromptCache::new(0, 20);
        let told = |error: crate::context::cache::CacheError| Evidence::said(error.to_string());
        cache.request(&list, &breakpoints, 0).map_err(told)?;
        let changed = draws.index(length);
        if let Some(block) = list.get_mut(changed) {
            block.text.push_str(" changed");
        }
        let usage = cache.request(&list, &breakpoints, 1).map_err(told)?;
        let upto = |end: usize| -> u64 { list.iter().take(end + 1).map(|block| block.tokens).sum() };
        let stated =
            points.iter().filter(|point| **point < changed).map(|point| upto(*point)).max().unwrap_or(0);
        ensure!(
            usage.read == stated,
            "{length} blocks, breakpoints {points:?}, change at {changed}: {} read, {stated} stated",
            usage.read
        );
        Ok(())
    })
}
