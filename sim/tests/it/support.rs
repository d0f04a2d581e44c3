//! What several tests share.

use std::path::{Path, PathBuf};
use windtunnel::cli::{Exit, Io, run};

/// What a command line printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code.
    pub(crate) exit: Exit,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Runs a command line in this process, without a home folder and with nothing to read.
pub(crate) fn cli(args: &[&str], cwd: &Path) -> Output {
    cli_with(args, cwd, None, "")
}

/// Runs a command line in this process.
pub(crate) fn cli_with(args: &[&str], cwd: &Path, home: Option<PathBuf>, stdin: &str) -> Output {
    let (mut stdin, mut stdout, mut stderr) = (stdin.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io {
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        cwd: cwd.to_owned(),
        home,
        progress: false,
    };
    let args = std::iter::once("windtunnel").chain(args.iter().copied()).map(Into::into);
    let exit = run(args, &mut io);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Output { exit, stdout: text(stdout), stderr: text(stderr) }
}

/// A temporary folder.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Public data beside the repository; where it is missing the test says so and is skipped.
pub(crate) fn shared(below: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(below);
    if !path.exists() {
        println!("skipped: {below} is not beside the repository");
    }
    path.exists().then_some(path)
}
