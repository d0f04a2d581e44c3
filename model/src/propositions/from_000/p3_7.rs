//! Proposition 3.7: errors that are returned as results keep the loop's invariant.

use crate::agent_loop::CallEnd;
use crate::invariants::Invariant;
use crate::mcp::ends::{CallNames, End, EndClass, Theta, tool_result};
use crate::mcp::jsonrpc::ErrorObject;
use crate::message::{Block, Message, Role, pairing_faults};
use crate::mutant::Mutant;
use crate::propositions::{
    Check, Draws, Evidence, Exploration, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation,
    ensure, every_variant,
};
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.7",
    title: "Errors returned as results keep the pairing",
    notion: "A tools/call ends in (i) a result, (ii) a result with isError, (iii) a protocol error, (iv) no answer. Theta \
             maps ends to tool_results; it may be partial. The pairing is Loop 3.4: each tool_use has exactly one \
             tool_result in the next user message.",
    statement: "The pairing holds exactly where the ends that occur lie in theta's domain and theta gives one result \
                each; so a total theta keeps it under every end.",
    source: "000, proposition 3.7; 004, ends of calls",
    hypotheses: &[
        Hypothesis {
            text: "theta is defined on every end that occurs",
            why: "a call whose end has no result leaves its tool_use unpaired, and the API refuses the next request",
        },
        Hypothesis {
            text: "theta gives exactly one result for an end",
            why: "two results of one call are refused like none",
        },
    ],
    checks: &[
        Check {
            name: "theta-is-total",
            method: Method::Enumeration,
            claim: "theta has a value for every end that the client tells apart (401, timeout, closed connection, \
                    interrupt and malformed answers included), and every class has such an end",
            run: theta_is_total,
        },
        Check {
            name: "every-theta-in-messages",
            method: Method::Bounded,
            claim: "over the sixteen partial thetas and one that gives two results, every end of up to three parallel \
                    calls over two turns and every order of completion, the message list is paired exactly where the \
                    statement says so",
            run: |trial| in_messages(trial, |theta, ends| ends.iter().all(|end| theta.gives(*end) == 1)),
        },
        Check {
            name: "every-theta-in-the-loop",
            method: Method::Explored,
            claim: "over the sixteen partial thetas and every set of ends that may occur, up to three parallel calls over \
                    two turns explored in every order: I-PAIR and I-TOTAL break exactly where an end lies outside theta",
            run: in_the_loop,
        },
        Check {
            name: "every-end-of-a-call",
            method: Method::Explored,
            claim: "with refusals, closed connections, wrong ids, timeouts and an interrupt besides, no invariant breaks",
            run: |trial| every_end(trial, None),
        },
        Check {
            name: "random-sessions",
            method: Method::Random,
            claim: "the same for message lists of up to forty turns with up to twelve calls each",
            run: random_sessions,
        },
    ],
    ablations: &[
        Variation {
            name: "undefined-on-protocol-errors",
            text: "theta is not defined on (iii)",
            run: |trial| partial(trial, &[EndClass::ProtocolError]),
        },
        Variation {
            name: "undefined-on-no-answer",
            text: "theta is not defined on (iv)",
            run: |trial| partial(trial, &[EndClass::NoAnswer]),
        },
        Variation {
            name: "two-results",
            text: "theta gives a protocol error two results",
            run: |trial| every_end(trial, Some(Mutant::ReturnTwice)),
        },
    ],
    mutants: &[
        Variation {
            name: "drop-no-answer",
            text: "a call without an answer gets no result",
            run: |trial| every_end(trial, Some(Mutant::DropNoAnswer)),
        },
        Variation {
            name: "drop-refusal",
            text: "a call refused by a rule gets no result",
            run: |trial| every_end(trial, Some(Mutant::DropRefusal)),
        },
        Variation {
            name: "two-results-are-as-good-as-one",
            text: "the pairing is said to hold where each call has at least one result",
            run: |trial| in_messages(trial, |theta, ends| ends.iter().all(|end| theta.gives(*end) >= 1)),
        },
    ],
    differences: &[],
    real: None,
};

/// A theta by its domain: a bit a class; and the class that gets two results.
#[derive(Clone, Copy, Debug)]
struct Partial {
    domain: u8,
    twice: Option<EndClass>,
}

/// The classes, in the order of the proposition.
fn classes() -> &'static [EndClass] {
    every_variant!(crate::mcp::ends::EndClass: Result, ErrorResult, ProtocolError, NoAnswer)
}

impl Partial {
    /// How many results it gives an end.
    fn gives(self, end: EndClass) -> usize {
        if self.domain >> end as u8 & 1 == 0 { 0 } else { 1 + usize::from(self.twice == Some(end)) }
    }

    fn words(self) -> String {
        let domain: Vec<String> = classes()
            .iter()
            .filter(|class| self.gives(**class) > 0)
            .map(|class| format!("{class:?}"))
            .collect();
        match self.twice {
            Some(twice) => format!("theta on {{{}}}, twice on {twice:?}", domain.join(", ")),
            None => format!("theta on {{{}}}", domain.join(", ")),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let doubled = Self { domain: 15, twice: Some(EndClass::ProtocolError) };
        (0..16).map(|domain| Self { domain, twice: None }).chain([doubled])
    }
}

/// An end of each class.
fn example(class: EndClass) -> End {
    match class {
        EndClass::Result => End::Result(json!({"content": [{"type": "text", "text": "ok"}]})),
        EndClass::ErrorResult => {
            End::Result(json!({"content": [{"type": "text", "text": "no"}], "isError": true}))
        }
        EndClass::ProtocolError => End::ProtocolError(ErrorObject::new(-32603, "internal error")),
        EndClass::NoAnswer => End::ConnectionClosed,
    }
}

/// Every end that the client tells apart. The match makes a new one a compile error here.
fn ends() -> Vec<End> {
    let all = vec![
        example(EndClass::Result),
        example(EndClass::ErrorResult),
        End::Result(Value::Null),
        End::Result(json!({"content": "no list"})),
        example(EndClass::ProtocolError),
        End::NotAResponse,
        End::TimedOut { after_ms: 1_000 },
        End::Idle { after_ms: 1_000 },
        End::ConnectionClosed,
        End::HttpStatus { status: 500, body: String::new() },
        End::NeedsAuthorization,
        End::SessionExpired,
        End::Interrupted,
        End::InputNotServed { method: "sampling/createMessage".to_owned() },
        End::TooManyInputRounds { rounds: 10 },
        End::NoSuchTool { name: "mcp__s__t".to_owned() },
    ];
    for end in &all {
        match end {
            End::Result(_)
            | End::ProtocolError(_)
            | End::NotAResponse
            | End::TimedOut { .. }
            | End::Idle { .. }
            | End::ConnectionClosed
            | End::HttpStatus { .. }
            | End::NeedsAuthorization
            | End::SessionExpired
            | End::Interrupted
            | End::InputNotServed { .. }
            | End::TooManyInputRounds { .. }
            | End::NoSuchTool { .. } => {}
        }
    }
    all
}

fn theta_is_total(trial: &mut Trial<'_>) -> Outcome {
    trial.over("every end of a tools/call");
    let theta = trial.profile().mcp.theta.value;
    let names = CallNames { server: "s", tool: "t", modern: false };
    trial.every(ends(), |end| {
        let result = tool_result(&end, names, theta);
        ensure!(!result.text.is_empty(), "{end:?} has a result without text");
        let error = !matches!(end, End::Result(_)) || end.class() != EndClass::Result;
        ensure!(!error || result.is_error, "{end:?} is returned as if it had succeeded");
        Ok(())
    })?;
    trial.every(classes(), |class| {
        ensure!(ends().iter().any(|end| end.class() == *class), "no end is of class {class:?}");
        Ok(())
    })
}

/// The message list of a session in which each turn's calls end as given, completed in the order given.
fn messages(theta: Partial, shown: Theta, turns: &[(Vec<EndClass>, Vec<usize>)]) -> Vec<Message> {
    let mut list = vec![Message::text(Role::User, "go on")];
    for (turn, (ends, order)) in turns.iter().enumerate() {
        let id = |call: usize| format!("t{turn}-{call}");
        let calls = (0..ends.len())
            .map(|call| Block::ToolUse { id: id(call), name: "mcp__s__t".to_owned(), input: json!({}) })
            .collect();
        let mut results = Vec::new();
        for call in order {
            let Some(class) = ends.get(*call) else { continue };
            let result =
                tool_result(&example(*class), CallNames { server: "s", tool: "t", modern: false }, shown);
            for _ in 0..theta.gives(*class) {
                results.push(Block::ToolResult {
                    tool_use_id: id(*call),
                    content: result.text.clone(),
                    is_error: result.is_error,
                });
            }
        }
        list.push(Message { role: Role::Assistant, content: calls });
        list.push(Message { role: Role::User, content: results });
    }
    list
}

/// The lists of `n` ends.
fn lists(n: usize) -> Vec<Vec<EndClass>> {
    let mut lists = vec![Vec::new()];
    for _ in 0..n {
        lists = lists
            .iter()
            .flat_map(|list: &Vec<EndClass>| {
                classes().iter().map(|class| [list.as_slice(), &[*class]].concat())
            })
            .collect();
    }
    lists
}

fn orders(n: usize) -> Vec<Vec<usize>> {
    match n {
        1 => vec![vec![0]],
        2 => vec![vec![0, 1], vec![1, 0]],
        _ => vec![vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0]],
    }
}

fn in_messages(trial: &mut Trial<'_>, stated: fn(Partial, &[EndClass]) -> bool) -> Outcome {
    let most = trial.bound("parallel calls", 3, 3);
    trial.over("2 turns");
    let shown = trial.profile().mcp.theta.value;
    for theta in Partial::all() {
        for n in 1..=most {
            // The second turn has one call less, so that both turns matter and the domain stays small.
            let second = lists(n.saturating_sub(1).max(1));
            for first in lists(n) {
                let cases =
                    orders(n).into_iter().flat_map(|order| second.iter().map(move |s| (order.clone(), s)));
                trial.every(cases, |(order, second)| {
                    let back = (0..second.len()).rev().collect();
                    let list = messages(theta, shown, &[(first.clone(), order), (second.clone(), back)]);
                    let faults = pairing_faults(&list);
                    let holds = stated(theta, &first) && stated(theta, second);
                    ensure!(
                        faults.is_empty() == holds,
                        "{}: calls that end in {first:?}, then {second:?}: {faults:?}",
                        theta.words()
                    );
                    Ok(())
                })?;
            }
        }
    }
    Ok(None)
}

fn random_sessions(trial: &mut Trial<'_>) -> Outcome {
    let shown = trial.profile().mcp.theta.value;
    trial.sampled(300, |draws: &mut Draws<'_>| {
        let theta = Partial { domain: u8::try_from(15 - draws.below(16)).unwrap_or(15), twice: None };
        let turns: Vec<(Vec<EndClass>, Vec<usize>)> = (0..1 + draws.index(40))
            .map(|_| {
                let ends: Vec<EndClass> =
                    (0..1 + draws.index(12)).filter_map(|_| draws.pick(classes()).copied()).collect();
                let mut order: Vec<usize> = (0..ends.len()).collect();
                draws.shuffle(&mut order);
                (ends, order)
            })
            .collect();
        let paired = pairing_faults(&messages(theta, shown, &turns)).is_empty();
        let stated = turns.iter().flat_map(|(ends, _)| ends).all(|end| theta.gives(*end) == 1);
        ensure!(paired == stated, "{}: paired {paired} over {} turns", theta.words(), turns.len());
        Ok(())
    })
}

/// A scenario of up to three parallel calls to a server whose tool may end in each of these ways, over two turns.
fn scenario(calls: usize, ends: &[&str]) -> Value {
    let any: Vec<Value> = ends
        .iter()
        .map(|end| match *end {
            "result" => json!({"result": "ok"}),
            "error" => json!({"error": "no"}),
            "protocol_error" => json!({"protocol_error": "internal error"}),
            other => json!({other: true}),
        })
        .collect();
    let calls: Vec<Value> =
        (0..calls).map(|n| json!({"id": format!("t{n}"), "tool": "mcp__s__t", "input": {}})).collect();
    let tool = json!({
        "name": "t", "description": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}
    });
    json!({
        "harness": {"settings": {"user": {"permissions": {"allow": ["mcp__s"]}}}},
        "world": {
            "model": [{"calls": calls}, {"calls": calls}],
            "tools": {"mcp__s__t": [{"any_of": any}]},
            "servers": {"s": {"versions": ["2026-07-28"], "tools": [tool]}},
        },
    })
}

fn in_the_loop(trial: &mut Trial<'_>) -> Outcome {
    let most = trial.bound("parallel calls", 3, 4);
    let words = ["result", "error", "protocol_error", "silent"];
    for calls in 1..=most {
        for occurring in 1..16u8 {
            let ends: Vec<&str> = words
                .iter()
                .enumerate()
                .filter(|(n, _)| occurring >> n & 1 == 1)
                .map(|(_, end)| *end)
                .collect();
            // With three calls only the thetas that lack one class, or none, or all: the others add nothing new to them.
            let domains = (0..16u8).filter(|domain| calls < 3 || domain.count_ones() >= 3 || *domain == 0);
            for domain in domains {
                let question = Exploration::of(scenario(calls, &ends))
                    .judging([Invariant::Pair, Invariant::Total])
                    .under(Some(Mutant::DropEnds(!domain & 15)));
                let explored = trial.explore(&question)?;
                let holds = explored.broken.is_empty();
                if holds != (occurring & !domain == 0) {
                    let theta = Partial { domain, twice: None };
                    return Err(Failure::refuted(format!(
                        "{calls} calls that end in {ends:?}, {}: the pairing {}",
                        theta.words(),
                        if holds { "holds" } else { "breaks" }
                    )));
                }
            }
        }
    }
    Ok(None)
}

fn every_end(trial: &mut Trial<'_>, mutant: Option<Mutant>) -> Outcome {
    let ends = ["result", "error", "protocol_error", "silent", "closes", "wrong_id"];
    let mut question = scenario(2, &ends);
    if let Some(model) = question.pointer_mut("/world/model/0/calls").and_then(Value::as_array_mut) {
        model.push(json!({"id": "denied", "tool": "Bash", "input": {"command": "rm x"}}));
        model.push(json!({"id": "asked", "tool": "Bash", "input": {"command": "make"}}));
    }
    if let Some(permissions) = question.pointer_mut("/harness/settings/user/permissions") {
        *permissions = json!({"allow": ["mcp__s"], "deny": ["Bash(rm *)"]});
    }
    if let Some(world) = question.get_mut("world").and_then(Value::as_object_mut) {
        world.insert("interrupt_seconds".to_owned(), json!(1));
    }
    let judged = [Invariant::Pair, Invariant::Total, Invariant::Refusal];
    let explored = trial.unbroken(&Exploration::of(question).judging(judged).under(mutant))?;
    // Nothing is checked of an end that never occurs.
    let expected = [
        CallEnd::Result,
        CallEnd::ErrorResult,
        CallEnd::ProtocolError,
        CallEnd::NoAnswer,
        CallEnd::TimedOut,
        CallEnd::RefusedByRule,
        CallEnd::RefusedUnanswered,
        CallEnd::Interrupted,
    ];
    match expected.iter().find(|end| !explored.reaches(&format!("call:{}", end.word()))) {
        Some(end) => Err(Failure::Unknown(format!("no run ends a call in {}", end.word()))),
        None => Ok(None),
    }
}

/// The loop under a theta that is not defined on these classes, while every end may occur.
fn partial(trial: &mut Trial<'_>, undefined: &[EndClass]) -> Outcome {
    let mask = undefined.iter().fold(0u8, |mask, class| mask | 1 << *class as u8);
    let question = Exploration::of(scenario(1, &["result", "error", "protocol_error", "silent"]))
        .judging([Invariant::Pair, Invariant::Total])
        .under(Some(Mutant::DropEnds(mask)));
    trial.unbroken(&question).map(|_| None).map_err(|failure| match failure {
        Failure::Refuted(evidence) => Failure::Refuted(Evidence {
            text: format!("theta is undefined on {undefined:?} and such an end occurs: {}", evidence.text),
            ..evidence
        }),
        other => other,
    })
}
