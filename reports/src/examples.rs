//! Small traces and reports made by hand, for the tests of this crate.

use crate::run_report::{CallReport, RunReport, ScenarioReport};
use serde_json::json;
use windtunnel_model::agent_loop::{CallEnd, DecidedBy, EndReason};
use windtunnel_model::hooks::{HandlerEnd, HookDecision};
use windtunnel_model::invariants::Invariant;
use windtunnel_model::trace::{
    CallLabel, HookLabel, LabelledInput, LabelledOutput, Reply, ReplyCall, TraceStep,
};
use windtunnel_model::verdict::Verdict;

fn step(step: u32, input: LabelledInput, outputs: Vec<LabelledOutput>) -> TraceStep {
    TraceStep { step, at_ms: Some(u64::from(step) * 250), input, outputs, broken: Vec::new() }
}

fn call(slot: u8, id: &str, tool: &str) -> CallLabel {
    CallLabel { slot, id: id.to_owned(), tool: tool.to_owned() }
}

fn replies(text: &str, calls: &[(&str, &str, serde_json::Value)]) -> LabelledInput {
    LabelledInput::ModelReplied {
        reply: Reply {
            text: (!text.is_empty()).then(|| text.to_owned()),
            calls: calls
                .iter()
                .map(|(id, tool, input)| ReplyCall {
                    id: (*id).to_owned(),
                    tool: (*tool).to_owned(),
                    input: input.clone(),
                })
                .collect(),
            microdollars: 0,
        },
    }
}

fn model(messages: usize, message_bytes: u64) -> LabelledOutput {
    LabelledOutput::CallModel { messages, message_bytes }
}

fn returned(call: CallLabel, end: CallEnd, text: &str) -> LabelledOutput {
    LabelledOutput::Returned { call, end, text: text.to_owned() }
}

/// A hook refuses one of two calls; the other has its input rewritten and runs.
pub(crate) fn refused_run() -> Vec<TraceStep> {
    let guard =
        HookLabel { event: "PreToolUse".to_owned(), index: 0, name: "python3 protect_env.py".to_owned() };
    let (t1, t2) = (call(0, "t1", "Read"), call(1, "t2", "Bash"));
    let runs = |call: &CallLabel| LabelledOutput::RunHook { hook: guard.clone(), call: Some(call.clone()) };
    let ends = |call: &CallLabel, end| LabelledInput::HookFinished {
        hook: guard.clone(),
        call: Some(call.clone()),
        end,
    };
    let decided =
        |call: &CallLabel, decision, by| LabelledOutput::Decided { call: call.clone(), decision, by };
    vec![
        step(0, LabelledInput::Start, Vec::new()),
        step(1, LabelledInput::Prompt { text: "Show me the keys.".to_owned() }, vec![model(1, 64)]),
        step(
            2,
            replies(
                "Reading.",
                &[("t1", "Read", json!({"file_path": ".env"})), ("t2", "Bash", json!({"command": "ls -la"}))],
            ),
            vec![runs(&t1), runs(&t2)],
        ),
        step(
            3,
            ends(&t1, HandlerEnd::exited(2, "", "protected file")),
            vec![
                decided(&t1, HookDecision::Deny, DecidedBy::Hook),
                returned(t1.clone(), CallEnd::RefusedByHook, "protected file"),
            ],
        ),
        step(
            4,
            ends(&t2, HandlerEnd::exited(0, r#"{"hookSpecificOutput":{"permissionDecision":"ask"}}"#, "")),
            vec![
                decided(&t2, HookDecision::Ask, DecidedBy::Hook),
                LabelledOutput::AskUser { call: t2.clone() },
            ],
        ),
        step(
            5,
            LabelledInput::PermissionAnswered { call: t2.clone(), allow: true },
            vec![
                decided(&t2, HookDecision::Allow, DecidedBy::User),
                LabelledOutput::RunTool { call: t2.clone(), input: json!({"command": "ls"}) },
            ],
        ),
        step(
            6,
            LabelledInput::ToolFinished {
                call: t2.clone(),
                text: "src\nREADME.md".to_owned(),
                is_error: false,
            },
            vec![returned(t2, CallEnd::Result, "src\nREADME.md"), LabelledOutput::TurnEnded, model(3, 412)],
        ),
        step(
            7,
            replies("There are two entries.", &[]),
            vec![LabelledOutput::Finish { reason: EndReason::Completed }],
        ),
    ]
}

/// Two servers: one answers with an error result, the other closes in mid-call.
pub(crate) fn server_run() -> Vec<TraceStep> {
    let (s, m) = (call(0, "t1", "mcp__search__find"), call(1, "t2", "mcp__mail__send"));
    let connect = |server: &str| LabelledOutput::Connect { server: server.to_owned() };
    let send = |server: &str, line: serde_json::Value, call: Option<&CallLabel>| LabelledOutput::SendMcp {
        server: server.to_owned(),
        line: line.to_string(),
        call: call.cloned(),
    };
    let hear = |server: &str, line: serde_json::Value| LabelledInput::McpLine {
        server: server.to_owned(),
        line: line.to_string(),
    };
    let phase = |server: &str, phase: &str| LabelledOutput::ServerChanged {
        server: server.to_owned(),
        phase: phase.to_owned(),
    };
    let discover = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}});
    let tools = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let carry = |id: u32, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}});
    let decided = |call: &CallLabel| LabelledOutput::Decided {
        call: call.clone(),
        decision: HookDecision::Allow,
        by: DecidedBy::Rule,
    };
    vec![
        step(
            0,
            LabelledInput::Start,
            vec![
                connect("search"),
                send("search", discover.clone(), None),
                connect("mail"),
                send("mail", discover, None),
            ],
        ),
        step(
            1,
            hear(
                "search",
                json!({"jsonrpc": "2.0", "id": 0, "result": {"supportedVersions": ["2026-07-28"]}}),
            ),
            vec![send("search", tools(1), None), phase("search", "listing")],
        ),
        step(
            2,
            hear("search", json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "find"}]}})),
            vec![phase("search", "connected")],
        ),
        step(
            3,
            hear(
                "mail",
                json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32022, "message": "unsupported"}}),
            ),
            vec![phase("mail", "connected")],
        ),
        step(4, LabelledInput::Prompt { text: "Find it and mail it.".to_owned() }, vec![model(1, 70)]),
        step(
            5,
            replies(
                "",
                &[
                    ("t1", "mcp__search__find", json!({"q": "x"})),
                    ("t2", "mcp__mail__send", json!({"to": "y"})),
                ],
            ),
            vec![
                decided(&s),
                send("search", carry(2, "find"), Some(&s)),
                decided(&m),
                send("mail", carry(1, "send"), Some(&m)),
            ],
        ),
        step(
            6,
            hear(
                "search",
                json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "index is empty"}], "isError": true}}),
            ),
            vec![returned(s, CallEnd::ErrorResult, "index is empty")],
        ),
        step(
            7,
            LabelledInput::McpClosed { server: "mail".to_owned(), reason: "the process ended".to_owned() },
            vec![
                phase("mail", "lost"),
                returned(m, CallEnd::NoAnswer, "MCP error -32000: Connection closed"),
                LabelledOutput::TurnEnded,
                model(3, 500),
            ],
        ),
        step(
            8,
            LabelledInput::ModelFailed { reason: "overloaded".to_owned() },
            vec![LabelledOutput::Finish { reason: EndReason::ModelFailed }],
        ),
    ]
}

/// A tool is run although a hook refused it.
pub(crate) fn broken_run() -> Vec<TraceStep> {
    let mut steps = refused_run();
    steps.truncate(4);
    let t1 = call(0, "t1", "Read");
    if let Some(last) = steps.last_mut() {
        last.outputs = vec![LabelledOutput::RunTool { call: t1, input: json!({"file_path": ".env"}) }];
        last.broken = vec![Invariant::Block, Invariant::Permit];
    }
    steps
}

/// Names that try to be markup, statements of Mermaid, commands of a terminal.
pub(crate) fn hostile_run() -> Vec<TraceStep> {
    let evil = "<script>alert(1)</script>&\"'`]]>;end\nparticipant X\u{1b}[2J\u{202e}#";
    let t = call(0, evil, evil);
    vec![
        step(
            0,
            LabelledInput::Prompt { text: evil.to_owned() },
            vec![LabelledOutput::Connect { server: evil.to_owned() }],
        ),
        step(1, replies(evil, &[(evil, evil, json!({evil: evil}))]), Vec::new()),
        step(
            2,
            LabelledInput::McpLine { server: evil.to_owned(), line: evil.to_owned() },
            vec![
                LabelledOutput::SendMcp {
                    server: evil.to_owned(),
                    line: evil.to_owned(),
                    call: Some(t.clone()),
                },
                LabelledOutput::RunHook {
                    hook: HookLabel { event: evil.to_owned(), index: 0, name: evil.to_owned() },
                    call: Some(t.clone()),
                },
                LabelledOutput::RunTool { call: t.clone(), input: json!({evil: evil}) },
                returned(t, CallEnd::ErrorResult, evil),
            ],
        ),
    ]
}

fn scenario(id: &str, verdict: Verdict, steps: Vec<TraceStep>) -> ScenarioReport {
    ScenarioReport {
        id: id.to_owned(),
        path: format!("scenarios/{id}.json"),
        title: format!("The run of {id}"),
        teaches: Some("A refusal is returned as a result.".to_owned()),
        reproduces: vec!["Loop 3.4".to_owned(), "4.2".to_owned()],
        profile: "documented".to_owned(),
        world: "scripted".to_owned(),
        verdict,
        reason: None,
        end: Some("completed".to_owned()),
        model_calls: 2,
        calls: vec![CallReport {
            id: "t1".to_owned(),
            tool: "Read".to_owned(),
            decision: Some(HookDecision::Deny),
            by: Some(DecidedBy::Hook),
            executed: false,
            end: Some(CallEnd::RefusedByHook),
        }],
        invariants: vec![("I-PAIR".to_owned(), Verdict::Holds), ("I-BLOCK".to_owned(), Verdict::Holds)],
        steps,
        reproduce: Some(format!("windtunnel run scenarios/{id}.json")),
    }
}

/// A report with every verdict, the same scenario twice, and hostile names.
pub(crate) fn report() -> RunReport {
    let hostile = "<script>alert(\"x\")</script> | `a` ]]> \u{1b}[2J";
    let broken = ScenarioReport {
        reason: Some("I-BLOCK is broken at step 3".to_owned()),
        end: None,
        invariants: vec![("I-PAIR".to_owned(), Verdict::Holds), ("I-BLOCK".to_owned(), Verdict::Refuted)],
        ..scenario("hooks/guard", Verdict::Refuted, broken_run())
    };
    RunReport {
        title: "windtunnel run".to_owned(),
        profile: "documented".to_owned(),
        world: "scripted and process".to_owned(),
        seed: Some(7),
        scenarios: vec![
            scenario("hooks/protect-env", Verdict::Holds, refused_run()),
            ScenarioReport {
                world: "process".to_owned(),
                ..scenario("hooks/protect-env", Verdict::Holds, server_run())
            },
            broken,
            ScenarioReport {
                reason: Some("npx is not installed".to_owned()),
                calls: Vec::new(),
                ..scenario("mcp/npm", Verdict::Skipped, Vec::new())
            },
            ScenarioReport {
                reason: Some("the server's answer is not modelled".to_owned()),
                ..scenario("mcp/odd", Verdict::Unknown, server_run())
            },
            ScenarioReport {
                title: hostile.to_owned(),
                teaches: Some(hostile.to_owned()),
                reproduces: vec![hostile.to_owned()],
                path: hostile.to_owned(),
                profile: hostile.to_owned(),
                world: hostile.to_owned(),
                reason: Some(hostile.to_owned()),
                reproduce: Some(hostile.to_owned()),
                invariants: vec![(hostile.to_owned(), Verdict::Holds)],
                ..scenario(hostile, Verdict::Bounded, hostile_run())
            },
        ],
    }
}
