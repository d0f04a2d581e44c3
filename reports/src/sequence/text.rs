//! The sequence for a terminal: a line a step, in domain words.

use super::{Arrow, ArrowKind, Lane, Sequence, SequenceStep, broken_words};
use std::fmt::Write as _;
use windtunnel_model::trace::TraceStep;

/// The most steps that are told. Of a longer run the beginning and the end are told, and every step that breaks an
/// invariant; what is left out is counted.
const MOST_STEPS: usize = 60;

/// How many of these are the beginning.
const FIRST_STEPS: usize = 20;

/// A line a step: its number, the input and who says it, then the outputs and to whom they go. A line longer than
/// `width` columns goes on below, indented. Under a step that breaks an invariant stands which one.
///
/// Without colours and without control characters, whatever the trace holds.
pub fn text(steps: &[TraceStep], width: usize) -> String {
    let sequence = Sequence::of(steps);
    let last = if sequence.steps.len() <= MOST_STEPS { MOST_STEPS } else { MOST_STEPS - FIRST_STEPS };
    let mut out = String::new();
    let mut left_out = 0usize;
    for (step, kept) in sequence.steps.iter().zip(sequence.kept(FIRST_STEPS, last)) {
        if !kept {
            left_out += 1;
            continue;
        }
        tell_left_out(&mut out, &mut left_out);
        tell(&mut out, &sequence, step, width.max(40));
    }
    tell_left_out(&mut out, &mut left_out);
    out
}

fn tell_left_out(out: &mut String, left_out: &mut usize) {
    if *left_out > 0 {
        let words = crate::words::counted(*left_out as u64, "step", "steps");
        let _ = writeln!(out, "      … {words} left out");
        *left_out = 0;
    }
}

fn tell(out: &mut String, sequence: &Sequence, step: &SequenceStep, width: usize) {
    let mut arrows = step.arrows.iter();
    let mut parts: Vec<String> = arrows.next().map(|arrow| part(sequence, arrow)).into_iter().collect();
    parts.extend(arrows.map(|arrow| format!("→ {}", part(sequence, arrow))));
    let mut line = format!("{:>4}  ", step.step);
    let mut empty = true;
    for part in parts {
        if !empty && line.chars().count() + 1 + part.chars().count() > width {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(8);
        } else if !empty {
            line.push(' ');
        }
        line.push_str(&part);
        empty = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
    for invariant in &step.broken {
        let _ = writeln!(out, "   ✗  {}", broken_words(*invariant));
    }
}

/// An arrow with the lane that is not the harness.
fn part(sequence: &Sequence, arrow: &Arrow) -> String {
    let other = if sequence.lanes.get(arrow.from) == Some(&Lane::Harness) { arrow.to } else { arrow.from };
    let name = sequence.lane_name(other);
    match arrow.kind {
        ArrowKind::Note if sequence.lanes.get(other) == Some(&Lane::Harness) => arrow.label.clone(),
        ArrowKind::Note => format!("{name} {}", arrow.label),
        ArrowKind::Input | ArrowKind::Output => format!("{name}: {}", arrow.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn a_run_is_told_in_domain_words() {
        insta::assert_snapshot!("refused", text(&examples::refused_run(), 100));
        insta::assert_snapshot!("server", text(&examples::server_run(), 100));
        insta::assert_snapshot!("broken", text(&examples::broken_run(), 100));
    }

    #[test]
    fn a_long_run_is_cut_but_never_where_it_breaks() {
        let mut steps: Vec<TraceStep> = (0..1000)
            .map(|step| TraceStep {
                step,
                at_ms: None,
                input: windtunnel_model::trace::LabelledInput::Interrupt,
                outputs: Vec::new(),
                broken: Vec::new(),
            })
            .collect();
        steps[500].broken = vec![windtunnel_model::invariants::Invariant::End];
        let told = text(&steps, 80);
        assert_eq!(told.lines().count(), 60 + 2 + 2);
        assert!(told.contains("480 steps left out") && told.contains("459 steps left out"), "{told}");
        assert!(told.contains(" 500  user: interrupts\n   ✗  breaks I-END"), "{told}");
    }

    #[test]
    fn nothing_of_a_trace_moves_the_cursor() {
        let told = text(&examples::hostile_run(), 100);
        assert!(!told.chars().any(|char| char.is_control() && char != '\n'), "{told:?}");
        assert_eq!(
            told.lines().filter(|line| !line.starts_with("        ")).count(),
            examples::hostile_run().len()
        );
    }
}
