//! Judging a proposition: its checks in each profile, then its ablations and mutants.

use super::evidence::{Evidence, Failure, Outcome};
use super::report::{CheckReport, ProfileReport, PropositionReport, VariationReport};
use super::trial::{Lab, Parts, Trial};
use super::{Check, Proposition, Run, Variation};
use crate::profile::ProfileName;
use crate::verdict::Verdict;

/// How to judge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// The seed of random cases.
    pub seed: u64,
    /// A bound instead of the checks' own.
    pub bound: Option<usize>,
    /// A number of random cases instead of the checks' own.
    pub samples: Option<u64>,
    /// Whether mutants are tried too.
    pub mutants: bool,
    /// One profile instead of `documented`, `claude-code-2.1.332` and those that a difference names.
    pub profile: Option<ProfileName>,
    /// Whether times are reported.
    pub times: bool,
}

/// Judges one proposition.
pub fn judge(proposition: &Proposition, plan: &Plan, lab: &mut dyn Lab) -> PropositionReport {
    lab.lap();
    let mut seconds = 0.0;
    let mut drawn = false;
    let mut profiles: Vec<ProfileReport> = Vec::new();
    for profile in profiles_of(proposition, plan) {
        let mut checks = Vec::with_capacity(proposition.checks.len());
        for check in proposition.checks {
            let known = profiles.iter().flat_map(|report| &report.checks);
            let same =
                known.into_iter().find(|report| report.name == check.name && report.same_in_all_profiles);
            if let Some(same) = same {
                checks.push(CheckReport { cases: 0, seconds: plan.times.then_some(0.0), ..same.clone() });
                continue;
            }
            let (report, draws) = run_check(proposition, check, profile, plan, lab);
            let lap = lab.lap();
            seconds += lap;
            drawn |= draws;
            checks.push(CheckReport { seconds: plan.times.then_some(lap), ..report });
        }
        profiles.push(verdict_in(proposition, profile, checks));
    }
    let vary = |variations: &'static [Variation], lab: &mut dyn Lab| -> Vec<VariationReport> {
        variations.iter().map(|variation| run_variation(proposition, variation, plan, lab)).collect()
    };
    let ablations = vary(proposition.ablations, lab);
    let mutants = if plan.mutants { vary(proposition.mutants, lab) } else { Vec::new() };
    seconds += lab.lap();
    PropositionReport {
        id: proposition.id,
        title: proposition.title,
        notion: proposition.notion,
        statement: proposition.statement,
        source: proposition.source,
        hypotheses: proposition.hypotheses.to_vec(),
        profiles,
        ablations,
        mutants,
        real: proposition.real.map(|real| real.text),
        seed: drawn.then_some(plan.seed),
        seconds: plan.times.then_some(seconds),
    }
}

fn profiles_of(proposition: &Proposition, plan: &Plan) -> Vec<ProfileName> {
    match plan.profile {
        Some(profile) => vec![profile],
        None => {
            let teaching =
                proposition.differences.iter().any(|difference| difference.profile == ProfileName::Teaching);
            let mut profiles = vec![ProfileName::Documented, ProfileName::ClaudeCode];
            profiles.extend(teaching.then_some(ProfileName::Teaching));
            profiles
        }
    }
}

fn evaluate(
    stream: &str,
    run: Run,
    profile: ProfileName,
    plan: &Plan,
    lab: &mut dyn Lab,
) -> (Outcome, Parts) {
    lab.begin(stream);
    let mut trial = Trial::new(lab, profile, plan.bound, plan.samples);
    let outcome = run(&mut trial);
    let parts = trial.into_parts();
    // Nothing was looked at: nothing is known.
    let outcome = match outcome {
        Ok(_) if parts.cases == 0 => Err(Failure::Unknown("no case was evaluated".to_owned())),
        outcome => outcome,
    };
    (outcome, parts)
}

fn read(outcome: Outcome) -> (Verdict, Option<Evidence>, Option<String>) {
    match outcome {
        Ok(shown) => (Verdict::Holds, shown, None),
        Err(Failure::Refuted(evidence)) => (Verdict::Refuted, Some(evidence), None),
        Err(Failure::Bounded(reason)) => (Verdict::Bounded, None, Some(reason)),
        Err(Failure::Unknown(reason)) => (Verdict::Unknown, None, Some(reason)),
    }
}

fn run_check(
    proposition: &Proposition,
    check: &Check,
    profile: ProfileName,
    plan: &Plan,
    lab: &mut dyn Lab,
) -> (CheckReport, bool) {
    let stream = format!("{} {}", proposition.id, check.name);
    let (outcome, parts) = evaluate(&stream, check.run, profile, plan, lab);
    let (verdict, evidence, reason) = read(outcome);
    let report = CheckReport {
        name: check.name,
        claim: check.claim,
        method: check.method,
        verdict,
        bounds: parts.bounds,
        cases: parts.cases,
        same_in_all_profiles: !parts.profile_read,
        evidence,
        reason,
        seconds: None,
    };
    (report, parts.drawn)
}

fn run_variation(
    proposition: &Proposition,
    variation: &Variation,
    plan: &Plan,
    lab: &mut dyn Lab,
) -> VariationReport {
    let stream = format!("{} {}", proposition.id, variation.name);
    // Always where the law itself holds: a law that is refuted anyway would prove nothing of the variation.
    let (outcome, parts) = evaluate(&stream, variation.run, ProfileName::Documented, plan, lab);
    let (verdict, counterexample, reason) = read(outcome);
    VariationReport {
        name: variation.name,
        text: variation.text,
        verdict,
        cases: parts.cases,
        // A witness of a variation that is not refuted is no counterexample.
        counterexample: counterexample.filter(|_| verdict == Verdict::Refuted),
        reason,
    }
}

/// The worst verdict of the checks, and whether the checks that are refuted are exactly those that a difference names.
fn verdict_in(proposition: &Proposition, profile: ProfileName, checks: Vec<CheckReport>) -> ProfileReport {
    let rank = |verdict| match verdict {
        Verdict::Holds => 0,
        Verdict::Skipped => 1,
        Verdict::Bounded => 2,
        Verdict::Unknown => 3,
        Verdict::Refuted => 4,
    };
    let verdict =
        checks.iter().map(|check| check.verdict).max_by_key(|v| rank(*v)).unwrap_or(Verdict::Unknown);
    let own = || proposition.differences.iter().filter(|difference| difference.profile == profile);
    let expected = checks.iter().all(|check| {
        let wanted = if own().any(|d| d.check == check.name) { Verdict::Refuted } else { Verdict::Holds };
        check.verdict == wanted
    }) && own().all(|difference| checks.iter().any(|check| check.name == difference.check));
    ProfileReport {
        profile: profile.word(),
        verdict,
        expected,
        differences: own().map(|difference| difference.why).collect(),
        checks,
    }
}
