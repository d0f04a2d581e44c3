//! A run as a sequence diagram: lanes, and an arrow for each input and output, in domain words. Drawn as SVG, told as
//! text for terminals, written as Mermaid.

mod mermaid;
mod svg;
mod text;

pub use mermaid::mermaid;
pub use svg::{Links, STYLE, svg, svg_for_page};
pub use text::text;

use crate::words::{self, Wires};
use windtunnel_model::agent_loop::{CallEnd, EndReason};
use windtunnel_model::hooks::HookDecision;
use windtunnel_model::invariants::Invariant;
use windtunnel_model::trace::{LabelledInput, LabelledOutput, TraceStep};

/// Who speaks or is spoken to. The order of declaration is the order of the lanes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The person.
    User,
    /// The language model.
    Model,
    /// The harness.
    Harness,
    /// The hooks.
    Hooks,
    /// The permission decision.
    Gate,
    /// The built-in tools.
    Tools,
    /// An MCP server, by name; servers stand in the order in which they first occur.
    Server(String),
}

impl Lane {
    /// Its heading.
    pub fn name(&self) -> String {
        match self {
            Self::User => "user".to_owned(),
            Self::Model => "model".to_owned(),
            Self::Harness => "harness".to_owned(),
            Self::Hooks => "hooks".to_owned(),
            Self::Gate => "gate".to_owned(),
            Self::Tools => "tools".to_owned(),
            Self::Server(name) => format!("server {}", words::plain(name)),
        }
    }
}

/// What an arrow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowKind {
    /// The world speaks to the harness.
    Input,
    /// The harness asks for something.
    Output,
    /// Something that the harness notes for itself: the arrow begins and ends in one lane.
    Note,
}

/// How an arrow is to be read at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Plain,
    /// A refusal, an error, a timeout: allowed for by the rules, and worth seeing.
    Trouble,
    /// A broken invariant.
    Broken,
}

/// One arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Index of the lane where it begins.
    pub from: usize,
    /// Index of the lane where it ends; the same for a note.
    pub to: usize,
    /// What it is.
    pub kind: ArrowKind,
    /// How it reads.
    pub tone: Tone,
    /// What it says, on one line, uncut.
    pub label: String,
}

/// The arrows of one step: first the input, then the outputs, then what the step breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceStep {
    /// The step's number in the trace.
    pub step: u32,
    /// Virtual time in milliseconds.
    pub at_ms: Option<u64>,
    /// The arrows.
    pub arrows: Vec<Arrow>,
    /// Invariants that the step breaks.
    pub broken: Vec<Invariant>,
}

/// A sequence diagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// The lanes that occur, in order.
    pub lanes: Vec<Lane>,
    /// The steps.
    pub steps: Vec<SequenceStep>,
}

/// The most steps that are shown only because they break an invariant.
const MOST_BROKEN: usize = 40;

/// An arrow whose lanes are not yet counted.
struct Draft {
    from: Lane,
    to: Lane,
    kind: ArrowKind,
    tone: Tone,
    label: String,
}

impl Sequence {
    /// Reads the steps of a trace.
    pub fn of(steps: &[TraceStep]) -> Self {
        let mut wires = Wires::default();
        let mut lanes = vec![Lane::Harness];
        let mut drafts = Vec::with_capacity(steps.len());
        for step in steps {
            let mut arrows = vec![input(&mut wires, &step.input)];
            arrows.extend(step.outputs.iter().map(|output| self::output(&mut wires, output)));
            for lane in arrows.iter().flat_map(|arrow| [&arrow.from, &arrow.to]) {
                if !lanes.contains(lane) {
                    lanes.push(lane.clone());
                }
            }
            drafts.push(arrows);
        }
        // Stable: servers keep the order in which they occur.
        lanes.sort_by_key(rank);
        let place = |lane: &Lane| lanes.iter().position(|other| other == lane).unwrap_or(0);
        let steps = steps
            .iter()
            .zip(drafts)
            .map(|(step, arrows)| SequenceStep {
                step: step.step,
                at_ms: step.at_ms,
                arrows: arrows
                    .into_iter()
                    .map(|draft| Arrow {
                        from: place(&draft.from),
                        to: place(&draft.to),
                        kind: draft.kind,
                        tone: draft.tone,
                        label: draft.label,
                    })
                    .collect(),
                broken: step.broken.clone(),
            })
            .collect();
        Self { lanes, steps }
    }

    /// Which steps of a long run are shown: the first, the last, and among the others those that break an invariant, as
    /// far as they are not too many themselves.
    pub(crate) fn kept(&self, first: usize, last: usize) -> Vec<bool> {
        let mut broken = 0usize;
        let kept = |(index, step): (usize, &SequenceStep)| {
            let near = index < first || index + last >= self.steps.len();
            broken += usize::from(!near && !step.broken.is_empty());
            near || (!step.broken.is_empty() && broken <= MOST_BROKEN)
        };
        self.steps.iter().enumerate().map(kept).collect()
    }

    /// The heading of a lane.
    pub(crate) fn lane_name(&self, index: usize) -> String {
        self.lanes.get(index).map(Lane::name).unwrap_or_default()
    }
}

/// Where a lane stands: servers behind all others.
fn rank(lane: &Lane) -> u8 {
    match lane {
        Lane::User => 0,
        Lane::Model => 1,
        Lane::Harness => 2,
        Lane::Hooks => 3,
        Lane::Gate => 4,
        Lane::Tools => 5,
        Lane::Server(_) => 6,
    }
}

/// The words of a broken invariant.
pub(crate) fn broken_words(invariant: Invariant) -> String {
    format!("breaks {}: {}", invariant.name(), invariant.sentence())
}

fn trouble(is: bool) -> Tone {
    if is { Tone::Trouble } else { Tone::Plain }
}

fn input(wires: &mut Wires, input: &LabelledInput) -> Draft {
    let (from, tone, label) = match input {
        LabelledInput::Start => (Lane::User, Tone::Plain, "starts the session".to_owned()),
        LabelledInput::Prompt { text } => {
            (Lane::User, Tone::Plain, format!("prompts {}", words::quoted(text, 60)))
        }
        LabelledInput::ModelReplied { reply } => (Lane::Model, Tone::Plain, words::reply(reply)),
        LabelledInput::ModelFailed { reason } => {
            (Lane::Model, Tone::Trouble, format!("cannot be reached: {}", words::plain(reason)))
        }
        LabelledInput::HookFinished { hook, call, end } => (
            Lane::Hooks,
            trouble(words::is_trouble(end)),
            format!("{}: {}", words::hook(hook, call.as_ref()), words::handler_end(end)),
        ),
        LabelledInput::PermissionAnswered { call, allow } => (
            Lane::User,
            trouble(!allow),
            format!("answers {} to {}", if *allow { "yes" } else { "no" }, words::call(call)),
        ),
        LabelledInput::ToolFinished { call, text, is_error } => {
            let end = if *is_error { "error result" } else { "result" };
            let said = if text.is_empty() { String::new() } else { format!(" {}", words::quoted(text, 40)) };
            (Lane::Tools, trouble(*is_error), format!("{end} of {}{said}", words::call(call)))
        }
        LabelledInput::McpLine { server, line } => {
            let (label, bad) = wires.heard(server, line);
            (Lane::Server(server.clone()), trouble(bad), label)
        }
        LabelledInput::McpClosed { server, reason } => {
            let label = format!("connection closed: {}", words::plain(reason));
            (Lane::Server(server.clone()), Tone::Trouble, label)
        }
        LabelledInput::CallDeadline { call } => {
            let label = format!("the deadline of {} passed", words::call(call));
            return note(Lane::Harness, ArrowKind::Input, Tone::Trouble, label);
        }
        LabelledInput::ServerDeadline { server } => {
            let label = "its deadline passed".to_owned();
            return note(Lane::Server(server.clone()), ArrowKind::Input, Tone::Trouble, label);
        }
        LabelledInput::Interrupt => (Lane::User, Tone::Trouble, "interrupts".to_owned()),
    };
    Draft { from, to: Lane::Harness, kind: ArrowKind::Input, tone, label }
}

fn note(lane: Lane, kind: ArrowKind, tone: Tone, label: String) -> Draft {
    Draft { from: lane.clone(), to: lane, kind, tone, label }
}

fn output(wires: &mut Wires, output: &LabelledOutput) -> Draft {
    let (to, tone, label) = match output {
        LabelledOutput::Connect { server } => {
            wires.connect(server);
            (Lane::Server(server.clone()), Tone::Plain, "connect".to_owned())
        }
        LabelledOutput::SendMcp { server, line, call } => {
            let label = wires.sent(server, line, call.as_ref());
            (Lane::Server(server.clone()), Tone::Plain, label)
        }
        LabelledOutput::ServerChanged { server, phase } => {
            let tone = trouble(matches!(phase.as_str(), "failed" | "lost"));
            let label = format!("is {}", words::plain(phase));
            return note(Lane::Server(server.clone()), ArrowKind::Note, tone, label);
        }
        LabelledOutput::RunHook { hook, call } => {
            (Lane::Hooks, Tone::Plain, format!("run {}", words::hook(hook, call.as_ref())))
        }
        LabelledOutput::CallModel { messages, message_bytes } => {
            let messages = words::counted(*messages as u64, "message", "messages");
            let bytes = words::counted(*message_bytes, "byte", "bytes");
            (Lane::Model, Tone::Plain, format!("request with {messages}, {bytes}"))
        }
        LabelledOutput::AskUser { call } => {
            (Lane::User, Tone::Plain, format!("may {} run?", words::call(call)))
        }
        LabelledOutput::Decided { call, decision, by } => {
            let tone = trouble(matches!(decision, HookDecision::Deny | HookDecision::Defer));
            let label = format!("{} {}, {}", decision.word(), words::call(call), words::decided_by(*by));
            return Draft { from: Lane::Gate, to: Lane::Harness, kind: ArrowKind::Output, tone, label };
        }
        LabelledOutput::RunTool { call, .. } => {
            (Lane::Tools, Tone::Plain, format!("run {}", words::call(call)))
        }
        LabelledOutput::CancelTool { call } => {
            (Lane::Tools, Tone::Trouble, format!("cancel {}", words::call(call)))
        }
        LabelledOutput::Returned { call, end, .. } => {
            let label = format!("{} ends: {}", words::call(call), words::end(*end));
            return note(Lane::Harness, ArrowKind::Note, trouble(*end != CallEnd::Result), label);
        }
        LabelledOutput::TurnEnded => {
            let label = "turn ends, results go back".to_owned();
            return note(Lane::Harness, ArrowKind::Note, Tone::Plain, label);
        }
        LabelledOutput::Finish { reason } => {
            let label = format!("run ends: {}", reason.word().replace('_', " "));
            (Lane::User, trouble(*reason != EndReason::Completed), label)
        }
    };
    Draft { from: Lane::Harness, to, kind: ArrowKind::Output, tone, label }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn lanes_stand_in_order_and_only_those_that_occur() {
        let sequence = Sequence::of(&examples::server_run());
        let names: Vec<String> = sequence.lanes.iter().map(Lane::name).collect();
        assert_eq!(names, ["user", "model", "harness", "gate", "server search", "server mail"]);
        assert_eq!(Sequence::of(&[]).lanes, [Lane::Harness]);
    }

    #[test]
    fn each_input_and_each_output_has_one_arrow() {
        let steps = examples::refused_run();
        let sequence = Sequence::of(&steps);
        let arrows: usize = sequence.steps.iter().map(|step| step.arrows.len()).sum();
        let said: usize = steps.iter().map(|step| 1 + step.outputs.len()).sum();
        assert_eq!(arrows, said);
    }
}
