//! `windtunnel mcp conformance-client URL`: what the protocol's official conformance tool runs as the client under
//! test. The scenario comes in `MCP_CONFORMANCE_SCENARIO`, its revision in `MCP_CONFORMANCE_PROTOCOL_VERSION`, the
//! calls to make in `MCP_CONFORMANCE_CONTEXT` (mcp.md section 5).

use crate::cli::{CliError, Exit, Io};
use crate::mcp_client::{Driver, Target};
use serde_json::{Map, Value, json};
use std::time::Duration;
use windtunnel_model::mcp::catalogue::{ServerTools, lint};
use windtunnel_model::mcp::negotiation::client::{CallSpec, Input, ListKind};
use windtunnel_model::mcp::negotiation::messages::{ClientIdentity, Elicitation};
use windtunnel_model::mcp::profile::{ClientProfile, Eras};
use windtunnel_model::mcp::version::{Era, Version};

/// Arguments of `mcp conformance-client`.
#[derive(Debug, clap::Args)]
pub struct ConformanceArgs {
    /// The scenario server's endpoint.
    url: String,
    /// The revision that is tested; legacy ones are spoken by a legacy client, modern ones by a modern one.
    #[arg(long, env = "MCP_CONFORMANCE_PROTOCOL_VERSION")]
    protocol_version: Option<Version>,
    /// The context that the tool gives, JSON.
    #[arg(long, env = "MCP_CONFORMANCE_CONTEXT")]
    context: Option<String>,
}

/// The limit of one step: the tool's own limit is 30 s a scenario.
const STEP: Duration = Duration::from_secs(20);

/// Connects, uses everything that the server offers once, and disconnects.
///
/// # Errors
/// When the context is not JSON.
pub fn run(args: &ConformanceArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let context: Value = match &args.context {
        None => Value::Null,
        Some(text) => serde_json::from_str(text)
            .map_err(|error| CliError::input(format!("MCP_CONFORMANCE_CONTEXT: {error}")))?,
    };
    let eras = match args.protocol_version.map(Version::era) {
        Some(Era::Legacy) => Eras::Legacy,
        Some(Era::Modern) => Eras::Modern,
        None => Eras::Dual,
    };
    let profile = ClientProfile {
        discovers: true,
        listen_timeout_ms: None,
        call_timeout_ms: 15_000,
        connect_timeout_ms: 20_000,
        ..ClientProfile::specification().with_eras(eras)
    };
    let identity = ClientIdentity {
        capabilities: json!({"elicitation": {"form": {}}}),
        elicitation: Elicitation::AcceptDefaults,
        ..ClientIdentity::new("windtunnel", env!("CARGO_PKG_VERSION"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let failure = runtime.block_on(async {
        let mut driver = Driver::new(profile, identity, Target::Http(args.url.clone()), &[]);
        if !driver.connect(STEP).await {
            let reason =
                driver.failure.as_ref().map_or("not connected in time".to_owned(), ToString::to_string);
            return Some(reason);
        }
        use_everything(&mut driver, &context).await;
        driver.finish().await;
        None
    });
    match failure {
        None => Ok(Exit::Holds),
        Some(reason) => {
            writeln!(io.stderr, "error: {reason}")?;
            Ok(Exit::Refuted)
        }
    }
}

/// Calls what the context says, else every tool once with arguments that its schema suggests; all at the same time, so
/// that answers can cross. Then reads every resource and gets every prompt.
async fn use_everything(driver: &mut Driver, context: &Value) {
    let usable = usable_tools(driver.client().list(ListKind::Tools));
    let calls: Vec<(String, Value)> = match context.get("toolCalls").and_then(Value::as_array) {
        Some(calls) => calls
            .iter()
            .filter_map(|call| {
                let name = call.get("name")?.as_str()?.to_owned();
                Some((name, call.get("arguments").cloned().unwrap_or_else(|| json!({}))))
            })
            .filter(|(name, _)| {
                usable.iter().any(|tool| tool.get("name").and_then(Value::as_str) == Some(name))
            })
            .collect(),
        None => usable
            .iter()
            .filter_map(|tool| {
                let name = tool.get("name")?.as_str()?.to_owned();
                let others = usable.iter().find(|other| *other != tool);
                Some((name, suggested(tool.get("inputSchema").unwrap_or(&Value::Null), others)))
            })
            .collect(),
    };
    let mut number = 0;
    let mut inputs = Vec::new();
    for (tool, arguments) in calls {
        inputs.push(Input::Call(CallSpec {
            call: number,
            tool,
            arguments,
            meta: Map::new(),
            timeout_ms: None,
        }));
        number += 1;
    }
    for (kind, key, method) in
        [(ListKind::Resources, "uri", "resources/read"), (ListKind::Prompts, "name", "prompts/get")]
    {
        for item in driver.client().list(kind) {
            let Some(name) = item.get(key) else { continue };
            let params = Some(json!({key: name}));
            inputs.push(Input::Request { call: number, method: method.to_owned(), params });
            number += 1;
        }
    }
    let count = inputs.len();
    for input in inputs {
        driver.input(input).await;
    }
    driver.until(STEP, |driver| driver.ends.len() >= count).await;
}

/// The tools that may be used over HTTP: those with an invalid `x-mcp-header` are dropped (mcp.md 1.12).
fn usable_tools(tools: &[Value]) -> Vec<Value> {
    tools
        .iter()
        .filter(|tool| {
            let catalogue =
                ServerTools { server: None, pointer: String::new(), tools: std::slice::from_ref(tool) };
            !lint(&[catalogue]).iter().any(|(_, finding)| finding.id == "header-annotation-invalid")
        })
        .cloned()
        .collect()
}

/// Arguments that fit a simple schema: the required properties, each with a value of its type. An object named `schema`
/// is given another tool's input schema as it was listed: tools that echo it show whether the client keeps it whole.
fn suggested(schema: &Value, other: Option<&Value>) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let mut arguments = Map::new();
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let property = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Null);
        let first = property.get("enum").and_then(Value::as_array).and_then(|values| values.first());
        let value = property.get("default").or(first).cloned().unwrap_or_else(|| {
            match property.get("type").and_then(Value::as_str) {
                Some("number" | "integer") => 1.into(),
                Some("boolean") => true.into(),
                Some("array") => json!([]),
                Some("object") if name == "schema" => {
                    other.and_then(|other| other.get("inputSchema")).cloned().unwrap_or_else(|| json!({}))
                }
                Some("object") => json!({}),
                _ => "text".into(),
            }
        });
        arguments.insert(name.to_owned(), value);
    }
    Value::Object(arguments)
}
