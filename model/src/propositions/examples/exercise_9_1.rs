//! Exercise 9.1: three pairs of version sets, both ways to agree.

use crate::propositions::from_000::versions::{Handshake, Set, exchange, modern_parties};
use crate::propositions::{Check, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure};

/// The exercise.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "exercise-9.1",
    title: "Three pairs of version sets",
    notion: "v1 < v2 < v3 < v4. (a) C = {v1, v2, v3}, S = {v2, v3, v4}; (b) C = {v1, v4}, S = {v1, v2, v3}; (c) C = {v1, \
             v2}, S = {v3, v4}.",
    statement: "(a) both ways succeed; (b) the handshake fails, per-request negotiation succeeds; (c) both fail.",
    source: "000, exercise 9.1",
    hypotheses: &[Hypothesis {
        text: "both sides offer their newest in the handshake",
        why: "in (b) a client that offers v1 is understood at once",
    }],
    checks: &[Check {
        name: "the-three-cases",
        method: Method::Enumeration,
        claim: "played by client and server, the answers are those of the solution",
        run: |trial| answers(trial, Handshake::newest),
    }],
    ablations: &[Variation {
        name: "offers-its-oldest",
        text: "the client offers its oldest version",
        run: |trial| {
            answers(trial, |client, server| Handshake {
                offered: client.members().next().unwrap_or(0),
                ..Handshake::newest(client, server)
            })
        },
    }],
    mutants: &[Variation {
        name: "server-answers-its-oldest",
        text: "a server without c* answers its oldest version",
        run: |trial| {
            answers(trial, |client, server| Handshake {
                fallback: server.members().next().unwrap_or(0),
                ..Handshake::newest(client, server)
            })
        },
    }],
    differences: &[],
    real: None,
};

/// Name, C, S, and whether handshake and per-request negotiation succeed.
const CASES: [(&str, Set, Set, bool, bool); 3] = [
    ("(a)", Set(0b0111), Set(0b1110), true, true),
    ("(b)", Set(0b1001), Set(0b0111), false, true),
    ("(c)", Set(0b0011), Set(0b1100), false, false),
];

fn answers(trial: &mut Trial<'_>, offer: fn(Set, Set) -> Handshake) -> Outcome {
    trial.every(CASES, |(name, client, server, handshake, per_request)| {
        let shaken = offer(client, server).play().negotiated.is_some();
        ensure!(
            shaken == handshake,
            "{name}: the handshake succeeds: {shaken}, the solution says {handshake}"
        );
        let (profile, script) = modern_parties(client, server);
        let agreed = exchange(&profile, &script).negotiated.is_some();
        ensure!(agreed == per_request, "{name}: per request: {agreed}, the solution says {per_request}");
        Ok(())
    })
}
