//! The harness explored: shipped scenarios through the command line, the packing law, reductions against the full
//! search, mutants, and what the teaching harness leaves out (H1 to H4).

use crate::support::cli;
use proptest::prelude::*;
use std::collections::BTreeSet;
use windtunnel::cli::Exit;
use windtunnel::explore::cycles::{Cycles, without_progress};
use windtunnel::explore::harness::{Harness, Reductions, Setup};
use windtunnel::explore::{Exploration, Found, Options, System as _, explore, shows};
use windtunnel::scenario::compile::{Compiled, Place, compile};
use windtunnel::scenario::load::{Loaded, parse};
use windtunnel::scenario::shipped;
use windtunnel::world::random::{Draw, Follow, Until, run, shrink};
use windtunnel_model::agent_loop::Phase;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::mutant::Mutant;
use windtunnel_model::profile::ProfileName;
use windtunnel_model::verdict::Verdict;

fn command(arguments: &[&str]) -> (Exit, String) {
    let output = cli(arguments, &std::env::current_dir().expect("a current folder"));
    (output.exit, output.stdout + &output.stderr)
}

#[test]
fn every_shipped_scenario_is_as_it_says_and_enough_of_the_model_is_reached() {
    let (exit, text) = command(&["explore", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&text).expect("one JSON document");
    assert_eq!(exit, Exit::Holds, "{text}");
    assert_eq!(report["command"], "explore");
    let mut reached = BTreeSet::new();
    let mut complete = 0;
    for scenario in report["scenarios"].as_array().expect("scenarios") {
        complete += usize::from(scenario["states"].as_u64().is_some_and(|states| states > 0));
        for name in scenario["coverage"].as_array().expect("coverage") {
            reached.insert(name.as_str().expect("a name").to_owned());
        }
        for violation in scenario["violations"].as_array().expect("violations") {
            assert_eq!(violation["confirmed"], true);
        }
    }
    assert!(complete >= 40, "only {complete} searches");
    assert!(reached.len() >= 35, "only {} outcomes are reached: {reached:?}", reached.len());
}

#[test]
fn a_bound_is_told_and_under_require_complete_not_judged() {
    let (exit, text) = command(&["explore", "--max-states", "2"]);
    assert!(text.contains("stopped by --max-states"), "{text}");
    assert!(text.contains(" bounded, "), "{text}");
    assert_eq!(exit, Exit::Holds);
    assert_eq!(command(&["explore", "--max-states", "2", "--require-complete"]).0, Exit::CannotJudge);
}

#[test]
fn a_checked_reduction_tells_what_it_saved_and_walks_go_on_beyond_a_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("alike.json");
    std::fs::write(&file, ALIKE).expect("written");
    let file = file.to_str().expect("a path");
    let (exit, text) = command(&["explore", file, "--reduce=checked"]);
    assert_eq!(exit, Exit::Holds, "{text}");
    assert!(text.contains("states without reductions, ") && text.contains("the same verdicts"), "{text}");
    assert!(text.contains("allow rule `Grep` (project) matches no call that the assistant makes"), "{text}");
    let bounded = ["explore", file, "--max-states", "20", "--simulate", "50", "--seed", "3"];
    let (exit, text) = command(&bounded);
    assert_eq!(exit, Exit::Holds, "{text}");
    assert!(text.contains("50 random walks of at most 1000 steps beyond it (seed 3)"), "{text}");
    assert!(text.contains(" bounded, "), "{text}");
    // Walks find what the bounded search does not reach: here a hook that lifts a rule, deep in the second turn.
    std::fs::write(file, ALIKE.replace(r#""allow": ["Read", "Grep"]"#, r#""deny": ["Read"]"#)
        .replacen(r#"{"exit": 2}"#, r#"{"exit": 0, "stdout": "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}"}"#, 1))
        .expect("written");
    let arguments = |simulate: bool| {
        let mut arguments = vec!["explore", file, "--max-depth", "3", "--profile", "teaching"];
        if simulate {
            arguments.extend(["--simulate", "50"]);
        }
        arguments
    };
    assert_eq!(command(&arguments(false)).0, Exit::Holds);
    let (exit, text) = command(&arguments(true));
    assert_eq!(exit, Exit::Refuted, "{text}");
}

/// Every shipped scenario that can be explored, and some of this file, in each of the profiles given. The teaching
/// profile knows no turn limit: there, request ids may outgrow any bound.
fn each(profiles: &[ProfileName], mut look: impl FnMut(&Loaded, Compiled)) {
    let mut looked = 0;
    let own = [EVERYTHING, ALIKE, SECOND_HOOK_AFTER_AN_ANSWER, AFTER_HOOK_STOPS]
        .map(|text| parse("test.json", text.to_owned()).expect("it parses"));
    for loaded in shipped::all().expect("shipped scenarios parse").into_iter().chain(own) {
        for &profile in profiles {
            let compiled = compile(&loaded, profile, &Place::default()).expect("shipped scenarios compile");
            if compiled.world.unmodelled.is_empty() && compiled.world.handshakes.iter().all(Option::is_some) {
                looked += 1;
                look(&loaded, compiled);
            }
        }
    }
    assert!(looked >= 30, "only {looked} scenarios");
}

fn explored<'a>(compiled: &'a Compiled, reductions: Reductions) -> (Harness<'a, 8>, Exploration<[u64; 8]>) {
    let harness =
        Harness::new(compiled, &Setup { reductions, ..Setup::default() }).expect("it can be explored");
    let found = explore(&harness, &Options::default());
    assert_eq!(harness.failure(), None);
    assert_eq!(found.stopped(), None);
    (harness, found)
}

#[test]
fn packing_keeps_every_reachable_moment_apart() {
    each(&[ProfileName::Documented, ProfileName::ClaudeCode], |_, compiled| {
        let (harness, found) = explored(&compiled, Reductions::default());
        let layout = Harness::<8>::layout(&compiled, &Setup::default()).expect("it fits");
        for number in 0..found.states() as u32 {
            let packed = found.log().state(number);
            let moment = harness.moment(packed);
            assert_eq!(layout.pack(&moment), Ok(*packed));
        }
    });
}

proptest! {
    #[test]
    fn what_is_packed_is_unpacked_again(words: [u64; 8]) {
        let loaded = parse("test.json", EVERYTHING.to_owned()).expect("it parses");
        let compiled = compile(&loaded, ProfileName::Documented, &Place::default()).expect("it compiles");
        let layout = Harness::<8>::layout(&compiled, &Setup::default()).expect("it fits");
        let moment = layout.unpack(&words);
        if let Ok(packed) = layout.pack::<8>(&moment) {
            prop_assert_eq!(layout.unpack(&packed), moment);
        }
    }
}

#[test]
fn reductions_change_no_verdict_and_no_state_between_turns() {
    let none = Reductions::NONE;
    let reductions = [
        Reductions { local_hooks: true, ..none },
        Reductions { local_servers: true, ..none },
        Reductions { symmetry: true, ..none },
        Reductions::ALL,
    ];
    let (mut full_states, mut reduced_states) = (0, [0; 4]);
    each(&ProfileName::ALL, |loaded, compiled| {
        let compiled = &compiled;
        let config = compiled.session.config();
        if config.profile.name == ProfileName::Teaching
            && compiled.world.repeats
            && !config.servers.is_empty()
        {
            return;
        }
        let (full, whole) = explored(compiled, Reductions::NONE);
        full_states += whole.states();
        for (reductions, states) in reductions.iter().zip(&mut reduced_states) {
            let (harness, found) = explored(compiled, *reductions);
            let verdicts = |found: &Exploration<[u64; 8]>| -> Vec<Verdict> {
                (0..found.properties().len()).map(|property| found.verdict(property)).collect()
            };
            assert_eq!(verdicts(&whole), verdicts(&found), "{} {reductions:?}", loaded.id);
            let between = |found: &Exploration<[u64; 8]>| -> BTreeSet<[u64; 8]> {
                (0..found.states() as u32)
                    .map(|number| harness.canonical(found.log().state(number)))
                    .filter(|state| {
                        !matches!(harness.moment(state).state.phase, Phase::Calls | Phase::Connecting)
                    })
                    .collect()
            };
            assert_eq!(between(&whole), between(&found), "{} {reductions:?}", loaded.id);
            for property in 0..found.properties().len() {
                if let Some(first) = found.first(property) {
                    let lifted = harness.lift(&full, &first).expect("a run of the whole system");
                    assert!(shows(&full, &lifted, property), "{} {reductions:?}", loaded.id);
                }
            }
            *states += found.states();
        }
    });
    for (reductions, states) in reductions.iter().zip(reduced_states) {
        println!("{full_states} states, {states} with {reductions:?}");
        assert!(states < full_states, "{reductions:?} saves nothing");
    }
}

/// Three calls that differ in their ids only, two hooks that do the same, two servers that nobody calls.
const ALIKE: &str = r#"{
  "version": 1,
  "title": "Alike",
  "harness": {
    "settings": {"project": {
      "permissions": {"allow": ["Read", "Grep"]},
      "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": "guard"}, {"type": "command", "command": "twin"}]}]}}},
    "limits": {"max_turns": 2}
  },
  "world": {
    "model_repeats": true,
    "model": [{"any_of": [
      {"calls": [
        {"id": "a", "tool": "Read", "input": {"file_path": "a.txt"}},
        {"id": "b", "tool": "Read", "input": {"file_path": "a.txt"}},
        {"id": "c", "tool": "Read", "input": {"file_path": "a.txt"}}]},
      {"text": "Nothing to do."}]}],
    "hooks": {
      "guard": [{"any_of": [{"exit": 0}, {"exit": 2}]}],
      "twin": [{"any_of": [{"exit": 0}, {"exit": 2}]}]
    },
    "tools": {"Read": [{"any_of": [{"result": "x"}, {"error": "x"}]}]},
    "servers": {
      "one": {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]},
      "two": {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}
    }
  },
  "files": {"a.txt": "a"}
}"#;

/// Three parallel calls, two hooks each, two servers.
const EVERYTHING: &str = r#"{
  "version": 1,
  "title": "Three parallel calls",
  "harness": {
    "settings": {"project": {
      "permissions": {"allow": ["mcp__files__read"], "ask": ["mcp__web__fetch"]},
      "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": "guard"}, {"type": "command", "command": "audit"}]}]}}},
    "limits": {"max_turns": 1}
  },
  "world": {
    "model": [{"any_of": [
      {"calls": [
        {"id": "a", "tool": "mcp__files__read", "input": {}},
        {"id": "b", "tool": "mcp__web__fetch", "input": {}},
        {"id": "c", "tool": "Read", "input": {"file_path": "a.txt"}}]},
      {"text": "Nothing to do."}]}],
    "hooks": {
      "guard": [{"any_of": [{"exit": 0}, {"exit": 2}, {"exit": 1}]}],
      "audit": [{"any_of": [{"exit": 0}, {"exit": 0,
        "stdout": "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}"}]}]
    },
    "tools": {
      "mcp__files__read": [{"any_of": [{"result": "x"}, {"error": "x"}, {"protocol_error": "x"}, {"silent": true}, {"closes": true}]}],
      "mcp__web__fetch": [{"any_of": [{"result": "x"}, {"silent": true}]}]
    },
    "servers": {
      "files": {"tools": [{"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]},
      "web": {"tools": [{"name": "fetch", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}
    },
    "user": [{"any_of": [{"allow": true}, {"allow": false}]}]
  },
  "files": {"a.txt": "a"}
}"#;

#[test]
fn every_mutant_is_found_by_a_counterexample_no_longer_than_the_shrunk_random_one() {
    for mutant in Mutant::ALL {
        // These two change payloads, which exploration leaves out.
        if matches!(mutant, Mutant::LedgerSkipsResults | Mutant::SwapResultIds) {
            continue;
        }
        let mut caught = 0;
        each(&[ProfileName::Documented, ProfileName::ClaudeCode], |loaded, mut compiled| {
            if caught > 0 || !loaded.scenario.expect.breaks.is_empty() {
                return;
            }
            compiled.session.set_mutant(Some(mutant));
            let (name, found): (String, Found) = {
                let Ok(harness) = Harness::<8>::new(&compiled, &Setup::default()) else { return };
                let explored = explore(&harness, &Options::default());
                if harness.failure().is_some() {
                    return;
                }
                let invariants = harness.property_table().invariants();
                let Some(first) = (0..invariants).find_map(|p| Some((p, explored.first(p)?))) else { return };
                (harness.properties()[first.0].name.clone(), first.1)
            };
            let invariant: Invariant = name.parse().expect("a name of ours");
            caught += 1;
            for number in 0..40 {
                let drawn = run(&mut compiled, &mut Draw::new(1, number), Until::Broken);
                if drawn.outcome.broken.contains_key(&invariant) {
                    let schedule = shrink(&mut compiled, &drawn.schedule, invariant);
                    let shrunk = run(&mut compiled, &mut Follow::new(&schedule), Until::Broken);
                    assert!(
                        found.schedule.len() <= shrunk.outcome.steps.len(),
                        "{mutant:?} in {}: {} steps, shrunk {}",
                        loaded.id,
                        found.schedule.len(),
                        shrunk.outcome.steps.len()
                    );
                    break;
                }
            }
        });
        assert!(caught > 0, "{mutant:?} is not found in any scenario");
    }
}

fn inline(text: &str, profile: ProfileName, look: impl FnOnce(&Harness<'_, 8>, &Exploration<[u64; 8]>)) {
    let loaded = parse("test.json", text.to_owned()).expect("it parses");
    let compiled = compile(&loaded, profile, &Place::default()).expect("it compiles");
    let (harness, found) = explored(&compiled, Reductions::default());
    look(&harness, &found);
}

fn verdict(harness: &Harness<'_, 8>, found: &Exploration<[u64; 8]>, name: &str) -> Verdict {
    let index = harness.properties().iter().position(|property| property.name == name);
    found.verdict(index.expect("a property of this name"))
}

const HOOK_ALLOWS_WHAT_A_RULE_DENIES: &str = r#"{
  "version": 1, "title": "H1",
  "harness": {"settings": {"project": {
    "permissions": {"deny": ["Read"]},
    "hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "yes"}]}]}}}},
  "world": {
    "model": [{"calls": [{"id": "a", "tool": "Read", "input": {"file_path": "a.txt"}}]}],
    "hooks": {"yes": [{"any_of": [{"exit": 0}, {"exit": 0,
      "stdout": "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}"}]}]}},
  "files": {"a.txt": "a"}
}"#;

#[test]
fn h1_a_hooks_allow_lifts_a_deny_rule_in_the_teaching_harness_only() {
    inline(HOOK_ALLOWS_WHAT_A_RULE_DENIES, ProfileName::Teaching, |harness, found| {
        assert_eq!(verdict(harness, found, "I-HOOKALLOW"), Verdict::Refuted);
        assert_eq!(verdict(harness, found, "I-DENY"), Verdict::Refuted);
    });
    for profile in [ProfileName::Documented, ProfileName::ClaudeCode] {
        inline(HOOK_ALLOWS_WHAT_A_RULE_DENIES, profile, |harness, found| {
            assert_eq!(verdict(harness, found, "I-HOOKALLOW"), Verdict::Holds);
            assert_eq!(verdict(harness, found, "I-DENY"), Verdict::Holds);
        });
    }
}

const STOP_HOOK_ALWAYS_BLOCKS: &str = r#"{
  "version": 1, "title": "H2",
  "harness": {"settings": {"project": {
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "more"}]}]}}}},
  "world": {
    "model_repeats": true,
    "model": [{"any_of": [{"text": "Done."} CALLS ]}],
    "hooks": {"more": [{"exit": 2, "stderr": "go on"}]}},
  "files": {"a.txt": "a"}
}"#;

#[test]
fn h2_a_stop_hook_that_always_blocks() {
    let ends = STOP_HOOK_ALWAYS_BLOCKS.replace(" CALLS ", "");
    let calls = r#", {"calls": [{"id": "a", "tool": "Read", "input": {"file_path": "a.txt"}}]}"#;
    let works = STOP_HOOK_ALWAYS_BLOCKS.replace(" CALLS ", calls);
    // No flag and no cap: a reachable cycle, and more blocks in a row than eight.
    inline(&ends, ProfileName::Teaching, |harness, found| {
        assert_eq!(verdict(harness, found, "I-STOP"), Verdict::Refuted);
        assert!(matches!(without_progress(harness, found), Cycles::Found(_)));
    });
    // The flag and a cap: it ends by the cap.
    for profile in [ProfileName::Documented, ProfileName::ClaudeCode] {
        inline(&ends, profile, |harness, found| {
            assert_eq!(verdict(harness, found, "I-STOP"), Verdict::Holds);
            assert_eq!(verdict(harness, found, "end:stop_cap_reached"), Verdict::Holds);
            assert_eq!(without_progress(harness, found), Cycles::None);
        });
        // A tool call in between resets the count: with a model that keeps calling tools only a turn limit ends it.
        inline(&works, profile, |harness, found| {
            assert_eq!(verdict(harness, found, "I-STOP"), Verdict::Holds);
            assert!(matches!(without_progress(harness, found), Cycles::Found(_)));
        });
    }
}

const SECOND_HOOK_AFTER_AN_ANSWER: &str = r#"{
  "version": 1, "title": "H3",
  "harness": {"settings": {"project": {
    "permissions": {"allow": ["Read"]},
    "hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [
      {"type": "command", "command": "first"}, {"type": "command", "command": "guard"}]}]}}}},
  "world": {
    "model": [{"calls": [{"id": "a", "tool": "Read", "input": {"file_path": "a.txt"}}]}],
    "hooks": {
      "first": [{"exit": 0,
        "stdout": "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}"}],
      "guard": [{"exit": 2, "stderr": "no"}]}},
  "files": {"a.txt": "a"}
}"#;

#[test]
fn h3_a_hook_after_an_answering_one_never_runs_in_the_teaching_harness() {
    inline(SECOND_HOOK_AFTER_AN_ANSWER, ProfileName::Teaching, |harness, found| {
        assert_eq!(verdict(harness, found, "I-FIRE"), Verdict::Refuted);
        assert_eq!(verdict(harness, found, "call:result"), Verdict::Holds);
    });
    inline(SECOND_HOOK_AFTER_AN_ANSWER, ProfileName::Documented, |harness, found| {
        assert_eq!(verdict(harness, found, "I-FIRE"), Verdict::Holds);
        assert_eq!(verdict(harness, found, "call:result"), Verdict::Refuted);
        assert_eq!(verdict(harness, found, "call:refused_by_hook"), Verdict::Holds);
    });
}

const AFTER_HOOK_STOPS: &str = r#"{
  "version": 1, "title": "H4",
  "harness": {"settings": {"project": {
    "permissions": {"allow": ["Read"]},
    "hooks": {"PostToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "enough"}]}]}}}},
  "world": {
    "model": [{"calls": [
      {"id": "a", "tool": "Read", "input": {"file_path": "a.txt"}},
      {"id": "b", "tool": "Read", "input": {"file_path": "a.txt"}}]}],
    "hooks": {"enough": [{"exit": 0, "stdout": "{\"continue\": false}"}]}},
  "files": {"a.txt": "a"}
}"#;

#[test]
fn h4_continue_false_after_a_call_ends_the_loop_and_loses_no_result() {
    inline(AFTER_HOOK_STOPS, ProfileName::Documented, |harness, found| {
        assert_eq!(verdict(harness, found, "end:hook_stopped"), Verdict::Holds);
        assert_eq!(verdict(harness, found, "end:completed"), Verdict::Refuted);
        assert_eq!(verdict(harness, found, "I-TOTAL"), Verdict::Holds);
        assert_eq!(verdict(harness, found, "I-PAIR"), Verdict::Holds);
    });
    inline(AFTER_HOOK_STOPS, ProfileName::Teaching, |harness, found| {
        assert_eq!(verdict(harness, found, "end:hook_stopped"), Verdict::Refuted);
    });
}

#[test]
fn a_saved_counterexample_is_replayed_by_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("h1.json");
    std::fs::write(&file, HOOK_ALLOWS_WHAT_A_RULE_DENIES).expect("written");
    let (file, saved) = (file.display().to_string(), folder.path().join("saved").display().to_string());
    let (exit, text) = command(&["explore", &file, "--profile", "teaching", "--save", &saved]);
    assert_eq!(exit, Exit::Refuted, "{text}");
    assert!(text.contains("reproduce: windtunnel run "), "{text}");
    let names: Vec<_> = std::fs::read_dir(&saved).expect("saved").filter_map(Result::ok).collect();
    let replays: Vec<String> = names
        .iter()
        .map(|entry| entry.path().display().to_string())
        .filter(|path| path.ends_with(".json") && !path.ends_with(".itf.json"))
        .collect();
    assert_eq!(names.len(), replays.len() * 4);
    assert!(!replays.is_empty());
    for path in replays {
        let (_, text) = command(&["run", &path, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&text).expect("one JSON document");
        let invariants = report["scenarios"][0]["invariants"].as_array().expect("invariants");
        let broken = invariants.iter().any(|invariant| {
            invariant["verdict"] == "refuted" && path.contains(invariant["name"].as_str().expect("a name"))
        });
        assert!(broken, "{path}: {text}");
    }
}
