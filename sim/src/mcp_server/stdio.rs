//! A scripted server over standard input and output.

use crate::transport::framing::{Frame, Lines};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;
use windtunnel_model::mcp::jsonrpc::RequestId;
use windtunnel_model::mcp::negotiation::exchange::flood_line;
use windtunnel_model::mcp::negotiation::script::ServerScript;
use windtunnel_model::mcp::negotiation::server::{Action, Deed, Server};

/// The longest line that is read.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// Serves until the script or the end of the input ends it; the exit code.
pub async fn serve(script: ServerScript) -> i32 {
    if script.ignores_signals {
        ignore_signals();
    }
    let (never_reads, boot) = (script.never_reads, Duration::from_millis(script.boot_delay_ms));
    let mut server = Server::new(script);
    let mut output = Output { stdout: tokio::io::stdout(), buffer: Vec::new() };
    let mut timers = Timers::default();
    if let Some(code) = output.act(server.start(), &mut timers).await {
        return code;
    }
    tokio::time::sleep(boot).await;
    if never_reads {
        std::future::pending::<()>().await;
    }
    let mut lines = Lines::new(tokio::io::stdin(), LINE_LIMIT);
    let mut reading = true;
    loop {
        let frame = tokio::select! {
            biased;
            action = timers.next() => {
                if let Some(code) = output.act(vec![action], &mut timers).await {
                    return code;
                }
                if output.flush().await.is_err() {
                    return 0;
                }
                continue;
            }
            frame = lines.next(), if reading => frame,
        };
        let actions = match frame {
            Some(Frame::Line(line)) => {
                let (actions, cancelled) = server.line(&String::from_utf8_lossy(&line));
                if let Some(id) = cancelled {
                    timers.cancel(&id);
                }
                actions
            }
            Some(Frame::Oversized) => Vec::new(),
            None => {
                reading = false;
                server.end_of_input()
            }
        };
        if let Some(code) = output.act(actions, &mut timers).await {
            return code;
        }
        if !lines.has_buffered_line() && output.flush().await.is_err() {
            return 0;
        }
    }
}

/// SIGINT and SIGTERM do nothing from now on; this also replaces the handler by which our other commands end.
fn ignore_signals() {
    use nix::sys::signal::{SigHandler, Signal, signal};
    for kind in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: SIG_IGN runs no code of ours, so nothing in it can be unsafe in a signal handler.
        let _ = unsafe { signal(kind, SigHandler::SigIgn) };
    }
}

/// Actions that are due later, in the order in which they fall due; at one time, in the order of the script.
#[derive(Default)]
pub(super) struct Timers {
    due: BTreeMap<(Instant, u64), Action>,
    next: u64,
}

impl Timers {
    pub(super) fn add(&mut self, action: Action) {
        let at = Instant::now() + Duration::from_millis(action.after_ms);
        self.due.insert((at, self.next), Action { after_ms: 0, ..action });
        self.next += 1;
    }

    /// Takes back what belongs to a request.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        self.due.retain(|_, action| action.request.as_ref() != Some(id));
    }

    /// The next action, when it is due. Cancel safe.
    pub(super) async fn next(&mut self) -> Action {
        let Some((at, _)) = self.due.keys().next().copied() else { return std::future::pending().await };
        tokio::time::sleep_until(at).await;
        match self.due.pop_first() {
            Some((_, action)) => action,
            None => std::future::pending().await,
        }
    }
}

struct Output<W> {
    stdout: W,
    buffer: Vec<u8>,
}

/// Lines wait in the buffer up to this size while more input is at hand.
const BATCH: usize = 64 * 1024;

impl<W: AsyncWrite + Unpin> Output<W> {
    /// Does what is due now, hands the rest to the timers; the exit code where the process has to end.
    async fn act(&mut self, actions: Vec<Action>, timers: &mut Timers) -> Option<i32> {
        let mut later = false;
        for action in actions {
            // What follows a later action of the same answer (an exit after a fragment) must stay behind it.
            if action.after_ms > 0 {
                later = true;
            }
            if later {
                timers.add(action);
                continue;
            }
            match self.deed(action.what).await {
                Ok(None) => {}
                Ok(Some(code)) => {
                    let _ = self.flush().await;
                    return Some(code);
                }
                // Nobody reads any more.
                Err(_) => return Some(0),
            }
        }
        if (later || self.buffer.len() >= BATCH) && self.flush().await.is_err() {
            return Some(0);
        }
        None
    }

    async fn deed(&mut self, what: Deed) -> std::io::Result<Option<i32>> {
        match what {
            Deed::Line(line) => self.line(&line),
            Deed::Drip { line, pause_ms } => {
                self.flush().await?;
                for byte in line.bytes().chain([b'\n']) {
                    self.stdout.write_all(&[byte]).await?;
                    self.stdout.flush().await?;
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
            }
            Deed::Fragment(text) => self.buffer.extend_from_slice(text.as_bytes()),
            Deed::Giant { id, bytes } => {
                let head =
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
                self.buffer.extend_from_slice(head.as_bytes());
                self.fill(bytes).await?;
                self.line(r#""}],"resultType":"complete"}}"#);
                self.flush().await?;
            }
            Deed::Endless { bytes } => self.fill(bytes).await?,
            Deed::Flood { notifications } => {
                for step in 0..notifications {
                    self.line(&flood_line(step));
                    if self.buffer.len() >= BATCH {
                        self.flush().await?;
                    }
                }
            }
            Deed::Exit(code) => return Ok(Some(code)),
        }
        Ok(None)
    }

    fn line(&mut self, line: &str) {
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
    }

    async fn fill(&mut self, bytes: u64) -> std::io::Result<()> {
        let block = [b'x'; 16 * 1024];
        let mut left = bytes;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(block.len()).min(block.len());
            self.buffer.extend_from_slice(&block[..count]);
            left -= count as u64;
            if self.buffer.len() >= BATCH {
                self.flush().await?;
            }
        }
        self.flush().await
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        if !self.buffer.is_empty() {
            self.stdout.write_all(&self.buffer).await?;
            self.stdout.flush().await?;
            self.buffer.clear();
        }
        Ok(())
    }
}
