//! `replay`: recorded conversations, each with the findings it should have.

use crate::support::{cli, shared};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windtunnel::cli::Exit;

/// Runs `replay` on a text; the findings as `NAME id` or `NAME`.
fn replayed(text: &str) -> (Exit, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.json"), text).expect("written");
    let output = cli(&["replay", "t.json", "--format", "json"], folder.path());
    let report: Value = serde_json::from_str(&output.stdout).expect("one JSON document");
    assert_eq!((&report["command"], &report["version"]), (&json!("replay"), &json!(1)));
    let findings = report["findings"].as_array().expect("findings");
    (output.exit, findings.iter().map(|finding| finding["id"].as_str().expect("an id").to_owned()).collect())
}

/// Every `transcript` input of the field reports, with the names in its `expect`.
#[test]
fn field_reports_about_pairing_have_their_right_findings() {
    let reports: Value =
        serde_json::from_str(include_str!("../data/field-reports-transcripts.json")).expect("JSON");
    let mut judged = 0;
    for report in reports.as_array().expect("a list") {
        let expected: Vec<String> = report["expect"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|line| line.as_str().expect("a text").split(' ').next().unwrap_or_default().to_owned())
            .collect();
        let (exit, mut found) = replayed(&report.to_string());
        found.sort();
        let mut wanted = expected.clone();
        wanted.sort();
        assert_eq!(found, wanted, "{report}");
        assert_eq!(exit, Exit::Refuted, "{report}");
        judged += 1;
    }
    assert_eq!(judged, 10);
    let both = json!({"messages": [["assistant", ["use:t1", "use:t1"]], ["user", ["res:t1", "res:t1"]]]});
    assert_eq!(replayed(&both.to_string()).1, ["DUP_USE", "DUP_RESULT"]);
}

#[test]
fn sound_conversations_have_no_finding_and_other_texts_are_refused() {
    let sound = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Both."},
            {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
            {"type": "tool_use", "id": "b", "name": "Read", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": "2"},
            {"type": "tool_result", "tool_use_id": "a", "content": "1"}]},
        {"role": "assistant", "content": "Done."}
    ]);
    assert_eq!(replayed(&sound.to_string()), (Exit::Holds, vec![]));
    assert_eq!(replayed(&json!({"model": "m", "messages": sound}).to_string()), (Exit::Holds, vec![]));
    let folder = tempfile::tempdir().expect("a folder");
    for (text, says) in [
        ("", "found no messages"),
        ("no json", "found no messages"),
        ("{\"messages\": 3}", "found no messages"),
        ("[{\"role\": \"user\"}]", "message 0 is no message"),
        ("[[\"user\"]]", "message 0 is no message"),
    ] {
        std::fs::write(folder.path().join("t.json"), text).expect("written");
        let output = cli(&["replay", "t.json"], folder.path());
        assert_eq!(output.exit, Exit::CannotJudge, "{text}");
        assert!(output.stderr.contains("t.json") && output.stderr.contains(says), "{}", output.stderr);
    }
}

/// A session as the harness writes it: one reply in several lines, results between them, a subagent, a compaction.
#[test]
fn a_session_is_put_together_as_it_was_sent() {
    let line = |uuid: &str, role: &str, id: &str, content: Value, more: Value| {
        let mut line =
            json!({"type": role, "uuid": uuid, "message": {"role": role, "id": id, "content": content}});
        line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        line.to_string()
    };
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]);
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": ""}]);
    let none = json!({});
    let side = json!({"isSidechain": true, "agentId": "k"});
    let mut lines = vec![
        json!({"type": "summary", "summary": "s"}).to_string(),
        line("1", "user", "", json!("go"), none.clone()),
        line("2", "assistant", "m1", call("a"), none.clone()),
        line("3", "user", "", result("a"), none.clone()),
        line("4", "assistant", "m1", call("b"), none.clone()),
        line("5", "user", "", json!("inside"), side.clone()),
        line("6", "assistant", "k1", call("x"), side.clone()),
        line("7", "user", "", result("x"), side),
        line("8", "user", "", result("b"), none.clone()),
        line("9", "assistant", "m2", call("c"), none.clone()),
    ];
    assert_eq!(
        replayed(&lines.join("\n")),
        (Exit::Holds, vec!["OPEN".to_owned()]),
        "it may end in an open call"
    );
    lines.push(json!({"type": "system", "subtype": "compact_boundary", "uuid": "10"}).to_string());
    lines.push(line("11", "user", "", result("c"), none));
    lines.push(lines[3].clone());
    lines.push("{broken".to_owned());
    assert_eq!(
        replayed(&lines.join("\n")),
        (
            Exit::Refuted,
            ["OPEN", "ORPHAN_RESULT", "unreadable-line", "repeated-line"].map(str::to_owned).to_vec()
        )
    );
}

/// Every public session is read; the count of each finding is printed. The numbers of calls without a result and of
/// results without a call are those of a count made by other means, over whole files.
#[test]
fn public_sessions_are_judged_as_counted_by_other_means() {
    let Some(folder) = shared("transcripts/cc") else { return };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut files, mut folders) = (Vec::new(), vec![folder.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    let (mut read, mut none) = (0, 0);
    for file in &files {
        let output = cli(&["replay", file.to_str().expect("a path"), "--format", "json"], &folder);
        let Ok(report) = serde_json::from_str::<Value>(&output.stdout) else {
            assert_eq!(output.exit, Exit::CannotJudge);
            assert!(output.stderr.contains("found no messages"), "{}", output.stderr);
            none += 1;
            continue;
        };
        read += 1;
        for finding in report["findings"].as_array().expect("findings") {
            *counts.entry(finding["id"].as_str().expect("an id").to_owned()).or_default() += 1;
        }
    }
    println!("{read} sessions, {none} without messages: {counts:?}");
    assert!(read >= 190, "only {read} sessions");
    assert_eq!(counts.get("DUP_USE"), None, "no id is used twice in any of them");
    assert_eq!(counts.get("ORPHAN_RESULT"), Some(&5));
    let unanswered = counts.get("MISSING_RESULT").unwrap_or(&0) + counts.get("OPEN").unwrap_or(&0);
    assert_eq!(unanswered, 21);
}
