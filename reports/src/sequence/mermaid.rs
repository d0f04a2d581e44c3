//! The sequence as a Mermaid `sequenceDiagram`, for Markdown that draws it.

use super::{ArrowKind, Sequence, Tone, broken_words};
use crate::words;
use std::fmt::Write as _;

/// Labels longer than this are cut: Mermaid does not wrap them.
const LABEL: usize = 90;

/// The most steps that are drawn; Mermaid refuses texts of more than 50,000 characters.
const MOST_STEPS: usize = 150;

/// The diagram's text.
pub fn mermaid(sequence: &Sequence) -> String {
    let mut out = String::from("sequenceDiagram\n");
    for index in 0..sequence.lanes.len() {
        let _ = writeln!(out, "  participant L{index} as {}", escaped(&sequence.lane_name(index)));
    }
    for step in sequence.steps.iter().take(MOST_STEPS) {
        for arrow in &step.arrows {
            let label = escaped(&arrow.label);
            let (from, to) = (arrow.from, arrow.to);
            let _ = match (arrow.kind, arrow.tone) {
                _ if from == to => writeln!(out, "  Note over L{from}: {label}"),
                (ArrowKind::Input, _) => writeln!(out, "  L{from}-->>L{to}: {label}"),
                (_, Tone::Trouble) => writeln!(out, "  L{from}-xL{to}: {label}"),
                _ => writeln!(out, "  L{from}->>L{to}: {label}"),
            };
        }
        for invariant in &step.broken {
            let words = escaped(&format!("step {} {}", step.step, broken_words(*invariant)));
            let over = match sequence.lanes.len() {
                0 | 1 => "L0".to_owned(),
                count => format!("L0,L{}", count - 1),
            };
            let _ = writeln!(out, "  Note over {over}: {words}");
        }
    }
    let left_out = sequence.steps.len().saturating_sub(MOST_STEPS);
    if left_out > 0 {
        let words = words::counted(left_out as u64, "step", "steps");
        let _ = writeln!(out, "  Note over L0: {words} left out");
    }
    out
}

/// Mermaid's own entities (`#59;`) for what would end the statement or be read as markup.
fn escaped(label: &str) -> String {
    let mut out = String::new();
    for char in words::cut(label, LABEL).chars() {
        match char {
            '#' | ';' | '<' | '>' | '&' | '"' | '`' | '\\' | '%' => {
                let _ = write!(out, "#{};", u32::from(char));
            }
            char => out.push(char),
        }
    }
    // An empty label is a syntax error.
    if out.trim().is_empty() { "-".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn a_run_as_mermaid() {
        insta::assert_snapshot!(mermaid(&Sequence::of(&examples::broken_run())));
    }

    #[test]
    fn no_label_ends_its_statement_or_is_markup() {
        let text = mermaid(&Sequence::of(&examples::hostile_run()));
        assert!(!text.contains("<script") && !text.contains('`'), "{text}");
        for line in text.lines().skip(1) {
            let known =
                ["  participant L", "  Note over L", "  L"].iter().any(|start| line.starts_with(start));
            assert!(known, "{line}");
        }
    }
}
