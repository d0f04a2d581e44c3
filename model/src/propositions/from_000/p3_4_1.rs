//! Proposition 3.4 (1): when the handshake succeeds.

use super::versions::{Handshake, LINE, Set, drawing, exchange};
use crate::mcp::negotiation::exchange::Exchange;
use crate::mcp::negotiation::script::ServerScript;
use crate::mcp::profile::ClientProfile;
use crate::propositions::{
    Check, Evidence, Hypothesis, Method, Outcome, Proposition, Real, RealSubject, Trial, Variation,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.4.1",
    title: "When the handshake succeeds",
    notion: "C and S are the nonempty sets of versions of client and server. The client offers c* of C; the server \
             answers c* where it has it, else some s* of S; the client disconnects where the answer is not in C.",
    statement: "The handshake succeeds if and only if c* is in S or s* is in C.",
    source: "000, proposition 3.4 (1); MCP specification 2025-11-25, lifecycle",
    hypotheses: &[
        Hypothesis {
            text: "the server echoes c* where it has it",
            why: "a server that answers its newest all the same loses clients that it could have served",
        },
        Hypothesis {
            text: "the client disconnects where the answer is not in C",
            why: "a client that goes on speaks a version that it does not know",
        },
    ],
    checks: &[Check {
        name: "every-choice",
        method: Method::Bounded,
        claim: "over every pair (C, S) and every choice of c* and s*, client and server agree exactly where the \
                statement says so",
        run: |trial| law(trial, Handshake::play),
    }],
    ablations: &[
        Variation {
            name: "no-echo",
            text: "the server answers s* although it has c*",
            run: |trial| law(trial, without_echo),
        },
        Variation {
            name: "no-disconnect",
            text: "the client goes on whatever the answer is",
            run: |trial| law(trial, without_disconnect),
        },
    ],
    mutants: &[Variation {
        name: "newest-only",
        text: "the client accepts the version that it offered and no other",
        run: |trial| law(trial, newest_only),
    }],
    differences: &[],
    real: Some(Real {
        subject: RealSubject::Negotiation,
        text: "a server process for each pair of sets over three versions, the client of this program before it; \
               compared with the model, message by message",
    }),
};

fn law(trial: &mut Trial<'_>, play: fn(Handshake) -> Exchange) -> Outcome {
    let versions = trial.bound("versions", LINE.0, LINE.1);
    let choices =
        Set::pairs(versions).into_iter().flat_map(|(client, server)| Handshake::choices(client, server));
    trial.every(choices, |handshake| {
        let answer =
            if handshake.server.has(handshake.offered) { handshake.offered } else { handshake.fallback };
        let stated = handshake.server.has(handshake.offered) || handshake.client.has(handshake.fallback);
        let exchange = play(handshake);
        let agreed = exchange.negotiated.map(|negotiated| negotiated.version);
        let expected = stated.then(|| super::versions::version(crate::mcp::version::Era::Legacy, answer));
        if agreed == expected {
            return Ok(());
        }
        let told = |version: Option<_>| {
            version.map_or("nothing".to_owned(), |v: crate::mcp::version::Version| v.to_string())
        };
        let text = format!(
            "{}: they agree on {}, and the statement says {}",
            handshake.words(),
            told(agreed),
            told(expected)
        );
        Err(Evidence::said(text).with_drawing(drawing(&exchange)))
    })
}

fn without_echo(handshake: Handshake) -> Exchange {
    let (profile, script) = handshake.parties();
    let newest = super::versions::version(crate::mcp::version::Era::Legacy, handshake.fallback);
    exchange(&profile, &ServerScript { always_answers: Some(newest.to_string()), ..script })
}

fn without_disconnect(handshake: Handshake) -> Exchange {
    let (profile, script) = handshake.parties();
    let any = [profile.legacy.clone(), script.versions.clone()].concat();
    exchange(&ClientProfile { legacy: any, ..profile }, &script)
}

fn newest_only(handshake: Handshake) -> Exchange {
    let (profile, script) = handshake.parties();
    exchange(&ClientProfile { legacy: vec![profile.offered], ..profile }, &script)
}
