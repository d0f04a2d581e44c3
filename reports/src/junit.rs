//! The report as JUnit XML, for continuous integration: a suite for each world and profile, a test case a scenario.

use crate::run_report::{RunReport, ScenarioReport};
use crate::sequence;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io::{self, Write};
use windtunnel_model::verdict::Verdict;

/// Columns of the sequence in a failure's description.
const WIDTH: usize = 110;

/// Writes the report. `refuted` is a failure, `bounded` and `unknown` are errors, since nothing was shown, `skipped`
/// is skipped. There are no times: the bytes depend on the runs only.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(report: &RunReport, out: &mut impl Write) -> io::Result<()> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for scenario in &report.scenarios {
        let name = (scenario.world.as_str(), scenario.profile.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut junit = Report::new(report.title.as_str());
    for (world, profile) in names {
        let mut suite = TestSuite::new(format!("{world} {profile}"));
        suite.add_property(("world", world)).add_property(("profile", profile));
        if let Some(seed) = report.seed {
            suite.add_property(("seed", seed.to_string().as_str()));
        }
        let of_suite = |scenario: &&ScenarioReport| scenario.world == world && scenario.profile == profile;
        suite.add_test_cases(report.scenarios.iter().filter(of_suite).map(test_case));
        junit.add_test_suite(suite);
    }
    let text = junit.to_string().map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

fn test_case(scenario: &ScenarioReport) -> TestCase {
    let mut status = match scenario.verdict {
        Verdict::Holds => TestCaseStatus::success(),
        Verdict::Refuted => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Bounded | Verdict::Unknown => TestCaseStatus::non_success(NonSuccessKind::Error),
        Verdict::Skipped => TestCaseStatus::skipped(),
    };
    if scenario.verdict != Verdict::Holds {
        status.set_type(scenario.verdict.word());
        if let Some(reason) = &scenario.reason {
            status.set_message(reason.as_str());
        }
    }
    if matches!(scenario.verdict, Verdict::Refuted | Verdict::Bounded | Verdict::Unknown) {
        let mut told = sequence::text(&scenario.steps, WIDTH);
        if let Some(reproduce) = &scenario.reproduce {
            told.push_str(&format!("reproduce: {}\n", crate::words::plain(reproduce)));
        }
        status.set_description(told);
    }
    let mut case = TestCase::new(scenario.id.as_str(), status);
    case.set_classname(format!("{}.{}", scenario.world, scenario.profile));
    case.add_property(("title", scenario.title.as_str())).add_property(("file", scenario.path.as_str()));
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn a_report_as_junit() {
        let mut bytes = Vec::new();
        write(&examples::report(), &mut bytes).expect("a Vec can be written");
        let text = String::from_utf8(bytes).expect("JUnit is UTF-8");
        assert!(!text.contains("<script"), "{text}");
        assert!(!text.contains("timestamp") && !text.contains('\u{1b}'), "{text}");
        insta::assert_snapshot!(text);
    }
}
