//! `profile list|show|diff`: every parameter appears, and the profiles differ where their tables do.

use crate::support::cli_with;
use serde_json::Value;
use std::path::Path;
use windtunnel::cli::Exit;
use windtunnel_model::profile::ProfileName;

fn json(args: &[&str]) -> (Exit, Value) {
    let args = [args, &["--format", "json"]].concat();
    let output = cli_with(&args, Path::new("."), None, "");
    (output.exit, serde_json::from_str(&output.stdout).expect("one JSON document"))
}

#[test]
fn every_parameter_is_shown_with_its_source() {
    for name in ProfileName::ALL {
        let (exit, shown) = json(&["profile", "show", name.word()]);
        assert_eq!(exit, Exit::Holds);
        let shown = shown["parameters"].as_array().expect("parameters");
        // The `Debug` text of the profile holds each parameter once: a table that is left out of `rows` is missed here.
        let debug = format!("{:?}", name.profile());
        assert_eq!(shown.len(), debug.matches("Parameter { value: ").count(), "{name}");
        assert!(shown.iter().all(|row| !row["source"]["text"].as_str().unwrap_or("").is_empty()), "{name}");
    }
}

#[test]
fn profiles_differ_where_their_tables_do() {
    let (exit, same) = json(&["profile", "diff", "documented", "documented"]);
    assert_eq!((exit, same["differences"].as_array().map(Vec::len)), (Exit::Holds, Some(0)));
    let (exit, diff) = json(&["profile", "diff", "documented", "claude-code-2.1.332"]);
    assert_eq!(exit, Exit::Refuted);
    let names: Vec<&str> =
        diff["differences"].as_array().expect("a list").iter().filter_map(|d| d["name"].as_str()).collect();
    assert!(names.contains(&"settings.wrong_shape_drops_file"), "{names:?}");
}

#[test]
fn a_wrong_name_is_refused() {
    for args in [&["profile", "show", "x"][..], &["profile", "show", "teaching", "--filter", "zzz"][..]] {
        let output = cli_with(args, Path::new("."), None, "");
        assert_eq!(output.exit, Exit::CannotJudge);
        assert!(!output.stderr.is_empty());
    }
}
