//! Proposition 4.3 (3): what a guard must do, in each direction of failure.

use super::blocking::{Class, End, RULES, Setting, all_settings, ends};
use crate::gate::pipeline::Outcome as GateOutcome;
use crate::hooks::{HookDecision, OnFailure};
use crate::propositions::{
    Check, Evidence, Failure, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "4.3.3",
    title: "What a guard must do, in each direction of failure",
    notion: "Bad is a set of calls; the guarantee is that no call of Bad is executed, whatever the rules, the mode and the \
             other hooks say. H prints no JSON, so that its end is told by its exit.",
    statement: "Fail-open, the guarantee holds if and only if H ends in a blocking error on all of Bad; fail-closed, if \
                and only if H succeeds on none of Bad; the second demand is strictly weaker.",
    source: "000, proposition 4.3 (3)",
    hypotheses: &[Hypothesis {
        text: "the rest of the gate may let the call run",
        why: "where a deny rule stands behind it, a guard that does nothing keeps the guarantee too",
    }],
    checks: &[
        Check {
            name: "both-demands",
            method: Method::Bounded,
            claim: "over every way in which H can end on each call of Bad, judged in every setting of rules, modes and \
                    another hook, the guarantee holds exactly where the demand does",
            run: |trial| demands(trial, fail_open, fail_closed, |_| true),
        },
        Check {
            name: "strictly-weaker",
            method: Method::Witness,
            claim: "there is a guard that keeps the guarantee fail-closed and not fail-open; none does the reverse",
            run: strictly_weaker,
        },
    ],
    ablations: &[Variation {
        name: "a-deny-rule-stands-behind",
        text: "the settings are only those with a deny rule: the demand is then not needed",
        run: |trial| {
            demands(trial, fail_open, fail_closed, |setting| setting.rule == super::blocking::RuleSays::Deny)
        },
    }],
    mutants: &[
        Variation {
            name: "no-success-is-enough-fail-open",
            text: "fail-open, a guard that never succeeds is said to be enough",
            run: |trial| demands(trial, fail_closed, fail_closed, |_| true),
        },
        Variation {
            name: "must-block-fail-closed",
            text: "fail-closed, a guard is said to have to end in a blocking error",
            run: |trial| demands(trial, fail_open, fail_open, |_| true),
        },
    ],
    differences: &[],
    real: None,
};

/// Fail-open: a blocking error on all of Bad.
fn fail_open(ends: &[Class]) -> bool {
    ends.iter().all(|class| *class == Class::Blocking)
}

/// Fail-closed: a success on none of Bad.
fn fail_closed(ends: &[Class]) -> bool {
    ends.iter().all(|class| *class != Class::Success)
}

/// One end of each class, without JSON.
fn guards() -> Vec<End> {
    ends()
        .into_iter()
        .filter(|end| {
            end.prints == super::blocking::Prints::Nothing && matches!(end.code, Some(0..=2) | None)
        })
        .collect()
}

/// For each direction of failure and each end of H: whether a call is executed in some setting.
fn executed(
    trial: &mut Trial<'_>,
    among: fn(&Setting) -> bool,
) -> Result<Vec<(OnFailure, Class, bool)>, Failure> {
    let profile = *trial.profile();
    let others: Vec<Vec<HookDecision>> =
        std::iter::once(Vec::new()).chain(super::blocking::decisions().iter().map(|d| vec![*d])).collect();
    let mut rows: Vec<(OnFailure, Class, bool)> = Vec::new();
    let cases = all_settings(&profile, &guards(), &others, |_| {}, &mut |setting, end, judgement| {
        if !among(setting) {
            return Ok(());
        }
        let class = end.class(setting.on_failure);
        let runs = judgement.outcome == GateOutcome::Run;
        match rows.iter_mut().find(|(f, c, _)| *f == setting.on_failure && *c == class) {
            Some(row) => row.2 |= runs,
            None => rows.push((setting.on_failure, class, runs)),
        }
        Ok(())
    })?;
    trial.count(cases);
    Ok(rows)
}

fn demands(
    trial: &mut Trial<'_>,
    open: fn(&[Class]) -> bool,
    closed: fn(&[Class]) -> bool,
    among: fn(&Setting) -> bool,
) -> Outcome {
    let most = trial.bound("calls of Bad", 3, 5);
    trial.over(format!("{} answers of rules x modes x one other hook", RULES.len()));
    let rows = executed(trial, among)?;
    let runs = |on_failure: OnFailure, class: Class| {
        rows.iter().any(|(f, c, runs)| *f == on_failure && *c == class && *runs)
    };
    trial.every(maps(most), |ends| {
        for (on_failure, demand) in [(OnFailure::Continue, open), (OnFailure::Block, closed)] {
            let guaranteed = ends.iter().all(|class| !runs(on_failure, *class));
            ensure!(
                guaranteed == demand(&ends),
                "onFailure {on_failure:?}, H ends on Bad with {ends:?}: guaranteed {guaranteed}, the demand says {}",
                demand(&ends)
            );
        }
        Ok(())
    })
}

/// Every way in which H can end on up to `most` calls.
fn maps(most: usize) -> Vec<Vec<Class>> {
    let classes = [Class::Success, Class::Blocking, Class::NonBlocking];
    let mut lists = vec![Vec::new()];
    let mut last: Vec<Vec<Class>> = lists.clone();
    for _ in 0..most {
        last = last.iter().flat_map(|l| classes.iter().map(|c| [l.as_slice(), &[*c]].concat())).collect();
        lists.extend(last.clone());
    }
    lists
}

fn strictly_weaker(trial: &mut Trial<'_>) -> Outcome {
    let most = trial.bound("calls of Bad", 3, 5);
    trial.every(maps(most), |ends| {
        ensure!(
            !fail_open(&ends) || fail_closed(&ends),
            "{ends:?} meets the first demand and not the second"
        );
        Ok(())
    })?;
    trial.smallest(maps(most), |ends| {
        (fail_closed(&ends) && !fail_open(&ends))
            .then(|| Evidence::said(format!("H that ends with {ends:?} on Bad")))
    })
}
