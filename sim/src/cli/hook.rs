//! `windtunnel hook test`: a bench for hooks on real processes.

use super::gate::{ProfileArg, SettingsArgs};
use super::{CliError, Exit, Format, Io, write_json};
use crate::process::child::{self, ChildSpec, CommandLine};
use crate::process::environment::{PassEnv, child_environment};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use windtunnel_model::finding::{Finding, Severity};
use windtunnel_model::hooks::payload::{Common, payload, tool_fields};
use windtunnel_model::hooks::{
    BlockEffect, EndStatus, Event, Handler, HandlerEnd, HandlerKind, HookVerdict, interpret,
};
use windtunnel_model::profile::hooks::HookParameters;

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Try a hook with good and bad input and say what the harness would make of each end.
    Test(TestArgs),
    /// Play a scripted hook: read the input, wait, print, exit with a code.
    Play(super::hook_play::PlayArgs),
}

/// Arguments of `hook test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The event
    #[arg(long, default_value = "PreToolUse", value_name = "EVENT")]
    event: String,
    /// `onFailure` of the command behind `--`
    #[arg(long, value_parser = ["continue", "block"], default_value = "continue")]
    on_failure: String,
    /// Seconds after which a probe is ended
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    time_limit: f64,
    /// Pass further environment variables on, or `all`
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    #[command(flatten)]
    profile: ProfileArg,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The hook's command line, instead of the hooks of the settings
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// As the subcommand's.
pub fn run(args: &HookArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.command {
        HookCommand::Test(args) => test(args, io),
        HookCommand::Play(args) => match super::hook_play::run(args, io)? {},
    }
}

/// One probe and what came of it.
#[derive(Clone, Debug, Serialize)]
struct Probe {
    name: &'static str,
    kind: &'static str,
    end: String,
    seconds: f64,
    stdout: String,
    decision: &'static str,
    failed: Option<String>,
    effect: String,
}

#[derive(Serialize)]
struct HookReport {
    hook: String,
    event: &'static str,
    on_failure: &'static str,
    /// `open`: failures let things go on; `closed`: they block.
    fails: &'static str,
    probes: Vec<Probe>,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Report {
    profile: &'static str,
    hooks: Vec<HookReport>,
    findings: Vec<Finding>,
}

fn test(args: &TestArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let event = Event::from_name(&args.event)
        .ok_or_else(|| CliError::input(format!("there is no event `{}`", args.event)))?;
    let profile = args.profile.profile;
    let parameters = profile.profile().hooks;
    let handlers: Vec<Handler> = if args.command.is_empty() {
        let (session, _) = args.settings.session(profile.profile(), io)?;
        let sources = session.hooks.sources.iter();
        sources
            .flat_map(|source| {
                source.config.groups(event).flat_map(|group| group.handlers.clone()).collect::<Vec<_>>()
            })
            .filter(|handler| matches!(handler.kind, HandlerKind::Command { .. }))
            .collect()
    } else {
        let line = args.command.join(" ");
        let on_failure = if args.on_failure == "block" {
            windtunnel_model::hooks::OnFailure::Block
        } else {
            windtunnel_model::hooks::OnFailure::Continue
        };
        vec![Handler { on_failure, ..Handler::command(line) }]
    };
    if handlers.is_empty() {
        return Err(CliError::with_hint(
            format!("no command hooks on {event}"),
            "name a settings file with --settings, another --event, or a command after --",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cwd = args.settings.cwd.as_ref().map_or_else(|| io.cwd.clone(), |dir| io.cwd.join(dir));
    // `clamp` passes what is no number through.
    let limit = if args.time_limit.is_nan() { 600.0 } else { args.time_limit };
    let bench = Bench {
        event,
        cwd,
        home: io.home.clone(),
        pass: PassEnv::from_flags(&args.pass_env),
        limit: Duration::from_secs_f64(limit.clamp(0.05, 600.0)),
        parameters,
    };
    let hooks: Vec<HookReport> = runtime.block_on(async {
        let mut reports = Vec::new();
        for handler in &handlers {
            reports.push(bench.hook(handler).await);
        }
        reports
    });
    let findings: Vec<Finding> = hooks.iter().flat_map(|hook| hook.findings.clone()).collect();
    let worst = findings.iter().map(|finding| finding.severity).max();
    let report = Report { profile: profile.word(), hooks, findings };
    match args.format {
        Format::Json => write_json(io, "hook test", &report)?,
        Format::Text => print_text(&report, io)?,
    }
    Ok(if worst >= Some(Severity::Error) { Exit::Refuted } else { Exit::Holds })
}

struct Bench {
    event: Event,
    cwd: PathBuf,
    home: Option<PathBuf>,
    pass: PassEnv,
    limit: Duration,
    parameters: HookParameters,
}

impl Bench {
    async fn hook(&self, handler: &Handler) -> HookReport {
        let mut probes = Vec::new();
        for (name, kind, stdin) in self.inputs() {
            probes.push(self.probe(name, kind, handler, stdin, false).await);
        }
        probes.push(self.probe("killed", "failure", handler, sample(self.event, "Bash"), true).await);
        probes.push(self.assumed("missing-interpreter", handler, EndStatus::Exit(127)));
        probes.push(self.assumed("timed-out", handler, EndStatus::Timeout));
        let findings = self.findings(handler, &probes);
        let fails_open = probes.iter().any(|probe| probe.failed.is_some() && probe.decision != "deny");
        HookReport {
            hook: handler.label(),
            event: self.event.name(),
            on_failure: match handler.on_failure {
                windtunnel_model::hooks::OnFailure::Continue => "continue",
                windtunnel_model::hooks::OnFailure::Block => "block",
            },
            fails: if fails_open { "open" } else { "closed" },
            probes,
            findings,
        }
    }

    /// The decision table over sample calls, then inputs that a hook should survive.
    fn inputs(&self) -> Vec<(&'static str, &'static str, Vec<u8>)> {
        let mut inputs = Vec::new();
        if self.event.is_about_a_tool() {
            for (name, tool) in [
                ("Bash-call", "Bash"),
                ("Write-call", "Write"),
                ("Edit-call", "Edit"),
                ("Read-call", "Read"),
                ("WebFetch-call", "WebFetch"),
                ("mcp-call", "mcp__server__tool"),
            ] {
                inputs.push((name, "sample", sample(self.event, tool)));
            }
        } else {
            inputs.push(("plain", "sample", sample(self.event, "Bash")));
        }
        inputs.push(("unreadable-input", "failure", b"{not json".to_vec()));
        inputs.push(("empty-input", "failure", Vec::new()));
        inputs.push(("missing-fields", "failure", b"{\"hook_event_name\":\"x\"}\n".to_vec()));
        inputs.push(("wrong-types", "failure", b"{\"tool_name\":5,\"tool_input\":\"x\"}\n".to_vec()));
        let huge =
            json!({"tool_name": "Write", "tool_input": {"file_path": "x", "content": "x".repeat(2_000_000)}});
        inputs.push(("huge-input", "failure", huge.to_string().into_bytes()));
        inputs
    }

    async fn probe(
        &self,
        name: &'static str,
        kind: &'static str,
        handler: &Handler,
        stdin: Vec<u8>,
        kill: bool,
    ) -> Probe {
        let HandlerKind::Command { command, args } = &handler.kind else {
            return self.assumed(name, handler, EndStatus::CannotStart("no command".to_owned()));
        };
        let line = match args {
            None => CommandLine::Shell(command.clone()),
            Some(args) => CommandLine::Exec { program: command.clone(), args: args.clone() },
        };
        let mut extra = vec![("CLAUDE_PROJECT_DIR".to_owned(), self.cwd.to_string_lossy().into_owned())];
        if let Some(home) = &self.home {
            extra.push(("HOME".to_owned(), home.to_string_lossy().into_owned()));
        }
        let spec = ChildSpec {
            command: line,
            cwd: self.cwd.clone(),
            env: child_environment(&self.pass, &extra),
            stdin,
            deadline: if kill { Duration::from_millis(1) } else { self.limit },
            output_limit: 1024 * 1024,
        };
        let ended = child::run(&spec).await;
        let seconds = ended.elapsed.as_secs_f64();
        let mut end = ended.handler_end();
        if kill {
            // A probe that kills: the kill is the end, whatever the hook was at.
            end = HandlerEnd { status: EndStatus::Signal(9), stdout: String::new(), ..end };
        }
        let verdict = interpret(self.event, handler, &end, &self.parameters);
        self.row(name, kind, &end, seconds, &verdict)
    }

    /// An end that is not provoked, only judged.
    fn assumed(&self, name: &'static str, handler: &Handler, status: EndStatus) -> Probe {
        let end = HandlerEnd::silent(status);
        let verdict = interpret(self.event, handler, &end, &self.parameters);
        self.row(name, "judged", &end, 0.0, &verdict)
    }

    fn row(
        &self,
        name: &'static str,
        kind: &'static str,
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
        Probe {
            name,
            kind,
            end: shown,
            seconds: (seconds * 1000.0).round() / 1000.0,
            stdout: end.stdout.chars().take(120).collect(),
            decision: verdict.decision.word(),
            failed: verdict.failed.clone(),
            effect,
        }
    }

    fn findings(&self, handler: &Handler, probes: &[Probe]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let label = handler.label();
        let denies_something = probes.iter().any(|p| p.kind == "sample" && p.decision == "deny");
        let open: Vec<&str> = probes
            .iter()
            .filter(|p| p.failed.is_some() && p.decision != "deny" && p.kind != "sample")
            .map(|p| p.name)
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
        if let Some(probe) = probes.iter().find(|p| p.kind == "sample" && p.end == "exit 1") {
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
        if let Some(probe) = probes.iter().find(|p| p.kind == "sample" && p.end == "timed out") {
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

fn print_text(report: &Report, io: &mut Io<'_>) -> Result<(), CliError> {
    for hook in &report.hooks {
        writeln!(
            io.stdout,
            "{} hook `{}`: fails {} (onFailure {})",
            hook.event, hook.hook, hook.fails, hook.on_failure
        )?;
        for probe in &hook.probes {
            writeln!(
                io.stdout,
                "  {:<20} {:<14} {:>8.3} s  {:<6} {}",
                probe.name, probe.end, probe.seconds, probe.decision, probe.effect
            )?;
        }
        for finding in &hook.findings {
            writeln!(io.stdout, "  {}: {} [{}]", finding.severity.word(), finding.message, finding.id)?;
        }
    }
    writeln!(
        io.stdout,
        "(profile {}; `missing-interpreter` and `timed-out` are judged, not provoked)",
        report.profile
    )?;
    Ok(())
}
