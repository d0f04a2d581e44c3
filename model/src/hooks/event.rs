//! The events a hook can be registered for, and what each does with a block, a failure and a matcher.
//!
//! Source: gate-and-hooks, section 10 (table of events) and 3.2 (matchers).

use serde::{Deserialize, Serialize};

/// What a blocking outcome (exit code 2, or the event's blocking JSON) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEffect {
    /// The call is not executed.
    DenyCall,
    /// The prompt is erased and the run ends without a model call.
    BlockPrompt,
    /// The turn, or the subagent's turn, goes on with the text as a user message.
    Continue,
    /// The run ends after the batch.
    EndRun,
    /// The text is shown to the model; what happened stays.
    Feedback,
    /// The text is shown to the user only.
    Notice,
    /// What the event announces is undone or not applied (task, configuration change, compaction).
    Undo,
    /// Nothing.
    Nothing,
    /// Neither documented nor observed.
    Unknown,
}

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:ident: $matcher:expr, $block:ident;)+) => {
        /// An event, in the order of the documentation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Event {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Event {
            /// All events.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name in settings files and payloads.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// The field of the payload that matchers are compared with; `None` where matchers are ignored.
            pub fn matcher_field(self) -> Option<&'static str> {
                match self { $(Self::$name => $matcher,)+ }
            }

            /// What a blocking outcome does.
            pub fn block_effect(self) -> BlockEffect {
                match self { $(Self::$name => BlockEffect::$block,)+ }
            }
        }
    };
}

events! {
    /// A session begins.
    SessionStart: Some("source"), Notice;
    /// `--init` and the like.
    Setup: Some("trigger"), Notice;
    /// An instruction file was loaded.
    InstructionsLoaded: Some("load_reason"), Nothing;
    /// The user sent a prompt.
    UserPromptSubmit: None, BlockPrompt;
    /// A slash command is about to be expanded.
    UserPromptExpansion: Some("command_name"), BlockPrompt;
    /// Text is about to be shown.
    MessageDisplay: None, Nothing;
    /// A call is about to be judged.
    PreToolUse: Some("tool_name"), DenyCall;
    /// A call needs an answer from the user.
    PermissionRequest: Some("tool_name"), Nothing;
    /// The classifier of auto mode refused a call.
    PermissionDenied: Some("tool_name"), Nothing;
    /// A call succeeded.
    PostToolUse: Some("tool_name"), Feedback;
    /// A call failed.
    PostToolUseFailure: Some("tool_name"), Feedback;
    /// All calls of one assistant message have ended.
    PostToolBatch: None, EndRun;
    /// Something is shown to an absent user.
    Notification: Some("notification_type"), Notice;
    /// A subagent begins.
    SubagentStart: Some("agent_type"), Notice;
    /// A subagent wants to end.
    SubagentStop: Some("agent_type"), Continue;
    /// A task is created.
    TaskCreated: None, Undo;
    /// A task is marked as completed.
    TaskCompleted: None, Undo;
    /// The turn wants to end.
    Stop: None, Continue;
    /// The turn ended by an API error.
    StopFailure: Some("error"), Nothing;
    /// A teammate is about to go idle.
    TeammateIdle: None, Continue;
    /// A settings file changed during the session.
    ConfigChange: Some("source"), Undo;
    /// The working directory changed.
    CwdChanged: None, Nothing;
    /// A watched file changed.
    FileChanged: Some("file_path"), Nothing;
    /// A directory was added to the session.
    DirectoryAdded: None, Unknown;
    /// A worktree is to be created.
    WorktreeCreate: None, Unknown;
    /// A worktree is to be removed.
    WorktreeRemove: None, Unknown;
    /// The conversation is about to be compacted.
    PreCompact: Some("trigger"), Undo;
    /// The conversation was compacted.
    PostCompact: Some("trigger"), Nothing;
    /// An MCP server asks the user something.
    Elicitation: Some("mcp_server_name"), Unknown;
    /// The user's answer to that.
    ElicitationResult: Some("mcp_server_name"), Unknown;
    /// The session ends.
    SessionEnd: Some("reason"), Notice;
}

impl Event {
    /// The event of that name; case counts.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.name() == name)
    }

    /// Events about one tool call: only there does `if` ever hold (gate-and-hooks, section 3.4).
    pub fn is_about_a_tool(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PermissionRequest
                | Self::PermissionDenied
                | Self::PostToolUse
                | Self::PostToolUseFailure
        )
    }

    /// Stop, SubagentStop, TaskCompleted and TeammateIdle, where `onFailure: block` has no effect as observed.
    pub fn ignores_on_failure(self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop | Self::TaskCompleted | Self::TeammateIdle)
    }

    /// Default time limit of a command handler, in seconds (gate-and-hooks, section 3.3).
    pub fn default_timeout(self) -> f64 {
        match self {
            Self::UserPromptSubmit => 30.0,
            Self::MessageDisplay => 10.0,
            Self::SessionEnd => 1.5,
            _ => 600.0,
        }
    }

    /// Whether plain text on stdout at exit 0 reaches the model.
    pub fn plain_stdout_is_context(self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPromptSubmit)
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
