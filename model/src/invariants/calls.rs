//! Invariants about calls: pairing, totality, hooks and permission before execution.

use super::{Invariant, InvariantSet, Monitor, Observation};
use crate::agent_loop::{
    CallEnd, CallInfo, CallRef, ConnPhase, Input, McpOut, Output, Phase, Progress, RuleAnswer, Site,
};
use crate::hooks::HookDecision as Decision;

/// The bit of a slot.
fn bit(slot: u8) -> u8 {
    1u8.checked_shl(u32::from(slot)).unwrap_or(0)
}

pub(super) fn observe(
    enabled: InvariantSet,
    monitor: &mut Monitor,
    step: &Observation<'_>,
    broken: &mut InvariantSet,
) {
    hear(enabled, monitor, step);
    // Results that each slot had before this step, for I-TOTAL.
    let returned_before = monitor.returned;
    for output in step.outputs {
        match *output {
            Output::Decided { slot, decision: Decision::Allow, by } => {
                monitor.permitted |= set(enabled, Invariant::Permit, slot);
                if by == crate::agent_loop::DecidedBy::User {
                    monitor.user_allowed |= set(enabled, Invariant::HookAllow, slot);
                }
            }
            Output::RunHook { site: Site::Call(slot), hook } => {
                let asked = step.outputs.iter().filter(
                    |output| matches!(output, Output::RunHook { site: Site::Call(s), hook: h } if *s == slot && *h == hook),
                );
                if asked.count() > 1 {
                    broken.insert(Invariant::Fire);
                }
            }
            Output::RunTool { slot, call } => executed(enabled, monitor, step, slot, call, broken),
            Output::SendMcp { message: McpOut::Call { slot, .. }, .. } => {
                if let Some(call) = call_of(step, slot) {
                    executed(enabled, monitor, step, slot, call, broken);
                }
            }
            Output::Returned { slot, end } => {
                if monitor.returned & bit(slot) != 0 {
                    broken.insert(Invariant::Pair);
                    broken.insert(Invariant::Total);
                }
                if end == CallEnd::Deferred {
                    broken.insert(Invariant::Pair);
                }
                monitor.returned |= bit(slot);
            }
            _ => {}
        }
    }
    let (mut new_turn, mut calls_model) = (false, false);
    for output in step.outputs {
        new_turn |= matches!(output, Output::TurnEnded);
        calls_model |= matches!(output, Output::CallModel);
    }
    totality(monitor, step, returned_before, new_turn, broken);
    if new_turn && calls_model && monitor.returned != crate::agent_loop::hook_mask(turn_size(step)) {
        broken.insert(Invariant::Pair);
    }
    if new_turn || step.after.phase == Phase::Ended {
        *monitor = Monitor {
            model_calls: monitor.model_calls,
            stop_blocks: monitor.stop_blocks,
            ..Monitor::default()
        };
    } else {
        forget_ended(monitor, step);
    }
    *broken = broken.and(enabled);
}

/// How many calls the turn has that this step is about: a reply begins a new one.
fn turn_size(step: &Observation<'_>) -> usize {
    match step.input {
        Input::ModelReplied(reply) => {
            step.config.replies.get(reply.index()).map_or(0, |reply| reply.calls.len())
        }
        _ => usize::from(step.before.count),
    }
}

fn set(enabled: InvariantSet, invariant: Invariant, slot: u8) -> u8 {
    if enabled.contains(invariant) { bit(slot) } else { 0 }
}

/// Takes note of what a finished hook said.
fn hear(enabled: InvariantSet, monitor: &mut Monitor, step: &Observation<'_>) {
    let Input::HookFinished { site: Site::Call(slot), hook, signal } = step.input else { return };
    let Some(before) = step.before.slot(slot) else { return };
    if !matches!(before.progress, Progress::Stage(_)) {
        return;
    }
    let Some(info) = step.config.call(before.call) else { return };
    if enabled.contains(Invariant::Fire)
        && let Some(fired) = monitor.fired.get_mut(usize::from(slot))
    {
        *fired |= info
            .before
            .iter()
            .position(|candidate| *candidate == hook)
            .and_then(|position| u32::try_from(position).ok())
            .and_then(|position| 1u8.checked_shl(position))
            .unwrap_or(0);
    }
    if signal.decision == Decision::Deny {
        monitor.blocked |= set(enabled, Invariant::Block, slot);
    }
    if signal.decision == Decision::Allow {
        monitor.hook_allowed |= set(enabled, Invariant::HookAllow, slot);
    }
    let block = step.config.hooks.get(hook.index()).is_some_and(|hook| hook.block_on_failure);
    if signal.failed && block {
        monitor.fail_blocked |= set(enabled, Invariant::FailDir, slot);
    }
}

/// A call is being executed: everything that had to come before must have come.
fn executed(
    enabled: InvariantSet,
    monitor: &Monitor,
    step: &Observation<'_>,
    slot: u8,
    call: CallRef,
    broken: &mut InvariantSet,
) {
    let Some(info) = step.config.call(call) else { return };
    let mut require = |invariant: Invariant, holds: bool| {
        if enabled.contains(invariant) && !holds {
            broken.insert(invariant);
        }
    };
    require(Invariant::Fire, all_fired(monitor, slot, info));
    require(Invariant::Block, monitor.blocked & bit(slot) == 0);
    require(Invariant::FailDir, monitor.fail_blocked & bit(slot) == 0);
    require(Invariant::Permit, monitor.permitted & bit(slot) != 0);
    require(Invariant::Deny, info.rule != RuleAnswer::Deny);
    let lifted = matches!(info.rule, RuleAnswer::Deny | RuleAnswer::AskByRule)
        && monitor.hook_allowed & bit(slot) != 0
        && monitor.user_allowed & bit(slot) == 0;
    require(Invariant::HookAllow, !lifted);
    require(Invariant::Gone, is_offered(step, call));
}

/// Whether every matching PreToolUse hook has finished on this slot, each asked for once.
fn all_fired(monitor: &Monitor, slot: u8, info: &CallInfo) -> bool {
    let fired = monitor.fired.get(usize::from(slot)).copied().unwrap_or(0);
    fired == crate::agent_loop::hook_mask(info.before.len())
}

/// Whether the tool of a call is on the list of a connected server at the moment of sending. The connection may have
/// become ready in this very step.
fn is_offered(step: &Observation<'_>, call: CallRef) -> bool {
    let Some(server) = step.config.server_of(call) else { return true };
    let Some(conn) = step.after.server(server) else { return false };
    if step.after.phase == Phase::Ended {
        return true;
    }
    let tool = step.config.call(call).and_then(|info| info.tool);
    let list = step.config.servers.get(server.index()).and_then(|s| s.lists.get(usize::from(conn.list)));
    conn.phase == ConnPhase::Ready && list.is_some_and(|list| tool.is_some_and(|tool| list.contains(&tool)))
}

/// The call of a slot at the moment of sending: as it stands after the step, or, where the step has ended it already,
/// as it stood before.
fn call_of(step: &Observation<'_>, slot: u8) -> Option<CallRef> {
    let running = |slot: &&crate::agent_loop::Slot| slot.progress == Progress::Running;
    let after = step.after.slot(slot).filter(running);
    after.or_else(|| step.before.slot(slot)).map(|slot| slot.call)
}

/// I-TOTAL and I-REFUSAL: a slot that ends in this step returns its one result in this step.
fn totality(
    monitor: &Monitor,
    step: &Observation<'_>,
    returned_before: u8,
    turn_ended: bool,
    broken: &mut InvariantSet,
) {
    let deferred = |slot: u8| {
        step.outputs.iter().any(|output| {
            matches!(output, Output::Decided { slot: s, decision: Decision::Defer, .. } if *s == slot)
        })
    };
    let begins = matches!(step.input, Input::ModelReplied(_));
    for slot in 0..u8::try_from(turn_size(step)).unwrap_or(u8::MAX) {
        let ended_before = !begins && step.before.slot(slot).is_some_and(|s| s.progress == Progress::Ended);
        let ended_after = turn_ended || step.after.slot(slot).is_some_and(|s| s.progress == Progress::Ended);
        if ended_before || !ended_after {
            continue;
        }
        let newly = monitor.returned & !returned_before & bit(slot) != 0;
        if !newly && !deferred(slot) {
            broken.insert(Invariant::Total);
            if refused(step, slot) {
                broken.insert(Invariant::Refusal);
            }
        }
    }
}

/// Whether this step decides against the call of a slot.
fn refused(step: &Observation<'_>, slot: u8) -> bool {
    step.outputs.iter().any(
        |output| matches!(output, Output::Decided { slot: s, decision: Decision::Deny, .. } if *s == slot),
    )
}

/// Clears what no invariant reads any more of slots whose call has begun or ended.
fn forget_ended(monitor: &mut Monitor, step: &Observation<'_>) {
    for (slot, state) in (0u8..).zip(step.after.calls()) {
        if matches!(state.progress, Progress::Running | Progress::After | Progress::Ended) {
            if let Some(fired) = monitor.fired.get_mut(usize::from(slot)) {
                *fired = 0;
            }
            let keep = !bit(slot);
            monitor.blocked &= keep;
            monitor.fail_blocked &= keep;
            monitor.hook_allowed &= keep;
            monitor.permitted &= keep;
            monitor.user_allowed &= keep;
        }
    }
}
