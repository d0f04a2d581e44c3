//! One call on its way through the profile's pipeline, and the calls of a turn beside each other.

use super::config::{CallInfo, Config, HookRef, RuleAnswer};
use super::connection::{self, emit};
use super::gate_decision::rule;
use super::io::Signal;
use super::io::{DecidedBy, McpOut, Output, Outputs, Rejected, Site};
use super::state::{CallEnd, ConnPhase, Progress, Slot, State};
use crate::hooks::HookDecision as Decision;
use crate::mutant::Mutant;
use crate::profile::agent_loop::{Concurrency, HookCombination, ServerDeath, Stage};

/// Starts every queued call that the profile lets run beside its neighbours now.
pub(super) fn admit(config: &Config, state: &mut State, out: &mut Outputs) -> Result<(), Rejected> {
    for index in 0..state.count {
        let Some(slot) = state.slot(index).copied() else { return Err(Rejected::Unknown("slot")) };
        match slot.progress {
            Progress::Ended => continue,
            Progress::Queued if may_start(config, state, index) => start(config, state, index, out)?,
            _ => {}
        }
    }
    Ok(())
}

fn may_start(config: &Config, state: &State, index: u8) -> bool {
    let before = state.calls().get(..usize::from(index)).unwrap_or_default();
    let mut open = before.iter().filter(|slot| slot.progress != Progress::Ended);
    match config.profile.agent_loop.concurrency.value {
        Concurrency::Sequential => open.next().is_none(),
        Concurrency::AllTogether => true,
        // A partition such as [R R][W][R]: a read-only call waits for the last call before it that is not read-only.
        Concurrency::ReadOnlyTogether => {
            let read_only = |slot: &Slot| config.call(slot.call).is_some_and(|info| info.read_only);
            state.slot(index).is_some_and(read_only) && open.all(read_only) || {
                let mut open = before.iter().filter(|slot| slot.progress != Progress::Ended);
                open.next().is_none()
            }
        }
    }
}

fn start(config: &Config, state: &mut State, index: u8, out: &mut Outputs) -> Result<(), Rejected> {
    enter_stage(config, state, index, 0, out)
}

/// Enters the `stage`-th stage of the pipeline; past the last one, the call is executed.
fn enter_stage(
    config: &Config,
    state: &mut State,
    index: u8,
    stage: u8,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let slot = slot_mut(state, index)?;
    slot.progress = Progress::Stage(stage);
    slot.pending = 0;
    let info = info(config, slot)?;
    let stages = &config.profile.agent_loop.pipeline.value;
    match stages.get(usize::from(stage)).copied().flatten() {
        None => {
            if !stages.contains(&Some(Stage::Permission)) {
                emit(out, Output::Decided { slot: index, decision: Decision::Allow, by: DecidedBy::NoGate })?;
            }
            execute(config, state, index, out)
        }
        Some(Stage::FindTool) => {
            if info.tool.is_some() && is_offered(config, state, index) {
                enter_stage(config, state, index, stage + 1, out)
            } else {
                end(config, state, index, CallEnd::UnknownTool, out)
            }
        }
        Some(Stage::ValidateInput) => {
            if info.input_fits {
                enter_stage(config, state, index, stage + 1, out)
            } else {
                end(config, state, index, CallEnd::InvalidInput, out)
            }
        }
        Some(Stage::PreToolUse) => {
            let skipped = config.is_mutant(Mutant::SkipHooks)
                && info.read_only
                && config.server_of(slot.call).is_none();
            if info.before.is_empty() || skipped {
                return enter_stage(config, state, index, stage + 1, out);
            }
            slot.decision = Decision::None;
            slot.rewrite = None;
            match config.profile.agent_loop.hook_combination.value {
                HookCombination::ParallelLattice => {
                    slot.pending = mask(info.before.len());
                    for hook in &info.before {
                        emit(out, Output::RunHook { site: Site::Call(index), hook: *hook })?;
                    }
                }
                HookCombination::FirstAnswerWins => {
                    slot.pending = 1;
                    run_nth(&info.before, 0, index, out)?;
                }
            }
            if config.is_mutant(Mutant::FireTwice) {
                run_nth(&info.before, 0, index, out)?;
            }
            Ok(())
        }
        Some(Stage::Permission) => permission(config, state, index, out),
    }
}

/// A PreToolUse hook of a call finished.
pub(super) fn hook_finished(
    config: &Config,
    state: &mut State,
    index: u8,
    hook: HookRef,
    signal: Signal,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let slot = slot_mut(state, index)?;
    let info = info(config, slot)?;
    if slot.progress == Progress::After {
        let list = if slot.end == CallEnd::Result { &info.after } else { &info.after_failure };
        finish_pending(slot, list, hook)?;
        let done = slot.pending == 0;
        let end = slot.end;
        state.halt |= signal.halt && config.profile.agent_loop.prevent_continuation.value;
        return if done { self::end(config, state, index, end, out) } else { Ok(()) };
    }
    let Progress::Stage(stage) = slot.progress else { return Err(Rejected::HookNotRunning) };
    let position = finish_pending(slot, &info.before, hook)?;
    let decision = effective(config, hook, signal);
    slot.decision = slot.decision.max(decision);
    if signal.rewrite.is_some() && decision < Decision::Defer {
        slot.rewrite = signal.rewrite;
    }
    let mut done = slot.pending == 0;
    if config.profile.agent_loop.hook_combination.value == HookCombination::FirstAnswerWins
        && decision == Decision::None
        && position + 1 < info.before.len()
    {
        slot.pending = bit(position + 1);
        done = false;
        run_nth(&info.before, position + 1, index, out)?;
    }
    state.halt |= signal.halt && config.profile.agent_loop.prevent_continuation.value;
    if done { hooks_done(config, state, index, stage, out) } else { Ok(()) }
}

/// All PreToolUse hooks of a call have finished.
fn hooks_done(
    config: &Config,
    state: &mut State,
    index: u8,
    stage: u8,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let parameters = &config.profile.agent_loop;
    let slot = slot_mut(state, index)?;
    if slot.decision == Decision::Deny && !config.is_mutant(Mutant::IgnoreBlock) {
        emit(out, Output::Decided { slot: index, decision: Decision::Deny, by: DecidedBy::Hook })?;
        return end(config, state, index, CallEnd::RefusedByHook, out);
    }
    if slot.decision == Decision::Deny {
        slot.decision = Decision::None;
    }
    // Without a permission stage a hook's ask or defer can only be read as "not now" (003: non-None blocks).
    if !parameters.pipeline.value.contains(&Some(Stage::Permission)) && slot.decision > Decision::Allow {
        emit(out, Output::Decided { slot: index, decision: Decision::Deny, by: DecidedBy::Hook })?;
        return end(config, state, index, CallEnd::RefusedByHook, out);
    }
    if let Some(rewrite) = slot.rewrite.take() {
        slot.call = rewrite;
        // What a hook rewrote is looked at again (gate-and-hooks section 2, step 7).
        if !config.call(rewrite).ok_or(Rejected::Unknown("call"))?.input_fits {
            return end(config, state, index, CallEnd::InvalidInput, out);
        }
    }
    enter_stage(config, state, index, stage + 1, out)
}

/// The permission stage.
fn permission(config: &Config, state: &mut State, index: u8, out: &mut Outputs) -> Result<(), Rejected> {
    if config.is_mutant(Mutant::SkipPermission) {
        return execute(config, state, index, out);
    }
    let slot = slot_mut(state, index)?;
    let info = info(config, slot)?;
    let mut answer = info.rule;
    if config.is_mutant(Mutant::AllowLiftsRules) && slot.decision == Decision::Allow {
        answer = RuleAnswer::Allow;
    }
    let ruling = rule(&config.profile.agent_loop, slot.decision, answer);
    emit(out, Output::Decided { slot: index, decision: ruling.decision, by: ruling.by })?;
    match ruling.decision {
        Decision::Allow | Decision::None => execute(config, state, index, out),
        Decision::Deny if ruling.by == DecidedBy::Hook => {
            end(config, state, index, CallEnd::RefusedByHook, out)
        }
        Decision::Deny => end(config, state, index, CallEnd::RefusedByRule, out),
        Decision::Defer => end(config, state, index, CallEnd::Deferred, out),
        Decision::Ask if config.answerable => {
            slot.progress = Progress::Asking;
            slot.decision = Decision::None;
            emit(out, Output::AskUser { slot: index })
        }
        Decision::Ask => {
            emit(out, Output::Decided { slot: index, decision: Decision::Deny, by: DecidedBy::Nobody })?;
            end(config, state, index, CallEnd::RefusedUnanswered, out)
        }
    }
}

/// A person answered.
pub(super) fn permission_answered(
    config: &Config,
    state: &mut State,
    index: u8,
    allow: bool,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    if slot_mut(state, index)?.progress != Progress::Asking {
        return Err(Rejected::Unexpected);
    }
    let decision = if allow { Decision::Allow } else { Decision::Deny };
    emit(out, Output::Decided { slot: index, decision, by: DecidedBy::User })?;
    if allow || config.is_mutant(Mutant::IgnoreRefusal) {
        execute(config, state, index, out)
    } else {
        end(config, state, index, CallEnd::RefusedByUser, out)
    }
}

/// Whether the call's tool is among those offered now: built-in tools always, a server's tools while it is connected
/// (M4) and its list has them (M5).
fn is_offered(config: &Config, state: &State, index: u8) -> bool {
    let Some(slot) = state.slot(index) else { return false };
    let Some(server) = config.server_of(slot.call) else { return true };
    if config.is_mutant(Mutant::CallGoneTool) {
        return true;
    }
    let Some(conn) = state.server(server) else { return false };
    let listed = || {
        let tool = config.call(slot.call).and_then(|info| info.tool);
        let list = config.servers.get(server.index()).and_then(|s| s.lists.get(usize::from(conn.list)));
        list.is_some_and(|list| tool.is_some_and(|tool| list.contains(&tool)))
    };
    matches!(conn.phase, ConnPhase::Ready | ConnPhase::Lost) && listed()
}

/// Executes a call that was let through.
pub(super) fn execute(
    config: &Config,
    state: &mut State,
    index: u8,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    // The tool may have gone while hooks ran and people thought.
    if !is_offered(config, state, index) || info(config, slot_mut(state, index)?)?.tool.is_none() {
        return end(config, state, index, CallEnd::UnknownTool, out);
    }
    let slot = slot_mut(state, index)?;
    let call = slot.call;
    slot.pending = 0;
    slot.decision = Decision::None;
    slot.rewrite = None;
    let Some(server) = config.server_of(call) else {
        slot.progress = Progress::Running;
        return emit(out, Output::RunTool { slot: index, call });
    };
    let conn = state.servers.get_mut(server.index()).ok_or(Rejected::Unknown("server"))?;
    if conn.phase == ConnPhase::Lost {
        connection::connect(conn, server, config, out)?;
        slot_mut(state, index)?.progress = Progress::Reconnecting;
        return Ok(());
    }
    if !connection::is_settled(conn.phase) {
        // Another call of this turn has started the server anew already.
        slot_mut(state, index)?.progress = Progress::Reconnecting;
        return Ok(());
    }
    let id = connection::next_id(conn, config)?;
    let slot = slot_mut(state, index)?;
    slot.progress = Progress::Running;
    slot.request = id;
    emit(out, Output::SendMcp { server, message: McpOut::Call { id, slot: index } })
}

/// The execution of a call ended: its after-event hooks run, then the result is returned.
pub(super) fn executed(
    config: &Config,
    state: &mut State,
    index: u8,
    end: CallEnd,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let slot = slot_mut(state, index)?;
    let info = info(config, slot)?;
    let hooks = if end == CallEnd::Result { &info.after } else { &info.after_failure };
    if hooks.is_empty() {
        return self::end(config, state, index, end, out);
    }
    slot.progress = Progress::After;
    slot.end = end;
    slot.request = 0;
    slot.pending = mask(hooks.len());
    for hook in hooks {
        emit(out, Output::RunHook { site: Site::Call(index), hook: *hook })?;
    }
    Ok(())
}

/// The call is over: its one result is returned (3.7), and what nothing reads any more is cleared.
pub(super) fn end(
    config: &Config,
    state: &mut State,
    index: u8,
    end: CallEnd,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let slot = slot_mut(state, index)?;
    *slot = Slot { progress: Progress::Ended, ..Slot::default() };
    if end == CallEnd::Deferred {
        state.deferred = true;
        return Ok(());
    }
    let dropped = match end {
        CallEnd::RefusedByRule | CallEnd::RefusedUnanswered => config.is_mutant(Mutant::DropRefusal),
        CallEnd::NoAnswer | CallEnd::TimedOut => config.is_mutant(Mutant::DropNoAnswer),
        _ => false,
    } || matches!(config.mutant, Some(Mutant::DropEnds(mask)) if mask & end_class(end) != 0);
    if !dropped {
        emit(out, Output::Returned { slot: index, end })?;
    }
    if end == CallEnd::ProtocolError && config.is_mutant(Mutant::ReturnTwice) {
        emit(out, Output::Returned { slot: index, end })?;
    }
    Ok(())
}

/// The bit of an end's class in proposition 3.7; none for ends that are no ends of an execution.
fn end_class(end: CallEnd) -> u8 {
    match end {
        CallEnd::Result => 1,
        CallEnd::ErrorResult => 2,
        CallEnd::ProtocolError => 4,
        CallEnd::NoAnswer | CallEnd::TimedOut => 8,
        _ => 0,
    }
}

/// Calls that wait for this server go on, now that connecting is over.
pub(super) fn server_settled(
    config: &Config,
    state: &mut State,
    server: super::config::ServerRef,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    for index in 0..state.count {
        let waits = state.slot(index).is_some_and(|slot| {
            slot.progress == Progress::Reconnecting && config.server_of(slot.call) == Some(server)
        });
        if waits {
            if state.server(server).is_some_and(|conn| conn.phase == ConnPhase::Ready) {
                execute(config, state, index, out)?;
            } else {
                executed(config, state, index, CallEnd::NoAnswer, out)?;
            }
        }
    }
    Ok(())
}

/// The server's connection is gone: each of its running calls ends without an answer.
pub(super) fn server_lost(
    config: &Config,
    state: &mut State,
    server: super::config::ServerRef,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    for index in 0..state.count {
        if state.slot(index).is_some_and(|slot| config.runs_on(slot, server)) {
            executed(config, state, index, CallEnd::NoAnswer, out)?;
        }
    }
    Ok(())
}

/// Whether a dead server is started anew by the next call to it.
pub fn restarts(config: &Config) -> bool {
    config.profile.agent_loop.server_death.value == ServerDeath::RestartOnCall
}

/// What a hook's end comes to: its decision, or a deny where it failed and `onFailure` is `block` (4.2).
pub(super) fn effective(config: &Config, hook: HookRef, signal: Signal) -> Decision {
    let blocks = config.hooks.get(hook.index()).is_some_and(|hook| hook.block_on_failure);
    if signal.failed && blocks && !config.is_mutant(Mutant::IgnoreFailDirection) {
        Decision::Deny
    } else {
        signal.decision
    }
}

/// Takes the bit of a hook out of the pending ones; its position in the list.
fn finish_pending(slot: &mut Slot, list: &[HookRef], hook: HookRef) -> Result<usize, Rejected> {
    let position = list
        .iter()
        .enumerate()
        .position(|(position, candidate)| *candidate == hook && slot.pending & bit(position) != 0)
        .ok_or(Rejected::HookNotRunning)?;
    slot.pending &= !bit(position);
    Ok(position)
}

fn run_nth(list: &[HookRef], n: usize, index: u8, out: &mut Outputs) -> Result<(), Rejected> {
    let hook = list.get(n).copied().ok_or(Rejected::Unknown("hook"))?;
    emit(out, Output::RunHook { site: Site::Call(index), hook })
}

/// One bit for each of `count` hooks or slots.
pub fn mask(count: usize) -> u8 {
    (0..count).fold(0, |mask, position| mask | bit(position))
}

/// The bit of the hook at a position.
pub(super) fn bit(position: usize) -> u8 {
    u32::try_from(position).ok().and_then(|shift| 1u8.checked_shl(shift)).unwrap_or(0)
}

/// A slot in use, to be changed.
pub(super) fn slot_mut(state: &mut State, index: u8) -> Result<&mut Slot, Rejected> {
    let count = usize::from(state.count);
    state
        .slots
        .get_mut(..count)
        .and_then(|slots| slots.get_mut(usize::from(index)))
        .ok_or(Rejected::Unknown("slot"))
}

fn info<'a>(config: &'a Config, slot: &Slot) -> Result<&'a CallInfo, Rejected> {
    config.call(slot.call).ok_or(Rejected::Unknown("call"))
}
