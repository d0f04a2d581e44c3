//! Hostile servers cost bounded memory and time; clients get every answer under load; nothing is left behind.

use std::time::{Duration, Instant};
use windtunnel::process::child::CommandLine;
use windtunnel::transport::Delivery;
use windtunnel::transport::stdio::{
    SHUTDOWN_CLAUDE_CODE, SHUTDOWN_SPECIFICATION, SendError, StdioConnection, StdioSpec,
};
use windtunnel_model::mcp::correlation::{IdRule, Matched, Matching, OpenRequests};
use windtunnel_model::mcp::jsonrpc::{Message, RequestId};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A scripted server; the folder keeps its script.
fn server(script: &str, line_limit: usize) -> (StdioConnection, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.json");
    std::fs::write(&path, script).expect("written");
    let args = ["mcp", "serve", "--script", path.to_str().expect("text")].map(str::to_owned).to_vec();
    let line = CommandLine::Exec { program: env!("CARGO_BIN_EXE_windtunnel").to_owned(), args };
    let spec = StdioSpec { line_limit, ..StdioSpec::new(line, folder.path().to_owned()) };
    (StdioConnection::open(&spec).expect("started"), folder)
}

fn call(id: i64) -> String {
    Message::request(id, "tools/call", Some(serde_json::json!({"name": "t", "arguments": {}}))).to_line()
}

fn script(behaviour: &str) -> String {
    format!(r#"{{"answers_before_handshake": true, "tools": [{{"name": "t", "behaviour": {behaviour}}}]}}"#)
}

/// The peak resident size of this process, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}

/// 1 GiB in one line, read to its end: one delivery, and no more memory than the limit and the buffers.
#[test]
fn a_gigabyte_of_output_costs_bounded_memory() {
    runtime().block_on(async {
        let (mut connection, _folder) =
            server(&script(r#"[{"answer": {"giant": {"bytes": 1073741824}}}, {}]"#), 1024 * 1024);
        let before = peak();
        connection.send(&call(1)).expect("sent");
        connection.send(&call(2)).expect("sent");
        let first = tokio::time::timeout(Duration::from_secs(120), connection.receive()).await;
        assert_eq!(first.expect("in time"), Delivery::Oversized { limit: 1024 * 1024 });
        let second = tokio::time::timeout(Duration::from_secs(10), connection.receive()).await;
        assert!(matches!(second, Ok(Delivery::Message(Message::Response { .. }))), "{second:?}");
        // Other tests of this binary run beside this one; what they need is far below what is excluded here.
        assert!(peak() - before < 300 * 1024, "{} KiB", peak() - before);
        assert_eq!(connection.shutdown(&SHUTDOWN_SPECIFICATION).await.leftovers, 0);
    });
}

#[test]
fn an_endless_line_is_cut_off_at_shutdown() {
    runtime().block_on(async {
        let (mut connection, _folder) =
            server(&script(r#"{"answer": {"endless_line": {"bytes": 1099511627776}}}"#), 1024 * 1024);
        connection.send(&call(1)).expect("sent");
        let delivery = tokio::time::timeout(Duration::from_millis(500), connection.receive()).await;
        assert!(delivery.is_err(), "no line ever ends: {delivery:?}");
        let started = Instant::now();
        let end = connection.shutdown(&SHUTDOWN_CLAUDE_CODE).await;
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(end.leftovers, 0);
    });
}

/// Notifications without end: the reader stops at its queue, so the server is held back by its pipe.
#[test]
fn endless_notifications_are_held_back() {
    runtime().block_on(async {
        let (mut connection, _folder) =
            server(&script(r#"{"answer": {"flood": {"notifications": 1000000000}}}"#), 1024 * 1024);
        connection.send(&call(1)).expect("sent");
        let before = peak();
        let until = Instant::now() + Duration::from_secs(1);
        let mut read = 0;
        while Instant::now() < until {
            let delivery = tokio::time::timeout(Duration::from_secs(10), connection.receive()).await;
            assert!(matches!(delivery, Ok(Delivery::Message(Message::Notification { .. }))));
            read += 1;
        }
        assert!(read > 1_000);
        // Nobody reads for a while: nothing piles up.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(peak() - before < 300 * 1024);
        assert_eq!(connection.shutdown(&SHUTDOWN_CLAUDE_CODE).await.leftovers, 0);
    });
}

/// A server that never reads: sending never blocks, and what waits is bounded (64 MiB).
#[test]
fn a_server_that_never_reads_does_not_block() {
    runtime().block_on(async {
        let (connection, _folder) = server(r#"{"never_reads": true}"#, 1024 * 1024);
        let big = "x".repeat(8 * 1024 * 1024);
        let started = Instant::now();
        let mut refused = None;
        for _ in 0..20 {
            if let Err(error) = connection.send(&big) {
                refused = Some(error);
                break;
            }
        }
        assert_eq!(refused, Some(SendError::Full));
        assert!(started.elapsed() < Duration::from_secs(5));
        let end = connection.shutdown(&SHUTDOWN_SPECIFICATION).await;
        assert_eq!((end.step, end.leftovers), (Some(1), 0), "SIGTERM ended it");
    });
}

#[test]
fn a_stubborn_server_is_killed() {
    runtime().block_on(async {
        let (mut connection, _folder) = server(
            &script("{}")
                .replace("{\"answers", "{\"ignores_eof\": true, \"ignores_signals\": true, \"answers"),
            1024,
        );
        connection.send(&call(1)).expect("sent");
        assert!(matches!(connection.receive().await, Delivery::Message(_)));
        let end = connection.shutdown(&SHUTDOWN_CLAUDE_CODE).await;
        assert_eq!((end.signal, end.step, end.leftovers), (Some(9), Some(2), 0));
    });
}

#[test]
fn ten_thousand_concurrent_requests_are_all_matched() {
    runtime().block_on(async {
        let (mut connection, _folder) = server(&script("{}"), 1024 * 1024);
        let mut open = OpenRequests::new(Matching::Strict, IdRule::NotWhileOpen);
        for id in 0..10_000 {
            open.open(RequestId::from(id), id).expect("a fresh id");
            connection.send(&call(id)).expect("sent");
        }
        while !open.is_empty() {
            let delivery = tokio::time::timeout(Duration::from_secs(60), connection.receive()).await;
            let Ok(Delivery::Message(Message::Response { id, .. })) = delivery else {
                panic!("{delivery:?}")
            };
            assert!(matches!(open.answer(&id), Matched::Request(_)), "{id}");
        }
        let end = connection.shutdown(&SHUTDOWN_SPECIFICATION).await;
        assert_eq!((end.code, end.leftovers), (Some(0), 0));
    });
}
