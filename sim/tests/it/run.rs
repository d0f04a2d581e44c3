//! `windtunnel run`: every shipped scenario, determinism, replay, mutants, malformed input, signals.

use crate::support::{cli, folder};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windtunnel::process::environment::PassEnv;
use windtunnel::scenario::compile::{Compiled, Place, compile};
use windtunnel::scenario::load::Loaded;
use windtunnel::scenario::{WorldName, check, shipped};
use windtunnel::world::process::{ProcessOptions, missing, npm_roots};
use windtunnel::world::random::{Draw, Follow, Until, run as run_picked, shrink};
use windtunnel::world::shrink::{Failure, shrink_configuration};
use windtunnel::world::{process, scripted};
use windtunnel_model::invariants::Invariant;
use windtunnel_model::mutant::Mutant;
use windtunnel_model::profile::ProfileName;
use windtunnel_model::trace::{Header, TRACE_VERSION, Trace, TraceStep};

const PROGRAM: &str = env!("CARGO_BIN_EXE_windtunnel");

fn profiles(loaded: &Loaded) -> Vec<ProfileName> {
    loaded.profiles(None).expect("profiles that exist")
}

fn compiled(loaded: &Loaded, profile: ProfileName) -> Compiled {
    compile(loaded, profile, &Place::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn jsonl(steps: &[TraceStep]) -> String {
    let header = Header {
        version: TRACE_VERSION,
        scenario: "s".to_owned(),
        profile: "p".to_owned(),
        world: "w".to_owned(),
        seed: None,
    };
    Trace { header, steps: steps.to_vec() }.to_jsonl().expect("a trace can be serialised")
}

#[test]
fn there_are_enough_scenarios_and_each_states_an_end() {
    let all = shipped::all().expect("shipped scenarios can be parsed");
    assert!(all.len() >= 30, "{}", all.len());
    let real = all.iter().filter(|loaded| {
        loaded.scenario.worlds.contains(&WorldName::Process) && loaded.scenario.needs.is_empty()
    });
    assert!(real.count() >= 8, "real processes with nothing but this program");
    for loaded in &all {
        let random = loaded.scenario.worlds == [WorldName::Random];
        assert!(random || loaded.scenario.expect.end.is_some(), "{} expects no end", loaded.id);
        assert!(
            !loaded.scenario.teaches.is_empty() && !loaded.scenario.reproduces.is_empty(),
            "{}",
            loaded.id
        );
    }
}

#[test]
fn scripted_scenarios_do_what_they_say_in_every_profile_they_name() {
    let mut ran = 0;
    for loaded in shipped::all().expect("shipped scenarios can be parsed") {
        if !loaded.scenario.worlds.is_empty() && !loaded.scenario.worlds.contains(&WorldName::Scripted) {
            continue;
        }
        for profile in profiles(&loaded) {
            let outcome = scripted::run(&mut compiled(&loaded, profile));
            let expect = loaded.scenario.expectation(profile.word());
            let differences = check::differences(&expect, &outcome, WorldName::Scripted);
            assert!(differences.is_empty(), "{} [{profile}]: {differences:#?}", loaded.id);
            ran += 1;
        }
    }
    assert!(ran >= 60, "{ran}");
}

#[test]
fn an_expectation_that_is_wrong_is_refuted() {
    let all = shipped::all().expect("shipped scenarios can be parsed");
    let loaded = all.iter().find(|loaded| loaded.id == "loop/two-calls").expect("it ships");
    let outcome = scripted::run(&mut compiled(loaded, ProfileName::Documented));
    let mut expect = loaded.scenario.expectation("documented");
    expect.end = Some("max_turns".to_owned());
    expect.calls.insert("t1".to_owned(), "timed_out".to_owned());
    expect.texts.insert("t1".to_owned(), "gamma".to_owned());
    expect.model_calls = Some(7);
    expect.hook_runs = Some(1);
    expect.result_order = Some(vec!["t2".to_owned()]);
    expect.breaks = vec!["I-PAIR".to_owned()];
    expect.servers.insert("s".to_owned(), "connected".to_owned());
    let differences = check::differences(&expect, &outcome, WorldName::Scripted);
    assert_eq!(differences.len(), 8, "{differences:#?}");
}

#[test]
fn the_same_scenario_and_seed_give_the_same_bytes() {
    for loaded in shipped::all().expect("shipped scenarios can be parsed") {
        for profile in profiles(&loaded) {
            if loaded.scenario.worlds == [WorldName::Process] {
                continue;
            }
            let trace = || jsonl(&scripted::run(&mut compiled(&loaded, profile)).steps);
            assert_eq!(trace(), trace(), "{}", loaded.id);
            let drawn = |compiled: &mut Compiled| {
                (0..3)
                    .map(|n| run_picked(compiled, &mut Draw::new(42, n), Until::End))
                    .fold(String::new(), |text, run| text + &jsonl(&run.outcome.steps))
            };
            let mut one = compiled(&loaded, profile);
            assert_eq!(drawn(&mut one), drawn(&mut compiled(&loaded, profile)), "{}", loaded.id);
            // Runs do not leak into one another.
            assert_eq!(drawn(&mut one), drawn(&mut one), "{}", loaded.id);
        }
    }
}

#[test]
fn the_stream_of_the_random_world_is_fixed() {
    // The first picks of seed 1 among three equally likely choices: these values must never change.
    let all = shipped::all().expect("shipped scenarios can be parsed");
    let loaded = all.iter().find(|loaded| loaded.id == "random/parallel-calls").expect("it ships");
    let run = run_picked(&mut compiled(loaded, ProfileName::Documented), &mut Draw::new(1, 0), Until::End);
    insta::assert_debug_snapshot!(run.schedule);
}

#[test]
fn a_schedule_is_the_run() {
    let all = shipped::all().expect("shipped scenarios can be parsed");
    let loaded = all.iter().find(|loaded| loaded.id == "random/everything-at-once").expect("it ships");
    let mut compiled = compiled(loaded, ProfileName::Documented);
    for number in 0..20 {
        let drawn = run_picked(&mut compiled, &mut Draw::new(5, number), Until::End);
        let followed = run_picked(&mut compiled, &mut Follow::new(&drawn.schedule), Until::End);
        assert_eq!(jsonl(&drawn.outcome.steps), jsonl(&followed.outcome.steps));
    }
}

/// How many random runs a mutant gets before it counts as not found.
const RUNS: u64 = 300;

/// Decisions 12: each mutant is found, by a shipped script or by the random world, and an invariant says so; what the
/// random world found is shrunk while the same invariant stays broken. And each invariant catches some mutant: a check
/// that cannot fail is no check.
#[test]
fn every_mutant_is_caught_and_every_invariant_catches_one() {
    let all = shipped::all().expect("shipped scenarios can be parsed");
    let mut sessions: Vec<(bool, Compiled)> = all
        .iter()
        .filter(|loaded| {
            loaded.scenario.worlds != [WorldName::Process] && profiles(loaded)[0] != ProfileName::Teaching
        })
        .map(|loaded| {
            (loaded.scenario.worlds == [WorldName::Random], compiled(loaded, ProfileName::Documented))
        })
        .collect();
    let mut seen: BTreeMap<Invariant, Mutant> = BTreeMap::new();
    let mut picks: BTreeMap<Mutant, usize> = BTreeMap::new();
    let mut lives = Vec::new();
    for mutant in Mutant::ALL {
        let mut caught = false;
        for (random, compiled) in &mut sessions {
            compiled.session.set_mutant(Some(mutant));
            for invariant in scripted::run(compiled).broken.keys() {
                seen.entry(*invariant).or_insert(mutant);
                caught = true;
            }
            if !*random || picks.contains_key(&mutant) {
                continue;
            }
            for number in 0..RUNS {
                let run = run_picked(compiled, &mut Draw::new(3, number), Until::Broken);
                let Some(invariant) = run.outcome.broken.keys().next().copied() else { continue };
                let schedule = shrink(compiled, &run.schedule, invariant);
                let again = run_picked(compiled, &mut Follow::new(&schedule), Until::Broken);
                assert!(again.outcome.broken.contains_key(&invariant), "{mutant:?}: the shrunk run replays");
                seen.entry(invariant).or_insert(mutant);
                picks.insert(mutant, schedule.len());
                caught = true;
                break;
            }
        }
        if !caught {
            lives.push(mutant);
        }
    }
    assert!(lives.is_empty(), "mutants that live: {lives:?}");
    let never: Vec<Invariant> = Invariant::ALL.into_iter().filter(|i| !seen.contains_key(i)).collect();
    assert!(never.is_empty(), "invariants that no mutant breaks: {never:?}");
    let short = picks.values().filter(|picks| **picks <= 6).count();
    assert!(short >= 5, "{picks:?}");
}

/// A failing run is shrunk in its configuration too, and what is left is a scenario that can be saved and replayed.
#[test]
fn configurations_shrink_while_the_same_invariant_stays_broken() {
    let all = shipped::all().expect("shipped scenarios can be parsed");
    let loaded = all.iter().find(|loaded| loaded.id == "random/parallel-calls").expect("it ships");
    let mutant = Mutant::ReturnTwice;
    let mut whole = compiled(loaded, ProfileName::Documented);
    whole.session.set_mutant(Some(mutant));
    let (schedule, invariant) = (0..RUNS)
        .find_map(|number| {
            let run = run_picked(&mut whole, &mut Draw::new(3, number), Until::Broken);
            run.outcome.broken.keys().next().map(|invariant| (run.schedule.clone(), *invariant))
        })
        .expect("the mutant is found");
    let failure = Failure { profile: ProfileName::Documented, invariant, mutant: Some(mutant), seed: 3 };
    let (smaller, schedule) = shrink_configuration(loaded, &schedule, failure);
    assert!(smaller.text.len() < serde_json::to_string_pretty(&loaded.scenario).expect("JSON").len() / 2);
    assert!(schedule.len() <= 6, "{schedule:?}");
    let mut compiled = compiled(&smaller, ProfileName::Documented);
    compiled.session.set_mutant(Some(mutant));
    let again = run_picked(&mut compiled, &mut Follow::new(&schedule), Until::Broken);
    assert!(again.outcome.broken.contains_key(&invariant));
    // Under the right rule the smaller scenario is sound.
    compiled.session.set_mutant(None);
    let sound = run_picked(&mut compiled, &mut Follow::new(&schedule), Until::End);
    assert!(sound.outcome.broken.is_empty());
}

fn options() -> ProcessOptions {
    let cwd = std::env::current_dir().expect("a current folder");
    ProcessOptions { pass_env: PassEnv::None, program: PROGRAM.into(), npm: npm_roots(&cwd) }
}

#[test]
fn process_runs_do_what_they_say_and_their_inputs_replay_to_the_same_bytes() {
    let mut real = 0;
    for loaded in shipped::all().expect("shipped scenarios can be parsed") {
        if !loaded.scenario.worlds.contains(&WorldName::Process) {
            continue;
        }
        if let Some(reason) = missing(&loaded.scenario.needs, &options().npm) {
            // Where everything is installed nothing may be skipped.
            assert!(std::env::var_os("WINDTUNNEL_NO_SKIP").is_none(), "{}: {reason}", loaded.id);
            println!("skipped {}: {reason}", loaded.id);
            continue;
        }
        let profile = *profiles(&loaded).last().expect("a profile");
        let run = process::run(&loaded, profile, &options()).unwrap_or_else(|error| panic!("{error}"));
        let expect = loaded.scenario.expectation(profile.word());
        let differences = check::differences(&expect, &run.outcome, WorldName::Process);
        assert!(differences.is_empty(), "{} [{profile}]: {differences:#?}", loaded.id);
        for (path, expected) in &expect.files {
            assert_eq!(run.files.get(path).cloned().flatten(), *expected, "{}: {path}", loaded.id);
        }
        let mut again = compile(&loaded, profile, &run.place).unwrap_or_else(|error| panic!("{error}"));
        let replayed: Vec<TraceStep> = run
            .outcome
            .steps
            .iter()
            .map(|step| {
                again.session.step(step.input.clone(), step.at_ms).expect("recorded inputs are taken")
            })
            .collect();
        assert_eq!(jsonl(&run.outcome.steps), jsonl(&replayed), "{}", loaded.id);
        real += 1;
    }
    assert!(real >= 8, "{real} scenarios on real processes");
}

#[test]
fn secrets_of_the_caller_do_not_reach_hooks_and_tools() {
    let folder = folder();
    let scenario = serde_json::json!({
        "version": 1, "title": "t", "worlds": ["process"],
        "harness": {"settings": {"user": {"permissions": {"allow": ["Bash"]}}}},
        "world": {"model": [{"calls": [{"id": "t1", "tool": "Bash", "input": {"command": "env"}}]}]},
        "expect": {"calls": {"t1": "result"}}
    });
    std::fs::write(folder.path().join("env.json"), scenario.to_string()).expect("written");
    let run = |pass: &[&str]| {
        let output = Command::new(PROGRAM)
            .args(["run", "env.json", "--trace", "t.jsonl"])
            .args(pass)
            .current_dir(folder.path())
            .env("API_SECRET", "hunter2")
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        std::fs::read_to_string(folder.path().join("t.jsonl")).expect("a trace").contains("hunter2")
    };
    assert!(!run(&[]));
    assert!(run(&["--pass-env", "API_SECRET"]));
}

#[test]
fn sigint_in_the_middle_of_a_real_servers_call_leaves_no_process() {
    let folder = folder();
    let scenario = serde_json::json!({
        "version": 1, "title": "t", "worlds": ["process"],
        "harness": {"settings": {"user": {"permissions": {"allow": ["mcp__s", "Bash"]}}}},
        "world": {
            "model": [{"calls": [{"id": "t1", "tool": "mcp__s__quiet", "input": {}}]}],
            "servers": {"s": {"ignores_signals": true, "ignores_eof": true,
                "tools": [{"name": "quiet", "behaviour": {"answer": "silence"}}]}}
        }
    });
    std::fs::write(folder.path().join("quiet.json"), scenario.to_string()).expect("written");
    let mut child = Command::new(PROGRAM)
        .args(["run", "quiet.json"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let needle = format!("{}={}", windtunnel::process::MARKER, child.id());
    let children = || {
        std::fs::read_dir("/proc")
            .expect("/proc")
            .filter_map(Result::ok)
            .filter(|entry| {
                std::fs::read(entry.path().join("environ"))
                    .is_ok_and(|environ| environ.split(|b| *b == 0).any(|part| part == needle.as_bytes()))
            })
            .count()
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while children() == 0 {
        assert!(Instant::now() < deadline, "the server never started");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid")),
        nix::sys::signal::Signal::SIGINT,
    )
    .expect("sent");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let deadline = Instant::now() + Duration::from_secs(10);
    while children() > 0 {
        assert!(Instant::now() < deadline, "{} processes are left", children());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Malformed scenarios, named for the reason: each a message with its place, exit code 2, no panic.
#[test]
fn malformed_scenarios_are_refused_with_their_place() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/scenarios/invalid");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(cases).expect("the folder of cases") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        std::fs::copy(&path, folder.path().join(&name)).expect("copied");
        names.push(name);
    }
    let big = "x".repeat(10 * 1024 * 1024);
    write("ten-megabytes.json", &format!("{{\"version\": 1, \"title\": \"{big}\"}}"));
    write("deeply-nested.json", &format!("{}{}", "[".repeat(200_000), "]".repeat(200_000)));
    let deep = format!(
        "{{\"version\":1,\"title\":\"t\",\"harness\":{{\"settings\":{{\"user\":{}1{}}}}}}}",
        "[".repeat(5000),
        "]".repeat(5000)
    );
    write("deeply-nested-settings.json", &deep);
    std::fs::write(folder.path().join("not-utf-8.json"), b"{\"version\": 1, \"title\": \"\xff\"}")
        .expect("written");
    std::os::unix::fs::symlink("refers-to-itself.json", folder.path().join("refers-to-itself.json"))
        .expect("linked");
    write("empty.json", "");
    names.extend(
        [
            "ten-megabytes.json",
            "deeply-nested.json",
            "deeply-nested-settings.json",
            "not-utf-8.json",
            "refers-to-itself.json",
            "empty.json",
            "missing-file.json",
        ]
        .map(str::to_owned),
    );
    names.sort();
    assert!(names.len() >= 20, "{}", names.len());
    let mut messages = String::new();
    for name in &names {
        for command in [["run", name.as_str()], ["scenario", "check"]] {
            let args: Vec<&str> =
                if command[0] == "run" { command.to_vec() } else { vec!["scenario", "check", name] };
            let output = cli(&args, folder.path());
            assert_eq!(output.exit, windtunnel::cli::Exit::CannotJudge, "{name}: {}", output.stderr);
            assert!(output.stderr.contains(name.as_str()), "{name}: {}", output.stderr);
            assert!(output.stdout.is_empty(), "{name}: {}", output.stdout);
            if command[0] == "run" {
                messages.push_str(&output.stderr);
            }
        }
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn a_refused_scenario_writes_nothing() {
    let folder = folder();
    let target = folder.path().join("owned.txt");
    let files = serde_json::json!({target.to_string_lossy(): "owned"});
    let scenario = serde_json::json!({"version": 1, "title": "t", "worlds": ["process"], "files": files});
    std::fs::write(folder.path().join("escape.json"), scenario.to_string()).expect("written");
    let output = cli(&["run", "escape.json"], folder.path());
    assert_eq!(output.exit, windtunnel::cli::Exit::CannotJudge);
    assert!(!target.exists(), "a path outside the workspace was written");
}

#[test]
fn a_loop_without_a_limit_is_cut_off_and_said_not_to_end() {
    let folder = folder();
    let scenario = serde_json::json!({"version": 1, "title": "t", "world": {"model_repeats": true,
        "model": [{"calls": [{"id": "t1", "tool": "Read", "input": {"file_path": "a"}}]}]}});
    std::fs::write(folder.path().join("loop.json"), scenario.to_string()).expect("written");
    let output = cli(&["run", "loop.json"], folder.path());
    assert_eq!(output.exit, windtunnel::cli::Exit::Refuted, "{}", output.stderr);
    assert!(output.stdout.contains("did not end"), "{}", output.stdout);
}

/// A closed pipe must not turn a refuted run into a green one.
#[test]
fn a_refuted_run_stays_refuted_when_nobody_reads_it() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = folder();
    let scenario = serde_json::json!({"version": 1, "title": "t", "expect": {"end": "max_turns"}});
    std::fs::write(folder.path().join("wrong.json"), scenario.to_string()).expect("written");
    for format in ["text", "json"] {
        let (mut stdin, mut stdout, mut stderr) = (std::io::empty(), Closed, Vec::new());
        let mut io = windtunnel::cli::Io {
            stdin: &mut stdin,
            stdout: &mut stdout,
            stderr: &mut stderr,
            cwd: folder.path().to_owned(),
            home: None,
            progress: false,
        };
        let args = ["windtunnel", "run", "wrong.json", "--format", format].map(Into::into);
        assert_eq!(windtunnel::cli::run(args, &mut io), windtunnel::cli::Exit::Refuted, "{format}");
    }
}

#[test]
fn a_new_scenario_passes_as_it_is() {
    let folder = folder();
    let wrote = cli(&["new", "guard"], folder.path());
    assert_eq!(wrote.exit, windtunnel::cli::Exit::Holds, "{}", wrote.stderr);
    let again = cli(&["new", "guard"], folder.path());
    assert_eq!(again.exit, windtunnel::cli::Exit::CannotJudge, "an existing file is not overwritten");
    let output = Command::new(PROGRAM)
        .args(["run", "guard.json"])
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn json_output_is_one_document_with_the_fields_of_the_contract() {
    let folder = folder();
    cli(&["new", "guard"], folder.path());
    let output = cli(&["run", "guard.json", "--world", "scripted", "--format", "json"], folder.path());
    let document: serde_json::Value = serde_json::from_str(&output.stdout).expect("one document");
    assert_eq!(document["version"], 1);
    assert_eq!(document["command"], "run");
    assert_eq!(document["passed"], 1);
    let scenario = &document["scenarios"][0];
    assert_eq!(scenario["verdict"], "holds");
    assert_eq!(scenario["calls"][0]["executed"], false);
    assert_eq!(scenario["calls"][0]["decision"], "deny");
    assert_eq!(scenario["invariants"].as_array().map(Vec::len), Some(Invariant::ALL.len()));
}

#[test]
fn the_checked_in_schema_is_the_generated_one() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/scenario.schema.json");
    let generated = windtunnel::cli::scenario::schema().expect("it can be generated") + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &generated).expect("written");
    }
    let checked_in = std::fs::read_to_string(&path).expect("scenarios/scenario.schema.json");
    assert_eq!(checked_in, generated, "run the test with UPDATE_SCHEMA=1");
    let schema: serde_json::Value = serde_json::from_str(&checked_in).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a JSON Schema");
    for loaded in shipped::all().expect("shipped scenarios can be parsed") {
        let value: serde_json::Value = serde_json::from_str(&loaded.text).expect("JSON");
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", loaded.id);
    }
}
