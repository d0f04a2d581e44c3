//! The runs as the data that reports are made from.

use super::run::ScenarioRun;
use std::collections::BTreeSet;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::verdict::Verdict;
use windtunnel_reports::run_report::{CallReport, RunReport, ScenarioReport};

/// The report of some runs.
pub(super) fn report(runs: &[ScenarioRun]) -> RunReport {
    let words = |of: &dyn Fn(&ScenarioRun) -> &'static str| {
        let distinct: BTreeSet<&str> = runs.iter().map(of).collect();
        distinct.into_iter().collect::<Vec<_>>().join(", ")
    };
    let seeds: BTreeSet<u64> = runs.iter().filter_map(|run| run.seed).collect();
    RunReport {
        title: "windtunnel run".to_owned(),
        profile: words(&|run| run.profile.word()),
        world: words(&|run| run.world.word()),
        seed: if seeds.len() == 1 { seeds.first().copied() } else { None },
        scenarios: runs.iter().map(scenario).collect(),
    }
}

fn scenario(run: &ScenarioRun) -> ScenarioReport {
    let (scenario, outcome) = (&run.loaded.scenario, &run.outcome);
    ScenarioReport {
        id: run.loaded.id.clone(),
        path: run.loaded.file.clone(),
        title: scenario.title.clone(),
        teaches: Some(scenario.teaches.clone()).filter(|teaches| !teaches.is_empty()),
        reproduces: scenario.reproduces.clone(),
        profile: run.profile.word().to_owned(),
        world: run.world.word().to_owned(),
        verdict: run.verdict,
        reason: Some(run.reasons.join("; ")).filter(|reason| !reason.is_empty()),
        end: outcome.end.map(|end| end.word().to_owned()),
        model_calls: outcome.model_calls,
        calls: outcome
            .calls
            .iter()
            .map(|call| CallReport {
                id: call.id.clone(),
                tool: call.tool.clone(),
                decision: call.decision,
                by: call.decided_by,
                executed: call.executed,
                end: call.end,
            })
            .collect(),
        invariants: invariants(run).into_iter().map(|(i, verdict)| (i.name().to_owned(), verdict)).collect(),
        steps: outcome.steps.clone(),
        reproduce: Some(run.reproduce.clone()),
    }
}

/// Every invariant with its verdict in this run; none in a run that did not take place.
pub(super) fn invariants(run: &ScenarioRun) -> Vec<(Invariant, Verdict)> {
    let broken = |invariant: Invariant| run.outcome.broken.contains_key(&invariant);
    let verdict = |invariant| if broken(invariant) { Verdict::Refuted } else { Verdict::Holds };
    let took_place = !run.outcome.steps.is_empty();
    Invariant::ALL
        .into_iter()
        .filter(|_| took_place)
        .map(|invariant| (invariant, verdict(invariant)))
        .collect()
}
