//! Exercise 9.3: a hook whose script does not exist.

use crate::gate::mode::Mode;
use crate::gate::pipeline::Outcome as GateOutcome;
use crate::hooks::{EndStatus, HandlerEnd, OnFailure};
use crate::propositions::at_the_gate::{GivenEnds, judge, session};
use crate::propositions::from_000::blocking::{RuleSays, on_failures, settings};
use crate::propositions::{
    Check, Hypothesis, Method, Outcome, Proposition, Real, RealSubject, Trial, Variation, ensure,
};
use crate::sources::settings::Level;
use serde_json::json;

/// The exercise.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "exercise-9.3",
    title: "A hook whose script does not exist",
    notion: "A PreToolUse hook whose path is wrong cannot be started: a non-blocking error (4.2).",
    statement: "With the default the call goes on to the permission decision; with onFailure: block it is not executed.",
    source: "000, exercise 9.3",
    hypotheses: &[Hypothesis {
        text: "the hook is meant to stop something",
        why: "a hook that only formats after the fact loses nothing by failing open; a guard loses everything",
    }],
    checks: &[Check {
        name: "both-settings",
        method: Method::Enumeration,
        claim: "over both values of onFailure and every answer of a rule the outcome is that of the solution",
        run: |trial| both(trial, EndStatus::CannotStart("no such file".to_owned())),
    }],
    ablations: &[Variation {
        name: "the-script-is-there",
        text: "the script exists and ends well",
        run: |trial| both(trial, EndStatus::Exit(0)),
    }],
    mutants: &[Variation {
        name: "no-start-blocks",
        text: "a hook that cannot start is read as exit 2",
        run: |trial| both(trial, EndStatus::Exit(2)),
    }],
    differences: &[],
    real: Some(Real {
        subject: RealSubject::ProtectEnv,
        text: "the guard of .env under a wrong path, with and without onFailure: block",
    }),
};

fn both(trial: &mut Trial<'_>, end: EndStatus) -> Outcome {
    let profile = *trial.profile();
    let input = json!({"file_path": "notes.txt", "content": "x"});
    let cases =
        on_failures().iter().flat_map(|f| [RuleSays::Nothing, RuleSays::Allow].map(|rule| (*f, rule)));
    trial.every(cases, |(on_failure, rule)| {
        let files = [(Level::User, settings(on_failure, 0, rule))];
        let mut session = session(&profile, &files, Mode::Default, true);
        let mut hooks = GivenEnds::default();
        hooks.ends.insert("H".to_owned(), HandlerEnd::silent(end.clone()));
        let outcome = judge(&mut session, "Write", &input, &mut hooks).outcome;
        let expected = match (on_failure, rule) {
            (OnFailure::Block, _) => GateOutcome::Blocked,
            (OnFailure::Continue, RuleSays::Allow) => GateOutcome::Run,
            (OnFailure::Continue, _) => GateOutcome::NeedsApproval,
        };
        ensure!(
            outcome == expected,
            "onFailure {on_failure:?}, rule {rule:?}: {}, the solution says {}",
            outcome.word(),
            expected.word()
        );
        Ok(())
    })
}
