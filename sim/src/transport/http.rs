//! MCP over Streamable HTTP, client side, both eras (mcp.md 1.12, 3.11); plain HTTP/1.1 without TLS.
//!
//! Every message is a POST of its own, in a task of its own; what comes back, as JSON or as server-sent events, goes
//! into one channel. Sessions, the version header, the `Mcp-*` headers and resumption by `Last-Event-ID` are kept
//! here, since they belong to the transport.

use super::sse::Events;
use super::{Delivery, shown};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use windtunnel_model::mcp::catalogue::header_annotations;
use windtunnel_model::mcp::jsonrpc::{Message, RequestId};
use windtunnel_model::mcp::negotiation::messages::META_VERSION;

/// Deliveries that wait unread before the readers stop reading.
const QUEUE: usize = 1024;

/// The longest body or event that is read.
const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// How often one answer's stream is resumed.
const MOST_RESUMES: u32 = 10;

/// How long a connection and a response's head may take.
const HEAD_LIMIT: Duration = Duration::from_secs(60);

/// What the transport remembers between messages.
#[derive(Debug, Default)]
struct Memory {
    session: Option<String>,
    /// The agreed legacy revision: sent as a header after `initialize`.
    legacy_version: Option<String>,
    /// Tool name -> (path of property names, header name).
    headers: BTreeMap<String, Vec<(Vec<String>, String)>>,
}

/// A connection to an endpoint.
#[derive(Debug)]
pub struct HttpConnection {
    uri: Uri,
    memory: Arc<Mutex<Memory>>,
    sender: mpsc::Sender<Delivery>,
    deliveries: mpsc::Receiver<Delivery>,
    tasks: Mutex<Vec<(Option<RequestId>, tokio::task::JoinHandle<()>)>>,
}

/// Why a URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no plain http URL with a host")]
pub struct BadUrl(String);

impl HttpConnection {
    /// A connection; nothing is sent yet.
    ///
    /// # Errors
    /// When the URL is not `http://host[:port]/path`.
    pub fn open(url: &str) -> Result<Self, BadUrl> {
        let uri: Uri = url.parse().map_err(|_| BadUrl(url.to_owned()))?;
        if uri.scheme_str() != Some("http") || uri.host().is_none() {
            return Err(BadUrl(url.to_owned()));
        }
        let (sender, deliveries) = mpsc::channel(QUEUE);
        Ok(Self { uri, memory: Arc::default(), sender, deliveries, tasks: Mutex::default() })
    }

    /// Sends a message as a POST of its own. A modern cancellation closes the response stream instead (mcp.md 1.8).
    pub fn send(&self, message: &Message) {
        let modern = message
            .params()
            .is_some_and(|params| params.get("_meta").is_some_and(|m| m.get(META_VERSION).is_some()));
        let legacy = self.memory.lock().is_ok_and(|memory| memory.legacy_version.is_some());
        if message.method() == Some("notifications/cancelled") && !legacy {
            let id = message.params().and_then(|params| RequestId::from_value(params.get("requestId")?).ok());
            self.abort(id.as_ref());
            return;
        }
        let post = Post {
            uri: self.uri.clone(),
            memory: Arc::clone(&self.memory),
            sender: self.sender.clone(),
            message: message.clone(),
            modern,
        };
        let opens_stream = message.method() == Some("notifications/initialized");
        let id = match message {
            Message::Request { id, .. } => Some(id.clone()),
            _ => None,
        };
        let task = tokio::spawn(async move {
            post.run().await;
            if opens_stream {
                // The stream for the server's own messages; a server without one answers 405.
                post.listen().await;
            }
        });
        if let Ok(mut tasks) = self.tasks.lock() {
            tasks.retain(|(_, task)| !task.is_finished());
            tasks.push((id, task));
        }
    }

    fn abort(&self, id: Option<&RequestId>) {
        if let Ok(mut tasks) = self.tasks.lock() {
            for (_, task) in tasks.iter().filter(|(other, _)| other.as_ref() == id && id.is_some()) {
                task.abort();
            }
            tasks.retain(|(_, task)| !task.is_finished());
        }
    }

    /// The next delivery. Cancel safe.
    pub async fn receive(&mut self) -> Delivery {
        self.deliveries.recv().await.unwrap_or(Delivery::Closed)
    }

    /// Ends the session where there is one, and every stream.
    pub async fn close(self) {
        let session = self.memory.lock().ok().and_then(|memory| memory.session.clone());
        if session.is_some() {
            let request = base(&self.uri, &self.memory, Method::DELETE).body(Full::default());
            if let Ok(request) = request {
                let _ = tokio::time::timeout(Duration::from_secs(2), exchange(&self.uri, request)).await;
            }
        }
    }
}

impl Drop for HttpConnection {
    fn drop(&mut self) {
        if let Ok(tasks) = self.tasks.lock() {
            for (_, task) in tasks.iter() {
                task.abort();
            }
        }
    }
}

struct Post {
    uri: Uri,
    memory: Arc<Mutex<Memory>>,
    sender: mpsc::Sender<Delivery>,
    message: Message,
    modern: bool,
}

fn base(uri: &Uri, memory: &Mutex<Memory>, method: Method) -> hyper::http::request::Builder {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let mut builder = Request::builder().method(method).uri(path).header("host", host);
    if let Ok(memory) = memory.lock() {
        if let Some(session) = &memory.session {
            builder = builder.header("mcp-session-id", session);
        }
        if let Some(version) = &memory.legacy_version {
            builder = builder.header("mcp-protocol-version", version);
        }
    }
    builder
}

async fn exchange(uri: &Uri, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(80);
    let answer = async {
        let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // It ends when the response's body is read or dropped.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        sender.send_request(request).await.map_err(|error| error.to_string())
    };
    tokio::time::timeout(HEAD_LIMIT, answer).await.map_err(|_| "no answer in time".to_owned())?
}

impl Post {
    fn id(&self) -> Option<&RequestId> {
        match &self.message {
            Message::Request { id, .. } => Some(id),
            _ => None,
        }
    }

    async fn run(&self) {
        let mut builder = if self.modern {
            // A modern request carries its own version and never a session.
            let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
            let host = self.uri.authority().map_or("", |authority| authority.as_str());
            Request::builder().method(Method::POST).uri(path).header("host", host)
        } else {
            base(&self.uri, &self.memory, Method::POST)
        };
        builder = builder
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if self.modern {
            for (name, value) in self.modern_headers() {
                builder = builder.header(name, value);
            }
        }
        let Ok(request) = builder.body(Full::new(Bytes::from(self.message.to_line()))) else { return };
        let response = match exchange(&self.uri, request).await {
            Ok(response) => response,
            Err(reason) => {
                self.failed(0, reason).await;
                return;
            }
        };
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        if self.message.method() == Some("initialize")
            && response.status().is_success()
            && let (Some(session), Ok(mut memory)) = (header("mcp-session-id"), self.memory.lock())
        {
            memory.session = Some(session);
        }
        let status = response.status();
        let kind = header("content-type").unwrap_or_default();
        if !status.is_success() {
            let body = text(response).await;
            let lost = status == StatusCode::NOT_FOUND
                && !self.modern
                && self.memory.lock().is_ok_and(|memory| memory.session.is_some());
            match (Message::parse(&body), self.id()) {
                (_, Some(id)) if lost => self.deliver(Delivery::SessionLost { id: id.clone() }).await,
                (Ok(message), Some(id)) if message.id().is_none_or(|other| other == id) => {
                    self.deliver(Delivery::Message(with_id(message, id))).await;
                }
                _ => self.failed(status.as_u16(), shown(&body)).await,
            }
        } else if kind.starts_with("text/event-stream") {
            self.events(response).await;
        } else if self.id().is_some() {
            let body = text(response).await;
            self.deliver(Delivery::of_line(body.as_bytes())).await;
        }
    }

    async fn failed(&self, status: u16, body: String) {
        if let Some(id) = self.id() {
            self.deliver(Delivery::HttpStatus { id: id.clone(), status, body }).await;
        }
    }

    async fn deliver(&self, delivery: Delivery) {
        if let Delivery::Message(Message::Response { id, result }) = &delivery {
            self.learn(id, result);
        }
        // Nobody listens any more when the connection is closed.
        let _ = self.sender.send(delivery).await;
    }

    /// Reads the answer's stream; when it breaks off before the answer, resumes it (mcp.md 1.1, SSE polling).
    async fn events(&self, response: Response<Incoming>) {
        let mut events = Events::new(BODY_LIMIT);
        let mut response = Some(response);
        for _ in 0..=MOST_RESUMES {
            let Some(current) = response.take() else { return };
            if self.read_events(current, &mut events).await || self.id().is_none() {
                return;
            }
            let Some(last) = events.last_id().map(str::to_owned) else { return };
            tokio::time::sleep(Duration::from_millis(events.retry_ms().unwrap_or(1_000))).await;
            let request = base(&self.uri, &self.memory, Method::GET)
                .header("accept", "text/event-stream")
                .header("last-event-id", last)
                .body(Full::default());
            let Ok(request) = request else { return };
            response = match exchange(&self.uri, request).await {
                Ok(next) if next.status().is_success() => Some(next),
                _ => return,
            };
        }
    }

    /// Reads a stream to its end; whether the answer to this request was in it.
    async fn read_events(&self, response: Response<Incoming>, events: &mut Events) -> bool {
        let mut body = response.into_body();
        let mut answered = false;
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            for event in events.push(&data) {
                if event.data.is_empty() || !(event.kind.is_empty() || event.kind == "message") {
                    continue;
                }
                let delivery = Delivery::of_line(event.data.as_bytes());
                if let Delivery::Message(Message::Response { id, .. } | Message::Error { id: Some(id), .. }) =
                    &delivery
                {
                    answered |= self.id() == Some(id);
                }
                self.deliver(delivery).await;
            }
        }
        answered
    }

    /// The stream of the server's own messages (legacy). Resumed like an answer's, as long as the server offers it.
    async fn listen(&self) {
        let mut events = Events::new(BODY_LIMIT);
        for _ in 0..=MOST_RESUMES {
            let mut builder =
                base(&self.uri, &self.memory, Method::GET).header("accept", "text/event-stream");
            if let Some(last) = events.last_id() {
                builder = builder.header("last-event-id", last);
            }
            let Ok(request) = builder.body(Full::default()) else { return };
            match exchange(&self.uri, request).await {
                Ok(response) if response.status().is_success() => {
                    self.read_events(response, &mut events).await;
                }
                _ => return,
            }
            tokio::time::sleep(Duration::from_millis(events.retry_ms().unwrap_or(1_000))).await;
        }
    }

    /// What later messages need: the agreed legacy revision, and which arguments become headers.
    fn learn(&self, id: &RequestId, result: &Value) {
        let Ok(mut memory) = self.memory.lock() else { return };
        if self.id() != Some(id) {
            return;
        }
        if self.message.method() == Some("initialize")
            && let Some(version) = result.get("protocolVersion").and_then(Value::as_str)
        {
            // 2025-03-26 and older know no such header; a server ignores it.
            memory.legacy_version = Some(version.to_owned());
        }
        for tool in result.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let name = tool.get("name").and_then(Value::as_str);
            let schema = tool.get("inputSchema").and_then(Value::as_object);
            let (Some(name), Some(schema)) = (name, schema) else { continue };
            let found = header_annotations(schema)
                .into_iter()
                .filter_map(|(pointer, header, _)| {
                    Some((property_path(&pointer), header.as_str()?.to_owned()))
                })
                .collect();
            memory.headers.insert(name.to_owned(), found);
        }
    }

    fn modern_headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let params = self.message.params();
        let version = params.and_then(|params| params.get("_meta")?.get(META_VERSION)?.as_str());
        headers.extend(version.map(|version| ("mcp-protocol-version".to_owned(), version.to_owned())));
        let method = self.message.method().unwrap_or_default();
        headers.push(("mcp-method".to_owned(), method.to_owned()));
        let key = match method {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            _ if method.starts_with("tasks/") => Some("taskId"),
            _ => None,
        };
        let name = key.and_then(|key| params?.get(key)?.as_str());
        headers.extend(name.map(|name| ("mcp-name".to_owned(), encoded(name))));
        if method == "tools/call"
            && let (Some(name), Ok(memory)) = (name, self.memory.lock())
        {
            let empty = Value::Object(Map::new());
            let arguments = params.and_then(|params| params.get("arguments")).unwrap_or(&empty);
            for (path, header) in memory.headers.get(name).into_iter().flatten() {
                let value = path.iter().try_fold(arguments, |value, key| value.get(key));
                let text = match value {
                    Some(Value::String(text)) => text.clone(),
                    Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                    _ => continue,
                };
                headers.push((format!("mcp-param-{header}"), encoded(&text)));
            }
        }
        headers
    }
}

/// An error answer without an id, sent with a failing status, belongs to the request of its POST.
fn with_id(message: Message, id: &RequestId) -> Message {
    match message {
        Message::Error { id: None, error } => Message::Error { id: Some(id.clone()), error },
        other => other,
    }
}

/// `/properties/a/properties/b/x-mcp-header` as `[a, b]`.
fn property_path(pointer: &str) -> Vec<String> {
    let parts: Vec<&str> = pointer.split('/').skip(1).collect();
    parts.chunks_exact(2).map(|pair| pair[1].replace("~1", "/").replace("~0", "~")).collect()
}

/// Values that a header cannot carry as they are: `=?base64?…?=` (mcp.md 1.12).
pub fn encoded(text: &str) -> String {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain { text.to_owned() } else { format!("=?base64?{}?=", base64(text.as_bytes())) }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = (group >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() { char::from(LETTERS[sextet as usize]) } else { '=' });
        }
    }
    text
}

async fn text(response: Response<Incoming>) -> String {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            let room = BODY_LIMIT.saturating_sub(bytes.len()).min(data.len());
            bytes.extend_from_slice(&data[..room]);
            if room < data.len() {
                break;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values() {
        assert_eq!(encoded("Zür ich"), "=?base64?WsO8ciBpY2g=?=");
        assert_eq!(encoded("plain value"), "plain value");
        assert_eq!(encoded(" a"), "=?base64?IGE=?=");
        assert_eq!(encoded(""), "");
        assert_eq!(property_path("/properties/a/properties/b~1c/x-mcp-header"), ["a", "b/c"]);
    }
}
