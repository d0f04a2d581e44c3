//! The little of an MCP client that hooks and permission prompts need: list tools and call one, over stdio.

use crate::process::{Group, child};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

/// How long one answer may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// Lines that are read while waiting for one answer.
const LINE_LIMIT: usize = 10_000;

/// A tool as its server describes it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whether it is said to only read.
    pub read_only: bool,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
    _child: Child,
    _group: Option<Group>,
}

impl Server {
    /// Starts a server and shakes hands.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub async fn start(
        program: &str,
        args: &[String],
        cwd: &Path,
        env: &[(OsString, OsString)],
    ) -> Result<Self, String> {
        let line = child::CommandLine::Exec { program: program.to_owned(), args: args.to_vec() };
        let mut command = child::command(&line, cwd, env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let group = child.id().and_then(Group::register);
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no pipes".to_owned());
        };
        let mut server =
            Self { stdin, stdout: BufReader::new(stdout), next_id: 0, _child: child, _group: group };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "windtunnel", "version": env!("CARGO_PKG_VERSION")},
        });
        server.request("initialize", &hello).await?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(server)
    }

    /// The tools it offers.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn tools(&mut self) -> Result<Vec<Listed>, String> {
        let result = self.request("tools/list", &json!({})).await?;
        let tools = result.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(tools
            .iter()
            .filter_map(|tool| {
                let name = tool.get("name").and_then(Value::as_str)?.to_owned();
                let hint = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
                Some(Listed { name, read_only: hint.unwrap_or(false) })
            })
            .collect())
    }

    /// Calls a tool; the text of its result.
    ///
    /// # Errors
    /// When it does not answer, or the result is an error.
    pub async fn call(&mut self, tool: &str, input: &Value) -> Result<String, String> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": input})).await?;
        let texts = result.get("content").and_then(Value::as_array).into_iter().flatten();
        let text: String =
            texts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n");
        if result.get("isError").and_then(Value::as_bool) == Some(true) {
            return Err(format!("the tool failed: {text}"));
        }
        Ok(text)
    }

    async fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        self.stdin.write_all(line.as_bytes()).await.map_err(|error| error.to_string())?;
        self.stdin.flush().await.map_err(|error| error.to_string())
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        match tokio::time::timeout(DEADLINE, self.answer(id)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer to {method}")),
        }
    }

    async fn answer(&mut self, id: u64) -> Result<Value, String> {
        for _ in 0..LINE_LIMIT {
            let mut line = String::new();
            if self.stdout.read_line(&mut line).await.map_err(|error| error.to_string())? == 0 {
                return Err("the server is gone".to_owned());
            }
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if message.get("id").and_then(Value::as_u64) != Some(id) {
                continue;
            }
            if let Some(error) = message.get("error") {
                return Err(error.get("message").and_then(Value::as_str).unwrap_or("an error").to_owned());
            }
            return Ok(message.get("result").cloned().unwrap_or_default());
        }
        Err("too much output without an answer".to_owned())
    }
}
