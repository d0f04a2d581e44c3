//! `gate`, `hook test` and `lint`, end to end: observed cases with hooks really run, field reports, the public corpus.

use crate::support::{Output, cli_with};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windtunnel::cli::Exit;

fn windtunnel(cwd: &Path, args: &[&str]) -> (Exit, String, String) {
    let Output { exit, stdout, stderr } = cli_with(args, cwd, Some(cwd.join("no-home")), "");
    (exit, stdout, stderr)
}

fn json(cwd: &Path, args: &[&str]) -> (Exit, Value) {
    let (exit, stdout, stderr) = windtunnel(cwd, args);
    (exit, serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}")))
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gate")
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// The calls that do not agree, as `case call`.
fn disagreeing(report: &Value) -> BTreeSet<String> {
    report["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["verdict"] != "holds")
        .map(|line| format!("{} {}", line["case"].as_str().unwrap(), line["call"].as_str().unwrap()))
        .collect()
}

fn listed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(data().join("disagreements.json")).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    list.as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {}", entry["case"].as_str().unwrap(), entry["call"].as_str().unwrap()))
        .collect()
}

/// A deny that was printed counts, also where a descendant of the hook still holds its output.
#[test]
fn a_deny_is_heard_although_a_descendant_holds_the_pipe() {
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
    let hook = format!("printf '%s' '{deny}'; sleep 5 & exit 0");
    let case = serde_json::json!({
        "type": "gate",
        "id": "held",
        "settings": {"user": {"permissions": {"allow": ["Write"]}, "hooks": {"PreToolUse": [
            {"matcher": "Write", "hooks": [{"type": "command", "command": hook}]}]}}},
        "calls": [["t1", "Write", {"file_path": "a.txt", "content": "hi"}]],
        "expect": {"t1": "blocked"}
    });
    let folder = folder(&[("case.json", &case.to_string())]);
    let (exit, report) =
        json(folder.path(), &["gate", "test", "case.json", "--run-hooks", "--format", "json"]);
    assert_eq!((exit, report["passed"].as_u64()), (Exit::Holds, Some(1)), "{report}");
}

/// All observed cases, hooks really run: what disagrees is what `disagreements.json` lists with its reason, no more and
/// no less.
#[test]
fn observed_cases_agree() {
    let (_, report) = json(&data(), &["gate", "test", "cases.json", "--run-hooks", "--format", "json"]);
    assert_eq!(disagreeing(&report), listed());
    assert!(report["passed"].as_u64().unwrap() >= 2_573, "{}", report["passed"]);
}

/// The same cases with commands, servers, files, folders and the port renamed: nothing may hang on a name. The port also
/// because the test above, which may run at the same time, starts its servers there.
#[test]
fn renamed_cases_agree() {
    let mut text = std::fs::read_to_string(data().join("cases.json")).unwrap();
    for (old, new) in [
        ("9009", "9019"),
        ("b''az", "d''of"),
        (".bazelrc", ".BAZELRC"),
        ("--bare", "--BARE"),
        ("baz", "dof"),
        ("foo", "kip"),
        ("bar", "lum"),
        (".BAZELRC", ".bazelrc"),
        ("--BARE", "--bare"),
        ("[ab].txt", "[qb].txt"),
        ("a.txt", "q.txt"),
        ("A.TXT", "Q.TXT"),
        ("(a.*)", "(q.*)"),
        ("src", "lib"),
        ("mcp__srv", "mcp__sax"),
        ("\"srv\"", "\"sax\""),
    ] {
        text = text.replace(old, new);
    }
    let folder = folder(&[("renamed.json", &text)]);
    let (_, report) =
        json(folder.path(), &["gate", "test", "renamed.json", "--run-hooks", "--format", "json"]);
    assert_eq!(disagreeing(&report), listed());
}

/// Every field report about hooks and permissions, with its variants as cases of their own.
#[test]
fn field_reports_have_their_right_outcome() {
    let (exit, report) =
        json(&data(), &["gate", "test", "field-reports.json", "--run-hooks", "--format", "json"]);
    assert_eq!(disagreeing(&report), BTreeSet::new());
    assert_eq!(exit, Exit::Holds);
}

/// A wrong expectation fails, and the exit code says so.
#[test]
fn a_wrong_expectation_is_refuted() {
    let case = r#"{"settings": {"user": {"permissions": {"deny": ["Bash(rm *)"]}}},
        "calls": [["a", "Bash", {"command": "rm x"}]], "expect": {"a": "run"}}"#;
    let folder = folder(&[("case.json", case)]);
    let (exit, report) =
        json(folder.path(), &["gate", "test", "case.json", "--format", "json", "--junit", "j.xml"]);
    assert_eq!(exit, Exit::Refuted);
    assert_eq!((report["failed"].as_u64(), report["passed"].as_u64()), (Some(1), Some(0)));
    assert_eq!(report["cases"][0]["decided_by"]["kind"], "rule");
    let junit = std::fs::read_to_string(folder.path().join("j.xml")).unwrap();
    assert!(junit.contains("expected run, got blocked"), "{junit}");
}

/// A hook of whose behaviour nothing is said makes the call unknown; what is said of it counts.
#[test]
fn hooks_that_are_not_run_are_unknown_unless_told() {
    let case = |say: &str| {
        format!(
            r#"{{"settings": {{"user": {{"permissions": {{"allow": ["Write"]}}, "hooks": {{"PreToolUse": [{{"hooks":
            [{{"type": "command", "command": "guard"}}]}}]}}}}}}, "calls": [["a", "Write", {{"file_path": "x",
            "content": ""}}]], "expect": {{"a": "blocked"}}, "hooks_say": {say}}}"#
        )
    };
    let told = case(r#"{"guard": {"exit": 2}}"#);
    let slow = case(r#"{"guard": {"exit": 2, "seconds": 700}}"#);
    let folder = folder(&[("silent.json", &case("{}")), ("told.json", &told), ("slow.json", &slow)]);
    let of = |file: &str| json(folder.path(), &["gate", "test", file, "--format", "json"]);
    let (exit, report) = of("silent.json");
    assert_eq!((exit, report["cases"][0]["got"].as_str()), (Exit::CannotJudge, Some("unknown")));
    assert_eq!(of("told.json").0, Exit::Holds);
    let (exit, report) = of("slow.json");
    assert_eq!(
        (exit, report["cases"][0]["got"].as_str()),
        (Exit::Refuted, Some("run")),
        "it timed out, fail-open"
    );
}

const SETTINGS: &str = r#"{
  "permissions": {
    "allow": ["Bash(git *)", "Write"],
    "ask": ["Edit(src/**)"],
    "deny": ["Bash(git push *)", "Read(./.env)"]
  }
}"#;

/// The decision, who decided with file and line, what else matched and what would turn it.
#[test]
fn explain_names_rule_file_and_line() {
    let folder = folder(&[("s.json", SETTINGS)]);
    let input = r#"{"command": "git status && git push origin"}"#;
    let args =
        ["gate", "explain", "--settings", "s.json", "--tool", "Bash", "--input", input, "--format", "json"];
    let (exit, report) = json(folder.path(), &args);
    assert_eq!(exit, Exit::Holds);
    assert_eq!((report["decision"].as_str(), report["executed"].as_bool()), (Some("deny"), Some(false)));
    assert_eq!(report["decided_by"]["kind"], "rule");
    assert_eq!(report["decided_by"]["source"]["line"], 5);
    assert_eq!(report["also_matched"][0]["source"]["line"], 3);
    let turned = report["turned_by"].as_array().unwrap();
    assert!(turned.iter().any(|change| change["decision"] == "allow"), "{turned:?}");
    assert!(report["steps"].as_array().unwrap().iter().all(|step| step["stage"].is_string()));
}

/// Hooks that are neither run nor told leave the decision open, with what each answer would make of it.
#[test]
fn explain_says_what_hooks_could_change() {
    let settings = r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}}"#;
    let folder = folder(&[("s.json", settings)]);
    let base =
        ["gate", "explain", "--settings", "s.json", "--tool", "Bash", "--input", r#"{"command":"ls"}"#];
    let with = |more: &[&str]| {
        let args: Vec<&str> = base.iter().chain(more).copied().chain(["--format", "json"]).collect();
        json(folder.path(), &args)
    };
    let (exit, open) = with(&[]);
    assert_eq!((exit, open["decision"].as_str()), (Exit::CannotJudge, Some("unknown")));
    assert_eq!(
        (open["if_hooks_say"]["none"].as_str(), open["if_hooks_say"]["deny"].as_str()),
        (Some("allow"), Some("deny"))
    );
    assert_eq!(with(&["--run-hooks"]).1["decision"], "deny");
    assert_eq!(with(&["--hook-outcome", "*=none"]).1["decision"], "allow");
    assert_eq!(with(&["--hook-outcome", "exit 2=exit:1"]).1["decision"], "allow");
}

/// A draft holds, covers every rule, and a rule taken away afterwards is noticed.
#[test]
fn a_draft_of_expectations_holds_until_the_settings_change() {
    let folder = folder(&[(".claude/settings.local.json", SETTINGS)]);
    let (_, draft, _) = windtunnel(folder.path(), &["gate", "test", "--init"]);
    std::fs::write(folder.path().join("draft.json"), draft).unwrap();
    let (exit, report) =
        json(folder.path(), &["gate", "test", "draft.json", "--min-coverage", "100", "--format", "json"]);
    assert_eq!(exit, Exit::Holds, "{report:#}");
    let weaker = SETTINGS.replace("\"Bash(git push *)\", ", "");
    std::fs::write(folder.path().join(".claude/settings.local.json"), weaker).unwrap();
    assert_eq!(windtunnel(folder.path(), &["gate", "test", "draft.json"]).0, Exit::Refuted);
}

#[test]
fn diff_lists_what_changes() {
    let folder =
        folder(&[("old.json", SETTINGS), ("new.json", &SETTINGS.replace("\"Bash(git push *)\", ", ""))]);
    let (exit, report) = json(folder.path(), &["gate", "diff", "old.json", "new.json", "--format", "json"]);
    assert_eq!(exit, Exit::Refuted);
    let first = &report["differences"][0];
    assert_eq!((first["old"].as_str(), first["new"].as_str()), (Some("deny"), Some("allow")));
    let (exit, report) = json(folder.path(), &["gate", "diff", "old.json", "old.json", "--format", "json"]);
    assert_eq!((exit, report["differences"].as_array().map(Vec::len)), (Exit::Holds, Some(0)));
}

#[test]
fn hook_test_shows_the_failure_direction() {
    let folder = folder(&[]);
    let hook = "grep -q 'rm -rf' && exit 2; exit 0";
    let open = json(folder.path(), &["hook", "test", "--format", "json", "--", hook]).1;
    assert_eq!(open["hooks"][0]["fails"], "open");
    let of = |name: &str| {
        let probes = open["hooks"][0]["probes"].as_array().unwrap();
        probes.iter().find(|probe| probe["name"] == name).unwrap()["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!((of("Bash-call").as_str(), of("Read-call").as_str()), ("deny", "none"));
    let closed =
        json(folder.path(), &["hook", "test", "--on-failure", "block", "--format", "json", "--", hook]).1;
    assert_eq!(closed["hooks"][0]["fails"], "closed");
    let (exit, bad) = json(folder.path(), &["hook", "test", "--format", "json", "--", "exit 1"]);
    assert_eq!((exit, bad["findings"][0]["id"].as_str()), (Exit::Refuted, Some("hook-exit-1")));
}

/// What the bench says of hooks that never run, cannot start, or refuse everything; and which weight fails the run.
#[test]
fn hook_test_names_what_is_wrong() {
    let settings = |matcher: &str, line: &str| {
        serde_json::json!({"hooks": {"PreToolUse": [
            {"matcher": matcher, "hooks": [{"type": "command", "command": line}]}]}})
        .to_string()
    };
    let found = |matcher: &str, line: &str, fail_on: &str| {
        let folder = folder(&[("s.json", &settings(matcher, line))]);
        let args = ["hook", "test", "--settings", "s.json", "--fail-on", fail_on, "--format", "json"];
        let (exit, report) = json(folder.path(), &args);
        let findings = report["findings"].as_array().unwrap();
        (exit, findings.iter().map(|f| f["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(found("Wirte", "exit 0", "error"), (Exit::Refuted, vec!["matcher-never-matches".to_owned()]));
    assert_eq!(found("Glob", "exit 0", "error"), (Exit::Holds, Vec::new()));
    assert_eq!(
        found("Write|Edit", "/no/such/hook", "error"),
        (Exit::Refuted, vec!["hook-cannot-start".to_owned()])
    );
    let all = vec!["hook-denies-everything".to_owned(), "hook-fails-open".to_owned()];
    assert_eq!(found("Write|Edit", "cat > /dev/null; exit 2", "error"), (Exit::Holds, all.clone()));
    assert_eq!(found("Write|Edit", "cat > /dev/null; exit 2", "warning"), (Exit::Refuted, all));
}

/// Several words behind `--` are a program and its arguments, blanks and all.
#[test]
fn hook_test_takes_words_as_they_are() {
    let folder = folder(&[("a b.sh", "exit 2")]);
    let (_, report) = json(folder.path(), &["hook", "test", "--format", "json", "--", "sh", "a b.sh"]);
    assert_eq!(report["hooks"][0]["probes"][0]["decision"], "deny", "{report}");
}

/// A wrong part of a case is named with its line; a part without effect is a warning.
#[test]
fn gate_test_names_the_place_of_a_wrong_part() {
    let folder = folder(&[
        ("a.json", "{\n  \"calls\": [[\"a\", \"Bash\", {}],\n    [5, \"Bash\"]]}"),
        ("b.json", "{\n  \"calls\": [[\"a\", \"Bash\"]],\n  \"expect\": {\"b\": \"run\"},\n  \"modes\": 1}"),
        ("c.json", "{\n  \"calls\": [,"),
    ]);
    let of = |file: &str| windtunnel(folder.path(), &["gate", "test", file]);
    let (exit, _, stderr) = of("a.json");
    assert_eq!(exit, Exit::CannotJudge);
    assert!(stderr.contains("a.json:3:6: the id of a call is a string, this is a number"), "{stderr}");
    let (_, _, stderr) = of("b.json");
    assert!(stderr.contains("b.json:3:19: there is no call `b`"), "{stderr}");
    assert!(stderr.contains("b.json:4:12: `modes` is not read"), "{stderr}");
    let (exit, _, stderr) = of("c.json");
    assert_eq!(exit, Exit::CannotJudge);
    assert!(stderr.contains("c.json:2:13: not JSON"), "{stderr}");
}

/// What is no settings file is refused; one that the harness drops is compared, and said to be dropped.
#[test]
fn diff_refuses_what_is_not_json() {
    let folder = folder(&[
        ("a.json", "{\"permissions\": {\"deny\": [\"Bash(rm *)\"]}}"),
        ("b.json", "{\"permissions\": {\"deny\": [\"Bash(rm *)\"], \"allow\": 5}}"),
        ("c.txt", "hello"),
    ]);
    let (exit, _, stderr) = windtunnel(folder.path(), &["gate", "diff", "a.json", "c.txt"]);
    assert_eq!(exit, Exit::CannotJudge);
    assert!(stderr.contains("c.txt:1:1: not JSON"), "{stderr}");
    let (exit, stdout, stderr) = windtunnel(folder.path(), &["gate", "diff", "a.json", "b.json"]);
    assert_eq!(exit, Exit::Refuted);
    assert!(stdout.contains("deny   -> ask    Bash"), "{stdout}");
    assert!(stderr.contains("[settings-file-dropped]"), "{stderr}");
}

/// A project's allow rule that waits for trust is found by what would turn the decision.
#[test]
fn explain_proposes_trust() {
    let folder = folder(&[(".claude/settings.json", "{\"permissions\": {\"allow\": [\"Bash(make *)\"]}}")]);
    let call = ["gate", "explain", "--tool", "Bash", "--input", "{\"command\": \"make all\"}"];
    let (_, stdout, _) = windtunnel(folder.path(), &call);
    assert!(stdout.contains("  allow  trust the folder (here: `--trusted`)"), "{stdout}");
    let mut trusted = call.to_vec();
    trusted.push("--trusted");
    let (_, stdout, _) = windtunnel(folder.path(), &trusted);
    assert!(stdout.starts_with("Bash: allow") && !stdout.contains("trust the folder"), "{stdout}");
}

/// The draft of expectations holds as it is, exercises every rule and hook that can be, and fails when a rule changes.
#[test]
fn init_drafts_what_holds() {
    let settings = |deny: &str| {
        format!(
            r#"{{"permissions": {{"allow": ["Bash(git status *)", "mcp__gh__list", "mcp__lab", "WebFetch(domain:example.com)",
            "Edit(src/**)", "Skill(tidy)"], "deny": ["Read(.env)", "WebSearch", {deny}], "ask": ["Bash(git push *)"]}},
            "hooks": {{"PreToolUse": [{{"matcher": "Write|Edit", "hooks": [{{"type": "command", "command": "guard --x"}}]}}]}}}}"#
        )
    };
    let folder = folder(&[(".claude/settings.json", &settings("\"Bash(rm *)\""))]);
    let (exit, draft, stderr) = windtunnel(folder.path(), &["gate", "test", "--init"]);
    assert_eq!((exit, stderr.as_str()), (Exit::Holds, ""));
    std::fs::write(folder.path().join("t.json"), &draft).unwrap();
    let (exit, report) =
        json(folder.path(), &["gate", "test", "t.json", "--min-coverage", "100", "--format", "json"]);
    assert_eq!((exit, report["failed"].as_u64()), (Exit::Holds, Some(0)), "{report}");
    assert!(report["passed"].as_u64().unwrap() >= 18, "{report}");
    let gone: Vec<&Value> =
        report["cases"].as_array().unwrap().iter().filter(|line| line["got"] == "gone").collect();
    assert_eq!(gone.len(), 1, "only what a rule removes: {gone:?}");
    std::fs::write(folder.path().join(".claude/settings.json"), settings("\"Bash(rn *)\"")).unwrap();
    let (exit, report) = json(folder.path(), &["gate", "test", "t.json", "--format", "json"]);
    assert_eq!((exit, report["failed"].as_u64()), (Exit::Refuted, Some(1)), "{report}");
}

/// Prompt and agent handlers are answered by what the case tells of the model; an untold one fails, hooks run or not.
#[test]
fn the_case_answers_for_the_model() {
    let case = |kind: &str, say: &str, expected: &str| {
        format!(
            r#"{{"settings": {{"user": {{"permissions": {{"allow": ["Write"]}}, "hooks": {{"PreToolUse": [{{"hooks":
            [{{"type": "{kind}", "prompt": "Is $ARGUMENTS safe?"}}]}}]}}}}}}, "calls": [["a", "Write", {{"file_path": "x",
            "content": ""}}]], "expect": {{"a": "{expected}"}}, "hooks_say": {say}}}"#
        )
    };
    for kind in ["prompt", "agent"] {
        let no = r#"{"Is $ARGUMENTS safe?": {"answer": {"ok": false, "reason": "not today"}}}"#;
        let yes = r#"{"Is $ARGUMENTS safe?": {"answer": {"ok": true}}}"#;
        let odd = r#"{"Is $ARGUMENTS safe?": {"answer": "perhaps"}}"#;
        let slow = r#"{"Is $ARGUMENTS safe?": {"answer": {"ok": false}, "seconds": 900}}"#;
        for (say, expected) in [(no, "blocked"), (yes, "run"), (odd, "run"), (slow, "run")] {
            let folder = folder(&[("case.json", &case(kind, say, expected))]);
            for hooks in [&[][..], &["--run-hooks"][..]] {
                let args = [&["gate", "test", "case.json", "--format", "json"], hooks].concat();
                let (exit, report) = json(folder.path(), &args);
                assert_eq!(exit, Exit::Holds, "{kind} {say} {hooks:?}: {report}");
            }
        }
        let untold = folder(&[("case.json", &case(kind, "{}", "run"))]);
        let args = ["gate", "test", "case.json", "--format", "json"];
        assert_eq!(json(untold.path(), &args).0, Exit::CannotJudge, "nothing is known of what it says");
    }
}

#[test]
fn lint_finds_places_and_writes_sarif() {
    let settings = "{\n  \"permissions\": {\"deny\": [\"Write(x)\"]},\n  \"hooks\": {\"preToolUse\": []}\n}";
    let folder = folder(&[(".claude/settings.json", settings)]);
    let (exit, report) = json(folder.path(), &["lint", "--format", "json"]);
    assert_eq!(exit, Exit::Refuted);
    let findings = report["findings"].as_array().unwrap();
    let rule = findings.iter().find(|finding| finding["id"] == "rule-matches-nothing").unwrap();
    assert_eq!((rule["at"]["line"].as_u64(), rule["severity"].as_str()), (Some(2), Some("error")));
    assert!(findings.iter().any(|finding| finding["id"] == "unknown-event"));
    let (_, sarif) = json(folder.path(), &["lint", "--format", "sarif"]);
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(findings.len()));
}

/// The public settings files: none makes the linter fail, and those that the harness drops are those that we say it drops.
#[test]
fn public_settings_files_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/settings");
    let Ok(index) = std::fs::read_to_string(folder.join("index.tsv")) else {
        eprintln!("skipped: ../shared/data/settings is not here");
        return;
    };
    let (_, report) = json(&folder, &["lint", "--format", "json"]);
    let dropped: BTreeSet<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["id"] == "settings-file-dropped")
        .filter_map(|finding| finding["at"]["file"].as_str())
        .collect();
    let mut lines = index.lines();
    let column = lines.next().unwrap().split('\t').position(|name| name.starts_with("cc_")).unwrap();
    let observed: BTreeSet<&str> = lines
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|fields| fields.get(column).is_some_and(|word| *word != "accepted"))
        .filter_map(|fields| fields.first().copied())
        .collect();
    assert_eq!(dropped, observed);
}
