//! A scripted server over Streamable HTTP on loopback, both eras (mcp.md 1.12). Plain HTTP/1.1.
//!
//! Legacy sessions have a machine each; modern requests share one, since no state may hang on a connection. An answer
//! that is one message comes as JSON, anything else as server-sent events.

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use windtunnel_model::mcp::jsonrpc::{Message, code};
use windtunnel_model::mcp::negotiation::messages::META_VERSION;
use windtunnel_model::mcp::negotiation::script::ServerScript;
use windtunnel_model::mcp::negotiation::server::{Action, Deed, Server};
use windtunnel_model::mcp::version::{Era, Version};

/// The longest body that is read.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

struct Shared {
    script: ServerScript,
    modern: Server,
    sessions: BTreeMap<String, Server>,
    next_session: u64,
    /// Requests in sessions so far, for scripts that lose their sessions.
    requests: u64,
}

/// A body whose parts come as they are sent.
struct Stream(mpsc::UnboundedReceiver<Bytes>);

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}

type Answer = Response<Stream>;

fn whole(status: StatusCode, kind: &str, text: String) -> Answer {
    let (sender, receiver) = mpsc::unbounded_channel();
    if !text.is_empty() {
        // The receiver is right here.
        let _ = sender.send(Bytes::from(text));
    }
    let mut response = Response::new(Stream(receiver));
    *response.status_mut() = status;
    if let Ok(kind) = kind.parse() {
        response.headers_mut().insert("content-type", kind);
    }
    response
}

fn refused(status: StatusCode, message: &Message) -> Answer {
    whole(status, "application/json", message.to_line())
}

/// Serves at a loopback port (0: any) until the script exits; calls `ready` with the endpoint's URL.
///
/// # Errors
/// When the port cannot be bound.
pub async fn serve(script: ServerScript, port: u16, ready: impl FnOnce(&str)) -> std::io::Result<i32> {
    tokio::time::sleep(Duration::from_millis(script.boot_delay_ms)).await;
    if let Some(code) = script.exits_at_start {
        return Ok(code);
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    ready(&format!("http://{}/mcp", listener.local_addr()?));
    let shared = Arc::new(Mutex::new(Shared {
        modern: Server::new(script.clone()),
        script,
        sessions: BTreeMap::new(),
        next_session: 1,
        requests: 0,
    }));
    let (exit, mut exits) = mpsc::unbounded_channel::<i32>();
    loop {
        let stream = tokio::select! {
            Some(code) = exits.recv() => return Ok(code),
            accepted = listener.accept() => accepted?.0,
        };
        let (shared, exit) = (Arc::clone(&shared), exit.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (shared, exit) = (Arc::clone(&shared), exit.clone());
                async move { Ok::<_, Infallible>(answer(request, &shared, &exit).await) }
            });
            // A client that goes away is no error of ours.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn header(request: &Request<Incoming>, name: &str) -> Option<String> {
    request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

async fn answer(
    request: Request<Incoming>,
    shared: &Arc<Mutex<Shared>>,
    exit: &mpsc::UnboundedSender<i32>,
) -> Answer {
    let plain = |status| whole(status, "text/plain", String::new());
    // A page in a browser must not reach a local server (DNS rebinding).
    let foreign =
        |origin: &str| !["http://localhost", "http://127.0.0.1"].iter().any(|own| origin.starts_with(own));
    if header(&request, "origin").is_some_and(|origin| foreign(&origin)) {
        return plain(StatusCode::FORBIDDEN);
    }
    let session = header(&request, "mcp-session-id");
    if request.method() == Method::DELETE {
        let known = session.and_then(|id| shared.lock().ok()?.sessions.remove(&id)).is_some();
        return plain(if known { StatusCode::OK } else { StatusCode::NOT_FOUND });
    }
    if request.method() != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED);
    }
    let (version, method, name) = (
        header(&request, "mcp-protocol-version"),
        header(&request, "mcp-method"),
        header(&request, "mcp-name"),
    );
    let body = http_body_util::Limited::new(request.into_body(), BODY_LIMIT).collect().await;
    let Ok(body) = body.map(|body| body.to_bytes()) else { return plain(StatusCode::PAYLOAD_TOO_LARGE) };
    let message = match Message::parse(&String::from_utf8_lossy(&body)) {
        Ok(message) => message,
        Err(malformed) => {
            let error = Message::error(malformed.id.clone(), code::PARSE_ERROR, malformed.to_string());
            return refused(StatusCode::BAD_REQUEST, &error);
        }
    };
    let stated = message
        .params()
        .and_then(|params| params.get("_meta")?.get(META_VERSION)?.as_str())
        .map(str::to_owned);
    let asked = version.as_deref().and_then(|version| version.parse::<Version>().ok());
    let modern = stated.is_some() || asked.is_some_and(|version| version.era() == Era::Modern);
    if modern && let Some(fault) = mismatch(&message, stated.as_deref(), [version, method, name]) {
        let error = Message::error(message.id().cloned(), code::HEADER_MISMATCH, fault);
        return refused(StatusCode::BAD_REQUEST, &error);
    }
    let Ok((actions, opened)) = play(&message, modern, session.as_deref(), shared) else {
        let error = Message::error(message.id().cloned(), code::INVALID_REQUEST, "Session not found");
        let status = if session.is_some() { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST };
        return refused(status, &error);
    };
    if !matches!(message, Message::Request { .. }) {
        return plain(StatusCode::ACCEPTED);
    }
    let mut response = respond(actions, modern, message.method() == Some("subscriptions/listen"), exit).await;
    if let Some(session) = opened.and_then(|session| session.parse().ok()) {
        response.headers_mut().insert("mcp-session-id", session);
    }
    response
}

/// What contradicts the body in the headers of a modern request: version, method, name.
fn mismatch(message: &Message, stated: Option<&str>, headers: [Option<String>; 3]) -> Option<&'static str> {
    let [version, method, name] = headers;
    if version.as_deref() != stated {
        return Some("MCP-Protocol-Version does not match the body");
    }
    if method.as_deref() != message.method() {
        return Some("Mcp-Method does not match the body");
    }
    let key = match message.method() {
        Some("tools/call" | "prompts/get") => "name",
        Some("resources/read") => "uri",
        _ => return None,
    };
    let own =
        message.params().and_then(|params| params.get(key)?.as_str()).map(crate::transport::http::encoded);
    (name != own).then_some("Mcp-Name does not match the body")
}

struct NoSession;

/// The machine's actions, and the id of a session that this message opened.
fn play(
    message: &Message,
    modern: bool,
    session: Option<&str>,
    shared: &Mutex<Shared>,
) -> Result<(Vec<Action>, Option<String>), NoSession> {
    let mut shared = shared.lock().map_err(|_| NoSession)?;
    // A server without the legacy era has no sessions: whatever lacks metadata goes to its one machine.
    if modern || shared.script.of_era(Era::Legacy).is_empty() {
        return Ok((shared.modern.message(message.clone()).0, None));
    }
    if message.method() == Some("initialize") {
        let mut server = Server::new(shared.script.clone());
        let actions = server.message(message.clone()).0;
        let id = format!("session-{}", shared.next_session);
        shared.next_session += 1;
        shared.sessions.insert(id.clone(), server);
        return Ok((actions, Some(id)));
    }
    if matches!(message, Message::Request { .. }) {
        shared.requests += 1;
        if shared.script.loses_sessions_after == Some(shared.requests) {
            shared.sessions.clear();
        }
    }
    let server = session.and_then(|id| shared.sessions.get_mut(id)).ok_or(NoSession)?;
    Ok((server.message(message.clone()).0, None))
}

async fn respond(
    actions: Vec<Action>,
    modern: bool,
    stays_open: bool,
    exit: &mpsc::UnboundedSender<i32>,
) -> Answer {
    let single = match actions.as_slice() {
        [Action { after_ms, what: Deed::Line(line), .. }] if !stays_open => Some((*after_ms, line.clone())),
        _ => None,
    };
    if let Some((after_ms, line)) = single {
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        let status = match Message::parse(&line) {
            Ok(Message::Error { error, .. }) if modern => match error.code {
                code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
                _ => StatusCode::BAD_REQUEST,
            },
            _ => StatusCode::OK,
        };
        return whole(status, "application/json", line);
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    let exit = exit.clone();
    tokio::spawn(async move {
        let mut now = 0;
        for action in actions {
            tokio::time::sleep(Duration::from_millis(action.after_ms.saturating_sub(now))).await;
            now = now.max(action.after_ms);
            let event = match action.what {
                Deed::Line(line) | Deed::Drip { line, .. } => format!("event: message\ndata: {line}\n\n"),
                Deed::Fragment(text) => format!("data: {text}"),
                Deed::Giant { id, bytes } => {
                    let text = "x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX).min(BODY_LIMIT));
                    let result = serde_json::json!({"content": [{"type": "text", "text": text}]});
                    format!("data: {}\n\n", Message::response(id, result).to_line())
                }
                Deed::Endless { bytes } => {
                    "x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX).min(BODY_LIMIT))
                }
                Deed::Flood { notifications } => {
                    let lines = (0..notifications.min(1_000_000)).map(|step| {
                        format!(
                            "data: {}\n\n",
                            windtunnel_model::mcp::negotiation::exchange::flood_line(step)
                        )
                    });
                    lines.collect()
                }
                Deed::Exit(code) => {
                    // The receiver lives as long as the server.
                    let _ = exit.send(code);
                    return;
                }
            };
            if sender.send(Bytes::from(event)).is_err() {
                return;
            }
        }
        if stays_open {
            sender.closed().await;
        }
    });
    let mut response = Response::new(Stream(receiver));
    if let Ok(kind) = "text/event-stream".parse() {
        response.headers_mut().insert("content-type", kind);
    }
    response
}
