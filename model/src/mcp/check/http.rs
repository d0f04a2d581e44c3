//! HTTP exchanges in prose: `["c", "POST tools/call, session A"]`, `["s", "404"]` (field-reports.md, form `http`).

use super::{Located, Party};
use crate::finding::{Finding, Severity};

struct Post<'a> {
    method: &'a str,
    session: Option<&'a str>,
}

fn read(text: &str) -> Option<Post<'_>> {
    let mut parts = text.split(',').map(str::trim);
    let method = parts.next()?.strip_prefix("POST ")?.trim();
    Some(Post { method, session: parts.find_map(|part| part.strip_prefix("session ")).map(str::trim) })
}

/// Judges what a client does after its session is lost: 404 with a session id means a new `initialize` without it, and
/// the call repeated at most once (mcp.md 1.12, 3.6).
pub fn check_http(entries: &[(bool, String)]) -> Vec<Located> {
    const CLAUSE: &str =
        "2025-11-25 and older, transports, Streamable HTTP, session management: 404 means start again";
    let mut findings = Vec::new();
    let mut report = |entry: usize, id: &str, severity, text: String, why: &str| {
        let finding =
            Finding::new(id, severity, text, why).with_party(Party::Client.word()).with_clause(CLAUSE);
        findings.push(Located { entry, finding });
    };
    let mut lost: Option<(usize, String, String)> = None;
    let mut renewed = false;
    let mut repeats = 0;
    let mut last: Option<Post<'_>> = None;
    for (entry, (from_client, text)) in entries.iter().enumerate() {
        if !from_client {
            let gone = text.trim().starts_with("404");
            if let (true, Some(Post { method, session: Some(session) })) = (gone, &last) {
                let again = lost.as_ref().is_some_and(|(_, _, call)| call == method);
                lost = Some((entry, (*session).to_owned(), (*method).to_owned()));
                if !again {
                    repeats = 0;
                }
                renewed = false;
            }
            continue;
        }
        last = read(text);
        let (Some(post), Some((_, session, call))) = (&last, &lost) else { continue };
        if post.method == "initialize" {
            renewed = true;
            if post.session.is_some() {
                let text = "`initialize` with a session id".to_owned();
                report(
                    entry,
                    "initialize-with-session",
                    Severity::Error,
                    text,
                    "a new session has no id yet",
                );
            }
        } else if post.session == Some(session) {
            let text = format!("goes on with the lost session {session}");
            report(entry, "session-not-renewed", Severity::Error, text, "every request with it fails");
        } else if post.method == call {
            repeats += 1;
            if repeats > 1 {
                let text = format!("repeats `{call}` more than once");
                report(entry, "call-repeated", Severity::Error, text, "the call may have run");
            }
        }
    }
    if let Some((entry, session, call)) = lost
        && !renewed
    {
        let text = format!(
            "starts a new session with initialize (session {session} is gone) and repeats `{call}` at most once"
        );
        report(
            entry,
            "session-lost",
            Severity::Warning,
            text,
            "a forgotten session id leads to endless failures",
        );
    }
    findings
}
