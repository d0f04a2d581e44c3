//! `windtunnel hook test`: a bench for hooks on real processes.

use super::findings::{self, FailOn};
use super::gate::{ProfileArg, SettingsArgs};
use super::{CliError, Exit, Format, Io, write_json};
use crate::hook_bench::{Bench, HookReport, Subject};
use crate::process::environment::PassEnv;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::time::Duration;
use windtunnel_model::finding::Finding;
use windtunnel_model::hooks::{Event, Handler, HandlerKind, HookTable, Matcher, OnFailure};

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
    /// The matcher of the command behind `--`
    #[arg(long, default_value = "", value_name = "MATCHER")]
    matcher: String,
    /// The weight from which on a finding makes the exit code 1
    #[arg(long, alias = "severity", value_enum, default_value = "error", value_name = "SEVERITY")]
    fail_on: FailOn,
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
    let subjects = if args.command.is_empty() {
        let (session, findings) = args.settings.session(profile.profile(), io)?;
        super::gate::print_findings(&findings, io)?;
        subjects(&session.hooks, event)
    } else {
        let on_failure = if args.on_failure == "block" { OnFailure::Block } else { OnFailure::Continue };
        let handler = Handler { on_failure, ..behind_dashes(&args.command) };
        vec![Subject { handler, matcher: Matcher::compile(&args.matcher) }]
    };
    if subjects.is_empty() {
        return Err(CliError::with_hint(
            format!("no command hooks on {event}"),
            "name a settings file with --settings, another --event, or a command after --",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cwd = args.settings.cwd.as_ref().map_or_else(|| io.cwd.clone(), |dir| io.cwd.join(dir));
    if !cwd.is_dir() {
        return Err(CliError::input(format!("--cwd {}: not a folder", cwd.display())));
    }
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
        for subject in &subjects {
            reports.push(bench.try_hook(subject).await);
        }
        reports
    });
    let findings: Vec<Finding> = hooks.iter().flat_map(|hook| hook.findings.clone()).collect();
    let exit = findings::exit(&findings, args.fail_on.into());
    let report = Report { profile: profile.word(), hooks, findings };
    match args.format {
        Format::Json => write_json(io, "hook test", &report)?,
        Format::Text => print_text(&report, io)?,
    }
    Ok(exit)
}

/// The command hooks of an event, each with its matcher.
fn subjects(table: &HookTable, event: Event) -> Vec<Subject> {
    let groups = table.sources.iter().flat_map(|source| source.config.groups(event));
    groups
        .flat_map(|group| {
            group
                .handlers
                .iter()
                .map(|handler| Subject { handler: handler.clone(), matcher: group.matcher.clone() })
        })
        .filter(|subject| matches!(subject.handler.kind, HandlerKind::Command { .. }))
        .collect()
}

/// One word is a line for the shell, as in settings; several are a program and its arguments, which our own caller's
/// shell has already taken apart.
fn behind_dashes(words: &[String]) -> Handler {
    match words {
        [program, args @ ..] if !args.is_empty() => {
            let kind = HandlerKind::Command { command: program.clone(), args: Some(args.to_vec()) };
            Handler { kind, ..Handler::command("") }
        }
        _ => Handler::command(words.concat()),
    }
}

fn print_text(report: &Report, io: &mut Io<'_>) -> Result<(), CliError> {
    for hook in &report.hooks {
        writeln!(
            io.stdout,
            "{} hook `{}`{}: fails {} (onFailure {})",
            hook.event,
            hook.hook,
            if hook.matcher.is_empty() { String::new() } else { format!(", matcher `{}`", hook.matcher) },
            hook.fails,
            hook.on_failure
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
    writeln!(io.stdout, "(profile {}; `timed-out` is judged, not provoked)", report.profile)?;
    Ok(())
}
