//! The verdict table for a page: Markdown.

use crate::cli::{CliError, Io};
use windtunnel_model::profile::ProfileName;
use windtunnel_model::propositions::PropositionReport;
use windtunnel_model::verdict::Verdict;

/// One row a proposition: its verdict in `documented` and as observed, how it was judged, and over how many cases.
pub(super) fn table(reports: &[PropositionReport], io: &mut Io<'_>) -> Result<(), CliError> {
    let out = &mut *io.stdout;
    writeln!(out, "| id | proposition | documented | observed | method | cases |")?;
    writeln!(out, "|---|---|---|---|---|---:|")?;
    for report in reports {
        let cell = |name: ProfileName| {
            let Some(profile) = report.profiles.iter().find(|p| p.profile == name.word()) else {
                return "–".to_owned();
            };
            let word = profile.verdict.word();
            match (profile.expected, profile.verdict) {
                (true, Verdict::Holds) => word.to_owned(),
                (true, _) => format!("**{word}**, as stated"),
                (false, _) => format!("**{word}**, not as stated"),
            }
        };
        let mut methods: Vec<&str> =
            report.profiles.iter().flat_map(|p| p.methods()).map(|method| method.word()).collect();
        methods.sort_unstable();
        methods.dedup();
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            report.id,
            report.title.replace('|', "\\|"),
            cell(ProfileName::Documented),
            cell(ProfileName::ClaudeCode),
            methods.join(", "),
            thousands(report.cases())
        )?;
    }
    Ok(())
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
