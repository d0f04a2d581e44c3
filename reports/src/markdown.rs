//! The report as Markdown: the verdicts as a table, and the sequence of what does not hold.

use crate::run_report::{RunReport, ScenarioReport};
use crate::sequence::{Sequence, mermaid};
use crate::words;
use std::fmt::Write as _;
use std::io::{self, Write};
use windtunnel_model::verdict::Verdict;

/// Writes the report. Scenarios that hold have a line in the table; each of the others has a section with its calls
/// and its sequence as a Mermaid diagram.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(report: &RunReport, out: &mut impl Write) -> io::Result<()> {
    out.write_all(text(report).as_bytes())
}

fn text(report: &RunReport) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# {}\n", escaped(&report.title));
    let _ = writeln!(out, "{}.\n", report.tally().words());
    let _ = writeln!(out, "- profile: {}", escaped(&report.profile));
    let _ = writeln!(out, "- world: {}", escaped(&report.world));
    if let Some(seed) = report.seed {
        let _ = writeln!(out, "- seed: {seed}");
    }
    if report.scenarios.is_empty() {
        return out;
    }
    out.push_str("\n| scenario | world | profile | verdict | steps | reproduces | reason |\n");
    out.push_str("| --- | --- | --- | --- | ---: | --- | --- |\n");
    for scenario in &report.scenarios {
        let verdict = match scenario.verdict {
            Verdict::Holds => "holds".to_owned(),
            verdict => format!("**{verdict}**"),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {verdict} | {} | {} | {} |",
            escaped(&scenario.id),
            escaped(&scenario.world),
            escaped(&scenario.profile),
            scenario.steps.len(),
            escaped(&scenario.reproduces.join(", ")),
            escaped(scenario.reason.as_deref().unwrap_or_default()),
        );
    }
    for scenario in &report.scenarios {
        if !matches!(scenario.verdict, Verdict::Holds | Verdict::Skipped) {
            section(&mut out, scenario);
        }
    }
    out
}

fn section(out: &mut String, scenario: &ScenarioReport) {
    let _ = writeln!(
        out,
        "\n## {}: {}\n\n{}\n",
        escaped(&scenario.id),
        scenario.verdict,
        escaped(&scenario.title)
    );
    if let Some(reason) = &scenario.reason {
        let _ = writeln!(out, "{}\n", escaped(reason));
    }
    if !scenario.calls.is_empty() {
        out.push_str("| call | tool | decision | executed | end |\n| --- | --- | --- | --- | --- |\n");
        for call in &scenario.calls {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                escaped(&call.id),
                escaped(&call.tool),
                call.decision_words(),
                if call.executed { "yes" } else { "no" },
                call.end_words(),
            );
        }
        out.push('\n');
    }
    let broken: Vec<&str> = scenario
        .invariants
        .iter()
        .filter(|(_, verdict)| *verdict == Verdict::Refuted)
        .map(|(name, _)| name.as_str())
        .collect();
    if !broken.is_empty() {
        let _ = writeln!(out, "Broken: {}.\n", escaped(&broken.join(", ")));
    }
    if !scenario.steps.is_empty() {
        let _ = writeln!(out, "```mermaid\n{}```\n", mermaid(&Sequence::of(&scenario.steps)));
    }
    if let Some(reproduce) = &scenario.reproduce {
        let _ = writeln!(out, "Reproduce: {}", code(reproduce));
    }
}

/// Text in which nothing is markup, for a line or the cell of a table.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for char in words::plain(text).chars() {
        match char {
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(char);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            char => out.push(char),
        }
    }
    out
}

/// A code span, fenced by more grave accents than the text has in a row.
fn code(text: &str) -> String {
    let text = words::plain(text);
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("{fence}{text}{fence}") } else { format!("{fence} {text} {fence}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn a_report_as_markdown() {
        let text = text(&examples::report());
        let outside: String = text.replace("`` windtunnel", "");
        assert!(!outside.lines().any(|line| line.contains("<script") && !line.starts_with("Reproduce: ``")));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_code_span_cannot_be_left() {
        assert_eq!(code("run a"), "`run a`");
        assert_eq!(code("a ``b`` `c`"), "``` a ``b`` `c` ```");
    }
}
