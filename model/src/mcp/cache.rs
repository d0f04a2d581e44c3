//! The cache of list and read results (mcp.md 1.8): key = method and params, fresh while now < received + ttlMs, stale
//! at once on a matching change notification. The clock is an argument.

use serde_json::Value;
use std::collections::BTreeMap;

/// With whom a result may be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Everybody.
    Public,
    /// One authorization context.
    Private,
}

/// The methods whose results may be kept.
pub const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

#[derive(Clone, Debug)]
struct Kept {
    result: Value,
    until_ms: u64,
}

/// Kept results. Each page is a result of its own with its own clock, since the cursor is among the params.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// (method, params, authorization context where private)
    kept: BTreeMap<(String, String, Option<String>), Kept>,
}

/// Params without `_meta`, which differs in every request.
fn key(params: Option<&Value>) -> String {
    match params {
        Some(Value::Object(members)) => {
            let mut members = members.clone();
            members.shift_remove("_meta");
            if members.is_empty() { String::new() } else { Value::Object(members).to_string() }
        }
        _ => String::new(),
    }
}

impl Cache {
    /// Keeps a result, if its method, type and `ttlMs` allow it; whether it was kept.
    pub fn keep(
        &mut self,
        method: &str,
        params: Option<&Value>,
        context: &str,
        result: &Value,
        now_ms: u64,
    ) -> bool {
        let complete = result.get("resultType").is_none_or(|kind| kind.as_str() == Some("complete"));
        // A retry of a multi-round-trip request is never kept.
        let retried =
            params.is_some_and(|p| p.get("inputResponses").is_some() || p.get("requestState").is_some());
        let ttl_ms = result.get("ttlMs").and_then(Value::as_u64).unwrap_or(0);
        if !CACHEABLE.contains(&method) || !complete || retried || ttl_ms == 0 {
            return false;
        }
        let public = result.get("cacheScope").and_then(Value::as_str) == Some("public");
        let owner = (!public).then(|| context.to_owned());
        let kept = Kept { result: result.clone(), until_ms: now_ms.saturating_add(ttl_ms) };
        self.kept.insert((method.to_owned(), key(params), owner), kept);
        true
    }

    /// A fresh result for a request of this authorization context.
    pub fn get(&self, method: &str, params: Option<&Value>, context: &str, now_ms: u64) -> Option<&Value> {
        [Some(context.to_owned()), None].into_iter().find_map(|owner| {
            let kept = self.kept.get(&(method.to_owned(), key(params), owner))?;
            (now_ms < kept.until_ms).then_some(&kept.result)
        })
    }

    /// A change notification: what it is about is stale at once.
    pub fn changed(&mut self, notification: &str, params: Option<&Value>) {
        let uri = params.and_then(|params| params.get("uri"));
        let read = uri.map(|uri| serde_json::json!({"uri": uri}).to_string());
        self.kept.retain(|(method, key, _), _| match notification {
            "notifications/tools/list_changed" => method != "tools/list",
            "notifications/prompts/list_changed" => method != "prompts/list",
            "notifications/resources/list_changed" => {
                method != "resources/list" && method != "resources/templates/list"
            }
            "notifications/resources/updated" => {
                method != "resources/read" || read.as_ref().is_some_and(|read| read != key)
            }
            _ => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn freshness_scope_and_change() {
        let mut cache = Cache::default();
        let result = json!({"tools": [], "ttlMs": 1000, "cacheScope": "private", "resultType": "complete"});
        assert!(cache.keep("tools/list", None, "me", &result, 5));
        assert!(cache.get("tools/list", Some(&json!({"_meta": {"a": 1}})), "me", 1004).is_some());
        assert!(cache.get("tools/list", None, "me", 1005).is_none(), "fresh only while now < received + ttl");
        assert!(cache.get("tools/list", None, "other", 6).is_none(), "private");
        assert!(
            cache.get("tools/list", Some(&json!({"cursor": ""})), "me", 6).is_none(),
            "a page of its own"
        );
        cache.changed("notifications/prompts/list_changed", None);
        assert!(cache.get("tools/list", None, "me", 6).is_some());
        cache.changed("notifications/tools/list_changed", None);
        assert!(cache.get("tools/list", None, "me", 6).is_none());
        for bad in [json!({"ttlMs": -5}), json!({}), json!({"ttlMs": 9, "resultType": "input_required"})] {
            assert!(!cache.keep("tools/list", None, "me", &bad, 0));
        }
        assert!(!cache.keep("tools/call", None, "me", &result, 0));
    }
}
