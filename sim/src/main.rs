//! The `windtunnel` binary: signal handling, then [`windtunnel::cli::run`].

use std::io::IsTerminal as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    windtunnel::process::install_signal_handler();
    let mut stdin = std::io::stdin();
    let mut stdout = anstream::AutoStream::auto(std::io::stdout());
    let mut stderr = anstream::AutoStream::auto(std::io::stderr());
    let Ok(cwd) = std::env::current_dir() else {
        eprintln!("error: the current folder cannot be read");
        return ExitCode::from(2);
    };
    let mut io = windtunnel::cli::Io {
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        cwd,
        home: std::env::var_os("HOME").map(Into::into),
        progress: std::io::stderr().is_terminal(),
    };
    windtunnel::cli::run(std::env::args_os(), &mut io).into()
}
