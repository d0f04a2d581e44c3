//! What propositions about the gate share: a session from settings as users write them, and hooks whose ends are given.

use crate::gate::Facts;
use crate::gate::facts::NoFiles;
use crate::gate::mode::Mode;
use crate::gate::permission::Policy;
use crate::gate::pipeline::{Answers, AskedEnd, Call, HookRuns, Judgement, Session};
use crate::gate::tools::{McpTool, ToolTable};
use crate::gate::workspace::Workspace;
use crate::hooks::payload::Common;
use crate::hooks::{Event, HandlerEnd, HandlerKind, Selected};
use crate::profile::Profile;
use crate::sources::merge::merge;
use crate::sources::settings::{Level, load};
use serde_json::Value;
use std::collections::BTreeMap;

/// The folder that the calls are made in.
pub(super) const WORKSPACE: &str = "/repo";

/// The session of these settings files in a mode. `trusted`: the project's folder was trusted.
pub(super) fn session(profile: &Profile, files: &[(Level, Value)], mode: Mode, trusted: bool) -> Session {
    let files: Vec<_> = files
        .iter()
        .map(|(level, value)| {
            load(*level, &format!("{}.json", level.word()), &value.to_string(), &profile.settings).0
        })
        .collect();
    let (merged, _) = merge(&files, trusted, false, &profile.settings);
    let mut workspace = Workspace::new(WORKSPACE, "/home/user");
    workspace.mode = mode;
    let mut tools = ToolTable::default();
    for tool in ["mcp__s__read", "mcp__s__write", "mcp__t__read"] {
        tools.mcp.insert(tool.to_owned(), McpTool::default());
    }
    let policy = Policy::new(&merged, &workspace.bases(), tools, &profile.gate);
    Session {
        policy,
        hooks: merged.hooks.clone(),
        merged,
        workspace,
        profile: *profile,
        common: Common::default(),
        prompt_tool: None,
        read_files: Vec::new(),
        refused_checks: 0,
    }
}

/// Hooks whose ends are given by command; a hook without one could not be started. Nobody answers questions.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenEnds {
    /// The ends.
    pub(super) ends: BTreeMap<String, HandlerEnd>,
    /// The commands that ran, in order.
    pub(super) ran: Vec<String>,
}

impl Answers for GivenEnds {
    fn run_hooks(&mut self, _: Event, hooks: &[Selected<'_>], _: &Value) -> HookRuns {
        let mut runs = HookRuns::default();
        for (index, hook) in hooks.iter().enumerate() {
            let command = match &hook.handler.kind {
                HandlerKind::Command { command, .. } => command.as_str(),
                _ => "",
            };
            self.ran.push(command.to_owned());
            runs.ends.push(self.ends.get(command).cloned());
            runs.finished.push(index);
        }
        runs
    }

    fn ask(&mut self, _: &[Selected<'_>], _: &Value, _: &Call<'_>, _: &Value) -> Vec<AskedEnd> {
        Vec::new()
    }
}

/// Judges one call with hooks whose ends are given.
pub(super) fn judge(session: &mut Session, tool: &str, input: &Value, hooks: &mut GivenEnds) -> Judgement {
    judge_with(session, tool, input, hooks, &NoFiles)
}

/// The same with facts about files.
pub(super) fn judge_with(
    session: &mut Session,
    tool: &str,
    input: &Value,
    hooks: &mut GivenEnds,
    facts: &dyn Facts,
) -> Judgement {
    let call = Call { id: "t1", tool, input, background: false, agent: None };
    session.judge(&call, facts, hooks)
}
