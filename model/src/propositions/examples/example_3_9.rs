//! Example 3.9: two hundred tools.

use crate::context::amounts::{Sizes, deferred, difference, largest_used_in_favour, upfront};
use crate::propositions::{
    Check, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};

/// The example.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "example-3.9",
    title: "Two hundred tools",
    notion: "N = 200 tools, definitions of 300 tokens, names of 10; u of them are used.",
    statement: "With u = 3: 60,000 upfront, 2,900 deferred, 57,100 less; for u = 0, 3, 50, 193, 194, 200 deferred takes \
                2,000, 2,900, 17,000, 59,900, 60,200, 62,000; deferred is smaller up to u = 193.",
    source: "000, example 3.9",
    hypotheses: &[Hypothesis {
        text: "only the tools are counted",
        why: "the search tool, its placeholder and the words of each search move the crossover down (context-cost 2.4)",
    }],
    checks: &[Check {
        name: "to-the-digit",
        method: Method::Enumeration,
        claim: "every figure of the example comes out",
        run: |trial| figures(trial, 0, deferred),
    }],
    ablations: &[Variation {
        name: "with-overhead",
        text: "the search tool and its heading are counted as well: 450 tokens",
        run: |trial| figures(trial, 450, deferred),
    }],
    mutants: &[Variation {
        name: "names-of-used-tools-forgotten",
        text: "a used tool's name is not counted beside its definition",
        run: |trial| {
            figures(trial, 0, |tools| {
                tools.iter().map(|tool| if tool.used { tool.definition } else { tool.name }).sum()
            })
        },
    }],
    differences: &[],
    real: None,
};

fn figures(trial: &mut Trial<'_>, overhead: u64, deferred: fn(&[Sizes]) -> u64) -> Outcome {
    let tools = |used: usize| -> Vec<Sizes> {
        (0..200).map(|k| Sizes { definition: 300, name: 10, used: k < used }).collect()
    };
    let row = [(0, 2_000), (3, 2_900), (50, 17_000), (193, 59_900), (194, 60_200), (200, 62_000)];
    trial.every(row, |(used, expected)| -> Result<(), Evidence> {
        let tools = tools(used);
        let got = deferred(&tools) + overhead;
        ensure!(got == expected, "u = {used}: {got} instead of {expected}");
        ensure!(upfront(&tools) == 60_000, "u = {used}: {} upfront", upfront(&tools));
        ensure!(used != 3 || difference(&tools) == 57_100, "the difference is {}", difference(&tools));
        Ok(())
    })?;
    trial.every(0..=200usize, |used| {
        let smaller = deferred(&tools(used)) + overhead < 60_000;
        ensure!(smaller == (used <= 193), "u = {used}: deferred is smaller: {smaller}");
        Ok(())
    })?;
    trial.every([Some(193)], |expected| {
        let largest = largest_used_in_favour(200, 300, 10, overhead);
        ensure!(largest == expected, "reports print {largest:?}");
        Ok(())
    })
}
