//! Client profiles as data: eras, versions, probe, policies. A profile is never a fork of the code.
//!
//! Source: mcp.md 3.2 (Claude Code 2.1.332), 4.3 (SDKs), sections 1.4 to 1.6 (specification), 6 (requirements).

use super::correlation::Matching;
use super::ends::Theta;
use super::version::{Era, Version};

/// Which eras a party speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Eras {
    /// Handshake only.
    Legacy,
    /// Per-request metadata only.
    Modern,
    /// Both.
    Dual,
}

impl Eras {
    /// All three, in the order of the compatibility matrix.
    pub const ALL: [Self; 3] = [Self::Legacy, Self::Modern, Self::Dual];

    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
            Self::Dual => "dual",
        }
    }

    /// Whether `era` is among them.
    pub fn has(self, era: Era) -> bool {
        match self {
            Self::Legacy => era == Era::Legacy,
            Self::Modern => era == Era::Modern,
            Self::Dual => true,
        }
    }
}

/// In which process a dual client asks `server/discover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeProcess {
    /// In the one that it goes on with.
    Same,
    /// In one of its own, which it closes; then it starts a second (TypeScript SDK 2.4).
    Sibling,
}

/// What a dual client does when the process ends during the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnProbeExit {
    /// Starts it again, once, and sends `initialize` without a probe.
    RespawnLegacy,
    /// Gives up.
    Fail,
}

/// What a dual client does when a probe's answer leaves no modern revision in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoCommonModern {
    /// `initialize` iff the answer names a legacy revision that the client has (mcp.md 1.6, model).
    LegacyIfNamed,
    /// `initialize` unless the answer is -32022 and names a modern revision (observed).
    LegacyUnlessModernNamed,
    /// Gives up.
    Fail,
}

/// How a client behaves towards a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientProfile {
    /// Its name.
    pub name: &'static str,
    /// The eras it speaks.
    pub eras: Eras,
    /// C_m, the modern revisions it speaks.
    pub modern: Vec<Version>,
    /// C_l, the legacy revisions whose `initialize` answer it accepts.
    pub legacy: Vec<Version>,
    /// c*, the revision that it offers in `initialize`.
    pub offered: Version,
    /// Whether it asks `server/discover` before its first modern request. Optional for modern clients; a dual client
    /// always probes.
    pub discovers: bool,
    /// How long it waits for the probe's answer.
    pub probe_timeout_ms: u64,
    /// Where it probes.
    pub probe_process: ProbeProcess,
    /// What silence on the probe means: `initialize` in the same process, or giving up.
    pub silence_means_legacy: bool,
    /// What the end of the process during the probe means.
    pub on_probe_exit: OnProbeExit,
    /// What a probe without a common modern revision means.
    pub no_common_modern: NoCommonModern,
    /// After a probe's silence and an error on `initialize`: how long a second probe is waited for; `None`: give up.
    /// This is what saves the client from a slow dual server that has pinned itself to the probe's era.
    pub reprobe_timeout_ms: Option<u64>,
    /// Whether it asks `server/discover` once more when the era is known to be modern (seen on stdio).
    pub discovers_again: bool,
    /// How long it waits for the acknowledgement of `subscriptions/listen` before it goes on without; `None`: it never
    /// listens.
    pub listen_timeout_ms: Option<u64>,
    /// Limit for one connection attempt.
    pub connect_timeout_ms: u64,
    /// Waits before a failed list request is sent again; an answer -32601 is never retried.
    pub list_retries_ms: Vec<u64>,
    /// How ids of answers are compared.
    pub matching: Matching,
    /// The first integer id.
    pub first_id: i64,
    /// Whether probe and listen ids are strings (`server-discover-probe-1`, `listen:0`), outside the numbering.
    pub named_ids: bool,
    /// Whether each `tools/call` carries a `progressToken` equal to its id.
    pub sends_progress_token: bool,
    /// Wall-clock limit of a call.
    pub call_timeout_ms: u64,
    /// Whether progress extends the wall-clock limit.
    pub progress_extends_timeout: bool,
    /// Limit without answer or progress; `None`: no such limit.
    pub idle_timeout_ms: Option<u64>,
    /// How often a call may ask for input (MRTR).
    pub input_rounds: u32,
    /// θ.
    pub theta: Theta,
}

impl ClientProfile {
    /// What the specification asks of a dual client, SHOULDs included; where it gives no figure, a generous one.
    pub fn specification() -> Self {
        Self {
            name: "specification",
            eras: Eras::Dual,
            modern: vec![Version::V2026_07_28],
            legacy: Version::LEGACY.to_vec(),
            offered: Version::V2025_11_25,
            discovers: true,
            probe_timeout_ms: 10_000,
            probe_process: ProbeProcess::Same,
            silence_means_legacy: true,
            on_probe_exit: OnProbeExit::RespawnLegacy,
            no_common_modern: NoCommonModern::LegacyIfNamed,
            reprobe_timeout_ms: None,
            discovers_again: false,
            listen_timeout_ms: Some(10_000),
            connect_timeout_ms: 60_000,
            list_retries_ms: Vec::new(),
            matching: Matching::Strict,
            first_id: 1,
            named_ids: false,
            sends_progress_token: false,
            call_timeout_ms: 60_000,
            progress_extends_timeout: true,
            idle_timeout_ms: None,
            input_rounds: 10,
            theta: Theta::SPECIFICATION,
        }
    }

    /// Claude Code 2.1.332 as observed (mcp.md 3.2 to 3.5).
    pub fn claude_code() -> Self {
        Self {
            name: "claude-code-2.1.332",
            legacy: [&[Version::V2024_10_07], &Version::LEGACY[..]].concat(),
            probe_timeout_ms: 3_000,
            no_common_modern: NoCommonModern::LegacyUnlessModernNamed,
            reprobe_timeout_ms: Some(3_000),
            discovers_again: true,
            listen_timeout_ms: Some(27_000),
            connect_timeout_ms: 30_000,
            list_retries_ms: vec![250, 500, 1_000],
            matching: Matching::Coercing,
            first_id: 0,
            named_ids: true,
            sends_progress_token: true,
            call_timeout_ms: 100_000_000,
            progress_extends_timeout: false,
            idle_timeout_ms: Some(1_800_000),
            theta: Theta::CLAUDE_CODE,
            ..Self::specification()
        }
    }

    /// The TypeScript SDK's client 2.4.0 in mode `auto` (mcp.md 4.3).
    pub fn typescript() -> Self {
        Self {
            name: "ts-2.4",
            probe_timeout_ms: 60_000,
            probe_process: ProbeProcess::Sibling,
            listen_timeout_ms: None,
            first_id: 0,
            ..Self::specification()
        }
    }

    /// The Python SDK's `Client` 2.3.0 (mcp.md 4.3).
    pub fn python() -> Self {
        Self { name: "python-2.3", listen_timeout_ms: None, first_id: 0, ..Self::specification() }
    }

    /// The Rust SDK's client 3.11.0 in mode `Auto` (mcp.md 4.3).
    pub fn rust() -> Self {
        Self { name: "rmcp-3.11", listen_timeout_ms: None, first_id: 0, ..Self::specification() }
    }

    /// The presets.
    pub fn presets() -> [Self; 5] {
        [Self::specification(), Self::claude_code(), Self::typescript(), Self::python(), Self::rust()]
    }

    /// The same client, speaking these eras only.
    #[must_use]
    pub fn with_eras(mut self, eras: Eras) -> Self {
        self.eras = eras;
        self
    }

    /// The newest modern revision of the client that is in `supported`.
    pub fn common_modern(&self, supported: &[Version]) -> Option<Version> {
        self.modern.iter().copied().filter(|version| supported.contains(version)).max()
    }

    /// Whether a legacy revision of the client is in `supported`.
    pub fn has_common_legacy(&self, supported: &[Version]) -> bool {
        self.legacy.iter().any(|version| supported.contains(version))
    }
}
