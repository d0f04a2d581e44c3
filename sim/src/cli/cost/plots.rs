//! The plots of `cost --plot`.

use super::CostArgs;
use super::gather::Gathered;
use super::report::{Report, listed, listing_budget, price_of, session_of};
use super::settings::InForce;
use crate::cli::CliError;
use std::path::{Path, PathBuf};
use windtunnel_model::context::listing::{self, Description};
use windtunnel_model::context::plan::{Session, Strategy, cost};
use windtunnel_model::context::price::{ModelFacts, Models};
use windtunnel_model::context::tokens::utf16_len;
use windtunnel_reports::plot::{Area, Chart, Grid, Lines, Marker, Series, png, svg};

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

/// Draws every plot that the report has figures for; `base` names them.
pub(super) fn write(
    base: &Path,
    args: &CostArgs,
    report: &Report,
    models: &Models,
    gathered: &Gathered,
    in_force: &InForce,
) -> Result<Vec<PathBuf>, CliError> {
    let kind = base.extension().map(|kind| kind.to_string_lossy().into_owned()).unwrap_or_default();
    if kind != "svg" && kind != "png" {
        return Err(CliError::with_hint(
            format!("--plot {}: unknown kind", base.display()),
            "end the name with .svg or .png",
        ));
    }
    let model = price_of(models, &args.session.model)?;
    let mut charts = Vec::new();
    if !report.plan_tools.is_empty() {
        charts.push(("used", used(report)));
        charts.push(("turns", turns(args, report, model, false)?));
        charts.push(("order", turns(args, report, model, true)?));
        charts.push(("grid", grid(report)));
        charts.push(("layers", layers(args, report)));
    }
    if !gathered.skills.is_empty() {
        charts.push(("listing", skills(args, gathered, model, in_force)));
    }
    let stem = base.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    charts
        .into_iter()
        .map(|(name, chart)| {
            let path = base.with_file_name(format!("{stem}-{name}.{kind}"));
            let bytes = if kind == "svg" { svg(&chart).map(String::into_bytes) } else { png(&chart) };
            let bytes = bytes.map_err(|error| CliError::input(error.to_string()))?;
            std::fs::write(&path, bytes).map_err(|source| CliError::File { path: path.clone(), source })?;
            Ok(path)
        })
        .collect()
}

/// Tokens against tools used, used in an even spread: proposition 3.8 with the mean definition.
fn used(report: &Report) -> Chart {
    let n = report.plan_tools.len() as u64;
    let mean = float(report.upfront) / float(n.max(1));
    let deferred = |u: u64| float(u).mul_add(mean, float(report.names));
    let at = (float(report.upfront) - float(report.names)) / mean.max(f64::MIN_POSITIVE);
    let markers = if at > 0.0 {
        vec![Marker { at: (at, float(report.upfront)), text: format!("equal at {at:.1} of {n} tools") }]
    } else {
        Vec::new()
    };
    Chart::Lines(Lines {
        title: format!("Tool definitions in the context: {n} tools"),
        x: "tools used".to_owned(),
        y: format!("tokens ({})", report.encoding),
        series: vec![
            Series {
                name: "upfront".to_owned(),
                points: (0..=n).map(|u| (float(u), float(report.upfront))).collect(),
            },
            Series {
                name: "deferred".to_owned(),
                points: (0..=n).map(|u| (float(u), deferred(u))).collect(),
            },
        ],
        markers,
    })
}

fn turns(
    args: &CostArgs,
    report: &Report,
    model: &ModelFacts,
    order_changes: bool,
) -> Result<Chart, CliError> {
    let look_back = args.session.profile.profile().context.cache_look_back_blocks.value;
    let session = session_of(args);
    let mut series = Vec::new();
    let both = [("upfront", Strategy::Upfront), ("deferred", Strategy::Deferred)];
    // With a changing order, the stable one is drawn beside it: what the order alone costs is the distance.
    let orders: &[bool] = if order_changes { &[true, false] } else { &[false] };
    for (changes, (name, strategy)) in orders.iter().flat_map(|changes| both.map(|both| (*changes, both))) {
        let name = if changes { format!("{name}, order changing") } else { name.to_owned() };
        let mut points = vec![(0.0, 0.0)];
        for turns in 1..=session.turns {
            let session = Session { turns, order_changes: changes, ..session.clone() };
            let cost = cost(&report.plan_tools, &report.plan_used, strategy, &session, model, look_back)
                .map_err(|error| CliError::input(error.to_string()))?;
            points.extend(cost.usd.map(|usd| (float(turns), usd)));
        }
        series.push(Series { name, points });
    }
    let markers = report.session.crossover_turns.filter(|_| !order_changes).and_then(|turns| {
        let point =
            series.iter().find(|s| s.name == "deferred")?.points.iter().find(|p| p.0 >= float(turns))?;
        Some(Marker { at: *point, text: format!("deferring is cheaper from {turns} on") })
    });
    Ok(Chart::Lines(Lines {
        title: format!(
            "Money for a session, {} tools used of {}{}",
            report.plan_used.len(),
            report.plan_tools.len(),
            if order_changes { ": what an order costs that changes with every request" } else { "" }
        ),
        x: "requests of the session".to_owned(),
        y: format!("USD ({})", args.session.model),
        series,
        markers: markers.into_iter().collect(),
    }))
}

/// What deferring saves over (N, u), with the mean sizes of the report's tools.
fn grid(report: &Report) -> Chart {
    let n = (report.plan_tools.len() as u64).max(1);
    let (d, m) = (float(report.upfront) / float(n), float(report.names) / float(n));
    let most = n.max(20) * 2;
    let step = (most / 50).max(1);
    let axis: Vec<f64> = (0..=most / step).map(|k| float(k * step)).collect();
    let values = axis
        .iter()
        .map(|u| {
            axis.iter().map(|n| if u > n { f64::NAN } else { n * (d - m) - u * d }).collect::<Vec<f64>>()
        })
        // More tools used than there are: nothing to show, drawn as zero.
        .map(|row: Vec<f64>| row.into_iter().map(|value| if value.is_nan() { 0.0 } else { value }).collect())
        .collect();
    Chart::Grid(Grid {
        title: format!("Tokens that deferring saves (mean definition {d:.0}, mean name {m:.1} tokens)"),
        x: "tools, N".to_owned(),
        y: "tools used, u (grey: more than there are)".to_owned(),
        unit: "tokens saved".to_owned(),
        columns: axis.clone(),
        rows: axis,
        values,
    })
}

fn layers(args: &CostArgs, report: &Report) -> Chart {
    let session = session_of(args);
    let loads = report.plan_used.chunks(session.per_search).map(|group| {
        group
            .iter()
            .filter_map(|&index| report.plan_tools.get(index))
            .map(|tool| tool.definition)
            .sum::<u64>()
    });
    let loads: Vec<u64> = loads.collect();
    let requests = session.turns + loads.len() as u64;
    let series = |name: &str, value: &dyn Fn(u64) -> u64| Series {
        name: name.to_owned(),
        points: (1..=requests).map(|k| (float(k), float(value(k)))).collect(),
    };
    let searches = |k: u64| (k - 1).min(loads.len() as u64);
    let take = |k: u64| usize::try_from(searches(k)).unwrap_or(usize::MAX);
    Chart::Area(Area {
        title: format!(
            "What stands in each request, deferred (upfront: {} tokens more at the start)",
            report.upfront.saturating_sub(report.names + session.overhead)
        ),
        x: "request".to_owned(),
        y: format!("tokens ({})", report.encoding),
        series: vec![
            series("built-ins and system", &|_| session.base),
            series("search tool", &|_| session.overhead),
            series("names of deferred tools", &|_| report.names),
            series("loaded definitions", &|k| loads.iter().take(take(k)).sum::<u64>()),
            series("searches", &|k| searches(k) * session.search),
            series("conversation", &|k| session.growth * (k - searches(k))),
        ],
    })
}

fn skills(args: &CostArgs, gathered: &Gathered, model: &ModelFacts, in_force: &InForce) -> Chart {
    let parameters = args.session.profile.profile().context;
    let id = &args.session.model;
    let budget = listing_budget(id, model, in_force, &parameters);
    let all = listed(&gathered.skills);
    let line = |name: &str, value: &dyn Fn(usize) -> u64| Series {
        name: name.to_owned(),
        points: (0..=all.len()).map(|count| (float(count as u64), float(value(count)))).collect(),
    };
    let within = |count: usize, budget: u64| {
        listing::list(&all[..count], budget, in_force.description_cap, &parameters)
    };
    let mut series = vec![
        line("all descriptions", &|count| listing::characters(&within(count, u64::MAX))),
        line("listing within its budget", &|count| {
            listing::characters(&within(count, budget.unwrap_or(u64::MAX)))
        }),
        line("names only", &|count| all.iter().take(count).map(|skill| utf16_len(&skill.name) + 3).sum()),
    ];
    if let Some(budget) = budget {
        series.push(line("budget", &|_| budget));
    }
    let over = |count: &usize| {
        within(*count, budget.unwrap_or(u64::MAX)).iter().any(|line| line.description == Description::Dropped)
    };
    let markers = (1..=all.len()).find(over).zip(budget).map(|(at, budget)| Marker {
        at: (float(at as u64 - 1), float(budget)),
        text: format!("with more than {} skills descriptions are dropped", at - 1),
    });
    Chart::Lines(Lines {
        title: format!("Listing of {} skills against its budget", all.len()),
        x: "skills".to_owned(),
        y: "characters".to_owned(),
        series,
        markers: markers.into_iter().collect(),
    })
}
