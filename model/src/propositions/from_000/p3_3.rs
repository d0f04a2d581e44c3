//! Proposition 3.3: responses are matched to requests by id.

use crate::mcp::correlation::{IdRule, Matched, Matching, OpenRequests};
use crate::mcp::jsonrpc::{Message, RequestId};
use crate::profile::ProfileName;
use crate::propositions::{
    Arrow, Check, Difference, Drawing, Draws, Evidence, Failure, Hypothesis, Method, Outcome, Proposition,
    Real, RealSubject, Trial, Variation, ensure,
};
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.3",
    title: "Responses are matched to requests by id",
    notion: "Q is the set of requests that are sent and unanswered, id the map from Q to their ids. Ids are integers or \
             strings: 1 and \"1\" are two ids, null is none; a notification has no id.",
    statement: "Where id is injective on Q, every response matches at most one request, the matching is the same in every \
                order of arrival, and no notification matches anything; where it is not, a response may match two.",
    source: "000, proposition 3.3; MCP specification, base protocol",
    hypotheses: &[Hypothesis {
        text: "id is injective on Q",
        why: "two open requests with one id are two candidates for one response",
    }],
    checks: &[
        Check {
            name: "every-order",
            method: Method::Bounded,
            claim: "over every injective assignment of ids of both types, every order of arrival, a notification at every \
                    place and each response sent twice, each request gets its own response and nothing else matches",
            run: |trial| every_order(trial, Rule::Table),
        },
        Check {
            name: "far-beyond",
            method: Method::Random,
            claim: "the same for up to 10,000 requests in flight",
            run: |trial| far_beyond(trial, Rule::Table),
        },
        Check {
            name: "ids-nobody-used",
            method: Method::Enumeration,
            claim: "a response whose id is of another type than the open request's, or null, matches nothing",
            run: ids_nobody_used,
        },
        Check {
            name: "not-injective-may-fail",
            method: Method::Witness,
            claim: "without injectivity a response may match two requests",
            run: not_injective,
        },
        Check {
            name: "the-table-keeps-it-injective",
            method: Method::Bounded,
            claim: "the client's table refuses every id that is open, so the hypothesis holds of whatever it sends",
            run: kept_injective,
        },
    ],
    ablations: &[Variation {
        name: "not-injective",
        text: "any assignment of ids",
        run: |trial| match not_injective(trial)? {
            Some(witness) => Err(witness.into()),
            None => Ok(None),
        },
    }],
    mutants: &[
        Variation {
            name: "by-order-of-arrival",
            text: "a response answers the oldest open request",
            run: |trial| every_order(trial, Rule::Oldest),
        },
        Variation {
            name: "numbers-and-strings-alike",
            text: "1 and \"1\" are compared by their printed form",
            run: |trial| every_order(trial, Rule::Printed),
        },
        Variation {
            name: "answered-ids-stay",
            text: "an answered id is not taken out of the table",
            run: |trial| every_order(trial, Rule::NeverClosed),
        },
        Variation {
            name: "notification-answers-the-oldest",
            text: "a message without an id answers the oldest open request",
            run: |trial| every_order(trial, Rule::NotificationAnswers),
        },
    ],
    differences: &[Difference {
        profile: ProfileName::ClaudeCode,
        check: "ids-nobody-used",
        why: "the string form of an integer id is accepted where the integer is open (mcp 3.3)",
    }],
    real: Some(Real {
        subject: RealSubject::IdMatching,
        text: "a server process that holds its answers back and sends them in reverse: every call gets its own",
    }),
};

/// How a response finds its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The model's own table.
    Table,
    Oldest,
    Printed,
    NeverClosed,
    NotificationAnswers,
}

/// The open requests of one sender, numbered in the order of sending.
#[derive(Debug)]
struct Open {
    rule: Rule,
    table: OpenRequests<usize>,
    // What a wrong rule looks at instead of the table.
    sent: Vec<(RequestId, usize)>,
}

impl Open {
    fn new(rule: Rule, ids: &[RequestId]) -> Result<Self, Evidence> {
        let mut table = OpenRequests::new(Matching::Strict, IdRule::NotWhileOpen);
        let sent: Vec<(RequestId, usize)> = ids.iter().cloned().zip(0..).collect();
        for (id, number) in &sent {
            table
                .open(id.clone(), *number)
                .map_err(|why| Evidence::said(format!("id {id} is refused: {why}")))?;
        }
        Ok(Self { rule, table, sent })
    }

    /// The request that a message answers, by the rule.
    fn hear(&mut self, message: &Message) -> Option<usize> {
        let id = match (message.id(), self.rule) {
            (Some(id), _) => id.clone(),
            (None, Rule::NotificationAnswers) => return self.take(|_| true),
            (None, _) => return None,
        };
        match self.rule {
            Rule::Table | Rule::NotificationAnswers => match self.table.answer(&id) {
                Matched::Request(number) | Matched::Coerced(number) => Some(number),
                Matched::AlreadyAnswered | Matched::Unknown { .. } => None,
            },
            Rule::Oldest => self.take(|_| true),
            Rule::Printed => {
                let printed = |id: &RequestId| id.to_string().trim_matches('"').to_owned();
                self.take(|open| printed(open) == printed(&id))
            }
            Rule::NeverClosed => self.sent.iter().find(|(open, _)| *open == id).map(|(_, number)| *number),
        }
    }

    fn take(&mut self, which: impl Fn(&RequestId) -> bool) -> Option<usize> {
        let at = self.sent.iter().position(|(id, _)| which(id))?;
        Some(self.sent.remove(at).1)
    }
}

/// The ids that the small cases are made of.
fn pool() -> [RequestId; 5] {
    [1.into(), "1".into(), 2.into(), "2".into(), "a".into()]
}

/// The injective assignments of ids to `n` requests.
fn assignments(n: usize) -> Vec<Vec<RequestId>> {
    let mut lists: Vec<Vec<RequestId>> = vec![Vec::new()];
    for _ in 0..n {
        lists = lists
            .iter()
            .flat_map(|list| {
                pool().into_iter().filter(|id| !list.contains(id)).map(|id| {
                    let mut longer = list.clone();
                    longer.push(id);
                    longer
                })
            })
            .collect();
    }
    lists
}

/// The orders of `n` things.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut lists: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..n {
        lists = lists
            .iter()
            .flat_map(|list| {
                (0..n)
                    .filter(|k| !list.contains(k))
                    .map(|k| [list.as_slice(), &[k]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    lists
}

/// Plays one case: the responses in an order, a notification before the one at a place, each response once more at the
/// end.
fn play(rule: Rule, ids: &[RequestId], order: &[usize], notification: Option<usize>) -> Result<(), Evidence> {
    let mut open = Open::new(rule, ids)?;
    let mut wire: Vec<(Message, Option<usize>)> = Vec::with_capacity(2 * ids.len() + 1);
    for (place, number) in order.iter().enumerate() {
        if notification == Some(place) {
            wire.push((Message::notification("notifications/message", None), None));
        }
        if let Some(id) = ids.get(*number) {
            wire.push((Message::response(id.clone(), Value::Null), Some(*number)));
        }
    }
    if notification == Some(order.len()) {
        wire.push((Message::notification("notifications/message", None), None));
    }
    let again: Vec<(Message, Option<usize>)> =
        ids.iter().map(|id| (Message::response(id.clone(), Value::Null), None)).collect();
    wire.extend(again);
    for (at, (message, expected)) in wire.iter().enumerate() {
        let found = open.hear(message);
        if found == *expected {
            continue;
        }
        let name =
            |number: Option<usize>| number.map_or("nothing".to_owned(), |n| format!("request {}", n + 1));
        let mut arrows: Vec<Arrow> = ids
            .iter()
            .enumerate()
            .map(|(n, id)| Arrow::new("client", "server", format!("request {} with id {id}", n + 1)))
            .collect();
        arrows.extend(wire.iter().take(at + 1).map(|(message, _)| {
            let text =
                message.id().map_or("a notification".to_owned(), |id| format!("response with id {id}"));
            Arrow::new("server", "client", text)
        }));
        let text = format!("the last message matches {}, it should match {}", name(found), name(*expected));
        return Err(Evidence::said(text).with_drawing(Drawing::Exchange(arrows)));
    }
    Ok(())
}

fn every_order(trial: &mut Trial<'_>, rule: Rule) -> Outcome {
    let most = trial.bound("requests in flight", 5, 5);
    for n in 0..=most {
        let orders = orders(n);
        for ids in assignments(n) {
            for notification in (0..=n).map(Some).chain([None]) {
                trial.every(&orders, |order| play(rule, &ids, order, notification))?;
            }
        }
    }
    Ok(None)
}

fn far_beyond(trial: &mut Trial<'_>, rule: Rule) -> Outcome {
    trial.over("requests in flight <= 10000");
    trial.sampled(30, |draws: &mut Draws<'_>| {
        let n = draws.index(10_001);
        // One draw a run decides the types: every k-th id is the string of the number before it.
        let strings = 2 + draws.index(6);
        let ids: Vec<RequestId> = (0..n)
            .map(|k| {
                let number = i64::try_from(k).unwrap_or(0);
                if k % strings == 1 {
                    RequestId::String((number - 1).to_string())
                } else {
                    RequestId::Integer(number)
                }
            })
            .collect();
        let mut order: Vec<usize> = (0..n).collect();
        draws.shuffle(&mut order);
        let notification = draws.index(n + 1);
        play(rule, &ids, &order, Some(notification))
    })
}

fn ids_nobody_used(trial: &mut Trial<'_>) -> Outcome {
    trial.over("ids 0, 1, -1, \"0\", \"1\", \"01\", \"a\", \"\" against each other, and null");
    let matching = trial.profile().mcp.matching.value;
    let ids: [RequestId; 8] =
        [0.into(), 1.into(), (-1).into(), "0".into(), "1".into(), "01".into(), "a".into(), "".into()];
    let cases = ids.iter().flat_map(|open| ids.iter().map(move |answer| (open, answer)));
    trial.every(cases, |(open, answer)| {
        let mut table = OpenRequests::new(matching, IdRule::NotWhileOpen);
        table.open(open.clone(), ()).map_err(|why| Evidence::said(why.to_string()))?;
        let matched = matches!(table.answer(answer), Matched::Request(()) | Matched::Coerced(()));
        if matched == (open == answer) {
            return Ok(());
        }
        let arrows = vec![
            Arrow::new("client", "server", format!("request with id {open}")),
            Arrow::new("server", "client", format!("response with id {answer}")),
        ];
        Err(Evidence::said(format!("a response with id {answer} matches the open request with id {open}"))
            .with_drawing(Drawing::Exchange(arrows)))
    })?;
    trial.every([json!(null), json!(1.5), json!(true)], |value| {
        ensure!(RequestId::from_value(&value).is_err(), "{value} is read as an id");
        Ok(())
    })
}

/// What a client without a table that refuses ids would do: all open requests with the id are candidates.
fn candidates<'a>(ids: &'a [RequestId], answer: &'a RequestId) -> impl Iterator<Item = usize> + 'a {
    ids.iter().enumerate().filter(move |(_, id)| *id == answer).map(|(number, _)| number)
}

fn not_injective(trial: &mut Trial<'_>) -> Outcome {
    let most = trial.bound("requests in flight", 3, 5);
    let cases = (1..=most).flat_map(|n| {
        (0..pool().len().pow(u32::try_from(n).unwrap_or(0))).map(move |mut code| {
            let pool = pool();
            (0..n)
                .filter_map(|_| {
                    let id = pool.get(code % pool.len()).cloned();
                    code /= pool.len();
                    id
                })
                .collect::<Vec<_>>()
        })
    });
    trial.smallest(cases, |ids| {
        let answer = ids.first()?;
        let matches: Vec<usize> = candidates(&ids, answer).collect();
        (matches.len() > 1).then(|| {
            let arrows = ids
                .iter()
                .map(|id| Arrow::new("client", "server", format!("request with id {id}")))
                .chain([Arrow::new("server", "client", format!("response with id {answer}"))])
                .collect();
            Evidence::said(format!("{} requests with the id {answer}: one response matches both", ids.len()))
                .with_drawing(Drawing::Exchange(arrows))
        })
    })
}

fn kept_injective(trial: &mut Trial<'_>) -> Outcome {
    let most = trial.bound("requests in flight", 4, 5);
    for n in 0..=most {
        trial
            .every(assignments(n), |ids| {
                let mut open = Open::new(Rule::Table, &ids)?;
                for id in pool() {
                    let refused = open.table.open(id.clone(), n).is_err();
                    ensure!(refused == ids.contains(&id), "id {id} beside {ids:?}: refused {refused}");
                    open.table.abandon(&id);
                    if let Some(number) = ids.iter().position(|other| *other == id) {
                        open.table.open(id, number).map_err(|why| Evidence::said(why.to_string()))?;
                    }
                }
                Ok(())
            })
            .map_err(|failure: Failure| failure)?;
    }
    Ok(None)
}
