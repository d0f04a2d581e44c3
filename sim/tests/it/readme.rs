//! What the README shows is what the program prints.

use crate::support::cli_with;
use std::path::{Path, PathBuf};
use windtunnel::cli::Exit;

const BEGIN: &str =
    "<!-- verdicts: written by `UPDATE_README=1 cargo test -p windtunnel --test it readme` -->\n";
const END: &str = "<!-- end of verdicts -->\n";

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")
}

/// The table of verdicts stands in the README as a run gives it.
#[test]
fn the_table_of_verdicts_is_that_of_a_run() {
    let output = cli_with(&["check", "--no-times", "--format", "markdown"], Path::new("."), None, "");
    assert_eq!(output.exit, Exit::Holds, "{}", output.stderr);
    let text = std::fs::read_to_string(readme()).expect("the README");
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the table begins");
    let (table, after) = rest.split_once(END).expect("the mark where the table ends");
    if std::env::var_os("UPDATE_README").is_some() {
        let text = [before, BEGIN, &output.stdout, END, after].concat();
        std::fs::write(readme(), text).expect("written");
    } else {
        assert_eq!(table, output.stdout, "run it with UPDATE_README=1");
    }
}
