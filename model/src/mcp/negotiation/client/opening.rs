//! Opening: probe, fall-back, handshake (mcp.md 1.4, 1.6, 3.2).

use super::{Before, Client, Deadline, Failure, Negotiated, Output, Phase, Plan, Purpose};
use crate::mcp::correlation::{IdRule, OpenRequests};
use crate::mcp::jsonrpc::{ErrorObject, Message, RequestId, cancelled};
use crate::mcp::negotiation::messages::{
    META_SERVER, ProbeAnswer, initialize_params, read_discover, read_modern_error,
};
use crate::mcp::profile::{Eras, NoCommonModern, OnProbeExit, ProbeProcess};
use crate::mcp::version::Version;
use serde_json::Value;

impl Client {
    pub(super) fn start(&mut self, relist: bool, out: &mut Vec<Output>) {
        if self.phase.is_connecting() || self.phase == Phase::Ready {
            return;
        }
        self.relist = relist;
        self.requests = 0;
        self.opens = 0;
        self.probes = 0;
        self.listens = 0;
        self.agreed = None;
        let newest = self.profile.modern.iter().copied().max();
        let plan = match (self.profile.eras, newest) {
            (Eras::Legacy, _) | (Eras::Dual, None) => Plan::Legacy,
            (Eras::Modern, Some(version)) if !self.profile.discovers => Plan::Modern(version),
            (Eras::Dual | Eras::Modern, _) => Plan::Probe,
        };
        let after_ms = self.profile.connect_timeout_ms;
        out.push(Output::Wait { deadline: Deadline::Connect, after_ms });
        self.reopen(plan, out);
    }

    /// Asks for a connection; ids begin anew on it.
    fn reopen(&mut self, plan: Plan, out: &mut Vec<Output>) {
        self.open = OpenRequests::new(self.profile.matching, IdRule::NotWhileOpen);
        self.next_id = self.profile.first_id;
        self.opens = self.opens.saturating_add(1);
        self.phase = Phase::Opening(plan);
        out.push(Output::Open);
    }

    pub(super) fn opened(&mut self, out: &mut Vec<Output>) {
        let Phase::Opening(plan) = self.phase else { return };
        match plan {
            Plan::Probe => match self.profile.modern.iter().copied().max() {
                Some(version) => self.probe(1, version, out),
                None => self.fail(Failure::NoCommonVersion, out),
            },
            Plan::Legacy => self.initialize(Before::Nothing, out),
            Plan::Modern(version) => self.modern(version, out),
        }
    }

    fn probe(&mut self, attempt: u8, version: Version, out: &mut Vec<Output>) {
        self.phase = Phase::Probing { attempt };
        let id = self.probe_id();
        self.send(id, "server/discover", None, Some(version), Purpose::Discover, out);
        let after_ms = self.profile.probe_timeout_ms;
        out.push(Output::Wait { deadline: Deadline::Probe, after_ms });
    }

    fn probe_id(&mut self) -> RequestId {
        self.probes = self.probes.saturating_add(1);
        if self.profile.named_ids {
            RequestId::String(format!("server-discover-probe-{}", self.probes))
        } else {
            self.fresh_id()
        }
    }

    pub(super) fn probe_answered(&mut self, answer: Result<Value, ErrorObject>, out: &mut Vec<Output>) {
        let Phase::Probing { attempt } = self.phase else { return };
        out.push(Output::Stop(Deadline::Probe));
        let read = match &answer {
            Ok(result) => read_discover(result, &self.profile),
            Err(error) => read_modern_error(error, &self.profile),
        };
        if let Ok(result) = &answer {
            self.learn(result);
        }
        match read {
            ProbeAnswer::Modern(version) => self.go_on(Plan::Modern(version), out),
            ProbeAnswer::RetryWith(version) if attempt == 1 => self.probe(2, version, out),
            ProbeAnswer::RetryWith(_) => self.fail(Failure::NoCommonVersion, out),
            ProbeAnswer::NoCommonModern { refused, legacy_named, modern_named } => {
                let legacy = match self.profile.no_common_modern {
                    NoCommonModern::LegacyIfNamed => legacy_named,
                    NoCommonModern::LegacyUnlessModernNamed => !(refused && modern_named),
                    NoCommonModern::Fail => false,
                };
                if legacy && self.profile.eras != Eras::Modern {
                    self.go_on(Plan::Legacy, out);
                } else {
                    self.fail(Failure::NoCommonVersion, out);
                }
            }
            ProbeAnswer::NotModern if self.profile.eras == Eras::Modern => {
                self.fail(Failure::EraNotSpoken, out);
            }
            ProbeAnswer::NotModern => self.go_on(Plan::Legacy, out),
        }
    }

    /// Goes on after the probe: in the same process, or in a second one.
    fn go_on(&mut self, plan: Plan, out: &mut Vec<Output>) {
        if self.profile.probe_process == ProbeProcess::Sibling {
            out.push(Output::Close);
            self.reopen(plan, out);
            return;
        }
        match plan {
            Plan::Modern(version) => self.modern(version, out),
            Plan::Legacy | Plan::Probe => self.initialize(Before::ProbeAnswered, out),
        }
    }

    pub(super) fn probe_silent(&mut self, out: &mut Vec<Output>) {
        self.abandon_all();
        if self.profile.eras == Eras::Modern || !self.profile.silence_means_legacy {
            self.fail(Failure::EraNotSpoken, out);
        } else if self.profile.probe_process == ProbeProcess::Sibling {
            self.go_on(Plan::Legacy, out);
        } else {
            self.initialize(Before::ProbeSilent, out);
        }
    }

    pub(super) fn closed_during_probe(&mut self, out: &mut Vec<Output>) {
        out.push(Output::Stop(Deadline::Probe));
        let may = self.profile.eras == Eras::Dual && self.profile.on_probe_exit == OnProbeExit::RespawnLegacy;
        if may {
            self.reopen(Plan::Legacy, out);
        } else {
            self.fail(Failure::Closed, out);
        }
    }

    fn initialize(&mut self, before: Before, out: &mut Vec<Output>) {
        self.phase = Phase::Initializing(before);
        let id = self.fresh_id();
        let params = initialize_params(&self.identity, self.profile.offered);
        self.send(id, "initialize", Some(params), None, Purpose::Initialize, out);
    }

    pub(super) fn initialize_answered(&mut self, answer: Result<Value, ErrorObject>, out: &mut Vec<Output>) {
        let Phase::Initializing(before) = self.phase else { return };
        let result = match answer {
            Ok(result) => result,
            Err(error) => {
                match (before, self.profile.reprobe_timeout_ms) {
                    (Before::ProbeSilent, Some(after_ms)) => self.reprobe(after_ms, out),
                    _ => {
                        let ErrorObject { code, message, .. } = error;
                        self.fail(Failure::InitializeRefused { code, message }, out);
                    }
                }
                return;
            }
        };
        let Some(text) = result.get("protocolVersion").and_then(Value::as_str) else {
            self.fail(Failure::BadInitializeResult, out);
            return;
        };
        match text.parse::<Version>().ok().filter(|version| self.profile.legacy.contains(version)) {
            Some(version) => {
                self.learn(&result);
                out.push(Output::Send(Message::notification("notifications/initialized", None)));
                self.connected(version, out);
                self.begin_lists(out);
            }
            None => self.fail(Failure::VersionNotAccepted(text.to_owned()), out),
        }
    }

    fn reprobe(&mut self, after_ms: u64, out: &mut Vec<Output>) {
        self.phase = Phase::Reprobing;
        let id = self.probe_id();
        let version = self.profile.modern.iter().copied().max();
        self.send(id, "server/discover", None, version, Purpose::Reprobe, out);
        out.push(Output::Wait { deadline: Deadline::Reprobe, after_ms });
    }

    pub(super) fn reprobe_answered(&mut self, answer: Result<Value, ErrorObject>, out: &mut Vec<Output>) {
        out.push(Output::Stop(Deadline::Reprobe));
        if let Ok(result) = &answer
            && let ProbeAnswer::Modern(version) = read_discover(result, &self.profile)
        {
            self.learn(result);
            self.modern(version, out);
            return;
        }
        out.push(Output::Close);
        self.reopen(Plan::Legacy, out);
    }

    pub(super) fn reprobe_silent(&mut self, out: &mut Vec<Output>) {
        for id in self.abandon_all() {
            out.push(Output::Send(cancelled(&id, "no answer in time")));
        }
        out.push(Output::Close);
        self.reopen(Plan::Legacy, out);
    }

    /// The era is modern: subscribe where something may change, discover again where the client does that, then list.
    fn modern(&mut self, version: Version, out: &mut Vec<Output>) {
        self.connected(version, out);
        let filter = self.subscription_filter();
        match (self.profile.listen_timeout_ms, filter) {
            (Some(after_ms), Some(filter)) => {
                self.phase = Phase::Subscribing;
                let id = if self.profile.named_ids {
                    RequestId::String(format!("listen:{}", self.listens))
                } else {
                    self.fresh_id()
                };
                self.listens = self.listens.saturating_add(1);
                let params = serde_json::json!({"notifications": filter});
                self.send(id, "subscriptions/listen", Some(params), Some(version), Purpose::Listen, out);
                out.push(Output::Wait { deadline: Deadline::Listen, after_ms });
            }
            _ => self.after_subscription(out),
        }
    }

    pub(super) fn after_subscription(&mut self, out: &mut Vec<Output>) {
        if self.profile.discovers_again {
            self.phase = Phase::Rediscovering;
            let id = self.fresh_id();
            let version = self.agreed;
            self.send(id, "server/discover", None, version, Purpose::Rediscover, out);
        } else {
            self.begin_lists(out);
        }
    }

    /// The subscription's answer means that it ended; while opening, the session goes on without it.
    pub(super) fn listen_ended(&mut self, out: &mut Vec<Output>) {
        if self.phase == Phase::Subscribing {
            out.push(Output::Stop(Deadline::Listen));
            self.after_subscription(out);
        }
    }

    pub(super) fn listen_silent(&mut self, out: &mut Vec<Output>) {
        for id in self.abandon_all() {
            out.push(Output::Send(cancelled(&id, "not acknowledged in time")));
        }
        self.after_subscription(out);
    }

    pub(super) fn rediscovered(&mut self, answer: Result<Value, ErrorObject>, out: &mut Vec<Output>) {
        if let Ok(result) = &answer {
            self.learn(result);
        }
        if self.phase == Phase::Rediscovering {
            self.begin_lists(out);
        }
    }

    /// Limit of the whole attempt: open requests are cancelled, except `initialize`, which must not be (mcp.md 1.4).
    pub(super) fn connect_timed_out(&mut self, out: &mut Vec<Output>) {
        for (id, purpose) in self.open.drain() {
            if purpose != Purpose::Initialize {
                out.push(Output::Send(cancelled(&id, "connection timed out")));
            }
        }
        self.fail(Failure::TimedOut(self.profile.connect_timeout_ms), out);
    }

    fn abandon_all(&mut self) -> Vec<RequestId> {
        let ids: Vec<RequestId> = self.open.iter().map(|(id, _)| id.clone()).collect();
        for id in &ids {
            self.open.abandon(id);
        }
        ids
    }

    fn connected(&mut self, version: Version, out: &mut Vec<Output>) {
        self.agreed = Some(version);
        out.push(Output::Connected(Negotiated {
            era: version.era(),
            version,
            requests: self.requests,
            opens: self.opens,
        }));
    }

    /// Keeps what an initialize or discover result says about the server.
    fn learn(&mut self, result: &Value) {
        self.capabilities =
            Some(result.get("capabilities").cloned().unwrap_or_else(|| serde_json::json!({})));
        self.instructions = result.get("instructions").and_then(Value::as_str).map(str::to_owned);
        let modern = result.get("_meta").and_then(|meta| meta.get(META_SERVER));
        self.server_info = result.get("serverInfo").or(modern).cloned();
    }
}
