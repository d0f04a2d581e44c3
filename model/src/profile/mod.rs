//! Profiles: which rule set is in force. A profile is a table of parameters, each value with its source, never a fork
//! of the code; `profile list|show|diff` read it off these tables.
//!
//! - `teaching`: the harness of seed 003 (four events, callbacks in order, first answer wins).
//! - `documented`: seed 000 (2026-10-10) first, the documents mirrored 2026-08-22 where it is silent.
//! - `claude-code-2.1.332`: as observed on that version.
//!
//! Each mechanism keeps its parameters in a file of its own, declared with [`parameters!`](crate::parameters).

pub mod agent_loop;
pub mod context;
pub mod gate;
pub mod hooks;
pub mod mcp;
pub mod settings;

use serde::Serialize;

/// Where a parameter's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "text", rename_all = "lowercase")]
pub enum Source {
    /// A document and its section.
    Doc(&'static str),
    /// An observed case, or the section of the observations.
    Seen(&'static str),
    /// Neither documented nor observed: our reading, and of what.
    Inferred(&'static str),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Doc(text) => write!(f, "[doc] {text}"),
            Self::Seen(text) => write!(f, "[seen] {text}"),
            Self::Inferred(text) => write!(f, "[inferred] {text}"),
        }
    }
}

/// One parameter: its value and where that value comes from. `None` inside `T` (an `Option`) stands for "unknown".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter<T> {
    /// The value in force.
    pub value: T,
    /// Its source.
    pub source: Source,
}

/// A parameter whose value is documented.
pub const fn doc<T>(value: T, source: &'static str) -> Parameter<T>
where
    T: Copy,
{
    Parameter { value, source: Source::Doc(source) }
}

/// A parameter whose value was observed.
pub const fn seen<T>(value: T, source: &'static str) -> Parameter<T>
where
    T: Copy,
{
    Parameter { value, source: Source::Seen(source) }
}

/// A parameter whose value is our reading.
pub const fn inferred<T>(value: T, source: &'static str) -> Parameter<T>
where
    T: Copy,
{
    Parameter { value, source: Source::Inferred(source) }
}

/// One row of the table that `profile show` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `mechanism.parameter`.
    pub name: String,
    /// What the parameter decides.
    pub meaning: &'static str,
    /// The value, as its `Debug` text.
    pub value: String,
    /// Where it comes from.
    pub source: Source,
}

/// Declares the parameter table of one mechanism: a struct of [`Parameter`]s and its `rows`.
#[macro_export]
macro_rules! parameters {
    ($(#[$meta:meta])* $mechanism:literal $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $crate::profile::Parameter<$type>,)+
        }

        impl $name {
            /// The table, a row a parameter, in the order of declaration.
            pub fn rows(&self) -> Vec<$crate::profile::Row> {
                vec![$($crate::profile::Row {
                    name: concat!($mechanism, ".", stringify!($field)).to_owned(),
                    meaning: concat!($($doc),+),
                    value: format!("{:?}", self.$field.value),
                    source: self.$field.source,
                },)+]
            }
        }
    };
}

/// The profiles that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProfileName {
    /// Seed 003's teaching harness.
    Teaching,
    /// The documents as of 2026-10-10.
    Documented,
    /// Claude Code 2.1.332 as observed.
    ClaudeCode,
}

impl ProfileName {
    /// All of them, in the order of the documents.
    pub const ALL: [Self; 3] = [Self::Teaching, Self::Documented, Self::ClaudeCode];

    /// The name on the command line and in scenario files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Teaching => "teaching",
            Self::Documented => "documented",
            Self::ClaudeCode => "claude-code-2.1.332",
        }
    }

    /// What it is, in a line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Teaching => "a minimal teaching harness; what it leaves out shows as broken invariants",
            Self::Documented => {
                "the documents: 000 (2026-10-10) first, those of 2026-08-22 where it is silent"
            }
            Self::ClaudeCode => "Claude Code 2.1.332 as observed; the documents where nothing was observed",
        }
    }

    /// The table of parameters.
    pub fn profile(self) -> Profile {
        Profile {
            name: self,
            agent_loop: match self {
                Self::Teaching => agent_loop::TEACHING,
                Self::Documented => agent_loop::DOCUMENTED,
                Self::ClaudeCode => agent_loop::CLAUDE_CODE,
            },
            hooks: match self {
                Self::Teaching => hooks::TEACHING,
                Self::Documented => hooks::DOCUMENTED,
                Self::ClaudeCode => hooks::CLAUDE_CODE,
            },
            gate: match self {
                Self::Teaching => gate::TEACHING,
                Self::Documented => gate::DOCUMENTED,
                Self::ClaudeCode => gate::CLAUDE_CODE,
            },
            settings: match self {
                Self::Teaching => settings::TEACHING,
                Self::Documented => settings::DOCUMENTED,
                Self::ClaudeCode => settings::CLAUDE_CODE,
            },
            context: match self {
                Self::Teaching => context::TEACHING,
                Self::Documented => context::DOCUMENTED,
                Self::ClaudeCode => context::CLAUDE_CODE,
            },
            mcp: match self {
                Self::Teaching => mcp::TEACHING,
                Self::Documented => mcp::DOCUMENTED,
                Self::ClaudeCode => mcp::CLAUDE_CODE,
            },
        }
    }
}

impl std::fmt::Display for ProfileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl std::str::FromStr for ProfileName {
    type Err = UnknownProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|name| name.word() == text)
            .ok_or_else(|| UnknownProfileError { found: text.to_owned() })
    }
}

/// A profile name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no profile `{found}`: expected `teaching`, `documented` or `claude-code-2.1.332`")]
pub struct UnknownProfileError {
    /// What was written.
    pub found: String,
}

/// A rule set: one table of parameters a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: ProfileName,
    /// The loop.
    pub agent_loop: agent_loop::LoopParameters,
    /// Hooks.
    pub hooks: hooks::HookParameters,
    /// The permission gate.
    pub gate: gate::GateParameters,
    /// Settings files.
    pub settings: settings::SettingsParameters,
    /// What stands in the context, and what it costs.
    pub context: context::ContextParameters,
    /// MCP.
    pub mcp: mcp::McpParameters,
}

impl Profile {
    /// The whole table.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.agent_loop.rows();
        rows.extend(self.hooks.rows());
        rows.extend(self.gate.rows());
        rows.extend(self.settings.rows());
        rows.extend(self.context.rows());
        rows.extend(self.mcp.rows());
        rows
    }
}
