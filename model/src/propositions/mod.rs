//! The propositions of the documents, as data with checks: a file a proposition, which reads like it.
//!
//! A [`Proposition`] names its notion first and then states one line over all cases. Its checks call the rules that
//! the rest of the model obeys, never a copy of them. It is kept honest by its ablations (a hypothesis is dropped) and
//! its mutants (a rule is replaced by a plausible wrong one): each must be refuted by the same law, or the check proves
//! nothing.
//!
//! The propositions are statements about the documents and are judged in profile `documented`; each is judged in
//! `claude-code-2.1.332` too. Where that profile refutes one, a [`Difference`] says so and why; a difference that the
//! checks do not find counts against the proposition like a refutation.
//!
//! This crate draws no numbers and explores nothing itself: checks get a [`Trial`], which asks a [`Lab`] for both.
//!
//! To add one: a file in the folder of its source with a `PROPOSITION`, and its two lines in that folder's `mod.rs`.

mod at_the_gate;
mod beyond;
mod cited;
mod evidence;
mod examples;
mod from_000;
mod from_003;
mod from_004;
mod gate;
mod judge;
mod report;
mod sandbox;
mod shrink;
mod trial;

pub use evidence::{Arrow, Drawing, Evidence, Failure, Outcome, Shown};
pub use judge::{Plan, judge};
pub use report::{CheckReport, ProfileReport, PropositionReport, VariationReport};
pub use shrink::Draws;
pub use trial::{Broken, Exploration, Explored, Lab, Lasso, Trial};

use crate::profile::ProfileName;
use serde::Serialize;

/// A proposition.
#[derive(Debug)]
pub struct Proposition {
    /// Its number in its document, e.g. `3.4.2`; of cited chapters and exercises with a word before, e.g. `loop-3.4`.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// The notions that the statement uses, each named before it is used.
    pub notion: &'static str,
    /// One sentence over all cases.
    pub statement: &'static str,
    /// Document and section.
    pub source: &'static str,
    /// What it rests on, and why each hypothesis matters.
    pub hypotheses: &'static [Hypothesis],
    /// How it is checked. All must hold.
    pub checks: &'static [Check],
    /// Hypotheses dropped. Each must be refuted.
    pub ablations: &'static [Variation],
    /// Rules replaced by wrong ones. Each must be refuted.
    pub mutants: &'static [Variation],
    /// Where another profile than `documented` refutes a check.
    pub differences: &'static [Difference],
    /// Its counterpart on real processes.
    pub real: Option<Real>,
}

/// A hypothesis and what goes wrong without it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Hypothesis {
    /// The hypothesis.
    pub text: &'static str,
    /// Why it matters.
    pub why: &'static str,
}

/// What is run for a check, an ablation or a mutant.
pub type Run = fn(&mut Trial<'_>) -> Outcome;

/// One check of a proposition.
#[derive(Debug)]
pub struct Check {
    /// A name in kebab case, unique in the proposition.
    pub name: &'static str,
    /// How it is checked.
    pub method: Method,
    /// What is checked, one sentence.
    pub claim: &'static str,
    /// Checks it.
    pub run: Run,
}

/// A hypothesis dropped or a rule replaced.
#[derive(Debug)]
pub struct Variation {
    /// A name in kebab case, unique in the proposition.
    pub name: &'static str,
    /// What is dropped, or the wrong rule.
    pub text: &'static str,
    /// The same law as in a check, under the variation.
    pub run: Run,
}

/// A profile in which a check is refuted, as the sources say.
#[derive(Debug)]
pub struct Difference {
    /// The profile.
    pub profile: ProfileName,
    /// The check that is refuted there.
    pub check: &'static str,
    /// What is so there instead, and its source.
    pub why: &'static str,
}

/// How a check is done. Nothing is said to hold further than its method reaches; bounds are printed beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The domain is finite and enumerated completely.
    Enumeration,
    /// Every case up to the stated bounds.
    Bounded,
    /// Seeded cases far beyond the bounds of enumeration.
    Random,
    /// Every reachable state of a scenario.
    Explored,
    /// The statement says "may": an instance is searched for, the smallest first.
    Witness,
}

impl Method {
    /// All, in the order of declaration.
    pub const ALL: [Self; 5] =
        [Self::Enumeration, Self::Bounded, Self::Random, Self::Explored, Self::Witness];

    /// The words in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Enumeration => "enumerated completely",
            Self::Bounded => "exhaustive to a bound",
            Self::Random => "sampled",
            Self::Explored => "explored",
            Self::Witness => "witness by search",
        }
    }
}

/// A counterpart on real processes, which `check --real` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Real {
    /// Which.
    pub subject: RealSubject,
    /// What is run and what is compared, one sentence.
    pub text: &'static str,
}

/// The experiments on real processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RealSubject {
    /// A server process for each cell of versions; the requests on the wire are counted.
    Negotiation,
    /// The guard of .env as a real hook process.
    ProtectEnv,
    /// A server process that answers in another order.
    IdMatching,
    /// A run with a turn limit whose tools are real processes.
    Termination,
}

/// A folder of propositions: its name and what is in it.
pub type Folder = (&'static str, &'static [&'static Proposition]);

/// The registry, in the order of the documents.
pub const FOLDERS: [Folder; 8] = [
    ("from_000", from_000::ALL),
    ("cited", cited::ALL),
    ("examples", examples::ALL),
    ("from_003", from_003::ALL),
    ("from_004", from_004::ALL),
    ("beyond", beyond::ALL),
    ("sandbox", sandbox::ALL),
    ("gate", gate::ALL),
];

/// Every proposition, in the order of the registry.
pub fn all() -> impl Iterator<Item = &'static Proposition> {
    FOLDERS.iter().flat_map(|(_, propositions)| propositions.iter().copied())
}

/// The propositions that an id names: that one, or all below it (`3.4` is `3.4.1` to `3.4.4`). Upper and lower case are
/// the same.
pub fn named(id: &str) -> Vec<&'static Proposition> {
    let wanted = id.to_lowercase();
    all()
        .filter(|proposition| {
            let own = proposition.id.to_lowercase();
            own == wanted || own.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with(['.', '-']))
        })
        .collect()
}

/// Fails the case at hand unless the condition holds; the rest is what is told of the case, as for `format!`.
macro_rules! ensure {
    ($condition:expr, $($told:tt)+) => {
        if !$condition {
            return Err($crate::propositions::Evidence::said(format!($($told)+)));
        }
    };
}

/// Every variant of an enum without fields, in the order written. A variant that is left out does not compile, so the
/// domain is complete.
macro_rules! every_variant {
    ($type:path: $($variant:ident),+ $(,)?) => {{
        use $type as Domain;
        const fn complete(variant: Domain) {
            match variant {
                $(Domain::$variant => {})+
            }
        }
        const DOMAIN: &[Domain] = &[$(Domain::$variant),+];
        let _ = complete;
        DOMAIN
    }};
}

use {ensure, every_variant};
