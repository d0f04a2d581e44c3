//! One application of one input to one state.

use super::call;
use super::config::{Config, HookList, HookRef, LoopEvent, ReplyRef, ServerRef};
use super::connection::{self, emit};
use super::io::Signal;
use super::io::{Input, McpBody, McpIn, McpOut, Output, Outputs, Rejected, Site, ToolEnd};
use super::state::{CallEnd, ConnPhase, EndReason, Phase, Progress, Slot, State};
use crate::hooks::HookDecision as Decision;
use crate::mutant::Mutant;
use crate::profile::agent_loop::{StopRule, TurnLimitRule};

/// Applies one input. Total: gives the outputs, or a typed reason and an unchanged state.
///
/// # Errors
/// [`Rejected`] when nobody asked for this input, when it names what does not exist, or when a capacity is exhausted.
pub fn step(config: &Config, state: &mut State, input: Input) -> Result<Outputs, Rejected> {
    let mut next = *state;
    let mut out = Outputs::new();
    apply(config, &mut next, input, &mut out)?;
    *state = next;
    Ok(out)
}

/// As [`step`], without copies: the outputs are added to `out`. For callers that keep the state of before themselves.
///
/// # Errors
/// As [`step`]; but `state` and `out` are then whatever the rejected input left of them, to be thrown away.
pub fn step_in_place(
    config: &Config,
    state: &mut State,
    input: Input,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    apply(config, state, input, out)
}

fn apply(config: &Config, state: &mut State, input: Input, out: &mut Outputs) -> Result<(), Rejected> {
    if state.phase == Phase::Ended {
        return Err(Rejected::Ended);
    }
    match input {
        Input::Start if state.phase == Phase::Start => {
            state.phase = Phase::Connecting;
            for index in 0..config.servers.len() {
                let server = ServerRef(u8::try_from(index).map_err(|_| Rejected::Unknown("server"))?);
                let conn = state.servers.get_mut(index).ok_or(Rejected::Unknown("server"))?;
                connection::connect(conn, server, config, out)?;
            }
            settle(config, state)
        }
        Input::Prompt if state.phase == Phase::Idle => {
            state.phase = Phase::PromptHooks;
            fire(config, state, LoopEvent::UserPromptSubmit, out)?;
            if state.pending == 0 { call_model(config, state, out) } else { Ok(()) }
        }
        Input::ModelReplied(reply) if state.phase == Phase::Model => replied(config, state, reply, out),
        Input::ModelFailed if state.phase == Phase::Model => {
            finish(config, state, EndReason::ModelFailed, out)
        }
        Input::HookFinished { site: Site::Run, hook, signal } => {
            run_hook_finished(config, state, hook, signal, out)
        }
        Input::HookFinished { site: Site::Call(slot), hook, signal } if state.phase == Phase::Calls => {
            call::hook_finished(config, state, slot, hook, signal, out)?;
            go_on(config, state, out)
        }
        Input::PermissionAnswered { slot, allow } if state.phase == Phase::Calls => {
            call::permission_answered(config, state, slot, allow, out)?;
            go_on(config, state, out)
        }
        Input::ToolFinished { slot, end } if state.phase == Phase::Calls => {
            running(config, state, slot, false)?;
            let end = match end {
                ToolEnd::Result => CallEnd::Result,
                ToolEnd::Error => CallEnd::ErrorResult,
            };
            call::executed(config, state, slot, end, out)?;
            go_on(config, state, out)
        }
        Input::CallDeadline { slot } if state.phase == Phase::Calls => {
            stop_waiting(config, state, slot, out)?;
            call::executed(config, state, slot, CallEnd::TimedOut, out)?;
            go_on(config, state, out)
        }
        Input::Mcp { server, message } if state.phase > Phase::Start => {
            mcp(config, state, server, message, out)?;
            go_on(config, state, out)
        }
        Input::McpClosed { server } if state.phase > Phase::Start => {
            let restart = call::restarts(config);
            let conn = conn_mut(state, server)?;
            if matches!(conn.phase, ConnPhase::Off | ConnPhase::Failed | ConnPhase::Lost) {
                return Err(Rejected::Unexpected);
            }
            connection::lost(conn, server, restart, out)?;
            call::server_lost(config, state, server, out)?;
            call::server_settled(config, state, server, out)?;
            settle(config, state)?;
            go_on(config, state, out)
        }
        Input::ServerDeadline { server } if state.phase > Phase::Start => {
            let conn = conn_mut(state, server)?;
            if connection::deadline(conn, server, config, out)? {
                call::server_settled(config, state, server, out)?;
            }
            settle(config, state)?;
            go_on(config, state, out)
        }
        Input::Interrupt if state.phase > Phase::Idle => interrupt(config, state, out),
        _ => Err(Rejected::Unexpected),
    }
}

/// The hooks of a run's event that fire in this state: none where the profile's Stop rule silences them.
pub fn firing_hooks<'a>(config: &'a Config, state: &State, event: LoopEvent) -> &'a [HookRef] {
    match event {
        LoopEvent::UserPromptSubmit => &config.prompt_hooks,
        LoopEvent::Stop
            if config.profile.agent_loop.stop.value == StopRule::FlagSilences && state.stop_blocks > 0 =>
        {
            &[]
        }
        LoopEvent::Stop => &config.stop_hooks,
        _ => &[],
    }
}

fn fire(config: &Config, state: &mut State, event: LoopEvent, out: &mut Outputs) -> Result<(), Rejected> {
    let hooks = firing_hooks(config, state, event);
    state.pending = call::mask(hooks.len());
    state.decision = Decision::None;
    for hook in hooks {
        emit(out, Output::RunHook { site: Site::Run, hook: *hook })?;
    }
    Ok(())
}

fn run_hook_finished(
    config: &Config,
    state: &mut State,
    hook: HookRef,
    signal: Signal,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let list: &HookList = match state.phase {
        Phase::PromptHooks => &config.prompt_hooks,
        Phase::StopHooks => &config.stop_hooks,
        _ => return Err(Rejected::Unexpected),
    };
    let position = list
        .iter()
        .enumerate()
        .position(|(position, candidate)| *candidate == hook && state.pending & call::bit(position) != 0)
        .ok_or(Rejected::HookNotRunning)?;
    state.pending &= !call::bit(position);
    // `onFailure: block` has no effect on Stop (gate-and-hooks section 4).
    let decision = match state.phase {
        Phase::StopHooks => signal.decision,
        _ => call::effective(config, hook, signal),
    };
    state.decision = state.decision.max(decision);
    state.halt |= signal.halt && config.profile.agent_loop.prevent_continuation.value;
    if state.pending > 0 {
        return Ok(());
    }
    let blocked = state.decision == Decision::Deny;
    state.decision = Decision::None;
    if state.phase == Phase::PromptHooks {
        if blocked && config.profile.agent_loop.other_hooks_have_effect.value {
            return finish(config, state, EndReason::PromptBlocked, out);
        }
        if state.halt {
            return finish(config, state, EndReason::HookStopped, out);
        }
        return call_model(config, state, out);
    }
    if state.halt {
        return finish(config, state, EndReason::HookStopped, out);
    }
    if !blocked {
        return finish(config, state, EndReason::Completed, out);
    }
    stop_blocked(config, state, out)
}

/// A Stop hook objects: the profile's rule says whether the loop goes on.
fn stop_blocked(config: &Config, state: &mut State, out: &mut Outputs) -> Result<(), Rejected> {
    match config.profile.agent_loop.stop.value {
        StopRule::NoFlagNoCap => {}
        StopRule::FlagSilences => state.stop_blocks = 1,
        StopRule::FlagAndCap { cap, .. } => {
            if state.stop_blocks >= cap && !config.is_mutant(Mutant::IgnoreStopCap) {
                return finish(config, state, EndReason::StopCapReached, out);
            }
            state.stop_blocks = state.stop_blocks.saturating_add(1).min(cap);
        }
    }
    call_model(config, state, out)
}

/// Calls the model, unless the turn limit forbids it.
fn call_model(config: &Config, state: &mut State, out: &mut Outputs) -> Result<(), Rejected> {
    if let (TurnLimitRule::ModelCalls, Some(limit)) = turn_limit(config)
        && limit > 0
    {
        let late = u8::from(config.is_mutant(Mutant::TurnLimitLate));
        if state.turns >= limit.saturating_add(late) {
            return finish(config, state, EndReason::MaxTurns, out);
        }
        state.turns = state.turns.saturating_add(1);
    }
    state.phase = Phase::Model;
    emit(out, Output::CallModel)
}

fn turn_limit(config: &Config) -> (TurnLimitRule, Option<u8>) {
    (config.profile.agent_loop.turn_limit.value, config.limits.max_turns)
}

/// The model replied.
fn replied(config: &Config, state: &mut State, reply: ReplyRef, out: &mut Outputs) -> Result<(), Rejected> {
    let reply = config.replies.get(reply.index()).ok_or(Rejected::Unknown("reply"))?;
    if let Some(limit) = config.limits.max_cost {
        state.spent = state.spent.saturating_add(reply.cost).min(limit);
        if state.spent >= limit
            && (config.profile.agent_loop.budget_before_tools.value || reply.calls.is_empty())
        {
            return finish(config, state, EndReason::MaxBudget, out);
        }
    }
    if reply.calls.is_empty() {
        state.phase = Phase::StopHooks;
        fire(config, state, LoopEvent::Stop, out)?;
        return if state.pending == 0 { finish(config, state, EndReason::Completed, out) } else { Ok(()) };
    }
    if let (TurnLimitRule::ToolTurns, Some(limit)) = turn_limit(config) {
        let late = u8::from(config.is_mutant(Mutant::TurnLimitLate));
        if state.turns >= limit.saturating_add(late) {
            return finish(config, state, EndReason::MaxTurns, out);
        }
        state.turns = state.turns.saturating_add(1);
    }
    if let StopRule::FlagAndCap { tool_call_resets: true, .. } = config.profile.agent_loop.stop.value {
        state.stop_blocks = 0;
    }
    state.phase = Phase::Calls;
    state.count = 0;
    for (slot, call) in state.slots.iter_mut().zip(&reply.calls) {
        if config.call(*call).is_none() {
            return Err(Rejected::Unknown("call"));
        }
        *slot = Slot { call: *call, progress: Progress::Queued, ..Slot::default() };
        state.count += 1;
    }
    go_on(config, state, out)
}

/// After every change of a call: start those that may start, and end the turn when all have ended.
fn go_on(config: &Config, state: &mut State, out: &mut Outputs) -> Result<(), Rejected> {
    if state.phase != Phase::Calls {
        return Ok(());
    }
    call::admit(config, state, out)?;
    if state.calls().iter().any(|slot| slot.progress != Progress::Ended) {
        return Ok(());
    }
    emit(out, Output::TurnEnded)?;
    clear_calls(state);
    let (halt, deferred) = (state.halt, state.deferred);
    (state.halt, state.deferred) = (false, false);
    if deferred {
        return finish(config, state, EndReason::Deferred, out);
    }
    if halt {
        return finish(config, state, EndReason::HookStopped, out);
    }
    if config.limits.max_cost.is_some_and(|limit| state.spent >= limit) {
        return finish(config, state, EndReason::MaxBudget, out);
    }
    call_model(config, state, out)
}

fn clear_calls(state: &mut State) {
    for slot in state.slots.iter_mut().take(usize::from(state.count)) {
        *slot = Slot::default();
    }
    state.count = 0;
}

/// Takes a message from a server.
fn mcp(
    config: &Config,
    state: &mut State,
    server: ServerRef,
    message: McpIn,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let (id, body) = match message {
        McpIn::Other => return Ok(()),
        McpIn::ListChanged => return connection::list_changed(conn_mut(state, server)?, server, config, out),
        McpIn::Response { id, body } => (id, body),
    };
    let conn = conn_mut(state, server)?;
    if id.is_some() && conn.open == id {
        if connection::answered(conn, server, config, body, out)? {
            call::server_settled(config, state, server, out)?;
        }
        return settle(config, state);
    }
    let asked = |slot: &Slot| config.runs_on(slot, server);
    let mut position = state.calls().iter().position(|slot| asked(slot) && id == Some(slot.request));
    if position.is_none() && config.is_mutant(Mutant::AcceptUnaskedAnswer) {
        position = state.calls().iter().position(asked);
    }
    // An answer to no open request is dropped (I-ID): late, duplicate, or of an id never used.
    let Some(position) = position.and_then(|position| u8::try_from(position).ok()) else { return Ok(()) };
    let end = match body {
        McpBody::Called { is_error: false } => CallEnd::Result,
        McpBody::Called { is_error: true } => CallEnd::ErrorResult,
        _ => CallEnd::ProtocolError,
    };
    call::executed(config, state, position, end, out)
}

/// Leaves the connecting phase once every server is settled.
fn settle(config: &Config, state: &mut State) -> Result<(), Rejected> {
    let servers = state.servers.iter().take(config.servers.len());
    if state.phase == Phase::Connecting && servers.into_iter().all(|conn| connection::is_settled(conn.phase))
    {
        state.phase = Phase::Idle;
    }
    Ok(())
}

/// A running call, built-in or of a server as asked for.
fn running(config: &Config, state: &State, index: u8, mcp: bool) -> Result<Slot, Rejected> {
    let slot = state.slot(index).copied().ok_or(Rejected::Unknown("slot"))?;
    if slot.progress == Progress::Running && config.server_of(slot.call).is_some() == mcp {
        Ok(slot)
    } else {
        Err(Rejected::Unexpected)
    }
}

/// Nobody waits for this running call any more: its tool is stopped, its request cancelled.
fn stop_waiting(config: &Config, state: &State, index: u8, out: &mut Outputs) -> Result<(), Rejected> {
    if running(config, state, index, false).is_ok() {
        return emit(out, Output::CancelTool { slot: index });
    }
    let slot = running(config, state, index, true)?;
    let server = config.server_of(slot.call).ok_or(Rejected::Unknown("server"))?;
    debug_assert!(
        config.is_mutant(Mutant::ReuseRequestId) || connection::is_open(state, config, server, slot.request)
    );
    emit(out, Output::SendMcp { server, message: McpOut::Cancelled { id: slot.request } })
}

/// The user interrupts: every call that has not ended gets its result all the same, then the run ends.
fn interrupt(config: &Config, state: &mut State, out: &mut Outputs) -> Result<(), Rejected> {
    for index in 0..state.count {
        let progress = state.slot(index).map(|slot| slot.progress);
        if progress == Some(Progress::Running) {
            stop_waiting(config, state, index, out)?;
        }
        if progress != Some(Progress::Ended) {
            call::end(config, state, index, CallEnd::Interrupted, out)?;
        }
    }
    if state.phase == Phase::Calls {
        emit(out, Output::TurnEnded)?;
    }
    finish(config, state, EndReason::Interrupted, out)
}

fn finish(config: &Config, state: &mut State, reason: EndReason, out: &mut Outputs) -> Result<(), Rejected> {
    *state = State { phase: Phase::Ended, end: Some(reason), ..State::default() };
    emit(out, Output::Finish(reason))?;
    if config.is_mutant(Mutant::CallAfterEnd) {
        emit(out, Output::CallModel)?;
    }
    Ok(())
}

fn conn_mut(state: &mut State, server: ServerRef) -> Result<&mut super::state::Conn, Rejected> {
    state.servers.get_mut(server.index()).ok_or(Rejected::Unknown("server"))
}
