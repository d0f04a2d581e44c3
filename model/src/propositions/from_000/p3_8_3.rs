//! Proposition 3.8 (3): when deferring is smaller.

use crate::context::amounts::{Sizes, deferred, difference, largest_used_in_favour, upfront};
use crate::propositions::{
    Check, Draws, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.8.3",
    title: "When deferring is smaller",
    notion: "N, d_i, m_i and U are as in 3.8.1 and 3.8.2; with equal sizes d and m, u is the number of used tools.",
    statement: "Upfront less deferred is the sum of d_i - m_i over the unused tools less the sum of m_i over the used \
                ones; with equal sizes it is (N - u)(d - m) - u m, and deferring is smaller if and only if u < N (d - m) / \
                d; with nothing used it is never larger.",
    source: "000, proposition 3.8 (3)",
    hypotheses: &[Hypothesis {
        text: "m_i <= d_i",
        why: "a name longer than its definition makes deferring dearer although nothing is used",
    }],
    checks: &[
        Check {
            name: "every-small-case",
            method: Method::Bounded,
            claim: "over every list of sizes and every U the difference is that of the formula, and with U empty it is not \
                    negative",
            run: |trial| every_small_case(trial, |d, m| m <= d, difference),
        },
        Check {
            name: "equal-sizes",
            method: Method::Bounded,
            claim: "over every N, d, m and u the difference is (N - u)(d - m) - u m, its sign turns where the statement \
                    says, and the largest u in favour is the one that the reports print",
            run: |trial| equal_sizes(trial, |u, n, d, m| u * d < n * (d - m)),
        },
        Check {
            name: "far-beyond",
            method: Method::Random,
            claim: "the formula for up to 2,000 tools of up to 100,000 each",
            run: far_beyond,
        },
    ],
    ablations: &[Variation {
        name: "long-names",
        text: "a name may be longer than its definition",
        run: |trial| every_small_case(trial, |_, _| true, difference),
    }],
    mutants: &[
        Variation {
            name: "names-of-used-tools-forgotten",
            text: "the names of the used tools are left out of the difference",
            run: |trial| {
                every_small_case(
                    trial,
                    |d, m| m <= d,
                    |tools| {
                        let unused: Vec<Sizes> = tools.iter().filter(|tool| !tool.used).copied().collect();
                        difference(&unused)
                    },
                )
            },
        },
        Variation {
            name: "not-strictly",
            text: "deferring is said to be smaller at u = N (d - m) / d too",
            run: |trial| equal_sizes(trial, |u, n, d, m| u * d <= n * (d - m)),
        },
    ],
    differences: &[],
    real: None,
};

fn every_small_case(
    trial: &mut Trial<'_>,
    hypothesis: fn(u64, u64) -> bool,
    formula: fn(&[Sizes]) -> i128,
) -> Outcome {
    let most = trial.bound("tools", 3, 4);
    trial.over("d, m <= 4");
    let kinds: Vec<Sizes> = (0..=4u64)
        .flat_map(|d| (0..=4u64).filter(move |m| hypothesis(d, *m)).map(move |m| (d, m)))
        .flat_map(|(d, m)| [false, true].map(|used| Sizes { definition: d, name: m, used }))
        .collect();
    let mut lists: Vec<Vec<Sizes>> = vec![Vec::new()];
    for n in 0..=most {
        trial.every(&lists, |tools| {
            let exact = i128::from(upfront(tools)) - i128::from(deferred(tools));
            let formula = formula(tools);
            ensure!(exact == formula, "{tools:?}: {exact}, the formula says {formula}");
            let unused = tools.iter().all(|tool| !tool.used);
            ensure!(!unused || exact >= 0, "{tools:?}: nothing is used and deferring takes {} more", -exact);
            Ok(())
        })?;
        if n < most {
            lists = lists
                .iter()
                .flat_map(|list| kinds.iter().map(|kind| [list.as_slice(), &[*kind]].concat()))
                .collect();
        }
    }
    Ok(None)
}

fn equal_sizes(trial: &mut Trial<'_>, smaller: fn(u64, u64, u64, u64) -> bool) -> Outcome {
    let most = trial.bound("N and d", 12, 30) as u64;
    let cases = (0..=most).flat_map(move |n| {
        (1..=most).flat_map(move |d| (0..=d).flat_map(move |m| (0..=n).map(move |u| (n, d, m, u))))
    });
    trial.every(cases, |(n, d, m, u)| {
        let tools: Vec<Sizes> = (0..n).map(|k| Sizes { definition: d, name: m, used: k < u }).collect();
        let exact = i128::from(upfront(&tools)) - i128::from(deferred(&tools));
        let [n_, d_, m_, u_] = [n, d, m, u].map(i128::from);
        let case = format!("N = {n}, d = {d}, m = {m}, u = {u}");
        ensure!(exact == (n_ - u_) * (d_ - m_) - u_ * m_, "{case}: the difference is {exact}");
        ensure!(
            (exact > 0) == smaller(u, n, d, m),
            "{case}: the difference is {exact}, the statement says otherwise"
        );
        let largest = largest_used_in_favour(n, d, m, 0);
        ensure!(
            (exact > 0) == largest.is_some_and(|largest| u <= largest),
            "{case}: reports print {largest:?}"
        );
        Ok(())
    })
}

fn far_beyond(trial: &mut Trial<'_>) -> Outcome {
    trial.sampled(300, |draws: &mut Draws<'_>| -> Result<(), Evidence> {
        let tools: Vec<Sizes> = (0..draws.index(2_001))
            .map(|_| {
                let definition = draws.below(100_001);
                Sizes { definition, name: draws.below(definition + 1), used: draws.flag() }
            })
            .collect();
        let exact = i128::from(upfront(&tools)) - i128::from(deferred(&tools));
        ensure!(exact == difference(&tools), "{} tools: {exact} and {}", tools.len(), difference(&tools));
        Ok(())
    })
}
