//! Running one case: a workspace of its own, a session, the calls in order, each compared with what is expected.

use super::case::{Case, CaseCall, CaseServer};
use super::effects::{self, ToolEnd};
use super::files::Disk;
use super::load::{self, Flags, Inputs};
use super::run_hooks::HookRunner;
use super::said::SaidHooks;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use windtunnel_model::gate::pipeline::{Answers, Call, DecidedBy, Outcome, Session};
use windtunnel_model::gate::tools::{McpTool, ToolTable};
use windtunnel_model::hooks::payload::payload;
use windtunnel_model::hooks::{Event, HookDecision, interpret};
use windtunnel_model::profile::Profile;
use windtunnel_model::sources::settings::Level;

/// How a case is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether hooks are really run.
    pub run_hooks: bool,
    /// The profile.
    pub profile: Profile,
    /// The folder of the short form.
    pub cwd: PathBuf,
    /// Home of the short form.
    pub home: Option<PathBuf>,
}

/// What became of one call.
#[derive(Clone, Debug, Serialize)]
pub struct CallResult {
    /// The case.
    pub case: String,
    /// The call.
    pub call: String,
    /// What was expected.
    pub expected: String,
    /// What the gate says.
    pub got: String,
    /// Who decided.
    pub decided_by: Option<DecidedBy>,
    /// `holds`, `refuted`, `unknown` or `skipped`.
    pub verdict: &'static str,
    /// Why, where it is not plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Rules and handlers, and which of them took part in a decision.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// All, by file and pointer or text.
    pub all: BTreeSet<String>,
    /// Those that took part.
    pub exercised: BTreeSet<String>,
}

/// The outcome of a case.
#[derive(Clone, Debug, Default)]
pub struct CaseResult {
    /// One line a call.
    pub calls: Vec<CallResult>,
    /// What was exercised.
    pub coverage: Coverage,
}

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Runs a case.
///
/// # Errors
/// When its workspace cannot be built.
pub fn run(case: &Case, options: &Options) -> Result<CaseResult, String> {
    let place = Place::build(case, options)?;
    let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
    let mut runner = if options.run_hooks {
        let runner = HookRunner::new(place.project.clone(), place.home.clone(), number);
        Some(runner.map_err(|error| format!("no event loop: {error}"))?)
    } else {
        None
    };
    let mut tools =
        ToolTable { tool_search: !has_env(case, "ENABLE_TOOL_SEARCH", "false"), ..ToolTable::default() };
    load::skills_below(&place.project, &mut tools);
    load::skills_below(&place.home, &mut tools);
    if let Some(runner) = &mut runner {
        runner.env.clone_from(&case.env);
        runner.model.clone_from(&case.hooks_say);
    }
    start_servers(case, runner.as_ref(), &mut tools)?;
    let inputs = place.inputs(case, options, tools);
    let (mut session, _) = load::session(&inputs);
    if let Some(runner) = &mut runner {
        runner.allowed_urls.clone_from(&session.merged.allowed_http_urls);
        runner.env.extend(session.merged.env.iter().cloned());
        runner.prompt_tool = session.prompt_tool.as_deref().and_then(|name| {
            let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
            Some((server.to_owned(), tool.to_owned()))
        });
    }
    let mut said = case.hooks_say.clone();
    let mut world = World { runner, said: &mut said };
    let mut result = CaseResult { coverage: everything(&session), ..CaseResult::default() };
    if !start_session(&session, world.answers()) {
        for call in &case.calls {
            push(&mut result, case, call, "not reached", None, Some("the prompt was blocked".to_owned()));
        }
        return Ok(result);
    }
    let mut aborted = false;
    let mut hook_runs = 0;
    for call in &case.calls {
        if call.tool.starts_with('(') {
            continue;
        }
        if aborted {
            push(&mut result, case, call, "not reached", None, Some("the run was aborted".to_owned()));
            continue;
        }
        let input = place.expand(&call.input);
        let parent =
            call.id.split_once('/').and_then(|(parent, _)| case.calls.iter().find(|c| c.id == parent));
        let kind = parent
            .and_then(|p| p.input.get("subagent_type"))
            .and_then(Value::as_str)
            .unwrap_or("general-purpose");
        let background =
            parent.is_some_and(|p| p.input.get("run_in_background").and_then(Value::as_bool) != Some(false));
        let asked = Call {
            id: &call.id,
            tool: &call.tool,
            input: &input,
            background,
            agent: parent.map(|p| (p.id.as_str(), kind)),
        };
        let judgement = session.judge(&asked, &Disk, world.answers());
        hook_runs += judgement.hook_runs;
        for rule in &judgement.rules {
            result.coverage.exercised.insert(session.rule_text(*rule));
        }
        for (file, pointer) in &judgement.handlers {
            result.coverage.exercised.insert(format!("hook {file}{pointer}"));
        }
        let mut fails = false;
        if judgement.outcome == Outcome::Run && place.is_own {
            let end = effects::apply(&mut session, &place.root, &call.tool, &judgement.input);
            fails = end == ToolEnd::Failure;
            hook_runs += after_call(&session, &asked, &judgement.input, end, world.answers());
            reload_if_changed(&mut session, &place, case, options, world.answers());
        }
        aborted = judgement.aborts;
        let got = judgement.outcome.word();
        let got = match case.expect.iter().find(|(id, _)| *id == call.id).and_then(|(_, e)| e.as_str()) {
            // `run with FIELD VALUE`: the input as it would run.
            Some(expected) if judgement.outcome == Outcome::Run && expected.starts_with("run with ") => {
                let field = expected.split(' ').nth(2).unwrap_or("");
                let value = judgement.input.get(field).and_then(Value::as_str).unwrap_or("");
                let shown = value.strip_prefix(&format!("{}/", place.project.display())).unwrap_or(value);
                format!("run with {field} {shown}")
            }
            _ => got.to_owned(),
        };
        let mut reason = (judgement.outcome == Outcome::Unknown).then(|| judgement.decided_by.text.clone());
        // A call that is let through and then fails by itself ran, and ended in an error: either word describes it.
        let expects_error = case.expect.iter().any(|(id, e)| *id == call.id && e == "error");
        let got = if fails && expects_error {
            reason = Some("let through by the gate; the command itself fails".to_owned());
            "error".to_owned()
        } else {
            got
        };
        push(&mut result, case, call, &got, Some(judgement.decided_by), reason);
    }
    if options.run_hooks {
        compare_rest(case, &place, hook_runs, &mut result);
    }
    Ok(result)
}

fn has_env(case: &Case, name: &str, value: &str) -> bool {
    case.env.iter().any(|(n, v)| n == name && v == value)
}

/// What a case expects besides the calls: how often hooks ran, and what they logged.
fn compare_rest(case: &Case, place: &Place, hook_runs: usize, result: &mut CaseResult) {
    for (name, expected) in &case.expect {
        let got = match name.as_str() {
            "hook_runs" => Value::from(hook_runs),
            "log" => {
                let text = std::fs::read_to_string(place.project.join("log.txt")).unwrap_or_default();
                Value::from(text.lines().map(str::to_owned).collect::<Vec<_>>())
            }
            _ => continue,
        };
        result.calls.push(CallResult {
            case: case.id.clone(),
            call: format!("({name})"),
            expected: expected.to_string(),
            got: got.to_string(),
            decided_by: None,
            verdict: if got == *expected { "holds" } else { "refuted" },
            reason: None,
        });
    }
}

fn push(
    result: &mut CaseResult,
    case: &Case,
    call: &CaseCall,
    got: &str,
    decided_by: Option<DecidedBy>,
    reason: Option<String>,
) {
    let Some(expected) = case.expect.iter().find(|(id, _)| *id == call.id).and_then(|(_, e)| e.as_str())
    else {
        return;
    };
    let verdict = if got == expected {
        "holds"
    } else if got == "unknown" {
        "unknown"
    } else {
        "refuted"
    };
    result.calls.push(CallResult {
        case: case.id.clone(),
        call: call.id.clone(),
        expected: expected.to_owned(),
        got: got.to_owned(),
        decided_by,
        verdict,
        reason,
    });
}

/// Every rule and handler in force.
pub fn everything(session: &Session) -> Coverage {
    let mut coverage = Coverage::default();
    for index in 0..session.merged.rules.len() {
        coverage.all.insert(session.rule_text(u32::try_from(index).unwrap_or(u32::MAX)));
    }
    for source in &session.hooks.sources {
        let groups = source
            .config
            .events
            .iter()
            .filter(|(event, _)| matches!(event, Event::PreToolUse | Event::PermissionRequest));
        for handler in groups.flat_map(|(_, groups)| groups).flat_map(|group| &group.handlers) {
            coverage.all.insert(format!("hook {}{}", source.file, handler.pointer));
        }
    }
    coverage
}

struct World<'a> {
    runner: Option<HookRunner>,
    said: &'a mut SaidHooks,
}

impl World<'_> {
    fn answers(&mut self) -> &mut dyn Answers {
        match &mut self.runner {
            Some(runner) => runner,
            None => self.said,
        }
    }
}

fn start_servers(case: &Case, runner: Option<&HookRunner>, tools: &mut ToolTable) -> Result<(), String> {
    for (name, server) in &case.servers {
        let visible: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
            .collect();
        match server {
            CaseServer::Tools(names) => {
                for tool in names {
                    tools.mcp.insert(format!("mcp__{visible}__{tool}"), McpTool::default());
                }
            }
            CaseServer::Command { program, args } => {
                let Some(runner) = runner else {
                    return Err(format!("server `{name}` has to be started: use --run-hooks"));
                };
                for tool in runner
                    .start_server(name, program, args)
                    .map_err(|why| format!("server `{name}`: {why}"))?
                {
                    let entry = McpTool { read_only: tool.read_only };
                    tools.mcp.insert(format!("mcp__{visible}__{}", tool.name), entry);
                }
            }
        }
    }
    Ok(())
}

/// SessionStart and UserPromptSubmit; `false` when the prompt is blocked.
fn start_session(session: &Session, answers: &mut dyn Answers) -> bool {
    let mut common = session.common.clone();
    common.cwd.clone_from(&session.workspace.cwd);
    let always = |_: &str| false;
    for (event, field, value) in
        [(Event::SessionStart, "source", "startup"), (Event::UserPromptSubmit, "prompt", "go")]
    {
        let hooks = session.hooks.select(event, value, &always, &session.profile.hooks);
        if hooks.is_empty() {
            continue;
        }
        let mut own = serde_json::Map::new();
        own.insert(field.to_owned(), value.into());
        let runs = answers.run_hooks(event, &hooks, &payload(event, &common, own));
        if event == Event::UserPromptSubmit {
            let blocks = hooks.iter().zip(&runs.ends).any(|(hook, end)| {
                end.as_ref().is_some_and(|end| {
                    let verdict = interpret(event, hook.handler, end, &session.profile.hooks);
                    verdict.decision == HookDecision::Deny || verdict.prevent_continuation
                })
            });
            if blocks {
                return false;
            }
        }
    }
    true
}

/// The events after a call that ran; how many handlers they started.
fn after_call(
    session: &Session,
    call: &Call<'_>,
    input: &Value,
    end: ToolEnd,
    answers: &mut dyn Answers,
) -> usize {
    let event = if end == ToolEnd::Failure { Event::PostToolUseFailure } else { Event::PostToolUse };
    let hooks = session.handlers(&session.hooks, event, call.tool, input);
    if hooks.is_empty() {
        return 0;
    }
    let mut common = session.common.clone();
    common.cwd.clone_from(&session.workspace.cwd);
    let own = windtunnel_model::hooks::payload::tool_fields(event, call.tool, input, call.id);
    answers.run_hooks(event, &hooks, &payload(event, &common, own));
    hooks.len()
}

/// A settings file that a call changed counts from then on, unless a ConfigChange hook blocks that.
fn reload_if_changed(
    session: &mut Session,
    place: &Place,
    case: &Case,
    options: &Options,
    answers: &mut dyn Answers,
) {
    let inputs = place.inputs(case, options, session.policy.tools.clone());
    let changed = inputs.files.iter().any(|file| {
        !session.merged.files.iter().any(|(name, text)| *name == file.name && *text == file.text)
    });
    if !changed {
        return;
    }
    let hooks =
        session.hooks.select(Event::ConfigChange, "project_settings", &|_| false, &session.profile.hooks);
    if !hooks.is_empty() {
        let mut common = session.common.clone();
        common.cwd.clone_from(&session.workspace.cwd);
        let mut own = serde_json::Map::new();
        own.insert("source".to_owned(), "project_settings".into());
        let runs =
            answers.run_hooks(Event::ConfigChange, &hooks, &payload(Event::ConfigChange, &common, own));
        let blocked = hooks.iter().zip(&runs.ends).any(|(hook, end)| {
            end.as_ref().is_some_and(|end| {
                interpret(Event::ConfigChange, hook.handler, end, &session.profile.hooks).decision
                    == HookDecision::Deny
            })
        });
        if blocked {
            return;
        }
    }
    let (mut fresh, _) = load::session(&inputs);
    fresh.workspace.cwd.clone_from(&session.workspace.cwd);
    fresh.read_files.clone_from(&session.read_files);
    *session = fresh;
}

/// Where a case is judged.
struct Place {
    root: PathBuf,
    project: PathBuf,
    home: PathBuf,
    managed: Option<PathBuf>,
    is_own: bool,
    _temporary: Option<tempfile::TempDir>,
}

impl Place {
    fn build(case: &Case, options: &Options) -> Result<Self, String> {
        let Some(settings) = &case.settings else {
            let project = options.cwd.canonicalize().map_err(|error| error.to_string())?;
            let home = load::home_or_none(options.home.as_deref());
            return Ok(Self {
                root: project.clone(),
                project,
                home,
                managed: None,
                is_own: false,
                _temporary: None,
            });
        };
        let temporary = tempfile::Builder::new().prefix("windtunnel-gate-").tempdir();
        let temporary = temporary.map_err(|error| format!("no temporary folder: {error}"))?;
        let root = temporary.path().canonicalize().map_err(|error| error.to_string())?;
        let mut place = Self {
            project: root.join("ws"),
            home: root.join("home"),
            managed: None,
            root,
            is_own: true,
            _temporary: Some(temporary),
        };
        place.fill(case, settings).map_err(|error| format!("the workspace cannot be built: {error}"))?;
        Ok(place)
    }

    fn fill(&mut self, case: &Case, settings: &[(Level, String)]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.project)?;
        std::fs::create_dir_all(&self.home)?;
        for (level, text) in settings {
            let path = match level {
                Level::User => self.home.join(".claude/settings.json"),
                Level::Project => self.project.join(".claude/settings.json"),
                Level::Local => self.project.join(".claude/settings.local.json"),
                _ => self.root.join("managed-settings.json"),
            };
            put(&path, &self.expand_text(text))?;
            if *level == Level::Managed {
                self.managed = Some(path);
            }
        }
        for (name, text) in &case.files {
            put(&self.project.join(name), text)?;
        }
        for (name, text) in &case.home_files {
            put(&self.home.join(name), &self.expand_text(text))?;
        }
        Ok(())
    }

    fn expand_text(&self, text: &str) -> String {
        text.replace("$WS", &self.project.to_string_lossy())
    }

    fn expand(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand_text(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.expand(item)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), self.expand(value))).collect())
            }
            other => other.clone(),
        }
    }

    fn inputs(&self, case: &Case, options: &Options, tools: ToolTable) -> Inputs {
        let project = self.project.to_string_lossy().into_owned();
        let trusted = case.trusted.unwrap_or_else(|| load::is_trusted(&self.home, &project));
        let flags: Flags = case.flags.clone();
        Inputs {
            files: load::hierarchy(&self.project, Some(&self.home), self.managed.as_deref()),
            flags,
            trusted,
            project,
            home: self.home.to_string_lossy().into_owned(),
            tools,
            profile: options.profile,
        }
    }
}

fn put(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, text)
}
