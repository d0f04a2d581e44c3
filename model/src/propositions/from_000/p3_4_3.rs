//! Proposition 3.4 (3): intervals that meet always agree.

use super::versions::{Handshake, LINE, Set, drawing};
use crate::propositions::{Check, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.4.3",
    title: "Intervals that meet always agree",
    notion: "C, S, c* and s* are as in 3.4.1; a set of versions is an interval when no version of the line lies \
             between two members without being one.",
    statement: "Where both sides offer their newest, and C and S are intervals that have a version in common, the \
                handshake succeeds.",
    source: "000, proposition 3.4 (3)",
    hypotheses: &[
        Hypothesis {
            text: "C and S are intervals",
            why: "a gap can hide exactly the version that the other side's newest falls on (the witness of 3.4.2)",
        },
        Hypothesis {
            text: "both sides offer their newest",
            why: "a server that falls back on an old version may leave the client's interval at its lower end",
        },
        Hypothesis { text: "C and S have a version in common", why: "disjoint sets fail (3.4.2)" },
    ],
    checks: &[Check {
        name: "intervals-agree",
        method: Method::Bounded,
        claim: "over every pair of intervals that meet, with both newest offered, client and server agree",
        run: |trial| law(trial, |c, s| intervals(c, s) && meet(c, s), newest),
    }],
    ablations: &[
        Variation {
            name: "not-intervals",
            text: "any sets that meet",
            run: |trial| law(trial, meet, newest),
        },
        Variation {
            name: "not-the-newest",
            text: "the server falls back on any version of its own",
            run: |trial| {
                law(
                    trial,
                    |c, s| intervals(c, s) && meet(c, s),
                    |c, s| {
                        let fallbacks = s.members();
                        fallbacks.map(|fallback| Handshake { fallback, ..Handshake::newest(c, s) }).collect()
                    },
                )
            },
        },
        Variation { name: "disjoint", text: "any two intervals", run: |trial| law(trial, intervals, newest) },
    ],
    mutants: &[Variation {
        name: "server-answers-its-oldest",
        text: "a server that does not have c* answers its oldest version",
        run: |trial| {
            law(
                trial,
                |c, s| intervals(c, s) && meet(c, s),
                |c, s| {
                    let oldest = s.members().next().unwrap_or(0);
                    vec![Handshake { fallback: oldest, ..Handshake::newest(c, s) }]
                },
            )
        },
    }],
    differences: &[],
    real: None,
};

fn intervals(client: Set, server: Set) -> bool {
    client.is_interval() && server.is_interval()
}

fn meet(client: Set, server: Set) -> bool {
    !client.common(server).is_empty()
}

fn newest(client: Set, server: Set) -> Vec<Handshake> {
    vec![Handshake::newest(client, server)]
}

fn law(
    trial: &mut Trial<'_>,
    hypotheses: fn(Set, Set) -> bool,
    choices: fn(Set, Set) -> Vec<Handshake>,
) -> Outcome {
    let versions = trial.bound("versions", LINE.0, LINE.1);
    let pairs = Set::pairs(versions).into_iter().filter(|(client, server)| hypotheses(*client, *server));
    trial.every(pairs.flat_map(|(client, server)| choices(client, server)), |handshake| {
        let exchange = handshake.play();
        if exchange.negotiated.is_some() {
            return Ok(());
        }
        Err(Evidence::said(format!("{}: they fail", handshake.words())).with_drawing(drawing(&exchange)))
    })
}
