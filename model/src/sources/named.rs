//! Named definitions: which source's definition of a name counts where several have one.
//!
//! Source: 000, section 6 (proposition 6.2, example 6.3); sources-and-sandbox, section 2. For servers, skills and
//! subagents the whole definition of the highest source counts, no field of another; hooks and CLAUDE.md add up. Check
//! 6.2.

/// What has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// MCP servers.
    McpServer,
    /// Skills. Those of plugins have a namespace, so they never share a name with others.
    Skill,
    /// Subagents.
    Subagent,
    /// Hooks.
    Hook,
    /// CLAUDE.md files.
    ClaudeMd,
}

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The organisation's managed settings.
    Organisation,
    /// A flag of the command line.
    CommandLine,
    /// The user's, for this folder.
    Local,
    /// The project's.
    Project,
    /// The user's.
    User,
    /// A plugin's.
    Plugin,
    /// A connector of the account.
    Connector,
}

/// How definitions of one name compose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Composition {
    /// That of the highest source counts, as it stands; highest first.
    Highest(&'static [Origin]),
    /// All count.
    All,
}

impl Mechanism {
    /// The rule for its definitions. Of `--mcp-config` 000 says nothing; its place was seen (mcp-flag-over-local).
    pub fn composition(self) -> Composition {
        use Origin::{CommandLine, Connector, Local, Organisation, Plugin, Project, User};
        match self {
            Self::McpServer => Composition::Highest(&[CommandLine, Local, Project, User, Plugin, Connector]),
            Self::Skill => Composition::Highest(&[Organisation, User, Project]),
            Self::Subagent => Composition::Highest(&[Organisation, CommandLine, Project, User, Plugin]),
            Self::Hook | Self::ClaudeMd => Composition::All,
        }
    }
}

/// One definition of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition<D> {
    /// Where it comes from.
    pub origin: Origin,
    /// What it says.
    pub says: D,
}

/// What counts for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effective<'a, D> {
    /// No source that counts for the mechanism defines it.
    Nothing,
    /// This definition, as it stands.
    One(&'a Definition<D>),
    /// All of these.
    All(Vec<&'a Definition<D>>),
    /// The highest source defines it more than once: which of them counts is not laid down.
    Ambiguous(Vec<&'a Definition<D>>),
}

/// What counts of the definitions of one name.
pub fn effective<D>(composition: Composition, definitions: &[Definition<D>]) -> Effective<'_, D> {
    let order = match composition {
        Composition::All if definitions.is_empty() => return Effective::Nothing,
        Composition::All => return Effective::All(definitions.iter().collect()),
        Composition::Highest(order) => order,
    };
    for origin in order {
        let own: Vec<&Definition<D>> =
            definitions.iter().filter(|definition| definition.origin == *origin).collect();
        match own.as_slice() {
            [] => {}
            [one] => return Effective::One(one),
            _ => return Effective::Ambiguous(own),
        }
    }
    Effective::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_of_one_source_are_ambiguous() {
        let twice = [
            Definition { origin: Origin::Project, says: "a" },
            Definition { origin: Origin::Project, says: "b" },
            Definition { origin: Origin::User, says: "c" },
        ];
        let composition = Mechanism::Subagent.composition();
        assert!(matches!(effective(composition, &twice), Effective::Ambiguous(own) if own.len() == 2));
        let unranked = [Definition { origin: Origin::Connector, says: "a" }];
        assert_eq!(effective(composition, &unranked), Effective::Nothing);
    }
}
