//! Streamable HTTP on loopback: the era matrix, a lost session, the probe of an endpoint, in-process server and client.

use std::time::Duration;
use windtunnel::mcp_client::{Driver, Target};
use windtunnel::mcp_probe::{Limits, probe};
use windtunnel_model::mcp::ends::End;
use windtunnel_model::mcp::negotiation::client::{CallSpec, Input};
use windtunnel_model::mcp::negotiation::exchange::{Wire, play};
use windtunnel_model::mcp::negotiation::messages::ClientIdentity;
use windtunnel_model::mcp::negotiation::script::ServerScript;
use windtunnel_model::mcp::profile::{ClientProfile, Eras};
use windtunnel_model::mcp::version::Era;

/// Runs a scripted endpoint in this process for as long as `body` needs it.
async fn with_endpoint<T>(script: ServerScript, body: impl AsyncFnOnce(String) -> T) -> T {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let server = tokio::spawn(async move {
        let ready = |url: &str| sender.send(url.to_owned()).expect("the test waits");
        windtunnel::mcp_server::http::serve(script, 0, ready).await.expect("a loopback port")
    });
    let url = receiver.await.expect("a URL");
    let result = body(url).await;
    server.abort();
    result
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn call(call: u32) -> Input {
    let (tool, arguments) = ("echo".to_owned(), serde_json::json!({"n": call}));
    Input::Call(CallSpec { call, tool, arguments, meta: serde_json::Map::new(), timeout_ms: None })
}

fn identity() -> ClientIdentity {
    ClientIdentity::new("test", "1")
}

fn lines(wire: &[Wire]) -> Vec<&str> {
    wire.iter()
        .filter_map(|wire| match wire {
            Wire::FromClient { line } | Wire::FromServer { line } => Some(line.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn the_nine_cells_over_http() {
    runtime().block_on(async {
        for client in Eras::ALL {
            for server in Eras::ALL {
                let profile = ClientProfile::specification().with_eras(client);
                let script = ServerScript { pins_era: false, ..ServerScript::of_eras(server) };
                let predicted = play(&profile, &identity(), &script, vec![call(0)]);
                let name = format!("{client:?} x {server:?}");
                with_endpoint(script, async |url| {
                    let mut driver = Driver::new(profile, identity(), Target::Http(url), &[]);
                    if driver.connect(Duration::from_secs(20)).await {
                        driver.input(call(0)).await;
                        driver.until(Duration::from_secs(10), |driver| !driver.ends.is_empty()).await;
                    }
                    driver.finish().await;
                    assert_eq!(driver.negotiated, predicted.negotiated, "{name}");
                    assert_eq!(driver.ends, predicted.ends, "{name}");
                    assert_eq!(lines(&driver.wire), lines(&predicted.wire), "{name}");
                })
                .await;
            }
        }
    });
}

/// F82: after 404 with a session id one new `initialize`, and the call repeated once; a second loss ends it.
#[test]
fn a_lost_session_is_opened_anew_once() {
    runtime().block_on(async {
        // tools/list is the first request in the session; the call is the second.
        let script = ServerScript { loses_sessions_after: Some(2), ..ServerScript::of_eras(Eras::Legacy) };
        with_endpoint(script, async |url| {
            let profile = ClientProfile::specification().with_eras(Eras::Legacy);
            let mut driver = Driver::new(profile, identity(), Target::Http(url), &[]);
            assert!(driver.connect(Duration::from_secs(20)).await);
            driver.input(call(0)).await;
            driver.until(Duration::from_secs(10), |driver| !driver.ends.is_empty()).await;
            assert!(matches!(driver.ends.as_slice(), [(0, End::Result(_))]), "{:?}", driver.ends);
            let sent = |method: &str| {
                let wanted = format!("\"method\":\"{method}\"");
                let own = |wire: &&Wire| matches!(wire, Wire::FromClient { line } if line.contains(&wanted));
                driver.wire.iter().filter(own).count()
            };
            assert_eq!((sent("initialize"), sent("tools/call")), (2, 2));
            driver.finish().await;
        })
        .await;
    });
}

#[test]
fn an_endpoint_is_probed() {
    runtime().block_on(async {
        let script = ServerScript { pins_era: false, ..ServerScript::of_eras(Eras::Dual) };
        with_endpoint(script, async |url| {
            let limits =
                Limits { answer: Duration::from_secs(10), connect: Duration::from_secs(10), call: None };
            let report = probe(&Target::Http(url), &limits).await;
            assert_eq!(report.era, Some(Era::Modern));
            assert_eq!(report.versions.len(), 5);
            let ids: Vec<&str> = report.findings.iter().map(|shown| shown.finding.id.as_str()).collect();
            assert_eq!(ids, ["description-missing"]);
        })
        .await;
    });
}
