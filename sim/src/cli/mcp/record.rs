//! `windtunnel mcp record -- COMMAND`: sits between a client and a server, passes everything through unchanged, and
//! writes the trace.
//!
//! The trace is JSON Lines: a head, then `{"at": seconds, "from": "client"|"server", "line": …}` for every line, then
//! `{"at": …, "exit": code}`. `mcp check` judges it.

use crate::cli::{CliError, Exit, Io};
use crate::process::Group;
use crate::process::child::{CommandLine, command};
use crate::process::environment::{PassEnv, child_environment};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Arguments of `mcp record`.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Where the trace is written.
    #[arg(long, short, value_name = "FILE", default_value = "mcp-trace.jsonl")]
    output: PathBuf,
    /// Variables of our environment that the server gets; a recorder is transparent, so by default all.
    #[arg(long, value_name = "NAME", default_value = "all")]
    pass_env: Vec<String>,
    /// The server's program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A line longer than this is passed on, but its record is cut.
const LONGEST_RECORDED: usize = 16 * 1024 * 1024;

/// Runs the server between our own standard streams; exits as the server does.
///
/// # Errors
/// When the trace cannot be written or the server cannot be started.
pub fn run(args: &RecordArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let path = io.cwd.join(&args.output);
    let file = std::fs::File::create(&path).map_err(|source| CliError::File { path, source })?;
    let Some((program, rest)) = args.command.split_first() else {
        return Err(CliError::input("nothing to record: give a command after `--`"));
    };
    let line = CommandLine::Exec { program: program.clone(), args: rest.to_vec() };
    let environment = child_environment(&PassEnv::from_flags(&args.pass_env), &[]);
    let mut child = command(&line, &io.cwd, &environment);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let head = json!({"format": "windtunnel-mcp-trace", "version": 1, "command": args.command});
    let trace = Trace { file: Arc::new(Mutex::new(file)), started: Instant::now() };
    trace.write(&head);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(async {
        let mut child = child.spawn()?;
        let group = child.id().and_then(Group::register);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let to_server = trace.clone();
        // Reading our own input may block for ever; the task dies with the runtime.
        tokio::spawn(async move {
            if let Some(stdin) = stdin {
                pass(tokio::io::stdin(), stdin, "client", to_server).await;
            }
        });
        if let Some(stdout) = stdout {
            pass(stdout, tokio::io::stdout(), "server", trace.clone()).await;
        }
        let status = child.wait().await?;
        drop(group);
        let code = status.code().unwrap_or(128);
        trace.write(&json!({"at": trace.seconds(), "exit": code}));
        Ok::<i32, std::io::Error>(code)
    })?;
    // The client sees what it would see without us.
    std::process::exit(code)
}

#[derive(Clone)]
struct Trace {
    file: Arc<Mutex<std::fs::File>>,
    started: Instant,
}

impl Trace {
    fn seconds(&self) -> f64 {
        (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e6
    }

    fn write(&self, value: &serde_json::Value) {
        if let Ok(mut file) = self.file.lock() {
            // A full disk must not disturb the session that is recorded.
            let _ = writeln!(file, "{value}");
        }
    }
}

/// Passes bytes on as they come and records whole lines.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, party: &str, trace: Trace) {
    let mut buffer = vec![0; 64 * 1024];
    let mut line: Vec<u8> = Vec::new();
    let record = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line);
        trace.write(&json!({"at": trace.seconds(), "from": party, "line": text.trim_end_matches('\r')}));
        line.clear();
    };
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        let bytes = &buffer[..count];
        // Recorded first: what the trace shows came before what it caused.
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, ended) = match part.split_last() {
                Some((b'\n', content)) => (content, true),
                _ => (part, false),
            };
            let room = LONGEST_RECORDED.saturating_sub(line.len()).min(content.len());
            line.extend_from_slice(&content[..room]);
            if ended {
                record(&mut line);
            }
        }
        if to.write_all(bytes).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    if !line.is_empty() {
        record(&mut line);
    }
    let _ = to.shutdown().await;
}
