//! Proposition 3.4 (2): disjoint sets never agree, and others may not either.

use super::versions::{Handshake, LINE, Set, drawing};
use crate::propositions::{
    Check, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.4.2",
    title: "A common version is needed for the handshake, and is not enough",
    notion: "C, S, c* and s* are as in 3.4.1; both sides offer their newest where c* = max C and s* = max S.",
    statement: "Where C and S are disjoint the handshake fails; it may fail although they are not, even where both \
                sides offer their newest.",
    source: "000, proposition 3.4 (2)",
    hypotheses: &[Hypothesis {
        text: "C and S are disjoint (first half)",
        why: "with a version in common some choice of c* succeeds, so failure is no longer certain",
    }],
    checks: &[
        Check {
            name: "disjoint-fails",
            method: Method::Bounded,
            claim: "where C and S are disjoint every choice of c* and s* fails",
            run: |trial| disjoint_fails(trial, |client, server| client.common(server).is_empty()),
        },
        Check {
            name: "common-may-fail",
            method: Method::Witness,
            claim: "there are C and S with a version in common whose handshake fails with both newest offered",
            run: |trial| common_may_fail(trial, |_, _| true),
        },
        Check {
            name: "no-smaller-witness",
            method: Method::Bounded,
            claim: "with fewer than two versions on a side, or fewer than three in all, a common version is enough",
            run: no_smaller,
        },
    ],
    ablations: &[Variation {
        name: "not-disjoint",
        text: "any C and S",
        run: |trial| disjoint_fails(trial, |_, _| true),
    }],
    mutants: &[Variation {
        name: "interval-search",
        text: "the witness is looked for among intervals, where 3.4.3 says there is none",
        run: |trial| common_may_fail(trial, |client, server| client.is_interval() && server.is_interval()),
    }],
    differences: &[],
    real: None,
};

fn disjoint_fails(trial: &mut Trial<'_>, hypothesis: fn(Set, Set) -> bool) -> Outcome {
    let versions = trial.bound("versions", LINE.0, LINE.1);
    let pairs = Set::pairs(versions).into_iter().filter(|(client, server)| hypothesis(*client, *server));
    trial.every(pairs.flat_map(|(client, server)| Handshake::choices(client, server)), |handshake| {
        let exchange = handshake.play();
        ensure!(exchange.negotiated.is_none(), "{}: they agree", handshake.words());
        Ok(())
    })
}

fn common_may_fail(trial: &mut Trial<'_>, among: fn(Set, Set) -> bool) -> Outcome {
    let versions = trial.bound("versions", LINE.0, LINE.1);
    let pairs = Set::pairs(versions)
        .into_iter()
        .filter(|(client, server)| !client.common(*server).is_empty() && among(*client, *server));
    trial.smallest(pairs, |(client, server)| {
        let handshake = Handshake::newest(client, server);
        let exchange = handshake.play();
        exchange.negotiated.is_none().then(|| {
            let common = client.common(server).words();
            Evidence::said(format!("{}: they fail, with {common} in common", handshake.words()))
                .with_drawing(drawing(&exchange))
        })
    })
}

fn no_smaller(trial: &mut Trial<'_>) -> Outcome {
    let versions = trial.bound("versions", LINE.0, LINE.1);
    let small = |client: Set, server: Set| {
        client.len() < 2 || server.len() < 2 || (client.0 | server.0).count_ones() < 3
    };
    let pairs = Set::pairs(versions)
        .into_iter()
        .filter(|(client, server)| !client.common(*server).is_empty() && small(*client, *server));
    trial.every(pairs, |(client, server)| {
        let handshake = Handshake::newest(client, server);
        ensure!(handshake.play().negotiated.is_some(), "{}: they fail", handshake.words());
        Ok(())
    })
}
