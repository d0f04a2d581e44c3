//! The MCP servers of a process run: each connection is owned by one task.

use super::{Channel, Running, Said, Stamp};
use crate::process::child::CommandLine;
use crate::transport::Delivery;
use crate::transport::stdio::{ShutdownAct, ShutdownStep, StdioConnection, StdioSpec};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use windtunnel_model::agent_loop::ConnPhase;
use windtunnel_model::trace::{CallLabel, LabelledInput};

/// How a server is ended: its input is closed, then SIGTERM, then SIGKILL (mcp.md 1.12).
const SHUTDOWN: [ShutdownStep; 3] = [
    ShutdownStep { act: ShutdownAct::CloseInput, wait: Duration::from_millis(500) },
    ShutdownStep { act: ShutdownAct::Signal(Signal::SIGTERM), wait: Duration::from_millis(500) },
    ShutdownStep { act: ShutdownAct::Signal(Signal::SIGKILL), wait: Duration::from_secs(2) },
];

/// Lines of one connection that a run records: a trace keeps them all, so a flood has to end.
const LINES: usize = 20_000;
/// Bytes of the same.
const BYTES: usize = 32 * 1024 * 1024;

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Servers {
    open: BTreeMap<String, mpsc::UnboundedSender<String>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Servers {
    /// Sends a line; a connection that is gone has said so already.
    pub(super) fn send(&self, server: &str, line: &str) {
        if let Some(lines) = self.open.get(server) {
            let _ = lines.send(line.to_owned());
        }
    }

    /// Lets a connection end in the background.
    pub(super) fn close(&mut self, server: &str) {
        self.open.remove(server);
    }

    /// Ends every connection and waits for it.
    pub(super) async fn shutdown(&mut self) {
        self.open.clear();
        for task in self.tasks.drain(..) {
            let _ = task.await;
        }
    }
}

impl Running<'_> {
    /// Starts a server.
    pub(super) fn connect(&mut self, server: &str) {
        let spec = match self.server_spec(server) {
            Ok(spec) => spec,
            Err(reason) => return self.say(LabelledInput::McpClosed { server: server.to_owned(), reason }),
        };
        match StdioConnection::open(&spec) {
            Ok(connection) => {
                let (lines, outgoing) = mpsc::unbounded_channel();
                self.servers.open.insert(server.to_owned(), lines);
                let task = tokio::spawn(serve(connection, server.to_owned(), outgoing, self.channel.clone()));
                self.servers.tasks.push(task);
            }
            Err(error) => {
                let reason = format!("cannot start: {error}");
                self.say(LabelledInput::McpClosed { server: server.to_owned(), reason });
            }
        }
    }

    fn server_spec(&self, server: &str) -> Result<StdioSpec, String> {
        let (command, env) = if let Some(script) = self.compiled.scripts.get(server) {
            let path = self.root.join(format!("{}.server.json", server.replace('/', "_")));
            let text = serde_json::to_string(script).map_err(|error| error.to_string())?;
            std::fs::write(&path, text).map_err(|error| error.to_string())?;
            let args = ["mcp", "serve", "--script", &path.to_string_lossy()].map(str::to_owned).to_vec();
            (
                CommandLine::Exec { program: self.options.program.to_string_lossy().into_owned(), args },
                Vec::new(),
            )
        } else {
            let entry = self.loaded.scenario.harness.mcp_servers.get(server).ok_or("not configured")?;
            let (program, mut args) = match entry.command.strip_prefix("npm:") {
                Some(package) => {
                    let script = super::needs::npm_entry(package, &self.options.npm)
                        .ok_or_else(|| format!("the npm package {package} is not installed"))?;
                    ("node".to_owned(), vec![script.to_string_lossy().into_owned()])
                }
                None if entry.command == "windtunnel" => {
                    (self.options.program.to_string_lossy().into_owned(), Vec::new())
                }
                None => (entry.command.clone(), Vec::new()),
            };
            args.extend(entry.args.iter().cloned());
            let env = entry.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            (CommandLine::Exec { program, args }, env)
        };
        let mut spec = StdioSpec::new(command, self.workspace.to_owned());
        spec.pass_env = self.options.pass_env.clone();
        spec.env = env;
        spec.env.push(("PATH".to_owned(), self.path()));
        spec.env.push(("HOME".to_owned(), self.home.to_string_lossy().into_owned()));
        spec.env.push((crate::process::RUN_MARKER.to_owned(), self.root.to_string_lossy().into_owned()));
        Ok(spec)
    }

    /// Starts the deadline of what was just sent.
    pub(super) fn start_deadline(&mut self, server: &str, call: Option<&CallLabel>) {
        if let Some(call) = call {
            let (seconds, turn) = (self.compiled.world.tool_timeout, self.turn);
            let input = LabelledInput::CallDeadline { call: call.clone() };
            return self.after(seconds, input, Some(Stamp::Call { turn }));
        }
        let Ok(reference) = self.session().server(server) else { return };
        let Some(conn) = self.session().state().server(reference).copied() else { return };
        if conn.open.is_some() && conn.phase != ConnPhase::Off {
            let seconds = self.compiled.world.connect_timeout;
            let input = LabelledInput::ServerDeadline { server: server.to_owned() };
            self.after(seconds, input, Some(Stamp::Server { id: conn.open }));
        }
    }
}

/// Owns a connection: writes what is sent, says what arrives, ends the process when nobody sends any more.
async fn serve(
    mut connection: StdioConnection,
    server: String,
    mut outgoing: mpsc::UnboundedReceiver<String>,
    channel: Channel,
) {
    let (mut lines, mut bytes) = (0usize, 0usize);
    loop {
        let delivery = tokio::select! {
            line = outgoing.recv() => match line {
                Some(line) => {
                    // A server that does not read is found out by its deadline.
                    let _ = connection.send(&line);
                    continue;
                }
                None => break,
            },
            delivery = connection.receive() => delivery,
        };
        let input = match delivery {
            Delivery::Message(message) => {
                LabelledInput::McpLine { server: server.clone(), line: message.to_line() }
            }
            Delivery::Malformed { line, .. } => LabelledInput::McpLine { server: server.clone(), line },
            Delivery::Oversized { limit } => LabelledInput::McpLine {
                server: server.clone(),
                line: format!("(a line of more than {limit} bytes)"),
            },
            Delivery::HttpStatus { .. } | Delivery::SessionLost { .. } => continue,
            Delivery::Closed => {
                let reason = "the process closed its output".to_owned();
                let input = LabelledInput::McpClosed { server: server.clone(), reason };
                let _ = channel.send(Said { input, stamp: None });
                break;
            }
        };
        if let LabelledInput::McpLine { line, .. } = &input {
            (lines, bytes) = (lines + 1, bytes + line.len());
        }
        if lines > LINES || bytes > BYTES {
            let reason = format!("more than {LINES} lines or {BYTES} bytes in one run");
            let input = LabelledInput::McpClosed { server, reason };
            let _ = channel.send(Said { input, stamp: None });
            break;
        }
        let _ = channel.send(Said { input, stamp: None });
    }
    connection.shutdown(&SHUTDOWN).await;
}
