//! Hooks run for real: commands as processes, HTTP on loopback, MCP tools over stdio. Prompt and agent handlers need a
//! model: the case may tell what it answers; where it does not, no model can be reached, and they fail.
//!
//! What a hook leaves running lives until the session ends, as with the real harness; then it is killed.

use super::said::SaidHooks;
use super::{http, server};
use crate::process::environment::{PassEnv, child_environment};
use crate::process::{Group, child};
use crate::transport::stdio::StdioSpec;
use futures_order::finish_order;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use windtunnel_model::gate::Call;
use windtunnel_model::gate::pipeline::{Answers, AskedEnd, HookRuns};
use windtunnel_model::hooks::output::permission_answer;
use windtunnel_model::hooks::{
    EndStatus, Event, Handler, HandlerEnd, HandlerKind, PermissionAnswer, Selected,
};

/// Bytes kept of each output of a hook.
const OUTPUT_LIMIT: usize = 4 * 1024 * 1024;
/// The longest time any hook gets here, whatever its own limit says.
const LONGEST: f64 = 120.0;
/// The variable that marks the processes of one session.
const SESSION_MARKER: &str = "WINDTUNNEL_SESSION";

/// Where and how hooks run.
pub struct HookRunner {
    runtime: tokio::runtime::Runtime,
    /// The project folder.
    pub project: PathBuf,
    /// Home, as the hooks see it.
    pub home: PathBuf,
    /// Further variables.
    pub env: Vec<(String, String)>,
    /// What is passed on of our own environment.
    pub pass: PassEnv,
    /// Addresses that HTTP hooks may call; `None` is any.
    pub allowed_urls: Option<Vec<String>>,
    /// The tool that answers questions: server and tool.
    pub prompt_tool: Option<(String, String)>,
    /// What the model answers to prompt and agent handlers.
    pub model: SaidHooks,
    /// How often each handler ran, by file and pointer.
    pub ran: BTreeMap<(String, String), usize>,
    marker: String,
    servers: RefCell<BTreeMap<String, server::Server>>,
    groups: RefCell<Vec<Group>>,
}

/// A small helper module, so that the order of ends is taken in one place.
mod futures_order {
    use std::cell::RefCell;
    use std::future::Future;
    use std::time::{Duration, Instant};

    /// Ends closer together than this are taken in the order of configuration: what the scheduler of a busy machine
    /// decides is not the hooks' doing, and the observed harness shows that order for hooks that are equally fast.
    const TIE: Duration = Duration::from_millis(100);

    /// Awaits all futures together and notes the order in which they end.
    pub(super) async fn finish_order<T>(futures: Vec<impl Future<Output = T>>) -> (Vec<T>, Vec<usize>) {
        let order = RefCell::new(Vec::new());
        let mut slots: Vec<Option<T>> = futures.iter().map(|_| None).collect();
        {
            let mut pending: Vec<_> = futures
                .into_iter()
                .zip(slots.iter_mut())
                .enumerate()
                .map(|(index, (future, slot))| {
                    let order = &order;
                    Box::pin(async move {
                        *slot = Some(future.await);
                        order.borrow_mut().push((Instant::now(), index));
                    })
                })
                .collect();
            std::future::poll_fn(|context| {
                pending.retain_mut(|future| future.as_mut().poll(context).is_pending());
                if pending.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
        }
        (slots.into_iter().flatten().collect(), settle(&order.into_inner()))
    }

    /// The order of ends, ties settled: a tie is a run of ends within [`TIE`] of its first.
    fn settle(ends: &[(Instant, usize)]) -> Vec<usize> {
        let mut settled = Vec::with_capacity(ends.len());
        let mut rest = ends;
        while let Some((first, _)) = rest.first() {
            let length = rest.iter().take_while(|(end, _)| end.duration_since(*first) < TIE).count();
            let (tied, later) = rest.split_at(length.max(1));
            let mut tied: Vec<usize> = tied.iter().map(|(_, index)| *index).collect();
            tied.sort_unstable();
            settled.extend(tied);
            rest = later;
        }
        settled
    }

    #[cfg(test)]
    #[test]
    fn ends_close_together_keep_the_order_of_configuration() {
        let start = Instant::now();
        let at = |milliseconds: u64, index: usize| (start + Duration::from_millis(milliseconds), index);
        assert_eq!(settle(&[at(0, 1), at(5, 0), at(900, 3), at(950, 2)]), [0, 1, 2, 3]);
        assert_eq!(settle(&[at(0, 1), at(500, 0)]), [1, 0]);
        assert_eq!(settle(&[]), [0usize; 0]);
    }
}

impl HookRunner {
    /// A runner for one session; `session` makes its processes recognisable.
    ///
    /// # Errors
    /// When the operating system gives no event loop.
    pub fn new(project: PathBuf, home: PathBuf, session: u64) -> std::io::Result<Self> {
        Ok(Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            project,
            home,
            env: Vec::new(),
            pass: PassEnv::None,
            allowed_urls: None,
            prompt_tool: None,
            model: SaidHooks::default(),
            ran: BTreeMap::new(),
            marker: format!("{}-{session}", std::process::id()),
            servers: RefCell::default(),
            groups: RefCell::default(),
        })
    }

    fn environment(&self, event: Option<Event>) -> Vec<(OsString, OsString)> {
        child_environment(&self.pass, &self.variables(event))
    }

    /// The variables of the session's children, beside what is passed on of our own.
    fn variables(&self, event: Option<Event>) -> Vec<(String, String)> {
        let project = self.project.to_string_lossy().into_owned();
        let mut extra = vec![
            ("HOME".to_owned(), self.home.to_string_lossy().into_owned()),
            ("CLAUDE_PROJECT_DIR".to_owned(), project.clone()),
            ("CLAUDECODE".to_owned(), "1".to_owned()),
            ("CLAUDE_CODE_ENTRYPOINT".to_owned(), "sdk-cli".to_owned()),
            (SESSION_MARKER.to_owned(), self.marker.clone()),
        ];
        if event == Some(Event::SessionStart) {
            let file = self.home.join(".claude").join("session-env.sh");
            if file.parent().is_some_and(|parent| std::fs::create_dir_all(parent).is_ok()) {
                extra.push(("CLAUDE_ENV_FILE".to_owned(), file.to_string_lossy().into_owned()));
            }
        }
        extra.extend(self.env.iter().cloned());
        extra
    }

    /// Starts an MCP server and gives its tools.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn start_server(
        &self,
        name: &str,
        program: &str,
        args: &[String],
    ) -> Result<Vec<server::Listed>, String> {
        let command = child::CommandLine::Exec { program: program.to_owned(), args: args.to_vec() };
        let spec = StdioSpec {
            pass_env: self.pass.clone(),
            env: self.variables(None),
            ..StdioSpec::new(command, self.project.clone())
        };
        self.runtime.block_on(async {
            let server = server::Server::start(spec).await?;
            let tools = server.tools();
            self.servers.borrow_mut().insert(name.to_owned(), server);
            Ok(tools)
        })
    }

    fn note(&mut self, hooks: &[Selected<'_>]) {
        for hook in hooks {
            *self.ran.entry((hook.file.to_owned(), hook.handler.pointer.clone())).or_default() += 1;
        }
    }

    async fn run(&self, event: Event, handler: &Handler, payload: &Value) -> HandlerEnd {
        let limit = Duration::from_secs_f64(handler.time_limit(event).min(LONGEST));
        match &handler.kind {
            HandlerKind::Command { command, args } => {
                let line = match args {
                    None => child::CommandLine::Shell(command.clone()),
                    Some(args) => {
                        let project = self.project.to_string_lossy();
                        let expand = |text: &str| text.replace("${CLAUDE_PROJECT_DIR}", &project);
                        child::CommandLine::Exec {
                            program: expand(command),
                            args: args.iter().map(|arg| expand(arg)).collect(),
                        }
                    }
                };
                let background = handler.is_async();
                self.command(&line, event, payload, limit, background).await
            }
            HandlerKind::Http { url, headers, allowed_env } => {
                if event == Event::SessionStart {
                    return HandlerEnd::silent(EndStatus::CannotStart(
                        "http handlers are not called on SessionStart".to_owned(),
                    ));
                }
                let may = self.allowed_urls.as_ref().is_none_or(|patterns| {
                    patterns
                        .iter()
                        .any(|pattern| windtunnel_model::gate::rule::Wildcard::new(pattern).matches(url))
                });
                if !may {
                    let why = "the address is not in allowedHttpHookUrls".to_owned();
                    return HandlerEnd::silent(EndStatus::CannotStart(why));
                }
                let headers: Vec<(String, String)> = headers
                    .iter()
                    .map(|(name, value)| (name.clone(), self.expand(value, allowed_env)))
                    .collect();
                http::post(url, &headers, payload.to_string(), limit).await
            }
            HandlerKind::McpTool { server, tool, input } => {
                let input = substitute(input, payload);
                let taken = self.servers.borrow_mut().remove(server);
                let Some(mut running) = taken else {
                    let why = format!("server `{server}` is not connected");
                    return HandlerEnd::silent(EndStatus::CannotStart(why));
                };
                let end = match tokio::time::timeout(limit, running.call(tool, &input)).await {
                    Ok(Ok(text)) => {
                        HandlerEnd { status: EndStatus::McpResult, stdout: text, stderr: String::new() }
                    }
                    Ok(Err(why)) => HandlerEnd::silent(EndStatus::CannotStart(why)),
                    Err(_) => HandlerEnd::silent(EndStatus::Timeout),
                };
                self.servers.borrow_mut().insert(server.clone(), running);
                end
            }
            HandlerKind::Prompt { .. } | HandlerKind::Agent { .. } => match self.model.of(event, handler) {
                Some(said) => said.end,
                None => HandlerEnd::silent(EndStatus::CannotStart("no model can be reached".to_owned())),
            },
        }
    }

    fn expand(&self, text: &str, allowed: &[String]) -> String {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            let name = &after[..end];
            if allowed.iter().any(|known| known == name)
                && let Some((_, value)) = self.env.iter().find(|(known, _)| known == name)
            {
                expanded.push_str(value);
            }
            rest = &after[end..];
        }
        expanded.push_str(rest);
        expanded
    }

    async fn command(
        &self,
        line: &child::CommandLine,
        event: Event,
        payload: &Value,
        limit: Duration,
        background: bool,
    ) -> HandlerEnd {
        let cwd =
            payload.get("cwd").and_then(Value::as_str).map_or_else(|| self.project.clone(), PathBuf::from);
        let mut command = child::command(line, &cwd, &self.environment(Some(event)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(!background);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return HandlerEnd::silent(EndStatus::CannotStart(error.to_string())),
        };
        let Some(group) = child.id().and_then(Group::register) else {
            return HandlerEnd::silent(EndStatus::CannotStart("it has no process id".to_owned()));
        };
        let mut input = payload.to_string().into_bytes();
        input.push(b'\n');
        if background {
            child::feed(&mut child, input);
            self.groups.borrow_mut().push(group);
            return HandlerEnd::exited(0, "", "");
        }
        let end = child::wait(child, Some(&group), input, limit, OUTPUT_LIMIT).await;
        // What it left running lives until the session ends.
        self.groups.borrow_mut().push(group);
        end.handler_end()
    }

    /// Kills whatever the session left running, also what moved to a group of its own.
    pub fn end_session(&mut self) {
        self.servers.borrow_mut().clear();
        self.groups.borrow_mut().clear();
        let needle = format!("{SESSION_MARKER}={}", self.marker);
        crate::process::kill_with_environment(&needle);
    }
}

impl Drop for HookRunner {
    fn drop(&mut self) {
        self.end_session();
    }
}

impl Answers for HookRunner {
    fn run_hooks(&mut self, event: Event, hooks: &[Selected<'_>], payload: &Value) -> HookRuns {
        self.note(hooks);
        let (ends, finished) = self.runtime.block_on(async {
            finish_order(hooks.iter().map(|hook| self.run(event, hook.handler, payload)).collect()).await
        });
        HookRuns { ends: ends.into_iter().map(Some).collect(), finished }
    }

    fn ask(
        &mut self,
        hooks: &[Selected<'_>],
        payload: &Value,
        call: &Call<'_>,
        input: &Value,
    ) -> Vec<AskedEnd> {
        self.note(hooks);
        let prompt = self.prompt_tool.clone();
        let this: &Self = self;
        this.runtime.block_on(async {
            type Ending<'a> = std::pin::Pin<Box<dyn Future<Output = AskedEnd> + 'a>>;
            let mut endings: Vec<Ending<'_>> = Vec::new();
            if let Some((server, tool)) = &prompt {
                endings.push(Box::pin(async move {
                    let question =
                        serde_json::json!({"tool_name": call.tool, "input": input, "tool_use_id": call.id});
                    AskedEnd::PromptTool(this.ask_prompt_tool(server, tool, &question).await)
                }));
            }
            for (index, hook) in hooks.iter().enumerate() {
                endings.push(Box::pin(async move {
                    AskedEnd::Hook(index, this.run(Event::PermissionRequest, hook.handler, payload).await)
                }));
            }
            let (ends, order) = finish_order(endings).await;
            order.into_iter().filter_map(|index| ends.get(index).cloned()).collect()
        })
    }
}

impl HookRunner {
    async fn ask_prompt_tool(&self, server: &str, tool: &str, question: &Value) -> PermissionAnswer {
        let refused = |message: String| PermissionAnswer {
            allow: false,
            updated_input: None,
            updated_permissions: Vec::new(),
            message: Some(message),
            interrupt: false,
        };
        let taken = self.servers.borrow_mut().remove(server);
        let Some(mut running) = taken else { return refused(format!("server `{server}` is not connected")) };
        let answer = running.call(tool, question).await;
        self.servers.borrow_mut().insert(server.to_owned(), running);
        match answer.map(|text| serde_json::from_str::<Value>(&text)) {
            Ok(Ok(Value::Object(fields))) => permission_answer(&fields).unwrap_or_else(refused),
            Ok(_) => refused("the prompt tool's answer is not an object".to_owned()),
            Err(why) => refused(why),
        }
    }
}

/// `${path.to.field}` in the texts of an input; what is not there becomes empty.
fn substitute(input: &Value, payload: &Value) -> Value {
    match input {
        Value::String(text) => {
            let mut expanded = String::new();
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once("${") {
                expanded.push_str(before);
                let Some((path, behind)) = after.split_once('}') else { break };
                let found = path.split('.').try_fold(payload, |value, part| value.get(part));
                match found {
                    Some(Value::String(text)) => expanded.push_str(text),
                    Some(Value::Null) | None => {}
                    Some(other) => expanded.push_str(&other.to_string()),
                }
                rest = behind;
            }
            expanded.push_str(rest);
            Value::String(expanded)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| substitute(item, payload)).collect()),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), substitute(value, payload))).collect(),
        ),
        other => other.clone(),
    }
}
