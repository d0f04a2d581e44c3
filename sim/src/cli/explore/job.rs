//! One search: one scenario in one profile, judged.

use super::output::{Report, Simulated, Termination, Violation, Witness, draw, save};
use super::{ExploreArgs, Reduce, cpu_seconds};
use crate::cli::{CliError, Io};
use crate::explore::harness::{Harness, Reductions, Setup};
use crate::explore::{
    Bounds, Exploration, Found, Kind, Options, Walks, cycles, explore, export, shows, sweep, walk,
};
use crate::scenario::compile::{Compiled, Place};
use crate::scenario::load::Loaded;
use crate::scenario::vacuity::unmatched_rules;
use std::time::Duration;
use windtunnel_model::agent_loop::Input;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::verdict::Verdict;

/// The most steps of one walk beyond the bound.
const WALK_STEPS: u32 = 1_000;

/// One search.
pub(super) struct Job<'a> {
    pub(super) args: &'a ExploreArgs,
    pub(super) loaded: &'a Loaded,
    pub(super) compiled: &'a Compiled,
    pub(super) setup: &'a Setup,
}

impl Job<'_> {
    pub(super) fn search<const W: usize>(
        &self,
        mut report: Report,
        io: &mut Io<'_>,
    ) -> Result<Report, CliError> {
        let harness: Harness<'_, W> = match Harness::new(self.compiled, self.setup) {
            Ok(harness) => harness,
            Err(error) => return Ok(report.unknown(error.to_string())),
        };
        let own = self.loaded.scenario.explore.unwrap_or_default();
        let bounds = Bounds {
            max_states: self.args.max_states.or(own.max_states),
            max_memory: self.args.max_memory,
            max_depth: self.args.max_depth.or(own.max_depth),
            timeout: self.args.timeout.map(Duration::from_secs),
        };
        let before = cpu_seconds();
        let mut found = if self.args.fingerprint {
            self.swept(&harness, bounds, &mut report)
        } else {
            let options = Options { bounds, threads: usize::from(self.args.threads) };
            let explored = explore(&harness, &options);
            report.cpu_seconds = cpu_seconds() - before;
            self.explored(&harness, &explored, &mut report, io)?
        };
        if self.args.fingerprint {
            report.cpu_seconds = cpu_seconds() - before;
        }
        if let Some(failure) = harness.failure() {
            return Ok(report.unknown(failure.to_string()));
        }
        // What is told and saved is a run of the whole system, where every call keeps its place.
        let whole = Setup { reductions: Reductions::NONE, ..*self.setup };
        let whole: Harness<'_, W> = match Harness::new(self.compiled, &whole) {
            Ok(whole) => whole,
            Err(error) => return Ok(report.unknown(error.to_string())),
        };
        if self.setup.reductions != Reductions::NONE {
            for (found, _) in &mut found {
                let Some(first) = found.as_ref() else { continue };
                let Some(lifted) = harness.lift(&whole, first) else {
                    return Ok(report.unknown("a run of the reduced search is no run of the whole one"));
                };
                *found = Some(lifted);
            }
        }
        if self.args.reduce == Some(Reduce::Checked) {
            let full = explore(&whole, &Options { bounds, ..Options::default() });
            if full.stopped().is_none() {
                let agree =
                    found.iter().enumerate().all(|(index, (_, verdict))| full.verdict(index) == *verdict);
                if !agree {
                    return Ok(report.unknown("the reduced search and the whole one judge differently"));
                }
                report.whole_states = Some(full.states());
            }
        }
        if let (Some(runs), Some(_)) = (self.args.simulate, report.stopped) {
            self.simulated(&whole, runs, &mut found, &mut report);
        }
        self.judge(&whole, found, &mut report, io)?;
        Ok(report)
    }

    /// Random walks where a bound ended the search: what they meet refutes (or shows), what they do not meet says nothing.
    fn simulated<const W: usize>(
        &self,
        whole: &Harness<'_, W>,
        runs: u64,
        found: &mut [(Option<Found>, Verdict)],
        report: &mut Report,
    ) {
        let walks = Walks { seed: self.args.seed, runs, steps: WALK_STEPS };
        let sampled = walk(whole, &walks);
        for ((index, met), (found, verdict)) in sampled.found.iter().enumerate().zip(found) {
            if let (Some(met), None) = (met, &found) {
                *found = Some(met.clone());
                let invariant = index < whole.property_table().invariants();
                *verdict = if invariant { Verdict::Refuted } else { Verdict::Holds };
            }
        }
        report.simulated = Some(Simulated {
            walks: runs,
            seed: walks.seed,
            most_steps: walks.steps,
            steps: sampled.steps,
            distinct: sampled.distinct,
            new_late: sampled.new_late,
        });
    }

    /// The places of the marks of an exact search.
    fn explored<const W: usize>(
        &self,
        harness: &Harness<'_, W>,
        explored: &Exploration<[u64; W]>,
        report: &mut Report,
        io: &mut Io<'_>,
    ) -> Result<Vec<(Option<Found>, Verdict)>, CliError> {
        report.states = explored.states();
        report.transitions = explored.transitions();
        report.terminals = explored.terminals();
        report.deadlocks = explored.deadlocks();
        report.depth = explored.depth();
        report.depths = explored.depths();
        report.stopped = explored.stopped();
        report.bytes_per_state = explored.memory() as f64 / explored.states().max(1) as f64;
        report.never_taken = never_taken(harness, explored);
        // Judged from the settings, not from the states: it holds for a bounded search too.
        let rules = unmatched_rules(self.loaded, report.profile, &Place::default())
            .map_err(|error| CliError::input(error.to_string()))?;
        let words = |rule| format!("{rule} matches no call that the assistant makes");
        report.never_taken.extend(rules.into_iter().map(words));
        report.termination = match cycles::without_progress(harness, explored) {
            cycles::Cycles::None => Termination { verdict: Verdict::Holds, stem: None, cycle: None },
            cycles::Cycles::Bounded => Termination { verdict: Verdict::Bounded, stem: None, cycle: None },
            cycles::Cycles::Found(lasso) => {
                let mut whole = lasso.stem.clone();
                whole.schedule.extend(&lasso.cycle);
                let told = export::sequence(harness, &whole).unwrap_or_default();
                let (stem, cycle) = told.split_at(lasso.stem.schedule.len().min(told.len()));
                Termination {
                    verdict: Verdict::Refuted,
                    stem: Some(stem.to_vec()),
                    cycle: Some(cycle.to_vec()),
                }
            }
        };
        if let Some(first) = explored.first_deadlock() {
            report.first_deadlock = export::sequence(harness, &first).ok();
        }
        if let Some(path) = &self.args.graph {
            /// More states than this nobody reads in a drawing; other formats are for programs.
            const DRAWN: usize = 400;
            let most = if path.extension().is_some_and(|ext| ext == "svg") { DRAWN } else { usize::MAX };
            let graph = export::graph(&self.loaded.id, harness, explored, most);
            draw(&graph, &io.cwd.join(path))?;
        }
        let count = explored.properties().len();
        Ok((0..count).map(|index| (explored.first(index), explored.verdict(index))).collect())
    }

    /// The places of the marks of a search by fingerprints.
    fn swept<const W: usize>(
        &self,
        harness: &Harness<'_, W>,
        bounds: Bounds,
        report: &mut Report,
    ) -> Vec<(Option<Found>, Verdict)> {
        let swept = sweep(harness, bounds);
        report.exact = false;
        report.collision_odds = Some(swept.collision_odds());
        report.states = swept.states;
        report.transitions = swept.transitions;
        report.terminals = swept.terminals;
        report.deadlocks = swept.deadlocks;
        report.depth = swept.depth;
        report.stopped = swept.stopped;
        report.bytes_per_state = swept.memory as f64 / swept.states.max(1) as f64;
        report.termination = Termination { verdict: Verdict::Unknown, stem: None, cycle: None };
        let count = harness.property_table().list().len();
        (0..count).map(|index| (swept.first(index).cloned(), swept.verdict(index))).collect()
    }

    fn judge<const W: usize>(
        &self,
        harness: &Harness<'_, W>,
        found: Vec<(Option<Found>, Verdict)>,
        report: &mut Report,
        io: &mut Io<'_>,
    ) -> Result<(), CliError> {
        let properties = harness.property_table();
        for name in &self.args.witness {
            if properties.position(name, Kind::Witness).is_none() {
                let names: Vec<&str> = properties.list()[properties.invariants()..]
                    .iter()
                    .map(|property| property.name.as_str())
                    .collect();
                return Err(CliError::with_hint(
                    format!("no witness `{name}`"),
                    format!("one of {}", names.join(", ")),
                ));
            }
        }
        let mut worst = if report.stopped.is_some() { Verdict::Bounded } else { Verdict::Holds };
        for (index, ((found, verdict), property)) in found.into_iter().zip(properties.list()).enumerate() {
            let asked = self.args.witness.contains(&property.name);
            if property.kind == Kind::Witness {
                report.every_witness.push(property.name.clone());
                if found.is_some() {
                    report.coverage.push(property.name.clone());
                }
                if asked {
                    if verdict == Verdict::Refuted {
                        worst = Verdict::Refuted;
                    }
                    report.witnesses.push(Witness::new(harness, &property.name, verdict, found.as_ref()));
                }
                continue;
            }
            let Some(found) = found else { continue };
            worst = Verdict::Refuted;
            let mut violation = Violation::new(harness, &property.name, &found);
            violation.confirmed = shows(harness, &found, index);
            if let Some(folder) = &self.args.save {
                let picks = harness.picks(&found.schedule);
                let folder = io.cwd.join(folder);
                violation.saved = Some(save(
                    self.loaded,
                    report.profile,
                    self.compiled,
                    harness,
                    &found,
                    &picks,
                    &violation,
                    &folder,
                )?);
            }
            violation.reproduce = match &violation.saved {
                Some(path) => format!("windtunnel run {path}"),
                None => format!(
                    "windtunnel explore {} --profile {} --invariant {}",
                    self.loaded.file, report.profile, property.name
                ),
            };
            report.violations.push(violation);
        }
        if report.termination.verdict == Verdict::Refuted && !self.compiled.world.repeats {
            worst = Verdict::Refuted;
        }
        if report.deadlocks > 0 {
            worst = Verdict::Refuted;
        }
        report.verdict = worst;
        self.compare(report);
        Ok(())
    }

    /// Whether what is refuted is exactly what the scenario says.
    fn compare(&self, report: &mut Report) {
        let expected = self.loaded.scenario.expectation(report.profile.word()).breaks;
        let judged = |name: &String| {
            self.args.invariant.is_empty() || self.args.invariant.iter().any(|i| i.name() == name)
        };
        let broken: Vec<&String> = report.violations.iter().map(|violation| &violation.invariant).collect();
        let missing: Vec<&String> = expected
            .iter()
            .filter(|name| judged(name) && !broken.contains(name) && name.as_str() != Invariant::Cost.name())
            .collect();
        let witnessed = report.witnesses.iter().all(|witness| witness.verdict != Verdict::Refuted);
        let terminates = report.termination.verdict != Verdict::Refuted
            || self.compiled.world.repeats
            || !expected.is_empty();
        report.expected = missing.is_empty()
            && broken.iter().all(|name| expected.contains(name))
            && report.deadlocks == 0
            && witnessed
            && terminates;
        if !missing.is_empty() && report.stopped.is_none() {
            report.verdict = Verdict::Refuted;
            let names: Vec<&str> = missing.iter().map(|name| name.as_str()).collect();
            report.reason =
                Some(format!("the scenario says that {} breaks, and it does not", names.join(", ")));
        }
    }
}

/// Hooks that never run and replies that are never given, in the words of the domain: what a scenario says in vain.
fn never_taken<const W: usize>(harness: &Harness<'_, W>, explored: &Exploration<[u64; W]>) -> Vec<String> {
    let config = harness.config();
    let mut hooks: Vec<bool> = vec![false; config.hooks.len()];
    let mut replies: Vec<bool> = vec![false; config.replies.len()];
    for number in 0..explored.states() as u32 {
        if hooks.iter().chain(&replies).all(|taken| *taken) {
            break;
        }
        for answer in harness.answers(&harness.moment(explored.log().state(number))) {
            match answer.input {
                Input::HookFinished { hook, .. } => {
                    if let Some(taken) = hooks.get_mut(hook.index()) {
                        *taken = true;
                    }
                }
                Input::ModelReplied(reply) => {
                    if let Some(taken) = replies.get_mut(reply.index()) {
                        *taken = true;
                    }
                }
                _ => {}
            }
        }
    }
    let hooks = config
        .hooks
        .iter()
        .zip(hooks)
        .filter(|(_, taken)| !taken)
        .map(|(hook, _)| format!("{} hook `{}` never runs", hook.event.word(), hook.name));
    let replies = replies
        .iter()
        .enumerate()
        .filter(|(_, taken)| !**taken)
        .map(|(index, _)| format!("reply {index} of the assistant is never given"));
    hooks.chain(replies).collect()
}
