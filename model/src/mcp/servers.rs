//! Where servers come from (M6; mcp.md 3.10): reading `.mcp.json`, scopes, approval, the enterprise file, policy.
//!
//! The whole entry of the strongest scope wins; entries are not merged. What removes a server is returned with it, so
//! that a harness that drops it in silence can still be explained.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A process: program and arguments.
    Stdio {
        /// The program first.
        argv: Vec<String>,
    },
    /// A URL, with the transport's name as written (`http`, `sse`, `ws`).
    Remote {
        /// The name.
        kind: String,
        /// The URL.
        url: String,
    },
}

/// What is wrong with an entry: it is dropped, the others stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// It is no object.
    #[error("the entry is no object")]
    NotAnObject,
    /// Neither `command` nor `url`.
    #[error("the entry has neither `command` nor `url`")]
    NoCommandOrUrl,
    /// A remote type without a URL.
    #[error("an entry of type `{0}` has no `url`")]
    NoUrl(String),
    /// A member has the wrong type.
    #[error("`{0}` has the wrong type")]
    WrongType(&'static str),
}

/// Scopes, strongest first: of entries with one name the first wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `managed-mcp.json`: where it exists, no other scope counts.
    Enterprise,
    /// `--mcp-config`.
    Dynamic,
    /// The user's file, for this folder.
    Local,
    /// `.mcp.json`.
    Project,
    /// The user's file.
    User,
}

/// Why a configured server is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// A stronger scope has an entry of the same name.
    Overridden(Scope),
    /// Another server has the same command or URL and is stronger.
    Duplicate(String),
    /// An enterprise file excludes it.
    NotEnterprise,
    /// Its entry is malformed.
    Bad(BadEntry),
    /// `deniedMcpServers` has it.
    Denied,
    /// `allowedMcpServers` does not have it.
    NotAllowed,
    /// `disabledMcpjsonServers` has it.
    DisabledByUser,
    /// A project server that nobody has approved.
    PendingApproval,
    /// Its name is the harness's own.
    ReservedName,
}

/// One entry of `allowedMcpServers` or `deniedMcpServers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyEntry {
    /// `serverName`.
    Name(String),
    /// `serverCommand`, the exact argv.
    Command(Vec<String>),
    /// `serverUrl`, with `*` for any text.
    Url(String),
}

/// What decides besides the entries themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// `allowedMcpServers`; `None`: all.
    pub allowed: Option<Vec<PolicyEntry>>,
    /// `deniedMcpServers`.
    pub denied: Vec<PolicyEntry>,
    /// `disabledMcpjsonServers`, merged from all files.
    pub disabled: Vec<String>,
    /// Names of project servers that are approved; `None`: no approval is asked for (print mode).
    pub approved: Option<Vec<String>>,
}

/// A server of the session, or why it is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Its name.
    pub name: String,
    /// Where it was configured.
    pub scope: Scope,
    /// How it is reached, where the entry is good.
    pub transport: Option<Transport>,
    /// Why it is not started.
    pub absent: Option<Absent>,
}

/// Names that a harness keeps for itself (mcp.md 3.8).
pub const RESERVED: [&str; 2] = ["claude-in-chrome", "workspace"];

/// Reads one entry, variables not expanded.
///
/// # Errors
/// With what is wrong; the entry is dropped then.
pub fn read_entry(entry: &Value) -> Result<Transport, BadEntry> {
    let entry = entry.as_object().ok_or(BadEntry::NotAnObject)?;
    let kind = entry.get("type").and_then(Value::as_str);
    let url = entry.get("url");
    if let (None | Some("stdio"), Some(command)) = (kind, entry.get("command")) {
        let mut argv = vec![command.as_str().ok_or(BadEntry::WrongType("command"))?.to_owned()];
        match entry.get("args") {
            None | Some(Value::Null) => {}
            Some(Value::Array(args)) => {
                for arg in args {
                    argv.push(arg.as_str().ok_or(BadEntry::WrongType("args"))?.to_owned());
                }
            }
            Some(_) => return Err(BadEntry::WrongType("args")),
        }
        return Ok(Transport::Stdio { argv });
    }
    match (kind, url) {
        (Some("stdio") | None, None) => Err(BadEntry::NoCommandOrUrl),
        (Some(kind), None) => Err(BadEntry::NoUrl(kind.to_owned())),
        (kind, Some(url)) => Ok(Transport::Remote {
            kind: kind.unwrap_or("http").to_owned(),
            url: url.as_str().ok_or(BadEntry::WrongType("url"))?.to_owned(),
        }),
    }
}

/// The entries of a `.mcp.json`: the object under `mcpServers`, or nothing for anything else.
pub fn entries(file: &Value) -> Option<&Map<String, Value>> {
    file.get("mcpServers").and_then(Value::as_object)
}

/// Expands `${VAR}` and `${VAR:-default}`; an unset variable without a default stays as it is written.
///
/// ```
/// use windtunnel_model::mcp::servers::expand;
/// let value = |name: &str| (name == "A").then(|| "1".to_owned());
/// assert_eq!(expand("${A}-${B:-2}-${C}-$A", value), "1-2-${C}-$A");
/// ```
pub fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            expanded.push_str("${");
            expanded.push_str(after);
            return expanded;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        match value(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => expanded.push_str(&value),
            None => {
                expanded.push_str("${");
                expanded.push_str(inside);
                expanded.push('}');
            }
        }
        rest = behind;
    }
    expanded.push_str(rest);
    expanded
}

/// Whether a policy list has a server. `needs_kind`: once a list has a command entry a process must match a command, and
/// the same for URLs; a name alone no longer lets it in.
fn listed(list: &[PolicyEntry], name: &str, transport: &Transport, needs_kind: bool) -> bool {
    let by_name = list.iter().any(|entry| matches!(entry, PolicyEntry::Name(other) if other == name));
    let (by_kind, kind_named) = match transport {
        Transport::Stdio { argv } => (
            list.iter().any(|entry| matches!(entry, PolicyEntry::Command(other) if other == argv)),
            list.iter().any(|entry| matches!(entry, PolicyEntry::Command(_))),
        ),
        Transport::Remote { url, .. } => (
            list.iter().any(|entry| matches!(entry, PolicyEntry::Url(pattern) if matches_url(pattern, url))),
            list.iter().any(|entry| matches!(entry, PolicyEntry::Url(_))),
        ),
    };
    by_kind || by_name && !(needs_kind && kind_named)
}

/// `*` stands for any text, everything else for itself.
pub fn matches_url(pattern: &str, url: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = url.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Decides over all configured servers, in the order of their scopes and files. With an enterprise scope (even an empty
/// one) no other counts.
pub fn resolve(scopes: &[(Scope, &Map<String, Value>)], policy: &Policy) -> Vec<Resolved> {
    let enterprise = scopes.iter().any(|(scope, _)| *scope == Scope::Enterprise);
    let mut sorted: Vec<_> = scopes.iter().collect();
    sorted.sort_by_key(|(scope, _)| *scope);
    let mut taken: BTreeMap<&str, Scope> = BTreeMap::new();
    let mut signatures: Vec<(Transport, &str)> = Vec::new();
    let mut resolved = Vec::new();
    for (scope, servers) in sorted {
        for (name, entry) in *servers {
            let read = read_entry(entry);
            let absent = if enterprise && *scope != Scope::Enterprise {
                Some(Absent::NotEnterprise)
            } else if let Some(stronger) = taken.get(name.as_str()) {
                Some(Absent::Overridden(*stronger))
            } else {
                taken.insert(name, *scope);
                match &read {
                    Err(bad) => Some(Absent::Bad(bad.clone())),
                    Ok(transport) => blocked(name, *scope, transport, policy).or_else(|| {
                        // De-duplication by content is by URL: two processes of one command are two servers.
                        let remote = matches!(transport, Transport::Remote { .. });
                        let same = signatures.iter().find(|(other, _)| remote && same_url(other, transport));
                        same.map(|(_, other)| Absent::Duplicate((*other).to_owned()))
                    }),
                }
            };
            if let (None, Ok(transport)) = (&absent, &read) {
                signatures.push((transport.clone(), name));
            }
            resolved.push(Resolved { name: name.clone(), scope: *scope, transport: read.ok(), absent });
        }
    }
    resolved
}

fn same_url(one: &Transport, other: &Transport) -> bool {
    match (one, other) {
        (Transport::Remote { url: one, .. }, Transport::Remote { url: other, .. }) => {
            one.trim_end_matches('/') == other.trim_end_matches('/')
        }
        _ => false,
    }
}

fn blocked(name: &str, scope: Scope, transport: &Transport, policy: &Policy) -> Option<Absent> {
    if RESERVED.contains(&name) {
        return Some(Absent::ReservedName);
    }
    if listed(&policy.denied, name, transport, false) {
        return Some(Absent::Denied);
    }
    if policy.allowed.as_ref().is_some_and(|allowed| !listed(allowed, name, transport, true)) {
        return Some(Absent::NotAllowed);
    }
    if scope == Scope::Project {
        if policy.disabled.iter().any(|disabled| disabled == name) {
            return Some(Absent::DisabledByUser);
        }
        if policy.approved.as_ref().is_some_and(|approved| !approved.iter().any(|other| other == name)) {
            return Some(Absent::PendingApproval);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn absent(resolved: &[Resolved]) -> Vec<(&str, Option<Absent>)> {
        resolved.iter().map(|server| (server.name.as_str(), server.absent.clone())).collect()
    }

    #[test]
    fn m6_the_strongest_scope_wins_whole() {
        let user = map(&json!({"a": {"command": "u"}, "b": {"command": "u"}}));
        let project = map(&json!({"a": {"command": "p"}, "bad": {"args": []}}));
        let dynamic = map(&json!({"a": {"command": "d"}}));
        let scopes = [(Scope::User, &user), (Scope::Project, &project), (Scope::Dynamic, &dynamic)];
        let resolved = resolve(&scopes, &Policy::default());
        assert_eq!(
            absent(&resolved),
            [
                ("a", None),
                ("a", Some(Absent::Overridden(Scope::Dynamic))),
                ("bad", Some(Absent::Bad(BadEntry::NoCommandOrUrl))),
                ("a", Some(Absent::Overridden(Scope::Dynamic))),
                ("b", None),
            ]
        );
        let empty = Map::new();
        let with_enterprise = [(Scope::User, &user), (Scope::Enterprise, &empty)];
        assert!(
            resolve(&with_enterprise, &Policy::default())
                .iter()
                .all(|s| s.absent == Some(Absent::NotEnterprise))
        );
    }

    #[test]
    fn m6_policy_by_name_command_and_url() {
        let servers = map(&json!({
            "named": {"command": "x"},
            "exact": {"command": "npx", "args": ["-y", "tool"]},
            "remote": {"type": "http", "url": "https://a.example/mcp"},
            "twin": {"type": "http", "url": "https://a.example/mcp/"},
        }));
        let allowed = vec![
            PolicyEntry::Name("named".into()),
            PolicyEntry::Command(vec!["npx".into(), "-y".into(), "tool".into()]),
            PolicyEntry::Url("https://*.example/*".into()),
        ];
        let policy = Policy { allowed: Some(allowed), ..Policy::default() };
        let resolved = resolve(&[(Scope::User, &servers)], &policy);
        assert_eq!(
            absent(&resolved),
            [
                ("named", Some(Absent::NotAllowed)),
                ("exact", None),
                ("remote", None),
                ("twin", Some(Absent::Duplicate("remote".into()))),
            ]
        );
        let denied = Policy { denied: vec![PolicyEntry::Name("exact".into())], ..Policy::default() };
        assert_eq!(resolve(&[(Scope::User, &servers)], &denied)[1].absent, Some(Absent::Denied));
        let nobody = Policy { approved: Some(Vec::new()), ..Policy::default() };
        assert_eq!(resolve(&[(Scope::Project, &servers)], &nobody)[0].absent, Some(Absent::PendingApproval));
        assert_eq!(resolve(&[(Scope::User, &servers)], &nobody)[0].absent, None);
    }

    #[test]
    fn url_patterns() {
        for (pattern, url, fits) in [
            ("https://a/*", "https://a/b", true),
            ("https://a/*", "https://ab/b", false),
            ("*a*b", "xaxb", true),
            ("*a*b", "xbxa", false),
            ("https://a", "https://a/", false),
        ] {
            assert_eq!(matches_url(pattern, url), fits, "{pattern} {url}");
        }
    }
}
