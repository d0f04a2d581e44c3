//! The MCP client's control: one connection from its start to its tools, and the ids of its requests.
//!
//! The dual-era client on one process (mcp.md section 2): `server/discover` first; a DiscoverResult with a common
//! version stays modern; -32022 with a common version is tried once more under it (proposition 3.4.4: at most two
//! requests); any other error, or silence, falls back to `initialize`.

use super::config::{Config, ServerRef};
use super::io::{McpBody, McpOut, Output, Outputs, Rejected};
use super::state::{Conn, ConnPhase, State};
use crate::mutant::Mutant;

/// Opens a connection.
pub(super) fn connect(
    conn: &mut Conn,
    server: ServerRef,
    config: &Config,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let list = conn.list;
    *conn = Conn { list, ..Conn::default() };
    emit(out, Output::Connect { server })?;
    let id = open(conn, config)?;
    enter(conn, server, ConnPhase::Discovering, out)?;
    send(server, McpOut::Discover { id, agreed: false }, out)
}

/// Takes a response to the connection's own open request. `true` when the handshake is over, well or not.
pub(super) fn answered(
    conn: &mut Conn,
    server: ServerRef,
    config: &Config,
    body: McpBody,
    out: &mut Outputs,
) -> Result<bool, Rejected> {
    conn.open = None;
    match (conn.phase, body) {
        (ConnPhase::Discovering | ConnPhase::Agreeing, McpBody::Discovered { agreed: true }) => {
            conn.modern = true;
            list_tools(conn, server, config, out)?;
        }
        (ConnPhase::Discovering, McpBody::UnsupportedVersion { common: true }) => {
            let id = open(conn, config)?;
            enter(conn, server, ConnPhase::Agreeing, out)?;
            send(server, McpOut::Discover { id, agreed: true }, out)?;
        }
        (ConnPhase::Discovering, _) => {
            let id = open(conn, config)?;
            enter(conn, server, ConnPhase::Initializing, out)?;
            send(server, McpOut::Initialize { id }, out)?;
        }
        (ConnPhase::Initializing, McpBody::Initialized { accepted: true }) => {
            send(server, McpOut::Initialized, out)?;
            list_tools(conn, server, config, out)?;
        }
        (ConnPhase::Listing | ConnPhase::Ready, McpBody::Tools { list }) => {
            conn.list = list;
            enter(conn, server, ConnPhase::Ready, out)?;
        }
        (ConnPhase::Listing | ConnPhase::Ready, McpBody::MoreTools) => {
            let id = open(conn, config)?;
            send(server, McpOut::ListTools { id }, out)?;
        }
        // A failed refresh keeps the old list (mcp 3.6).
        (ConnPhase::Ready, _) => {}
        _ => fail(conn, server, out)?,
    }
    Ok(is_settled(conn.phase))
}

/// The connection's own request got no answer in time: a probe falls back to `initialize`, anything else fails.
pub(super) fn deadline(
    conn: &mut Conn,
    server: ServerRef,
    config: &Config,
    out: &mut Outputs,
) -> Result<bool, Rejected> {
    let Some(id) = conn.open else { return Err(Rejected::Unexpected) };
    if conn.phase != ConnPhase::Initializing {
        // `initialize` must not be cancelled (mcp 1.4).
        send(server, McpOut::Cancelled { id }, out)?;
    }
    answered(conn, server, config, McpBody::Error, out)
}

/// The server announced another list: ask for it (again).
pub(super) fn list_changed(
    conn: &mut Conn,
    server: ServerRef,
    config: &Config,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    if conn.phase == ConnPhase::Ready && conn.open.is_none() {
        let id = open(conn, config)?;
        send(server, McpOut::ListTools { id }, out)?;
    }
    Ok(())
}

/// The connection is over.
pub(super) fn lost(
    conn: &mut Conn,
    server: ServerRef,
    restart: bool,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let phase = if restart && conn.phase == ConnPhase::Ready { ConnPhase::Lost } else { ConnPhase::Failed };
    let list = conn.list;
    *conn = Conn { list: if phase == ConnPhase::Lost { list } else { 0 }, ..Conn::default() };
    enter(conn, server, phase, out)
}

/// Whether connecting is over, well or not.
pub(super) fn is_settled(phase: ConnPhase) -> bool {
    matches!(phase, ConnPhase::Ready | ConnPhase::Failed | ConnPhase::Lost)
}

/// The next id for a call, unused so far on this connection (the 2025-11-25 rule, stricter than 3.3 needs).
pub(super) fn next_id(conn: &mut Conn, config: &Config) -> Result<u16, Rejected> {
    if config.is_mutant(Mutant::ReuseRequestId) {
        return Ok(1);
    }
    let id = conn.next;
    conn.next = conn
        .next
        .checked_add(1)
        .ok_or(Rejected::Capacity { what: "requests on one connection", limit: usize::from(u16::MAX) })?;
    Ok(id)
}

/// Whether an id is that of an open request of this server.
pub(super) fn is_open(state: &State, config: &Config, server: ServerRef, id: u16) -> bool {
    state.server(server).is_some_and(|conn| conn.open == Some(id))
        || state.calls().iter().any(|slot| slot.request == id && config.runs_on(slot, server))
}

fn open(conn: &mut Conn, config: &Config) -> Result<u16, Rejected> {
    let id = next_id(conn, config)?;
    conn.open = Some(id);
    Ok(id)
}

fn list_tools(
    conn: &mut Conn,
    server: ServerRef,
    config: &Config,
    out: &mut Outputs,
) -> Result<(), Rejected> {
    let id = open(conn, config)?;
    enter(conn, server, ConnPhase::Listing, out)?;
    send(server, McpOut::ListTools { id }, out)
}

fn fail(conn: &mut Conn, server: ServerRef, out: &mut Outputs) -> Result<(), Rejected> {
    *conn = Conn::default();
    enter(conn, server, ConnPhase::Failed, out)
}

fn enter(conn: &mut Conn, server: ServerRef, phase: ConnPhase, out: &mut Outputs) -> Result<(), Rejected> {
    if conn.phase != phase {
        conn.phase = phase;
        emit(out, Output::ServerChanged { server, phase })?;
    }
    Ok(())
}

fn send(server: ServerRef, message: McpOut, out: &mut Outputs) -> Result<(), Rejected> {
    emit(out, Output::SendMcp { server, message })
}

/// Adds an output; a step that would ask for more than fits is refused whole.
pub(super) fn emit(out: &mut Outputs, output: Output) -> Result<(), Rejected> {
    out.try_push(output)
        .map_err(|_| Rejected::Capacity { what: "outputs of one step", limit: super::io::MAX_OUTPUTS })
}
