//! Permission modes.
//!
//! Source: Choose a permission mode; gate-and-hooks, section 8.

use serde::{Deserialize, Serialize};

/// A permission mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Ask for what no rule decides.
    #[default]
    Default,
    /// Edits inside the working directories run.
    AcceptEdits,
    /// Look, but change nothing.
    Plan,
    /// A classifier judges what no rule decides.
    Auto,
    /// What would be asked is refused.
    DontAsk,
    /// Everything runs that no deny or ask rule stops.
    #[serde(rename = "bypassPermissions")]
    Bypass,
}

impl Mode {
    /// All modes, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::AcceptEdits, Self::Plan, Self::Auto, Self::DontAsk, Self::Bypass];

    /// The name in settings and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::Bypass => "bypassPermissions",
        }
    }

    /// The mode of that name; case counts.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Mode {
    type Err = UnknownModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_name(text).ok_or_else(|| UnknownModeError { found: text.to_owned() })
    }
}

/// A mode that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no mode `{found}`: expected default, acceptEdits, plan, auto, dontAsk or bypassPermissions")]
pub struct UnknownModeError {
    /// What was written.
    pub found: String,
}
