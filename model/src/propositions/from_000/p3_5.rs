//! Remark 3.5: which eras work together, and with how many messages.

use super::versions::drawing;
use crate::mcp::negotiation::exchange::{Wire, play};
use crate::mcp::negotiation::messages::ClientIdentity;
use crate::mcp::negotiation::script::ServerScript;
use crate::mcp::profile::{ClientProfile, Eras, NoCommonModern};
use crate::mcp::version::Era;
use crate::propositions::{
    Check, Evidence, Hypothesis, Method, Outcome, Proposition, Real, RealSubject, Trial, Variation,
    every_variant,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.5",
    title: "Which eras work together",
    notion: "A party is legacy (handshake), modern (version in every request) or dual; a dual client probes with a modern \
             request first and falls back to the handshake.",
    statement: "Client and server work together exactly where some era is common to both; a dual client with a dual \
                server goes modern; the agreement takes at most two requests of the client.",
    source: "000, remark 3.5; mcp, section 2",
    hypotheses: &[Hypothesis {
        text: "the server answers the probe, with an error at least, before the client gives up waiting",
        why: "a slow dual server gets probe and handshake back to back, pins itself to the probe's era and refuses the \
              handshake",
    }],
    checks: &[Check {
        name: "every-cell",
        method: Method::Enumeration,
        claim: "over the nine cells the outcome, the era and the number of requests are those of the table",
        run: |trial| law(trial, |client| client, 0),
    }],
    ablations: &[Variation {
        name: "slow-dual-server",
        text: "the server reads nothing for 60 seconds",
        run: |trial| law(trial, |client| ClientProfile { reprobe_timeout_ms: None, ..client }, 60_000),
    }],
    mutants: &[Variation {
        name: "no-fall-back",
        text: "a dual client takes silence or an error on the probe as the end",
        run: |trial| {
            law(
                trial,
                |client| ClientProfile {
                    eras: if client.eras == Eras::Dual { Eras::Modern } else { client.eras },
                    no_common_modern: NoCommonModern::Fail,
                    ..client
                },
                0,
            )
        },
    }],
    differences: &[],
    real: Some(Real {
        subject: RealSubject::Negotiation,
        text: "each cell with a server process of this program and its own client",
    }),
};

fn law(trial: &mut Trial<'_>, client: fn(ClientProfile) -> ClientProfile, boot_delay_ms: u64) -> Outcome {
    trial.over("3 x 3 cells");
    let base = trial.profile().mcp.client(ClientProfile::specification());
    let eras = every_variant!(crate::mcp::profile::Eras: Legacy, Modern, Dual);
    let cells = eras.iter().flat_map(|client| eras.iter().map(move |server| (*client, *server)));
    trial.every(cells, |(client_eras, server_eras)| {
        let profile = client(base.clone().with_eras(client_eras));
        let script = ServerScript { boot_delay_ms, ..ServerScript::of_eras(server_eras) };
        let exchange = play(&profile, &ClientIdentity::new("check", "1"), &script, Vec::new());
        let common = |era| client_eras.has(era) && server_eras.has(era);
        let expected =
            if common(Era::Modern) { Some(Era::Modern) } else { common(Era::Legacy).then_some(Era::Legacy) };
        let agreed = exchange.negotiated.map(|negotiated| negotiated.era);
        // A dual client that meets a legacy server asks twice: the probe, then the handshake.
        let probes = usize::from(client_eras != Eras::Legacy);
        let handshakes = usize::from(client_eras == Eras::Legacy || expected == Some(Era::Legacy));
        let asked = match exchange.negotiated {
            Some(negotiated) => negotiated.requests as usize,
            None => exchange.wire.iter().filter(|wire| matches!(wire, Wire::FromClient { .. })).count(),
        };
        if agreed == expected && asked == probes + handshakes {
            return Ok(());
        }
        let word = |era: Option<Era>| era.map_or("no agreement", Era::word);
        let text = format!(
            "{} client, {} server: {} after {asked} requests, the table says {} after {}",
            client_eras.word(),
            server_eras.word(),
            word(agreed),
            word(expected),
            probes + handshakes
        );
        Err(Evidence::said(text).with_drawing(drawing(&exchange)))
    })
}
