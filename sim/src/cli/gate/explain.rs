//! `windtunnel gate explain`: the decision for one call, step by step.

use super::{ProfileArg, SettingsArgs};
use crate::cli::{CliError, Exit, Format, Io, write_json};
use crate::gate::files::Disk;
use crate::gate::run_hooks::HookRunner;
use crate::gate::said::{Said, SaidHooks};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use windtunnel_model::finding::Finding;
use windtunnel_model::gate::explain::{Change, changes, matching_rules};
use windtunnel_model::gate::pipeline::{Call, DecidedBy, Judgement, Outcome, Session, Step};
use windtunnel_model::gate::tools::McpTool;
use windtunnel_model::hooks::{HandlerEnd, HookDecision};

/// Arguments of `gate explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The tool
    #[arg(long, value_name = "NAME")]
    tool: String,
    /// Its input: JSON, or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    input: String,
    /// What a hook says: COMMAND=none|allow|ask|defer|deny, COMMAND=exit:N, or COMMAND={"exit":…,"stdout":…}; a prompt or
    /// agent handler by PROMPT={"answer":{"ok":…}}; `*` for all others
    #[arg(long, value_name = "NAME=OUTCOME")]
    hook_outcome: Vec<String>,
    /// Run hooks for real; what --hook-outcome says is then the model's answer to prompt and agent handlers
    #[arg(long)]
    run_hooks: bool,
    #[command(flatten)]
    profile: ProfileArg,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Report {
    decision: &'static str,
    profile: &'static str,
    executed: bool,
    mode: &'static str,
    decided_by: DecidedBy,
    steps: Vec<Step>,
    also_matched: Vec<DecidedBy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    turned_by: Vec<Change>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    if_hooks_say: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

/// Runs it.
///
/// # Errors
/// When the input is no JSON, or settings cannot be read.
pub fn run(args: &ExplainArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let input = read_input(&args.input, io)?;
    let profile = args.profile.profile;
    let (mut session, findings) = args.settings.session(profile.profile(), io)?;
    if args.tool.starts_with("mcp__") {
        // A server is not asked here: the tool is taken to be offered.
        session.policy.tools.mcp.entry(args.tool.clone()).or_insert_with(McpTool::default);
    }
    let call = Call { id: "call", tool: &args.tool, input: &input, background: false, agent: None };
    let before = session.clone();
    let mut said = SaidHooks::default();
    for outcome in &args.hook_outcome {
        add_outcome(outcome, &mut said)?;
    }
    let judgement = if args.run_hooks {
        let project = std::path::PathBuf::from(&session.workspace.project);
        let home = std::path::PathBuf::from(&session.workspace.home);
        let mut runner = HookRunner::new(project, home, 0)?;
        runner.allowed_urls.clone_from(&session.merged.allowed_http_urls);
        runner.env.clone_from(&session.merged.env);
        runner.model = said;
        session.judge(&call, &Disk, &mut runner)
    } else {
        session.judge(&call, &Disk, &mut said)
    };
    let report = report(&before, &call, judgement, profile.word(), findings);
    match args.format {
        Format::Json => write_json(io, "gate explain", &report)?,
        Format::Text => print_text(&report, &args.tool, io)?,
    }
    Ok(if report.decision == "unknown" { Exit::CannotJudge } else { Exit::Holds })
}

fn read_input(text: &str, io: &Io<'_>) -> Result<Value, CliError> {
    let Some(path) = text.strip_prefix('@') else {
        return serde_json::from_str(text).map_err(|error| {
            CliError::with_hint(
                format!("the input is not JSON: {error}"),
                "quote it for the shell: --input '{\"command\": \"ls\"}'",
            )
        });
    };
    let text = crate::files::read_text(&io.cwd.join(path))
        .map_err(|source| CliError::File { path: path.into(), source })?;
    serde_json::from_str(&text).map_err(|error| {
        CliError::input(format!("{path}:{}:{}: the input is not JSON: {error}", error.line(), error.column()))
    })
}

/// Reads one `NAME=OUTCOME`.
fn add_outcome(text: &str, said: &mut SaidHooks) -> Result<(), CliError> {
    let (name, outcome) =
        split_outcome(text).ok_or_else(|| CliError::input(format!("`{text}` is not NAME=OUTCOME")))?;
    let decided = |word: &str| {
        let stdout = format!(
            "{{\"hookSpecificOutput\":{{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"{word}\"}}}}"
        );
        Said { end: HandlerEnd::exited(0, stdout, ""), seconds: 0.0 }
    };
    let one = match outcome {
        "none" => Said { end: HandlerEnd::exited(0, "", ""), seconds: 0.0 },
        "allow" | "ask" | "defer" | "deny" => decided(outcome),
        json if json.starts_with('{') => {
            let value: Value = serde_json::from_str(json)?;
            Said::from_json(&value).map_err(CliError::input)?
        }
        other => match other.strip_prefix("exit:").and_then(|code| code.parse().ok()) {
            Some(code) => Said { end: HandlerEnd::exited(code, "", ""), seconds: 0.0 },
            None => return Err(CliError::input(format!("`{other}` is no hook outcome"))),
        },
    };
    if name == "*" {
        said.otherwise = Some(one);
    } else {
        said.by_label.insert(name.to_owned(), one);
    }
    Ok(())
}

/// Splits at the last `=` before an outcome: commands may hold `=` themselves.
fn split_outcome(text: &str) -> Option<(&str, &str)> {
    if let Some((name, json)) = text.split_once("={") {
        return Some((name, text.get(text.len() - json.len() - 1..)?));
    }
    text.rsplit_once('=')
}

fn report(
    session: &Session,
    call: &Call<'_>,
    judgement: Judgement,
    profile: &'static str,
    findings: Vec<Finding>,
) -> Report {
    let tool = if call.tool == "Task" { "Agent" } else { call.tool };
    let input = &judgement.input;
    let also_matched = matching_rules(session, &Disk, tool, input)
        .into_iter()
        .filter(|rule| !judgement.rules.contains(rule))
        .map(|rule| DecidedBy {
            kind: "rule",
            text: session.rule_text(rule),
            source: session.merged.rules.get(rule as usize).and_then(|rule| session.merged.place(rule)),
        })
        .collect();
    let mut if_hooks_say = BTreeMap::new();
    if judgement.outcome == Outcome::Unknown {
        for hook in HookDecision::ALL {
            let outcome = windtunnel_model::gate::explain::judge(session, &Disk, tool, input, hook);
            if_hooks_say.insert(hook.word(), outcome.decision());
        }
    }
    let judged = !matches!(judgement.outcome, Outcome::Unknown | Outcome::Error);
    let turned_by = if judged {
        changes(session, &Disk, tool, input, judgement.hook_decision, judgement.outcome)
    } else {
        Vec::new()
    };
    Report {
        decision: judgement.outcome.decision(),
        profile,
        executed: judgement.outcome == Outcome::Run,
        mode: session.workspace.mode.name(),
        decided_by: judgement.decided_by,
        steps: judgement.steps,
        also_matched,
        turned_by,
        if_hooks_say,
        findings,
    }
}

fn place(by: &DecidedBy) -> String {
    by.source.as_ref().map(|place| format!(" at {place}")).unwrap_or_default()
}

fn print_text(report: &Report, tool: &str, io: &mut Io<'_>) -> Result<(), CliError> {
    super::print_findings(&report.findings, io)?;
    writeln!(io.stdout, "{tool}: {} (mode {}, profile {})", report.decision, report.mode, report.profile)?;
    writeln!(
        io.stdout,
        "decided by {}: {}{}",
        report.decided_by.kind,
        report.decided_by.text,
        place(&report.decided_by)
    )?;
    writeln!(io.stdout, "\nsteps")?;
    for (i, step) in report.steps.iter().enumerate() {
        let at = step.source.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
        writeln!(io.stdout, "{:>3}. {:<18} {:<10} {}{at}", i + 1, step.stage, step.result, step.text)?;
    }
    if !report.also_matched.is_empty() {
        writeln!(io.stdout, "\nalso matched, and lost")?;
        for by in &report.also_matched {
            writeln!(io.stdout, "  {}{}", by.text, place(by))?;
        }
    }
    if !report.if_hooks_say.is_empty() {
        writeln!(io.stdout, "\nif the hooks say")?;
        for (word, decision) in &report.if_hooks_say {
            writeln!(io.stdout, "  {word:<6} {decision}")?;
        }
    }
    if !report.turned_by.is_empty() {
        writeln!(io.stdout, "\nwhat would turn it")?;
        for change in &report.turned_by {
            writeln!(io.stdout, "  {:<6} {}", change.decision, change.change)?;
        }
    }
    Ok(())
}
