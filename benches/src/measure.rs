//! Measurements, each in a process of its own: the benchmark starts itself again for one subject, so that processor
//! time and peak memory are that subject's alone.

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// The hidden flag by which a benchmark is told to be the child that measures one subject.
const CHILD: &str = "--measure";

/// What one run of one subject came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Different states.
    pub states: Option<u64>,
    /// Transitions.
    pub transitions: Option<u64>,
    /// Operations, where the subject is not a search.
    pub operations: Option<u64>,
    /// Processor time, user and system, in seconds.
    pub cpu_seconds: f64,
    /// Peak resident memory of the whole process, in bytes.
    pub peak_bytes: u64,
}

/// Which subject this process is to measure, when it is a child.
#[must_use]
pub fn asked_for() -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    arguments.find(|argument| argument == CHILD)?;
    arguments.next()
}

/// Measures `work` in this process and prints the sample for the parent.
///
/// # Errors
/// When the sample cannot be written.
pub fn be_child(work: impl FnOnce() -> Sample) -> std::io::Result<()> {
    let before = cpu_seconds()?;
    let mut sample = work();
    sample.cpu_seconds = cpu_seconds()? - before;
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    sample.peak_bytes = u64::try_from(usage.max_rss()).unwrap_or(0) * 1024;
    println!("{}", serde_json::to_string(&sample)?);
    Ok(())
}

fn cpu_seconds() -> std::io::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Runs this program again as the child for `subject`.
///
/// # Errors
/// When the child cannot be started, fails, or prints no sample.
pub fn measure(subject: &str) -> std::io::Result<Sample> {
    let output = Command::new(std::env::current_exe()?).args([CHILD, subject]).output()?;
    if !output.status.success() {
        return Err(std::io::Error::other(format!(
            "measuring {subject} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(std::io::Error::other)
}

/// Measures every subject once a round, the rounds interleaved, and gives the sample with the median time of each.
///
/// # Errors
/// As [`measure`]; also when two rounds of a subject disagree on states or transitions.
pub fn rounds(subjects: &[&str], rounds: usize) -> std::io::Result<Vec<Sample>> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds.max(1) {
        for (subject, samples) in subjects.iter().zip(&mut samples) {
            let sample = measure(subject)?;
            if let Some(first) = samples.first()
                && (first.states, first.transitions) != (sample.states, sample.transitions)
            {
                return Err(std::io::Error::other(format!("{subject} counts differently in two rounds")));
            }
            samples.push(sample);
        }
    }
    Ok(samples
        .into_iter()
        .filter_map(|mut samples| {
            samples.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
            let middle = samples.len() / 2;
            samples.into_iter().nth(middle)
        })
        .collect())
}
