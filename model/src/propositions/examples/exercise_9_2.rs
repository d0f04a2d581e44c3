//! Exercise 9.2: id 7 is answered, then used again.

use crate::mcp::correlation::{DuplicateId, IdRule, Matched, OpenRequests};
use crate::propositions::{
    Check, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};

/// The exercise.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "exercise-9.2",
    title: "An id that is used again",
    notion: "Id 7 is sent and answered, then sent again. 2025-11-25 forbids any reuse in a session, 2026-07-28 only reuse \
             while the first request is unanswered.",
    statement: "The reuse breaks the rule of 2025-11-25, not that of 2026-07-28; the hypothesis of 3.3 holds, and the \
                second response matches the second request.",
    source: "000, exercise 9.2",
    hypotheses: &[Hypothesis {
        text: "the first request is answered before the id is used again",
        why: "while it is open, both eras forbid the reuse, and 3.3 would lose its hypothesis",
    }],
    checks: &[Check {
        name: "both-eras",
        method: Method::Enumeration,
        claim: "the table of open requests refuses the second use in one era and takes it in the other, and matches it",
        run: |trial| both_eras(trial, true, |rule| rule),
    }],
    ablations: &[Variation {
        name: "reused-while-open",
        text: "the id is used again before the answer",
        run: |trial| both_eras(trial, false, |rule| rule),
    }],
    mutants: &[Variation {
        name: "one-rule-for-both",
        text: "the newer rule is applied in both eras",
        run: |trial| both_eras(trial, true, |_| IdRule::NotWhileOpen),
    }],
    differences: &[],
    real: None,
};

fn both_eras(trial: &mut Trial<'_>, answered: bool, in_force: fn(IdRule) -> IdRule) -> Outcome {
    let matching = trial.profile().mcp.matching.value;
    let eras = [
        ("2025-11-25", IdRule::NeverReused, Err(DuplicateId::UsedBefore)),
        ("2026-07-28", IdRule::NotWhileOpen, Ok(())),
    ];
    trial.every(eras, |(era, rule, expected)| {
        let mut open = OpenRequests::new(matching, in_force(rule));
        let told = |error: DuplicateId| Evidence::said(error.to_string());
        open.open(7.into(), "first").map_err(told)?;
        if answered {
            ensure!(open.answer(&7.into()) == Matched::Request("first"), "{era}: the answer matches nothing");
        }
        let again = open.open(7.into(), "second");
        ensure!(again == expected, "{era}: the second use is {again:?}, the solution says {expected:?}");
        if again.is_ok() {
            ensure!(open.len() == 1, "{era}: {} requests are open", open.len());
            ensure!(
                open.answer(&7.into()) == Matched::Request("second"),
                "{era}: the second answer goes astray"
            );
        }
        Ok(())
    })
}
