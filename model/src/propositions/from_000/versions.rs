//! What the propositions on version negotiation share: a line of versions, its subsets, and both ways to agree, played
//! by the model's own client and scripted server.

use crate::mcp::jsonrpc::Message;
use crate::mcp::negotiation::exchange::{Exchange, Wire, play};
use crate::mcp::negotiation::messages::{ClientIdentity, META_VERSION};
use crate::mcp::negotiation::script::ServerScript;
use crate::mcp::profile::{ClientProfile, Eras};
use crate::mcp::version::{Era, Version};
use crate::propositions::{Arrow, Drawing};
use serde_json::Value;

/// The usual number of versions of the line, and the most that anybody waits for.
pub(in crate::propositions) const LINE: (usize, usize) = (6, 8);

/// A set of versions: bit k stands for the k-th version of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::propositions) struct Set(pub(in crate::propositions) u16);

impl Set {
    /// The nonempty subsets of a line of `n` versions.
    pub(in crate::propositions) fn nonempty(n: usize) -> impl Iterator<Item = Self> + Clone {
        (1..1u16.checked_shl(u32::try_from(n).unwrap_or(16)).unwrap_or(0)).map(Self)
    }

    /// The pairs of nonempty subsets, in ascending number of versions in either, then of members.
    pub(in crate::propositions) fn pairs(n: usize) -> Vec<(Self, Self)> {
        let mut pairs: Vec<(Self, Self)> =
            Self::nonempty(n).flat_map(|c| Self::nonempty(n).map(move |s| (c, s))).collect();
        pairs.sort_by_key(|(c, s)| ((c.0 | s.0).ilog2(), c.len() + s.len(), std::cmp::Reverse(*c), *s));
        pairs
    }

    pub(in crate::propositions) fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(in crate::propositions) fn has(self, version: u16) -> bool {
        self.0 >> version & 1 == 1
    }

    pub(in crate::propositions) fn members(self) -> impl Iterator<Item = u16> + Clone {
        (0..16).filter(move |k| self.has(*k))
    }

    pub(in crate::propositions) fn newest(self) -> u16 {
        self.members().last().unwrap_or(0)
    }

    pub(in crate::propositions) fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(in crate::propositions) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether no version of the line lies between two members without being one.
    pub(in crate::propositions) fn is_interval(self) -> bool {
        let shifted = self.0 >> self.0.trailing_zeros();
        shifted & shifted.wrapping_add(1) == 0
    }

    /// Its members as letters.
    pub(in crate::propositions) fn words(self) -> String {
        let members: Vec<String> = self.members().map(letter).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn of_era(self, era: Era) -> Vec<Version> {
        self.members().map(|k| version(era, k)).collect()
    }
}

/// The letter of a version: a < b < c < ….
pub(in crate::propositions) fn letter(k: u16) -> String {
    char::from_u32(u32::from(b'a') + u32::from(k)).unwrap_or('?').to_string()
}

/// The k-th version of the line: a date of the era. Negotiation knows versions by their order only.
pub(in crate::propositions) fn version(era: Era, k: u16) -> Version {
    let day = u8::try_from(k + 1).unwrap_or(u8::MAX);
    match era {
        Era::Legacy => Version::new(2025, 1, day),
        Era::Modern => Version::new(2027, 1, day),
    }
}

/// The parties' choices in a handshake: what the client offers of `client`, and what the server falls back on when it
/// does not have that.
#[derive(Clone, Copy, Debug)]
pub(in crate::propositions) struct Handshake {
    pub(in crate::propositions) client: Set,
    pub(in crate::propositions) offered: u16,
    pub(in crate::propositions) server: Set,
    pub(in crate::propositions) fallback: u16,
}

impl Handshake {
    /// Both offer their newest.
    pub(in crate::propositions) fn newest(client: Set, server: Set) -> Self {
        Self { client, offered: client.newest(), server, fallback: server.newest() }
    }

    /// Every choice of both parties over these sets.
    pub(in crate::propositions) fn choices(client: Set, server: Set) -> impl Iterator<Item = Self> {
        client.members().flat_map(move |offered| {
            server.members().map(move |fallback| Self { client, offered, server, fallback })
        })
    }

    /// The client and the server that make these choices.
    pub(in crate::propositions) fn parties(self) -> (ClientProfile, ServerScript) {
        let profile = ClientProfile {
            legacy: self.client.of_era(Era::Legacy),
            offered: version(Era::Legacy, self.offered),
            ..ClientProfile::specification().with_eras(Eras::Legacy)
        };
        // Without an answer of its own the server answers what is offered, where it has that.
        let fallback =
            (!self.server.has(self.offered)).then(|| version(Era::Legacy, self.fallback).to_string());
        let script = ServerScript {
            versions: self.server.of_era(Era::Legacy),
            always_answers: fallback,
            ..ServerScript::default()
        };
        (profile, script)
    }

    /// Plays it.
    pub(in crate::propositions) fn play(self) -> Exchange {
        let (profile, script) = self.parties();
        exchange(&profile, &script)
    }

    pub(in crate::propositions) fn words(self) -> String {
        format!(
            "C = {}, S = {}, the client offers {}, the server would answer {}",
            self.client.words(),
            self.server.words(),
            letter(self.offered),
            letter(if self.server.has(self.offered) { self.offered } else { self.fallback })
        )
    }
}

/// A client that speaks the versions of `client` and first asks under its newest, and a server that speaks those of
/// `server`, both of the modern era.
pub(in crate::propositions) fn modern_parties(client: Set, server: Set) -> (ClientProfile, ServerScript) {
    let profile = ClientProfile {
        modern: client.of_era(Era::Modern),
        listen_timeout_ms: None,
        ..ClientProfile::specification().with_eras(Eras::Modern)
    };
    let script = ServerScript { versions: server.of_era(Era::Modern), ..ServerScript::default() };
    (profile, script)
}

/// Plays a client against a server, in virtual time.
pub(in crate::propositions) fn exchange(profile: &ClientProfile, script: &ServerScript) -> Exchange {
    play(profile, &ClientIdentity::new("check", "1"), script, Vec::new())
}

/// The exchange up to the agreement or the failure, for a drawing.
pub(in crate::propositions) fn drawing(exchange: &Exchange) -> Drawing {
    let arrows = exchange
        .wire
        .iter()
        .filter_map(|wire| match wire {
            Wire::FromClient { line } => Some(Arrow::new("client", "server", label(line)?)),
            Wire::FromServer { line } => Some(Arrow::new("server", "client", label(line)?)),
            Wire::ClosedByClient => Some(Arrow::new("client", "server", "closes the connection")),
            Wire::Exited { code } => Some(Arrow::new("server", "client", format!("exits with {code}"))),
            Wire::Opened => None,
        })
        .collect();
    Drawing::Exchange(arrows)
}

/// What a line of the opening says about versions; `None` for what comes after it.
fn label(line: &str) -> Option<String> {
    let text = |value: Option<&Value>| {
        value.map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).unwrap_or_default()
    };
    match Message::parse(line).ok()? {
        Message::Request { method, params, .. } => {
            let params = params.unwrap_or_default();
            let meta = params.get("_meta").and_then(|meta| meta.get(META_VERSION));
            match method.as_str() {
                "initialize" => Some(format!("initialize: offers {}", text(params.get("protocolVersion")))),
                "server/discover" => Some(format!("server/discover under {}", text(meta))),
                _ => None,
            }
        }
        Message::Notification { method, .. } => (method == "notifications/initialized").then_some(method),
        Message::Response { result, .. } => {
            let own = result.get("protocolVersion").map(|v| format!("answers {}", text(Some(v))));
            own.or(result.get("supportedVersions").map(|v| format!("speaks {v}")))
        }
        Message::Error { error, .. } => {
            let supported = error.data.as_ref().and_then(|data| data.get("supported"));
            Some(format!("error {}: supported {}", error.code, text(supported)))
        }
    }
}
