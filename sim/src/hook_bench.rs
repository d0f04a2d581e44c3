//! A bench for one hook: sample calls of its event, then the ways in which a hook fails, on real processes.

use crate::process::child::{self, ChildSpec, CommandLine};
use crate::process::environment::{PassEnv, child_environment};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use windtunnel_model::finding::{Finding, Severity};
use windtunnel_model::gate::tools;
use windtunnel_model::hooks::payload::{Common, payload, tool_fields};
use windtunnel_model::hooks::{
    BlockEffect, EndStatus, Event, Handler, HandlerEnd, HandlerKind, HookVerdict, Matcher, OnFailure,
    interpret,
};
use windtunnel_model::profile::hooks::HookParameters;

/// One probe and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Probe {
    /// Its name: the call, or what is wrong.
    pub name: String,
    /// What it is for.
    pub kind: ProbeKind,
    /// How the hook ended.
    pub end: String,
    /// After how long; to the millisecond.
    pub seconds: f64,
    /// The beginning of what it printed.
    pub stdout: String,
    /// The beginning of what it wrote on standard error.
    pub stderr: String,
    /// What the harness reads in that.
    pub decision: &'static str,
    /// Why it counts as failed.
    pub failed: Option<String>,
    /// What comes of it.
    pub effect: String,
}

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// A call that the matcher lets through to the hook.
    Sample,
    /// A call of a tool that the matcher keeps away: how the hook takes it when the matcher is widened.
    OtherTool,
    /// A failure that was provoked.
    Failure,
    /// A failure that was not provoked, only judged.
    Judged,
}

impl ProbeKind {
    /// Whether it is a way to fail.
    fn fails(self) -> bool {
        matches!(self, Self::Failure | Self::Judged)
    }
}

/// What the bench says of one hook.
#[derive(Debug, Serialize)]
pub struct HookReport {
    /// Its command line.
    pub hook: String,
    /// The event.
    pub event: &'static str,
    /// Its matcher; empty is all.
    pub matcher: String,
    /// Its `onFailure`.
    pub on_failure: &'static str,
    /// `open`: failures let things go on; `closed`: they block.
    pub fails: &'static str,
    /// Every probe.
    pub probes: Vec<Probe>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// A hook to be tried.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its command.
    pub handler: Handler,
    /// The matcher of its group.
    pub matcher: Matcher,
}

/// Where and how hooks are tried.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The event.
    pub event: Event,
    /// The folder in which they run.
    pub cwd: PathBuf,
    /// Home, as they see it.
    pub home: Option<PathBuf>,
    /// What is passed on of our own environment.
    pub pass: PassEnv,
    /// After which time a probe is ended.
    pub limit: Duration,
    /// What the harness makes of their ends.
    pub parameters: HookParameters,
}

/// The provoked or assumed trouble of a probe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// It is killed while it runs.
    Kill,
    /// No program is found by its name.
    NoPath,
}

impl Bench {
    /// Tries one hook with everything.
    pub async fn try_hook(&self, subject: &Subject) -> HookReport {
        let handler = &subject.handler;
        let mut probes = Vec::new();
        for (name, kind, stdin) in self.inputs(&subject.matcher) {
            probes.push(self.probe(name, kind, handler, stdin, Trouble::None).await);
        }
        for (name, trouble) in [("killed", Trouble::Kill), ("missing-interpreter", Trouble::NoPath)] {
            let stdin = sample(self.event, "Bash");
            probes.push(self.probe(name.to_owned(), ProbeKind::Failure, handler, stdin, trouble).await);
        }
        probes.push(self.assumed("timed-out", handler, EndStatus::Timeout));
        let findings = self.findings(subject, &probes);
        let fails_open = probes
            .iter()
            .any(|probe| probe.kind.fails() && probe.failed.is_some() && probe.decision != "deny");
        HookReport {
            hook: handler.label(),
            event: self.event.name(),
            matcher: subject.matcher.text().to_owned(),
            on_failure: match handler.on_failure {
                OnFailure::Continue => "continue",
                OnFailure::Block => "block",
            },
            fails: if fails_open { "open" } else { "closed" },
            probes,
            findings,
        }
    }

    /// The decision table over sample calls, then inputs that a hook should survive.
    fn inputs(&self, matcher: &Matcher) -> Vec<(String, ProbeKind, Vec<u8>)> {
        let mut inputs = Vec::new();
        if self.event.is_about_a_tool() {
            let mut sampled: Vec<&str> = SAMPLES.to_vec();
            if !sampled.iter().any(|tool| matcher.matches_tool(tool)) {
                // A matcher for rarer tools gets a call of one of them.
                sampled.extend(matching_tool(matcher));
            }
            for tool in sampled {
                let kind = if matcher.matches_tool(tool) { ProbeKind::Sample } else { ProbeKind::OtherTool };
                let name = if tool == MCP_SAMPLE { "mcp-call".to_owned() } else { format!("{tool}-call") };
                inputs.push((name, kind, sample(self.event, tool)));
            }
        } else {
            inputs.push(("plain".to_owned(), ProbeKind::Sample, sample(self.event, "Bash")));
        }
        let huge =
            json!({"tool_name": "Write", "tool_input": {"file_path": "x", "content": "x".repeat(2_000_000)}});
        for (name, stdin) in [
            ("unreadable-input", b"{not json".to_vec()),
            ("empty-input", Vec::new()),
            ("missing-fields", b"{\"hook_event_name\":\"x\"}\n".to_vec()),
            ("wrong-types", b"{\"tool_name\":5,\"tool_input\":\"x\"}\n".to_vec()),
            ("huge-input", huge.to_string().into_bytes()),
        ] {
            inputs.push((name.to_owned(), ProbeKind::Failure, stdin));
        }
        inputs
    }

    async fn probe(
        &self,
        name: String,
        kind: ProbeKind,
        handler: &Handler,
        stdin: Vec<u8>,
        trouble: Trouble,
    ) -> Probe {
        let HandlerKind::Command { command, args } = &handler.kind else {
            return self.assumed(&name, handler, EndStatus::CannotStart("no command".to_owned()));
        };
        let line = match args {
            None => CommandLine::Shell(command.clone()),
            Some(args) => CommandLine::Exec { program: command.clone(), args: args.clone() },
        };
        let mut extra = vec![("CLAUDE_PROJECT_DIR".to_owned(), self.cwd.to_string_lossy().into_owned())];
        if let Some(home) = &self.home {
            extra.push(("HOME".to_owned(), home.to_string_lossy().into_owned()));
        }
        let mut env = child_environment(&self.pass, &extra);
        if trouble == Trouble::NoPath {
            env.retain(|(name, _)| name != "PATH");
            env.push(("PATH".into(), "/nonexistent".into()));
        }
        let spec = ChildSpec {
            command: line,
            cwd: self.cwd.clone(),
            env,
            stdin,
            deadline: if trouble == Trouble::Kill { Duration::from_millis(1) } else { self.limit },
            output_limit: 1024 * 1024,
        };
        let ended = child::run(&spec).await;
        let seconds = ended.elapsed.as_secs_f64();
        let mut end = ended.handler_end();
        if trouble == Trouble::Kill {
            // A probe that kills: the kill is the end, whatever the hook was at.
            end = HandlerEnd { status: EndStatus::Signal(9), stdout: String::new(), ..end };
        }
        let verdict = interpret(self.event, handler, &end, &self.parameters);
        self.row(name, kind, &end, seconds, &verdict)
    }

    /// An end that is not provoked, only judged.
    fn assumed(&self, name: &str, handler: &Handler, status: EndStatus) -> Probe {
        let end = HandlerEnd::silent(status);
        let verdict = interpret(self.event, handler, &end, &self.parameters);
        self.row(name.to_owned(), ProbeKind::Judged, &end, 0.0, &verdict)
    }

    fn row(
        &self,
        name: String,
        kind: ProbeKind,
        end: &HandlerEnd,
        seconds: f64,
        verdict: &HookVerdict,
    ) -> Probe {
        let shown = match &end.status {
            EndStatus::Exit(code) => format!("exit {code}"),
            EndStatus::Signal(signal) => format!("signal {signal}"),
            EndStatus::Timeout => "timed out".to_owned(),
            EndStatus::CannotStart(why) => format!("cannot start: {why}"),
            other => format!("{other:?}"),
        };
        let effect = match (verdict.decision.word(), &verdict.failed) {
            ("deny", Some(_)) if verdict.by_on_failure => "blocked, because onFailure is block".to_owned(),
            ("deny", _) => effect_text(self.event.block_effect()).to_owned(),
            ("none", Some(_)) => "goes on: the failure is passed over".to_owned(),
            ("none", None) => "goes on: the hook says nothing".to_owned(),
            (word, _) => word.to_owned(),
        };
        let effect = match kind {
            ProbeKind::OtherTool => "never asked: the matcher keeps it away".to_owned(),
            _ => effect,
        };
        Probe {
            name,
            kind,
            end: shown,
            seconds: (seconds * 1000.0).round() / 1000.0,
            stdout: end.stdout.chars().take(120).collect(),
            stderr: end.stderr.chars().take(120).collect(),
            decision: verdict.decision.word(),
            failed: verdict.failed.clone(),
            effect,
        }
    }

    fn findings(&self, subject: &Subject, probes: &[Probe]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let label = subject.handler.label();
        let samples = || probes.iter().filter(|p| p.kind == ProbeKind::Sample);
        if self.event.is_about_a_tool() && samples().next().is_none() {
            let why = subject.matcher.never().map(|why| format!(" ({why})")).unwrap_or_default();
            findings.push(
                Finding::new(
                    "matcher-never-matches",
                    Severity::Error,
                    format!(
                        "the matcher `{}` of `{label}` matches no known tool{why}",
                        subject.matcher.text()
                    ),
                    "the hook never runs, and the harness does not say so",
                )
                .with_remedy("use exact tool names, or a regular expression that matches them"),
            );
        }
        // What the shell and the kernel say of a program that is not there, or must not be executed.
        if let Some(probe) = probes.iter().find(|p| {
            matches!(p.kind, ProbeKind::Sample | ProbeKind::OtherTool)
                && (matches!(p.end.as_str(), "exit 127" | "exit 126") || p.end.starts_with("cannot start"))
        }) {
            let said = probe.stderr.lines().next().unwrap_or("").trim();
            findings.push(
                Finding::new(
                    "hook-cannot-start",
                    Severity::Error,
                    format!("`{label}` does not start: {}{}{said}", probe.end, if said.is_empty() { "" } else { ": " }),
                    "a hook that cannot start is a failed hook: things go on without it",
                )
                .with_remedy("name a program that exists and is executable, by its full path or with $CLAUDE_PROJECT_DIR"),
            );
        }
        let denied = |p: &&Probe| p.decision == "deny" && p.kind != ProbeKind::Judged;
        let provoked = probes.iter().filter(|p| p.kind != ProbeKind::Judged && p.name != "killed");
        if self.event.is_about_a_tool()
            && samples().count() > 1
            && provoked.filter(|p| p.name != "missing-interpreter").all(|p| denied(&p))
        {
            let said = samples().next().map_or("", |p| p.stderr.lines().last().unwrap_or("").trim());
            findings.push(
                Finding::new(
                    "hook-denies-everything",
                    Severity::Warning,
                    format!("`{label}` refuses every call and every input, in the same way: {said}"),
                    "a hook that is broken with exit code 2 (a missing script under Python, a usage error) \
                     blocks all work as if it had decided so",
                )
                .with_remedy(
                    "look at what it writes; let it exit with 0 for calls that it has nothing against",
                ),
            );
        }
        let denies_something = samples().any(|p| p.decision == "deny");
        let open: Vec<&str> = probes
            .iter()
            .filter(|p| p.failed.is_some() && p.decision != "deny" && p.kind.fails())
            .map(|p| p.name.as_str())
            .collect();
        if denies_something && !open.is_empty() {
            findings.push(
                Finding::new(
                    "hook-fails-open",
                    Severity::Warning,
                    format!(
                        "`{label}` refuses calls, but lets them through when it fails ({})",
                        open.join(", ")
                    ),
                    "a guard that fails protects nothing",
                )
                .with_remedy("set `onFailure` to `block`"),
            );
        }
        if let Some(probe) = samples().find(|p| p.end == "exit 1") {
            findings.push(
                Finding::new(
                    "hook-exit-1",
                    Severity::Error,
                    format!("`{label}` ends with 1 on {}", probe.name),
                    "1 is a failure, not a refusal: things go on; only 2 blocks",
                )
                .with_remedy("exit with 2 to refuse, with 0 to agree"),
            );
        }
        let text_before_json = |p: &&Probe| {
            let text = p.stdout.trim();
            !text.starts_with('{') && text.contains("{\"") && p.end == "exit 0"
        };
        if let Some(probe) = probes.iter().find(text_before_json) {
            findings.push(
                Finding::new(
                    "hook-text-before-json",
                    Severity::Error,
                    format!("`{label}` prints text before its JSON on {}", probe.name),
                    "the whole output then counts as plain text and the decision is lost",
                )
                .with_remedy("print the JSON alone; send other text to standard error"),
            );
        }
        if let Some(probe) = samples().find(|p| p.end == "timed out") {
            findings.push(
                Finding::new(
                    "hook-too-slow",
                    Severity::Warning,
                    format!("`{label}` did not end in time on {}", probe.name),
                    "the call waits for the hook, then goes on without it",
                )
                .with_remedy("make it faster, or set a time limit and `onFailure`"),
            );
        }
        findings
    }
}

/// The tools of the sample calls.
const SAMPLES: [&str; 6] = ["Bash", "Write", "Edit", "Read", "WebFetch", MCP_SAMPLE];
const MCP_SAMPLE: &str = "mcp__server__tool";

/// A tool outside the samples that a matcher lets through: a built-in one, or an MCP tool that it names.
fn matching_tool(matcher: &Matcher) -> Option<&str> {
    let builtin = tools::builtin_names().chain(tools::ABSENT).find(|tool| matcher.matches_tool(tool));
    builtin.or_else(|| {
        let named = matcher.names()?.iter().find(|name| name.splitn(3, "__").count() == 3)?;
        Some(named.as_str())
    })
}

/// What a block does on an event, in words.
fn effect_text(effect: BlockEffect) -> &'static str {
    match effect {
        BlockEffect::DenyCall => "the call is not executed",
        BlockEffect::BlockPrompt => "the prompt is erased",
        BlockEffect::Continue => "the turn goes on with the text",
        BlockEffect::EndRun => "the run ends after the batch",
        BlockEffect::Feedback => "the text is shown to the model",
        BlockEffect::Notice => "the text is shown to the user",
        BlockEffect::Undo => "what was announced does not happen",
        BlockEffect::Nothing => "nothing",
        BlockEffect::Unknown => "unknown: neither documented nor observed",
    }
}

/// The payload of a sample call.
fn sample(event: Event, tool: &str) -> Vec<u8> {
    let input = match tool {
        "Bash" => json!({"command": "rm -rf build"}),
        "Write" => json!({"file_path": "/project/a.txt", "content": "x"}),
        "Edit" => json!({"file_path": "/project/a.txt", "old_string": "a", "new_string": "b"}),
        "Read" => json!({"file_path": "/project/.env"}),
        "WebFetch" => json!({"url": "https://example.com/", "prompt": "p"}),
        _ => json!({"a": 1}),
    };
    let common = Common {
        session_id: "00000000-0000-4000-8000-000000000000".to_owned(),
        transcript_path: "/project/transcript.jsonl".to_owned(),
        cwd: "/project".to_owned(),
        permission_mode: "default".to_owned(),
        agent: None,
    };
    let own = if event.is_about_a_tool() {
        tool_fields(event, tool, &input, "toolu_1")
    } else {
        let mut own = serde_json::Map::new();
        own.insert("prompt".to_owned(), Value::from("hello"));
        own.insert("stop_hook_active".to_owned(), Value::from(false));
        own
    };
    let mut text = payload(event, &common, own).to_string().into_bytes();
    text.push(b'\n');
    text
}
