//! The real harness as a subject: two hooks before and one after every call, two MCP servers, up to three parallel
//! calls out of four tools, every outcome of hooks, people, tools and servers, all invariants on.

use serde_json::{Value, json};

/// The tools, with an input each.
const TOOLS: [(&str, &str); 4] = [
    ("mcp__files__read", "{}"),
    ("mcp__web__fetch", "{}"),
    ("Read", r#"{"file_path":"a.txt"}"#),
    ("Grep", r#"{"pattern":"a"}"#),
];

/// Whether the tools, two bits each, come in ascending order: the order of the calls makes no other reply.
fn is_ascending(tools: usize, calls: u32) -> bool {
    (1..calls).all(|slot| tools >> (2 * (slot - 1)) & 3 <= tools >> (2 * slot) & 3)
}

/// Every reply with one, two or three calls of the four tools, and the reply that ends.
fn replies() -> Vec<Value> {
    let mut replies = vec![json!({ "text": "Done." })];
    for calls in 1..=3u32 {
        for tools in (0..4usize.pow(calls)).filter(|tools| is_ascending(*tools, calls)) {
            let call = |slot: u32| {
                let tool = tools / 4usize.pow(slot) % 4;
                let (name, input) = TOOLS[tool];
                let input: Value = serde_json::from_str(input).unwrap_or_default();
                json!({ "id": format!("t{tool}s{slot}"), "tool": name, "input": input })
            };
            replies.push(json!({ "calls": (0..calls).map(call).collect::<Vec<_>>() }));
        }
    }
    replies
}

/// The scenario with a turn limit.
#[must_use]
pub fn scenario(turns: u8) -> String {
    let server = |tool: &str| {
        json!({ "tools": [{
            "name": tool, "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true }
        }] })
    };
    let allow =
        json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "allow" } });
    let halt = json!({ "continue": false, "stopReason": "enough" });
    let ends = json!([{ "any_of": [
        { "result": "text" }, { "error": "no" }, { "protocol_error": "bad" }, { "silent": true }, { "closes": true }
    ] }]);
    json!({
        "version": 1,
        "title": "Up to three parallel calls, two servers, everything can happen",
        "harness": {
            "settings": { "project": {
                "permissions": { "allow": ["mcp__files__read"], "ask": ["mcp__web__fetch"], "deny": ["Grep"] },
                "hooks": {
                    "PreToolUse": [{ "matcher": "*", "hooks": [
                        { "type": "command", "command": "guard" }, { "type": "command", "command": "audit" }
                    ] }],
                    "PostToolUse": [{ "matcher": "*", "hooks": [{ "type": "command", "command": "after" }] }]
                }
            } },
            "limits": { "max_turns": turns }
        },
        "world": {
            "prompt": "Do it.",
            "model_repeats": true,
            "model": [{ "any_of": replies() }],
            "hooks": {
                "guard": [{ "any_of": [{ "exit": 0 }, { "exit": 2, "stderr": "no" }, { "exit": 1 }] }],
                "audit": [{ "any_of": [{ "exit": 0 }, { "exit": 0, "stdout": allow.to_string() }] }],
                "after": [{ "any_of": [{ "exit": 0 }, { "exit": 0, "stdout": halt.to_string() }] }]
            },
            "tools": {
                "mcp__files__read": ends.clone(),
                "mcp__web__fetch": ends,
                "Read": [{ "any_of": [{ "result": "a" }, { "error": "no" }, { "silent": true }] }],
                "Grep": [{ "any_of": [{ "result": "a" }, { "error": "no" }] }]
            },
            "servers": { "files": server("read"), "web": server("fetch") },
            "user": [{ "any_of": [{ "allow": true }, { "allow": false }] }]
        },
        "files": { "a.txt": "a" }
    })
    .to_string()
}
