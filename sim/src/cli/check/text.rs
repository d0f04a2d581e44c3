//! The verdicts for people: a line a proposition, or one proposition that explains itself.

use super::Io;
use crate::cli::CliError;
use std::io::Write;
use windtunnel_model::propositions::{Drawing, Evidence, Plan, PropositionReport, VariationReport};
use windtunnel_model::verdict::Verdict;
use windtunnel_reports::sequence::text as draw_run;

fn styled(verdict: Verdict) -> anstyle::Style {
    match verdict {
        Verdict::Holds => anstyle::AnsiColor::Green,
        Verdict::Refuted => anstyle::AnsiColor::Red,
        Verdict::Bounded | Verdict::Unknown | Verdict::Skipped => anstyle::AnsiColor::Yellow,
    }
    .on_default()
}

/// One line: the verdict in each profile, id, title, cases, and what is not as stated.
pub(super) fn line(report: &PropositionReport, io: &mut Io<'_>) -> Result<(), CliError> {
    let out = &mut *io.stdout;
    for profile in &report.profiles {
        let style = if profile.expected { styled(Verdict::Holds) } else { styled(profile.verdict) };
        write!(out, "{style}{:8}{style:#} ", profile.verdict)?;
    }
    write!(out, "{:12} {} ({} cases", report.id, report.title, report.cases())?;
    if let Some(seconds) = report.seconds {
        write!(out, ", {seconds:.2} s")?;
    }
    writeln!(out, ")")?;
    for profile in report.profiles.iter().filter(|profile| !profile.expected) {
        writeln!(out, "    NOT AS STATED in {}:", profile.profile)?;
        for check in profile.checks.iter().filter(|check| check.verdict != Verdict::Holds) {
            let told = check.evidence.as_ref().map(|e| e.text.as_str()).or(check.reason.as_deref());
            writeln!(out, "      {} {}: {}", check.verdict.word(), check.name, told.unwrap_or_default())?;
        }
    }
    for (kind, variation) in unrefuted(report) {
        let why = variation.reason.as_deref().unwrap_or("the check proves nothing of it");
        writeln!(out, "    {kind} {} is {}: {why}", variation.name, variation.verdict.word())?;
    }
    Ok(())
}

fn unrefuted(report: &PropositionReport) -> impl Iterator<Item = (&'static str, &VariationReport)> {
    let ablations = report.ablations.iter().map(|variation| ("ablation", variation));
    let mutants = report.mutants.iter().map(|variation| ("mutant", variation));
    ablations.chain(mutants).filter(|(_, variation)| variation.verdict != Verdict::Refuted)
}

/// The last lines of a table.
pub(super) fn summary(reports: &[PropositionReport], plan: &Plan, io: &mut Io<'_>) -> Result<(), CliError> {
    let out = &mut *io.stdout;
    let stated = reports.iter().filter(|report| report.is_as_stated()).count();
    let cases: u64 = reports.iter().map(PropositionReport::cases).sum();
    let ablations: usize = reports.iter().map(|report| report.ablations.len()).sum();
    let mutants: usize = reports.iter().map(|report| report.mutants.len()).sum();
    let missed: usize = reports.iter().map(|report| unrefuted(report).count()).sum();
    write!(
        out,
        "\n{} propositions, {stated} as stated; {ablations} ablations and {mutants} mutants, {missed} of them not \
         refuted; {cases} cases, seed {}",
        reports.len(),
        plan.seed
    )?;
    if plan.times {
        let seconds: f64 = reports.iter().filter_map(|report| report.seconds).sum();
        write!(out, ", {seconds:.1} s")?;
    }
    writeln!(out)?;
    if !plan.mutants {
        writeln!(out, "`--mutants` tries wrong rules too; `windtunnel check ID` explains one proposition")?;
    }
    Ok(())
}

/// A proposition explains itself.
pub(super) fn explain(report: &PropositionReport, io: &mut Io<'_>) -> Result<(), CliError> {
    let out = &mut *io.stdout;
    let bold = anstyle::Style::new().bold();
    writeln!(out, "{bold}{} {}{bold:#}\n", report.id, report.title)?;
    paragraph(out, "", report.notion)?;
    paragraph(out, "", report.statement)?;
    writeln!(out, "source: {}\n", report.source)?;
    if !report.hypotheses.is_empty() {
        writeln!(out, "{bold}hypotheses{bold:#}")?;
        for hypothesis in &report.hypotheses {
            writeln!(out, "  - {}", hypothesis.text)?;
            writeln!(out, "    because {}", hypothesis.why)?;
        }
        writeln!(out)?;
    }
    for profile in &report.profiles {
        let style = styled(profile.verdict);
        writeln!(out, "{bold}{}{bold:#}: {style}{}{style:#}", profile.profile, profile.verdict.word())?;
        for difference in &profile.differences {
            writeln!(out, "  differs: {difference}")?;
        }
        if !profile.expected {
            writeln!(out, "  this is not what the sources say")?;
        }
        for check in &profile.checks {
            let style = styled(check.verdict);
            write!(
                out,
                "  {style}{}{style:#} {}, {}",
                check.verdict.word(),
                check.name,
                check.method.word()
            )?;
            if !check.bounds.is_empty() {
                write!(out, " ({})", check.bounds.join("; "))?;
            }
            if check.same_in_all_profiles && check.cases == 0 {
                write!(out, ": reads no parameter of the profile, so as above")?;
            } else {
                write!(out, ": {} cases", check.cases)?;
                if let Some(seconds) = check.seconds {
                    write!(out, " in {seconds:.2} s")?;
                }
            }
            writeln!(out)?;
            if check.same_in_all_profiles && check.cases == 0 {
                continue;
            }
            writeln!(out, "    {}", check.claim)?;
            if let Some(reason) = &check.reason {
                writeln!(out, "    {reason}")?;
            }
            if let Some(evidence) = &check.evidence {
                let word = if check.verdict == Verdict::Refuted { "counterexample" } else { "witness" };
                evidence_of(out, word, evidence)?;
            }
        }
        writeln!(out)?;
    }
    for (title, variations) in [
        ("ablations: what happens without a hypothesis", &report.ablations),
        ("mutants: wrong rules", &report.mutants),
    ] {
        if variations.is_empty() {
            continue;
        }
        writeln!(out, "{bold}{title}{bold:#}")?;
        for variation in variations {
            let good = variation.verdict == Verdict::Refuted;
            let style = styled(if good { Verdict::Holds } else { Verdict::Refuted });
            writeln!(
                out,
                "  {style}{}{style:#} {}: {}",
                variation.verdict.word(),
                variation.name,
                variation.text
            )?;
            if let Some(evidence) = &variation.counterexample {
                evidence_of(out, "counterexample", evidence)?;
            } else if let Some(reason) = &variation.reason {
                writeln!(out, "    {reason}")?;
            }
        }
        writeln!(out)?;
    }
    if let Some(real) = report.real {
        writeln!(
            out,
            "{bold}on real processes{bold:#}\n  {real}\n  run it: windtunnel check {} --real\n",
            report.id
        )?;
    }
    Ok(())
}

fn paragraph(out: &mut dyn Write, indent: &str, text: &str) -> std::io::Result<()> {
    writeln!(out, "{indent}{text}\n")
}

fn evidence_of(out: &mut dyn Write, word: &str, evidence: &Evidence) -> std::io::Result<()> {
    writeln!(out, "    {word}: {}", evidence.text)?;
    match &evidence.drawing {
        Drawing::None => {}
        Drawing::Exchange(arrows) => {
            for arrow in arrows {
                writeln!(out, "      {:>8} -> {:8} {}", arrow.from, arrow.to, arrow.text)?;
            }
        }
        Drawing::Run(steps) => {
            for line in draw_run(steps, 100).lines() {
                writeln!(out, "      {line}")?;
            }
        }
        Drawing::Steps(steps) => {
            for (number, step) in steps.iter().enumerate() {
                writeln!(out, "      {:>3}. {step}", number + 1)?;
            }
        }
    }
    Ok(())
}
