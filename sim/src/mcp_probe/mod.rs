//! `mcp probe`: how a server behaves towards a harness, found by trying. Read-only: no tool is called unless asked.
//!
//! Each experiment states the clause that it tests and keeps the pair of messages that shows the outcome. A process is
//! started anew for everything that one experiment could spoil for another.

mod experiments;
pub mod session;

use crate::mcp_client::{Driver, Target};
use crate::transport::stdio::{SHUTDOWN_SPECIFICATION, ServerEnd};
use serde_json::{Value, json};
use session::{Evidence, Reply, Session, identity};
use std::time::Duration;
use windtunnel_model::finding::{Finding, Severity};
use windtunnel_model::mcp::catalogue::{ServerTools, lint};
use windtunnel_model::mcp::check::{Entry, check};
use windtunnel_model::mcp::negotiation::client::ListKind;
use windtunnel_model::mcp::negotiation::exchange::Wire;
use windtunnel_model::mcp::profile::ClientProfile;
use windtunnel_model::mcp::version::{Era, Version};

/// A finding of the probe, with the messages that show it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The finding.
    pub finding: Finding,
    /// The messages.
    pub evidence: Option<Evidence>,
}

/// What a tool costs.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ToolCost {
    /// Its name.
    pub name: String,
    /// Characters of `{name, description, input_schema}` as JSON.
    pub chars: usize,
    /// Tokens of the same, o200k.
    pub tokens: usize,
}

/// What the probe found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The era that a dual client ends up in.
    pub era: Option<Era>,
    /// The revision that it agrees on.
    pub version: Option<Version>,
    /// Every revision that works, by trying.
    pub versions: Vec<Version>,
    /// Messages on the wire until the lists are read.
    pub messages: usize,
    /// Requests until the version was agreed.
    pub requests: u32,
    /// The server could not even be started: nothing was judged.
    pub cannot_open: bool,
    /// Why no connection came about.
    pub failure: Option<String>,
    /// `serverInfo`.
    pub server: Option<Value>,
    /// Capabilities.
    pub capabilities: Option<Value>,
    /// Tools and their cost.
    pub tools: Vec<ToolCost>,
    /// How many prompts and resources.
    pub prompts: usize,
    /// How many resources.
    pub resources: usize,
    /// Experiments that were run: name and outcome.
    pub experiments: Vec<(&'static str, String)>,
    /// Findings.
    pub findings: Vec<Shown>,
    /// Seconds from the end of its input to the end of the process.
    pub shutdown_seconds: Option<f64>,
    /// Processes that outlived the server.
    pub leftover_processes: usize,
    /// The beginning of what it wrote to stderr.
    pub stderr: String,
}

/// What the probe may do and how long.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long one answer is awaited.
    pub answer: Duration,
    /// How long the opening may take.
    pub connect: Duration,
    /// A tool to call, with its arguments.
    pub call: Option<(String, Value)>,
}

impl Report {
    pub(crate) fn find(
        &mut self,
        id: &str,
        severity: Severity,
        clause: &str,
        message: impl Into<String>,
        why: &str,
        evidence: Option<Evidence>,
    ) {
        let finding = Finding::new(id, severity, message, why).with_party("server").with_clause(clause);
        self.findings.push(Shown { finding, evidence });
    }

    pub(crate) fn ended(&mut self, end: Option<&ServerEnd>) {
        if let Some(end) = end {
            self.leftover_processes += end.leftovers;
        }
    }

    pub(crate) fn tried(&mut self, name: &'static str, outcome: impl Into<String>) {
        self.experiments.push((name, outcome.into()));
    }
}

/// Probes a server.
pub async fn probe(target: &Target, limits: &Limits) -> Report {
    let mut report = Report::default();
    main_session(target, limits, &mut report).await;
    versions(target, limits, &mut report).await;
    if let Some(version) = report.version {
        experiments::run(target, limits, version, &mut report).await;
    }
    report
}

/// A dual client opens the server and reads its lists; the whole exchange is judged.
async fn main_session(target: &Target, limits: &Limits, report: &mut Report) {
    let connect_ms = u64::try_from(limits.connect.as_millis()).unwrap_or(u64::MAX);
    let profile = ClientProfile {
        probe_timeout_ms: (connect_ms / 3).min(10_000),
        reprobe_timeout_ms: Some((connect_ms / 3).min(5_000)),
        listen_timeout_ms: Some(2_000),
        connect_timeout_ms: connect_ms,
        ..ClientProfile::specification()
    };
    let mut driver = Driver::new(profile, identity(), target.clone(), &SHUTDOWN_SPECIFICATION);
    let ready = driver.connect(limits.connect + Duration::from_secs(5)).await;
    report.messages =
        driver.wire.iter().filter(|w| matches!(w, Wire::FromClient { .. } | Wire::FromServer { .. })).count();
    if ready && let Some((tool, arguments)) = &limits.call {
        let spec = windtunnel_model::mcp::negotiation::client::CallSpec {
            call: 0,
            tool: tool.clone(),
            arguments: arguments.clone(),
            meta: serde_json::Map::new(),
            timeout_ms: None,
        };
        driver.input(windtunnel_model::mcp::negotiation::client::Input::Call(spec)).await;
        driver.until(limits.answer, |driver| !driver.ends.is_empty()).await;
        let outcome = driver.ends.first().map_or("no answer".to_owned(), |(_, end)| format!("{end:?}"));
        report.tried("call", crate::transport::shown(&outcome));
    }
    let end = driver.finish().await;
    report.ended(end.as_ref());
    report.shutdown_seconds = end.as_ref().map(|end| end.took.as_secs_f64());
    report.stderr = crate::transport::shown(&driver.stderr);
    if let Some(negotiated) = driver.negotiated {
        report.era = Some(negotiated.era);
        report.version = Some(negotiated.version);
        report.requests = negotiated.requests;
    }
    report.cannot_open =
        matches!(driver.failure, Some(windtunnel_model::mcp::negotiation::client::Failure::CannotOpen(_)));
    report.failure = match (&driver.failure, ready) {
        (Some(failure), _) => Some(failure.to_string()),
        (None, false) => Some("not connected in time".to_owned()),
        (None, true) => None,
    };
    if let Some(reason) = report.failure.clone() {
        let why = "a harness would show this server as failed";
        report.find(
            "not-connected",
            Severity::Error,
            "lifecycle",
            format!("no connection: {reason}"),
            why,
            None,
        );
    }
    let client = driver.client();
    report.server = client.server_info().cloned();
    report.capabilities = client.capabilities().cloned();
    report.prompts = client.list(ListKind::Prompts).len();
    report.resources = client.list(ListKind::Resources).len();
    let tools = client.list(ListKind::Tools).to_vec();
    report.tools = tools.iter().map(cost).collect();
    let catalogue = ServerTools { server: None, pointer: "/tools".to_owned(), tools: &tools };
    for (pointer, finding) in lint(&[catalogue]) {
        let evidence = tools_evidence(&pointer);
        report.findings.push(Shown { finding, evidence: Some(evidence) });
    }
    judge(&driver.wire, report);
    shutdown(end.as_ref(), report);
}

fn tools_evidence(pointer: &str) -> Evidence {
    Evidence { sent: "tools/list".to_owned(), received: format!("result, at {pointer}") }
}

/// The exchange check's findings about the server, each with the line that it is about.
fn judge(wire: &[Wire], report: &mut Report) {
    // An attempt in a process of its own (a respawn) is an exchange of its own.
    for attempt in wire.split(|wire| *wire == Wire::Opened) {
        let mut entries = Vec::new();
        for wire in attempt {
            match wire {
                Wire::FromClient { line } => entries.push(Entry::ClientRaw(line.clone())),
                Wire::FromServer { line } => entries.push(Entry::ServerRaw(line.clone())),
                Wire::Exited { .. } | Wire::Opened | Wire::ClosedByClient => {}
            }
        }
        for located in check(&entries).findings {
            if located.finding.party.as_deref() != Some("server") {
                continue;
            }
            let text = |entry: Option<&Entry>| match entry {
                Some(Entry::ClientRaw(line) | Entry::ServerRaw(line)) => crate::transport::shown(line),
                _ => String::new(),
            };
            let before = entries.iter().take(located.entry).rev().find(|e| matches!(e, Entry::ClientRaw(_)));
            let evidence = Evidence { sent: text(before), received: text(entries.get(located.entry)) };
            report.findings.push(Shown { finding: located.finding, evidence: Some(evidence) });
        }
    }
}

fn shutdown(end: Option<&ServerEnd>, report: &mut Report) {
    const CLAUSE: &str = "transports, stdio, shutdown: close the input, wait, SIGTERM, SIGKILL";
    let Some(end) = end else { return };
    let received = match (end.code, end.signal) {
        (Some(code), _) => format!("exit {code} after {:.2} s", end.took.as_secs_f64()),
        (None, Some(signal)) => format!("ended by signal {signal} after {:.2} s", end.took.as_secs_f64()),
        (None, None) => "no end".to_owned(),
    };
    report.tried("end of input", received.clone());
    let evidence = Some(Evidence { sent: "(end of input)".to_owned(), received });
    match end.step {
        Some(0) | None => {}
        Some(1) => report.find(
            "ignores-end-of-input",
            Severity::Warning,
            CLAUSE,
            "does not exit when its input ends; SIGTERM was needed",
            "servers SHOULD exit on the end of their input; a harness that only closes it leaves them behind",
            evidence.clone(),
        ),
        Some(_) => report.find(
            "ignores-sigterm",
            Severity::Error,
            CLAUSE,
            "exits neither at the end of its input nor on SIGTERM; SIGKILL was needed",
            "it loses whatever it has not written",
            evidence.clone(),
        ),
    }
    if end.step == Some(0) && end.code.is_some_and(|code| code != 0) {
        report.find(
            "exit-code",
            Severity::Warning,
            CLAUSE,
            format!("exits with {} at the end of its input", end.code.unwrap_or_default()),
            "an orderly end is exit 0",
            evidence.clone(),
        );
    }
    if end.leftovers > 0 {
        report.find(
            "leftover-processes",
            Severity::Error,
            CLAUSE,
            "processes of its group outlived it and were killed",
            "each session would leave them behind",
            evidence,
        );
    }
}

/// Which revisions work: each legacy one offered to a process of its own, the modern one by a discover request.
async fn versions(target: &Target, limits: &Limits, report: &mut Report) {
    let mut found = Vec::new();
    let modern = try_modern(target, limits);
    let legacy = async {
        let mut answers = Vec::new();
        // Two at a time: a probe must not bring a small machine to its knees.
        for pair in Version::LEGACY.chunks(2) {
            let (one, other) = match pair {
                [one, other] => {
                    tokio::join!(try_legacy(target, limits, *one), try_legacy(target, limits, *other))
                }
                [one] => (try_legacy(target, limits, *one).await, None),
                _ => (None, None),
            };
            answers.extend([one, other].into_iter().flatten());
        }
        answers
    };
    let (modern, legacy) = tokio::join!(modern, legacy);
    for attempt in legacy.into_iter().chain(modern) {
        report.ended(attempt.end.as_ref());
        if attempt.works {
            found.push(attempt.version);
        }
        report.experiments.push((attempt.name, attempt.outcome));
        report.findings.extend(attempt.findings);
    }
    found.sort_unstable();
    report.versions = found;
}

struct Attempt {
    version: Version,
    works: bool,
    name: &'static str,
    outcome: String,
    end: Option<ServerEnd>,
    findings: Vec<Shown>,
}

async fn try_legacy(target: &Target, limits: &Limits, version: Version) -> Option<Attempt> {
    let mut session = Session::open(target, limits.connect).ok()?;
    let reply = session.begin(version).await;
    let answered = match &reply {
        Reply::Result(result) => result.get("protocolVersion").and_then(Version::from_value),
        _ => None,
    };
    let outcome = match (&reply, answered) {
        (Reply::Result(_), Some(answer)) => format!("{version} answered with {answer}"),
        (Reply::Result(_), None) => format!("{version} answered without a revision"),
        (Reply::Error(code, _), _) => format!("{version} refused with {code}"),
        (Reply::OtherId(_), _) => format!("{version} answered with another id"),
        (Reply::Silence, _) => format!("{version}: no answer"),
        (Reply::Closed, _) => format!("{version}: the connection ended"),
    };
    let end = session.end().await;
    Some(Attempt {
        version,
        works: answered == Some(version),
        name: "initialize",
        outcome,
        end,
        findings: Vec::new(),
    })
}

async fn try_modern(target: &Target, limits: &Limits) -> Option<Attempt> {
    const CLAUSE: &str =
        "2026-07-28, versioning: unsupported revisions are refused with -32022 and data.supported";
    let version = Version::V2026_07_28;
    let mut session = Session::open(target, limits.connect).ok()?;
    session.speak(version);
    let reply = session.ask("server/discover", None).await;
    let works = matches!(&reply, Reply::Result(result) if result.get("supportedVersions").is_some());
    let outcome = match &reply {
        Reply::Result(result) => {
            format!("supportedVersions {}", result.get("supportedVersions").unwrap_or(&Value::Null))
        }
        Reply::Error(code, _) => format!("refused with {code}"),
        Reply::OtherId(_) => "answered with another id".to_owned(),
        Reply::Silence => "no answer".to_owned(),
        Reply::Closed => "the connection ended".to_owned(),
    };
    let mut findings = Vec::new();
    if !works && matches!(reply, Reply::Closed) {
        let message = "the process ends on an unknown first request";
        let why = "a dual client has to start it a second time";
        let finding = Finding::new("exits-on-unknown-request", Severity::Error, message, why)
            .with_party("server")
            .with_clause("base protocol, errors: unknown methods are refused with -32601");
        findings.push(Shown { finding, evidence: Some(session.last.clone()) });
    }
    if works {
        session.speak(Version::new(2099, 1, 1));
        let future = session.ask("tools/list", None).await;
        if !matches!(future, Reply::Error(-32022, _)) {
            let what = match future {
                Reply::Error(code, _) => format!("refused with {code}"),
                Reply::Result(_) => "served".to_owned(),
                _ => "not answered".to_owned(),
            };
            let message = format!("a request at revision 2099-01-01 is {what}, not refused with -32022");
            let why = "a client cannot find a common revision (proposition 3.4.4)";
            let finding = Finding::new("unsupported-version-not-refused", Severity::Error, message, why)
                .with_party("server")
                .with_clause(CLAUSE);
            findings.push(Shown { finding, evidence: Some(session.last.clone()) });
        }
    }
    let end = session.end().await;
    Some(Attempt { version, works, name: "server/discover", outcome, end, findings })
}

/// Characters and tokens of a tool as a Messages API caller sends it.
fn cost(tool: &Value) -> ToolCost {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let sent = json!({
        "name": name,
        "description": tool.get("description").and_then(Value::as_str).unwrap_or_default(),
        "input_schema": tool.get("inputSchema").cloned().unwrap_or(Value::Null),
    })
    .to_string();
    ToolCost { name, chars: sent.encode_utf16().count(), tokens: tokens(&sent) }
}

/// Tokens by the o200k encoding; a report's counter, never a basis for decisions.
fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}
