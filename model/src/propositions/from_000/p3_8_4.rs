//! Proposition 3.8 (4): loading late keeps the cached prefix.

use super::costs::{Bytes, prompt, session, tool};
use crate::context::cache::{Block, Lifetime, PromptCache};
use crate::context::conversation::{Conversation, extends};
use crate::context::definition::Definition;
use crate::context::loading::Loading;
use crate::context::request::compact;
use crate::context::tokens::Counter as _;
use crate::profile::ProfileName;
use crate::propositions::{
    Check, Difference, Evidence, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};
use serde_json::json;

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.8.4",
    title: "Loading late keeps the cached prefix",
    notion: "The rendered prompt is what the model reads: tools that are not deferred, system, messages, with each \
             reference replaced by the definition that it names. A breakpoint hits where the prompt up to it was sent \
             before.",
    statement: "Where a loaded definition is appended at the end, every earlier prompt is a prefix of the next one and its \
                breakpoints still hit; a change of the tools in the first layer makes every breakpoint after it miss.",
    source: "000, proposition 3.8 (4); Cache 3.3; context-cost 2.3",
    hypotheses: &[Hypothesis {
        text: "the definition is appended, not put among the tools",
        why: "the tools are the first layer: whatever changes there changes every prefix behind it",
    }],
    checks: &[
        Check {
            name: "every-session",
            method: Method::Bounded,
            claim: "over every sequence of turns and searches, deferred, each prompt extends the one before, and the cache \
                    reads all of it",
            run: |trial| every_session(trial, Loading::Deferred),
        },
        Check {
            name: "first-layer-change",
            method: Method::Bounded,
            claim: "upfront, a tool that comes later at any place among the others: the cache reads nothing behind that \
                    place",
            run: first_layer_change,
        },
        Check {
            name: "on-raw-json",
            method: Method::Bounded,
            claim: "the JSON of `tools` is the same before and after a search, so comparing raw bytes would do as well",
            run: on_raw_json,
        },
    ],
    ablations: &[Variation {
        name: "put-among-the-tools",
        text: "a loaded definition is put into the first layer",
        run: |trial| every_session(trial, Loading::Upfront),
    }],
    mutants: &[Variation {
        name: "names-edited-in-place",
        text: "a loaded tool's name is taken out of the list of deferred ones",
        run: names_edited,
    }],
    differences: &[Difference {
        profile: ProfileName::ClaudeCode,
        check: "on-raw-json",
        why: "a found definition is added to `tools` with defer_loading, among the others: the raw JSON changes, the \
              rendered prompt does not (context-cost 2.3, ts-load-three-steps)",
    }],
    real: None,
};

/// What happens in a session between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Turn,
    Load(usize),
}

const TOOLS: usize = 3;

fn tools() -> Vec<Definition> {
    // Numbers with gaps, so that a later tool can come before, between and behind them.
    (0..TOOLS).map(|n| tool(2 * n + 1, 40)).collect()
}

fn happen(session: &mut Conversation<'_>, event: Event, number: usize, loading: Loading) {
    match event {
        Event::Turn => {
            session.reply(vec![json!({"type": "text", "text": format!("reply {number}")})]);
            session.answer(vec![json!({"type": "text", "text": format!("answer {number}")})]);
        }
        Event::Load(index) if loading == Loading::Deferred => {
            let name = tools().get(index).map(Definition::qualified).unwrap_or_default();
            session.search(&format!("s{number}"), &format!("select:{name}"));
        }
        // Upfront loading of a further tool: the list changes.
        Event::Load(index) => session.list_changed(vec![tool(2 * index, 40)]),
    }
}

/// The sequences of up to `n` events.
fn sequences(n: usize) -> Vec<Vec<Event>> {
    let events = [Event::Turn, Event::Load(0), Event::Load(1), Event::Load(2)];
    let mut lists: Vec<Vec<Event>> = vec![Vec::new()];
    let mut last = lists.clone();
    for _ in 0..n {
        last = last.iter().flat_map(|l| events.iter().map(|e| [l.as_slice(), &[*e]].concat())).collect();
        lists.extend(last.clone());
    }
    lists
}

fn every_session(trial: &mut Trial<'_>, loading: Loading) -> Outcome {
    let most = trial.bound("events", 5, 7);
    let parameters = trial.profile().context;
    trial.every(sequences(most), |events| {
        let mut session = session(&tools(), loading, &parameters);
        let mut cache = PromptCache::new(0, parameters.cache_look_back_blocks.value);
        let mut before: Vec<Block> = Vec::new();
        for (number, event) in std::iter::once(None).chain(events.iter().copied().map(Some)).enumerate() {
            if let Some(event) = event {
                happen(&mut session, event, number, loading);
            }
            let now = prompt(&mut session);
            if let Err(place) = extends(&before, &now) {
                let kept: u64 = now.iter().take(place).map(|block| block.tokens).sum();
                let text = format!(
                    "{events:?}: after event {number} block {place} differs; {kept} bytes of prefix are left"
                );
                return Err(Evidence::said(text));
            }
            let points = session.breakpoints(Lifetime::FiveMinutes);
            let usage =
                cache.request(&now, &points, number as u64).map_err(|e| Evidence::said(e.to_string()))?;
            let sent: u64 = before.iter().map(|block| block.tokens).sum();
            ensure!(usage.read == sent, "{events:?}: request {number} reads {} of {sent} bytes", usage.read);
            before = now;
        }
        Ok(())
    })
}

fn first_layer_change(trial: &mut Trial<'_>) -> Outcome {
    trial.over("places 0 to 3 among 3 tools");
    let parameters = trial.profile().context;
    trial.every(0..=TOOLS, |place| {
        let mut session = session(&tools(), Loading::Upfront, &parameters);
        let mut cache = PromptCache::new(0, parameters.cache_look_back_blocks.value);
        let before = prompt(&mut session);
        // A breakpoint on every block, as far as a request may carry them: all that could be read is there.
        for end in 0..before.len() {
            let point = crate::context::cache::Breakpoint { block: end, lifetime: Lifetime::FiveMinutes };
            cache.request(&before, &[point], 0).map_err(|e| Evidence::said(e.to_string()))?;
        }
        session.list_changed(vec![tool(2 * place, 40)]);
        let now = prompt(&mut session);
        let points = session.breakpoints(Lifetime::FiveMinutes);
        let usage = cache.request(&now, &points, 1).map_err(|e| Evidence::said(e.to_string()))?;
        let kept: u64 = now.iter().take(place).map(|block| block.tokens).sum();
        ensure!(
            usage.read == kept,
            "a tool at place {place}: {} bytes are read, {kept} stand before it",
            usage.read
        );
        Ok(())
    })
}

fn on_raw_json(trial: &mut Trial<'_>) -> Outcome {
    let most = trial.bound("searches", 3, 3);
    let parameters = trial.profile().context;
    let raw = |session: &mut Conversation<'_>| -> Vec<String> {
        session.send().tools.iter().map(compact).collect()
    };
    trial.every(1..=most, |searches| {
        let mut session = session(&tools(), Loading::Deferred, &parameters);
        let before = raw(&mut session);
        for index in 0..searches {
            happen(&mut session, Event::Load(index), index, Loading::Deferred);
        }
        let after = raw(&mut session);
        ensure!(
            before == after,
            "after {searches} search the JSON of tools has {} entries instead of {}",
            after.len(),
            before.len()
        );
        Ok(())
    })
}

/// A harness that edits the list of names after a search.
fn names_edited(trial: &mut Trial<'_>) -> Outcome {
    let parameters = trial.profile().context;
    trial
        .every(0..TOOLS, |index| {
            let mut session = session(&tools(), Loading::Deferred, &parameters);
            let before = prompt(&mut session);
            happen(&mut session, Event::Load(index), 1, Loading::Deferred);
            let name = tools().get(index).map(Definition::qualified).unwrap_or_default();
            let now: Vec<Block> = prompt(&mut session)
                .into_iter()
                .map(|block| {
                    let listed = block.text.starts_with("system: ");
                    let text =
                        if listed { block.text.replace(&format!("\\n{name}"), "") } else { block.text };
                    Block { tokens: Bytes.count(&text), text }
                })
                .collect();
            ensure!(
                extends(&before, &now).is_ok(),
                "after {name} is loaded, the list of names is another text"
            );
            Ok(())
        })
        .map_err(|failure: Failure| failure)
}
