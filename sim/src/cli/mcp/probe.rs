//! `windtunnel mcp probe`: how a server behaves towards a harness.

use super::input::{self, FailOn};
use crate::cli::{CliError, Exit, Io, write_json};
use crate::mcp_client::Target;
use crate::mcp_probe::{Limits, Report, probe};
use crate::process::child::CommandLine;
use crate::process::environment::PassEnv;
use crate::transport::stdio::StdioSpec;
use serde_json::{Value, json};
use std::time::Duration;
use windtunnel_model::finding::Finding;

/// Arguments of `mcp probe`.
#[derive(Debug, clap::Args)]
pub struct ProbeArgs {
    /// The server's program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    command: Vec<String>,
    /// An endpoint of Streamable HTTP instead of a program.
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// A tool to call once (nothing is called without this).
    #[arg(long, value_name = "TOOL")]
    call: Option<String>,
    /// The arguments of that call, a JSON object.
    #[arg(long, value_name = "JSON", requires = "call", default_value = "{}")]
    arguments: String,
    /// Variables of our environment that the server gets, or `all`.
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    /// Variables of its own, `NAME=VALUE`.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Seconds that the opening may take.
    #[arg(long, default_value = "30")]
    connect_timeout: u64,
    /// Exit with 1 when a finding is at least this severe.
    #[arg(long, value_enum, default_value = "error")]
    fail_on: FailOn,
    /// The output format.
    #[arg(long, value_enum, default_value = "text")]
    format: ProbeFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ProbeFormat {
    Text,
    Json,
    Html,
}

/// Probes the server and reports.
///
/// # Errors
/// When an argument is wrong.
pub fn run(args: &ProbeArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let arguments: Value = serde_json::from_str(&args.arguments)
        .map_err(|error| CliError::input(format!("--arguments: {error}")))?;
    let target = match (&args.url, args.command.split_first()) {
        (Some(url), _) => Target::Http(url.clone()),
        (None, Some((program, rest))) => {
            let line = CommandLine::Exec { program: program.clone(), args: rest.to_vec() };
            let mut spec = StdioSpec::new(line, io.cwd.clone());
            spec.pass_env = PassEnv::from_flags(&args.pass_env);
            for variable in &args.env {
                let (name, value) = variable
                    .split_once('=')
                    .ok_or_else(|| CliError::input(format!("--env: `{variable}` is not NAME=VALUE")))?;
                spec.env.push((name.to_owned(), value.to_owned()));
            }
            Target::Stdio(spec)
        }
        (None, None) => return Err(CliError::input("nothing to probe: give --url or a command after `--`")),
    };
    let limits = Limits {
        answer: Duration::from_secs(30),
        connect: Duration::from_secs(args.connect_timeout.max(1)),
        call: args.call.clone().map(|tool| (tool, arguments)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(probe(&target, &limits));
    let findings: Vec<Finding> = report.findings.iter().map(|shown| shown.finding.clone()).collect();
    match args.format {
        ProbeFormat::Json => write_json(io, "mcp probe", &document(&report)?)?,
        ProbeFormat::Text => text(io, &report)?,
        ProbeFormat::Html => html(io, &report)?,
    }
    if report.cannot_open {
        return Ok(Exit::CannotJudge);
    }
    Ok(input::exit(&findings, args.fail_on.into()))
}

fn document(report: &Report) -> Result<Value, CliError> {
    let mut findings = Vec::new();
    for shown in &report.findings {
        let mut finding = serde_json::to_value(&shown.finding)?;
        if let (Value::Object(members), Some(evidence)) = (&mut finding, &shown.evidence) {
            members.insert("evidence".to_owned(), serde_json::to_value(evidence)?);
        }
        findings.push(finding);
    }
    let experiments: Vec<Value> =
        report.experiments.iter().map(|(name, outcome)| json!({"name": name, "outcome": outcome})).collect();
    Ok(json!({
        "era": report.era.map(|era| era.word()),
        "version": report.version,
        "versions": report.versions,
        "messages": report.messages,
        "requests_to_agree": report.requests,
        "failure": report.failure,
        "server": report.server,
        "capabilities": report.capabilities,
        "tools": report.tools,
        "prompts": report.prompts,
        "resources": report.resources,
        "experiments": experiments,
        "findings": findings,
        "shutdown_seconds": report.shutdown_seconds,
        "leftover_processes": report.leftover_processes,
        "stderr": report.stderr,
    }))
}

fn summary(report: &Report) -> Vec<(&'static str, String)> {
    let era = report.era.map_or("none", |era| era.word());
    let version = report.version.map_or("none".to_owned(), |version| version.to_string());
    let versions: Vec<String> = report.versions.iter().map(ToString::to_string).collect();
    let tokens: usize = report.tools.iter().map(|tool| tool.tokens).sum();
    let mut rows = vec![
        ("server", report.server.as_ref().map_or("unnamed".to_owned(), ToString::to_string)),
        ("era", era.to_owned()),
        ("version", version),
        ("versions that work", versions.join(", ")),
        ("messages until ready", report.messages.to_string()),
        ("capabilities", report.capabilities.as_ref().map_or("none".to_owned(), ToString::to_string)),
        ("tools", format!("{} ({tokens} tokens o200k)", report.tools.len())),
        ("prompts, resources", format!("{}, {}", report.prompts, report.resources)),
        ("leftover processes", report.leftover_processes.to_string()),
    ];
    if let Some(seconds) = report.shutdown_seconds {
        rows.push(("seconds to shut down", format!("{seconds:.2}")));
    }
    if let Some(failure) = &report.failure {
        rows.push(("failure", failure.clone()));
        rows.push(("stderr", report.stderr.clone()));
    }
    rows
}

fn text(io: &mut Io<'_>, report: &Report) -> Result<(), CliError> {
    for (name, value) in summary(report) {
        writeln!(io.stdout, "{name:<22}{value}")?;
    }
    writeln!(io.stdout, "\ntools")?;
    for tool in &report.tools {
        writeln!(io.stdout, "  {:<40} {:>6} chars {:>6} tokens", tool.name, tool.chars, tool.tokens)?;
    }
    writeln!(io.stdout, "\nexperiments")?;
    for (name, outcome) in &report.experiments {
        writeln!(io.stdout, "  {name:<36} {outcome}")?;
    }
    writeln!(io.stdout, "\nfindings")?;
    for shown in &report.findings {
        let finding = &shown.finding;
        writeln!(io.stdout, "{} {}: {}", finding.severity.word(), finding.id, finding.message)?;
        writeln!(io.stdout, "    why: {}", finding.why)?;
        if let Some(clause) = &finding.clause {
            writeln!(io.stdout, "    clause: {clause}")?;
        }
        if let Some(evidence) = &shown.evidence {
            writeln!(io.stdout, "    sent: {}\n    received: {}", evidence.sent, evidence.received)?;
        }
    }
    Ok(())
}

fn html(io: &mut Io<'_>, report: &Report) -> Result<(), CliError> {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    writeln!(
        io.stdout,
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>MCP probe</title>\n\
         <style>body{{font:15px sans-serif;max-width:60em;margin:2em auto}}td,th{{text-align:left;padding:.2em .8em;\
         vertical-align:top}}code{{word-break:break-all}}.error{{color:#a00}}.warning{{color:#850}}</style>\n\
         <h1>MCP probe</h1>\n<table>"
    )?;
    for (name, value) in summary(report) {
        writeln!(io.stdout, "<tr><th>{name}<td>{}", escape(&value))?;
    }
    writeln!(io.stdout, "</table>\n<h2>Findings</h2>\n<table>")?;
    for shown in &report.findings {
        let finding = &shown.finding;
        let word = finding.severity.word();
        write!(
            io.stdout,
            "<tr><td class=\"{word}\">{word}<td><b>{}</b><br>{}<br><i>{}</i>",
            escape(&finding.id),
            escape(&finding.message),
            escape(finding.clause.as_deref().unwrap_or_default())
        )?;
        if let Some(evidence) = &shown.evidence {
            write!(
                io.stdout,
                "<br>sent <code>{}</code><br>received <code>{}</code>",
                escape(&evidence.sent),
                escape(&evidence.received)
            )?;
        }
        writeln!(io.stdout)?;
    }
    writeln!(io.stdout, "</table>\n<h2>Tools</h2>\n<table><tr><th>name<th>chars<th>tokens")?;
    for tool in &report.tools {
        writeln!(io.stdout, "<tr><td>{}<td>{}<td>{}", escape(&tool.name), tool.chars, tool.tokens)?;
    }
    writeln!(io.stdout, "</table>\n<h2>Experiments</h2>\n<table>")?;
    for (name, outcome) in &report.experiments {
        writeln!(io.stdout, "<tr><td>{}<td>{}", escape(name), escape(outcome))?;
    }
    writeln!(io.stdout, "</table></html>")?;
    Ok(())
}
