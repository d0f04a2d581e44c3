//! Every field report about MCP, judged by `mcp check` or `mcp lint` with its right outcome; and again with its ids
//! changed, so that no rule knows a sample.

use crate::support::{Output, cli_with};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windtunnel::cli::Exit;
use windtunnel_model::mcp::jsonrpc::{ErrorObject, code};
use windtunnel_model::mcp::negotiation::messages::{ProbeAnswer, read_discover, read_modern_error};
use windtunnel_model::mcp::profile::ClientProfile;
use windtunnel_model::mcp::version::Version;

const REPORTS: &str = include_str!("../data/mcp/field-reports.json");

fn command(arguments: &[&str], stdin: &str) -> (Exit, Value) {
    let Output { exit, stdout, stderr } = cli_with(arguments, &std::env::temp_dir(), None, stdin);
    let value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout} {stderr}"));
    (exit, value)
}

/// `party id` of each finding, in order.
fn findings(output: &Value) -> Vec<String> {
    let items = output["findings"].as_array().expect("findings");
    items
        .iter()
        .map(|f| format!("{} {}", f["party"].as_str().unwrap_or("-"), f["id"].as_str().expect("an id")))
        .collect()
}

fn judge(input: &Value) -> Value {
    let verb = if input["type"] == "tools" { "lint" } else { "check" };
    command(&["mcp", verb, "-", "--format", "json"], &input.to_string()).1
}

/// Integers that are ids or tokens, moved by 1000; the printed ones too.
fn with_other_ids(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(with_other_ids).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let id = ["id", "progressToken", "requestId"].contains(&key.as_str());
                let moved = match value {
                    Value::Number(number) if id => json!(number.as_i64().expect("an integer") + 1000),
                    Value::String(text) if id => {
                        text.parse::<i64>().map_or_else(|_| value.clone(), |n| json!((n + 1000).to_string()))
                    }
                    other => with_other_ids(other),
                };
                (key.clone(), moved)
            })
            .collect(),
        other => other.clone(),
    }
}

#[test]
fn each_report_has_its_right_outcome() {
    let expected: BTreeMap<&str, &[&str]> = BTreeMap::from([
        (
            "F54",
            &[
                "server tool-listed-twice",
                "server tool-listed-twice",
                "server cursor-repeated",
                "client paging-must-stop",
            ][..],
        ),
        ("F56", &[]),
        ("F66", &["server id-type-changed", "client request-unanswered"]),
        ("F67", &["server answer-to-unknown-id", "client request-unanswered"]),
        ("F68", &["client id-reused-in-flight", "client answer-ambiguous"]),
        ("F69", &["client id-reused-in-flight", "client answer-ambiguous", "client request-unanswered"]),
        ("F70", &["server progress-token-unknown", "client timer-not-reset", "server request-unanswered"]),
        ("F71", &["server request-unanswered"]),
        ("F72", &["server initialize-refused", "server not-connected"]),
        ("F73", &["client version-counter-offer"]),
        ("F74", &["server agreed-version-unknown"]),
        ("F76", &["server reply-to-notification"]),
        ("F77", &["server not-json"]),
        ("F78", &["server not-a-message"]),
        ("F79", &["client list-refreshed"]),
        ("F80", &["client capability-not-declared", "client connection-kept"]),
        ("F81", &["server declared-capability-not-implemented", "client connection-kept"]),
        ("F82", &["client session-lost"]),
        (
            "F83",
            &[
                "- visible-name-length",
                "- visible-name-not-portable",
                "- visible-name-not-portable",
                "- visible-name-not-portable",
                "- visible-name-too-long",
            ],
        ),
        ("F84", &["server bare-name-shared"]),
        ("F85", &["server description-missing", "server schema-alternative-at-top"]),
        (
            "F86",
            &[
                "server description-missing",
                "server schema-type-unknown",
                "server description-missing",
                "server property-name",
            ],
        ),
        ("F87", &["server description-missing", "server schema-ref"]),
        ("F88", &["client pages-not-followed"]),
        ("F89", &["server structured-content-missing"]),
        ("F90", &["server structured-content-not-in-text"]),
        ("F91", &["server unknown-tool-as-result"]),
    ]);
    let reports: Vec<Value> = serde_json::from_str(REPORTS).expect("reports");
    let mut judged = 0;
    for report in &reports {
        let id = report["id"].as_str().expect("an id");
        for input in report["inputs"].as_array().expect("inputs") {
            if input["type"] == "table" {
                continue;
            }
            let expected = expected.get(id).unwrap_or_else(|| panic!("{id} has no expectation"));
            assert_eq!(findings(&judge(input)), *expected, "{id}");
            assert_eq!(findings(&judge(&with_other_ids(input))), *expected, "{id} with other ids");
            judged += 1;
        }
    }
    assert_eq!(judged, expected.len());
}

fn input_of(id: &str) -> Value {
    let reports: Vec<Value> = serde_json::from_str(REPORTS).expect("reports");
    reports.into_iter().find(|report| report["id"] == id).expect(id)["inputs"][0].clone()
}

/// F56: all four ends of a call map to exactly one result.
#[test]
fn f56_a_protocol_error_becomes_one_result() {
    let output = judge(&input_of("F56"));
    let results = output["exchanges"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["is_error"], true);
    assert!(results[0]["text"].as_str().expect("text").contains("not found"));
}

/// F71: the answer "42" resolves b, not a.
#[test]
fn f71_the_text_42_resolves_b() {
    let output = judge(&input_of("F71"));
    assert_eq!(output["exchanges"][0]["matches"], json!([{"id": "42", "method": "b"}]));
}

/// F75: the table of a probe's answers, as a client of the specification reads them.
#[test]
fn f75_the_probe_table() {
    let client = ClientProfile::specification();
    let error = |code: i64, data: Option<Value>| {
        read_modern_error(&ErrorObject { code, message: String::new(), data }, &client)
    };
    for code in [-32601, -32602, -32600, -32000] {
        assert_eq!(error(code, None), ProbeAnswer::NotModern, "{code}: fall back");
    }
    assert_eq!(
        error(code::UNSUPPORTED_VERSION, Some(json!({"supported": ["2026-07-28", "2027-01-01"]}))),
        ProbeAnswer::RetryWith(Version::V2026_07_28)
    );
    assert!(matches!(
        error(code::UNSUPPORTED_VERSION, Some(json!({"supported": ["2027-01-01"]}))),
        ProbeAnswer::NoCommonModern { refused: true, legacy_named: false, modern_named: true }
    ));
    assert_eq!(
        read_discover(&json!({"supportedVersions": ["2026-07-28"]}), &client),
        ProbeAnswer::Modern(Version::V2026_07_28)
    );
}

/// F90 with the list that its schema comes from (F89's).
#[test]
fn f90_with_the_schema_shown() {
    let list = input_of("F89")["exchange"][0].clone();
    let answer = input_of("F90")["exchange"][0].clone();
    let output = judge(&json!({"type": "mcp", "exchange": [list, answer]}));
    let message = output["findings"][0]["message"].as_str().expect("a message");
    assert_eq!(message, "structuredContent.n is not a number");
}

/// F91 with a list that does not have the tool, and with an answer that says so.
#[test]
fn f91_with_the_list_shown() {
    let mut exchange = input_of("F91")["exchange"].as_array().expect("entries").clone();
    exchange.insert(0, json!(["s", {"id": 1, "result": {"tools": ["known"]}}]));
    let output = judge(&json!({"type": "mcp", "exchange": exchange}));
    assert_eq!(output["findings"][0]["severity"], "warning");
}

/// A clean exchange of each era, in full, has no findings; each mutant of it has one.
#[test]
fn clean_exchanges_are_clean_and_mutants_are_caught() {
    use windtunnel_model::mcp::negotiation::client::{CallSpec, Input};
    use windtunnel_model::mcp::negotiation::exchange::{Wire, play};
    use windtunnel_model::mcp::negotiation::messages::ClientIdentity;
    use windtunnel_model::mcp::negotiation::script::{
        Answer, Behaviour, IdFault, ScriptedTool, ServerScript,
    };
    use windtunnel_model::mcp::profile::Eras;

    let exchange = |behaviour: Behaviour, eras: Eras| {
        let tool = ScriptedTool { name: "t".into(), behaviour: vec![behaviour], ..ScriptedTool::default() };
        let script = ServerScript { tools: vec![tool], ..ServerScript::of_eras(eras) };
        let call = |call| {
            let (tool, arguments) = ("t".to_owned(), json!({}));
            Input::Call(CallSpec { call, tool, arguments, meta: Default::default(), timeout_ms: None })
        };
        let profile = ClientProfile::specification();
        let played = play(&profile, &ClientIdentity::new("c", "1"), &script, vec![call(0), call(1)]);
        let entries: Vec<Value> = played
            .wire
            .iter()
            .filter_map(|wire| match wire {
                Wire::FromClient { line } => Some(json!(["c-raw", line])),
                Wire::FromServer { line } => Some(json!(["s-raw", line])),
                Wire::Exited { code } => Some(json!(["s-exit", code])),
                Wire::Opened | Wire::ClosedByClient => None,
            })
            .collect();
        findings(&judge(&json!({"type": "mcp", "exchange": entries})))
    };
    let usual = Behaviour::default;
    for eras in Eras::ALL {
        assert_eq!(exchange(usual(), eras), Vec::<String>::new(), "{eras:?}");
        for (mutant, caught) in [
            (Behaviour { id: IdFault::OtherType, ..usual() }, "server id-type-changed"),
            (Behaviour { id: IdFault::Unknown, ..usual() }, "server answer-to-unknown-id"),
            (Behaviour { id: IdFault::Null, ..usual() }, "server answer-id-invalid"),
            (Behaviour { duplicate: true, ..usual() }, "server answer-to-unknown-id"),
            (Behaviour { raw_before: vec!["banner".into()], ..usual() }, "server not-json"),
            (Behaviour { raw_before: vec![r#"{"a":1}"#.into()], ..usual() }, "server not-a-message"),
            (Behaviour { answer: Answer::Exit(1), ..usual() }, "server exit-with-open-requests"),
            (
                Behaviour { answer: Answer::ExactResult(json!({"content": [{"type": "x"}]})), ..usual() },
                "server content-block-invalid",
            ),
            (
                Behaviour { answer: Answer::ExactResult(json!("text")), ..usual() },
                "server result-not-an-object",
            ),
        ] {
            let got = exchange(mutant.clone(), eras);
            assert!(got.iter().any(|finding| finding == caught), "{eras:?} {mutant:?}: {got:?}");
        }
    }
}
