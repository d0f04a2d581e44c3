//! Every observed record that concerns the cost of the context, against the model under `claude-code-2.1.332`.
//!
//! A record is judged by its shape (which facts it gives), never by its name. Those whose shape no rule covers are
//! listed with the reason in [`NOT_MODELLED`], and the list is checked: a record in neither, or in both, fails.

use serde_json::{Value, json};
use windtunnel_model::context::cache::{Lifetime, policy};
use windtunnel_model::context::compaction::{Invoked, reattach};
use windtunnel_model::context::conversation::{Conversation, Layout, Start, extends, rendered};
use windtunnel_model::context::definition::Definition;
use windtunnel_model::context::ledger::agree;
use windtunnel_model::context::listing::{self, Description, Listed};
use windtunnel_model::context::loading::{Decision, Facts, Loading, Setting, Size, decide};
use windtunnel_model::context::price::{Models, SHIPPED, Usage, generation, window};
use windtunnel_model::context::request::Request;
use windtunnel_model::context::search::search;
use windtunnel_model::context::tokens::{Characters, utf16_len};
use windtunnel_model::context::{cut, definition};
use windtunnel_model::profile::context::CLAUDE_CODE as PARAMETERS;

const RECORDS: &str = include_str!("data/observed-context.jsonl");
const DEFAULT_MODEL: &str = "claude-opus-5-5";

/// Records that this module does not judge, and why. A name may end in `*`.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("ts-call-*", "what a call of an unloaded tool comes to is the loop's and the gate's matter"),
    (
        "md-*",
        "which CLAUDE.md files are read, and in which order, is the sources' matter; here only their size counts",
    ),
    (
        "sk-invoke-*",
        "the rendering of a skill's body (arguments, embedded commands) is not part of the cost model",
    ),
    ("sk-embedded-*", "embedded commands are run by the world"),
    ("sk-model-calls-*", "refusals of an invocation are the gate's matter"),
    ("sk-user-calls-*", "refusals of an invocation are the gate's matter"),
    ("sk-with-allowed-tools-*", "approval of an invocation is the gate's matter"),
    ("sk-context-fork", "a forked skill is a subagent's conversation of its own"),
    ("skill-*", "which of several skills of one name wins is the sources' matter"),
    ("sk-listing-*", "the record keeps the first characters of the files only"),
    ("slow-*", "waiting for a slow server is the loop's matter; the requests are those of a fast one"),
    ("die-*", "the record shows that nothing changes in the requests; the death itself is the loop's matter"),
    ("autocompact-*", "the start of compaction is known only to about 11 tokens on one model"),
    ("cost-claude-md-vs-skill-5000", "the texts around CLAUDE.md are the harness's own and not copied here"),
    (
        "instructions-upfront-mode",
        "judged by the conversation's unit below: instructions are always a message",
    ),
];

fn excused(name: &str) -> bool {
    NOT_MODELLED.iter().any(|(pattern, _)| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *pattern,
    })
}

fn model_of(case: &Value) -> &str {
    let args = case.get("args").and_then(Value::as_array);
    let at = |args: &Vec<Value>| args.iter().position(|arg| arg == "--model");
    args.and_then(|args| at(args).and_then(|at| args.get(at + 1)))
        .and_then(Value::as_str)
        .unwrap_or(DEFAULT_MODEL)
}

fn environment<'a>(case: &'a Value, name: &str) -> Option<&'a str> {
    case.get("env").and_then(|env| env.get(name)).and_then(Value::as_str)
}

/// The `key=value` words of the fake server, and whether it is marked as always loaded.
fn servers(case: &Value) -> Vec<(String, Value, bool)> {
    let Some(servers) = case.pointer("/mcp/mcpServers").and_then(Value::as_object) else { return Vec::new() };
    let words = |server: &Value| {
        let args = server.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
        let pairs = args.iter().filter_map(Value::as_str).filter_map(|word| word.split_once('='));
        Value::Object(
            pairs.map(|(key, value)| (key.to_owned(), json!(value.parse::<u64>().unwrap_or(0)))).collect(),
        )
    };
    servers
        .iter()
        .map(|(name, server)| (name.clone(), words(server), server.get("alwaysLoad") == Some(&json!(true))))
        .collect()
}

/// The fake server's tools: `desc` characters of description; a schema that gives the recorded size of definitions.
fn tools(server: &str, words: &Value, always: bool) -> Vec<Definition> {
    let number = |key: &str| words.get(key).and_then(Value::as_u64).unwrap_or(0);
    (0..number("n"))
        .map(|index| Definition {
            server: Some(server.to_owned()),
            name: format!("tool_{index:03}"),
            description: "d".repeat(usize::try_from(number("desc")).unwrap()),
            input_schema: json!({"type": "object", "properties": {"arg0": {"type": "string", "description": "x".repeat(89)}}}),
            always_load: always || (number("always") > 0 && number("always") == index),
            search_hint: String::new(),
        })
        .collect()
}

fn builtin(name: &str, always_load: bool) -> Definition {
    Definition {
        server: None,
        name: name.to_owned(),
        description: "A built-in.".to_owned(),
        input_schema: json!({"type": "object"}),
        always_load,
        search_hint: String::new(),
    }
}

/// JSON with the separators in which the records measure: `", "` and `": "`.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", json!(key), spaced(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(elements) => format!("[{}]", elements.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn decision(case: &Value) -> Decision {
    let model = model_of(case);
    let setting = Setting::parse(environment(case, "ENABLE_TOOL_SEARCH"), &PARAMETERS);
    let denied = case
        .pointer("/user_settings/permissions/deny")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let facts = Facts {
        setting,
        generation: generation(model),
        window: window(model),
        first_party: false,
        betas_disabled: environment(case, "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS").is_some(),
        search_denied: denied.contains(&json!("ToolSearch")),
        size: Size::Counted(case.get("count_tokens").and_then(Value::as_u64).unwrap_or(0)),
    };
    decide(&facts, &PARAMETERS)
}

/// Which tools stand where in the first request.
fn judge_loading(case: &Value, observed: &Value) {
    let decision = decision(case);
    let deferred = decision.loading == Loading::Deferred;
    assert_eq!(observed["toolsearch"], json!(deferred), "{}", decision.reason);
    let denied = case
        .pointer("/user_settings/permissions/deny")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let all: Vec<Definition> = servers(case)
        .iter()
        .flat_map(|(name, words, always)| tools(name, words, *always))
        .filter(|tool| !denied.contains(&json!(tool.qualified())))
        .collect();
    let upfront = all.iter().filter(|tool| !deferred || tool.always_load).count();
    assert_eq!(observed["mcp_upfront"], json!(upfront));
    if let Some(names) = observed.get("mcp_names_in_messages") {
        let announced = if deferred || decision.names_announced_too {
            all.iter().filter(|tool| !tool.always_load).count()
        } else {
            0
        };
        assert_eq!(names, &json!(announced));
    }
    if let Some(calls) = observed.get("count_tokens_calls") {
        let setting = Setting::parse(environment(case, "ENABLE_TOOL_SEARCH"), &PARAMETERS);
        assert_eq!(
            calls,
            &json!(usize::from(matches!(setting, Setting::Auto { .. }))),
            "only a threshold is counted for"
        );
    }
}

fn judge_listing(case: &Value, observed: &Value) {
    let model = model_of(case);
    let mut skills: Vec<Listed> = match case.get("desc_lengths").and_then(Value::as_object) {
        Some(lengths) => lengths
            .iter()
            .map(|(name, length)| (name.clone(), length.as_u64().unwrap()))
            .map(|(name, length)| (name, usize::try_from(length).unwrap()))
            .map(|(name, length)| listed(&name, length, false))
            .collect(),
        None => {
            let length = usize::try_from(case["desc_chars"].as_u64().unwrap()).unwrap();
            (0..case["n_skills"].as_u64().unwrap())
                .map(|n| listed(&format!("s{n:03}"), length, false))
                .collect()
        }
    };
    // The one skill that comes with the harness and that no setting drops (sk-listing-*: its name, 255 characters).
    let cap = case.pointer("/user_settings/skillListingMaxDescChars").and_then(Value::as_u64);
    skills.push(listed("plugin-authoring", 255, true));
    let fraction = case.pointer("/user_settings/skillListingBudgetFraction").and_then(Value::as_f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of at most 1")]
    let points = fraction.map(|fraction| (fraction * 10_000.0).round() as u64);
    let named = environment(case, "SLASH_COMMAND_TOOL_CHAR_BUDGET").and_then(|text| text.parse().ok());
    let budget = case
        .get("budget")
        .and_then(Value::as_u64)
        .or(named)
        .or_else(|| listing::budget(window(model), generation(model), points, &PARAMETERS))
        .unwrap();
    let lines = listing::list(&skills, budget, cap.map(|cap| usize::try_from(cap).unwrap()), &PARAMETERS);
    if let Some(characters) = observed.get("list_lines_chars") {
        assert_eq!(&json!(listing::characters(&lines)), characters);
    }
    let own: Vec<_> = lines.iter().filter(|line| line.name != "plugin-authoring").collect();
    if let Some(lens) = observed.get("lens").and_then(Value::as_object) {
        for (line, (name, length)) in own.iter().zip(lens) {
            assert_eq!(&line.name, name);
            assert_eq!(json!(utf16_len(&line.text).saturating_sub(utf16_len(name) + 4)), *length, "{name}");
        }
        return;
    }
    let count = |wanted| own.iter().filter(|line| line.description == wanted).count();
    assert_eq!(observed["full"], json!(count(Description::Whole)));
    assert_eq!(observed["cut"], json!(count(Description::Cut)));
    assert_eq!(observed["none"], json!(count(Description::Dropped)));
    // The record keeps the first six names of each kind.
    let names = |wanted| {
        own.iter().filter(move |line| line.description == wanted).map(|line| line.name.clone()).take(6)
    };
    assert_eq!(observed["which_none"], names(Description::Dropped).collect::<Value>());
    let full: Vec<String> = names(Description::Whole).collect();
    let recorded = observed["which_full"].as_array().unwrap();
    assert!(recorded.iter().zip(&full).all(|(a, b)| a == b) && recorded.is_empty() == full.is_empty());
}

fn listed(name: &str, length: usize, always_described: bool) -> Listed {
    Listed {
        name: name.to_owned(),
        description: "d".repeat(length),
        model_invocable: true,
        uses: 0,
        always_described,
    }
}

fn judge_reattachment(case: &Value, observed: &Value) {
    // The text holds a line naming the skill's folder before the body: 80 characters in these runs (k1: 100 -> 180).
    let sizes: Vec<usize> = case["skills_body_chars"]
        .as_array()
        .unwrap()
        .iter()
        .map(|size| usize::try_from(size.as_u64().unwrap()).unwrap() + 80)
        .collect();
    let invocations: Vec<Invoked> = case["invocation_order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap().trim_start_matches('/').split(' ').next().unwrap().to_owned())
        .map(|name| {
            let index: usize = name[1..].parse().unwrap();
            Invoked { text: "x".repeat(sizes[index]), name }
        })
        .collect();
    let back: Vec<Value> = reattach(&invocations, &PARAMETERS)
        .iter()
        .map(|skill| json!([skill.name, utf16_len(&skill.text), skill.cut]))
        .collect();
    assert_eq!(observed["reattached"], Value::Array(back));
}

fn judge_cut(case: &Value, observed: &Value) {
    let (_, words, _) = servers(case).into_iter().next().unwrap();
    let sent = |key: &str| {
        let length = usize::try_from(words.get(key).and_then(Value::as_u64).unwrap()).unwrap();
        utf16_len(&cut::with_suffix(
            &"x".repeat(length),
            PARAMETERS.mcp_text_cap.value,
            PARAMETERS.mcp_text_suffix.value,
        ))
    };
    match observed.get("sent_chars") {
        // One text: the instructions where the server gives any, else the description.
        Some(chars) => {
            assert_eq!(chars, &json!(sent(if words.get("instr").is_some() { "instr" } else { "desc" })))
        }
        None => {
            assert_eq!(observed["desc_chars"], json!(sent("desc")));
            assert_eq!(observed["instr_chars"], json!(sent("instr")));
        }
    }
}

fn judge_multibyte(case: &Value, observed: &Value) {
    let (count, point) = case["instr"].as_str().unwrap().split_once(" x U+").unwrap();
    let character = char::from_u32(u32::from_str_radix(point, 16).unwrap()).unwrap();
    let text = character.to_string().repeat(count.parse().unwrap());
    let cut = cut::with_suffix(&text, PARAMETERS.mcp_text_cap.value, PARAMETERS.mcp_text_suffix.value);
    let kept = cut.chars().filter(|c| *c == character).count();
    let recorded = observed.get("kana").or_else(|| observed.get("emoji")).unwrap();
    assert_eq!(recorded, &json!(kept));
    assert!(cut.ends_with("… [truncated]"));
}

fn judge_search(case: &Value, observed: &Value) {
    let count: u64 = case["mcp"].as_str().unwrap().split(' ').next().unwrap().parse().unwrap();
    let mut session = tools("srv", &json!({"n": count, "desc": 20}), false);
    for tool in &mut session {
        tool.description = "a tool, number so and so".to_owned();
    }
    session.push(builtin("Read", true));
    session.push(builtin("WebFetch", false));
    let query = case["input"]["query"].as_str().unwrap();
    let most =
        case["input"].get("max_results").and_then(Value::as_u64).map_or(5, |n| usize::try_from(n).unwrap());
    let found: Vec<String> =
        search(&session, query, most).tools.iter().map(|tool| tool.qualified()).collect();
    match observed["content"].get("tool_reference").and_then(Value::as_array) {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(names) => {
            // Built-ins that free words find by descriptions that are not ours to copy are left out.
            let free_words = !query.contains(':');
            let judged: Vec<&Value> =
                names.iter().filter(|n| !free_words || n.as_str().unwrap().starts_with("mcp__")).collect();
            let ours: Vec<Value> =
                found.iter().filter(|n| !free_words || n.starts_with("mcp__")).map(|n| json!(n)).collect();
            assert_eq!(ours.iter().collect::<Vec<_>>(), judged);
        }
    }
}

fn start(definitions: Vec<Definition>, system: usize) -> Start {
    Start {
        definitions,
        system: vec!["instructions".to_owned(); system],
        prompt: "hello".to_owned(),
        ..Start::default()
    }
}

fn layout(model: &str) -> Layout {
    if matches!(generation(model), Some((0..=4, _))) { Layout::UserReminder } else { Layout::SystemMessage }
}

/// Proposition 3.8 on the bytes of whole requests: what N tools add to each layer.
fn judge_amounts(case: &Value, observed: &Value) {
    let (_, words, _) = servers(case).into_iter().next().unwrap();
    let counter = Characters::FOUR;
    let layers = |count: bool, loading| {
        let mut definitions = vec![builtin("WebFetch", false), builtin("Read", true)];
        if count {
            definitions.extend(tools("srv", &words, false));
        }
        let mut session = Conversation::start(
            start(definitions, 2),
            loading,
            false,
            Layout::SystemMessage,
            &PARAMETERS,
            &counter,
        );
        let request = session.send();
        agree(session.ledger(), &request, &counter).unwrap();
        [&request.tools, &request.messages, &request.system]
            .map(|layer| spaced(&Value::Array(layer.clone())).len())
    };
    for (word, loading) in [("upfront", Loading::Upfront), ("deferred", Loading::Deferred)] {
        let (with, without) = (layers(true, loading), layers(false, loading));
        let added = [with[0] - without[0], with[1] - without[1], with[2] - without[2]];
        let recorded =
            ["d_tools", "d_messages", "d_system"].map(|key| observed[word][key].as_u64().unwrap() as usize);
        assert_eq!(added, recorded, "{word}");
    }
    let all = tools("srv", &words, false);
    let definitions: usize = all.iter().map(|tool| spaced(&tool.wire(&PARAMETERS)).len()).sum();
    assert_eq!(observed["sum_definition_bytes"], json!(definitions), "the stand-in has the recorded size");
    assert_eq!(
        observed["sum_name_bytes"],
        json!(all.iter().map(|tool| tool.qualified().len()).sum::<usize>())
    );
}

/// Consecutive requests: which layers stay equal, and whether the rendered prompt is extended.
fn judge_requests(case: &Value, observed: &[Value]) {
    let model = model_of(case);
    let counter = Characters::FOUR;
    let mut definitions = vec![builtin("Read", true)];
    let mut changed = 0;
    for (name, words, always) in servers(case) {
        definitions.extend(tools(&name, &words, always));
        changed = words.get("changed").and_then(Value::as_u64).unwrap_or(0);
    }
    let first = u64::try_from(definitions.len()).unwrap() - 1;
    let loading = decision(case).loading;
    let mut session =
        Conversation::start(start(definitions, 3), loading, false, layout(model), &PARAMETERS, &counter);
    let script = case["script"].as_array().unwrap();
    let mut previous: Request = session.send();
    for (step, (turn, expected)) in script.iter().zip(observed.iter().skip(1)).enumerate() {
        let call = &turn[0];
        let query = call["input"].get("query").and_then(Value::as_str);
        match query {
            Some(query) => {
                session.search(call["id"].as_str().unwrap(), query);
            }
            None => {
                session.reply(vec![call.clone()]);
                session
                    .answer(vec![json!({"type": "tool_result", "tool_use_id": call["id"], "content": "ok"})]);
            }
        }
        // The first call makes the server push its change, which is in force one request later.
        let mut kept = true;
        if changed > 0 && step == 1 {
            let more: Vec<Definition> = tools("srv", &json!({"n": first + changed, "desc": 60}), false)
                .split_off(usize::try_from(first).unwrap());
            session.list_changed(more);
            kept = loading == Loading::Deferred;
        }
        let now = session.send();
        agree(session.ledger(), &now, &counter).unwrap();
        assert_eq!(now.system, previous.system);
        assert_eq!(now.messages[..previous.messages.len()], previous.messages[..], "messages only grow");
        assert_eq!(expected["messages_prefix"], json!(true));
        let standing = |request: &Request| {
            request
                .tools
                .iter()
                .filter(|tool| tool.get("defer_loading").is_none())
                .cloned()
                .collect::<Vec<_>>()
        };
        let equal = standing(&now) == standing(&previous);
        assert_eq!(
            expected
                .get("nondeferred_equal")
                .or_else(|| expected.get("nondeferred_bytes_equal_prev"))
                .unwrap(),
            &json!(equal)
        );
        if let Some(recorded) = expected.get("tools_json_equal") {
            assert_eq!(recorded, &json!(now.tools == previous.tools));
        }
        if let Some(count) = expected["tools"].as_u64() {
            let loaded = |request: &Request| {
                request.tools.iter().filter(|tool| tool.get("defer_loading").is_some()).count()
            };
            let recorded = expected["deferred_in_tools"].as_array().unwrap().len();
            assert_eq!(loaded(&now), recorded, "of {count} tools");
        }
        let (earlier, later) = (rendered(&previous, &counter), rendered(&now, &counter));
        assert_eq!(extends(&earlier, &later).is_ok(), kept, "proposition 3.8 part 4, step {step}");
        previous = now;
    }
}

fn judge_breakpoints(case: &Value, observed: &Value) {
    let counter = Characters::FOUR;
    let lifetime = policy(|name| environment(case, name), model_of(case));
    let system = observed["system_blocks"].as_array().unwrap().len();
    let model = model_of(case);
    let mut session = Conversation::start(
        start(vec![builtin("Read", true)], system),
        Loading::Deferred,
        false,
        layout(model),
        &PARAMETERS,
        &counter,
    );
    let script = case.get("script").and_then(Value::as_array).cloned().unwrap_or_default();
    for (index, recorded) in observed["breakpoints_per_request"].as_array().unwrap().iter().enumerate() {
        let request = session.send();
        let points = lifetime.map(|lifetime| session.breakpoints(lifetime)).unwrap_or_default();
        let recorded = recorded.as_array().unwrap();
        assert_eq!(points.len(), recorded.len());
        assert!(points.len() <= 4);
        let blocks = rendered(&request, &counter).len();
        for (point, seen) in points.iter().zip(recorded) {
            let tools = request.tools.len();
            match seen[0].as_str().unwrap() {
                "system" => assert_eq!(json!(point.block - tools), seen[1]),
                // "3/3": the last message; the breakpoint is on its last block.
                _ => {
                    let (at, of) = seen[1].as_str().unwrap().split_once('/').unwrap();
                    assert_eq!((at, point.block), (of, blocks - 1));
                }
            }
            let hour = seen.as_array().unwrap().last().unwrap().get("ttl") == Some(&json!("1h"));
            assert_eq!(point.lifetime == Lifetime::OneHour, hour);
        }
        let Some(turn) = script.get(index).and_then(Value::as_array) else { break };
        session.reply(turn.clone());
        let results = turn.iter().filter(|block| block["type"] == "tool_use");
        session.answer(
            results
                .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}))
                .collect(),
        );
    }
}

fn judge_order(case: &Value, observed: &Value) {
    let mut all = Vec::new();
    for server in case["servers"].as_object().unwrap().keys() {
        let letter = if server.starts_with('z') { 't' } else { 'u' };
        for index in (0..3).rev() {
            all.push(Definition {
                server: Some(server.clone()),
                name: format!("{letter}_{index:03}"),
                ..builtin("", false)
            });
        }
    }
    definition::sort_for_sending(&mut all);
    let names: Value = all.iter().map(|tool| json!(tool.qualified())).collect();
    let key = if case["env"].is_null() { "names_in_messages" } else { "mcp_tools_order" };
    assert_eq!(observed[key], names);
}

fn judge_prices(case: &Value, observed: &Value) {
    // "one field at 10,000 tokens, others 0"
    let tokens: u64 =
        case["usage"].as_str().unwrap().split(' ').nth(3).unwrap().replace(',', "").parse().unwrap();
    let models = Models::read(SHIPPED).unwrap();
    for (id, prices) in observed.as_object().unwrap() {
        let model = models.find(id).unwrap();
        let usage = |key: &str| match key {
            "in" => Usage { input: tokens, ..Usage::default() },
            "out" => Usage { output: tokens, ..Usage::default() },
            "read" => Usage { read: tokens, ..Usage::default() },
            "write_5m" | "write_unspecified" => Usage { write_5m: tokens, ..Usage::default() },
            _ => Usage { write_1h: tokens, ..Usage::default() },
        };
        for (key, price) in prices.as_object().unwrap() {
            let per_million =
                model.cost(&usage(key)).unwrap() * 1e6 / f64::from(u32::try_from(tokens).unwrap());
            assert!((per_million - price.as_f64().unwrap()).abs() < 1e-9, "{id} {key}");
        }
    }
}

fn judge_long_input(observed: &Value) {
    let models = Models::read(SHIPPED).unwrap();
    let haiku = models.find("claude-haiku-5-5").unwrap();
    for (tokens, price) in observed.as_object().unwrap() {
        let input: u64 = tokens.parse().unwrap();
        let cost = haiku.cost(&Usage { input, ..Usage::default() }).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let per_million = cost / input as f64 * 1e6;
        assert!((per_million - price.as_f64().unwrap()).abs() < 1e-9, "{tokens}");
    }
}

/// Judges a record by the facts that it gives; `false` where no rule covers its shape.
fn judge(case: &Value, observed: &Value) -> bool {
    let has = |value: &Value, key: &str| value.get(key).is_some();
    if has(observed, "toolsearch") {
        judge_loading(case, observed);
    } else if has(case, "n_skills") || has(case, "desc_lengths") {
        judge_listing(case, observed);
    } else if has(case, "skills_body_chars") {
        judge_reattachment(case, observed);
    } else if has(observed, "sent_chars") || has(observed, "desc_chars") {
        judge_cut(case, observed);
    } else if case.get("instr").is_some() {
        judge_multibyte(case, observed);
    } else if has(observed, "sum_definition_bytes") {
        judge_amounts(case, observed);
    } else if has(observed, "breakpoints_per_request") {
        judge_breakpoints(case, observed);
    } else if has(observed, "mcp_tools_order") {
        judge_order(case, observed);
    } else if case.pointer("/input/query").is_some() {
        judge_search(case, observed);
    } else if case.get("usage").and_then(Value::as_str).is_some_and(|text| text.starts_with("one field at")) {
        judge_prices(case, observed);
    } else if has(case, "usage.input_tokens") {
        judge_long_input(observed);
    } else if let Some(hint) = observed.get("hint_in_first_request") {
        assert_eq!(hint, &json!(false));
        let mut tool = tools("srv", &json!({"n": 1, "desc": 5}), false).remove(0);
        tool.search_hint = "zebra".to_owned();
        assert!(!tool.wire(&PARAMETERS).to_string().contains("zebra"));
    } else if let Some(requests) =
        observed.as_array().filter(|list| list.iter().skip(1).all(|r| has(r, "messages_prefix")))
    {
        judge_requests(case, requests);
    } else {
        return false;
    }
    true
}

#[test]
fn every_observed_record_about_cost_is_reproduced_or_excused_with_a_reason() {
    let (mut judged, mut excuses) = (0, 0);
    for line in RECORDS.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let name = record["name"].as_str().unwrap();
        if excused(name) {
            excuses += 1;
            continue;
        }
        println!("{name}");
        assert!(
            judge(&record["case"], &record["observed"]),
            "{name}: no rule covers it and no reason is given"
        );
        judged += 1;
    }
    println!("{judged} records reproduced, {excuses} not modelled");
    assert!(judged > 70, "{judged}");
    for (pattern, _) in NOT_MODELLED {
        let prefix = pattern.trim_end_matches('*');
        assert!(RECORDS.contains(&format!("\"name\": \"{prefix}")), "{pattern} excuses nothing");
    }
}

#[test]
fn instructions_are_a_message_in_either_strategy() {
    for loading in [Loading::Upfront, Loading::Deferred] {
        let mut beginning = start(tools("srv", &json!({"n": 1, "desc": 50}), false), 2);
        beginning.instructions = vec![("srv".to_owned(), "ZEBRA".to_owned())];
        let mut session = Conversation::start(
            beginning,
            loading,
            false,
            Layout::SystemMessage,
            &PARAMETERS,
            &Characters::FOUR,
        );
        let request = session.send();
        assert!(Value::Array(request.messages).to_string().contains("ZEBRA"));
        assert!(!Value::Array(request.system).to_string().contains("ZEBRA"));
    }
}
