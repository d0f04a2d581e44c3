//! Compiled rules: one look-up per kind of rule, so that a decision does not grow with the number of rules that name
//! something else.

use super::paths::{Anchor, PathSet};
use super::rule::{BashPattern, Behaviour, Pattern, Wildcard};
use super::web;
use crate::profile::gate::GateParameters;
use crate::sources::merge::SourcedRule;
use crate::sources::settings::Level;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Where path rules are anchored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bases {
    /// The directory the session was started in.
    pub project: String,
    /// Home.
    pub home: String,
}

impl Bases {
    fn of(&self, anchor: Anchor, level: Level) -> String {
        match anchor {
            Anchor::Root => "/".to_owned(),
            Anchor::Home => self.home.clone(),
            Anchor::Cwd => self.project.clone(),
            Anchor::Level => match level {
                Level::User => format!("{}/.claude", self.home),
                Level::Managed => "/etc/claude-code".to_owned(),
                _ => self.project.clone(),
            },
        }
    }
}

/// The rules of one list.
#[derive(Clone, Debug, Default)]
pub struct RuleList {
    tools: FxHashMap<String, u32>,
    servers: FxHashMap<String, u32>,
    globs: Vec<(Wildcard, u32)>,
    bash_exact: FxHashMap<String, u32>,
    bash_by_word: FxHashMap<String, Vec<(BashPattern, u32)>>,
    bash_other: Vec<(BashPattern, u32)>,
    /// Paths that are read.
    pub read: PathSet,
    /// Paths that are written.
    pub edit: PathSet,
    domains: FxHashMap<String, u32>,
    domain_globs: Vec<(String, u32)>,
    agents: FxHashMap<String, u32>,
    skills: FxHashMap<String, u32>,
    parameters: FxHashMap<String, Vec<(String, String, u32)>>,
}

impl RuleList {
    /// The rule that names the tool as a whole: by its name, its server, or a name with stars.
    pub fn tool(&self, name: &str) -> Option<u32> {
        if let Some(rule) = self.tools.get(name) {
            return Some(*rule);
        }
        if !self.servers.is_empty()
            && let Some((server, _)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"))
            && let Some(rule) = self.servers.get(server)
        {
            return Some(*rule);
        }
        self.globs.iter().find(|(glob, _)| glob.matches(name)).map(|(_, rule)| *rule)
    }

    /// The rule that matches a command text: exact on `source`, wildcards on `folded`.
    pub fn bash(&self, source: &str, folded: &str) -> Option<u32> {
        self.bash_exact(source).or_else(|| self.bash_wild(folded))
    }

    /// The exact rule for a command text.
    pub fn bash_exact(&self, source: &str) -> Option<u32> {
        self.bash_exact.get(source).copied()
    }

    /// The wildcard rule for a folded command text.
    pub fn bash_wild(&self, folded: &str) -> Option<u32> {
        let word = folded.split(' ').next().unwrap_or("");
        self.bash_by_word
            .get(word)
            .into_iter()
            .flatten()
            .chain(&self.bash_other)
            .find(|(pattern, _)| pattern.matches_folded(folded))
            .map(|(_, rule)| *rule)
    }

    /// Whether there is any `Bash(…)` rule.
    pub fn has_bash(&self) -> bool {
        !(self.bash_exact.is_empty() && self.bash_by_word.is_empty() && self.bash_other.is_empty())
    }

    /// The rule that covers a host.
    pub fn domain(&self, host: &str) -> Option<u32> {
        self.domains.get(host).copied().or_else(|| {
            self.domain_globs.iter().find(|(glob, _)| web::domain_matches(glob, host)).map(|(_, rule)| *rule)
        })
    }

    /// The rule that names a subagent type.
    pub fn agent(&self, name: &str) -> Option<u32> {
        self.agents.get(name).copied()
    }

    /// The rule that names a skill.
    pub fn skill(&self, name: &str) -> Option<u32> {
        self.skills.get(name).copied()
    }

    /// The rule that names a top-level scalar of the input, as it was sent.
    pub fn parameter(&self, tool: &str, input: &Value) -> Option<u32> {
        self.parameters.get(tool)?.iter().find_map(|(field, value, rule)| {
            let sent = match input.get(field)? {
                Value::String(text) => text == value,
                Value::Bool(flag) => (if *flag { "true" } else { "false" }) == value,
                Value::Number(number) => number.to_string() == *value,
                _ => false,
            };
            sent.then_some(*rule)
        })
    }
}

/// All rules, compiled.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// Deny, ask and allow.
    lists: [RuleList; 3],
    /// What each rule matches, by its index.
    pub patterns: Vec<(Behaviour, Pattern)>,
}

impl RuleSet {
    /// Compiles rules; the index of a rule is its position.
    pub fn compile(rules: &[SourcedRule], bases: &Bases, parameters: &GateParameters) -> Self {
        let mut set = Self::default();
        let mut paths: [[Vec<(String, String, u32)>; 2]; 3] = Default::default();
        for (index, rule) in rules.iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let pattern = Pattern::parse(rule.behaviour, &rule.text, parameters);
            let slot = rule.behaviour as usize;
            if let (Some(list), Some([read, edit])) = (set.lists.get_mut(slot), paths.get_mut(slot)) {
                insert(list, read, edit, &pattern, index, rule.level, bases);
            }
            set.patterns.push((rule.behaviour, pattern));
        }
        for (list, [read, edit]) in set.lists.iter_mut().zip(paths) {
            let ignore_case = parameters.paths_ignore_case.value;
            list.read = PathSet::compile(read, ignore_case);
            list.edit = PathSet::compile(edit, ignore_case);
        }
        set
    }

    /// The compiled rules of one list.
    pub fn list(&self, behaviour: Behaviour) -> &RuleList {
        let [deny, ask, allow] = &self.lists;
        match behaviour {
            Behaviour::Deny => deny,
            Behaviour::Ask => ask,
            Behaviour::Allow => allow,
        }
    }
}

fn insert(
    list: &mut RuleList,
    read: &mut Vec<(String, String, u32)>,
    edit: &mut Vec<(String, String, u32)>,
    pattern: &Pattern,
    index: u32,
    level: Level,
    bases: &Bases,
) {
    // Where two rules say the same the first stands for both.
    match pattern {
        Pattern::Tool(name) => {
            list.tools.entry(name.clone()).or_insert(index);
        }
        Pattern::ToolGlob(glob) => list.globs.push((glob.clone(), index)),
        Pattern::McpServer(server) => {
            list.servers.entry(server.clone()).or_insert(index);
        }
        Pattern::Bash(BashPattern::Exact(text)) => {
            list.bash_exact.entry(text.clone()).or_insert(index);
        }
        Pattern::Bash(wild) => match wild.first_word() {
            Some(word) => list.bash_by_word.entry(word.to_owned()).or_default().push((wild.clone(), index)),
            None => list.bash_other.push((wild.clone(), index)),
        },
        Pattern::ReadPath(path) => read.push((bases.of(path.anchor, level), path.line.clone(), index)),
        Pattern::EditPath(path) => edit.push((bases.of(path.anchor, level), path.line.clone(), index)),
        Pattern::Domain(domain) if domain.contains('*') => list.domain_globs.push((domain.clone(), index)),
        Pattern::Domain(domain) => {
            let host = domain.trim_end_matches('.').to_ascii_lowercase();
            list.domains.entry(host).or_insert(index);
        }
        Pattern::AgentType(name) => {
            list.agents.entry(name.clone()).or_insert(index);
        }
        Pattern::SkillName(name) => {
            list.skills.entry(name.clone()).or_insert(index);
        }
        Pattern::Parameter { tool, field, value, or } => {
            list.parameters.entry(tool.clone()).or_default().push((field.clone(), value.clone(), index));
            if let Some(or) = or {
                insert(list, read, edit, or, index, level, bases);
            }
        }
        Pattern::Never(_) => {}
    }
}
