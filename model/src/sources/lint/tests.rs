//! One mistake a row: the finding that names it, and a corrected form that has none of that id.

use super::*;
use crate::profile::ProfileName;

fn ids(text: &str) -> Vec<String> {
    let profile = ProfileName::ClaudeCode.profile();
    lint(Level::User, "settings.json", text, &profile, &NoScripts).into_iter().map(|f| f.id).collect()
}

fn hooks(event: &str, group: &str) -> String {
    format!("{{\"hooks\":{{\"{event}\":[{group}]}}}}")
}

fn command(event: &str, line: &str) -> String {
    let line = serde_json::to_string(line).unwrap();
    hooks(event, &format!("{{\"matcher\":\"Bash\",\"hooks\":[{{\"type\":\"command\",\"command\":{line}}}]}}"))
}

fn matcher(text: &str) -> String {
    hooks(
        "PreToolUse",
        &format!("{{\"matcher\":\"{text}\",\"hooks\":[{{\"type\":\"command\",\"command\":\"true\"}}]}}"),
    )
}

fn rules(list: &str, rules: &str) -> String {
    format!("{{\"permissions\":{{\"{list}\":[{rules}]}}}}")
}

#[test]
fn each_mistake_is_named_and_its_correction_is_not() {
    let rows: Vec<(&str, String, String)> = vec![
        ("settings-file-dropped", "{\"permissions\":{\"deny\":\"x\"}}".into(), rules("deny", "\"Write\"")),
        ("settings-file-dropped", "{\"permissions\":{},}".into(), "{\"permissions\":{}}".into()),
        ("duplicate-key", "{\"env\":{},\"env\":{}}".into(), "{\"env\":{}}".into()),
        ("rule-matches-nothing", rules("deny", "\"Write(src/**)\""), rules("deny", "\"Edit(src/**)\"")),
        ("rule-matches-nothing", rules("allow", "\"mcp__*\""), rules("allow", "\"mcp__s\"")),
        ("retired-tool", rules("allow", "\"MultiEdit\""), rules("allow", "\"Edit\"")),
        ("rule-unknown-tool", rules("deny", "\"Reed\""), rules("deny", "\"Read\"")),
        ("rule-unknown-tool", rules("deny", "\"bash(rm *)\""), rules("deny", "\"Bash(rm *)\"")),
        ("single-slash-path", rules("deny", "\"Read(/etc/**)\""), rules("deny", "\"Read(//etc/**)\"")),
        ("exact-compound-rule", rules("allow", "\"Bash(a && b)\""), rules("allow", "\"Bash(a *)\"")),
        ("prefix-mark-inside", rules("deny", "\"Bash(a:* b)\""), rules("deny", "\"Bash(a * b)\"")),
        ("rule-with-assignment", rules("allow", "\"Bash(FOO=1 a)\""), rules("allow", "\"Bash(a)\"")),
        ("duplicate-rule", rules("allow", "\"Write\",\"Write\""), rules("allow", "\"Write\"")),
        (
            "rule-in-two-lists",
            "{\"permissions\":{\"allow\":[\"Write\"],\"ask\":[\"Write\"]}}".into(),
            rules("ask", "\"Write\""),
        ),
        (
            "rule-shadowed",
            "{\"permissions\":{\"allow\":[\"Bash(git status)\"],\"deny\":[\"Bash(git *)\"]}}".into(),
            "{\"permissions\":{\"allow\":[\"Bash(git status)\"],\"deny\":[\"Bash(git push *)\"]}}".into(),
        ),
        (
            "deny-undone-by-broad-allow",
            "{\"permissions\":{\"allow\":[\"Bash\"],\"deny\":[\"Bash(rm *)\"]}}".into(),
            rules("deny", "\"Bash(rm *)\""),
        ),
        ("unknown-event", command("pre_tool_use", "true"), command("PreToolUse", "true")),
        ("unknown-permission-key", "{\"permissions\":{\"read\":{}}}".into(), "{\"permissions\":{}}".into()),
        ("matcher-is-an-expression", matcher("tool == 'Bash'"), matcher("Bash")),
        ("matcher-is-a-rule", matcher("Bash(git *)"), matcher("Bash")),
        ("matcher-matches-nothing", matcher("["), matcher("Bash")),
        ("matcher-names-a-server", matcher("mcp__s"), matcher("mcp__s__.*")),
        ("matcher-unknown-tool", matcher("bash"), matcher("Bash")),
        ("exit-1-guard", command("PreToolUse", "echo no >&2; exit 1"), command("PreToolUse", "exit 2")),
        ("exit-code-swallowed", command("PreToolUse", "check || true"), command("PreToolUse", "check")),
        (
            "decision-at-top-level",
            command("PreToolUse", "printf '{\"permissionDecision\":\"deny\"}'"),
            command("PreToolUse", "true"),
        ),
        (
            "output-without-event-name",
            command("PreToolUse", "printf '{\"hookSpecificOutput\":{}}'"),
            command("PreToolUse", "true"),
        ),
        (
            "undocumented-variable",
            command("PreToolUse", "[ \"$TOOL_NAME\" = x ]"),
            command("PreToolUse", "[ \"$X\" = x ]"),
        ),
        ("placeholder-in-command", command("PreToolUse", "lint {{file}}"), command("PreToolUse", "lint")),
        (
            "unquoted-path-placeholder",
            command("PreToolUse", "$CLAUDE_PROJECT_DIR/x.sh"),
            command("PreToolUse", "\"$CLAUDE_PROJECT_DIR\"/x.sh"),
        ),
        ("relative-script", command("PreToolUse", "sh .claude/hooks/g.sh"), command("PreToolUse", "true")),
        ("output-is-input", command("PreToolUse", "cat"), command("PreToolUse", "true")),
        (
            "timeout-in-milliseconds",
            hooks("Stop", "{\"hooks\":[{\"type\":\"command\",\"command\":\"x\",\"timeout\":5000}]}"),
            hooks("Stop", "{\"hooks\":[{\"type\":\"command\",\"command\":\"x\",\"timeout\":5}]}"),
        ),
        (
            "on-failure-without-effect",
            hooks("Stop", "{\"hooks\":[{\"type\":\"command\",\"command\":\"x\",\"onFailure\":\"block\"}]}"),
            command("PreToolUse", "true"),
        ),
        (
            "condition-never-holds",
            hooks("Stop", "{\"hooks\":[{\"type\":\"command\",\"command\":\"x\",\"if\":\"Bash\"}]}"),
            command("PreToolUse", "true"),
        ),
    ];
    for (id, wrong, right) in rows {
        assert!(ids(&wrong).iter().any(|found| found == id), "{id} not found in {wrong}: {:?}", ids(&wrong));
        assert!(!ids(&right).iter().any(|found| found == id), "{id} found in {right}");
    }
}

#[test]
fn a_dropped_file_counts_its_lost_deny_rules() {
    let text = "{\"permissions\":{\"deny\":[\"Edit(a)\",\"Edit(b)\"]},\"hooks\":{\"PreToolUse\":[\"x\"]}}";
    let profile = ProfileName::ClaudeCode.profile();
    let findings = lint(Level::User, "s.json", text, &profile, &NoScripts);
    let dropped = findings.iter().find(|f| f.id == "settings-file-dropped").unwrap();
    assert!(dropped.message.contains("2 deny rules are lost"), "{}", dropped.message);
    assert_eq!(dropped.at.as_ref().and_then(|place| place.line), Some(1));
}
