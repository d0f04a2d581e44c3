//! The section of a scenario: what it teaches, its picture, calls, invariants, and the trace step by step.

use super::changes::{Change, Standing};
use crate::run_report::ScenarioReport;
use crate::sequence::{self, Arrow, ArrowKind, Links, Sequence, SequenceStep, Tone};
use crate::words;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;
use windtunnel_model::trace::{LabelledInput, LabelledOutput, TraceStep};
use windtunnel_model::verdict::Verdict;

/// How much of a scenario is shown, by its share of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// The most steps that are drawn and whose trace is shown; those that break an invariant are shown besides.
    steps: usize,
    /// Bytes for all payloads together.
    payloads: usize,
}

impl Share {
    /// The parts of a share of `bytes`: a step without payloads takes about 1,000 in the picture and as many in the
    /// trace.
    pub(super) fn of(bytes: usize) -> Self {
        Self { steps: (bytes / 3000).clamp(6, 500), payloads: bytes / 3 }
    }

    /// Characters that one payload may have, where there are `steps` steps with one or two each.
    fn payload(self, steps: usize) -> usize {
        (self.payloads / steps.clamp(1, self.steps) / 2).clamp(120, 20_000)
    }
}

pub(super) fn section(scenario: &ScenarioReport, anchor: &str, share: Share) -> Markup {
    let sequence = Sequence::of(&scenario.steps);
    let heading = format!("scenario {}", words::plain(&scenario.id));
    let links = Links {
        anchor: anchor.to_owned(),
        title: format!("Sequence of {heading} in the {} world", words::plain(&scenario.world)),
        most_steps: share.steps,
    };
    html! {
        details class="scenario" data-anchor=(anchor) data-verdict=(scenario.verdict)
            open[matches!(scenario.verdict, Verdict::Refuted)] {
            summary {
                h3 { (words::plain(&scenario.id)) }
                span class=(super::class(scenario.verdict)) { (scenario.verdict) }
                span class="where" { (words::plain(&scenario.world)) ", " (words::plain(&scenario.profile)) }
                span class="title" { (words::plain(&scenario.title)) }
            }
            // Inside, so that a link to it opens what it stands in.
            div class="body" id=(anchor) {
                @if let Some(reason) = &scenario.reason { p class="reason" { (words::plain(reason)) } }
                @if let Some(teaches) = &scenario.teaches { p { (words::plain(teaches)) } }
                (facts(scenario))
                @if !scenario.steps.is_empty() {
                    figure class="wide" tabindex="0" aria-label="Sequence" {
                        (PreEscaped(sequence::svg_for_page(&sequence, &links)))
                    }
                }
                (calls(scenario))
                (invariants(scenario))
                @if !scenario.steps.is_empty() { (trace(scenario, &sequence, anchor, share)) }
            }
        }
    }
}

fn facts(scenario: &ScenarioReport) -> Markup {
    html! {
        dl class="facts" {
            div { dt { "file" } dd { code { (words::plain(&scenario.path)) } } }
            @if !scenario.reproduces.is_empty() {
                div { dt { "reproduces" } dd { (words::plain(&scenario.reproduces.join(", "))) } }
            }
            @if let Some(end) = &scenario.end {
                div { dt { "run ends" } dd { (words::plain(&end.replace('_', " "))) } }
            }
            div { dt { "model calls" } dd { (scenario.model_calls) } }
            @if let Some(reproduce) = &scenario.reproduce {
                div { dt { "reproduce" } dd { code { (words::plain(reproduce)) } } }
            }
        }
    }
}

fn calls(scenario: &ScenarioReport) -> Markup {
    html! {
        @if !scenario.calls.is_empty() {
            h4 { "Calls" }
            div class="wide" {
                table {
                    thead {
                        tr { @for head in ["Call", "Tool", "Decision", "Executed", "End"] { th scope="col" { (head) } } }
                    }
                    tbody {
                        @for call in &scenario.calls {
                            tr {
                                th scope="row" { (words::plain(&call.id)) }
                                td { (words::plain(&call.tool)) }
                                td { (call.decision_words()) }
                                td { @if call.executed { "yes" } @else { "no" } }
                                td { (call.end_words()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn invariants(scenario: &ScenarioReport) -> Markup {
    html! {
        @if !scenario.invariants.is_empty() {
            h4 { "Invariants" }
            ul class="invariants" {
                @for (name, verdict) in &scenario.invariants {
                    li { (words::plain(name)) " " span class=(super::class(*verdict)) { (verdict) } }
                }
            }
        }
    }
}

fn trace(scenario: &ScenarioReport, sequence: &Sequence, anchor: &str, share: Share) -> Markup {
    let mut standing = Standing::default();
    let room = share.payload(scenario.steps.len());
    let kept = sequence.kept(share.steps, 0);
    let left_out = kept.iter().filter(|kept| !**kept).count();
    html! {
        details class="trace" open[scenario.verdict == Verdict::Refuted] {
            summary { h4 { "Trace, step by step" } " " (words::counted(scenario.steps.len() as u64, "step", "steps")) }
            p class="stepper" hidden {
                button type="button" data-by="-1" { "Previous step" }
                " "
                button type="button" data-by="1" { "Next step" }
            }
            ol class="steps" {
                @for ((step, told), kept) in scenario.steps.iter().zip(&sequence.steps).zip(&kept) {
                    // Also where it is not shown, since the next one says what stood before.
                    @let changes = standing.step(step);
                    @if *kept { (self::step(step, told, sequence, &changes, anchor, room)) }
                }
            }
            @if left_out > 0 {
                p class="note" {
                    (words::counted(left_out as u64, "step", "steps")) " left out; a trace file has them all."
                }
            }
        }
    }
}

fn step(
    step: &TraceStep,
    told: &SequenceStep,
    sequence: &Sequence,
    changes: &[Change],
    anchor: &str,
    room: usize,
) -> Markup {
    let id = format!("{anchor}/{}", step.step);
    let mut arrows = told.arrows.iter();
    let input = arrows.next();
    html! {
        li class=(if step.broken.is_empty() { "step" } else { "step broken" }) id=(id) {
            h5 {
                a href=(format!("#{id}")) { "Step " (step.step) }
                @if let Some(at) = step.at_ms { span class="at" { (words::seconds(at)) } }
            }
            @for invariant in &step.broken { p class="reason" { (sequence::broken_words(*invariant)) } }
            @if let Some(arrow) = input {
                div class="input" { (line(arrow, sequence)) (payload(input_payload(&step.input), room)) }
            }
            @if !step.outputs.is_empty() {
                ul class="outputs" {
                    @for (output, arrow) in step.outputs.iter().zip(arrows) {
                        li { (line(arrow, sequence)) (payload(output_payload(output), room)) }
                    }
                }
            }
            @if !changes.is_empty() {
                dl class="changes" {
                    @for change in changes {
                        div {
                            dt { (change.thing) }
                            dd {
                                @if let Some(before) = &change.before { del { (before) } " → " }
                                mark { (change.now) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Who says what.
fn line(arrow: &Arrow, sequence: &Sequence) -> Markup {
    let (from, to) = (sequence.lane_name(arrow.from), sequence.lane_name(arrow.to));
    let class = match arrow.tone {
        Tone::Plain => "line",
        Tone::Trouble | Tone::Broken => "line trouble",
    };
    html! {
        span class=(class) {
            span class="lanes" {
                (from)
                @if arrow.kind != ArrowKind::Note && arrow.from != arrow.to { " → " (to) }
            }
            " " (arrow.label)
        }
    }
}

/// What an input carries beyond its words.
fn input_payload(input: &LabelledInput) -> Option<Payload> {
    match input {
        LabelledInput::Prompt { text } | LabelledInput::ToolFinished { text, .. } => Payload::text(text),
        LabelledInput::ModelReplied { reply } => Payload::value(serde_json::to_value(reply).ok()?),
        LabelledInput::HookFinished { end, .. } => Payload::value(serde_json::to_value(end).ok()?),
        LabelledInput::McpLine { line, .. } => Payload::line(line),
        LabelledInput::ModelFailed { .. }
        | LabelledInput::McpClosed { .. }
        | LabelledInput::Start
        | LabelledInput::PermissionAnswered { .. }
        | LabelledInput::CallDeadline { .. }
        | LabelledInput::ServerDeadline { .. }
        | LabelledInput::Interrupt => None,
    }
}

/// What an output carries beyond its words.
fn output_payload(output: &LabelledOutput) -> Option<Payload> {
    match output {
        LabelledOutput::SendMcp { line, .. } => Payload::line(line),
        LabelledOutput::RunTool { input, .. } => Payload::value(input.clone()),
        LabelledOutput::Returned { text, .. } => Payload::text(text),
        LabelledOutput::Connect { .. }
        | LabelledOutput::ServerChanged { .. }
        | LabelledOutput::RunHook { .. }
        | LabelledOutput::CallModel { .. }
        | LabelledOutput::AskUser { .. }
        | LabelledOutput::Decided { .. }
        | LabelledOutput::CancelTool { .. }
        | LabelledOutput::TurnEnded
        | LabelledOutput::Finish { .. } => None,
    }
}

/// A payload as it is shown.
struct Payload {
    kind: &'static str,
    text: String,
}

impl Payload {
    fn value(value: Value) -> Option<Self> {
        Some(Self { kind: "JSON", text: serde_json::to_string_pretty(&value).ok()? })
    }

    /// A line of a server: indented where it is JSON, else as it is.
    fn line(line: &str) -> Option<Self> {
        match serde_json::from_str(line) {
            Ok(value) => Self::value(value),
            Err(_) => Self::text(line),
        }
    }

    fn text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self { kind: "text", text: text.to_owned() })
    }
}

fn payload(payload: Option<Payload>, room: usize) -> Markup {
    let Some(Payload { kind, text }) = payload else { return html! {} };
    let count = text.chars().count();
    let cut = count.saturating_sub(room);
    // A few characters are not worth a note that is longer.
    let cut = if cut < 40 { 0 } else { cut };
    let head: String = text.chars().take(count - cut).collect();
    let shown: Vec<String> = head.split('\n').map(words::plain).collect();
    html! {
        details class="payload" {
            summary { (kind) ", " (words::counted(count as u64, "character", "characters")) }
            pre { (shown.join("\n")) }
            @if cut > 0 { p class="note" { (words::counted(cut as u64, "character", "characters")) " cut" } }
        }
    }
}
