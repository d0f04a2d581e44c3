//! Anchors: `#scenario-id` for a scenario, `#scenario-id/3` for its step 3.

use std::collections::BTreeSet;

/// An anchor for each id, in order. The same id again (in another world or profile) has a number behind a `~`. No
/// anchor of a scenario is that of a step.
pub(super) fn anchors<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken: BTreeSet<String> = ["scenarios", "verdicts"].map(str::to_owned).into();
    ids.map(|id| {
        let wished = anchor(id);
        let numbered = (2usize..).map(|number| format!("{wished}~{number}"));
        let free = std::iter::once(wished.clone()).chain(numbered).find(|anchor| !taken.contains(anchor));
        let anchor = free.unwrap_or(wished);
        taken.insert(anchor.clone());
        anchor
    })
    .collect()
}

/// The id with only characters that need no escaping in a link.
fn anchor(id: &str) -> String {
    let clean: String =
        id.chars()
            .take(120)
            .map(|char| {
                if char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '/') { char } else { '-' }
            })
            .collect();
    match clean.rsplit_once('/') {
        // `a/3` would be the anchor of step 3 of `a`.
        Some((before, last)) if last.chars().all(|char| char.is_ascii_digit()) => format!("{before}/{last}."),
        None if clean.is_empty() => "scenario".to_owned(),
        _ => clean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_distinct_and_never_those_of_steps() {
        let ids = ["a", "a", "a/3", "a b", "a<b", "", "verdicts", "a~2"];
        let found = anchors(ids.into_iter());
        assert_eq!(found, ["a", "a~2", "a/3.", "a-b", "a-b~2", "scenario", "verdicts~2", "a-2"]);
    }
}
