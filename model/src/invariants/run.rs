//! Invariants about the whole run: the turn limit, Stop hooks, the end.

use super::{Invariant, InvariantSet, Monitor, Observation};
use crate::agent_loop::{Input, Output, Phase};
use crate::profile::agent_loop::TurnLimitRule;

/// Consecutive Stop blocks that may be obeyed (gate-and-hooks section 11).
const STOP_CAP: u8 = 8;

pub(super) fn observe(
    enabled: InvariantSet,
    monitor: &mut Monitor,
    step: &Observation<'_>,
    broken: &mut InvariantSet,
) {
    let calls = step.outputs.iter().filter(|output| matches!(output, Output::CallModel)).count();
    if enabled.contains(Invariant::Turns) {
        turns(monitor, step, calls, broken);
    }
    if enabled.contains(Invariant::Stop) {
        stop(monitor, step, calls, broken);
    }
    if enabled.contains(Invariant::End) {
        end(step, broken);
    }
    if step.after.phase == Phase::Ended {
        *monitor = Monitor::default();
    }
}

/// 7.1, by the profile's rule: at most T + 1 model calls, or at most T.
fn turns(monitor: &mut Monitor, step: &Observation<'_>, calls: usize, broken: &mut InvariantSet) {
    let Some(limit) = step.config.limits.max_turns else { return };
    let most = match step.config.profile.agent_loop.turn_limit.value {
        // Continuations that Stop hooks force are not turns with calls; their own bound is I-STOP.
        TurnLimitRule::ToolTurns => limit.saturating_add(1),
        TurnLimitRule::ModelCalls if limit > 0 => limit,
        _ => return,
    };
    if step.before.phase == Phase::StopHooks
        && step.config.profile.agent_loop.turn_limit.value == TurnLimitRule::ToolTurns
    {
        return;
    }
    let calls = u8::try_from(calls).unwrap_or(u8::MAX);
    monitor.model_calls = monitor.model_calls.saturating_add(calls).min(most.saturating_add(1));
    if monitor.model_calls > most {
        broken.insert(Invariant::Turns);
    }
}

/// At most eight consecutive blocks are obeyed; a turn with calls ends the row.
fn stop(monitor: &mut Monitor, step: &Observation<'_>, calls: usize, broken: &mut InvariantSet) {
    if let Input::ModelReplied(reply) = step.input
        && step.config.replies.get(reply.index()).is_some_and(|reply| !reply.calls.is_empty())
    {
        monitor.stop_blocks = 0;
    }
    if step.before.phase == Phase::StopHooks && calls > 0 {
        monitor.stop_blocks = monitor.stop_blocks.saturating_add(1).min(STOP_CAP + 1);
        if monitor.stop_blocks > STOP_CAP {
            broken.insert(Invariant::Stop);
        }
    }
}

/// Nothing follows the end: not in the step that ends the run, and no step is taken after it.
fn end(step: &Observation<'_>, broken: &mut InvariantSet) {
    let mut outputs = step.outputs.iter().skip_while(|output| !matches!(output, Output::Finish(_)));
    outputs.next();
    if outputs.next().is_some() || step.before.phase == Phase::Ended {
        broken.insert(Invariant::End);
    }
}
