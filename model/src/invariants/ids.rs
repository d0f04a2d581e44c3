//! I-ID: proposition 3.3 on the connections of a run.

use super::{Invariant, InvariantSet, Observation};
use crate::agent_loop::{Input, McpIn, Output, Progress, ServerRef, State};

pub(super) fn observe(enabled: InvariantSet, step: &Observation<'_>, broken: &mut InvariantSet) {
    if !enabled.contains(Invariant::Id) || step.config.servers.is_empty() {
        return;
    }
    if !distinct(step) || answered_unasked(step) {
        broken.insert(Invariant::Id);
    }
}

/// The ids of a server's open requests.
fn open<'a>(
    step: &'a Observation<'_>,
    state: &'a State,
    server: ServerRef,
) -> impl Iterator<Item = u16> + 'a {
    let own = state.server(server).and_then(|conn| conn.open);
    let calls =
        state.calls().iter().filter(move |slot| step.config.runs_on(slot, server)).map(|slot| slot.request);
    own.into_iter().chain(calls)
}

/// (1) No two open requests of one connection carry the same id.
fn distinct(step: &Observation<'_>) -> bool {
    let calls = step.after.calls();
    calls.iter().enumerate().filter(|(_, slot)| slot.progress == Progress::Running).all(|(position, slot)| {
        let Some(server) = step.config.server_of(slot.call) else { return true };
        let own = step.after.server(server).and_then(|conn| conn.open);
        let later = calls.iter().skip(position + 1).filter(|other| step.config.runs_on(other, server));
        own != Some(slot.request) && later.into_iter().all(|other| other.request != slot.request)
    })
}

/// (2) A response that matches no open request has no effect.
fn answered_unasked(step: &Observation<'_>) -> bool {
    let Input::Mcp { server, message: McpIn::Response { id, .. } } = step.input else { return false };
    if id.is_some_and(|id| open(step, step.before, server).any(|open| open == id)) {
        return false;
    }
    step.before != step.after
        || step.outputs.iter().any(|output| !matches!(output, Output::ServerChanged { .. }))
}
