//! Proposition 6.2: the topmost source wins, uniquely.

use crate::agent_loop::rule;
use crate::hooks::{HookDecision, combine};
use crate::mcp::servers::{Policy, Scope, Transport, resolve};
use crate::propositions::{
    Check, Evidence, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
    every_variant,
};
use crate::sources::named::{Composition, Definition, Effective, Mechanism, Origin, effective};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "6.2",
    title: "The topmost source wins, uniquely",
    notion: "Finitely many sources in a total order, each a partial map from names to definitions; a definition is a map \
             from fields to values. Fieldwise merging takes each field from the highest source that has it.",
    statement: "The definition of the highest source that defines a name is unique and equals that source's definition as \
                it stands; fieldwise merging may give one that no source wrote.",
    source: "000, proposition 6.2; sources-and-sandbox, section 2",
    hypotheses: &[
        Hypothesis {
            text: "the order is total",
            why: "two definitions of one rank have no highest: which one counts is then an accident of the file system",
        },
        Hypothesis {
            text: "the whole definition is taken",
            why: "fieldwise merging sends one source's credentials to another source's address (example 6.3)",
        },
    ],
    checks: &[
        Check {
            name: "every-presence-pattern",
            method: Method::Bounded,
            claim: "over every pattern of which source defines the name with which fields, the effective definition is \
                    that of exactly one source, the highest, in every mechanism that has an order",
            run: |trial| every_pattern(trial, whole),
        },
        Check {
            name: "servers-as-written",
            method: Method::Enumeration,
            claim: "over every pattern of scopes that define a server, what is started is the entry of the strongest one",
            run: |trial| servers(trial, |(scope, _)| *scope),
        },
        Check {
            name: "orders-are-total",
            method: Method::Enumeration,
            claim: "no mechanism's order names a source twice, and hooks and CLAUDE.md add up",
            run: orders,
        },
        Check {
            name: "fieldwise-results-nobody-wrote",
            method: Method::Bounded,
            claim: "with k sources and f fields, fieldwise merging gives k^f full definitions, of which k^f - k no source \
                    wrote",
            run: fieldwise_count,
        },
        Check {
            name: "adding-a-hook",
            method: Method::Enumeration,
            claim: "corollary, since hooks add up: a call that hooks and rules refuse is refused, or put off, with one \
                    hook more",
            run: |trial| adding_a_hook(trial, |list| combine(list.iter().copied())),
        },
    ],
    ablations: &[
        Variation {
            name: "fieldwise",
            text: "each field is taken from the highest source that has it",
            run: |trial| every_pattern(trial, fieldwise),
        },
        Variation { name: "order-not-total", text: "two sources have one rank", run: not_total },
    ],
    mutants: &[
        Variation {
            name: "lowest-wins",
            text: "the lowest source wins",
            run: |trial| every_pattern(trial, lowest),
        },
        Variation {
            name: "last-file-wins",
            text: "servers are taken from the last file read, whatever its scope",
            run: |trial| servers(trial, |(_, place)| *place),
        },
        Variation {
            name: "first-hook-wins",
            text: "hooks do not add up: the one added first in the list decides",
            run: |trial| adding_a_hook(trial, |list| list.last().copied().unwrap_or_default()),
        },
    ],
    differences: &[],
    real: None,
};

/// A definition of the cases: for each field the rank of the source that wrote it.
type Fields = Vec<Option<usize>>;

/// The rule under check: what counts of the definitions of one name.
type Choose = fn(Composition, &[Definition<Fields>]) -> Option<Fields>;

fn whole(composition: Composition, definitions: &[Definition<Fields>]) -> Option<Fields> {
    match effective(composition, definitions) {
        Effective::One(definition) => Some(definition.says.clone()),
        Effective::Nothing | Effective::All(_) | Effective::Ambiguous(_) => None,
    }
}

/// Fieldwise merging, for comparison only (example 6.3): definitions stand in the order of their sources.
fn fieldwise(_: Composition, definitions: &[Definition<Fields>]) -> Option<Fields> {
    let fields = definitions.first()?.says.len();
    let merged = (0..fields)
        .map(|field| definitions.iter().find_map(|definition| definition.says.get(field).copied().flatten()))
        .collect();
    Some(merged)
}

fn lowest(_: Composition, definitions: &[Definition<Fields>]) -> Option<Fields> {
    definitions.last().map(|definition| definition.says.clone())
}

/// The definitions of a pattern: a number for each source, 0 where it does not define the name, else one more than the
/// bits of its fields.
fn definitions(order: &[Origin], pattern: &[usize], fields: usize) -> Vec<Definition<Fields>> {
    let defined = order.iter().zip(pattern).enumerate().filter(|(_, (_, code))| **code > 0);
    defined
        .map(|(rank, (origin, code))| Definition {
            origin: *origin,
            says: (0..fields).map(|field| ((code - 1) >> field & 1 == 1).then_some(rank)).collect(),
        })
        .collect()
}

/// The patterns of `sources` numbers below `kinds`.
fn patterns(sources: usize, kinds: usize) -> impl Iterator<Item = Vec<usize>> {
    let count = kinds.pow(u32::try_from(sources).unwrap_or(0));
    (0..count).map(move |mut code| {
        (0..sources)
            .map(|_| {
                let digit = code % kinds;
                code /= kinds;
                digit
            })
            .collect()
    })
}

fn mechanisms() -> &'static [Mechanism] {
    every_variant!(crate::sources::named::Mechanism: McpServer, Skill, Subagent, Hook, ClaudeMd)
}

fn every_pattern(trial: &mut Trial<'_>, choose: Choose) -> Outcome {
    let most_sources = trial.bound("sources", 4, 4);
    let most_fields = trial.bound("fields", 4, 4);
    for mechanism in mechanisms() {
        let Composition::Highest(order) = mechanism.composition() else { continue };
        let sources = order.len().min(most_sources);
        for fields in 1..=most_fields {
            trial.every(patterns(sources, 1 + (1 << fields)), |pattern| {
                let definitions = definitions(order, &pattern, fields);
                let chosen = choose(mechanism.composition(), &definitions);
                let highest = definitions.first().map(|definition| definition.says.clone());
                ensure!(
                    chosen == highest,
                    "{mechanism:?}, sources in order define {:?} (field by field, the rank of who wrote it): {chosen:?} \
                     counts instead of {highest:?}",
                    definitions.iter().map(|definition| &definition.says).collect::<Vec<_>>()
                );
                Ok(())
            })?;
        }
    }
    Ok(None)
}

fn not_total(trial: &mut Trial<'_>) -> Outcome {
    trial.every([2usize], |count| {
        let twice: Vec<Definition<Fields>> =
            (0..count).map(|n| Definition { origin: Origin::Project, says: vec![Some(n)] }).collect();
        let chosen = effective(Mechanism::Subagent.composition(), &twice);
        ensure!(
            matches!(chosen, Effective::One(_)),
            "{count} agent files of one source with one name: none of them is the highest"
        );
        Ok(())
    })
}

/// `strength` says which of the entries counts, by their scope and their place among the files.
fn servers(trial: &mut Trial<'_>, strength: fn(&(Scope, Scope)) -> Scope) -> Outcome {
    trial.over("every subset of the scopes --mcp-config, local, project and user, in two orders of reading");
    let scopes = every_variant!(crate::mcp::servers::Scope: Enterprise, Dynamic, Local, Project, User);
    let ordinary: Vec<Scope> = scopes.iter().copied().filter(|scope| *scope != Scope::Enterprise).collect();
    let cases = (1..1u32 << ordinary.len()).flat_map(|code| [false, true].map(|backwards| (code, backwards)));
    trial.every(cases, |(code, backwards)| {
        let mut present: Vec<Scope> = ordinary
            .iter()
            .copied()
            .enumerate()
            .filter(|(n, _)| code >> n & 1 == 1)
            .map(|(_, s)| s)
            .collect();
        if backwards {
            present.reverse();
        }
        let url = |scope: Scope| format!("https://{scope:?}.example/mcp").to_lowercase();
        let files: Vec<(Scope, Map<String, Value>)> = present
            .iter()
            .map(|scope| {
                let entry = json!({"type": "http", "url": url(*scope)});
                (*scope, Map::from_iter([("db".to_owned(), entry)]))
            })
            .collect();
        let listed: Vec<(Scope, &Map<String, Value>)> =
            files.iter().map(|(scope, map)| (*scope, map)).collect();
        let started: Vec<String> = resolve(&listed, &Policy::default())
            .into_iter()
            .filter(|server| server.absent.is_none())
            .filter_map(|server| match server.transport {
                Some(Transport::Remote { url, .. }) => Some(url),
                _ => None,
            })
            .collect();
        // What a rule by place would take: the last file read is the strongest.
        let last = present.last().copied().unwrap_or(Scope::User);
        let expected = present.iter().map(|scope| strength(&(*scope, last))).min().map(url);
        ensure!(
            started.len() == 1 && started.first() == expected.as_ref(),
            "defined in {present:?}: started {started:?}, expected {expected:?}"
        );
        Ok(())
    })
}

fn orders(trial: &mut Trial<'_>) -> Outcome {
    trial.every(mechanisms(), |mechanism| {
        match mechanism.composition() {
            Composition::Highest(order) => {
                let distinct: BTreeSet<&Origin> = order.iter().collect();
                ensure!(distinct.len() == order.len(), "{mechanism:?}: a source is named twice in {order:?}");
            }
            Composition::All => {
                ensure!(
                    matches!(mechanism, Mechanism::Hook | Mechanism::ClaudeMd),
                    "{mechanism:?} is said to add up"
                );
            }
        }
        Ok(())
    })
}

fn fieldwise_count(trial: &mut Trial<'_>) -> Outcome {
    let sources = trial.bound("sources", 4, 4);
    let fields = trial.bound("fields", 4, 4);
    let Composition::Highest(order) = Mechanism::McpServer.composition() else {
        return Err(Failure::Unknown("servers have no order".to_owned()));
    };
    let mut told = Vec::new();
    for k in 1..=sources {
        for f in 1..=fields {
            let mut results: BTreeSet<Vec<usize>> = BTreeSet::new();
            trial.every(patterns(k, 1 + (1 << f)), |pattern| {
                let merged = fieldwise(Mechanism::McpServer.composition(), &definitions(order, &pattern, f));
                results.extend(merged.and_then(|merged| merged.into_iter().collect::<Option<Vec<usize>>>()));
                Ok(())
            })?;
            let unwritten =
                results.iter().filter(|from| from.windows(2).any(|pair| pair.first() != pair.last())).count();
            let all = k.pow(u32::try_from(f).unwrap_or(0));
            if results.len() != all || unwritten != all - k {
                return Err(Failure::refuted(format!(
                    "k = {k}, f = {f}: {} results, {unwritten} that no source wrote",
                    results.len()
                )));
            }
            if k == f {
                told.push(format!("k = f = {k}: {unwritten} of {all}"));
            }
        }
    }
    Ok(Some(Evidence::said(format!("results that no source wrote: {}", told.join(", ")))))
}

fn adding_a_hook(trial: &mut Trial<'_>, combined: fn(&[HookDecision]) -> HookDecision) -> Outcome {
    trial.over("other hooks <= 3 x one more x answers of rules");
    let parameters = trial.profile().agent_loop;
    let rules = super::p4_2::rule_answers();
    let all = super::blocking::decisions();
    let cases = super::blocking::others().into_iter().flat_map(|list| {
        all.iter().flat_map(move |more| {
            let list = list.clone();
            rules.iter().map(move |answer| (list.clone(), *more, *answer))
        })
    });
    trial.every(cases, |(list, more, answer)| {
        let before = rule(&parameters, combined(&list), answer).decision;
        let longer = [list.as_slice(), &[more]].concat();
        let after = rule(&parameters, combined(&longer), answer).decision;
        ensure!(
            before != HookDecision::Deny || matches!(after, HookDecision::Deny | HookDecision::Defer),
            "hooks {list:?}, rules {answer:?}: refused; with {more:?} more: {}",
            after.word()
        );
        Ok(())
    })
}
