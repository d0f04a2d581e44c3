//! Findings on the command line: how they are printed, and which severity fails the run.

use super::{CliError, Exit, Io};
use windtunnel_model::finding::{Finding, Severity};

/// The exit code for findings and an asked severity.
pub(crate) fn exit(findings: &[Finding], fail_on: Severity) -> Exit {
    if findings.iter().any(|finding| finding.severity >= fail_on) { Exit::Refuted } else { Exit::Holds }
}

/// Prints findings for people.
pub(crate) fn print(io: &mut Io<'_>, findings: &[Finding]) -> Result<(), CliError> {
    for finding in findings {
        let place = finding.at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
        let party = finding.party.as_deref().map(|party| format!("{party}: ")).unwrap_or_default();
        writeln!(io.stdout, "{place}{} {}: {party}{}", finding.severity.word(), finding.id, finding.message)?;
        writeln!(io.stdout, "    why: {}", finding.why)?;
        if let Some(clause) = &finding.clause {
            writeln!(io.stdout, "    clause: {clause}")?;
        }
        if let Some(remedy) = &finding.remedy {
            writeln!(io.stdout, "    remedy: {remedy}")?;
        }
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    writeln!(
        io.stdout,
        "{} errors, {} warnings, {} notes",
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note)
    )?;
    Ok(())
}

/// The asked severity on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    Note,
    Warning,
    Error,
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Self {
        match fail_on {
            FailOn::Note => Self::Note,
            FailOn::Warning => Self::Warning,
            FailOn::Error => Self::Error,
        }
    }
}
