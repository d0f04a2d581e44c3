//! Real processes: each in a process group of its own, with a clean environment, a deadline on every wait, bounded
//! output, and none left behind.
//!
//! Children die with us in three ways: each live group is registered and killed on SIGINT, SIGTERM and at the end of
//! its owner; each child asks the kernel for SIGKILL when the thread that started it dies; and each carries a marker
//! in its environment by which [`sweep`] finds descendants that left the group. What SIGKILL of ourselves can leave:
//! descendants of a child (not the child) that ignore the end of their input.

pub mod child;
pub mod environment;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Process groups that are alive and ours.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The environment variable that marks our children and, by inheritance, theirs. Its value is our process id.
pub const MARKER: &str = "WINDTUNNEL_CHILD_OF";

/// A registered process group; on drop the group is killed and forgotten.
#[derive(Debug)]
pub struct Group {
    id: i32,
}

impl Group {
    /// Registers the group that is led by process `id`.
    pub fn register(id: u32) -> Option<Self> {
        let id = i32::try_from(id).ok()?;
        if let Ok(mut groups) = GROUPS.lock() {
            groups.insert(id);
        }
        Some(Self { id })
    }

    /// Sends a signal to every member; `false` when there is none.
    pub fn signal(&self, signal: Signal) -> bool {
        killpg(Pid::from_raw(self.id), signal).is_ok()
    }

    /// Whether some member is alive (a zombie that nobody has waited for counts).
    pub fn is_alive(&self) -> bool {
        killpg(Pid::from_raw(self.id), None).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Ok(mut groups) = GROUPS.lock() {
            groups.remove(&self.id);
        }
    }
}

/// Kills every registered group and every marked descendant. Returns how many processes were found by their marker.
pub fn kill_all() -> usize {
    if let Ok(groups) = GROUPS.lock() {
        for id in groups.iter() {
            let _ = killpg(Pid::from_raw(*id), Signal::SIGKILL);
        }
    }
    sweep()
}

/// The environment variable that marks the children of one run. Its value is the run's temporary folder.
pub const RUN_MARKER: &str = "WINDTUNNEL_RUN";

/// Process ids of living descendants that carry our marker.
pub fn marked() -> Vec<i32> {
    living_with(&format!("{MARKER}={}", std::process::id()))
}

/// Living processes, ourselves excepted, whose environment holds exactly the entry `entry` (`NAME=value`).
fn living_with(entry: &str) -> Vec<i32> {
    let me = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|process| process.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && *name != me)
        .filter(|name| {
            std::fs::read(format!("/proc/{name}/environ"))
                .is_ok_and(|environ| environ.split(|b| *b == 0).any(|part| part == entry.as_bytes()))
        })
        .filter(|name| {
            // A zombie has given up everything already; its parent has only to wait for it.
            std::fs::read_to_string(format!("/proc/{name}/stat"))
                .is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
        })
        .filter_map(|name| name.parse().ok())
        .collect()
}

/// Kills the living descendants that carry our marker, wherever they moved, and returns how many there were.
pub fn sweep() -> usize {
    kill_with_environment(&format!("{MARKER}={}", std::process::id()))
}

/// Kills what is left of one run, wherever it moved, and returns how many there were.
pub fn sweep_run(folder: &std::path::Path) -> usize {
    kill_with_environment(&format!("{RUN_MARKER}={}", folder.display()))
}

/// Kills every living process whose environment holds exactly the entry `entry` (`NAME=value`), wherever it moved, and
/// returns how many there were.
pub fn kill_with_environment(entry: &str) -> usize {
    let found = living_with(entry);
    for id in &found {
        let _ = nix::sys::signal::kill(Pid::from_raw(*id), Signal::SIGKILL);
    }
    found.len()
}

/// On SIGINT, SIGTERM and SIGHUP: kill every child, then end with 128 + the signal's number.
pub fn install_signal_handler() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            kill_all();
            std::process::exit(128 + signal);
        }
    });
}
