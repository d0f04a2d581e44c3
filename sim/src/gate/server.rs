//! The MCP servers of a session whose hooks are run: their tools are listed, and `mcp_tool` handlers and the permission
//! prompt call them. One client for all: the machine of `model::mcp` over [`crate::mcp_client`].

use crate::mcp_client::{Driver, Target};
use crate::transport::stdio::{SHUTDOWN_SPECIFICATION, StdioSpec};
use serde_json::{Map, Value};
use std::time::Duration;
use windtunnel_model::mcp::ends::End;
use windtunnel_model::mcp::negotiation::client::{CallSpec, Input, ListKind};
use windtunnel_model::mcp::negotiation::messages::ClientIdentity;
use windtunnel_model::mcp::profile::ClientProfile;

/// How long the handshake, and one answer, may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// A tool as its server describes it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whether it is said to only read.
    pub read_only: bool,
}

/// A connected server.
#[derive(Debug)]
pub struct Server {
    driver: Driver,
    calls: u32,
}

impl Server {
    /// Starts a server and shakes hands.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub async fn start(spec: StdioSpec) -> Result<Self, String> {
        let identity = ClientIdentity::new("windtunnel", env!("CARGO_PKG_VERSION"));
        let mut driver =
            Driver::new(ClientProfile::claude_code(), identity, Target::Stdio(spec), &SHUTDOWN_SPECIFICATION);
        if driver.connect(DEADLINE).await {
            return Ok(Self { driver, calls: 0 });
        }
        let why = driver.failure.as_ref().map_or_else(
            || format!("it did not answer within {} s", DEADLINE.as_secs()),
            ToString::to_string,
        );
        driver.finish().await;
        Err(why)
    }

    /// The tools it offers.
    pub fn tools(&self) -> Vec<Listed> {
        self.driver
            .client()
            .list(ListKind::Tools)
            .iter()
            .filter_map(|tool| {
                let name = tool.get("name").and_then(Value::as_str)?.to_owned();
                let hint = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
                Some(Listed { name, read_only: hint.unwrap_or(false) })
            })
            .collect()
    }

    /// Calls a tool; the text of its result.
    ///
    /// # Errors
    /// When the server has no such tool, does not answer, or the result is an error.
    pub async fn call(&mut self, tool: &str, input: &Value) -> Result<String, String> {
        if !self.tools().iter().any(|listed| listed.name == tool) {
            return Err(format!("there is no tool `{tool}`"));
        }
        self.calls += 1;
        let call = self.calls;
        let spec = CallSpec {
            call,
            tool: tool.to_owned(),
            arguments: input.clone(),
            meta: Map::new(),
            timeout_ms: u64::try_from(DEADLINE.as_millis()).ok(),
        };
        self.driver.input(Input::Call(spec)).await;
        let answered = |driver: &Driver| driver.ends.iter().any(|(ended, _)| *ended == call);
        self.driver.until(DEADLINE + Duration::from_secs(1), answered).await;
        let end = self.driver.ends.iter().find(|(ended, _)| *ended == call).map(|(_, end)| end);
        match end {
            Some(End::Result(result)) => {
                let texts = result.get("content").and_then(Value::as_array).into_iter().flatten();
                let texts: Vec<&str> =
                    texts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
                let text = texts.join("\n");
                if result.get("isError").and_then(Value::as_bool) == Some(true) {
                    return Err(format!("the tool failed: {text}"));
                }
                Ok(text)
            }
            Some(End::ProtocolError(error)) => Err(error.message.clone()),
            Some(_) => Err(format!("`{tool}` ended without a result")),
            None => Err(format!("no answer to `{tool}`")),
        }
    }
}
