//! MCP over the standard input and output of a child process.
//!
//! One reader task delivers what arrives, in order, into one bounded channel: a server that writes without end is held
//! back by its own pipe. One writer task owns the child's input, so that a server that never reads costs a bounded
//! queue and never blocks the client. Stderr is kept up to a bound and is no sign of an error (mcp.md 1.12).

use super::Delivery;
use super::framing::{Frame, Lines};
use crate::process::child::{CommandLine, command};
use crate::process::{Group, environment::PassEnv, environment::child_environment};
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// What to start and within which bounds.
#[derive(Clone, Debug)]
pub struct StdioSpec {
    /// The server's program.
    pub command: CommandLine,
    /// Its current folder.
    pub cwd: PathBuf,
    /// What of the environment is passed on.
    pub pass_env: PassEnv,
    /// Variables of its own.
    pub env: Vec<(String, String)>,
    /// The longest line that is read, in bytes.
    pub line_limit: usize,
    /// Bytes kept of stderr.
    pub stderr_limit: usize,
}

impl StdioSpec {
    /// A server with the usual bounds: lines of 16 MiB, 64 KiB of stderr, an allowlisted environment.
    pub fn new(command: CommandLine, cwd: PathBuf) -> Self {
        Self {
            command,
            cwd,
            pass_env: PassEnv::None,
            env: Vec::new(),
            line_limit: 16 * 1024 * 1024,
            stderr_limit: 64 * 1024,
        }
    }
}

/// Deliveries that wait unread before the reader stops reading.
const QUEUE: usize = 1024;

/// Bytes that wait to be written before a send is refused.
const UNWRITTEN: usize = 64 * 1024 * 1024;

/// One step of ending a process: what is done, and how long its exit is awaited afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownStep {
    /// What is done.
    pub act: ShutdownAct,
    /// How long the exit is awaited before the next step.
    pub wait: Duration,
}

/// What can be done to make a process end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownAct {
    /// Close its standard input.
    CloseInput,
    /// Send its group this signal.
    Signal(Signal),
}

/// The order of the specification: close the input, wait, SIGTERM, SIGKILL (mcp.md 1.12).
pub const SHUTDOWN_SPECIFICATION: [ShutdownStep; 3] = [
    ShutdownStep { act: ShutdownAct::CloseInput, wait: Duration::from_secs(2) },
    ShutdownStep { act: ShutdownAct::Signal(Signal::SIGTERM), wait: Duration::from_secs(2) },
    ShutdownStep { act: ShutdownAct::Signal(Signal::SIGKILL), wait: Duration::from_secs(2) },
];

/// The order observed in Claude Code 2.1.332: SIGINT, after 100 ms SIGTERM, after 400 ms SIGKILL (M8, mcp.md 3.6).
pub const SHUTDOWN_CLAUDE_CODE: [ShutdownStep; 3] = [
    ShutdownStep { act: ShutdownAct::Signal(Signal::SIGINT), wait: Duration::from_millis(100) },
    ShutdownStep { act: ShutdownAct::Signal(Signal::SIGTERM), wait: Duration::from_millis(400) },
    ShutdownStep { act: ShutdownAct::Signal(Signal::SIGKILL), wait: Duration::from_secs(2) },
];

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEnd {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The shutdown step after which it was gone, from 0; `None` when it had ended by itself before.
    pub step: Option<usize>,
    /// Time from the first step to its end.
    pub took: Duration,
    /// How many processes of its group, or descendants outside it, outlived it; they have been killed.
    pub leftovers: usize,
}

/// Why a message could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// The server does not read: too much waits to be written.
    #[error("the server does not read its input")]
    Full,
}

/// A running server and the connection to it.
#[derive(Debug)]
pub struct StdioConnection {
    child: tokio::process::Child,
    group: Option<Group>,
    writer: Option<mpsc::UnboundedSender<Vec<u8>>>,
    unwritten: Arc<std::sync::atomic::AtomicUsize>,
    deliveries: mpsc::Receiver<Delivery>,
    stderr: Arc<Mutex<Vec<u8>>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl StdioConnection {
    /// Starts the server.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn open(spec: &StdioSpec) -> std::io::Result<Self> {
        let environment = child_environment(&spec.pass_env, &spec.env);
        let mut command = command(&spec.command, &spec.cwd, &environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let group = child.id().and_then(Group::register);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());

        let (sender, deliveries) = mpsc::channel(QUEUE);
        let line_limit = spec.line_limit;
        let reader = tokio::spawn(async move {
            if let Some(stdout) = stdout {
                read_lines(stdout, line_limit, &sender).await;
            }
            // The receiver may be gone already: then nobody wants to know.
            let _ = sender.send(Delivery::Closed).await;
        });

        let (writer, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let unwritten = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let written = Arc::clone(&unwritten);
        let writing = tokio::spawn(async move {
            let Some(mut stdin) = stdin else { return };
            let mut batch = Vec::new();
            while let Some(line) = lines.recv().await {
                batch.clear();
                batch.extend_from_slice(&line);
                while batch.len() < 64 * 1024
                    && let Ok(line) = lines.try_recv()
                {
                    batch.extend_from_slice(&line);
                }
                let length = batch.len();
                let result = stdin.write_all(&batch).await;
                written.fetch_sub(length, std::sync::atomic::Ordering::Relaxed);
                if result.is_err() {
                    break;
                }
            }
        });

        let kept = Arc::new(Mutex::new(Vec::new()));
        let (keeping, stderr_limit) = (Arc::clone(&kept), spec.stderr_limit);
        let draining = tokio::spawn(async move {
            let Some(mut stderr) = stderr else { return };
            let mut buffer = vec![0; 8 * 1024];
            while let Ok(count) = stderr.read(&mut buffer).await {
                if count == 0 {
                    break;
                }
                if let Ok(mut kept) = keeping.lock() {
                    let room = stderr_limit.saturating_sub(kept.len()).min(count);
                    kept.extend_from_slice(&buffer[..room]);
                }
            }
        });
        Ok(Self {
            child,
            group,
            writer: Some(writer),
            unwritten,
            deliveries,
            stderr: kept,
            tasks: vec![reader, writing, draining],
        })
    }

    /// Queues a line (without its line end) for the server. Never waits.
    ///
    /// # Errors
    /// When the connection is closed, or too much waits unread.
    pub fn send(&self, line: &str) -> Result<(), SendError> {
        let writer = self.writer.as_ref().ok_or(SendError::Closed)?;
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let length = bytes.len();
        let order = std::sync::atomic::Ordering::Relaxed;
        if self.unwritten.load(order) + length > UNWRITTEN {
            return Err(SendError::Full);
        }
        self.unwritten.fetch_add(length, order);
        writer.send(bytes).map_err(|_| SendError::Closed)
    }

    /// The next delivery; [`Delivery::Closed`] at the end, again and again. Cancel safe.
    pub async fn receive(&mut self) -> Delivery {
        self.deliveries.recv().await.unwrap_or(Delivery::Closed)
    }

    /// Closes the server's input; what was queued is still written.
    pub fn close_input(&mut self) {
        self.writer = None;
    }

    /// The server's process id, while it has one.
    pub fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    /// What it has written to stderr, up to the bound.
    pub fn stderr(&self) -> String {
        self.stderr.lock().map(|kept| String::from_utf8_lossy(&kept).into_owned()).unwrap_or_default()
    }

    /// Ends the server step by step, reaps it, and kills what is left of its group. Output that arrives meanwhile is
    /// dropped, so that a server that is still writing can end.
    pub async fn shutdown(mut self, steps: &[ShutdownStep]) -> ServerEnd {
        let started = Instant::now();
        self.deliveries.close();
        let mut ended = self.child.try_wait().ok().flatten().map(|status| (status, None));
        for (number, step) in steps.iter().enumerate() {
            if ended.is_some() {
                break;
            }
            match step.act {
                ShutdownAct::CloseInput => self.close_input(),
                ShutdownAct::Signal(signal) => {
                    if let Some(group) = &self.group {
                        group.signal(signal);
                    }
                }
            }
            if let Ok(Ok(status)) = tokio::time::timeout(step.wait, self.child.wait()).await {
                ended = Some((status, Some(number)));
            }
        }
        if ended.is_none() {
            if let Some(group) = &self.group {
                group.signal(Signal::SIGKILL);
            }
            let wait = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await;
            ended = wait.ok().and_then(Result::ok).map(|status| (status, Some(steps.len())));
        }
        let took = started.elapsed();
        let leftovers = usize::from(self.group.as_ref().is_some_and(Group::is_alive));
        drop(self.group.take());
        for task in &self.tasks {
            task.abort();
        }
        let (code, signal, step) = match ended {
            Some((status, step)) => (status.code(), status.signal(), step),
            None => (None, None, None),
        };
        ServerEnd { code, signal, step, took, leftovers }
    }
}

impl Drop for StdioConnection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Delivers the lines of a stream; blank lines are passed over.
pub(super) async fn read_lines(
    reader: impl tokio::io::AsyncRead + Unpin,
    limit: usize,
    sender: &mpsc::Sender<Delivery>,
) {
    let mut lines = Lines::new(reader, limit);
    while let Some(frame) = lines.next().await {
        let delivery = match frame {
            Frame::Line(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Frame::Line(line) => Delivery::of_line(&line),
            Frame::Oversized => Delivery::Oversized { limit },
        };
        if sender.send(delivery).await.is_err() {
            // Nobody listens any more; the rest is read and dropped so that the server can end.
            while lines.next().await.is_some() {}
        }
    }
}
