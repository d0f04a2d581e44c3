//! The process world: real hook commands, real MCP servers over stdio, built-in tools in a temporary workspace. The model
//! and the user stay scripted.
//!
//! Asynchrony stays in the tasks; one channel linearises what they say, and the session takes it input by input, so
//! that replaying the recorded inputs gives the same trace. Everything is started in process groups of its own, with an
//! allowlisted environment and a deadline, and nothing outlives the run.

pub mod builtin;
mod hooks;
mod needs;
mod servers;

pub use needs::{missing, npm_roots};

use super::closed::WorldState;
use super::outcome::{Outcome, Recorder};
use super::scripted::MAX_STEPS;
use crate::process::environment::PassEnv;
use crate::scenario::compile::{Compiled, Place, compile};
use crate::scenario::load::{Loaded, ScenarioError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use windtunnel_model::agent_loop::{ConnPhase, Phase, Progress};
use windtunnel_model::profile::ProfileName;
use windtunnel_model::session::Session;
use windtunnel_model::trace::{LabelledInput, LabelledOutput, TraceStep};

/// No run waits longer than this for anything to happen.
const SILENCE: Duration = Duration::from_secs(60);

/// Bytes of a file that an expectation compares.
const FILE_LIMIT: u64 = 1024 * 1024;

/// Why a process run could not take place.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The scenario cannot be compiled.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// The workspace cannot be prepared.
    #[error("the temporary workspace cannot be prepared: {0}")]
    Workspace(#[from] std::io::Error),
}

/// What the process world needs to know besides the scenario.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// What of the environment reaches the children.
    pub pass_env: PassEnv,
    /// This program, which plays scripted servers.
    pub program: PathBuf,
    /// Where npm packages are looked for (a folder with `node_modules`), nearest first.
    pub npm: Vec<PathBuf>,
}

/// What happened, and the files of the workspace afterwards.
#[derive(Debug)]
pub struct ProcessRun {
    /// The outcome.
    pub outcome: Outcome,
    /// Where the run took place: replaying the trace needs the same place.
    pub place: Place,
    /// Texts of the files that the scenario asks about; `None` where there is none.
    pub files: BTreeMap<String, Option<String>>,
    /// Processes that had to be killed after the run.
    pub leftovers: usize,
}

/// Something that a task says, with what it takes to see that it is not stale.
#[derive(Debug)]
struct Said {
    input: LabelledInput,
    /// For deadlines: the request or turn that they belong to.
    stamp: Option<Stamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    Call { turn: u32 },
    Server { id: Option<u16> },
}

type Channel = mpsc::UnboundedSender<Said>;

/// Runs a scenario on real processes, to its end.
///
/// # Errors
/// When the scenario cannot be compiled or the workspace cannot be prepared. What goes wrong in a process is an end.
pub fn run(
    loaded: &Loaded,
    profile: ProfileName,
    options: &ProcessOptions,
) -> Result<ProcessRun, ProcessError> {
    let folder = tempfile::Builder::new().prefix("windtunnel-").tempdir()?;
    let root = folder.path().canonicalize()?;
    let (workspace, home) = (root.join("workspace"), root.join("home"));
    std::fs::create_dir_all(&workspace)?;
    std::fs::create_dir_all(&home)?;
    // `windtunnel` in a hook's or a server's command is this program, wherever it is installed.
    let bin = root.join("bin");
    std::fs::create_dir_all(&bin)?;
    std::os::unix::fs::symlink(&options.program, bin.join("windtunnel"))?;
    let place = Place {
        workspace: workspace.to_string_lossy().into_owned(),
        home: home.to_string_lossy().into_owned(),
    };
    // Compiled first: it refuses paths outside the workspace before anything is written.
    let mut compiled = compile(loaded, profile, &place)?;
    for (path, text) in &loaded.scenario.files {
        let path = workspace.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut run = Running::new(loaded, &mut compiled, options, &root, &workspace, &home);
        run.drive().await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let leftovers = crate::process::sweep_run(&root);
    let mut files = BTreeMap::new();
    for path in loaded.scenario.expectation(profile.word()).files.keys() {
        files.insert(path.clone(), read_file(&workspace.join(path)));
    }
    Ok(ProcessRun { outcome, place, files, leftovers })
}

/// The text of a regular file of at most [`FILE_LIMIT`] bytes; hooks and tools may have left anything there.
fn read_file(path: &Path) -> Option<String> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= FILE_LIMIT).then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// A run under way.
struct Running<'a> {
    loaded: &'a Loaded,
    compiled: &'a mut Compiled,
    options: &'a ProcessOptions,
    root: &'a Path,
    workspace: &'a Path,
    home: &'a Path,
    state: WorldState,
    channel: Channel,
    heard: mpsc::UnboundedReceiver<Said>,
    tasks: JoinSet<()>,
    tools: BTreeMap<u8, tokio::task::AbortHandle>,
    servers: servers::Servers,
    turn: u32,
}

impl<'a> Running<'a> {
    fn new(
        loaded: &'a Loaded,
        compiled: &'a mut Compiled,
        options: &'a ProcessOptions,
        root: &'a Path,
        workspace: &'a Path,
        home: &'a Path,
    ) -> Self {
        compiled.session.restart();
        let (channel, heard) = mpsc::unbounded_channel();
        Self {
            loaded,
            compiled,
            options,
            root,
            workspace,
            home,
            state: WorldState::default(),
            channel,
            heard,
            tasks: JoinSet::new(),
            tools: BTreeMap::new(),
            servers: servers::Servers::default(),
            turn: 0,
        }
    }

    fn session(&self) -> &Session {
        &self.compiled.session
    }

    async fn drive(&mut self) -> Outcome {
        let mut recorder = Recorder::default();
        let mut steps = 0;
        self.say(LabelledInput::Start);
        loop {
            let said = match tokio::time::timeout(SILENCE, self.heard.recv()).await {
                Ok(Some(said)) => said,
                _ => {
                    recorder.rejected(format!("nothing happened for {} s", SILENCE.as_secs()));
                    break;
                }
            };
            if self.is_stale(&said) {
                continue;
            }
            match self.compiled.session.step(said.input, None) {
                Ok(step) => {
                    self.follow(&step);
                    recorder.step(step);
                }
                Err(error) => {
                    recorder.rejected(error.to_string());
                    break;
                }
            }
            if self.session().state().phase == Phase::Ended {
                break;
            }
            steps += 1;
            if steps >= MAX_STEPS {
                break;
            }
            if self.session().state().phase == Phase::Idle {
                let text = self.compiled.world.prompt.clone();
                self.say(LabelledInput::Prompt { text });
            }
        }
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        self.servers.shutdown().await;
        recorder.finish(&self.compiled.session)
    }

    fn say(&self, input: LabelledInput) {
        // The receiver lives as long as we do.
        let _ = self.channel.send(Said { input, stamp: None });
    }

    /// Whether what a task says is about something that is over: a deadline of an answered request, the end of a tool
    /// that was given up, a second closing of a connection.
    fn is_stale(&self, said: &Said) -> bool {
        let state = self.session().state();
        let running = |slot: u8| state.slot(slot).is_some_and(|slot| slot.progress == Progress::Running);
        match (&said.input, said.stamp) {
            (LabelledInput::CallDeadline { call }, Some(Stamp::Call { turn }))
            | (LabelledInput::ToolFinished { call, .. }, Some(Stamp::Call { turn })) => {
                turn != self.turn || !running(call.slot)
            }
            (LabelledInput::ServerDeadline { server }, Some(Stamp::Server { id })) => {
                let conn =
                    self.session().server(server).ok().and_then(|server| state.server(server).copied());
                conn.is_none_or(|conn| conn.open.is_none() || conn.open != id)
            }
            (LabelledInput::McpClosed { server, .. }, _) => {
                let conn =
                    self.session().server(server).ok().and_then(|server| state.server(server).copied());
                conn.is_none_or(|conn| {
                    matches!(conn.phase, ConnPhase::Off | ConnPhase::Failed | ConnPhase::Lost)
                })
            }
            (LabelledInput::Interrupt, _) => state.phase <= Phase::Idle,
            (LabelledInput::Prompt { .. }, _) => state.phase != Phase::Idle,
            _ => false,
        }
    }

    /// Does what a step asks for.
    fn follow(&mut self, step: &TraceStep) {
        for output in &step.outputs {
            match output {
                LabelledOutput::Connect { server } => self.connect(server),
                LabelledOutput::SendMcp { server, line, call } => {
                    self.servers.send(server, line);
                    self.start_deadline(server, call.as_ref());
                }
                LabelledOutput::ServerChanged { server, phase } => {
                    if phase == "failed" || phase == "lost" {
                        self.servers.close(server);
                    }
                }
                LabelledOutput::RunHook { hook, call } => self.run_hook(hook, call.as_ref()),
                LabelledOutput::CallModel { .. } => self.call_model(),
                LabelledOutput::AskUser { call } => {
                    let allow = self.compiled.world.user_answer(&self.state);
                    self.compiled.world.advance_user(&mut self.state);
                    self.say(LabelledInput::PermissionAnswered { call: call.clone(), allow });
                }
                LabelledOutput::RunTool { call, input } => self.run_tool(call, input),
                LabelledOutput::CancelTool { call } => {
                    if let Some(task) = self.tools.remove(&call.slot) {
                        task.abort();
                    }
                }
                LabelledOutput::TurnEnded => {
                    self.turn += 1;
                    self.tools.clear();
                }
                LabelledOutput::Decided { .. }
                | LabelledOutput::Returned { .. }
                | LabelledOutput::Finish { .. } => {}
            }
        }
        for (server, line) in self.compiled.session.take_answers() {
            let name = self.session().config().servers.get(server.index()).map(|s| s.name.clone());
            if let Some(name) = name {
                self.servers.send(&name, &line);
            }
        }
    }

    fn call_model(&mut self) {
        if let Some(seconds) = self.compiled.world.interrupt.take() {
            self.after(seconds, LabelledInput::Interrupt, None);
        }
        let world = &self.compiled.world;
        let input = match world.reply(&self.state, 0) {
            Some(answer) => match &answer.fails {
                Some(reason) => LabelledInput::ModelFailed { reason: reason.clone() },
                None => LabelledInput::ModelReplied { reply: answer.reply.clone() },
            },
            None => LabelledInput::ModelFailed { reason: "the script has no reply".to_owned() },
        };
        world.advance_reply(&mut self.state);
        self.say(input);
    }

    /// Says something after a while.
    fn after(&mut self, seconds: f64, input: LabelledInput, stamp: Option<Stamp>) {
        let channel = self.channel.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            let _ = channel.send(Said { input, stamp });
        });
    }

    fn run_tool(&mut self, call: &windtunnel_model::trace::CallLabel, input: &serde_json::Value) {
        let (label, input, channel, turn) = (call.clone(), input.clone(), self.channel.clone(), self.turn);
        let tool = builtin::Tool {
            name: label.tool.clone(),
            input,
            workspace: self.workspace.to_owned(),
            env: self.child_env(&[]),
        };
        let task = self.tasks.spawn(async move {
            let (text, is_error) = tool.run().await;
            let input = LabelledInput::ToolFinished { call: label, text, is_error };
            let _ = channel.send(Said { input, stamp: Some(Stamp::Call { turn }) });
        });
        self.tools.insert(call.slot, task);
        let seconds = self.compiled.world.tool_timeout;
        self.after(seconds, LabelledInput::CallDeadline { call: call.clone() }, Some(Stamp::Call { turn }));
    }

    /// PATH with this program in front.
    fn path(&self) -> String {
        let rest = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        format!("{}:{rest}", self.root.join("bin").display())
    }

    fn child_env(&self, extra: &[(String, String)]) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let mut own = vec![
            ("HOME".to_owned(), self.home.to_string_lossy().into_owned()),
            ("TMPDIR".to_owned(), self.root.to_string_lossy().into_owned()),
            ("PATH".to_owned(), self.path()),
            (crate::process::RUN_MARKER.to_owned(), self.root.to_string_lossy().into_owned()),
        ];
        own.extend_from_slice(extra);
        crate::process::environment::child_environment(&self.options.pass_env, &own)
    }
}
