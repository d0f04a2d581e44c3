//! All that is fixed during a run, compiled: names are interned to small `Copy` ids and the gate's answer is tabulated
//! per call, so that a step costs table look-ups. Built by the scenario loader; grown only between steps, when a real
//! run meets a call or a reply that was not known before.

use super::state::{MAX_CALLS, MAX_HOOKS, MAX_SERVERS, Progress, Slot};
use crate::mutant::Mutant;
use crate::profile::Profile;
use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The index into the table of its kind.
            pub fn index(self) -> usize {
                usize::from(self.0)
            }
        }
    };
}

id!(
    /// A call as the assistant can make it: (call id, tool, input). Index into [`Config::calls`].
    CallRef(u16)
);
id!(
    /// A reply of the assistant. Index into [`Config::replies`].
    ReplyRef(u16)
);
id!(
    /// A configured hook. Index into [`Config::hooks`].
    HookRef(u8)
);
id!(
    /// An MCP server. Index into [`Config::servers`] and `State::servers`.
    ServerRef(u8)
);
id!(
    /// A tool. Index into [`Config::tools`].
    ToolRef(u16)
);

/// The hook events that the loop itself fires at this depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LoopEvent {
    /// A prompt was submitted.
    UserPromptSubmit,
    /// A call is about to be decided and run.
    PreToolUse,
    /// A call succeeded.
    PostToolUse,
    /// A call ended in an error.
    PostToolUseFailure,
    /// The assistant ended its turn without calls.
    Stop,
}

impl LoopEvent {
    /// The name in settings files.
    pub fn word(self) -> &'static str {
        match self {
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::Stop => "Stop",
        }
    }
}

/// What the permission rules and the mode say of a call, before hooks are heard (gate-and-hooks section 13,
/// `permission`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAnswer {
    /// A rule or the mode lets it through, or it needs no permission.
    Allow,
    /// Nothing decides; a hook's allow may.
    AskByDefault,
    /// An ask rule, a protected path or plan mode asks; a hook's allow does not lift it.
    AskByRule,
    /// A deny rule.
    Deny,
}

/// A configured hook, as far as control needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The event it is registered for.
    pub event: LoopEvent,
    /// Its command line or other name, for people.
    pub name: String,
    /// Whether a failure counts as a block (`onFailure: block`).
    pub block_on_failure: bool,
}

/// A tool of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name that the assistant uses (qualified for MCP tools).
    pub name: String,
    /// The server it belongs to; `None` for a built-in tool.
    pub server: Option<ServerRef>,
}

/// Everything the loop has to know of one call, tabulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// The `tool_use` id (duplicates are real and representable: a slot is not an id).
    pub id: String,
    /// The tool, or `None` where no such tool exists.
    pub tool: Option<ToolRef>,
    /// Whether the input fits the tool's JSON Schema.
    pub input_fits: bool,
    /// Whether it may run together with its neighbours.
    pub read_only: bool,
    /// What the rules and the mode say.
    pub rule: RuleAnswer,
    /// PreToolUse hooks whose matcher matches, in order of registration.
    pub before: HookList,
    /// PostToolUse hooks that match.
    pub after: HookList,
    /// PostToolUseFailure hooks that match.
    pub after_failure: HookList,
}

/// The hooks that match one event of one call.
pub type HookList = ArrayVec<HookRef, MAX_HOOKS>;

/// A reply of the assistant.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReplyInfo {
    /// The calls it carries, in order. Without calls the turn ends.
    pub calls: ArrayVec<CallRef, MAX_CALLS>,
    /// What the model call cost, in millionths of a US dollar.
    pub cost: u32,
}

/// An MCP server, as far as control needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name in the configuration.
    pub name: String,
    /// For each list that it can announce, which tools are on it. Index 0 is the first.
    pub lists: Vec<Vec<ToolRef>>,
}

/// Limits of a run. `None` is "no limit".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The turn limit T (proposition 7.1), read by the profile's rule.
    pub max_turns: Option<u8>,
    /// The money limit, in millionths of a US dollar.
    pub max_cost: Option<u32>,
}

/// All that is fixed during a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rule set in force.
    pub profile: Profile,
    /// Hooks of all events.
    pub hooks: Vec<Hook>,
    /// Hooks of UserPromptSubmit.
    pub prompt_hooks: HookList,
    /// Hooks of Stop.
    pub stop_hooks: HookList,
    /// Tools.
    pub tools: Vec<Tool>,
    /// MCP servers.
    pub servers: ArrayVec<Server, MAX_SERVERS>,
    /// Known calls.
    pub calls: Vec<CallInfo>,
    /// Known replies.
    pub replies: Vec<ReplyInfo>,
    /// Limits.
    pub limits: Limits,
    /// Whether somebody can answer a question; without, an ask is a refusal (print mode).
    pub answerable: bool,
    /// A wrong rule, for tests of the checks only.
    #[doc(hidden)]
    pub mutant: Option<Mutant>,
}

impl Config {
    /// An empty configuration: no hooks, tools or servers.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            hooks: Vec::new(),
            prompt_hooks: HookList::new(),
            stop_hooks: HookList::new(),
            tools: Vec::new(),
            servers: ArrayVec::new(),
            calls: Vec::new(),
            replies: Vec::new(),
            limits: Limits::default(),
            answerable: false,
            mutant: None,
        }
    }

    /// The facts about a call. A reference that is not in the table is answered like an unknown tool.
    pub fn call(&self, call: CallRef) -> Option<&CallInfo> {
        self.calls.get(call.index())
    }

    /// The server that a call goes to; `None` for built-in and unknown tools.
    pub fn server_of(&self, call: CallRef) -> Option<ServerRef> {
        let tool = self.call(call)?.tool?;
        self.tools.get(tool.index())?.server
    }

    /// Whether the call in a slot is an open `tools/call` of this server.
    pub fn runs_on(&self, slot: &Slot, server: ServerRef) -> bool {
        slot.progress == Progress::Running && self.server_of(slot.call) == Some(server)
    }

    /// Whether the rule in force is the wrong one named by `mutant`.
    pub(crate) fn is_mutant(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
