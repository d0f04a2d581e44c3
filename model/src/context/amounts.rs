//! Proposition 3.8 parts 1 to 3 as formulas, over exact integers. The ledger's bytes are compared with them in tests;
//! the formulas are never the source of the ledger.

/// One tool's definition and name, in any one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The definition, d.
    pub definition: u64,
    /// The name, m.
    pub name: u64,
    /// Whether the tool is in the used set U.
    pub used: bool,
}

/// Part 1: everything upfront takes the sum of the definitions.
pub fn upfront(tools: &[Sizes]) -> u64 {
    tools.iter().map(|tool| tool.definition).sum()
}

/// Part 2: deferred takes the sum of the names and the definitions of the used tools.
pub fn deferred(tools: &[Sizes]) -> u64 {
    tools.iter().map(|tool| tool.name + if tool.used { tool.definition } else { 0 }).sum()
}

/// Part 3: upfront less deferred, by the proposition's own form: the sum of d - m over the unused tools, less the sum
/// of m over the used ones.
pub fn difference(tools: &[Sizes]) -> i128 {
    tools
        .iter()
        .map(|tool| {
            let (d, m) = (i128::from(tool.definition), i128::from(tool.name));
            if tool.used { -m } else { d - m }
        })
        .sum()
}

/// Part 3, equal sizes: the largest number of used tools for which deferred is strictly smaller; `None` where it never
/// is. `overhead` is what the search tool, its placeholder and headings add.
///
/// Strictly smaller means `u < (N(d - m) - overhead) / d`.
pub fn largest_used_in_favour(n: u64, d: u64, m: u64, overhead: u64) -> Option<u64> {
    let saved = i128::from(n) * (i128::from(d) - i128::from(m)) - i128::from(overhead);
    if saved <= 0 || d == 0 {
        return None;
    }
    // u * d < saved, u an integer.
    let largest = (saved - 1) / i128::from(d);
    u64::try_from(largest).ok().map(|u| u.min(n))
}

/// The number of tools that one may use, taken in the order of `definitions`, before deferring stops being smaller.
pub fn used_in_order(
    definitions: impl Iterator<Item = u64>,
    upfront: u64,
    names_and_overhead: u64,
) -> Option<u64> {
    let mut total = names_and_overhead;
    if total >= upfront {
        return None;
    }
    let mut used = 0;
    for definition in definitions {
        total += definition;
        if total >= upfront {
            break;
        }
        used += 1;
    }
    Some(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn equal(n: usize, d: u64, m: u64, u: usize) -> Vec<Sizes> {
        (0..n).map(|index| Sizes { definition: d, name: m, used: index < u }).collect()
    }

    #[test]
    fn example_3_9_to_the_digit() {
        let tools = equal(200, 300, 10, 3);
        assert_eq!((upfront(&tools), deferred(&tools), difference(&tools)), (60_000, 2_900, 57_100));
        assert_eq!((200 - 3) * (300 - 10) - 3 * 10, 57_100);
        let row = [(0, 2_000), (3, 2_900), (50, 17_000), (193, 59_900), (194, 60_200), (200, 62_000)];
        for (u, expected) in row {
            assert_eq!(deferred(&equal(200, 300, 10, u)), expected, "u = {u}");
        }
        assert_eq!(largest_used_in_favour(200, 300, 10, 0), Some(193));
    }

    #[test]
    fn the_crossover_is_the_turn_of_the_sign() {
        for n in 0..8 {
            for d in 0..6 {
                for m in 0..=d {
                    let in_favour = (0..=n).filter(|&u| difference(&equal(n, d, m, u)) > 0).max();
                    let formula = largest_used_in_favour(n as u64, d, m, 0);
                    assert_eq!(formula, in_favour.map(|u| u as u64), "N = {n}, d = {d}, m = {m}");
                }
            }
        }
    }

    #[test]
    fn ablation_names_longer_than_definitions() {
        // Without m <= d deferring may lose although nothing is used.
        assert!(difference(&equal(3, 4, 5, 0)) < 0);
        assert_eq!(largest_used_in_favour(3, 4, 5, 0), None);
    }

    proptest! {
        #[test]
        fn part_3_is_part_1_less_part_2(tools in proptest::collection::vec((0u64..9_999, 0u64..99, any::<bool>()), 0..60)) {
            let tools: Vec<Sizes> =
                tools.into_iter().map(|(d, m, used)| Sizes { definition: d + m, name: m, used }).collect();
            prop_assert_eq!(difference(&tools), i128::from(upfront(&tools)) - i128::from(deferred(&tools)));
        }
    }
}
