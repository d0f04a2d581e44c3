//! Field reports about the cost of the context (F92 to F99), as far as they give numbers or a rule.

use serde_json::{Value, json};
use windtunnel_model::context::amounts::{Sizes, deferred, difference, largest_used_in_favour, upfront};
use windtunnel_model::context::cache::Block;
use windtunnel_model::context::conversation::{Conversation, Layout, Start, extends};
use windtunnel_model::context::definition::{Definition, sort_for_sending};
use windtunnel_model::context::ledger::{Amount, Part, agree};
use windtunnel_model::context::listing::{self, Description, Listed};
use windtunnel_model::context::loading::{Facts, Loading, Setting, Size, decide};
use windtunnel_model::context::tokens::Characters;
use windtunnel_model::mcp::output::{Outcome, OutputLimits};
use windtunnel_model::profile::context::{CLAUDE_CODE, DOCUMENTED, UnloadedCall};

#[test]
fn f92_definitions_of_115_tools() {
    let tools: Vec<Sizes> =
        (0..115).map(|index| Sizes { definition: 858, name: 10, used: index < 4 }).collect();
    assert_eq!((upfront(&tools), deferred(&tools), difference(&tools)), (98_670, 4_582, 94_088));
    // The report says: below 113.7.
    assert_eq!(largest_used_in_favour(115, 858, 10, 0), Some(113));
}

#[test]
fn f93_a_foreign_host() {
    let rows = [
        (None, Loading::Deferred),
        (Some("true"), Loading::Deferred),
        (Some("1"), Loading::Deferred),
        (Some("false"), Loading::Upfront),
        (Some("0"), Loading::Upfront),
        (Some("auto"), Loading::Upfront),
        (Some("auto:1"), Loading::Upfront),
        (Some("auto:50"), Loading::Upfront),
    ];
    for (value, expected) in rows {
        let facts = Facts {
            setting: Setting::parse(value, &CLAUDE_CODE),
            generation: Some((5, 5)),
            window: Some(1_000_000),
            first_party: false,
            betas_disabled: false,
            search_denied: false,
            // The definitions of the report's 60 tools stay below every threshold of the table.
            size: Size::Counted(500),
        };
        assert_eq!(decide(&facts, &CLAUDE_CODE).loading, expected, "{value:?}");
    }
}

/// The rule is stated, and it is the same in every run.
#[test]
fn f94_a_call_of_a_tool_that_was_not_loaded() {
    assert_eq!(DOCUMENTED.unloaded_call.value, UnloadedCall::Refused);
    assert_eq!(CLAUDE_CODE.unloaded_call.value, UnloadedCall::Runs);
    assert_ne!(UnloadedCall::Runs.words(), UnloadedCall::Refused.words());
}

/// The lines of the report add up to the request, and names and loaded definitions have lines of their own: before a
/// search, after it, after a compaction.
#[test]
fn f95_the_parts_add_up_to_the_request() {
    let counter = Characters::FOUR;
    let tool = |name: &str| {
        Definition::from_listed(
            "s",
            &json!({"name": name, "description": "Reads a thing.", "inputSchema": {}}),
        )
    };
    let start = Start {
        definitions: vec![tool("read_a"), tool("read_b")],
        system: vec!["You help.".to_owned()],
        claude_md: "Use tabs.".to_owned(),
        instructions: vec![("s".to_owned(), "Read first.".to_owned())],
        skills: Vec::new(),
        prompt: "Go.".to_owned(),
    };
    for parameters in [DOCUMENTED, CLAUDE_CODE] {
        let mut session = Conversation::start(
            start.clone(),
            Loading::Deferred,
            false,
            Layout::SystemMessage,
            &parameters,
            &counter,
        );
        let check = |session: &mut Conversation<'_>, loaded: bool| {
            let request = session.send();
            agree(session.ledger(), &request, &counter).unwrap();
            let lines: Amount =
                session.ledger().entries().iter().fold(Amount::default(), |sum, entry| sum + entry.amount);
            assert_eq!(lines, session.ledger().standing().total());
            assert!(session.ledger().part(Part::DeferredNames).tokens > 0, "names have a line");
            if loaded {
                assert!(session.ledger().part(Part::LoadedTool).tokens > 0, "loaded definitions have a line");
            }
        };
        check(&mut session, false);
        let found = session.search("c1", "select:mcp__s__read_a");
        assert_eq!(found, ["mcp__s__read_a"]);
        check(&mut session, true);
    }
}

#[test]
fn f99_a_large_result_is_replaced() {
    let outcome = |characters: u64| OutputLimits::CLAUDE_CODE.judge(characters, None, || characters / 4);
    assert_eq!(outcome(9_000), Outcome::Passed);
    // Saved to a file, with the place and the beginning: whether tokens or characters say so first.
    assert_eq!(outcome(60_000), Outcome::Persisted);
    assert!(matches!(outcome(400_000), Outcome::Persisted | Outcome::TooManyTokens));
    // A higher MAX_MCP_OUTPUT_TOKENS does not lift the limit on characters.
    let raised = OutputLimits { tokens: 200_000, ..OutputLimits::CLAUDE_CODE };
    assert_eq!(raised.judge(400_000, None, || 100_000), Outcome::Persisted);
}

#[test]
fn f96_many_skills() {
    let skills: Vec<Listed> = (0..150)
        .map(|index| Listed {
            name: format!("s{index:03}"),
            description: "d".repeat(405),
            model_invocable: true,
            uses: 0,
            always_described: false,
        })
        .collect();
    let budget = listing::budget(Some(1_000_000), Some((5, 5)), None, &CLAUDE_CODE).unwrap();
    let lines = listing::list(&skills, budget, None, &CLAUDE_CODE);
    let dropped = lines.iter().filter(|line| line.description == Description::Dropped).count();
    assert_eq!(lines.len(), 150, "names always stay");
    assert!(listing::characters(&lines) <= budget);
    assert!(dropped > 0, "and which lost their text is said");
}

fn blocks(texts: &[String]) -> Vec<Block> {
    texts.iter().map(|text| Block { text: text.clone(), tokens: 1 }).collect()
}

#[test]
fn f97_the_order_of_tools_is_part_of_the_prefix() {
    let order = |names: &[&str], sorted: bool| {
        let mut tools: Vec<Definition> =
            names.iter().map(|name| Definition::from_listed("s", &json!({"name": name}))).collect();
        if sorted {
            sort_for_sending(&mut tools);
        }
        blocks(&tools.iter().map(Definition::qualified).collect::<Vec<_>>())
    };
    assert_eq!(extends(&order(&["b", "a", "c"], false), &order(&["a", "b", "c"], false)), Err(0));
    assert_eq!(extends(&order(&["b", "a", "c"], true), &order(&["a", "b", "c"], true)), Ok(()));
}

#[test]
fn f98_equal_as_json_is_not_equal_as_bytes() {
    let [first, second]: [Value; 2] =
        ["{\"p\":1,\"q\":2}", "{\"q\":2,\"p\":1}"].map(|text| serde_json::from_str(text).unwrap());
    assert_eq!(first, second);
    assert_eq!(extends(&blocks(&[first.to_string()]), &blocks(&[second.to_string()])), Err(0));
}
