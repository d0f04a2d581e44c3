//! Scenario files: a harness in the users' own formats, a world that answers it, and what is expected.
//!
//! A scenario is one JSON file with inline `files`. Its JSON Schema is generated from these types
//! (`windtunnel scenario schema`) and checked in beside the scenarios.

pub mod check;
pub mod compile;
pub mod load;
mod rules;
mod servers;
pub mod shipped;
pub mod vacuity;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of the format.
pub const SCENARIO_VERSION: u32 = 1;

/// A scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The version of the format: 1.
    pub version: u32,
    /// One line for people.
    pub title: String,
    /// What a reader learns from it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub teaches: String,
    /// Propositions, seed sections or field reports that it reproduces, e.g. `4.3.1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reproduces: Vec<String>,
    /// Profiles in which it is run; empty: the one in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Worlds in which it is run when none is asked for; empty: `scripted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worlds: Vec<WorldName>,
    /// Programs that the process world needs besides this one: `python3`, `npm:@scope/package`. Missing: skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The harness: configuration in the users' own formats.
    #[serde(default)]
    pub harness: HarnessPart,
    /// Files of the workspace, by relative path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The world: how everything around the harness behaves.
    #[serde(default)]
    pub world: WorldPart,
    /// Bounds for exploration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explore: Option<ExplorePart>,
    /// What is expected in every profile.
    #[serde(default)]
    pub expect: Expectation,
    /// What is expected in one profile, instead of the same field of `expect`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expect_in: BTreeMap<String, Expectation>,
}

/// The worlds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum WorldName {
    /// Each request has one answer, at one time.
    Scripted,
    /// Answers and their order are drawn by weight.
    Random,
    /// Real hooks, real servers, real tools.
    Process,
}

impl WorldName {
    /// The word on the command line and in traces.
    pub fn word(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Random => "random",
            Self::Process => "process",
        }
    }
}

/// The harness part.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HarnessPart {
    /// Settings by level, each exactly as in settings.json.
    #[serde(skip_serializing_if = "SettingsPart::is_empty")]
    pub settings: SettingsPart,
    /// MCP servers exactly as in .mcp.json. The command `windtunnel` stands for this program; a server that is played
    /// by the world's script needs no entry here.
    #[serde(rename = "mcpServers", skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServerEntry>,
    /// The permission mode, as `--permission-mode` takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Limits of the run.
    pub limits: LimitsPart,
    /// The version that the MCP client tries first; default 2026-07-28.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_version: Option<String>,
}

/// Settings by level.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsPart {
    /// `~/.claude/settings.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Value>,
    /// `.claude/settings.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Value>,
    /// `.claude/settings.local.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Value>,
    /// The administrator's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<Value>,
}

impl SettingsPart {
    fn is_empty(&self) -> bool {
        self.user.is_none() && self.project.is_none() && self.local.is_none() && self.managed.is_none()
    }
}

/// An entry of .mcp.json.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServerEntry {
    /// `stdio` (default).
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its own environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsPart {
    /// The turn limit T.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u8>,
    /// The money limit in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    /// How long a call may take, in seconds; default 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_timeout_seconds: Option<f64>,
    /// How long connecting to a server may take for each request, in seconds; default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_timeout_seconds: Option<f64>,
}

/// The world part.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorldPart {
    /// The user's prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What the model replies, one entry a model call; after the last one it ends its turn.
    pub model: Vec<ReplyEntry>,
    /// After its last entry the model repeats that entry for ever.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub model_repeats: bool,
    /// How hooks behave, by command (or another handler's label): the n-th run takes the n-th entry, later runs the last
    /// one. The process world runs the real command instead.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, Vec<HookEntry>>,
    /// How tools behave, by the name that the assistant uses, likewise. A tool without an entry succeeds at once.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<ToolEntry>>,
    /// MCP servers by name, as scripts of `windtunnel mcp serve`; the process world starts that program with the script.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, Value>,
    /// What the user answers when asked; without entries nobody can answer (print mode).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user: Vec<UserEntry>,
    /// The user interrupts: in the scripted and the process world after so many seconds, in the random world at any
    /// moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_seconds: Option<f64>,
    /// The choices of a recorded run, where more than one was possible: the run is replayed by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// The choices that fix a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Indices into the choices, at each moment with more than one; after the last one always the first choice.
    pub choices: Vec<u16>,
    /// Hash of the choice tables: a schedule made for another table is refused.
    pub table: String,
}

/// One reply of the model, or several to choose from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReplyEntry {
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallEntry>,
    /// What the model call costs in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long the model takes, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The model cannot be reached, for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fails: Option<String>,
    /// One of these instead: drawn by weight in the random world, all in exploration, the first in a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<ReplyEntry>,
    /// How likely it is among its neighbours; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// A call in a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallEntry {
    /// The call id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Its input.
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// How one run of a hook ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HookEntry {
    /// The exit code; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// What it prints on stdout.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// What it prints on stderr.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// How long it takes, in seconds; longer than its time limit: it is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// It cannot be started, for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_start: Option<String>,
    /// A signal kills it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// One of these instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<HookEntry>,
    /// How likely it is among its neighbours; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// How one call of a tool ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolEntry {
    /// It succeeds with this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// It fails with this text (`isError` of an MCP tool).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The server answers with a JSON-RPC error of this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_error: Option<String>,
    /// It never answers: the deadline passes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// The server's connection closes instead of an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub closes: bool,
    /// The answer carries an id that no request has; the deadline passes later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wrong_id: bool,
    /// How long it takes, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// One of these instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<ToolEntry>,
    /// How likely it is among its neighbours; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// What the user answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserEntry {
    /// Yes or no.
    pub allow: bool,
    /// How long it takes, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// One of these instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<UserEntry>,
    /// How likely it is among its neighbours; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Bounds for exploration. A search that hits one is `bounded`, never `holds`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExplorePart {
    /// States at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_states: Option<u64>,
    /// Steps from the start at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Why it is not explored, where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
}

/// What is expected.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Expectation {
    /// Why the run ends, e.g. `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// How calls end, by call id, e.g. `result`, `refused_by_hook`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, String>,
    /// Text that a call's result contains, by call id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
    /// How often the model is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u32>,
    /// How often hooks run, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_runs: Option<u32>,
    /// The order in which the calls' results come back, by call id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_order: Option<Vec<String>>,
    /// The phase that each server reaches first after connecting, e.g. `connected`, `failed`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, String>,
    /// The methods sent to each server, in order.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sent: BTreeMap<String, Vec<String>>,
    /// Invariants that some run must break; all others must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<String>,
    /// Files of the workspace after a process run: their text, or null where there must be none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Option<String>>,
}

impl Scenario {
    /// What is expected in a profile: the profile's own fields before the common ones.
    pub fn expectation(&self, profile: &str) -> Expectation {
        let common = self.expect.clone();
        let Some(own) = self.expect_in.get(profile).cloned() else { return common };
        let pick = |own: BTreeMap<String, String>, mut common: BTreeMap<String, String>| {
            common.extend(own);
            common
        };
        let mut files = common.files;
        files.extend(own.files);
        let mut sent = common.sent;
        sent.extend(own.sent);
        Expectation {
            end: own.end.or(common.end),
            calls: pick(own.calls, common.calls),
            texts: pick(own.texts, common.texts),
            model_calls: own.model_calls.or(common.model_calls),
            hook_runs: own.hook_runs.or(common.hook_runs),
            result_order: own.result_order.or(common.result_order),
            servers: pick(own.servers, common.servers),
            sent,
            breaks: if own.breaks.is_empty() { common.breaks } else { own.breaks },
            files,
        }
    }
}
