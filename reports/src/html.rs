//! Page.
use crate::run_report::RunReport;
use std::io::{self, Write};
/// Writes the page.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(report: &RunReport, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}", report.tally().words())
}
