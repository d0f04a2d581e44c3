//! Parameters of MCP: opening, timeouts, ends, pool, output limits, shutdown.

use super::{doc, inferred, seen};
use crate::mcp::correlation::Matching;
use crate::mcp::ends::Theta;
use crate::mcp::output::OutputLimits;
use crate::mcp::pool::RefreshRule;
use crate::mcp::profile::{ClientProfile, Eras, NoCommonModern};
use crate::mcp::version::Version;
use crate::parameters;

/// How a stdio server is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownOrder {
    /// Close its input, wait, SIGTERM, SIGKILL.
    InputFirst,
    /// SIGINT, SIGTERM, SIGKILL; the input stays open.
    SignalsOnly,
}

parameters! {
    /// Parameters of MCP.
    "mcp" McpParameters {
        /// the eras that the client speaks
        eras: Eras,
        /// the revision that it offers in `initialize`
        offered: Version,
        /// how long the probe's answer is awaited, in milliseconds
        probe_timeout_ms: u64,
        /// what a probe without a common modern revision means
        no_common_modern: NoCommonModern,
        /// how long a second probe is awaited after silence and a refused `initialize`, in milliseconds
        reprobe_timeout_ms: Option<u64>,
        /// whether `server/discover` is asked once more when the era is known
        discovers_again: bool,
        /// how long the acknowledgement of a subscription is awaited, in milliseconds
        listen_timeout_ms: Option<u64>,
        /// the limit of one connection attempt, in milliseconds
        connect_timeout_ms: u64,
        /// how ids of answers are compared
        matching: Matching,
        /// the wall-clock limit of a call, in milliseconds
        call_timeout_ms: u64,
        /// whether progress extends that limit
        progress_extends_timeout: bool,
        /// the limit without answer or progress over stdio, in milliseconds
        idle_timeout_ms: Option<u64>,
        /// how often a call may ask for input
        input_rounds: u32,
        /// where the map from ends to tool_results is the client's choice
        theta: Theta,
        /// whose tools a refresh takes out of the pool
        refresh: RefreshRule,
        /// the limits of a result's size
        output: OutputLimits,
        /// how many characters of a description or of instructions are kept
        description_kept: usize,
        /// how a stdio server is ended
        shutdown: ShutdownOrder,
    }
}

impl McpParameters {
    /// The client profile with these parameters; what the table does not name is as in `base`.
    pub fn client(&self, base: ClientProfile) -> ClientProfile {
        ClientProfile {
            eras: self.eras.value,
            offered: self.offered.value,
            probe_timeout_ms: self.probe_timeout_ms.value,
            no_common_modern: self.no_common_modern.value,
            reprobe_timeout_ms: self.reprobe_timeout_ms.value,
            discovers_again: self.discovers_again.value,
            listen_timeout_ms: self.listen_timeout_ms.value,
            connect_timeout_ms: self.connect_timeout_ms.value,
            matching: self.matching.value,
            call_timeout_ms: self.call_timeout_ms.value,
            progress_extends_timeout: self.progress_extends_timeout.value,
            idle_timeout_ms: self.idle_timeout_ms.value,
            input_rounds: self.input_rounds.value,
            theta: self.theta.value,
            ..base
        }
    }
}

/// The documents: seed 000 and the specification.
pub const DOCUMENTED: McpParameters = McpParameters {
    eras: doc(Eras::Dual, "000, section 3.2: the newer runtime asks every server for 2026-07-28"),
    offered: inferred(Version::V2025_11_25, "the documents do not state it; the newest with a handshake"),
    probe_timeout_ms: inferred(10_000, "the documents do not state it; as the SDKs"),
    no_common_modern: inferred(NoCommonModern::LegacyIfNamed, "specification, versioning; mcp 1.6"),
    reprobe_timeout_ms: inferred(None, "the documents know no second probe"),
    discovers_again: inferred(false, "the documents know no second discover"),
    listen_timeout_ms: inferred(Some(10_000), "the documents do not state it"),
    connect_timeout_ms: doc(30_000, "MCP documentation: MCP_TIMEOUT"),
    matching: doc(Matching::Strict, "specification, base protocol: the id of the request"),
    call_timeout_ms: doc(100_000_000, "MCP documentation: MCP_TOOL_TIMEOUT"),
    progress_extends_timeout: inferred(true, "specification, timeouts: MAY"),
    idle_timeout_ms: doc(Some(1_800_000), "MCP documentation: CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"),
    input_rounds: inferred(10, "as observed"),
    theta: inferred(Theta::SPECIFICATION, "specification, tools: content is for the model"),
    refresh: doc(RefreshRule::ByPrefix, "004 (M5): first remove every tool with the server's prefix"),
    output: doc(OutputLimits::DOCUMENTED, "000, section 3.5: 25,000 tokens"),
    description_kept: doc(2_048, "000, section 3.5"),
    shutdown: doc(ShutdownOrder::InputFirst, "specification, transports, stdio, shutdown"),
};

/// Seed 003's harness has no servers; what it would do with one is not said, so the documents' values stand in.
pub const TEACHING: McpParameters =
    McpParameters { eras: inferred(Eras::Modern, "000, mcp_client.py: no handshake"), ..DOCUMENTED };

/// Claude Code 2.1.332 as observed.
pub const CLAUDE_CODE: McpParameters = McpParameters {
    eras: seen(Eras::Dual, "mcp 3.1: v2 by default, probing"),
    offered: seen(Version::V2025_11_25, "mcp section 2"),
    probe_timeout_ms: seen(3_000, "mcp 3.2: min(3000 ms, MCP_TIMEOUT/3)"),
    no_common_modern: seen(NoCommonModern::LegacyUnlessModernNamed, "mcp 3.2, 3.12"),
    reprobe_timeout_ms: seen(Some(3_000), "mcp 3.2"),
    discovers_again: seen(true, "mcp 3.2: stdio only"),
    listen_timeout_ms: seen(Some(27_000), "mcp 3.6"),
    connect_timeout_ms: seen(30_000, "mcp 3.5"),
    matching: seen(Matching::Coercing, "mcp 3.3: the string form of an integer id is accepted"),
    call_timeout_ms: seen(100_000_000, "mcp 3.5"),
    progress_extends_timeout: seen(false, "mcp 3.5: not extended by progress"),
    idle_timeout_ms: doc(Some(1_800_000), "mcp 3.5: MCP documentation, stdio"),
    input_rounds: seen(10, "mcp 3.3"),
    theta: seen(Theta::CLAUDE_CODE, "mcp 3.3"),
    refresh: inferred(
        RefreshRule::ByOwner,
        "mcp 3.6: a removed tool is gone; no other server's was seen to go",
    ),
    output: seen(OutputLimits::CLAUDE_CODE, "mcp 3.7"),
    description_kept: seen(4_096, "mcp 3.8"),
    shutdown: seen(ShutdownOrder::SignalsOnly, "mcp 3.6"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_preset_agree() {
        let preset = ClientProfile::claude_code();
        assert_eq!(CLAUDE_CODE.client(preset.clone()), preset);
    }
}
