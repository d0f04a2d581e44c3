//! The era matrix and the misbehaviours, on real processes: the wire equals the model's prediction message by message.

use std::time::Duration;
use windtunnel::mcp_client::{Driver, Target};
use windtunnel::process::child::CommandLine;
use windtunnel::transport::stdio::{SHUTDOWN_SPECIFICATION, StdioSpec};
use windtunnel_model::mcp::negotiation::client::{CallSpec, Input};
use windtunnel_model::mcp::negotiation::exchange::{Exchange, Wire, play};
use windtunnel_model::mcp::negotiation::messages::ClientIdentity;
use windtunnel_model::mcp::negotiation::script::{Answer, Behaviour, IdFault, ScriptedTool, ServerScript};
use windtunnel_model::mcp::profile::{ClientProfile, Eras};

fn identity() -> ClientIdentity {
    ClientIdentity::new("test", "1")
}

fn calls(tools: &[&str]) -> Vec<Input> {
    let call = |(number, tool): (usize, &&str)| {
        Input::Call(CallSpec {
            call: number as u32,
            tool: (*tool).to_owned(),
            arguments: serde_json::json!({"n": number}),
            meta: serde_json::Map::new(),
            timeout_ms: None,
        })
    };
    tools.iter().enumerate().map(call).collect()
}

/// The same exchange with `windtunnel mcp serve` as a real process.
fn record(
    predicted: &Exchange,
    profile: &ClientProfile,
    script: &ServerScript,
    inputs: Vec<Input>,
) -> Driver {
    let closed = |wire: &&Wire| !matches!(wire, Wire::ClosedByClient);
    let expected = predicted.wire.iter().filter(closed).count();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.json");
    std::fs::write(&path, serde_json::to_string(script).expect("a script")).expect("written");
    let args = ["mcp", "serve", "--script", path.to_str().expect("text")].map(str::to_owned).to_vec();
    let program = env!("CARGO_BIN_EXE_windtunnel").to_owned();
    let spec = StdioSpec::new(CommandLine::Exec { program, args }, folder.path().to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut driver =
            Driver::new(profile.clone(), identity(), Target::Stdio(spec), &SHUTDOWN_SPECIFICATION);
        let count = inputs.len();
        if driver.connect(Duration::from_secs(30)).await {
            for input in inputs {
                driver.input(input).await;
            }
            driver.until(Duration::from_secs(10), |driver| driver.ends.len() == count).await;
            // What comes after the last end (a second answer, an exit) belongs to the exchange.
            let all = |driver: &Driver| driver.wire.iter().filter(closed).count() >= expected;
            driver.until(Duration::from_secs(2), all).await;
        }
        driver.finish().await;
        driver
    })
}

/// Predicted and recorded wire, compared up to the end of the prediction; what follows in the recording may only be
/// the client's own closing of the connection. Answers that wait for the same pipe are compared in order.
fn assert_same(name: &str, predicted: &Exchange, recorded: &Driver) {
    let expected: Vec<&Wire> = predicted.wire.iter().collect();
    let got: Vec<&Wire> = recorded.wire.iter().filter(|wire| !matches!(wire, Wire::ClosedByClient)).collect();
    let expected: Vec<&Wire> =
        expected.into_iter().filter(|wire| !matches!(wire, Wire::ClosedByClient)).collect();
    assert_eq!(got, expected, "{name}");
    assert_eq!(recorded.negotiated, predicted.negotiated, "{name}");
    assert_eq!(recorded.failure, predicted.failure, "{name}");
    assert_eq!(recorded.ends, predicted.ends, "{name}");
    assert!(recorded.server_ends.iter().all(|end| end.leftovers == 0), "{name}: left something behind");
}

#[test]
fn the_nine_cells() {
    for client in Eras::ALL {
        for server in Eras::ALL {
            for base in [ClientProfile::claude_code(), ClientProfile::specification()] {
                let profile = base.with_eras(client);
                let script = ServerScript::of_eras(server);
                let predicted = play(&profile, &identity(), &script, calls(&["echo"]));
                let recorded = record(&predicted, &profile, &script, calls(&["echo"]));
                let name = format!("{} {client:?} x {server:?}", profile.name);
                assert_same(&name, &predicted, &recorded);
            }
        }
    }
}

/// Trap (a) of mcp.md section 2, with the times made short.
#[test]
fn the_slow_server_race() {
    let script = ServerScript { boot_delay_ms: 1_500, ..ServerScript::of_eras(Eras::Dual) };
    for reprobe_timeout_ms in [Some(3_000), None] {
        let profile =
            ClientProfile { probe_timeout_ms: 300, reprobe_timeout_ms, ..ClientProfile::claude_code() };
        let predicted = play(&profile, &identity(), &script, calls(&["echo"]));
        assert_eq!(predicted.failure.is_some(), reprobe_timeout_ms.is_none());
        let recorded = record(&predicted, &profile, &script, calls(&["echo"]));
        assert_same(&format!("slow server, reprobe {reprobe_timeout_ms:?}"), &predicted, &recorded);
    }
}

fn tool(name: &str, behaviour: Behaviour) -> ScriptedTool {
    ScriptedTool { name: name.to_owned(), behaviour: vec![behaviour], ..ScriptedTool::default() }
}

#[test]
fn each_misbehaviour_is_as_predicted() {
    let usual = Behaviour::default;
    let behaviours: Vec<(&str, Behaviour)> = vec![
        ("silence", Behaviour { answer: Answer::Silence, ..usual() }),
        ("garbage", Behaviour { raw_before: vec!["not json".to_owned()], ..usual() }),
        ("log line", Behaviour { raw_before: vec![r#"{"level":"info"}"#.to_owned()], ..usual() }),
        ("duplicate", Behaviour { duplicate: true, ..usual() }),
        ("other type", Behaviour { id: IdFault::OtherType, ..usual() }),
        ("unknown id", Behaviour { id: IdFault::Unknown, ..usual() }),
        ("null id", Behaviour { id: IdFault::Null, ..usual() }),
        ("dies mid line", Behaviour { dies_mid_line: true, ..usual() }),
        ("exit", Behaviour { answer: Answer::Exit(3), ..usual() }),
        ("drip", Behaviour { drip_ms: Some(1), ..usual() }),
        ("giant", Behaviour { answer: Answer::Text("y".repeat(300_000)), ..usual() }),
        ("flood", Behaviour { answer: Answer::Flood { notifications: 500 }, ..usual() }),
        ("delay", Behaviour { delay_ms: 100, ..usual() }),
    ];
    for (name, behaviour) in behaviours {
        for eras in [Eras::Legacy, Eras::Modern] {
            let script =
                ServerScript { tools: vec![tool("t", behaviour.clone())], ..ServerScript::of_eras(eras) };
            let profile = ClientProfile { call_timeout_ms: 700, ..ClientProfile::specification() };
            let predicted = play(&profile, &identity(), &script, calls(&["t"]));
            assert_eq!(predicted.ends.len(), 1, "{name}: every call ends once");
            let recorded = record(&predicted, &profile, &script, calls(&["t"]));
            assert_same(&format!("{name} {eras:?}"), &predicted, &recorded);
        }
    }
}

#[test]
fn reordered_answers_are_matched_by_id() {
    let script = ServerScript { reorder: Some(4), ..ServerScript::of_eras(Eras::Dual) };
    let profile = ClientProfile::specification();
    let inputs = || calls(&["echo"; 4]);
    let predicted = play(&profile, &identity(), &script, inputs());
    assert_eq!(predicted.ends.iter().map(|(call, _)| *call).collect::<Vec<_>>(), [3, 2, 1, 0]);
    let recorded = record(&predicted, &profile, &script, inputs());
    assert_same("reorder", &predicted, &recorded);
}
