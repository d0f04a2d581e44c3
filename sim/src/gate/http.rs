//! HTTP hooks: one POST, loopback only.

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use windtunnel_model::hooks::{EndStatus, HandlerEnd};

/// Bytes of an answer that are kept.
const BODY_LIMIT: usize = 1024 * 1024;

/// Posts `body` and gives the end as the model reads it.
pub async fn post(url: &str, headers: &[(String, String)], body: String, deadline: Duration) -> HandlerEnd {
    match tokio::time::timeout(deadline, exchange(url, headers, body)).await {
        Ok(Ok((status, text))) => {
            HandlerEnd { status: EndStatus::Http(status), stdout: text, stderr: String::new() }
        }
        Ok(Err(why)) => HandlerEnd::silent(EndStatus::CannotStart(why)),
        Err(_) => HandlerEnd::silent(EndStatus::Timeout),
    }
}

/// How long a server that a hook of the session has just started gets until it listens.
const PATIENCE: Duration = Duration::from_millis(1500);

async fn connect(address: SocketAddr) -> std::io::Result<tokio::net::TcpStream> {
    let started = tokio::time::Instant::now();
    loop {
        match tokio::net::TcpStream::connect(address).await {
            Err(error)
                if error.kind() == std::io::ErrorKind::ConnectionRefused && started.elapsed() < PATIENCE =>
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            done => return done,
        }
    }
}

async fn exchange(url: &str, headers: &[(String, String)], body: String) -> Result<(u16, String), String> {
    let uri: hyper::Uri = url.parse().map_err(|_| format!("`{url}` is not a URL"))?;
    if uri.scheme_str() != Some("http") {
        return Err("only http addresses on this machine are called".to_owned());
    }
    let host = uri.host().ok_or("the URL has no host")?;
    let ip: IpAddr = match host.trim_matches(['[', ']']) {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        text => text.parse().map_err(|_| format!("`{host}` is not an address on this machine"))?,
    };
    if !ip.is_loopback() {
        return Err(format!("`{host}` is not an address on this machine"));
    }
    let address = SocketAddr::new(ip, uri.port_u16().unwrap_or(80));
    let stream = connect(address).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let driver = tokio::spawn(connection);
    let mut request = hyper::Request::builder()
        .method("POST")
        .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header("host", address.to_string())
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let body =
        Limited::new(response.into_body(), BODY_LIMIT).collect().await.map_err(|error| error.to_string())?;
    driver.abort();
    Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}
