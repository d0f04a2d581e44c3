//! Proposition 3.4 (4): per-request negotiation needs a common version and nothing else.

use super::versions::{LINE, Set, letter, version};
use crate::mcp::jsonrpc::Message;
use crate::mcp::negotiation::messages::{
    ClientIdentity, ProbeAnswer, read_discover, read_modern_error, with_metadata,
};
use crate::mcp::negotiation::script::ServerScript;
use crate::mcp::negotiation::server::{Deed, Server};
use crate::mcp::profile::ClientProfile;
use crate::mcp::version::{Era, Version};
use crate::propositions::{
    Arrow, Check, Drawing, Evidence, Hypothesis, Method, Outcome, Proposition, Real, RealSubject, Trial,
    Variation,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.4.4",
    title: "Per-request negotiation succeeds within two requests, or never",
    notion: "The client sends a request under some c of C; the server handles it where c is in S, else answers an error \
             that lists S; the client then asks again under a version of C that is listed.",
    statement: "Where C and S have a version in common, a request succeeds at the first or the second attempt; where \
                they have none, it never does.",
    source: "000, proposition 3.4 (4); MCP specification 2026-07-28, versioning, error -32022",
    hypotheses: &[Hypothesis {
        text: "the error lists all of S",
        why: "from a single version named the client cannot tell which of its others would do",
    }],
    checks: &[
        Check {
            name: "every-first-version",
            method: Method::Bounded,
            claim: "over every pair (C, S) and every first c, the request succeeds within two attempts exactly where C \
                    and S meet",
            run: |trial| law(trial, |script| script),
        },
        Check {
            name: "whole-opening",
            method: Method::Bounded,
            claim: "the whole opening, first under the newest version of C, sends at most two requests before the \
                    agreement, and agrees exactly where C and S meet",
            run: whole_opening,
        },
    ],
    ablations: &[Variation {
        name: "names-one-version",
        text: "the error lists the newest version of S only",
        run: |trial| law(trial, newest_named),
    }],
    mutants: &[Variation {
        name: "lists-nothing",
        text: "the error lists no version, as if data were optional",
        run: |trial| law(trial, |script| ServerScript { versions: Vec::new(), ..script }),
    }],
    differences: &[],
    real: Some(Real {
        subject: RealSubject::Negotiation,
        text: "a server process for each pair of sets over three versions, the requests up to the agreement counted on \
               the wire",
    }),
};

fn newest_named(script: ServerScript) -> ServerScript {
    let newest = script.versions.iter().copied().max();
    ServerScript { versions: newest.into_iter().collect(), ..script }
}

/// One request under a version, answered by the scripted server. `lister` is the script whose versions an error lists.
fn ask(
    script: &ServerScript,
    lister: &ServerScript,
    under: Version,
    arrows: &mut Vec<Arrow>,
) -> Option<Message> {
    let identity = ClientIdentity::new("check", "1");
    let request = |under| Message::request(1, "server/discover", Some(with_metadata(None, &identity, under)));
    let answer = |script: &ServerScript| {
        let (actions, _) = Server::new(script.clone()).message(request(under));
        actions.into_iter().find_map(|action| match action.what {
            Deed::Line(line) => Message::parse(&line).ok(),
            _ => None,
        })
    };
    arrows.push(Arrow::new("client", "server", format!("server/discover under {under}")));
    let refused = matches!(answer(script), Some(Message::Error { .. }));
    let answer = answer(if refused { lister } else { script })?;
    arrows.push(Arrow::new("server", "client", answer.to_line()));
    Some(answer)
}

fn law(trial: &mut Trial<'_>, listing: fn(ServerScript) -> ServerScript) -> Outcome {
    let versions = trial.bound("versions", LINE.0, LINE.1);
    let cases = Set::pairs(versions)
        .into_iter()
        .flat_map(|(client, server)| client.members().map(move |first| (client, server, first)));
    trial.every(cases, |(client, server, first)| {
        let (profile, script) = super::versions::modern_parties(client, server);
        let lister = listing(script.clone());
        let mut arrows = Vec::new();
        let attempts = attempts(&profile, &script, &lister, version(Era::Modern, first), &mut arrows);
        let meet = !client.common(server).is_empty();
        if attempts.is_some_and(|n| n <= 2) == meet {
            return Ok(());
        }
        let text = format!(
            "C = {}, S = {}, first under {}: {}, although they have {} in common",
            client.words(),
            server.words(),
            letter(first),
            attempts.map_or("never succeeds".to_owned(), |n| format!("succeeds at attempt {n}")),
            client.common(server).words()
        );
        Err(Evidence::said(text).with_drawing(Drawing::Exchange(arrows)))
    })
}

/// At which attempt the request succeeds. The client asks again as long as it is told a version that it has; more than
/// eight attempts count as never.
fn attempts(
    profile: &ClientProfile,
    script: &ServerScript,
    lister: &ServerScript,
    first: Version,
    arrows: &mut Vec<Arrow>,
) -> Option<usize> {
    let mut under = first;
    for attempt in 1..=8 {
        let read = match ask(script, lister, under, arrows)? {
            Message::Error { error, .. } => read_modern_error(&error, profile),
            Message::Response { result, .. } => read_discover(&result, profile),
            Message::Request { .. } | Message::Notification { .. } => return None,
        };
        match read {
            ProbeAnswer::Modern(_) => return Some(attempt),
            ProbeAnswer::RetryWith(listed) => under = listed,
            ProbeAnswer::NoCommonModern { .. } | ProbeAnswer::NotModern => return None,
        }
    }
    None
}

fn whole_opening(trial: &mut Trial<'_>) -> Outcome {
    let versions = trial.bound("versions", LINE.0, LINE.1);
    trial.every(Set::pairs(versions), |(client, server)| {
        let (profile, script) = super::versions::modern_parties(client, server);
        let exchange = super::versions::exchange(&profile, &script);
        let meet = !client.common(server).is_empty();
        let within = exchange.negotiated.map(|negotiated| negotiated.requests <= 2);
        if within == meet.then_some(true) {
            return Ok(());
        }
        let text = format!("C = {}, S = {}: {:?}", client.words(), server.words(), exchange.negotiated);
        Err(Evidence::said(text).with_drawing(super::versions::drawing(&exchange)))
    })
}
