//! Field reports about the cost of the context (F92, F93, F96, F97, F98), as far as they give numbers or a rule.

use serde_json::{Value, json};
use windtunnel_model::context::amounts::{Sizes, deferred, difference, largest_used_in_favour, upfront};
use windtunnel_model::context::cache::Block;
use windtunnel_model::context::conversation::extends;
use windtunnel_model::context::definition::{Definition, sort_for_sending};
use windtunnel_model::context::listing::{self, Description, Listed};
use windtunnel_model::context::loading::{Facts, Loading, Setting, Size, decide};
use windtunnel_model::profile::context::CLAUDE_CODE;

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
