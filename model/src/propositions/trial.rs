//! What a check is given: the profile, bounds, cases that are counted where they are evaluated, and a lab that draws
//! numbers and explores.

use super::evidence::{Evidence, Failure, Outcome};
use super::shrink::{Draws, shrink};
use crate::invariants::{Invariant, InvariantSet};
use crate::mutant::Mutant;
use crate::profile::{Profile, ProfileName};
use crate::trace::TraceStep;
use serde_json::Value;

/// What this crate does not do itself, and the world does for it.
pub trait Lab {
    /// Starts the stream of numbers of this name anew; the same name and seed give the same numbers.
    fn begin(&mut self, stream: &str);
    /// The next number of the stream, below `n`; `n` is not zero.
    fn below(&mut self, n: u64) -> u64;
    /// Explores every reachable state of a scenario.
    ///
    /// # Errors
    /// Why it cannot be explored.
    fn explore(&mut self, question: &Exploration) -> Result<Explored, String>;
    /// Seconds since this was last asked, as the world measures them.
    fn lap(&mut self) -> f64;
}

/// A scenario to explore.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The scenario, in the format of scenario files.
    pub scenario: Value,
    /// A wrong rule, for ablations and mutants.
    pub mutant: Option<Mutant>,
    /// The invariants that are judged.
    pub invariants: InvariantSet,
}

impl Exploration {
    /// The exploration of a scenario under all invariants.
    pub fn of(scenario: Value) -> Self {
        Self { scenario, mutant: None, invariants: InvariantSet::all() }
    }

    /// Only these invariants are judged.
    #[must_use]
    pub fn judging(mut self, invariants: impl IntoIterator<Item = Invariant>) -> Self {
        self.invariants = invariants.into_iter().collect();
        self
    }

    /// With a wrong rule in force.
    #[must_use]
    pub fn under(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }
}

/// What an exploration found.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// States.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// The most steps from the start.
    pub depth: u32,
    /// States in which nothing can happen and the run has not ended.
    pub deadlocks: u64,
    /// The bound that ended the search, if one did.
    pub stopped: Option<String>,
    /// The invariants that are broken, each with a shortest run.
    pub broken: Vec<Broken>,
    /// What happens in some run: `end:completed`, `call:timed_out`, `decision:hook:deny`, `connection:ready`, ….
    pub reached: Vec<String>,
    /// A cycle without progress: a run that never ends.
    pub lasso: Option<Lasso>,
}

impl Explored {
    /// Whether something happens in some run.
    pub fn reaches(&self, what: &str) -> bool {
        self.reached.iter().any(|reached| reached == what)
    }
}

/// A broken invariant with a shortest run that breaks it.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The invariant.
    pub invariant: Invariant,
    /// The run.
    pub steps: Vec<TraceStep>,
}

/// The way into a cycle and once around it, in the words of the domain.
#[derive(Clone, Debug)]
pub struct Lasso {
    /// The way in.
    pub stem: Vec<String>,
    /// Once around.
    pub cycle: Vec<String>,
}

/// One evaluation of a check, an ablation or a mutant.
pub struct Trial<'a> {
    lab: &'a mut dyn Lab,
    profile: Profile,
    bound: Option<usize>,
    samples: Option<u64>,
    cases: u64,
    bounds: Vec<String>,
    profile_read: bool,
    drawn: bool,
}

impl std::fmt::Debug for Trial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial").field("profile", &self.profile.name).field("cases", &self.cases).finish()
    }
}

impl<'a> Trial<'a> {
    /// A trial in a profile; `bound` and `samples` replace the check's own where they are given.
    pub fn new(
        lab: &'a mut dyn Lab,
        profile: ProfileName,
        bound: Option<usize>,
        samples: Option<u64>,
    ) -> Self {
        Self {
            lab,
            profile: profile.profile(),
            bound,
            samples,
            cases: 0,
            bounds: Vec::new(),
            profile_read: false,
            drawn: false,
        }
    }

    /// The profile in force. A check that never asks is the same in every profile, and is evaluated once.
    pub fn profile(&mut self) -> &Profile {
        self.profile_read = true;
        &self.profile
    }

    /// The bound of an enumeration: `usual`, or what was asked for, up to `most`, beyond which nobody waits for the end.
    pub fn bound(&mut self, what: &str, usual: usize, most: usize) -> usize {
        let bound = self.bound.unwrap_or(usual).min(most);
        self.bounds.push(format!("{what} <= {bound}"));
        bound
    }

    /// Says what the cases range over, where that is no number that can be asked for.
    pub fn over(&mut self, what: impl Into<String>) {
        self.bounds.push(what.into());
    }

    /// Counts cases that a check evaluates in a loop of its own.
    pub fn count(&mut self, cases: u64) {
        self.cases += cases;
    }

    /// The law holds of every case; the first that refutes it ends the trial.
    pub fn every<T>(
        &mut self,
        cases: impl IntoIterator<Item = T>,
        mut law: impl FnMut(T) -> Result<(), Evidence>,
    ) -> Outcome {
        for case in cases {
            self.cases += 1;
            law(case)?;
        }
        Ok(None)
    }

    /// The first case that shows what the statement says may be; the cases stand in ascending size, so it is the
    /// smallest.
    pub fn smallest<T>(
        &mut self,
        cases: impl IntoIterator<Item = T>,
        mut shows: impl FnMut(T) -> Option<Evidence>,
    ) -> Outcome {
        for case in cases {
            self.cases += 1;
            if let Some(witness) = shows(case) {
                return Ok(Some(witness));
            }
        }
        Err(Failure::refuted("no case up to the bound shows it"))
    }

    /// The law holds of `usual` random cases (or as many as were asked for). A case that refutes it is made smaller
    /// before it is shown.
    pub fn sampled(
        &mut self,
        usual: u64,
        mut law: impl FnMut(&mut Draws<'_>) -> Result<(), Evidence>,
    ) -> Outcome {
        let samples = self.samples.unwrap_or(usual);
        self.bounds.push(format!("{samples} random cases"));
        self.drawn = true;
        for _ in 0..samples {
            self.cases += 1;
            let lab = &mut *self.lab;
            let mut below = |n: u64| lab.below(n);
            let mut draws = Draws::fresh(&mut below);
            let Err(evidence) = law(&mut draws) else { continue };
            let (evidence, tried) = shrink(draws.taken(), evidence, &mut law);
            self.cases += tried;
            return Err(evidence.into());
        }
        Ok(None)
    }

    /// Explores a scenario in the profile in force. Its states count as cases. A search that is not complete is no
    /// answer.
    ///
    /// # Errors
    /// When it could not be explored, or not to the end.
    pub fn explore(&mut self, question: &Exploration) -> Result<Explored, Failure> {
        let name = self.profile().name;
        let mut question = question.clone();
        if let Value::Object(fields) = &mut question.scenario {
            fields.insert("version".to_owned(), 1.into());
            fields.entry("title").or_insert_with(|| "explored by a check".into());
            fields.insert("profiles".to_owned(), vec![Value::from(name.word())].into());
        }
        let explored = self.lab.explore(&question).map_err(Failure::Unknown)?;
        self.cases += explored.states;
        if explored.deadlocks > 0 {
            return Err(Failure::refuted(format!(
                "in {} states nothing can happen and the run has not ended",
                explored.deadlocks
            )));
        }
        match &explored.stopped {
            Some(bound) => Err(Failure::Bounded(format!("{bound} after {} states", explored.states))),
            None => Ok(explored),
        }
    }

    /// Explores a scenario in which no invariant may break.
    ///
    /// # Errors
    /// When one breaks (with the shortest run), or the search is no answer.
    pub fn unbroken(&mut self, question: &Exploration) -> Result<Explored, Failure> {
        let explored = self.explore(question)?;
        match explored.broken.first() {
            None => Ok(explored),
            Some(broken) => {
                let text = format!("{} breaks: {}", broken.invariant.name(), broken.invariant.sentence());
                Err(Evidence::said(text).with_drawing(super::Drawing::Run(broken.steps.clone())).into())
            }
        }
    }

    /// How many cases were evaluated.
    pub fn cases(&self) -> u64 {
        self.cases
    }

    pub(super) fn into_parts(self) -> Parts {
        Parts { cases: self.cases, bounds: self.bounds, profile_read: self.profile_read, drawn: self.drawn }
    }
}

/// What is kept of a trial.
pub(super) struct Parts {
    pub(super) cases: u64,
    pub(super) bounds: Vec<String>,
    pub(super) profile_read: bool,
    pub(super) drawn: bool,
}
