//! The experiments on an open session (mcp.md 1.3, 1.8, 1.10, 4.2). None calls a tool: a call of a tool that does not
//! exist is a request, not a call.

use super::session::{Reply, Session};
use super::{Limits, Report};
use crate::mcp_client::Target;
use crate::transport::Delivery;
use serde_json::{Value, json};
use std::time::Duration;
use windtunnel_model::finding::Severity;
use windtunnel_model::mcp::jsonrpc::{RequestId, code};
use windtunnel_model::mcp::version::{Era, Version};

/// How long is listened for something that must not come.
const QUIET: Duration = Duration::from_millis(300);

/// How long an answer is awaited once the server is up.
const ANSWER: Duration = Duration::from_secs(5);

/// Requests sent at once.
const CONCURRENT: usize = 20;

/// How often a list is read to compare its order.
const REPEATS: usize = 3;

/// The length of the long line, in bytes.
const LONG_LINE: usize = 4 * 1024 * 1024;

/// Runs all experiments that the transport allows.
pub(super) async fn run(target: &Target, limits: &Limits, version: Version, report: &mut Report) {
    if let Some(mut session) = begin(target, limits, version).await {
        unknown_method(&mut session, report).await;
        unknown_tool(&mut session, report).await;
        bad_cursor(&mut session, report).await;
        string_id(&mut session, report).await;
        notification(&mut session, report).await;
        cancelled(&mut session, report).await;
        concurrent(&mut session, report).await;
        order(&mut session, report).await;
        metadata(&mut session, version, report).await;
        if matches!(target, Target::Stdio(_)) {
            bad_lines(&mut session, report).await;
            long_line(&mut session, report).await;
        }
        pollution(&session, report);
        report.ended(session.end().await.as_ref());
    }
    if let Target::Stdio(_) = target {
        before_handshake(target, limits, report).await;
        early_end(target, limits, report).await;
    }
}

async fn begin(target: &Target, limits: &Limits, version: Version) -> Option<Session> {
    let mut session = Session::open(target, limits.connect).ok()?;
    let reply = session.begin(version).await;
    session.limit(ANSWER.min(limits.answer));
    matches!(reply, Reply::Result(_)).then_some(session)
}

fn outcome(reply: &Reply) -> String {
    match reply {
        Reply::Result(_) => "a result".to_owned(),
        Reply::Error(code, _) => format!("error {code}"),
        Reply::OtherId(_) => "an answer with another id".to_owned(),
        Reply::Silence => "silence".to_owned(),
        Reply::Closed => "the end of the connection".to_owned(),
    }
}

async fn unknown_method(session: &mut Session, report: &mut Report) {
    let reply = session.ask("windtunnel/no-such-method", None).await;
    report.tried("unknown method", outcome(&reply));
    if !matches!(reply, Reply::Error(code::METHOD_NOT_FOUND, _)) {
        let severity = if matches!(reply, Reply::Error(..)) { Severity::Warning } else { Severity::Error };
        report.find(
            "unknown-method",
            severity,
            "base protocol, errors: unknown methods are refused with -32601",
            format!("an unknown method gives {}, not error -32601", outcome(&reply)),
            "clients tell a missing feature by this code",
            Some(session.last.clone()),
        );
    }
}

async fn unknown_tool(session: &mut Session, report: &mut Report) {
    if report.tools.is_empty() {
        return;
    }
    let reply =
        session.ask("tools/call", Some(json!({"name": "windtunnel_no_such_tool", "arguments": {}}))).await;
    let is_error =
        matches!(&reply, Reply::Result(result) if result.get("isError") == Some(&Value::Bool(true)));
    let shown = if is_error { "a result with isError".to_owned() } else { outcome(&reply) };
    report.tried("unknown tool", shown.clone());
    const CLAUSE: &str =
        "server features, tools, errors: unknown tools are refused with -32602 (proposition 3.7.1)";
    match reply {
        Reply::Error(code::INVALID_PARAMS, _) => {}
        Reply::Error(..) => report.find(
            "unknown-tool",
            Severity::Warning,
            CLAUSE,
            format!("an unknown tool gives {shown}, not error -32602"),
            "a client cannot tell a wrong name from a fault of the server",
            Some(session.last.clone()),
        ),
        _ if is_error => report.find(
            "unknown-tool-as-result",
            Severity::Warning,
            CLAUSE,
            "an unknown tool is answered as a result with isError instead of error -32602",
            "failures while running are results; a wrong name is a wrong request",
            Some(session.last.clone()),
        ),
        _ => report.find(
            "unknown-tool",
            Severity::Error,
            CLAUSE,
            format!("an unknown tool gives {shown}"),
            "the call ends without an error",
            Some(session.last.clone()),
        ),
    }
}

async fn bad_cursor(session: &mut Session, report: &mut Report) {
    if report.tools.is_empty() {
        return;
    }
    let reply = session.ask("tools/list", Some(json!({"cursor": "windtunnel-no-such-cursor"}))).await;
    report.tried("invalid cursor", outcome(&reply));
    match reply {
        Reply::Error(code::INVALID_PARAMS, _) => {}
        Reply::Result(_) => report.find(
            "cursor-ignored",
            Severity::Note,
            "utilities, pagination: invalid cursors are refused with -32602",
            "an invalid cursor is answered with a list",
            "a client that resumes with a stale cursor gets the first page again",
            Some(session.last.clone()),
        ),
        other => report.find(
            "cursor-invalid",
            Severity::Warning,
            "utilities, pagination: invalid cursors are refused with -32602",
            format!("an invalid cursor gives {}, not error -32602", outcome(&other)),
            "clients drop their pages on that code",
            Some(session.last.clone()),
        ),
    }
}

async fn string_id(session: &mut Session, report: &mut Report) {
    for id in
        [RequestId::from("7"), RequestId::from("windtunnel-\u{e9}"), RequestId::from(i64::from(i32::MAX) + 7)]
    {
        let reply = session.ask_as(id.clone(), "tools/list", None).await;
        report.tried("id echoed", format!("{id}: {}", outcome(&reply)));
        match reply {
            Reply::OtherId(_) => report.find(
                "id-type-changed",
                Severity::Error,
                "base protocol, responses: the id is that of the request, type included (proposition 3.3)",
                format!("the answer to id {id} has the id in another type"),
                "a strict client leaves the request open",
                Some(session.last.clone()),
            ),
            Reply::Silence | Reply::Closed => report.find(
                "id-not-answered",
                Severity::Error,
                "base protocol, requests: ids are strings or integers",
                format!("a request with id {id} gives {}", outcome(&reply)),
                "the request stays open",
                Some(session.last.clone()),
            ),
            Reply::Result(_) | Reply::Error(..) => {}
        }
    }
}

async fn notification(session: &mut Session, report: &mut Report) {
    session.others.clear();
    session.notify("notifications/windtunnel-unknown", None);
    session.listen(QUIET).await;
    let answers = session
        .others
        .iter()
        .any(|delivery| matches!(delivery, Delivery::Message(message) if message.method().is_none()));
    report.tried("unknown notification", if answers { "answered" } else { "no answer" });
    if answers {
        report.find(
            "reply-to-notification",
            Severity::Error,
            "base protocol, notifications: the receiver MUST NOT answer",
            "an unknown notification is answered",
            "no answer can belong to it (proposition 3.3.3)",
            Some(session.last.clone()),
        );
    }
}

async fn cancelled(session: &mut Session, report: &mut Report) {
    session.others.clear();
    session.notify("notifications/cancelled", Some(json!({"requestId": 987_654, "reason": "test"})));
    let evidence = session.last.clone();
    let reply = session.ask("tools/list", None).await;
    report.tried("cancellation of an unknown request", outcome(&reply));
    if matches!(reply, Reply::Silence | Reply::Closed) {
        report.find(
            "cancel-kills",
            Severity::Error,
            "utilities, cancellation: unknown ids are ignored",
            format!("after the cancellation of an unknown request the next one gives {}", outcome(&reply)),
            "cancellations and answers cross in every session",
            Some(evidence),
        );
    }
}

async fn concurrent(session: &mut Session, report: &mut Report) {
    session.others.clear();
    let ids: Vec<RequestId> = (0..CONCURRENT).map(|_| session.fresh()).collect();
    for id in &ids {
        session.send_request(id, "tools/list", None);
    }
    let mut missing = Vec::new();
    for id in &ids {
        let of = |delivery: &Delivery| matches!(delivery, Delivery::Message(message) if message.method().is_none() && message.id() == Some(id));
        // An answer may have come while another one was awaited.
        if session.others.iter().any(of) {
            continue;
        }
        let limit = if missing.is_empty() { Duration::from_secs(10) } else { QUIET };
        if !matches!(session.await_reply(id, limit).await, Reply::Result(_) | Reply::Error(..)) {
            missing.push(id.to_string());
        }
    }
    report.tried("concurrent requests", format!("{} of {CONCURRENT} answered", CONCURRENT - missing.len()));
    if !missing.is_empty() {
        report.find(
            "concurrent-unanswered",
            Severity::Error,
            "base protocol, responses: every request is answered (proposition 3.3)",
            format!("{} of {CONCURRENT} concurrent requests are not answered", missing.len()),
            "parallel calls hang",
            Some(session.last.clone()),
        );
    }
}

async fn order(session: &mut Session, report: &mut Report) {
    if report.tools.is_empty() {
        return;
    }
    let mut lists = Vec::new();
    for _ in 0..REPEATS {
        if let Reply::Result(result) = session.ask("tools/list", None).await {
            lists.push(result.get("tools").map(Value::to_string).unwrap_or_default());
        }
    }
    let same = lists.windows(2).all(|pair| pair[0] == pair[1]);
    report.tried("repeated lists", if same { "same bytes" } else { "different" });
    if !same {
        report.find(
            "list-not-deterministic",
            Severity::Warning,
            "2026-07-28, tools: the order SHOULD be deterministic (B6)",
            "repeated tools/list give different bytes",
            "tool definitions stand at the front of the prompt: every change misses the prompt cache",
            Some(session.last.clone()),
        );
    }
}

/// A modern request without its metadata must be refused.
async fn metadata(session: &mut Session, version: Version, report: &mut Report) {
    if version.era() != Era::Modern {
        return;
    }
    let id = session.fresh();
    if !session.raw(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}}).to_string()) {
        return;
    }
    let reply = session.await_reply(&id, Duration::from_secs(5)).await;
    report.tried("modern request without metadata", outcome(&reply));
    if !matches!(reply, Reply::Error(code::INVALID_PARAMS, _)) {
        report.find(
            "metadata-not-required",
            Severity::Warning,
            "2026-07-28, base protocol, request metadata: a request without it is refused with -32602",
            format!("a modern request without `_meta` gives {}", outcome(&reply)),
            "versions and capabilities may not be inferred from earlier requests",
            Some(session.last.clone()),
        );
    }
}

async fn alive(session: &mut Session) -> Reply {
    session.ask("tools/list", None).await
}

async fn bad_lines(session: &mut Session, report: &mut Report) {
    let lines = [
        ("line that is not JSON", "this is not JSON".to_owned()),
        ("request with id null", json!({"jsonrpc": "2.0", "id": null, "method": "tools/list"}).to_string()),
        ("request with id 1.5", json!({"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"}).to_string()),
        ("batch", json!([{"jsonrpc": "2.0", "id": 900, "method": "tools/list"}]).to_string()),
        ("blank line", String::new()),
    ];
    for (name, line) in lines {
        session.others.clear();
        session.raw(&line);
        let sent = session.last.sent.clone();
        session.listen(QUIET).await;
        let first = session.others.first().map(|delivery| match delivery {
            Delivery::Message(message) => crate::transport::shown(&message.to_line()),
            Delivery::Malformed { line, .. } => line.clone(),
            other => format!("{other:?}"),
        });
        let reply = alive(session).await;
        let survived = !matches!(reply, Reply::Silence | Reply::Closed);
        let answer = first.unwrap_or_else(|| "no answer".to_owned());
        report.tried(name, format!("{answer}; {}", if survived { "lives" } else { "dead" }));
        if !survived {
            let evidence = super::Evidence { sent, received: outcome(&reply) };
            report.find(
                "dies-on-bad-line",
                Severity::Error,
                "base protocol, errors: bad input is refused or passed over",
                format!("after a {name} the next request gives {}", outcome(&reply)),
                "one bad line ends the session",
                Some(evidence),
            );
            return;
        }
    }
}

async fn long_line(session: &mut Session, report: &mut Report) {
    let id = session.fresh();
    session.send_request(&id, "windtunnel/no-such-method", Some(json!({"padding": "x".repeat(LONG_LINE)})));
    let reply = session.await_reply(&id, Duration::from_secs(15)).await;
    report.tried("line of 4 MiB", outcome(&reply));
    if matches!(reply, Reply::Silence | Reply::Closed) {
        let severity = if reply == Reply::Closed { Severity::Error } else { Severity::Warning };
        report.find(
            "long-line",
            severity,
            "transports, stdio: the length of a line is not limited",
            format!("a request of 4 MiB gives {}", outcome(&reply)),
            "large arguments (file contents) get no answer",
            Some(session.last.clone()),
        );
    }
}

/// Lines that are no messages, seen in any experiment of the session.
fn pollution(session: &Session, report: &mut Report) {
    if session.polluted.is_some() {
        report.find(
            "stdout-pollution",
            Severity::Error,
            "transports, stdio: nothing but messages on stdout",
            "a line on stdout is no message",
            "a strict client ends the connection",
            session.polluted.clone(),
        );
    }
}

/// A legacy request before the handshake.
async fn before_handshake(target: &Target, limits: &Limits, report: &mut Report) {
    let Ok(mut session) = Session::open(target, limits.connect) else { return };
    let reply = session.ask("tools/list", None).await;
    report.tried("request before the handshake", outcome(&reply));
    if matches!(reply, Reply::Result(_)) {
        report.find(
            "answers-before-handshake",
            Severity::Note,
            "2025-11-25 and older, lifecycle: initialize is the first exchange",
            "tools/list is answered before any handshake",
            "version and capabilities are not agreed",
            Some(session.last.clone()),
        );
    }
    report.ended(session.end().await.as_ref());
}

/// The input ends in the middle of a line.
async fn early_end(target: &Target, limits: &Limits, report: &mut Report) {
    let Ok(session) = Session::open(target, limits.connect) else { return };
    let end = session.end().await;
    let shown = end.as_ref().map_or("no process".to_owned(), |end| match (end.code, end.signal) {
        (Some(code), _) => format!("exit {code} after {:.2} s", end.took.as_secs_f64()),
        (_, Some(signal)) => format!("ended by signal {signal} after {:.2} s", end.took.as_secs_f64()),
        _ => "no end".to_owned(),
    });
    report.tried("end of input at the start", shown);
    report.ended(end.as_ref());
}
