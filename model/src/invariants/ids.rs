//! I-ID: proposition 3.3 on the connections of a run.

use super::{Invariant, InvariantSet, Observation};
use crate::agent_loop::{Input, McpIn, Output, ServerRef, State};

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
    (0u8..).zip(&step.config.servers).all(|(index, _)| {
        let server = ServerRef(index);
        open(step, step.after, server)
            .enumerate()
            .all(|(n, id)| open(step, step.after, server).skip(n + 1).all(|other| other != id))
    })
}

/// (2) A response that matches no open request has no effect.
fn answered_unasked(step: &Observation<'_>) -> bool {
    let Input::Mcp { server, message: McpIn::Response { id, .. } } = step.input else { return false };
    let asked = id.is_some_and(|id| open(step, step.before, server).any(|open| open == id));
    let effect = step.before != step.after
        || step.outputs.iter().any(|output| !matches!(output, Output::ServerChanged { .. }));
    !asked && effect
}
