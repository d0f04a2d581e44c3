//! MCP over stdio: 10,000 concurrent requests on one scripted server, all matched and none lost, against a raw echo of
//! the same lines through the same pipes (`cat`); and single round trips of both.
//!
//! The peer does no JSON at all, so the ratio is what messages, matching and the server's work cost on top of two
//! pipes. Run with `-- --json` for one JSON line a measurement.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use windtunnel::process::child::CommandLine;
use windtunnel::transport::Delivery;
use windtunnel::transport::stdio::{SHUTDOWN_SPECIFICATION, StdioConnection, StdioSpec};
use windtunnel_model::mcp::correlation::{IdRule, Matched, Matching, OpenRequests};
use windtunnel_model::mcp::jsonrpc::{Message, RequestId};

const CONCURRENT: i64 = 10_000;
const ROUND_TRIPS: i64 = 3_000;
const LIMIT: Duration = Duration::from_secs(60);

struct Measured {
    seconds: f64,
    operations: i64,
}

impl Measured {
    fn per_call(&self) -> f64 {
        self.seconds / self.operations as f64
    }
}

fn request(id: i64) -> Message {
    let params =
        serde_json::json!({"name": "echo", "arguments": {"n": id, "text": "a line of ordinary length"}});
    Message::request(id, "tools/call", Some(params))
}

/// The binary beside this bench: `cargo bench` builds it with `-p windtunnel`.
fn binary() -> Option<PathBuf> {
    let mut folder = std::env::current_exe().ok()?;
    folder.pop();
    folder.pop();
    Some(folder.join("windtunnel")).filter(|path| path.exists())
}

fn open(program: &str, args: &[&str]) -> StdioConnection {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let line = CommandLine::Exec { program: program.to_owned(), args };
    StdioConnection::open(&StdioSpec::new(line, std::env::temp_dir())).expect("the server starts")
}

async fn receive(connection: &mut StdioConnection) -> Delivery {
    tokio::time::timeout(LIMIT, connection.receive()).await.expect("an answer in time")
}

/// Sends `total` requests, at most `window` of them open at a time, and matches every answer.
async fn calls(connection: &mut StdioConnection, first: i64, total: i64, window: i64) -> Measured {
    let mut open = OpenRequests::new(Matching::Strict, IdRule::NotWhileOpen);
    let started = Instant::now();
    let (mut sent, mut matched) = (0, 0);
    while matched < total {
        while sent < total && sent - matched < window {
            let id = first + sent;
            open.open(RequestId::from(id), id).expect("a fresh id");
            connection.send(&request(id).to_line()).expect("sent");
            sent += 1;
        }
        match receive(connection).await {
            Delivery::Message(Message::Response { id, .. }) => match open.answer(&id) {
                Matched::Request(_) => matched += 1,
                other => panic!("answer {id} is {other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    assert!(open.is_empty(), "every request is matched");
    Measured { seconds: started.elapsed().as_secs_f64(), operations: total }
}

/// The same lines through `cat`: no JSON, no matching.
fn echo(total: i64, window: i64) -> Measured {
    use std::io::{BufRead as _, Write as _};
    use std::process::{Command, Stdio};
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
    let (mut stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let mut stdout = std::io::BufReader::with_capacity(64 * 1024, stdout);
    let lines: Vec<String> = (0..total).map(|id| request(id).to_line() + "\n").collect();
    let started = Instant::now();
    let mut line = String::new();
    if window == 1 {
        for sent in &lines {
            stdin.write_all(sent.as_bytes()).expect("written");
            line.clear();
            stdout.read_line(&mut line).expect("read");
            assert_eq!(line, *sent);
        }
    } else {
        // All at once: a writer beside the reader, since the pipes hold 64 KiB each. One write a line, as above.
        let writer = std::thread::spawn(move || {
            for sent in &lines {
                stdin.write_all(sent.as_bytes()).expect("written");
            }
        });
        for _ in 0..total {
            line.clear();
            stdout.read_line(&mut line).expect("read");
        }
        writer.join().expect("the writer ends");
    }
    let seconds = started.elapsed().as_secs_f64();
    drop(child.kill());
    child.wait().expect("cat ends");
    Measured { seconds, operations: total }
}

fn main() {
    let json = std::env::args().any(|arg| arg == "--json");
    let Some(binary) = binary() else {
        eprintln!("skipped: build the binary first, `cargo build --release -p windtunnel`");
        return;
    };
    let script = std::env::temp_dir().join(format!("windtunnel-bench-{}.json", std::process::id()));
    std::fs::write(&script, r#"{"tools": [{"name": "echo"}], "answers_before_handshake": true}"#)
        .expect("written");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (concurrent, single) = runtime.block_on(async {
        let program = binary.to_str().expect("a path in UTF-8").to_owned();
        let mut connection =
            open(&program, &["mcp", "serve", "--script", script.to_str().expect("a path in UTF-8")]);
        // The first call waits for the process to start; it is not measured.
        calls(&mut connection, 0, 100, 100).await;
        let concurrent = calls(&mut connection, 1_000, CONCURRENT, CONCURRENT).await;
        let single = calls(&mut connection, 100_000, ROUND_TRIPS, 1).await;
        let end = connection.shutdown(&SHUTDOWN_SPECIFICATION).await;
        assert_eq!((end.code, end.leftovers), (Some(0), 0));
        (concurrent, single)
    });
    drop(std::fs::remove_file(&script));
    let rows = [
        ("10,000 concurrent requests", concurrent, echo(CONCURRENT, CONCURRENT)),
        ("single round trips", single, echo(ROUND_TRIPS, 1)),
    ];
    for (subject, ours, raw) in rows {
        let ratio = ours.per_call() / raw.per_call();
        if json {
            for (engine, measured) in [("windtunnel", &ours), ("raw pipe echo (cat)", &raw)] {
                println!(
                    "{}",
                    serde_json::json!({"bench": "mcp", "subject": subject, "engine": engine,
                        "operations": measured.operations, "seconds": measured.seconds, "ratio": ratio})
                );
            }
        } else {
            println!(
                "{subject}: {:.2} us a call, raw pipe echo {:.2} us, ratio {ratio:.2}",
                ours.per_call() * 1e6,
                raw.per_call() * 1e6
            );
        }
    }
}
