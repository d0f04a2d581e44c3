//! The report of `cost` for people, as CSV and as Markdown.

use super::report::Report;
use crate::cli::{CliError, Io};
use windtunnel_model::context::loading::Loading;

fn money(usd: Option<f64>) -> String {
    usd.map_or_else(|| "unknown".to_owned(), |usd| format!("${usd:.4}"))
}

/// 12,345.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn or_none(number: Option<u64>) -> String {
    number.map_or_else(|| "never".to_owned(), |number| format!("up to {}", grouped(number)))
}

pub(super) fn text(report: &Report, io: &mut Io<'_>) -> Result<(), CliError> {
    let out = &mut *io.stdout;
    writeln!(out, "profile {}, model {}, prices of {}", report.profile, report.model, report.prices_of)?;
    writeln!(out, "tokens by {}: {}", report.encoding, report.encoding_error)?;
    if let Some(parts) = &report.project {
        writeln!(out, "\nresident at the start of a session, per part")?;
        let mut total = (0, 0);
        for part in parts {
            writeln!(
                out,
                "{:>9} tokens {:>10} bytes  {}",
                grouped(part.tokens),
                grouped(part.bytes),
                part.part
            )?;
            total = (total.0 + part.tokens, total.1 + part.bytes);
        }
        writeln!(out, "{:>9} tokens {:>10} bytes  total", grouped(total.0), grouped(total.1))?;
        for line in &report.settings {
            writeln!(out, "settings: {line}")?;
        }
    }
    if !report.servers.is_empty() {
        servers(report, out)?;
    }
    if let Some(skills) = &report.skills {
        let budget = skills.budget_chars.map_or_else(|| "unknown".to_owned(), grouped);
        writeln!(
            out,
            "\nskills: {} found, {} listed, {} tokens ({} of {budget} characters); bodies, not resident: {} tokens",
            skills.skills,
            skills.listed,
            grouped(skills.listing_tokens),
            grouped(skills.listing_chars),
            grouped(skills.bodies_tokens)
        )?;
        for (what, names) in [
            ("name only", &skills.without_description),
            ("description cut", &skills.cut),
            ("fault", &skills.faults),
        ] {
            if !names.is_empty() {
                writeln!(out, "  {what} ({}): {}", names.len(), names.join(", "))?;
            }
        }
    }
    for line in &report.not_counted {
        writeln!(out, "not counted: {line}")?;
    }
    Ok(())
}

fn servers(report: &Report, out: &mut dyn std::io::Write) -> Result<(), CliError> {
    writeln!(out, "\n{:>5} {:>9} {:>9}  server", "tools", "upfront", "names")?;
    for row in &report.servers {
        writeln!(
            out,
            "{:>5} {:>9} {:>9}  {}",
            row.tools,
            grouped(row.upfront_tokens),
            grouped(row.names_tokens),
            row.name
        )?;
        for definition in &row.definitions {
            let mark = if definition.used { " (used)" } else { "" };
            writeln!(
                out,
                "      {:>9} {:>9}  {}{mark}",
                grouped(definition.tokens),
                grouped(definition.name_tokens),
                definition.name
            )?;
        }
    }
    writeln!(
        out,
        "\nupfront {} tokens; deferred {} ({} of names, {} with search tool and searches)",
        grouped(report.upfront),
        grouped(report.deferred),
        grouped(report.names),
        grouped(report.deferred_with_overhead)
    )?;
    if let Some(expected) = report.deferred_expected {
        writeln!(out, "expected, deferred: {expected:.1} tokens")?;
    }
    writeln!(
        out,
        "deferring is smaller {} tools used (with overhead: {}; heaviest first: {}; lightest first: {})",
        or_none(report.crossover_used),
        or_none(report.crossover_used_with_overhead),
        or_none(report.crossover_used_heaviest_first),
        or_none(report.crossover_used_lightest_first)
    )?;
    let loading = match report.decision.loading {
        Loading::Upfront => "upfront",
        Loading::Deferred => "deferred",
        Loading::Unknown => "unknown",
    };
    writeln!(out, "would be loaded: {loading}, because {}", report.decision.reason)?;
    if report.decision.loading == Loading::Deferred {
        writeln!(out, "a call of a tool that no search has loaded {}", report.unloaded_call.words())?;
    }
    let session = &report.session;
    writeln!(
        out,
        "\na session of {} requests ({} tokens beside the tools, {} more each):",
        session.turns,
        grouped(session.base),
        grouped(session.growth)
    )?;
    for (name, row) in [("upfront", &session.upfront), ("deferred", &session.deferred)] {
        writeln!(
            out,
            "  {name:<9} {} for the tools, {} in all, {} requests; order changing: {} ({} cached tokens lost)",
            money(row.tools_usd),
            money(row.cost.usd),
            row.cost.requests,
            money(row.order_changes_usd),
            grouped(row.order_changes_lost_hits)
        )?;
    }
    match session.crossover_turns {
        Some(turns) => writeln!(out, "  deferring costs no more money from {turns} requests on")?,
        None => writeln!(
            out,
            "  deferring costs more money, or it is not known, over all {} requests",
            session.turns
        )?,
    }
    writeln!(
        out,
        "\nheaviest definitions: tokens, money over the session upfront, saved by a one-sentence description, by a schema without descriptions"
    )?;
    for row in &report.heaviest {
        writeln!(
            out,
            "{:>9} {:>9} {:>7} {:>7}  {}",
            grouped(row.tokens),
            money(Some(row.usd)),
            grouped(row.first_sentence_saves),
            grouped(row.bare_schema_saves),
            row.name
        )?;
    }
    Ok(())
}

/// A field of a CSV line: quoted where it must be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

pub(super) fn csv(report: &Report, io: &mut Io<'_>) -> Result<(), CliError> {
    writeln!(io.stdout, "server,tool,tokens,chars,name_tokens,description_tokens,used")?;
    for server in &report.servers {
        for row in &server.definitions {
            writeln!(
                io.stdout,
                "{},{},{},{},{},{},{}",
                field(&server.name),
                field(&row.name),
                row.tokens,
                row.chars,
                row.name_tokens,
                row.description_tokens,
                row.used
            )?;
        }
    }
    Ok(())
}

pub(super) fn markdown(report: &Report, io: &mut Io<'_>) -> Result<(), CliError> {
    let out = &mut *io.stdout;
    writeln!(
        out,
        "| server | tools | upfront, tokens | deferred, tokens | smaller while used | upfront, USD | deferred, none used, USD | deferred, 3 used, USD |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|")?;
    for row in &report.servers {
        let used = row.crossover_used.map_or_else(|| "never".to_owned(), |used| format!("≤ {used}"));
        writeln!(
            out,
            "| {} | {} | {} | {} | {used} | {} | {} | {} |",
            row.name,
            row.tools,
            grouped(row.upfront_tokens),
            grouped(row.names_tokens),
            money(row.upfront_usd),
            money(row.deferred_usd),
            money(row.deferred_three_used_usd)
        )?;
    }
    let session = &report.session;
    let tools: usize = report.servers.iter().map(|row| row.tools).sum();
    let used = report.crossover_used.map_or_else(|| "never".to_owned(), |used| format!("≤ {used}"));
    writeln!(
        out,
        "| all together | {tools} | {} | {} | {used} | {} | | {} |",
        grouped(report.upfront),
        grouped(report.names),
        money(session.upfront.tools_usd),
        money(session.deferred.tools_usd)
    )?;
    writeln!(
        out,
        "\nTokens by {}. Money: what the tools add to a session of {} requests on {} (prices of {}), {} tokens beside them, {} more each request, cache entries of five minutes; deferred with search tool and one search for {} tool(s).",
        report.encoding,
        session.turns,
        report.model,
        report.prices_of,
        grouped(session.base),
        grouped(session.growth),
        1
    )?;
    Ok(())
}
