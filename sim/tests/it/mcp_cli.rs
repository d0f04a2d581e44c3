//! `mcp probe` and `mcp record` on real processes of our own.

use crate::support::cli;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use windtunnel::cli::Exit;
use windtunnel::mcp_client::{Driver, Target};
use windtunnel::process::child::CommandLine;
use windtunnel::transport::stdio::{SHUTDOWN_SPECIFICATION, StdioSpec};
use windtunnel_model::mcp::negotiation::exchange::Wire;
use windtunnel_model::mcp::negotiation::messages::ClientIdentity;
use windtunnel_model::mcp::profile::ClientProfile;

const BINARY: &str = env!("CARGO_BIN_EXE_windtunnel");

fn command(arguments: &[&str], cwd: &Path) -> (Exit, Value) {
    let output = cli(arguments, cwd);
    (output.exit, serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr)))
}

fn probe(script: &str) -> (Exit, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("s.json"), script).expect("written");
    command(
        &[
            "mcp",
            "probe",
            "--connect-timeout",
            "5",
            "--format",
            "json",
            "--",
            BINARY,
            "mcp",
            "serve",
            "--script",
            "s.json",
        ],
        folder.path(),
    )
}

fn ids(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().map(|finding| finding["id"].as_str().expect("an id")).collect()
}

const TOOL: &str = r#""tools": [{"name": "t", "description": "d"}]"#;

#[test]
fn a_clean_server_has_a_clean_report() {
    let (exit, report) = probe(&format!("{{{TOOL}}}"));
    assert_eq!((exit, ids(&report)), (Exit::Holds, vec![]));
    assert_eq!(report["command"], "mcp probe");
    assert_eq!(report["era"], "modern");
    assert_eq!(report["versions"].as_array().map(Vec::len), Some(5));
    assert_eq!(report["leftover_processes"], 0);
    assert_eq!(report["tools"][0]["name"], "t");
    assert!(report["tools"][0]["tokens"].as_u64().is_some_and(|tokens| tokens > 5));
}

/// Each fault that a script can have is found, and nothing else is.
#[test]
fn each_fault_is_found() {
    for (fault, expected) in [
        (r#""unknown_tool_is_result": true"#, vec!["unknown-tool-as-result"]),
        (r#""answers_before_handshake": true, "versions": ["2025-06-18"]"#, vec!["answers-before-handshake"]),
        (r#""unknown_method_code": -32000, "versions": ["2025-11-25"]"#, vec!["unknown-method"]),
        (r#""answers_notifications": true"#, vec!["reply-to-notification"]),
        (r#""banner": ["Server ready"]"#, vec!["not-json", "stdout-pollution"]),
        (
            r#""versions": ["2025-11-25"], "methods": {"tools/list": {"id": "other_type"}}"#,
            vec!["id-type-changed"],
        ),
    ] {
        let (_, report) = probe(&format!("{{{TOOL}, {fault}}}"));
        let found = ids(&report);
        for id in expected {
            assert!(found.contains(&id), "{fault}: {found:?}");
        }
        assert_eq!(report["leftover_processes"], 0, "{fault}");
    }
}

/// Every process has to be sent SIGTERM, 2 s after the end of its input: a slow test, but one that only waits.
#[test]
fn a_server_that_ignores_the_end_of_its_input_is_found() {
    let (_, report) = probe(&format!("{{{TOOL}, \"ignores_eof\": true}}"));
    assert_eq!(ids(&report), ["ignores-end-of-input"]);
    assert_eq!(report["leftover_processes"], 0);
}

#[test]
fn a_program_that_is_no_server_ends_with_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let (exit, report) = command(
        &[
            "mcp",
            "probe",
            "--connect-timeout",
            "2",
            "--format",
            "json",
            "--",
            "sh",
            "-c",
            "echo hello; exit 4",
        ],
        folder.path(),
    );
    assert_eq!(exit, Exit::Refuted);
    assert!(ids(&report).contains(&"not-connected"), "{report}");
}

/// The recorder changes nothing on the wire, and its trace is judged clean.
#[test]
fn recording_is_transparent() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("s.json"), format!("{{{TOOL}}}")).expect("written");
    let wire = |arguments: &[&str]| {
        let args = arguments.iter().map(|arg| (*arg).to_owned()).collect();
        let line = CommandLine::Exec { program: BINARY.to_owned(), args };
        let spec = StdioSpec::new(line, folder.path().to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let identity = ClientIdentity::new("test", "1");
            let profile = ClientProfile::specification();
            let mut driver = Driver::new(profile, identity, Target::Stdio(spec), &SHUTDOWN_SPECIFICATION);
            assert!(driver.connect(Duration::from_secs(20)).await, "{:?} {}", driver.failure, driver.stderr);
            let end = driver.finish().await.expect("a process");
            assert_eq!((end.code, end.leftovers), (Some(0), 0));
            driver.wire
        })
    };
    let direct = wire(&["mcp", "serve", "--script", "s.json"]);
    let recorded =
        wire(&["mcp", "record", "-o", "trace.jsonl", "--", BINARY, "mcp", "serve", "--script", "s.json"]);
    assert_eq!(recorded, direct);
    let trace = std::fs::read_to_string(folder.path().join("trace.jsonl")).expect("a trace");
    let lines: Vec<String> = trace
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["line"].as_str().map(str::to_owned)
        })
        .collect();
    let sent: Vec<String> = direct
        .iter()
        .filter_map(|wire| match wire {
            Wire::FromClient { line } | Wire::FromServer { line } => Some(line.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(lines, sent);
    let (exit, report) = command(&["mcp", "check", "trace.jsonl", "--format", "json"], folder.path());
    assert_eq!((exit, ids(&report)), (Exit::Holds, vec![]));
}

/// Real `.mcp.json` files: each parses into entries, and every entry is either good or dropped with its reason.
#[test]
fn real_configurations_are_read() {
    use windtunnel_model::mcp::servers::{Absent, Policy, Scope, entries, resolve};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/mcp-json");
    let Ok(files) = std::fs::read_dir(folder) else {
        eprintln!("skipped: the folder of real files is missing");
        return;
    };
    let mut read = 0;
    for file in files.filter_map(Result::ok).filter(|f| f.path().extension().is_some_and(|e| e == "json")) {
        let text = std::fs::read_to_string(file.path()).expect("readable");
        // Some real files are no JSON; those are ignored as a whole (mcp.md 3.10).
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        let Some(servers) = entries(&value) else { continue };
        let resolved = resolve(&[(Scope::Project, servers)], &Policy::default());
        assert_eq!(resolved.len(), servers.len());
        for server in resolved {
            assert_eq!(server.transport.is_none(), matches!(server.absent, Some(Absent::Bad(_))));
            read += 1;
        }
    }
    assert!(read > 100, "{read} entries");
}
