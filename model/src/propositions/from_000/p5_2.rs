//! Proposition 5.2: what skills cost.

use crate::context::compaction::{Invoked, Reattached, reattach};
use crate::context::listing::{Line, Listed, list};
use crate::context::tokens::utf16_len;
use crate::profile::context::ContextParameters;
use crate::propositions::{
    Check, Draws, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};
use crate::sources::skills::read_skill;

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "5.2",
    title: "What skills cost",
    notion: "n skills; l_i <= l is the length of the i-th description as it is listed, cut at 1,536 characters; k is the \
             number of different skills that were invoked, a the cap for one and A the cap for all after compaction.",
    statement: "With nothing invoked the resident length is the sum of the l_i, at most n l, whatever the bodies are; \
                after compaction at most min(k a, A) comes back, the newest invocations first.",
    source: "000, proposition 5.2; context-cost 3",
    hypotheses: &[Hypothesis {
        text: "a skill counts once, with its newest invocation",
        why: "k is the number of different skills: a skill invoked twice does not get 2 a",
    }],
    checks: &[
        Check {
            name: "listing",
            method: Method::Bounded,
            claim: "over every list of short, long and overlong descriptions, read from SKILL.md files with two different \
                    bodies: the listing is the same, each description at most 1,536 characters, all at most n times that",
            run: |trial| listing(trial, |skill| skill.listed_text()),
        },
        Check {
            name: "not-for-the-model",
            method: Method::Enumeration,
            claim: "a skill with disable-model-invocation takes nothing",
            run: not_for_the_model,
        },
        Check {
            name: "after-compaction",
            method: Method::Bounded,
            claim: "over every sequence of invocations of small and large skills, repeated ones included, what comes back \
                    is at most min(k a, A), at most a each, and of the newest",
            run: |trial| after_compaction(trial, reattach),
        },
        Check {
            name: "far-beyond",
            method: Method::Random,
            claim: "the same for up to 60 invocations of skills of up to 60,000 characters",
            run: |trial| far_beyond(trial, reattach),
        },
    ],
    ablations: &[Variation {
        name: "each-invocation-counts",
        text: "a skill that is invoked twice counts as two",
        run: |trial| after_compaction(trial, each_invocation),
    }],
    mutants: &[
        Variation {
            name: "body-in-the-listing",
            text: "the body is listed too",
            run: |trial| listing(trial, |skill| format!("{} {}", skill.listed_text(), skill.body)),
        },
        Variation {
            name: "oldest-first",
            text: "the oldest invocations come back first",
            run: |trial| {
                after_compaction(trial, |invoked, parameters| {
                    let backwards: Vec<Invoked> = invoked.iter().rev().cloned().collect();
                    reattach(&backwards, parameters)
                })
            },
        },
        Variation {
            name: "no-cap-for-all",
            text: "the cap for all is left out",
            run: |trial| {
                far_beyond(trial, |invoked, parameters| {
                    let mut parameters = *parameters;
                    parameters.reattach_total_tokens.value = u64::MAX;
                    reattach(invoked, &parameters)
                })
            },
        },
        Variation {
            name: "no-cap-for-one",
            text: "the cap for one skill is left out",
            run: |trial| {
                after_compaction(trial, |invoked, parameters| {
                    let mut parameters = *parameters;
                    parameters.reattach_each_tokens.value = u64::MAX;
                    reattach(invoked, &parameters)
                })
            },
        },
    ],
    differences: &[],
    real: None,
};

/// The cap on a description (000, section 5).
const MOST_DESCRIBED: u64 = 1_536;

fn listing(trial: &mut Trial<'_>, text_of: fn(&crate::sources::skills::Skill) -> String) -> Outcome {
    let most = trial.bound("skills", 3, 5);
    let parameters = trial.profile().context;
    let lengths = [0usize, 10, 1_536, 1_537, 4_000];
    let cases = (0..=most).flat_map(|n| {
        (0..lengths.len().pow(u32::try_from(n).unwrap_or(0))).map(move |mut code| {
            (0..n)
                .filter_map(|_| {
                    let length = lengths.get(code % lengths.len()).copied();
                    code /= lengths.len();
                    length
                })
                .collect::<Vec<usize>>()
        })
    });
    trial.every(cases, |lengths| {
        let lines = |body: &str| -> Vec<Line> {
            let skills: Vec<Listed> = lengths
                .iter()
                .enumerate()
                .map(|(number, length)| {
                    let name = format!("k{number}");
                    let description = if *length == 0 { "x".to_owned() } else { "d".repeat(*length) };
                    let text = format!("---\nname: {name}\ndescription: {description}\n---\n{body}");
                    let skill = read_skill(&name, &text);
                    Listed {
                        description: text_of(&skill),
                        name: skill.name,
                        model_invocable: skill.model_invocable,
                        uses: 0,
                        always_described: false,
                    }
                })
                .collect();
            list(&skills, u64::MAX, None, &parameters)
        };
        let (one, other) = (lines("Short."), lines(&"A long body. ".repeat(40)));
        ensure!(one == other, "descriptions of {lengths:?} characters: the listing depends on the bodies");
        // `- `, the name, `: `, and the description.
        let described: Vec<u64> =
            one.iter().map(|line| utf16_len(&line.text).saturating_sub(utf16_len(&line.name) + 4)).collect();
        let total: u64 = described.iter().sum();
        ensure!(
            described.iter().all(|l| *l <= MOST_DESCRIBED)
                && total <= described.len() as u64 * MOST_DESCRIBED,
            "descriptions of {lengths:?} characters are listed with {described:?}"
        );
        Ok(())
    })
}

fn not_for_the_model(trial: &mut Trial<'_>) -> Outcome {
    let parameters = trial.profile().context;
    trial.every(["true", "false"], |flag| {
        let text = format!("---\ndescription: d\ndisable-model-invocation: {flag}\n---\nbody");
        let skill = read_skill("k", &text);
        let listed = Listed {
            name: skill.name.clone(),
            description: skill.listed_text(),
            model_invocable: skill.model_invocable,
            uses: 0,
            always_described: false,
        };
        let lines = list(&[listed], u64::MAX, None, &parameters);
        ensure!(
            lines.is_empty() == (flag == "true"),
            "disable-model-invocation: {flag}: {} lines",
            lines.len()
        );
        Ok(())
    })
}

type Reattach = fn(&[Invoked], &ContextParameters) -> Vec<Reattached>;

/// Every invocation gets its own share: what the hypothesis forbids.
fn each_invocation(invoked: &[Invoked], parameters: &ContextParameters) -> Vec<Reattached> {
    let renamed: Vec<Invoked> = invoked
        .iter()
        .enumerate()
        .map(|(number, skill)| Invoked { name: format!("{}#{number}", skill.name), text: skill.text.clone() })
        .collect();
    reattach(&renamed, parameters)
        .into_iter()
        .map(|skill| Reattached {
            name: skill.name.split('#').next().unwrap_or_default().to_owned(),
            ..skill
        })
        .collect()
}

fn after_compaction(trial: &mut Trial<'_>, reattach: Reattach) -> Outcome {
    let most = trial.bound("invocations", 6, 7);
    let parameters = trial.profile().context;
    // Three skills: below the cap for one, far above it, and as large as the cap for all.
    let skills = [("small", 4_000usize), ("large", 24_000), ("huge", 100_000)];
    let texts: Vec<Invoked> =
        skills.iter().map(|(name, n)| Invoked { name: (*name).to_owned(), text: "x".repeat(*n) }).collect();
    let cases =
        (0..=most).flat_map(|n| (0..3usize.pow(u32::try_from(n).unwrap_or(0))).map(move |code| (n, code)));
    trial.every(cases, |(n, mut code)| {
        let mut invoked = Vec::new();
        for _ in 0..n {
            invoked.extend(texts.get(code % 3).cloned());
            code /= 3;
        }
        law(&invoked, &parameters, reattach)
    })
}

fn far_beyond(trial: &mut Trial<'_>, reattach: Reattach) -> Outcome {
    let parameters = trial.profile().context;
    trial.sampled(150, |draws: &mut Draws<'_>| {
        let invoked: Vec<Invoked> = (0..draws.index(61))
            .map(|_| Invoked {
                name: format!("k{}", draws.below(40)),
                text: "x".repeat(1 + draws.index(60_000)),
            })
            .collect();
        law(&invoked, &parameters, reattach)
    })
}

fn law(invoked: &[Invoked], parameters: &ContextParameters, reattach: Reattach) -> Result<(), Evidence> {
    let per_token = parameters.reattach_chars_per_token.value;
    let each = parameters.reattach_each_tokens.value * per_token;
    let all = parameters.reattach_total_tokens.value * per_token;
    // The different skills, the newest invocation first.
    let mut newest: Vec<&str> = Vec::new();
    for skill in invoked.iter().rev() {
        if !newest.contains(&skill.name.as_str()) {
            newest.push(&skill.name);
        }
    }
    let back = reattach(invoked, parameters);
    let sizes: Vec<u64> = back.iter().map(|skill| utf16_len(&skill.text)).collect();
    let total: u64 = sizes.iter().sum();
    let told = || {
        let names: Vec<String> =
            invoked.iter().map(|skill| format!("{} ({})", skill.name, skill.text.len())).collect();
        format!("invoked {}", names.join(", "))
    };
    ensure!(
        sizes.iter().all(|size| *size <= each),
        "{}: one gets {sizes:?} characters, at most {each}",
        told()
    );
    let bound = all.min(newest.len() as u64 * each);
    ensure!(total <= bound, "{}: {total} characters come back, at most {bound}", told());
    // Newest first: whoever came back stands in the order of the newest, and the newest of all is among them.
    let names: Vec<&str> = back.iter().map(|skill| skill.name.as_str()).collect();
    let ordered: Vec<&str> = newest.iter().copied().filter(|name| names.contains(name)).collect();
    ensure!(names == ordered, "{}: {names:?} come back, the newest first is {ordered:?}", told());
    ensure!(
        names.first() == newest.first() || newest.is_empty(),
        "{}: the newest invocation does not come back",
        told()
    );
    Ok(())
}
