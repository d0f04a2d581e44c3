//! Exercise 9.4: seven skills of 6,000 tokens.

use crate::context::compaction::{Invoked, reattach};
use crate::context::tokens::utf16_len;
use crate::profile::context::ContextParameters;
use crate::propositions::{Check, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure};

/// The exercise.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "exercise-9.4",
    title: "Seven skills of 6,000 tokens",
    notion: "Seven different skills are invoked, each with a body of 6,000 tokens; one gets at most 5,000 after compaction, \
             all together 25,000.",
    statement: "25,000 tokens are given back, to exactly five skills; the two oldest get nothing.",
    source: "000, exercise 9.4",
    hypotheses: &[Hypothesis {
        text: "the skills are different",
        why: "the same skill invoked seven times comes back once",
    }],
    checks: &[Check {
        name: "the-figures",
        method: Method::Enumeration,
        claim: "the figures of the solution come out",
        run: |trial| figures(trial, |n| format!("k{n}"), |parameters| parameters),
    }],
    ablations: &[Variation {
        name: "one-skill-seven-times",
        text: "the same skill is invoked seven times",
        run: |trial| figures(trial, |_| "k".to_owned(), |parameters| parameters),
    }],
    mutants: &[Variation {
        name: "cap-for-all-left-out",
        text: "all skills together may get any amount",
        run: |trial| {
            figures(
                trial,
                |n| format!("k{n}"),
                |mut parameters| {
                    parameters.reattach_total_tokens.value = u64::MAX;
                    parameters
                },
            )
        },
    }],
    differences: &[],
    real: None,
};

fn figures(
    trial: &mut Trial<'_>,
    name: fn(usize) -> String,
    change: fn(ContextParameters) -> ContextParameters,
) -> Outcome {
    let parameters = change(trial.profile().context);
    trial.every([7usize], |count| {
        let per_token = parameters.reattach_chars_per_token.value;
        let text = "x".repeat(usize::try_from(6_000 * per_token).unwrap_or(0));
        let invoked: Vec<Invoked> =
            (0..count).map(|n| Invoked { name: name(n), text: text.clone() }).collect();
        let back = reattach(&invoked, &parameters);
        let names: Vec<&str> = back.iter().map(|skill| skill.name.as_str()).collect();
        ensure!(names == ["k6", "k5", "k4", "k3", "k2"], "{names:?} come back, newest first");
        // The mark that a skill was cut is part of what it was given.
        let mark = parameters.reattach_mark_chars.value as u64;
        let given: u64 = back.iter().map(|skill| utf16_len(&skill.text) + mark).sum();
        ensure!(given == 25_000 * per_token, "{} tokens are given back", given / per_token.max(1));
        Ok(())
    })
}
