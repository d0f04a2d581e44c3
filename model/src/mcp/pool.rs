//! The pool of tools of all servers, and its refresh (M5, B2).
//!
//! Source: 004 (M5): on list_changed or reconnect first remove every tool with the server's prefix, then insert the new
//! list. Its promise, "no other server's tool disappears", fails where one server's prefix is a prefix of another's
//! names (`a` and `a__b`): [`RefreshRule::ByPrefix`] shows it, [`RefreshRule::ByOwner`] is the correction.

use super::names::{qualify, server_prefix};
use std::collections::BTreeMap;

/// Whose tools a refresh takes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshRule {
    /// Every tool whose qualified name begins with the server's prefix, as documented.
    ByPrefix,
    /// Every tool that was inserted for the server.
    ByOwner,
}

/// A tool of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolTool {
    /// The server that it belongs to, as configured.
    pub server: String,
    /// Its own name, as listed: what `tools/call` sends (M1: rebuilt from the stored server and tool).
    pub tool: String,
}

/// What happened to a tool that could not be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// The shared qualified name.
    pub name: String,
    /// Who has it.
    pub owner: PoolTool,
    /// Who wanted it.
    pub loser: PoolTool,
}

/// The tools that the assistant may call, by qualified name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    tools: BTreeMap<String, PoolTool>,
}

impl Pool {
    /// Replaces a server's tools. The first server to have a name keeps it (mcp.md 3.8); the losers are returned.
    pub fn refresh(&mut self, rule: RefreshRule, server: &str, tools: &[&str]) -> Vec<Shadowed> {
        self.remove(rule, server);
        let mut shadowed = Vec::new();
        for tool in tools {
            let new = PoolTool { server: server.to_owned(), tool: (*tool).to_owned() };
            let name = qualify(server, tool);
            match self.tools.get(&name) {
                Some(owner) => shadowed.push(Shadowed { name, owner: owner.clone(), loser: new }),
                None => {
                    self.tools.insert(name, new);
                }
            }
        }
        shadowed
    }

    /// Takes a server's tools out: it disconnected, failed or was disabled (M4).
    pub fn remove(&mut self, rule: RefreshRule, server: &str) {
        let prefix = server_prefix(server);
        self.tools.retain(|name, tool| match rule {
            RefreshRule::ByPrefix => !name.starts_with(&prefix),
            RefreshRule::ByOwner => tool.server != server,
        });
    }

    /// The tool that a qualified name reaches.
    pub fn get(&self, name: &str) -> Option<&PoolTool> {
        self.tools.get(name)
    }

    /// The qualified names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(rule: RefreshRule) -> Pool {
        let mut pool = Pool::default();
        pool.refresh(rule, "a", &["x"]);
        pool.refresh(rule, "a__b", &["c"]);
        pool
    }

    #[test]
    fn b2_a_refresh_by_prefix_takes_another_servers_tools() {
        let mut by_prefix = pool(RefreshRule::ByPrefix);
        by_prefix.refresh(RefreshRule::ByPrefix, "a", &["x"]);
        assert_eq!(by_prefix.names().collect::<Vec<_>>(), ["mcp__a__x"], "a__b's tool is gone");
        let mut by_owner = pool(RefreshRule::ByOwner);
        by_owner.refresh(RefreshRule::ByOwner, "a", &["x"]);
        assert_eq!(by_owner.names().collect::<Vec<_>>(), ["mcp__a__b__c", "mcp__a__x"]);
    }

    #[test]
    fn m5_no_stale_tool_stays() {
        for rule in [RefreshRule::ByPrefix, RefreshRule::ByOwner] {
            let mut pool = Pool::default();
            pool.refresh(rule, "s", &["old", "kept"]);
            pool.refresh(rule, "s", &["kept", "new"]);
            assert_eq!(pool.names().collect::<Vec<_>>(), ["mcp__s__kept", "mcp__s__new"]);
        }
    }

    #[test]
    fn the_first_of_two_colliding_servers_gets_the_calls() {
        let mut pool = Pool::default();
        assert!(pool.refresh(RefreshRule::ByOwner, "my.server", &["t"]).is_empty());
        let shadowed = pool.refresh(RefreshRule::ByOwner, "my_server", &["t"]);
        assert_eq!(shadowed.len(), 1);
        assert_eq!(pool.get("mcp__my_server__t").map(|t| t.server.as_str()), Some("my.server"));
    }
}
