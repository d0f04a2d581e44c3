//! The tool search: which tools a query finds (context-cost 2.2).

use super::definition::Definition;

/// What a query found, in the order of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The tools.
    pub tools: Vec<&'a Definition>,
    /// Whether the order among them is our reading: the ranking of free words was not observed beyond "name first".
    pub order_inferred: bool,
}

/// Runs a query over the session's tools.
///
/// `select:A,B` names tools (the tail of a qualified name suffices, case matters, unknown ones are skipped, tools that
/// stand upfront may be named); a name alone is such a selection; `mcp__server` gives that server's tools; other words
/// are looked for in name, description and search hint, and a word with `+` must stand in the name.
pub fn search<'a>(definitions: &'a [Definition], query: &str, max_results: usize) -> Found<'a> {
    let by_name = |wanted: &str| {
        definitions.iter().find(|definition| {
            let qualified = definition.qualified();
            qualified == wanted
                || (definition.server.is_some() && qualified.ends_with(&format!("__{wanted}")))
        })
    };
    let query = query.trim();
    if let Some(names) = query.strip_prefix("select:") {
        let mut tools: Vec<&Definition> = Vec::new();
        for found in names.split(',').filter_map(|name| by_name(name.trim())) {
            if !tools.contains(&found) {
                tools.push(found);
            }
        }
        return Found { tools, order_inferred: false };
    }
    if query.is_empty() {
        return Found { tools: Vec::new(), order_inferred: false };
    }
    if let Some(tool) = by_name(query) {
        return Found { tools: vec![tool], order_inferred: false };
    }
    let deferrable = definitions.iter().filter(|definition| !definition.always_load);
    if query.starts_with("mcp__") && !query.contains(' ') {
        let prefix = format!("{}__", query.trim_end_matches('_'));
        let tools =
            deferrable.filter(|tool| tool.qualified().starts_with(&prefix)).take(max_results).collect();
        return Found { tools, order_inferred: false };
    }
    let lower = query.to_lowercase();
    let mut ranked: Vec<(usize, &Definition)> = deferrable
        .filter_map(|definition| {
            let name = definition.qualified().to_lowercase();
            let text = format!("{} {}", definition.description, definition.search_hint).to_lowercase();
            let mut score = 0;
            for word in lower.split_whitespace() {
                let (required, word) = match word.strip_prefix('+') {
                    Some(rest) => (true, rest),
                    None => (false, word),
                };
                if required && !name.contains(word) {
                    return None;
                }
                // A hit in the name weighs more than one in the text.
                score += if name.contains(word) { 2 } else { usize::from(text.contains(word)) };
            }
            (score > 0).then_some((score, definition))
        })
        .collect();
    ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let tools = ranked.into_iter().take(max_results).map(|(_, tool)| tool).collect();
    Found { tools, order_inferred: true }
}
