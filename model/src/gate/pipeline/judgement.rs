//! What became of a call: its outcome, who decided, and the steps on the way.

use super::Session;
use crate::gate::permission::{By, Permission};
use crate::hooks::HookDecision;
use crate::place::Place;
use serde::Serialize;
use serde_json::Value;

/// How a call ends at the gate, in the words of expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Let through.
    Run,
    /// Refused by a hook or a rule.
    Blocked,
    /// A question that nobody could answer, or that the mode refuses.
    NeedsApproval,
    /// No such tool.
    Gone,
    /// The input is wrong.
    Error,
    /// Put off by a hook.
    Deferred,
    /// It depends on something that is not known.
    Unknown,
}

impl Outcome {
    /// All, in the order of the documentation of expectations.
    pub const ALL: [Self; 7] = [
        Self::Run,
        Self::Blocked,
        Self::NeedsApproval,
        Self::Gone,
        Self::Error,
        Self::Deferred,
        Self::Unknown,
    ];

    /// The outcome of a word of expectations.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.word() == word)
    }

    /// The word of expectations.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Blocked => "blocked",
            Self::NeedsApproval => "needs-approval",
            Self::Gone => "gone",
            Self::Error => "error",
            Self::Deferred => "deferred",
            Self::Unknown => "unknown",
        }
    }

    /// The word of the decision in JSON.
    pub fn decision(self) -> &'static str {
        match self {
            Self::Run => "allow",
            Self::Blocked => "deny",
            Self::NeedsApproval => "ask",
            Self::Gone => "gone",
            Self::Error => "error",
            Self::Deferred => "defer",
            Self::Unknown => "unknown",
        }
    }
}

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The stage.
    pub stage: &'static str,
    /// Its result in one word.
    pub result: String,
    /// What happened.
    pub text: String,
    /// Where it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Place>,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecidedBy {
    /// `rule`, `hook`, `mode`, `tool`, `input`, `nobody`, `read-only`, `directory`, `safety`.
    pub kind: &'static str,
    /// In words.
    pub text: String,
    /// Where it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Place>,
}

/// What became of a call.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// How it ended.
    pub outcome: Outcome,
    /// Who decided.
    pub decided_by: DecidedBy,
    /// Every step, in order.
    pub steps: Vec<Step>,
    /// The input as it would run.
    pub input: Value,
    /// What the PreToolUse hooks said together.
    pub hook_decision: HookDecision,
    /// How many handlers ran.
    pub hook_runs: usize,
    /// Pointers of the handlers that ran, with their file.
    pub handlers: Vec<(String, String)>,
    /// The rules that decided or took part.
    pub rules: Vec<u32>,
    /// Whether the run ends after this batch.
    pub ends_run: bool,
    /// Whether the run is aborted at once.
    pub aborts: bool,
}

impl Session {
    /// Who gave the permission step's answer, in words.
    pub fn decided(&self, by: &By, permission: Permission) -> DecidedBy {
        let plain = |kind: &'static str, text: String| DecidedBy { kind, text, source: None };
        match by {
            By::Rule(rule) => {
                DecidedBy { kind: "rule", text: self.rule_text(*rule), source: self.place_of(*rule) }
            }
            By::Parts(rules) => DecidedBy {
                kind: "rule",
                text: format!(
                    "every part of the command is allowed: {}",
                    rules.iter().map(|rule| self.rule_text(*rule)).collect::<Vec<_>>().join(", ")
                ),
                source: rules.first().and_then(|rule| self.place_of(*rule)),
            },
            By::Mode if permission == Permission::Check => plain(
                "mode",
                "the classifier of auto mode has to judge it, and none can be reached".to_owned(),
            ),
            By::Mode => plain("mode", format!("permission mode `{}`", self.workspace.mode)),
            By::InsideDirectories => plain("directory", "reading inside the working directories".to_owned()),
            By::ReadOnly => plain("read-only", "every part only reads, or the mode runs it".to_owned()),
            By::NeedsNone => plain("tool", "the tool needs no permission".to_owned()),
            By::Preapproved => plain("tool", "the host is approved beforehand".to_owned()),
            By::Protected(path) => plain("safety", format!("`{path}` is a protected path")),
            By::Critical(path) => plain("safety", format!("removing `{path}` is critical")),
            By::Outside(path) => plain("directory", format!("`{path}` is outside the working directories")),
            By::Symlink(path) => plain("tool", format!("`{path}` is a symbolic link")),
            By::Unreadable(obstacle) => plain("nobody", format!("no rule can match: {}", obstacle.text())),
            By::Background => plain("nobody", "the command runs in the background".to_owned()),
            By::Part(text) => plain("nobody", format!("no rule for the part `{text}`")),
            By::ChangesDirectory(text) => plain("nobody", format!("it changes directory first: `{text}`")),
            By::Nobody => plain("nobody", "no rule decides".to_owned()),
        }
    }
}
