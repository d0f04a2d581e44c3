//! What became of a proposition: the data that text, JSON, Markdown and HTML are made of.

use super::evidence::{Drawing, Evidence};
use super::{Hypothesis, Method};
use crate::verdict::Verdict;
use serde::Serialize;

/// A judged proposition. Times are in seconds and absent where they were not asked for.
#[derive(Clone, Debug, Serialize)]
pub struct PropositionReport {
    /// Its id.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its notions.
    pub notion: &'static str,
    /// Its statement.
    pub statement: &'static str,
    /// Its source.
    pub source: &'static str,
    /// Its hypotheses.
    pub hypotheses: Vec<Hypothesis>,
    /// Its verdict in each profile, `documented` first.
    pub profiles: Vec<ProfileReport>,
    /// Its ablations.
    pub ablations: Vec<VariationReport>,
    /// Its mutants, where they were asked for.
    pub mutants: Vec<VariationReport>,
    /// Its counterpart on real processes, in one sentence.
    pub real: Option<&'static str>,
    /// The seed of its random cases, where it has any.
    pub seed: Option<u64>,
    /// How long all of it took.
    pub seconds: Option<f64>,
}

impl PropositionReport {
    /// Whether all is as the sources say: every verdict as expected, every ablation refuted, every mutant caught.
    pub fn is_as_stated(&self) -> bool {
        self.profiles.iter().all(|profile| profile.expected)
            && self
                .ablations
                .iter()
                .chain(&self.mutants)
                .all(|variation| variation.verdict == Verdict::Refuted)
    }

    /// Whether something could not be judged.
    pub fn is_open(&self) -> bool {
        let open = |verdict| matches!(verdict, Verdict::Unknown | Verdict::Skipped);
        self.profiles.iter().any(|profile| open(profile.verdict))
            || self.ablations.iter().chain(&self.mutants).any(|variation| open(variation.verdict))
    }

    /// Cases evaluated in all profiles, ablations and mutants.
    pub fn cases(&self) -> u64 {
        let checks = self.profiles.iter().flat_map(|profile| &profile.checks).map(|check| check.cases);
        checks.chain(self.ablations.iter().chain(&self.mutants).map(|variation| variation.cases)).sum()
    }
}

/// The verdict in one profile.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileReport {
    /// The profile.
    pub profile: &'static str,
    /// The worst verdict of the checks.
    pub verdict: Verdict,
    /// Whether that is what the sources say.
    pub expected: bool,
    /// What is so in this profile instead, with its source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<&'static str>,
    /// The checks.
    pub checks: Vec<CheckReport>,
}

impl ProfileReport {
    /// The methods of the checks, each once.
    pub fn methods(&self) -> Vec<Method> {
        Method::ALL.into_iter().filter(|method| self.checks.iter().any(|c| c.method == *method)).collect()
    }

    /// The first evidence: a counterexample before a witness.
    pub fn evidence(&self) -> Option<&Evidence> {
        let refuted = self.checks.iter().find(|check| check.verdict == Verdict::Refuted);
        refuted.and_then(|c| c.evidence.as_ref()).or(self.checks.iter().find_map(|c| c.evidence.as_ref()))
    }

    /// Cases evaluated.
    pub fn cases(&self) -> u64 {
        self.checks.iter().map(|check| check.cases).sum()
    }
}

/// A check.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// Its name.
    pub name: &'static str,
    /// Its claim.
    pub claim: &'static str,
    /// Its method.
    pub method: Method,
    /// Its verdict.
    pub verdict: Verdict,
    /// What it ranges over.
    pub bounds: Vec<String>,
    /// Cases evaluated.
    pub cases: u64,
    /// Whether it reads no parameter of the profile: it was then evaluated once, and is the same in all.
    pub same_in_all_profiles: bool,
    /// The witness where it holds, the counterexample where it is refuted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Why it is bounded or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// An ablation or a mutant.
#[derive(Clone, Debug, Serialize)]
pub struct VariationReport {
    /// Its name.
    pub name: &'static str,
    /// What is dropped, or the wrong rule.
    pub text: &'static str,
    /// `refuted` is what it must be.
    pub verdict: Verdict,
    /// Cases evaluated until it was refuted.
    pub cases: u64,
    /// The counterexample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Evidence>,
    /// Why it could not be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Evidence {
    /// The evidence without its drawing, for tables.
    #[must_use]
    pub fn in_words(&self) -> Self {
        Self { text: self.text.clone(), drawing: Drawing::None }
    }
}
