//! One child process run to its end: hooks, the Bash tool, and every other program that reads its input, prints and
//! exits.

use super::Group;
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use windtunnel_model::hooks::{EndStatus, HandlerEnd};

/// How the program is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// A line for `sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Exec {
        /// The program, looked up in PATH unless it has a slash.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// What to run, and within which limits.
#[derive(Clone, Debug)]
pub struct ChildSpec {
    /// The program.
    pub command: CommandLine,
    /// Its current folder.
    pub cwd: PathBuf,
    /// Its whole environment (nothing is inherited besides).
    pub env: Vec<(OsString, OsString)>,
    /// Its standard input; a program that does not read it is no error.
    pub stdin: Vec<u8>,
    /// After this long the whole group is killed.
    pub deadline: Duration,
    /// Bytes kept of stdout and of stderr, each; the rest is read and dropped.
    pub output_limit: usize,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// The deadline passed and the group was killed.
    TimedOut,
    /// It could not be started; the operating system's reason.
    CannotStart(String),
}

/// What is known after the end.
#[derive(Clone, Debug)]
pub struct ChildEnd {
    /// How it ended.
    pub status: ChildStatus,
    /// Standard output up to the limit.
    pub stdout: Vec<u8>,
    /// Standard error up to the limit.
    pub stderr: Vec<u8>,
    /// Whether output was dropped.
    pub truncated: bool,
    /// Wall-clock time from start to end.
    pub elapsed: Duration,
    /// Whether members of its group outlived it (they have been killed).
    pub leftovers: bool,
}

/// How long the pipes are read after the program itself has ended: descendants may hold them open for ever.
const DRAIN: Duration = Duration::from_millis(200);

/// A [`Command`] that starts in a process group of its own, with exactly the given environment, and is killed by the
/// kernel when the thread that starts it dies.
pub fn command(line: &CommandLine, cwd: &std::path::Path, env: &[(OsString, OsString)]) -> Command {
    let mut command = match line {
        CommandLine::Shell(text) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(text);
            command
        }
        CommandLine::Exec { program, args } => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
    };
    command.current_dir(cwd).env_clear().envs(env.iter().cloned()).process_group(0).kill_on_drop(true);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; prctl is one system call.
    unsafe {
        command.pre_exec(|| nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from));
    }
    command
}

/// Runs a program to its end. Never fails: a program that cannot start is an end like any other.
pub async fn run(spec: &ChildSpec) -> ChildEnd {
    let mut command = command(&spec.command, &spec.cwd, &spec.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match command.spawn() {
        Ok(child) => {
            // Who outlives the program is killed when the group is dropped here.
            let group = child.id().and_then(Group::register);
            wait(child, group.as_ref(), spec.stdin.clone(), spec.deadline, spec.output_limit).await
        }
        Err(error) => ChildEnd {
            status: ChildStatus::CannotStart(error.to_string()),
            stdout: Vec::new(),
            stderr: Vec::new(),
            truncated: false,
            elapsed: Duration::ZERO,
            leftovers: false,
        },
    }
}

/// Gives a started program its input and waits for its end, no longer than `deadline`; then the whole group is killed.
/// What the group does after the program's own end is its owner's affair.
pub async fn wait(
    mut child: Child,
    group: Option<&Group>,
    stdin: Vec<u8>,
    deadline: Duration,
    output_limit: usize,
) -> ChildEnd {
    let started = Instant::now();
    let writer = feed(&mut child, stdin);
    let (kept_out, kept_err) = (Kept::default(), Kept::default());
    let mut out = tokio::spawn(read_bounded(child.stdout.take(), output_limit, kept_out.clone()));
    let mut err = tokio::spawn(read_bounded(child.stderr.take(), output_limit, kept_err.clone()));
    let status = match tokio::time::timeout(deadline, child.wait()).await {
        Ok(Ok(status)) => match (status.code(), status.signal()) {
            (Some(code), _) => ChildStatus::Exited(code),
            (None, Some(signal)) => ChildStatus::Signalled(signal),
            (None, None) => ChildStatus::CannotStart("it ended without a status".to_owned()),
        },
        Ok(Err(error)) => ChildStatus::CannotStart(error.to_string()),
        Err(_) => {
            if let Some(group) = group {
                group.signal(Signal::SIGKILL);
            }
            let _ = child.wait().await;
            ChildStatus::TimedOut
        }
    };
    let elapsed = started.elapsed();
    // Those who outlive their leader may hold the pipes: they get a moment to finish writing. What they have written by
    // then is kept.
    let _ = tokio::time::timeout(DRAIN, async { (&mut out).await.and((&mut err).await) }).await;
    let leftovers = group.is_some_and(Group::is_alive);
    writer.abort();
    out.abort();
    err.abort();
    let (stdout, stderr) = (take(&kept_out), take(&kept_err));
    ChildEnd {
        status,
        truncated: stdout.1 || stderr.1,
        stdout: stdout.0,
        stderr: stderr.0,
        elapsed,
        leftovers,
    }
}

/// Writes a program's input in the background and closes it.
pub fn feed(child: &mut Child, input: Vec<u8>) -> JoinHandle<()> {
    let stdin = child.stdin.take();
    tokio::spawn(async move {
        if let Some(mut pipe) = stdin {
            // A program may leave its input unread: a broken pipe is not our error.
            let _ = pipe.write_all(&input).await;
            let _ = pipe.shutdown().await;
        }
    })
}

impl ChildEnd {
    /// The end as a hook's: what a handler's command came to.
    pub fn handler_end(self) -> HandlerEnd {
        let status = match self.status {
            ChildStatus::Exited(code) => EndStatus::Exit(code),
            ChildStatus::Signalled(signal) => EndStatus::Signal(signal),
            ChildStatus::TimedOut => EndStatus::Timeout,
            ChildStatus::CannotStart(reason) => EndStatus::CannotStart(reason),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        HandlerEnd { status, stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }
}

/// What was kept of a stream, and whether there was more.
type Kept = std::sync::Arc<std::sync::Mutex<(Vec<u8>, bool)>>;

fn take(kept: &Kept) -> (Vec<u8>, bool) {
    kept.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default()
}

/// Reads to the end, keeps the first `limit` bytes, and notes whether there were more.
async fn read_bounded(pipe: Option<impl AsyncRead + Unpin>, limit: usize, kept: Kept) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = pipe.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        let Ok(mut kept) = kept.lock() else { break };
        let room = limit.saturating_sub(kept.0.len()).min(count);
        kept.0.extend_from_slice(&buffer[..room]);
        kept.1 |= room < count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_is_kept_when_a_descendant_holds_the_pipe() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let end = runtime.block_on(run(&ChildSpec {
            command: CommandLine::Shell("echo said; sleep 30 & exit 0".to_owned()),
            cwd: std::env::temp_dir(),
            env: Vec::new(),
            stdin: Vec::new(),
            deadline: Duration::from_secs(20),
            output_limit: 100,
        }));
        assert_eq!((end.status, end.stdout.as_slice()), (ChildStatus::Exited(0), b"said\n".as_slice()));
        assert!(end.leftovers);
    }
}
