//! Laws of the gate as properties, each with its hypotheses and profile, and a mutant that it catches.
//!
//! Hypotheses (decisions, 15): well-formed rules, a fixed set of tools. Exceptions by name: B8 (a misshapen part costs
//! the file), B9 (identity of handlers without `onFailure`), tools that appear when another is denied.

use super::decision::{Gated, gate};
use super::diff::{decide, diff};
use super::explain::judge;
use super::facts::NoFiles;
use super::mode::Mode;
use super::permission::{AskKind, Permission, Policy};
use super::pipeline::{Outcome, Session};
use super::rule::Behaviour;
use super::tools::{McpTool, ToolTable};
use super::workspace::Workspace;
use crate::hooks::payload::Common;
use crate::hooks::{
    EndStatus, Event, Handler, HandlerEnd, HookDecision, HookVerdict, OnFailure, combine, combine_verdicts,
    interpret,
};
use crate::profile::{Profile, ProfileName};
use crate::sources::merge::Merged;
use crate::sources::settings::{Level, load};
use proptest::prelude::*;
use serde_json::{Value, json};

fn observed() -> Profile {
    ProfileName::ClaudeCode.profile()
}

fn session(rules: &[(Behaviour, String)], mode: Mode) -> Session {
    let mut merged = Merged::default();
    for (behaviour, text) in rules {
        merged.push_rule(*behaviour, text, Level::User, "settings.json");
    }
    let mut workspace = Workspace::new("/w", "/h");
    workspace.mode = mode;
    let mut tools = ToolTable { tool_search: true, ..ToolTable::default() };
    for tool in ["mcp__s__get_a", "mcp__s__put_b", "mcp__t__x"] {
        tools.mcp.insert(tool.to_owned(), McpTool::default());
    }
    let profile = observed();
    let policy = Policy::new(&merged, &workspace.bases(), tools, &profile.gate);
    Session {
        policy,
        merged,
        hooks: crate::hooks::HookTable::default(),
        workspace,
        profile,
        common: Common::default(),
        prompt_tool: None,
        read_files: Vec::new(),
        refused_checks: 0,
    }
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    prop_oneof![Just(Behaviour::Deny), Just(Behaviour::Ask), Just(Behaviour::Allow)]
}

fn modes() -> impl Strategy<Value = Mode> {
    proptest::sample::select(Mode::ALL.to_vec())
}

/// Rules of every kind over a small alphabet, so that they meet.
fn rules() -> impl Strategy<Value = String> {
    proptest::sample::select(
        [
            "Bash",
            "Bash(foo *)",
            "Bash(foo a)",
            "Bash(bar:*)",
            "Bash(foo * x)",
            "Bash(* --version)",
            "Bash(rm *)",
            "Bash(git push *)",
            "Read",
            "Read(src/**)",
            "Read(*.env)",
            "Read(//etc/**)",
            "Edit",
            "Edit(src/*)",
            "Edit(**)",
            "Edit(~/x/**)",
            "Write",
            "WebFetch",
            "WebFetch(domain:a.example)",
            "WebFetch(domain:*.a.example)",
            "mcp__s",
            "mcp__s__get_*",
            "mcp__s__put_b",
            "mcp__*",
            "Agent",
            "Skill(k)",
            "Agent(model:opus)",
            "Bash(run_in_background:true)",
        ]
        .map(str::to_owned)
        .to_vec(),
    )
}

fn commands() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(vec![
        "foo",
        "foo a",
        "foo b x",
        "bar",
        "bar a",
        "rm f",
        "rm -rf /",
        "ls",
        "cat src/a",
        "cat .env",
        "git push o",
        "git status",
        "cd src",
        "echo hi",
        "x --version",
        "touch z",
        "X=1 foo a",
        "timeout 5 foo a",
        "$(foo a)",
        "env foo a",
        "echo $V",
    ]);
    let tail = proptest::sample::select(vec!["", " > out", " > .git/x", " &", " < src/a"]);
    let join = proptest::sample::select(vec![" && ", "; ", " | ", "\n"]);
    (proptest::collection::vec((part, tail), 1..4), join).prop_map(|(parts, join)| {
        parts.into_iter().map(|(part, tail)| format!("{part}{tail}")).collect::<Vec<_>>().join(join)
    })
}

fn calls() -> impl Strategy<Value = (String, Value)> {
    let paths =
        proptest::sample::select(vec!["a.txt", "src/a", "src/d/a", ".env", "/etc/x", "~/x/y", ".git/c"]);
    let urls =
        proptest::sample::select(vec!["http://a.example/", "http://b.a.example/", "http://c.example/"]);
    prop_oneof![
        4 => commands().prop_map(|command| ("Bash".to_owned(), json!({"command": command}))),
        2 => paths.clone().prop_map(|path| ("Read".to_owned(), json!({"file_path": path}))),
        2 => paths.clone().prop_map(|path| ("Write".to_owned(), json!({"file_path": path, "content": "c"}))),
        1 => paths.prop_map(|path| {
            ("Edit".to_owned(), json!({"file_path": path, "old_string": "a", "new_string": "b"}))
        }),
        1 => urls.prop_map(|url| ("WebFetch".to_owned(), json!({"url": url, "prompt": "p"}))),
        1 => proptest::sample::select(vec!["mcp__s__get_a", "mcp__s__put_b", "mcp__t__x"])
            .prop_map(|tool| (tool.to_owned(), json!({"a": 1}))),
        1 => Just(("Agent".to_owned(), json!({"description": "d", "prompt": "p", "model": "opus"}))),
        1 => Just(("Skill".to_owned(), json!({"skill": "k"}))),
    ]
}

fn decisions() -> impl Strategy<Value = HookDecision> {
    proptest::sample::select(HookDecision::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// I-MONO: adding a deny rule never enlarges what runs (observed profile; well-formed rules, fixed tools).
    #[test]
    fn adding_a_deny_never_enlarges_what_runs(
        list in proptest::collection::vec((behaviours(), rules()), 0..6),
        deny in rules(),
        mode in modes(),
        hook in decisions(),
        (tool, input) in calls(),
    ) {
        let before = judge(&session(&list, mode), &NoFiles, &tool, &input, hook);
        let mut more = list.clone();
        more.push((Behaviour::Deny, deny));
        let after = judge(&session(&more, mode), &NoFiles, &tool, &input, hook);
        prop_assert!(after != Outcome::Run || before == Outcome::Run);
    }

    /// The same for ask rules, outside of what a question is answered with.
    #[test]
    fn adding_an_ask_never_enlarges_what_runs(
        list in proptest::collection::vec((behaviours(), rules()), 0..6),
        ask in rules(),
        mode in modes(),
        (tool, input) in calls(),
    ) {
        let before = decide(&session(&list, mode), &tool, &input);
        let mut more = list.clone();
        more.push((Behaviour::Ask, ask));
        let after = decide(&session(&more, mode), &tool, &input);
        prop_assert!(after != Outcome::Run || before == Outcome::Run);
    }

    /// Adding an allow rule never makes a call that ran stop running.
    #[test]
    fn adding_an_allow_never_shrinks_what_runs(
        list in proptest::collection::vec((behaviours(), rules()), 0..6),
        allow in rules(),
        mode in modes(),
        (tool, input) in calls(),
    ) {
        let before = decide(&session(&list, mode), &tool, &input);
        let mut more = list.clone();
        more.push((Behaviour::Allow, allow));
        let after = decide(&session(&more, mode), &tool, &input);
        prop_assert!(before != Outcome::Run || after == Outcome::Run);
    }

    /// I-MERGE: the combined decision does not depend on the order of the hooks.
    #[test]
    fn hooks_combine_independent_of_order(list in proptest::collection::vec(decisions(), 0..8), seed in any::<u64>()) {
        let mut shuffled = list.clone();
        let mut state = seed;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(i, usize::try_from(state >> 33).unwrap_or(0) % (i + 1));
        }
        prop_assert_eq!(combine(list.clone()), combine(shuffled.clone()));
        let verdicts = |list: &[HookDecision]| -> Vec<HookVerdict> {
            list.iter().map(|decision| HookVerdict { decision: *decision, ..HookVerdict::default() }).collect()
        };
        prop_assert_eq!(
            combine_verdicts(&verdicts(&list), &[]).decision,
            combine_verdicts(&verdicts(&shuffled), &[]).decision
        );
    }

    /// Adding a hook never shrinks what is blocked: what was refused is refused still, or put off (defer goes before a
    /// deny rule, as observed). Hypothesis: hooks are different handlers (B9 is the exception).
    #[test]
    fn adding_a_hook_never_shrinks_what_is_blocked(
        list in proptest::collection::vec((behaviours(), rules()), 0..6),
        hooks in proptest::collection::vec(decisions(), 0..4),
        more in decisions(),
        mode in modes(),
        (tool, input) in calls(),
    ) {
        let session = session(&list, mode);
        let before = judge(&session, &NoFiles, &tool, &input, combine(hooks.clone()));
        let after = judge(&session, &NoFiles, &tool, &input, combine(hooks.into_iter().chain([more])));
        if before == Outcome::Blocked {
            prop_assert!(matches!(after, Outcome::Blocked | Outcome::Deferred));
        }
    }

    /// I-HOOKALLOW: a hook's allow lifts neither a deny nor an ask rule, a protected path or a critical removal.
    #[test]
    fn a_hooks_allow_never_lifts_deny_or_ask(mode in modes(), is_bash in any::<bool>()) {
        let parameters = observed().gate;
        for permission in [
            Permission::Deny,
            Permission::Ask(AskKind::Rule),
            Permission::Ask(AskKind::Safety),
            Permission::Ask(AskKind::Plan),
        ] {
            let gated = gate(HookDecision::Allow, permission, mode, is_bash, &parameters);
            prop_assert!(!matches!(gated, Gated::Run(_)), "{:?}", permission);
        }
    }

    /// I-BLOCK: exit 2 of a PreToolUse hook refuses the call, whatever it prints, whatever rules, mode and other hooks
    /// say. Exceptions: a handler in the background, and `{"async": true}` first.
    #[test]
    fn exit_2_beats_everything(
        stdout in "\\PC{0,40}",
        stderr in "\\PC{0,10}",
        others in proptest::collection::vec(decisions(), 0..4),
        list in proptest::collection::vec((behaviours(), rules()), 0..6),
        mode in modes(),
        (tool, input) in calls(),
    ) {
        let handler = Handler { on_failure: OnFailure::Block, ..Handler::command("x") };
        let end = HandlerEnd::exited(2, stdout, stderr);
        let verdict = interpret(Event::PreToolUse, &handler, &end, &observed().hooks);
        prop_assert_eq!(verdict.decision, HookDecision::Deny);
        let combined = combine(others.into_iter().chain([verdict.decision]));
        let outcome = judge(&session(&list, mode), &NoFiles, &tool, &input, combined);
        prop_assert!(matches!(outcome, Outcome::Blocked | Outcome::Gone));
    }

    /// Total: any text is a settings file, any end of a hook has a meaning, any call has a decision.
    #[test]
    fn decisions_are_total(
        text in "\\PC{0,200}",
        rule in "\\PC{0,40}",
        command in "\\PC{0,80}",
        event in proptest::sample::select(Event::ALL.to_vec()),
        code in any::<i32>(),
        mode in modes(),
    ) {
        let profile = observed();
        let _ = load(Level::User, "s.json", &text, &profile.settings);
        for name in ProfileName::ALL {
            let end = HandlerEnd { status: EndStatus::Exit(code), stdout: text.clone(), stderr: String::new() };
            let _ = interpret(event, &Handler::command("x"), &end, &name.profile().hooks);
        }
        let rules: Vec<(Behaviour, String)> =
            [Behaviour::Deny, Behaviour::Ask, Behaviour::Allow].map(|b| (b, rule.clone())).to_vec();
        let session = session(&rules, mode);
        let _ = decide(&session, "Bash", &json!({"command": command}));
        let _ = decide(&session, &rule, &json!(text));
        let _ = decide(&session, "Read", &json!({"file_path": command}));
    }

    /// `gate diff` of equal settings is empty.
    #[test]
    fn equal_settings_have_no_difference(
        list in proptest::collection::vec((behaviours(), rules()), 0..6),
        mode in modes(),
    ) {
        prop_assert!(diff(&session(&list, mode), &session(&list, mode)).is_empty());
    }

    /// `gate diff` is complete relative to the atoms: a call that differs is covered by a reported class of its tool.
    #[test]
    fn a_call_that_differs_is_covered_by_a_reported_class(
        old in proptest::collection::vec((behaviours(), rules()), 0..4),
        new in proptest::collection::vec((behaviours(), rules()), 0..4),
        (tool, input) in calls(),
    ) {
        let (old, new) = (session(&old, Mode::Default), session(&new, Mode::Default));
        if decide(&old, &tool, &input) != decide(&new, &tool, &input) {
            let reported = diff(&old, &new);
            prop_assert!(reported.iter().any(|difference| difference.tool == tool), "{} {}", tool, input);
        }
    }
}

/// Mutants: rules that are wrong on purpose break the law that is about them.
#[test]
fn mutants_are_caught() {
    // First answer wins, instead of the maximum.
    let first_wins = |list: &[HookDecision]| {
        list.iter().copied().find(|decision| *decision != HookDecision::None).unwrap_or_default()
    };
    let list = [HookDecision::Allow, HookDecision::Deny];
    let reversed = [HookDecision::Deny, HookDecision::Allow];
    assert_ne!(first_wins(&list), first_wins(&reversed), "order independence catches it");
    // A hook's allow that lifts the question about protected paths.
    let mut parameters = observed().gate;
    parameters.hook_allow_lifts_safety.value = true;
    let gated =
        gate(HookDecision::Allow, Permission::Ask(AskKind::Safety), Mode::Default, false, &parameters);
    assert!(matches!(gated, Gated::Run(_)), "I-HOOKALLOW catches it");
    // A deny rule that is read as an allow rule.
    let swapped = session(&[(Behaviour::Allow, "Bash(foo *)".to_owned())], Mode::Default);
    let without = session(&[], Mode::Default);
    let input = json!({"command": "foo a"});
    assert_eq!(decide(&without, "Bash", &input), Outcome::NeedsApproval);
    assert_eq!(decide(&swapped, "Bash", &input), Outcome::Run, "I-MONO catches it");
    // Exit 2 taken for a plain failure.
    let end = HandlerEnd::exited(1, "", "");
    let verdict = interpret(Event::PreToolUse, &Handler::command("x"), &end, &observed().hooks);
    assert_ne!(verdict.decision, HookDecision::Deny, "I-BLOCK catches it");
}
