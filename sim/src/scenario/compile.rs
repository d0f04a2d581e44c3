//! From a scenario to a session and a closed world: settings, servers, tools, hooks, replies and calls are compiled, and
//! every name that the world part uses is checked against them.

use super::load::{Loaded, ScenarioError};
use super::rules::SettingsRules;
use super::servers::{behaviour_of, handshake, scripted_entries};
use super::{HookEntry, LimitsPart, ReplyEntry, ToolEntry, UserEntry};
use crate::world::closed::{Alternative, ClosedWorld, HookAnswer, ReplyAnswer, Steps, ToolAnswer};
use crate::world::player::Player;
use serde_json::Value;
use std::collections::BTreeMap;
use windtunnel_model::agent_loop::{CallRef, Config, HookRef, Limits, Server as ServerInfo};
use windtunnel_model::gate::facts::MemoryFiles;
use windtunnel_model::gate::mode::Mode;
use windtunnel_model::gate::permission::Policy;
use windtunnel_model::gate::tools::{McpTool, ToolTable};
use windtunnel_model::gate::workspace::Workspace;
use windtunnel_model::hooks::{EndStatus, HandlerEnd};
use windtunnel_model::invariants::InvariantSet;
use windtunnel_model::mcp::names::qualify;
use windtunnel_model::mcp::negotiation::script::ServerScript;
use windtunnel_model::profile::{Profile, ProfileName};
use windtunnel_model::session::{Catalogue, ClientVersions, Session, ToolSpec};
use windtunnel_model::sources::{merge, settings};
use windtunnel_model::tools::BuiltIn;
use windtunnel_model::trace::{Reply, ReplyCall};

/// The workspace's path inside the model; a process run puts its own in its place.
pub const WORKSPACE: &str = "/workspace";
/// The home folder inside the model.
pub const HOME: &str = "/home/user";

/// A scenario, ready to run in one profile.
#[derive(Debug)]
pub struct Compiled {
    /// The session, not started.
    pub session: Session,
    /// The world, closed: every answer that it can give is known.
    pub world: ClosedWorld,
    /// Scripts of the scripted servers, by name.
    pub scripts: BTreeMap<String, ServerScript>,
    /// The workspace in which the gate judges.
    pub workspace: Workspace,
    /// Gives the world's choices their payloads.
    pub player: Player,
}

/// Where the gate looks: the files of the scenario, in a workspace of this path.
#[derive(Clone, Debug)]
pub struct Place {
    /// The workspace's absolute path.
    pub workspace: String,
    /// The home folder's absolute path.
    pub home: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { workspace: WORKSPACE.to_owned(), home: HOME.to_owned() }
    }
}

/// Compiles a scenario in a profile.
///
/// # Errors
/// What in the scenario cannot be compiled, with its place.
pub fn compile(loaded: &Loaded, profile: ProfileName, place: &Place) -> Result<Compiled, Box<ScenarioError>> {
    Compiler::new(loaded, profile, place).compile()
}

/// Compiles one entry at a JSON pointer.
type CompileEntry<'f, 'e, E, A> = &'f mut dyn FnMut(&'e E, &str) -> Result<A, Box<ScenarioError>>;

pub(super) struct Compiler<'a> {
    loaded: &'a Loaded,
    profile: Profile,
    place: &'a Place,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(loaded: &'a Loaded, profile: ProfileName, place: &'a Place) -> Self {
        Self { loaded, profile: profile.profile(), place }
    }

    fn error(&self, pointer: &str, message: impl Into<String>) -> Box<ScenarioError> {
        ScenarioError::at_pointer(&self.loaded.file, &self.loaded.text, pointer, message)
    }

    fn compile(&self) -> Result<Compiled, Box<ScenarioError>> {
        let scenario = &self.loaded.scenario;
        self.check_words()?;
        let scripts = self.scripts()?;
        let (rules, merged, workspace) = self.rules(&scripts)?;
        let mut config = Config::new(self.profile);
        config.limits = self.limits(&scenario.harness.limits)?;
        config.answerable = !scenario.world.user.is_empty();
        let names: Vec<&String> = self.server_names();
        for name in &names {
            let info = ServerInfo { name: (*name).clone(), lists: Vec::new() };
            config.servers.try_push(info).map_err(|_| {
                self.error(
                    "/world/servers",
                    "more than 8 servers: a capacity of the model's state (MAX_SERVERS)",
                )
            })?;
        }
        let hooks = merged.hooks.sources.iter().map(|source| (source.level, source.config.clone())).collect();
        let mut catalogue = Catalogue::new(hooks, Box::new(rules), false);
        for tool in BuiltIn::ALL {
            catalogue.add_tool(
                &mut config,
                ToolSpec {
                    name: tool.name().to_owned(),
                    description: tool.description().to_owned(),
                    schema: tool.schema(),
                    read_only: tool.is_read_only(),
                    server: None,
                    own_name: tool.name().to_owned(),
                },
            );
        }
        let mut versions = ClientVersions::default();
        if let Some(version) = &scenario.harness.mcp_version {
            versions.preferred.clone_from(version);
        }
        let mut session = Session::new(config, catalogue, versions, InvariantSet::all());
        for (name, script) in &scripts {
            let tools: Vec<Value> = script.tools.iter().map(|tool| tool.definition()).collect();
            session
                .declare_list(name, &tools)
                .map_err(|error| self.error("/world/servers", error.to_string()))?;
        }
        session.register_run_hooks().map_err(|error| self.error("/harness/settings", error.to_string()))?;
        let world = self.world(&mut session, &scripts, &names)?;
        Ok(Compiled { session, world, scripts, workspace, player: Player::default() })
    }

    /// Names that must be one of a list.
    fn check_words(&self) -> Result<(), Box<ScenarioError>> {
        use windtunnel_model::agent_loop::{CallEnd, EndReason};
        let scenario = &self.loaded.scenario;
        for (index, profile) in scenario.profiles.iter().enumerate() {
            profile
                .parse::<ProfileName>()
                .map_err(|error| self.error(&format!("/profiles/{index}"), error.to_string()))?;
        }
        let common = ("/expect".to_owned(), &scenario.expect);
        let own = scenario.expect_in.iter().map(|(profile, e)| (format!("/expect_in/{profile}"), e));
        for (pointer, expect) in std::iter::once(common).chain(own) {
            if let Some(profile) = pointer.strip_prefix("/expect_in/") {
                profile.parse::<ProfileName>().map_err(|error| self.error(&pointer, error.to_string()))?;
            }
            if let Some(end) = &expect.end
                && !EndReason::ALL.iter().any(|reason| reason.word() == end)
            {
                let words: Vec<&str> = EndReason::ALL.iter().map(|reason| reason.word()).collect();
                let message = format!("found end `{end}`, expected one of {}", words.join(", "));
                return Err(self.error(&format!("{pointer}/end"), message));
            }
            for (id, end) in &expect.calls {
                if end != "no result" && !CallEnd::ALL.iter().any(|known| known.word() == end) {
                    let words: Vec<&str> = CallEnd::ALL.iter().map(|end| end.word()).collect();
                    let message = format!(
                        "found `{end}` for call `{id}`, expected `no result` or one of {}",
                        words.join(", ")
                    );
                    return Err(self.error(&format!("{pointer}/calls/{id}"), message));
                }
            }
            for (index, name) in expect.breaks.iter().enumerate() {
                name.parse::<windtunnel_model::invariants::Invariant>()
                    .map_err(|error| self.error(&format!("{pointer}/breaks/{index}"), error.to_string()))?;
            }
        }
        for path in scenario.files.keys() {
            let inside = !path.is_empty()
                && !path.starts_with('/')
                && path.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
            if !inside {
                return Err(self.error(
                    "/files",
                    format!("found the path `{path}`, expected a path inside the workspace"),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn scripts(&self) -> Result<BTreeMap<String, ServerScript>, Box<ScenarioError>> {
        let servers = &self.loaded.scenario.world.servers;
        servers
            .iter()
            .map(|(name, value)| {
                let mut script: ServerScript = serde_path_to_error::deserialize(value).map_err(|error| {
                    let path = error.path().to_string().replace(['.', '['], "/").replace(']', "");
                    self.error(&format!("/world/servers/{name}/{path}"), error.inner().to_string())
                        .with_hint("a server's part is a script of `windtunnel mcp serve`")
                })?;
                self.add_behaviours(name, &mut script);
                Ok((name.clone(), script))
            })
            .collect()
    }

    /// The world's `tools` also say how a scripted server's tools behave as a process.
    fn add_behaviours(&self, server: &str, script: &mut ServerScript) {
        for tool in &mut script.tools {
            let entries = self.loaded.scenario.world.tools.get(&qualify(server, &tool.name));
            if let Some(entries) = entries.filter(|_| tool.behaviour.is_empty()) {
                tool.behaviour = entries.iter().map(|entry| behaviour_of(first(entry))).collect();
            }
        }
    }

    fn server_names(&self) -> Vec<&String> {
        let scenario = &self.loaded.scenario;
        let mut names: Vec<&String> = scenario.harness.mcp_servers.keys().collect();
        names.extend(scenario.world.servers.keys());
        names.sort();
        names.dedup();
        names
    }

    pub(super) fn rules(
        &self,
        scripts: &BTreeMap<String, ServerScript>,
    ) -> Result<(SettingsRules, merge::Merged, Workspace), Box<ScenarioError>> {
        let part = &self.loaded.scenario.harness.settings;
        let levels = [
            (settings::Level::User, &part.user, "user"),
            (settings::Level::Project, &part.project, "project"),
            (settings::Level::Local, &part.local, "local"),
            (settings::Level::Managed, &part.managed, "managed"),
        ];
        let mut files = Vec::new();
        for (level, value, word) in levels {
            let Some(value) = value else { continue };
            let (settings, findings) =
                settings::load(level, word, &value.to_string(), &self.profile.settings);
            if let Some(finding) =
                findings.iter().find(|f| f.severity == windtunnel_model::finding::Severity::Error)
            {
                let message = format!("{}: {}", finding.id, finding.message);
                return Err(self.error(&format!("/harness/settings/{word}"), message).with_hint(
                    "`windtunnel lint` explains findings; a scenario's settings have to be in force",
                ));
            }
            files.push(settings);
        }
        let (merged, _) = merge::merge(&files, true, false, &self.profile.settings);
        let mut workspace = Workspace::new(&self.place.workspace, &self.place.home);
        for directory in &merged.additional_directories {
            workspace.add_directory(directory);
        }
        workspace.mode = match &self.loaded.scenario.harness.mode {
            Some(word) => Mode::from_name(word).ok_or_else(|| {
                self.error(
                    "/harness/mode",
                    format!("found mode `{word}`, expected a permission mode such as `default`"),
                )
            })?,
            None => merged.default_mode.unwrap_or_default(),
        };
        let mut tools = ToolTable::default();
        for (server, script) in scripts {
            for tool in &script.tools {
                let hint = tool.annotations.as_ref().and_then(|a| a.get("readOnlyHint"));
                let read_only = hint == Some(&Value::Bool(true));
                tools.mcp.insert(qualify(server, &tool.name), McpTool { read_only });
            }
        }
        let policy = Policy::new(&merged, &workspace.bases(), tools, &self.profile.gate);
        let mut memory = MemoryFiles::default();
        for (path, text) in &self.loaded.scenario.files {
            memory.files.insert(format!("{}/{path}", self.place.workspace), text.clone());
        }
        let rules =
            SettingsRules { policy, workspace: workspace.clone(), files: memory, profile: self.profile };
        Ok((rules, merged, workspace))
    }

    fn limits(&self, part: &LimitsPart) -> Result<Limits, Box<ScenarioError>> {
        let max_cost = match part.max_budget_usd {
            Some(dollars) => Some(self.microdollars(dollars, "/harness/limits/max_budget_usd")?),
            None => None,
        };
        for (seconds, name) in [
            (part.tool_timeout_seconds, "tool_timeout_seconds"),
            (part.connect_timeout_seconds, "connect_timeout_seconds"),
        ] {
            if seconds.is_some_and(|seconds| !is_duration(seconds)) {
                return Err(self.error(
                    &format!("/harness/limits/{name}"),
                    "expected a number of seconds from 0 to 86400",
                ));
            }
        }
        Ok(Limits { max_turns: part.max_turns, max_cost })
    }

    fn microdollars(&self, dollars: f64, pointer: &str) -> Result<u32, Box<ScenarioError>> {
        if !(0.0..=4000.0).contains(&dollars) {
            return Err(self.error(pointer, format!("found {dollars}, expected 0 to 4000 US dollars")));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 4e9, checked above"
        )]
        let micro = (dollars * 1e6).round() as u32;
        Ok(micro)
    }

    fn world(
        &self,
        session: &mut Session,
        scripts: &BTreeMap<String, ServerScript>,
        names: &[&String],
    ) -> Result<ClosedWorld, Box<ScenarioError>> {
        let part = &self.loaded.scenario.world;
        let limits = &self.loaded.scenario.harness.limits;
        let mut world = ClosedWorld {
            prompt: part.prompt.clone().unwrap_or_else(|| "Go on.".to_owned()),
            repeats: part.model_repeats,
            interrupt: part.interrupt_seconds,
            tool_timeout: limits.tool_timeout_seconds.unwrap_or(120.0),
            connect_timeout: limits.connect_timeout_seconds.unwrap_or(5.0),
            ..ClosedWorld::default()
        };
        if part.interrupt_seconds.is_some_and(|seconds| !is_duration(seconds)) {
            return Err(
                self.error("/world/interrupt_seconds", "expected a number of seconds from 0 to 86400")
            );
        }
        world.replies = self.replies(session, &part.model)?;
        world.users = self.users(&part.user)?;
        for name in names {
            world.handshakes.push(scripts.get(*name).map(|script| handshake(session, script)));
        }
        self.hooks(session, &mut world)?;
        self.tools(session, &mut world, scripts)?;
        world.finish();
        Ok(world)
    }

    fn replies(
        &self,
        session: &mut Session,
        entries: &[ReplyEntry],
    ) -> Result<Steps<ReplyAnswer>, Box<ScenarioError>> {
        let mut steps = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let alternatives = self.alternatives(
                entry,
                &format!("/world/model/{index}"),
                |entry| (&entry.any_of, entry.weight, entry.seconds.unwrap_or(0.0)),
                &mut |entry, pointer| {
                    let reply = self.reply(entry, pointer)?;
                    if let Some(reason) = &entry.fails {
                        return Ok(ReplyAnswer { reference: None, reply, fails: Some(reason.clone()) });
                    }
                    let reference = session
                        .intern_reply(&reply)
                        .map_err(|error| self.error(pointer, error.to_string()))?;
                    Ok(ReplyAnswer { reference: Some(reference), reply, fails: None })
                },
            )?;
            steps.push(alternatives);
        }
        if !self.loaded.scenario.world.model_repeats || steps.is_empty() {
            let reply = Reply { text: Some("Done.".to_owned()), ..Reply::default() };
            let reference = session
                .intern_reply(&reply)
                .map_err(|error| self.error("/world/model", error.to_string()))?;
            let answer = ReplyAnswer { reference: Some(reference), reply, fails: None };
            steps.push(vec![Alternative { answer, weight: 1, seconds: 0.0 }]);
        }
        Ok(Steps::new(steps))
    }

    fn reply(&self, entry: &ReplyEntry, pointer: &str) -> Result<Reply, Box<ScenarioError>> {
        let calls = entry
            .calls
            .iter()
            .map(|call| ReplyCall {
                id: call.id.clone(),
                tool: call.tool.clone(),
                input: Value::Object(call.input.clone()),
            })
            .collect();
        let microdollars = match entry.cost_usd {
            Some(dollars) => self.microdollars(dollars, &format!("{pointer}/cost_usd"))?,
            None => 0,
        };
        Ok(Reply { text: entry.text.clone(), calls, microdollars })
    }

    fn users(&self, entries: &[UserEntry]) -> Result<Steps<bool>, Box<ScenarioError>> {
        let steps = entries.iter().enumerate().map(|(index, entry)| {
            self.alternatives(
                entry,
                &format!("/world/user/{index}"),
                |entry| (&entry.any_of, entry.weight, entry.seconds.unwrap_or(0.0)),
                &mut |entry, _| Ok(entry.allow),
            )
        });
        Ok(Steps::new(steps.collect::<Result<_, _>>()?))
    }

    fn hooks(&self, session: &mut Session, world: &mut ClosedWorld) -> Result<(), Box<ScenarioError>> {
        let part = &self.loaded.scenario.world;
        // Compiling a call registers its hooks; a rewritten call adds no new ones of its own event.
        let known: Vec<(String, f64)> = session
            .catalogue()
            .hooks()
            .iter()
            .map(|hook| (hook.handler.label(), hook.handler.time_limit(hook.event)))
            .collect();
        for name in part.hooks.keys() {
            if !known.iter().any(|(label, _)| label == name) {
                let labels: Vec<String> = known.iter().map(|(label, _)| format!("`{label}`")).collect();
                let expected =
                    if labels.is_empty() { "no hook fires here".to_owned() } else { labels.join(", ") };
                return Err(self
                    .error(
                        &format!("/world/hooks/{}", escape(name)),
                        format!("no hook `{name}` fires in this scenario"),
                    )
                    .with_hint(format!("hooks that match some call: {expected}")));
            }
        }
        let originals = session.config().calls.len();
        for (index, (label, limit)) in known.iter().enumerate() {
            let hook = HookRef(u8::try_from(index).unwrap_or(u8::MAX));
            let default = [HookEntry::default()];
            let entries = part.hooks.get(label).map_or(&default[..], Vec::as_slice);
            let mut steps = Vec::new();
            for (n, entry) in entries.iter().enumerate() {
                steps.push(self.alternatives(
                    entry,
                    &format!("/world/hooks/{}/{n}", escape(label)),
                    |entry| (&entry.any_of, entry.weight, entry.seconds.unwrap_or(0.0).min(*limit)),
                    &mut |entry, pointer| {
                        let end = hook_end(entry, *limit);
                        let mut signals = Vec::new();
                        let run = session
                            .signal(hook, None, &end)
                            .map_err(|e| self.error(pointer, e.to_string()))?;
                        for call in 0..originals {
                            let call = CallRef(u16::try_from(call).unwrap_or(u16::MAX));
                            let applies = session.config().call(call).is_some_and(|info| {
                                info.before.contains(&hook)
                                    || info.after.contains(&hook)
                                    || info.after_failure.contains(&hook)
                            });
                            signals.push(if applies {
                                session
                                    .signal(hook, Some(call), &end)
                                    .map_err(|e| self.error(pointer, e.to_string()))?
                            } else {
                                run
                            });
                        }
                        Ok(HookAnswer { end, run, signals })
                    },
                )?);
            }
            world.hooks.push(Steps::new(steps));
        }
        Ok(())
    }

    fn tools(
        &self,
        session: &Session,
        world: &mut ClosedWorld,
        scripts: &BTreeMap<String, ServerScript>,
    ) -> Result<(), Box<ScenarioError>> {
        let part = &self.loaded.scenario.world;
        let known: Vec<String> = session.catalogue().tools().map(|tool| tool.name.clone()).collect();
        for name in part.tools.keys() {
            if !known.contains(name) {
                return Err(self
                    .error(
                        &format!("/world/tools/{}", escape(name)),
                        format!("no tool `{name}` in this scenario"),
                    )
                    .with_hint(format!("known tools: {}", known.join(", "))));
            }
        }
        for name in &known {
            let derived = scripted_entries(name, scripts);
            let entries = match (part.tools.get(name), derived) {
                (Some(entries), _) => entries.clone(),
                (None, Some(Ok(entries))) => entries,
                (None, Some(Err(what))) => {
                    world.unmodelled.push(format!("{name}: {what}"));
                    vec![ToolEntry::default()]
                }
                (None, None) => vec![ToolEntry::default()],
            };
            let timeout = world.tool_timeout;
            let mut steps = Vec::new();
            for (n, entry) in entries.iter().enumerate() {
                steps.push(self.alternatives(
                    entry,
                    &format!("/world/tools/{}/{n}", escape(name)),
                    |entry| (&entry.any_of, entry.weight, entry.seconds.unwrap_or(0.0)),
                    &mut |entry, _| Ok(tool_answer(entry, timeout)),
                )?);
            }
            world.tools.push(Steps::new(steps));
        }
        Ok(())
    }

    /// The alternatives of one entry: itself, or its `any_of`.
    fn alternatives<'e, E, A>(
        &self,
        entry: &'e E,
        pointer: &str,
        parts: impl Fn(&'e E) -> (&'e Vec<E>, Option<u32>, f64),
        compile: CompileEntry<'_, 'e, E, A>,
    ) -> Result<Vec<Alternative<A>>, Box<ScenarioError>> {
        let (any_of, _, _) = parts(entry);
        let listed: Vec<(&E, String)> = if any_of.is_empty() {
            vec![(entry, pointer.to_owned())]
        } else {
            any_of.iter().enumerate().map(|(n, entry)| (entry, format!("{pointer}/any_of/{n}"))).collect()
        };
        if listed.len() > 64 {
            return Err(
                self.error(pointer, format!("found {} alternatives, expected at most 64", listed.len()))
            );
        }
        listed
            .into_iter()
            .map(|(entry, pointer)| {
                let (nested, weight, seconds) = parts(entry);
                if !any_of.is_empty() && !nested.is_empty() {
                    return Err(self.error(&pointer, "found `any_of` inside `any_of`, expected a flat list"));
                }
                if !is_duration(seconds) {
                    return Err(self.error(&pointer, format!("found {seconds} seconds, expected 0 to 86400")));
                }
                Ok(Alternative { answer: compile(entry, &pointer)?, weight: weight.unwrap_or(1), seconds })
            })
            .collect()
    }
}

fn is_duration(seconds: f64) -> bool {
    (0.0..=86_400.0).contains(&seconds)
}

/// Escapes one part of a JSON pointer.
fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

fn first(entry: &ToolEntry) -> &ToolEntry {
    entry.any_of.first().unwrap_or(entry)
}

/// How a hook's run ends in the world's words.
fn hook_end(entry: &HookEntry, limit: f64) -> HandlerEnd {
    let status = if let Some(reason) = &entry.cannot_start {
        EndStatus::CannotStart(reason.clone())
    } else if entry.seconds.unwrap_or(0.0) > limit {
        return HandlerEnd::silent(EndStatus::Timeout);
    } else if let Some(signal) = entry.signal {
        EndStatus::Signal(signal)
    } else {
        EndStatus::Exit(entry.exit.unwrap_or(0))
    };
    HandlerEnd { status, stdout: entry.stdout.clone(), stderr: entry.stderr.clone() }
}

pub(super) fn tool_answer(entry: &ToolEntry, timeout: f64) -> ToolAnswer {
    let late = entry.seconds.unwrap_or(0.0) > timeout;
    if entry.silent || late {
        ToolAnswer::Silent
    } else if entry.closes {
        ToolAnswer::Closes
    } else if entry.wrong_id {
        ToolAnswer::WrongId
    } else if let Some(message) = &entry.protocol_error {
        ToolAnswer::ProtocolError(message.clone())
    } else if let Some(text) = &entry.error {
        ToolAnswer::Error(text.clone())
    } else {
        ToolAnswer::Result(entry.result.clone().unwrap_or_else(|| "ok".to_owned()))
    }
}
