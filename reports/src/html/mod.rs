//! The report as one HTML page that needs nothing else: no other file, no network. It works without scripts; a small
//! script adds the filter and stepping. A run of a hundred scenarios in two worlds stays a page that opens at once:
//! long payloads, long traces and long pictures are cut, and what was cut is counted.

mod anchors;
mod changes;
mod scenario;

use crate::run_report::{RunReport, Tally};
use crate::{sequence, words};
use anchors::anchors;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::io::{self, Write};
use windtunnel_model::verdict::Verdict;

/// Bytes of scenarios that a page aims at; each scenario has its share.
const PAGE_BYTES: usize = 4_000_000;

/// Writes the page.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(report: &RunReport, out: &mut impl Write) -> io::Result<()> {
    out.write_all(page(report).into_string().as_bytes())
}

fn page(report: &RunReport) -> Markup {
    let anchors = anchors(report.scenarios.iter().map(|scenario| scenario.id.as_str()));
    let share = scenario::Share::of(PAGE_BYTES / report.scenarios.len().max(1));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Whatever slipped through the escaping could still load nothing.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (words::plain(&report.title)) ": " (report.tally().words()) }
                style { (PreEscaped(sequence::STYLE)) (PreEscaped(include_str!("page.css"))) }
            }
            body {
                a class="skip" href="#scenarios" { "Skip to the scenarios" }
                header {
                    h1 { (words::plain(&report.title)) }
                    (summary(report))
                }
                main {
                    (table(report, &anchors))
                    section aria-labelledby="scenarios" {
                        h2 id="scenarios" { "Scenarios" }
                        @for (scenario, anchor) in report.scenarios.iter().zip(&anchors) {
                            (scenario::section(scenario, anchor, share))
                        }
                    }
                }
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    }
}

fn summary(report: &RunReport) -> Markup {
    let tally = report.tally();
    html! {
        ul class="tally" aria-label="Verdicts" {
            @for (verdict, count) in tally.rows() {
                @if count > 0 {
                    li { span class=(class(verdict)) { (Tally::counted(verdict, count)) } }
                }
            }
            @if report.scenarios.is_empty() { li { (tally.words()) } }
        }
        dl class="facts" {
            div { dt { "profile" } dd { (words::plain(&report.profile)) } }
            div { dt { "world" } dd { (words::plain(&report.world)) } }
            @if let Some(seed) = report.seed { div { dt { "seed" } dd { (seed) } } }
        }
    }
}

fn table(report: &RunReport, anchors: &[String]) -> Markup {
    html! {
        section aria-labelledby="verdicts" {
            h2 id="verdicts" { "Verdicts" }
            // The filter needs the script, which shows it.
            form class="filter" hidden {
                label { "Filter " input type="search" name="words" placeholder="id, title, reason"; }
                fieldset {
                    legend { "Show" }
                    @for (verdict, count) in report.tally().rows() {
                        @if count > 0 {
                            label { input type="checkbox" name="verdict" value=(verdict) checked; " " (verdict) }
                        }
                    }
                }
                output aria-live="polite" {}
            }
            div class="wide" {
                table class="verdicts" {
                    thead {
                        tr {
                            @for head in ["Scenario", "World", "Profile", "Verdict", "Steps", "Calls", "Reason"] {
                                th scope="col" { (head) }
                            }
                        }
                    }
                    tbody {
                        @for (scenario, anchor) in report.scenarios.iter().zip(anchors) {
                            tr data-for=(anchor) {
                                th scope="row" { a href=(format!("#{anchor}")) { (words::plain(&scenario.id)) } }
                                td { (words::plain(&scenario.world)) }
                                td { (words::plain(&scenario.profile)) }
                                td { span class=(class(scenario.verdict)) { (scenario.verdict) } }
                                td class="number" { (scenario.steps.len()) }
                                td class="number" { (scenario.calls.len()) }
                                td { (words::plain(scenario.reason.as_deref().unwrap_or_default())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The look of a verdict.
fn class(verdict: Verdict) -> String {
    format!("verdict {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use std::collections::BTreeSet;

    fn attribute<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
        let start = format!(" {name}=\"");
        page.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn nothing_from_users_is_markup() {
        let page = page(&examples::report()).into_string();
        // The page's own script is the only one.
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains("alert(\"x\")") && !page.contains('\u{1b}'));
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn anchors_are_unique_and_every_link_leads_somewhere() {
        let page = page(&examples::report()).into_string();
        let ids = attribute(&page, "id");
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len());
        for href in attribute(&page, "href") {
            let inside = href.strip_prefix('#').map(|anchor| unique.contains(anchor));
            assert!(inside.unwrap_or(href == "data:,"), "{href}");
        }
        assert!(unique.contains("hooks/guard/3"));
    }

    #[test]
    fn a_page_loads_nothing() {
        let page = page(&examples::report()).into_string();
        assert!(attribute(&page, "src").is_empty() && !page.contains("@import") && !page.contains("url("));
    }

    #[test]
    fn two_hundred_long_runs_stay_a_small_page_and_say_what_was_cut() {
        let mut report = examples::report();
        let mut long = report.scenarios[1].clone();
        for step in &mut long.steps {
            if let windtunnel_model::trace::LabelledInput::McpLine { line, .. } = &mut step.input {
                *line = serde_json::json!({"id": 1, "result": {"text": "x".repeat(10_000)}}).to_string();
            }
        }
        let steps = long.steps.clone();
        for round in 1..20 {
            long.steps.extend(steps.iter().cloned().map(|mut step| {
                step.step += round * 9;
                step
            }));
        }
        report.scenarios = vec![long; 200];
        let page = page(&report).into_string();
        assert!(page.len() < 6_000_000, "{}", page.len());
        assert!(page.contains(" characters cut") && page.contains("left out"), "nothing says what was cut");
    }
}
