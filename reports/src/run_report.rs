//! What a report of `run` is made from: the verdicts, the calls and the traces. The command line fills it in.

use windtunnel_model::agent_loop::{CallEnd, DecidedBy};
use windtunnel_model::hooks::HookDecision;
use windtunnel_model::trace::TraceStep;
use windtunnel_model::verdict::Verdict;

/// A whole `run`: some scenarios, each in a profile and a world.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReport {
    /// The heading, such as `windtunnel run`.
    pub title: String,
    /// The profiles that were in force, in words.
    pub profile: String,
    /// The worlds that answered, in words.
    pub world: String,
    /// The seed of the random world.
    pub seed: Option<u64>,
    /// What ran, in the order in which it ran.
    pub scenarios: Vec<ScenarioReport>,
}

/// One scenario in one profile and one world.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioReport {
    /// The scenario's id. The same one may stand here several times, in other profiles or worlds.
    pub id: String,
    /// The file it was read from, as the user named it.
    pub path: String,
    /// Its title.
    pub title: String,
    /// What it teaches.
    pub teaches: Option<String>,
    /// Propositions and sections that it reproduces.
    pub reproduces: Vec<String>,
    /// The profile in force.
    pub profile: String,
    /// The world: `scripted`, `random`, `exhaustive` or `process`.
    pub world: String,
    /// What it came to.
    pub verdict: Verdict,
    /// Why, where it does not hold.
    pub reason: Option<String>,
    /// Why the run ended, in a word; `None` when it did not end.
    pub end: Option<String>,
    /// How often the model was called.
    pub model_calls: u32,
    /// Its calls, in the order of the replies.
    pub calls: Vec<CallReport>,
    /// The invariants that were judged: name and verdict.
    pub invariants: Vec<(String, Verdict)>,
    /// The trace.
    pub steps: Vec<TraceStep>,
    /// The command that runs this again.
    pub reproduce: Option<String>,
}

/// One call of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReport {
    /// The `tool_use` id.
    pub id: String,
    /// The tool as the assistant named it.
    pub tool: String,
    /// The gate's last decision; `None` where the call never reached the gate.
    pub decision: Option<HookDecision>,
    /// Who decided.
    pub by: Option<DecidedBy>,
    /// Whether it was executed, at least begun.
    pub executed: bool,
    /// How it ended; `None` when it got no result.
    pub end: Option<CallEnd>,
}

/// How many scenarios came to each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that hold.
    pub holds: usize,
    /// Those that are refuted.
    pub refuted: usize,
    /// Those cut off by a bound.
    pub bounded: usize,
    /// Those that could not be judged.
    pub unknown: usize,
    /// Those that were not run.
    pub skipped: usize,
}

impl RunReport {
    /// Counts the verdicts.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for scenario in &self.scenarios {
            *match scenario.verdict {
                Verdict::Holds => &mut tally.holds,
                Verdict::Refuted => &mut tally.refuted,
                Verdict::Bounded => &mut tally.bounded,
                Verdict::Unknown => &mut tally.unknown,
                Verdict::Skipped => &mut tally.skipped,
            } += 1;
        }
        tally
    }
}

impl Tally {
    /// The counts with their words, in the order of the verdicts.
    pub fn rows(self) -> [(Verdict, usize); 5] {
        [
            (Verdict::Holds, self.holds),
            (Verdict::Refuted, self.refuted),
            (Verdict::Bounded, self.bounded),
            (Verdict::Unknown, self.unknown),
            (Verdict::Skipped, self.skipped),
        ]
    }

    /// A verdict with its number: `1 holds`, `3 hold`, `2 refuted`.
    pub fn counted(verdict: Verdict, count: usize) -> String {
        match verdict {
            Verdict::Holds if count != 1 => format!("{count} hold"),
            _ => format!("{count} {verdict}"),
        }
    }

    /// One line, naming only what occurs: `3 hold, 1 refuted`.
    pub fn words(self) -> String {
        let counted: Vec<String> = self
            .rows()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(verdict, count)| Self::counted(verdict, count))
            .collect();
        if counted.is_empty() { "no scenario ran".to_owned() } else { counted.join(", ") }
    }
}

impl CallReport {
    /// The decision with who decided, in words.
    pub fn decision_words(&self) -> String {
        match (self.decision, self.by) {
            (None, _) => "not reached".to_owned(),
            (Some(decision), None) => decision.word().to_owned(),
            (Some(decision), Some(by)) => format!("{}, {}", decision.word(), crate::words::decided_by(by)),
        }
    }

    /// How it ended, in words.
    pub fn end_words(&self) -> String {
        self.end.map_or_else(|| "no result".to_owned(), crate::words::end)
    }
}
