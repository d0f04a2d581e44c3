//! Proposition 3.8 (1): what tools cost upfront.

use super::costs::{definition, prompt, session, size, sizes, tool};
use crate::context::amounts::{self, Sizes};
use crate::context::definition::Definition;
use crate::context::loading::Loading;
use crate::profile::context::ContextParameters;
use crate::propositions::{Check, Draws, Evidence, Method, Outcome, Proposition, Trial, Variation, ensure};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.8.1",
    title: "Upfront, tools take the sum of their definitions",
    notion: "N tools; d_i is the size of the i-th definition as it is sent. Resident is what a request carries for tools \
             before any is used.",
    statement: "Upfront the resident size is the sum of the d_i, whichever tools are used.",
    source: "000, proposition 3.8 (1)",
    hypotheses: &[],
    checks: &[
        Check {
            name: "on-the-request",
            method: Method::Bounded,
            claim: "over every list of short and long definitions, the rendered prompt is that of a session without \
                    tools and the sum of the definitions, to the byte",
            run: |trial| on_the_request(trial, Loading::Upfront, definition),
        },
        Check {
            name: "far-beyond",
            method: Method::Random,
            claim: "the same for up to 300 tools with descriptions of up to 5,000 characters, cut where the profile cuts",
            run: |trial| far_beyond(trial, definition),
        },
    ],
    ablations: &[],
    mutants: &[
        Variation {
            name: "uncut",
            text: "descriptions are counted as listed, not as they are cut when sent",
            run: |trial| {
                far_beyond(trial, |tool, parameters| {
                    let mut parameters = *parameters;
                    parameters.mcp_text_cap.value = usize::MAX;
                    definition(tool, &parameters)
                })
            },
        },
        Variation {
            name: "deferred-all-the-same",
            text: "the definitions are deferred although the setting says upfront",
            run: |trial| on_the_request(trial, Loading::Deferred, definition),
        },
    ],
    differences: &[],
    real: None,
};

type SizeOf = fn(&Definition, &ContextParameters) -> u64;

fn on_the_request(trial: &mut Trial<'_>, loading: Loading, of: SizeOf) -> Outcome {
    let most = trial.bound("tools", 6, 12);
    let parameters = trial.profile().context;
    trial.every((0..=most).flat_map(sizes), |sizes| law(&sizes, loading, &parameters, of))
}

fn far_beyond(trial: &mut Trial<'_>, of: SizeOf) -> Outcome {
    let parameters = trial.profile().context;
    trial.sampled(60, |draws: &mut Draws<'_>| {
        let sizes: Vec<usize> = (0..draws.index(301)).map(|_| draws.index(5_001)).collect();
        law(&sizes, Loading::Upfront, &parameters, of)
    })
}

fn law(
    sizes: &[usize],
    loading: Loading,
    parameters: &ContextParameters,
    of: SizeOf,
) -> Result<(), Evidence> {
    let tools: Vec<Definition> = sizes.iter().enumerate().map(|(n, size)| tool(n, *size)).collect();
    let without = size(&prompt(&mut session(&[], loading, parameters)));
    let with = size(&prompt(&mut session(&tools, loading, parameters)));
    let parts: Vec<Sizes> =
        tools.iter().map(|tool| Sizes { definition: of(tool, parameters), name: 0, used: false }).collect();
    let formula = amounts::upfront(&parts);
    ensure!(
        with.checked_sub(without) == Some(formula),
        "descriptions of {sizes:?} characters: the request carries {} bytes for tools, the sum is {formula}",
        i128::from(with) - i128::from(without)
    );
    Ok(())
}
