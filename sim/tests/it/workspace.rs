//! The shape of the workspace: arrows between the crates, what `model` may depend on, the command-line reference.

use std::collections::BTreeSet;

/// What may depend on what: model <- reports <- sim <- benches.
const ARROWS: [(&str, &[&str]); 4] = [
    ("windtunnel-model", &[]),
    ("windtunnel-reports", &["windtunnel-model"]),
    ("windtunnel", &["windtunnel-model", "windtunnel-reports"]),
    ("windtunnel-benches", &["windtunnel-model", "windtunnel-reports", "windtunnel"]),
];

/// The audited pure crates that `model` may use through functions that do no I/O (decisions 4).
const MODEL_MAY_USE: [&str; 13] = [
    "arrayvec",
    "brush-parser",
    "ignore",
    "jsonc-parser",
    "jsonschema",
    "regress",
    "rustc-hash",
    "serde",
    "serde-saphyr",
    "strsim",
    "serde_json",
    "smallvec",
    "thiserror",
];

#[test]
fn dependencies_point_in_the_allowed_directions_only() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .expect("cargo metadata");
    let ours: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(found, ours, "a package is in no list");
    for package in &metadata.packages {
        let (_, allowed) = ARROWS.iter().find(|(name, _)| *name == package.name.as_str()).expect("listed");
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            if ours.contains(name) {
                assert!(allowed.contains(&name), "{} depends on {name}", package.name);
            }
            let normal = dependency.kind == cargo_metadata::DependencyKind::Normal;
            if package.name.as_str() == "windtunnel-model" && normal {
                assert!(MODEL_MAY_USE.contains(&name), "model uses {name}, which is not on the list");
            }
            if name == "stateright" {
                let product = normal && package.name.as_str() != "windtunnel-benches";
                assert!(!product, "stateright is a peer, not a part of the product");
            }
        }
    }
}

/// The whole command-line reference as one snapshot: every flag's help is read by a reviewer.
#[test]
fn command_line_reference() {
    fn render(command: &mut clap::Command, path: &str, text: &mut String) {
        let path = if path.is_empty() {
            command.get_name().to_owned()
        } else {
            format!("{path} {}", command.get_name())
        };
        text.push_str(&format!("# {path}\n\n{}\n\n", command.render_long_help()));
        for sub in command.get_subcommands_mut().filter(|sub| sub.get_name() != "help") {
            render(sub, &path, text);
        }
    }
    let mut command = windtunnel::cli::command().term_width(100);
    command.build();
    let mut text = String::new();
    render(&mut command, "", &mut text);
    insta::assert_snapshot!(text);
}
