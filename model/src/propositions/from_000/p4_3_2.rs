//! Proposition 4.3 (2): the direction in which a hook fails.

use super::blocking::{Class, End, Prints, all_settings, ends, others};
use crate::gate::pipeline::Outcome as GateOutcome;
use crate::hooks::OnFailure;
use crate::profile::ProfileName;
use crate::propositions::{
    Check, Difference, Hypothesis, Method, Outcome, Proposition, Real, RealSubject, Trial, Variation, ensure,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "4.3.2",
    title: "The direction in which a hook fails",
    notion: "H fails when its run is a non-blocking error (4.2): another exit code, a signal, a timeout, no start, broken \
             output. Fail-open: the call goes on. Fail-closed: it does not.",
    statement: "Where H fails, the call goes on as if H had said nothing where onFailure is continue, and is not executed \
                where it is block.",
    source: "000, proposition 4.3 (2)",
    hypotheses: &[Hypothesis {
        text: "onFailure is block (fail-closed)",
        why: "the default is continue: a wrong path in the settings silently removes the guard",
    }],
    checks: &[Check {
        name: "both-directions",
        method: Method::Enumeration,
        claim: "over every failing end, both values of onFailure, every multiset of up to three other decisions, every \
                answer of a rule and every mode: under continue the outcome is that of a silent success, under block the \
                call does not run",
        run: |trial| law(trial, |on_failure| on_failure),
    }],
    ablations: &[Variation {
        name: "on-failure-left-out",
        text: "a guard without onFailure is said to be fail-closed",
        run: |trial| law(trial, |_| OnFailure::Block),
    }],
    mutants: &[Variation {
        name: "always-fail-closed",
        text: "a failure under continue is said to refuse the call as well",
        run: |trial| {
            law(trial, |on_failure| match on_failure {
                OnFailure::Continue | OnFailure::Block => OnFailure::Block,
            })
        },
    }],
    differences: &[Difference {
        profile: ProfileName::ClaudeCode,
        check: "both-directions",
        why: "JSON that breaks off at exit 0 counts as plain text, not as a failure: the call goes on under block too \
              (gate-and-hooks, section 4)",
    }],
    real: Some(Real {
        subject: RealSubject::ProtectEnv,
        text: "protect_env under a wrong path: fail-open by default, fail-closed with onFailure: block",
    }),
};

fn law(trial: &mut Trial<'_>, read_as: fn(OnFailure) -> OnFailure) -> Outcome {
    trial.over("failing ends x onFailure x other hooks <= 3 x rules x modes");
    let profile = *trial.profile();
    // The silent success stands first: what it comes to is what the others are compared with.
    let is_silent = |end: &End| end.code == Some(0) && end.prints == Prints::Nothing;
    let mut ordered: Vec<End> = ends();
    // What fails under continue fails under block too.
    ordered.retain(|end| is_silent(end) || end.class(OnFailure::Block) == Class::NonBlocking);
    ordered.sort_by_key(|end| !is_silent(end));
    let mut silent = GateOutcome::Unknown;
    let mut compared = 0u64;
    let all = all_settings(&profile, &ordered, &others(), |_| {}, &mut |setting, end, judgement| {
        if is_silent(end) {
            silent = judgement.outcome;
            return Ok(());
        }
        if end.class(setting.on_failure) != Class::NonBlocking {
            return Ok(());
        }
        compared += 1;
        match read_as(setting.on_failure) {
            OnFailure::Continue => ensure!(
                judgement.outcome == silent,
                "H {}: {} instead of {}; {}",
                end.words(),
                judgement.outcome.word(),
                silent.word(),
                setting.words()
            ),
            OnFailure::Block => ensure!(
                judgement.outcome != GateOutcome::Run,
                "H {} and the call runs; {}",
                end.words(),
                setting.words()
            ),
        }
        Ok(())
    });
    trial.count(compared);
    all?;
    Ok(None)
}
