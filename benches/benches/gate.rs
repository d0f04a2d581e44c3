//! Decisions of the permission gate a second, with 200 compiled rules, and how time and memory grow from 10 to 10,000.
//!
//! `cargo bench -p windtunnel-benches --bench gate [-- --json]`. Every decision is computed anew: nothing is remembered
//! between calls. Compiling the rules is measured apart.

use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;
use windtunnel_model::gate::permission::permission;
use windtunnel_model::gate::tools::{McpTool, ToolTable};
use windtunnel_model::gate::{Behaviour, NoFiles, Policy, Workspace};
use windtunnel_model::profile::ProfileName;
use windtunnel_model::sources::merge::Merged;
use windtunnel_model::sources::settings::Level;

/// A rule set of `count` rules, of the kinds and in the proportions of public settings: mostly Bash prefixes, then exact
/// commands, domains, MCP tools and paths; one in five denies.
fn rules(count: usize) -> Merged {
    let mut merged = Merged::default();
    for i in 0..count {
        let behaviour = match i % 5 {
            0 => Behaviour::Deny,
            1 if i % 3 == 0 => Behaviour::Ask,
            _ => Behaviour::Allow,
        };
        let text = match i % 10 {
            0..=3 => format!("Bash(tool{i} sub *)"),
            4 | 5 => format!("Bash(tool{i} --exact)"),
            6 => format!("WebFetch(domain:host{i}.example)"),
            7 => format!("mcp__server{i}__tool"),
            8 => format!("Read(dir{i}/*.rs)"),
            _ => format!("Edit(/out{i}/**)"),
        };
        merged.push_rule(behaviour, &text, Level::Project, "settings.json");
    }
    merged
}

fn tools() -> ToolTable {
    let mut tools = ToolTable::default();
    tools.mcp.insert("mcp__s__tool".to_owned(), McpTool::default());
    tools
}

struct Subject {
    name: &'static str,
    calls: Vec<(&'static str, Value)>,
}

fn subjects() -> Vec<Subject> {
    vec![
        Subject {
            name: "mcp",
            calls: vec![("mcp__s__tool", json!({"a": 1})), ("mcp__server7__tool", json!({"a": 1}))],
        },
        Subject {
            name: "web",
            calls: vec![
                ("WebFetch", json!({"url": "https://host6.example/x", "prompt": "p"})),
                ("WebFetch", json!({"url": "https://other.example/", "prompt": "p"})),
            ],
        },
        Subject {
            name: "file",
            calls: vec![
                ("Read", json!({"file_path": "/project/src/main.rs"})),
                ("Write", json!({"file_path": "/project/out9/a.txt", "content": "x"})),
            ],
        },
        Subject {
            name: "bash-simple",
            calls: vec![
                ("Bash", json!({"command": "tool12 sub arg"})),
                ("Bash", json!({"command": "git status"})),
            ],
        },
        Subject {
            name: "bash-compound",
            calls: vec![
                ("Bash", json!({"command": "tool12 sub a && git status | head -n 5"})),
                ("Bash", json!({"command": "cd src && ls -la; cat 'a b.txt' | grep x"})),
            ],
        },
    ]
}

/// CPU seconds of this process; user and system.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let ticks = |i: usize| fields.get(i).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Resident bytes of this process.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn main() {
    let json_lines = std::env::args().any(|arg| arg == "--json");
    let parameters = ProfileName::ClaudeCode.profile().gate;
    let workspace = Workspace::new("/project", "/home/user");
    let report =
        |subject: &str, rules: usize, operations: u64, seconds: f64, cpu: f64, bytes: Option<usize>| {
            if json_lines {
                let mut line = json!({
                    "bench": "gate", "subject": subject, "engine": "windtunnel", "rules": rules,
                    "operations": operations, "seconds": seconds, "cpu_seconds": cpu,
                });
                if let (Some(bytes), Some(fields)) = (bytes, line.as_object_mut()) {
                    fields.insert("bytes".to_owned(), json!(bytes));
                }
                println!("{line}");
            } else {
                // On a shared machine the wall clock measures the others as well.
                let rate = operations as f64 / if cpu > 0.0 { cpu } else { seconds };
                let memory = bytes.map(|b| format!("  {:>9.1} KiB", b as f64 / 1024.0)).unwrap_or_default();
                println!("{subject:<16} {rules:>6} rules {rate:>14.0} a second of CPU{memory}");
            }
        };
    for count in [10, 200, 1_000, 10_000] {
        let merged = rules(count);
        let (started, cpu, before) = (Instant::now(), cpu_seconds(), resident_bytes());
        let policy = Policy::new(&merged, &workspace.bases(), tools(), &parameters);
        let grown = resident_bytes().saturating_sub(before);
        report(
            "compile",
            count,
            count as u64,
            started.elapsed().as_secs_f64(),
            cpu_seconds() - cpu,
            Some(grown),
        );
        for subject in subjects() {
            let mut operations = 0_u64;
            let (started, cpu) = (Instant::now(), cpu_seconds());
            while started.elapsed().as_secs_f64() < 0.6 {
                for _ in 0..64 {
                    for (tool, input) in &subject.calls {
                        black_box(permission(&policy, &workspace, &NoFiles, tool, black_box(input)));
                        operations += 1;
                    }
                }
            }
            report(
                subject.name,
                count,
                operations,
                started.elapsed().as_secs_f64(),
                cpu_seconds() - cpu,
                None,
            );
        }
    }
}
