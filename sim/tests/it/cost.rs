//! `cost`, end to end: the figures of real tool lists, projects and transcripts.

use crate::support::shared;
use crate::support::{Output, cli};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windtunnel::cli::Exit;
use windtunnel_model::context::tokens::Counter as _;

fn windtunnel(cwd: &Path, args: &[&str]) -> (Exit, String, String) {
    let Output { exit, stdout, stderr } = cli(args, cwd);
    (exit, stdout, stderr)
}

fn json_of(cwd: &Path, args: &[&str]) -> Value {
    let (exit, stdout, stderr) = windtunnel(cwd, args);
    assert_eq!(exit, Exit::Holds, "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// A list of `n` tools of the same size.
fn list(n: usize) -> String {
    let tools: Vec<Value> = (0..n)
        .map(|index| json!({"name": format!("tool_{index:03}"), "description": "Does a thing. And more of it.", "inputSchema": {"type": "object", "description": "x"}}))
        .collect();
    json!({ "tools": tools }).to_string()
}

#[test]
fn the_report_holds_the_fields_of_the_contract_and_they_add_up() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("srv.json"), list(12)).unwrap();
    let report =
        json_of(folder.path(), &["cost", "--tools", "srv.json", "--use", "tool_003", "--format", "json"]);
    assert_eq!((&report["version"], &report["command"]), (&json!(1), &json!("cost")));
    let server = &report["servers"][0];
    assert_eq!((&server["name"], &server["tools"]), (&json!("srv"), &json!(12)));
    let definitions = server["definitions"].as_array().unwrap();
    let sum: u64 = definitions.iter().map(|row| row["tokens"].as_u64().unwrap()).sum();
    assert_eq!(report["upfront"], json!(sum));
    let names = report["names"].as_u64().unwrap();
    let used = definitions.iter().find(|row| row["used"] == true).unwrap();
    assert_eq!(report["deferred"], json!(names + used["tokens"].as_u64().unwrap()));
    // The crossover is the last number of used tools for which deferring is smaller (equal sizes).
    let (d, u) = (sum / 12, report["crossover_used"].as_u64().unwrap());
    assert!(names + u * d < sum && names + (u + 1) * d >= sum);
    // One search is one request more, and both strategies cost something.
    assert_eq!(report["session"]["upfront"]["requests"], json!(30));
    assert_eq!(report["session"]["deferred"]["requests"], json!(31));
    assert!(report["session"]["upfront"]["tools_usd"].as_f64() > Some(0.0));
    assert!(
        report["session"]["upfront"]["order_changes_usd"].as_f64()
            > report["session"]["upfront"]["usd"].as_f64()
    );
    let again =
        windtunnel(folder.path(), &["cost", "--tools", "srv.json", "--use", "tool_003", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&again.1).unwrap(), report);
}

#[test]
fn token_counts_equal_those_of_another_implementation_of_the_encodings() {
    // The figures of the README beside the lists were made with js-tiktoken: an array of {name, description,
    // input_schema} with bare names.
    let Some(folder) = shared("tools-list") else { return };
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut compared = 0;
    for row in readme.lines().filter(|line| line.contains(".json |")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let text = std::fs::read_to_string(folder.join(cells[1])).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let tools: Vec<Value> = document["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| {
                let mut sent = json!({"name": tool["name"]});
                if tool.get("description").is_some() {
                    sent["description"] = tool["description"].clone();
                }
                sent["input_schema"] = tool["inputSchema"].clone();
                sent
            })
            .collect();
        let text = Value::Array(tools).to_string();
        let count = |encoding: windtunnel::tokens::Encoding| encoding.counter().count(&text).to_string();
        assert_eq!(count(windtunnel::tokens::Encoding::O200k), cells[9], "{}", cells[1]);
        assert_eq!(count(windtunnel::tokens::Encoding::Cl100k), cells[10], "{}", cells[1]);
        compared += 1;
    }
    assert!(compared >= 13, "{compared}");
}

#[test]
fn a_project_is_counted_part_by_part_and_says_what_it_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("CLAUDE.md", "Use tabs. See @docs/style.md and `@docs/none.md`.\n");
    write("docs/style.md", "Style.\n");
    write("docs/none.md", "Not imported.\n");
    write(".claude/rules/all.md", "A rule.\n");
    write(".claude/rules/some.md", "---\npaths: src/**\n---\nLater.\n");
    write(".claude/skills/greet/SKILL.md", "---\ndescription: Says hello\n---\nBODY\n");
    write(
        ".claude/skills/hidden/SKILL.md",
        "---\ndescription: d\ndisable-model-invocation: true\n---\nBODY\n",
    );
    write(".claude/agents/rev.md", "---\nname: rev\ndescription: Reviews\n---\nA long prompt.\n");
    write(".mcp.json", r#"{"mcpServers": {"s": {"command": "false"}}}"#);
    let report = json_of(folder.path(), &["cost", "--project", ".", "--format", "json"]);
    let parts: Vec<&str> =
        report["project"].as_array().unwrap().iter().map(|part| part["part"].as_str().unwrap()).collect();
    for wanted in ["CLAUDE.md", "docs/style.md (imported)", ".claude/rules/all.md", "listing of 1 skills"] {
        assert!(parts.contains(&wanted), "{wanted} in {parts:?}");
    }
    assert!(!parts.iter().any(|part| part.contains("none.md") || part.contains("some.md")));
    assert_eq!(report["skills"]["skills"], json!(2));
    assert!(report["not_counted"][0].as_str().unwrap().contains("server s"));
    // The body of a skill changes nothing that is resident (proposition 5.2 part 1).
    write(
        ".claude/skills/greet/SKILL.md",
        &format!("---\ndescription: Says hello\n---\n{}\n", "long ".repeat(9_000)),
    );
    let longer = json_of(folder.path(), &["cost", "--project", ".", "--format", "json"]);
    assert_eq!(longer["project"], report["project"]);
}

/// Each key that the listing and the loading read, from the level that wins; a strategy on the command line goes first.
#[test]
fn settings_of_the_project_decide_loading_and_listing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let description = "long ".repeat(40);
    write(".claude/skills/a/SKILL.md", &format!("---\ndescription: {description}\n---\nBODY\n"));
    write(".claude/skills/b/SKILL.md", &format!("---\ndescription: {description}\n---\nBODY\n"));
    write("srv.json", &list(30));
    let report = |more: &[&str]| {
        let mut args = vec!["cost", "--project", ".", "--tools", "srv.json", "--format", "json"];
        args.extend(more);
        json_of(folder.path(), &args)
    };
    assert_eq!(report(&[])["decision"]["loading"], "deferred");
    assert_eq!(report(&[]).get("settings"), None);
    write(
        ".claude/settings.json",
        r#"{"env": {"ENABLE_TOOL_SEARCH": "false"}, "skillListingMaxDescChars": 50}"#,
    );
    let cut = report(&[]);
    assert_eq!(cut["decision"]["loading"], "upfront");
    assert_eq!(cut["skills"]["cut"], json!(["a", "b"]));
    assert_eq!(
        cut["settings"],
        json!(["env ENABLE_TOOL_SEARCH=false", "skillListingMaxDescChars 50 (.claude/settings.json)"])
    );
    assert_eq!(report(&["--strategy", "deferred"])["decision"]["loading"], "deferred");
    write(
        ".claude/settings.local.json",
        r#"{"env": {"ENABLE_TOOL_SEARCH": "true", "SLASH_COMMAND_TOOL_CHAR_BUDGET": "240"},
            "skillListingMaxDescChars": 1000}"#,
    );
    let tight = report(&[]);
    assert_eq!(tight["decision"]["loading"], "deferred");
    assert_eq!((&tight["skills"]["budget_chars"], &tight["skills"]["cut"]), (&json!(240), &json!([])));
    assert_eq!(tight["skills"]["without_description"], json!(["b"]));
    write(
        ".claude/settings.local.json",
        r#"{"skillListingBudgetFraction": 0.5, "permissions": {"deny": ["ToolSearch"]}}"#,
    );
    let wide = report(&[]);
    assert_eq!(wide["decision"]["loading"], "upfront");
    let window_share = wide["skills"]["budget_chars"].as_u64().unwrap();
    assert_eq!(window_share, 50 * 30_000, "fifty times the default of one percent");
}

/// Servers are asked in the era that they speak: one that knows only the newest revision is counted like an old one.
#[test]
fn servers_of_every_era_are_asked_for_their_tools() {
    let folder = tempfile::tempdir().unwrap();
    for (name, versions) in [("old", r#"["2025-06-18"]"#), ("new", r#"["2026-07-28"]"#)] {
        let script = format!(
            r#"{{"name": "{name}", "versions": {versions},
                "tools": [{{"name": "echo", "description": "Says it again.", "inputSchema": {{"type": "object"}}}}]}}"#
        );
        std::fs::write(folder.path().join(format!("{name}.json")), script).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_windtunnel");
    let entry = |name: &str| json!({"command": "${W:-sh}", "args": ["-c", format!("exec '{program}' mcp serve --script {name}.json")]});
    let config = json!({"mcpServers": {
        "old": entry("old"), "new": entry("new"),
        "gone": {"command": "no-such-program"}, "far": {"type": "sse", "url": "http://127.0.0.1:9/sse"}
    }});
    std::fs::write(folder.path().join("servers.json"), config.to_string()).unwrap();
    let report = json_of(folder.path(), &["cost", "--mcp-config", "servers.json", "--format", "json"]);
    let servers = report["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 2, "{report}");
    assert!(servers.iter().all(|server| server["tools"] == json!(1)));
    let left_out: Vec<&str> =
        report["not_counted"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(left_out.iter().any(|line| line.starts_with("server gone: ")), "{left_out:?}");
    assert!(left_out.iter().any(|line| line.starts_with("server far: ")), "{left_out:?}");
    let server = format!("x='{program}' mcp serve --script new.json");
    let report = json_of(folder.path(), &["cost", "--server", &server, "--format", "json"]);
    assert_eq!(report["servers"][0]["tools"], json!(1));
}

#[test]
fn plots_are_written_in_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("srv.json"), list(30)).unwrap();
    for kind in ["svg", "png"] {
        let name = format!("p.{kind}");
        let (exit, _, stderr) = windtunnel(
            folder.path(),
            &["cost", "--tools", "srv.json", "--encoding", "chars4", "--plot", &name],
        );
        assert_eq!(exit, Exit::Holds, "{stderr}");
        for plot in ["used", "turns", "grid", "layers"] {
            assert!(folder.path().join(format!("p-{plot}.{kind}")).is_file(), "{plot}");
        }
    }
}

#[test]
fn misuse_is_exit_2_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.json"), "{\"tools\": 3}").unwrap();
    for (args, words) in [
        (vec!["cost"], "nothing to count"),
        (vec!["cost", "--tools", "bad.json"], "expected"),
        (vec!["cost", "--tools", "missing.json"], "missing.json"),
        (vec!["cost", "--server", "x"], "NAME=COMMAND"),
        (vec!["cost", "--server", "x=exit 3"], "server x"),
    ] {
        let (exit, stdout, stderr) = windtunnel(folder.path(), &args);
        assert_eq!((exit, stdout.as_str()), (Exit::CannotJudge, ""), "{args:?}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    }
}

#[test]
fn a_transcript_is_summed_once_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let usage = |read: u64| json!({"input_tokens": 3, "cache_creation_input_tokens": 100, "cache_read_input_tokens": read, "output_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 40}});
    let line = |id: &str, name: &str, read: u64| {
        json!({"type": "assistant", "message": {"id": id, "model": "claude-sonnet-4-5", "content": [{"type": "tool_use", "id": format!("{id}{name}"), "name": name}], "usage": usage(read)}}).to_string()
    };
    let lines = [
        json!({"type": "attachment", "attachment": {"type": "deferred_tools_delta", "addedNames": ["mcp__s__tool_000", "mcp__s__tool_001"]}}).to_string(),
        line("m1", "Read", 0), line("m1", "mcp__s__tool_000", 0), line("m2", "Read", 900), "not json".to_owned(),
    ];
    std::fs::write(folder.path().join("t.jsonl"), lines.join("\n")).unwrap();
    std::fs::write(folder.path().join("s.json"), list(5)).unwrap();
    let report =
        json_of(folder.path(), &["cost", "replay", "t.jsonl", "--tools", "s=s.json", "--format", "json"]);
    let session = &report["sessions"][0];
    assert_eq!(session["requests"], json!(2));
    assert_eq!(
        session["usage"],
        json!({"input": 6, "write_5m": 120, "write_1h": 80, "read": 900, "output": 14})
    );
    assert_eq!(session["deferred_and_used"], json!(["mcp__s__tool_000"]));
    assert_eq!((&session["calls"]["Read"], &session["unreadable_lines"]), (&json!(2), &json!(1)));
    let deferral = &session["deferral"];
    let figure = |key: &str| deferral[key].as_i64().unwrap();
    assert_eq!(
        figure("saved_tokens"),
        figure("upfront_tokens") - figure("names_tokens") - figure("used_tokens")
    );
}

#[test]
fn every_recorded_session_can_be_replayed() {
    let Some(folder) = shared("transcripts/cc") else { return };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "jsonl"));
    files.sort();
    let files: Vec<String> = files.iter().step_by(8).map(|path| path.display().to_string()).collect();
    let mut args = vec!["cost", "replay", "--encoding", "chars4", "--format", "json"];
    args.extend(files.iter().map(String::as_str));
    let report = json_of(Path::new("."), &args);
    assert_eq!(report["sessions"].as_array().unwrap().len(), files.len());
}
