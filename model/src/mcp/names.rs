//! Qualified tool names: `mcp__<server>__<tool>` (M1), sanitising, ambiguity (B2), length.
//!
//! Source: 004 (M1, B2); mcp.md 3.8 for sanitising, collisions and length as observed.

use std::collections::BTreeMap;

/// What every qualified name begins with.
pub const PREFIX: &str = "mcp__";

/// What stands between server and tool.
pub const SEPARATOR: &str = "__";

/// The longest name that every model API takes.
pub const PORTABLE_LENGTH: usize = 64;

/// The longest name that newer model APIs take; Claude Code 2.1.332 leaves longer ones out.
pub const LONGEST: usize = 128;

/// Replaces every UTF-16 unit outside `[A-Za-z0-9_-]` by `_`, so that an emoji becomes `__` (mcp.md 3.8).
///
/// ```
/// use windtunnel_model::mcp::names::sanitise;
/// assert_eq!(sanitise("my.server"), "my_server");
/// assert_eq!(sanitise("a\u{1F600}"), "a__");
/// ```
pub fn sanitise(part: &str) -> String {
    let mut sanitised = String::with_capacity(part.len());
    for character in part.chars() {
        if character.is_ascii_alphanumeric() || character == '_' || character == '-' {
            sanitised.push(character);
        } else {
            sanitised.extend(std::iter::repeat_n('_', character.len_utf16()));
        }
    }
    sanitised
}

/// What all qualified names of a server begin with: `mcp__<server>__`, the server sanitised.
pub fn server_prefix(server: &str) -> String {
    format!("{PREFIX}{}{SEPARATOR}", sanitise(server))
}

/// The name by which the assistant sees a tool, and which permission rules and hook matchers see (M1): both parts
/// sanitised.
pub fn qualify(server: &str, tool: &str) -> String {
    format!("{}{}", server_prefix(server), sanitise(tool))
}

/// The server name as it is visible for a server that a plugin brings: `plugin_<plugin>_<server>`.
pub fn plugin_server(plugin: &str, server: &str) -> String {
    format!("plugin_{plugin}_{server}")
}

/// Every way to read a qualified name as (sanitised) server and tool, shortest server first. More than one: the name
/// is ambiguous (B2). None: it is no qualified name.
///
/// ```
/// use windtunnel_model::mcp::names::readings;
/// assert_eq!(readings("mcp__a__b__c"), [("a", "b__c"), ("a__b", "c")]);
/// assert!(readings("Read").is_empty());
/// ```
pub fn readings(name: &str) -> Vec<(&str, &str)> {
    let Some(rest) = name.strip_prefix(PREFIX) else { return Vec::new() };
    rest.char_indices()
        .filter_map(|(at, _)| Some((rest.get(..at)?, rest.get(at..)?.strip_prefix(SEPARATOR)?)))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .collect()
}

/// Whether two distinct sanitised server names can give one qualified name, for some tools (B2).
///
/// `s__t = s'__t'` with `s' = s w` needs `__t = w__t'`. A `w` that begins with `__` does it (`t = w' __ t'`), and so
/// does `w = "_"` (`t = _t'`); any other `w` differs from `__` in its first two characters. So the names of a set of
/// servers are injective for all tools iff no server of the set is another one followed by `_`, or by `__` and more.
pub fn can_clash(one: &str, other: &str) -> bool {
    let clashes = |short: &str, long: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest == "_" || rest.starts_with(SEPARATOR))
    };
    one != other && (clashes(one, other) || clashes(other, one))
}

/// Whether a sanitised server name can be read back from every qualified name without knowing the other servers (B2):
/// whether the shortest reading is always the right one. It is iff the name, with `_` added, has no `__` after its first
/// character; then the first separator that leaves a server's name before it is the true one.
pub fn is_self_delimiting(server: &str) -> bool {
    let mut letters = server.chars();
    letters.next().is_some() && !format!("{}_", letters.as_str()).contains(SEPARATOR)
}

/// Tools that share one qualified name, in the order given; the first is the one that calls reach (mcp.md 3.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The shared name.
    pub name: String,
    /// (server, tool) as configured and listed.
    pub tools: Vec<(String, String)>,
}

/// The qualified names that more than one (server, tool) has, sorted by name.
pub fn collisions<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Collision> {
    let mut by_name: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (server, tool) in tools {
        by_name.entry(qualify(server, tool)).or_default().push((server.to_owned(), tool.to_owned()));
    }
    by_name
        .into_iter()
        .filter(|(_, tools)| tools.len() > 1)
        .map(|(name, tools)| Collision { name, tools })
        .collect()
}

/// A key for the order in which Claude Code 2.1.332 sends tools: locale-like, `_` before `-` before digits before
/// letters, case folded first (mcp.md 3.8).
pub fn order_key(name: &str) -> (Vec<(u8, char)>, String) {
    let folded = name
        .chars()
        .map(|character| {
            let class = match character {
                '_' => 0,
                '-' => 1,
                '0'..='9' => 2,
                _ => 3,
            };
            (class, character.to_ascii_lowercase())
        })
        .collect();
    (
        folded,
        name.chars()
            .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts over `alphabet` with 1 to `longest` characters.
    fn texts(alphabet: &[char], longest: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut layer = vec![String::new()];
        for _ in 0..longest {
            layer =
                layer.iter().flat_map(|text| alphabet.iter().map(move |c| format!("{text}{c}"))).collect();
            all.extend(layer.iter().cloned());
        }
        all
    }

    /// B2, exhaustively: servers and tools up to 4 characters over {a, _}.
    #[test]
    fn b2_the_condition_is_exact() {
        let words = texts(&['a', '_'], 4);
        for one in &words {
            for other in &words {
                if one >= other {
                    continue;
                }
                let clash = words.iter().any(|t| {
                    let name = qualify(one, t);
                    name.strip_prefix(&server_prefix(other)).is_some_and(|rest| !rest.is_empty())
                });
                // A tool that shows the clash may need to be longer than the words tried.
                let shown = clash
                    || texts(&['a', '_'], 7).iter().any(|t| {
                        qualify(one, t)
                            .strip_prefix(&server_prefix(other))
                            .is_some_and(|rest| !rest.is_empty())
                            || qualify(other, t)
                                .strip_prefix(&server_prefix(one))
                                .is_some_and(|rest| !rest.is_empty())
                    });
                assert_eq!(can_clash(one, other), shown, "{one} {other}");
            }
        }
    }

    #[test]
    fn b2_self_delimiting_servers_have_one_shortest_reading() {
        let words = texts(&['a', '_'], 4);
        for server in &words {
            let first_is_it =
                words.iter().all(|tool| readings(&qualify(server, tool)).first() == Some(&(server, tool)));
            assert_eq!(is_self_delimiting(server), first_is_it, "{server}");
        }
    }

    #[test]
    fn collisions_name_the_winner_first() {
        let found =
            collisions([("s", "a.b"), ("s", "a_b"), ("my.server", "t"), ("my_server", "t"), ("x", "t")]);
        let names: Vec<_> = found.iter().map(|c| (c.name.as_str(), c.tools[0].1.as_str())).collect();
        assert_eq!(names, [("mcp__my_server__t", "t"), ("mcp__s__a_b", "a.b")]);
        assert_eq!(found[0].tools[0].0, "my.server");
    }
}
