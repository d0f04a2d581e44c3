//! The listing of skills: what of each stands in the context before any is invoked (000, section 5; context-cost 3).

use super::cut;
use super::tokens::utf16_len;
use crate::profile::context::{ContextParameters, ListingOverflow};

/// A skill as the listing sees it. Its body is not here: the listing does not depend on it (proposition 5.2 part 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name that stands in the list.
    pub name: String,
    /// Description and `when_to_use`, joined, uncut.
    pub description: String,
    /// Whether the model may invoke it; else it is not listed at all.
    pub model_invocable: bool,
    /// How often it was used, where that is known; the documented rule drops the least used first.
    pub uses: u64,
    /// Whether the description stays whatever the budget: seen of a skill that comes with the harness
    /// (sk-budget-env-300-names).
    pub always_described: bool,
}

/// What became of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Description {
    /// It stands whole.
    Whole,
    /// It stands, cut at the cap.
    Cut,
    /// Only the name stands.
    Dropped,
    /// There was none.
    None,
}

/// One line of the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The skill.
    pub name: String,
    /// The text of the line, without its end.
    pub text: String,
    /// What became of the description.
    pub description: Description,
}

/// The budget of the whole list in characters: share of the window times characters per token, rounded down; `None`
/// where the window is not known.
///
/// `basis_points` is `skillListingBudgetFraction` in hundredths of a percent where the settings name it.
pub fn budget(
    window: Option<u64>,
    generation: Option<(u8, u8)>,
    basis_points: Option<u64>,
    parameters: &ContextParameters,
) -> Option<u64> {
    let characters = match generation {
        Some((0..=4, _)) => parameters.listing_chars_per_token_4.value,
        _ => parameters.listing_chars_per_token_5.value,
    };
    let points = u128::from(basis_points.unwrap_or(parameters.listing_budget_basis_points.value));
    let budget = u128::from(window?) * u128::from(characters) * points / 10_000;
    Some(u64::try_from(budget).unwrap_or(u64::MAX))
}

/// The listing of `skills` within `budget` characters, in list order. `cap` is `skillListingMaxDescChars` where the
/// settings name it.
///
/// Names always stay. The length counted is the sum of the lines with one character between them.
pub fn list(skills: &[Listed], budget: u64, cap: Option<usize>, parameters: &ContextParameters) -> Vec<Line> {
    let cap = cap.unwrap_or(parameters.skill_description_cap.value);
    let listed: Vec<&Listed> = skills.iter().filter(|skill| skill.model_invocable).collect();
    let cut: Vec<String> = listed.iter().map(|skill| cut::with_ellipsis(&skill.description, cap)).collect();
    let names: u64 = listed.iter().map(|skill| utf16_len(&skill.name) + 2).sum::<u64>();
    let mut used = names + (listed.len() as u64).saturating_sub(1);
    let mut keep: Vec<bool> = listed.iter().map(|skill| skill.always_described).collect();
    used += listed
        .iter()
        .zip(&cut)
        .filter(|(skill, text)| skill.always_described && !text.is_empty())
        .map(|(_, text)| utf16_len(text) + 2)
        .sum::<u64>();
    let mut order: Vec<usize> = listed
        .iter()
        .enumerate()
        .filter(|(_, skill)| !skill.always_described)
        .map(|(index, _)| index)
        .collect();
    if parameters.listing_overflow.value == ListingOverflow::LeastUsedFirst {
        order.sort_by_key(|&index| std::cmp::Reverse(listed.get(index).map_or(0, |skill| skill.uses)));
    }
    for index in order {
        let Some(text) = cut.get(index) else { continue };
        // `: ` and the description.
        let cost = if text.is_empty() { 0 } else { utf16_len(text) + 2 };
        if used + cost <= budget {
            used += cost;
            if let Some(kept) = keep.get_mut(index) {
                *kept = true;
            }
        } else if parameters.listing_overflow.value == ListingOverflow::LeastUsedFirst {
            // Everything that is used less goes with it.
            break;
        }
    }
    listed
        .iter()
        .zip(&cut)
        .zip(&keep)
        .map(|((skill, text), kept)| {
            let description = match (text.is_empty(), *kept) {
                (true, _) => Description::None,
                (false, false) => Description::Dropped,
                (false, true) if *text == skill.description => Description::Whole,
                (false, true) => Description::Cut,
            };
            let line = match description {
                Description::None | Description::Dropped => format!("- {}", skill.name),
                Description::Whole | Description::Cut => format!("- {}: {text}", skill.name),
            };
            Line { name: skill.name.clone(), text: line, description }
        })
        .collect()
}

/// The characters of a listing: its lines and one between neighbours.
pub fn characters(lines: &[Line]) -> u64 {
    lines.iter().map(|line| utf16_len(&line.text)).sum::<u64>() + (lines.len() as u64).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::context::{CLAUDE_CODE, DOCUMENTED};
    use proptest::prelude::*;

    fn skill(name: &str, length: usize, uses: u64) -> Listed {
        Listed {
            name: name.to_owned(),
            description: "d".repeat(length),
            model_invocable: true,
            uses,
            always_described: false,
        }
    }

    fn kept(skills: &[Listed], budget: u64, parameters: &ContextParameters) -> Vec<bool> {
        list(skills, budget, None, parameters)
            .iter()
            .map(|line| line.description == Description::Whole)
            .collect()
    }

    #[test]
    fn a_larger_budget_may_take_a_description_away() {
        // Context-cost 10, invariant 8: greedy with skipping is not monotone.
        let skills =
            [skill("s000", 900, 0), skill("s001", 100, 0), skill("s002", 400, 0), skill("s003", 100, 0)];
        assert_eq!(kept(&skills, 500, &CLAUDE_CODE), [false, true, false, true]);
        assert_eq!(kept(&skills, 600, &CLAUDE_CODE), [false, true, true, false]);
    }

    #[test]
    fn documented_the_least_used_lose_first() {
        let skills = [skill("a", 50, 1), skill("b", 50, 9), skill("c", 50, 5)];
        assert_eq!(kept(&skills, 120, &DOCUMENTED), [false, true, true]);
        assert_eq!(kept(&skills, 120, &CLAUDE_CODE), [true, true, false]);
    }

    proptest! {
        #[test]
        fn names_stay_and_the_rest_is_within_budget(lengths in proptest::collection::vec(0usize..2000, 0..30), budget in 0u64..9000) {
            for parameters in [&CLAUDE_CODE, &DOCUMENTED] {
                let skills: Vec<Listed> =
                    lengths.iter().enumerate().map(|(at, n)| skill(&format!("s{at:03}"), *n, at as u64 % 4)).collect();
                let lines = list(&skills, budget, None, parameters);
                prop_assert_eq!(lines.len(), skills.len());
                let names = lines.iter().map(|line| utf16_len(&line.name) + 2).sum::<u64>() + (lines.len() as u64).saturating_sub(1);
                prop_assert!(characters(&lines) <= budget.max(names));
                // Proposition 5.2 part 1: at most n times the cap.
                let described: u64 = characters(&lines) - names;
                prop_assert!(described <= lines.len() as u64 * (1_536 + 2));
            }
        }
    }
}
