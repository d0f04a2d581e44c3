//! Drawing charts with plotters, on any of its backends.

use super::PlotError;
use super::chart::{Area, Chart, Grid, Lines, Marker, Series};
use super::style::{FONT, INK, PAPER, RULE, SERIES, SOFT};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Sheet<DB> = DrawingArea<DB, Shift>;

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Draw(error.to_string())
}

const TITLE_HEIGHT: i32 = 56;
const LEGEND_ROW: i32 = 30;

/// Draws a chart on the whole sheet.
pub(super) fn chart<DB: DrawingBackend>(sheet: &Sheet<DB>, chart: &Chart) -> Result<(), PlotError> {
    sheet.fill(&PAPER).map_err(failed)?;
    match chart {
        Chart::Lines(chart) => lines(sheet, chart)?,
        Chart::Area(chart) => stacked(sheet, chart)?,
        Chart::Grid(chart) => grid(sheet, chart)?,
    }
    sheet.present().map_err(failed)
}

/// Title and legend in strips of their own; what is left is the plot's.
fn head<DB: DrawingBackend>(sheet: &Sheet<DB>, title: &str, names: &[&str]) -> Result<Sheet<DB>, PlotError> {
    let (width, _) = sheet.dim_in_pixel();
    let (top, rest) = sheet.split_vertically(TITLE_HEIGHT);
    let style = (FONT, 26).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    top.draw(&Text::new(title.to_owned(), (30, TITLE_HEIGHT / 2 + 4), style)).map_err(failed)?;
    // As many names a row as fit; a row of its own height each.
    let mut rows: Vec<Vec<(usize, &str)>> = vec![Vec::new()];
    let mut used = 0;
    let width_of = |name: &str| 60 + 10 * i32::try_from(name.chars().count()).unwrap_or(i32::MAX / 20);
    for (index, name) in names.iter().enumerate() {
        if used + width_of(name) > i32::try_from(width).unwrap_or(i32::MAX) - 60 && used > 0 {
            rows.push(Vec::new());
            used = 0;
        }
        used += width_of(name);
        if let Some(row) = rows.last_mut() {
            row.push((index, name));
        }
    }
    let height = LEGEND_ROW * i32::try_from(rows.len()).unwrap_or(1);
    let (strip, plot) = rest.split_vertically(height);
    for (at, row) in rows.iter().enumerate() {
        let y = LEGEND_ROW * i32::try_from(at).unwrap_or(0) + LEGEND_ROW / 2;
        let mut x = 30;
        for (index, name) in row {
            let colour = SERIES[index % SERIES.len()];
            strip.draw(&Rectangle::new([(x, y - 6), (x + 22, y + 6)], colour.filled())).map_err(failed)?;
            let style = (FONT, 17).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            strip.draw(&Text::new((*name).to_owned(), (x + 30, y), style)).map_err(failed)?;
            x += width_of(name);
        }
    }
    Ok(plot)
}

/// The range of an axis: from zero (or the smallest value) to a little above the largest, never empty.
fn range(values: impl Iterator<Item = f64>, room: f64) -> std::ops::Range<f64> {
    let (low, high) =
        values.filter(|v| v.is_finite()).fold((0.0_f64, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    if high <= low { low..low + 1.0 } else { low..high + (high - low) * room }
}

/// 12,345 with separators, 0.12 with digits where the axis needs them.
fn number(value: &f64) -> String {
    let value = *value;
    if value != 0.0 && value.abs() < 10.0 && (value - value.round()).abs() > 1e-9 {
        return format!("{value:.2}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < -0.5 { format!("-{out}") } else { out }
}

type Plane<'a, DB> = ChartContext<
    'a,
    DB,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn plane<'a, DB: DrawingBackend>(
    plot: &'a Sheet<DB>,
    (x, y): (&str, &str),
    xs: std::ops::Range<f64>,
    ys: std::ops::Range<f64>,
    rules: bool,
) -> Result<Plane<'a, DB>, PlotError> {
    let mut context = ChartBuilder::on(plot)
        .margin_left(20)
        .margin_right(40)
        .margin_bottom(16)
        .margin_top(10)
        .x_label_area_size(62)
        .y_label_area_size(96)
        .build_cartesian_2d(xs, ys)
        .map_err(failed)?;
    let mut mesh = context.configure_mesh();
    if !rules {
        mesh.disable_mesh();
    }
    mesh.x_desc(x)
        .y_desc(y)
        .axis_style(SOFT)
        .bold_line_style(RULE)
        .light_line_style(TRANSPARENT)
        .label_style((FONT, 16).into_font().color(&SOFT))
        .axis_desc_style((FONT, 18).into_font().color(&INK))
        .x_labels(10)
        .y_labels(8)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .draw()
        .map_err(failed)?;
    Ok(context)
}

fn all<'a>(series: &'a [Series]) -> impl Iterator<Item = (f64, f64)> + 'a {
    series.iter().flat_map(|series| series.points.iter().copied())
}

fn lines<DB: DrawingBackend>(sheet: &Sheet<DB>, chart: &Lines) -> Result<(), PlotError> {
    let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
    let plot = head(sheet, &chart.title, &names)?;
    let xs = range(all(&chart.series).map(|point| point.0), 0.0);
    let ys = range(all(&chart.series).map(|point| point.1), 0.12);
    let mut context = plane(&plot, (&chart.x, &chart.y), xs.clone(), ys.clone(), true)?;
    for (index, series) in chart.series.iter().enumerate() {
        let style = SERIES[index % SERIES.len()].stroke_width(3);
        context.draw_series(LineSeries::new(series.points.iter().copied(), style)).map_err(failed)?;
    }
    for Marker { at, text } in &chart.markers {
        context.draw_series([Circle::new(*at, 7, INK.stroke_width(2))]).map_err(failed)?;
        // The words stand on the side that has room.
        let right = at.0 > xs.start + (xs.end - xs.start) * 0.55;
        let (anchor, shift) = if right { (HPos::Right, -14) } else { (HPos::Left, 14) };
        // Curves rise: below to the right of a point, and above to the left of it, there is room.
        let low = !right || at.1 > ys.start + (ys.end - ys.start) * 0.93;
        let style = (FONT, 17)
            .into_font()
            .color(&INK)
            .pos(Pos::new(anchor, if low { VPos::Top } else { VPos::Bottom }));
        let rise = if low { 12 } else { -12 };
        // Paper behind the words: they may stand on a line.
        let wide = 9 * i32::try_from(text.chars().count()).unwrap_or(0) + 8;
        let (from, to) = if right { (shift - wide, shift + 4) } else { (shift - 4, shift + wide) };
        let (top, bottom) = if low { (rise - 3, rise + 22) } else { (rise - 22, rise + 3) };
        let label = EmptyElement::at(*at)
            + Rectangle::new([(from, top), (to, bottom)], PAPER.filled())
            + Text::new(text.clone(), (shift, rise), style);
        context.draw_series([label]).map_err(failed)?;
    }
    Ok(())
}

fn stacked<DB: DrawingBackend>(sheet: &Sheet<DB>, chart: &Area) -> Result<(), PlotError> {
    let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
    let plot = head(sheet, &chart.title, &names)?;
    let length = chart.series.iter().map(|series| series.points.len()).min().unwrap_or(0);
    let mut below = vec![0.0; length];
    let mut layers = Vec::new();
    for series in &chart.series {
        let top: Vec<(f64, f64)> =
            series.points.iter().zip(&below).map(|((x, y), base)| (*x, y + base)).collect();
        let bottom: Vec<(f64, f64)> = top.iter().zip(&below).map(|((x, _), base)| (*x, *base)).collect();
        below = top.iter().map(|point| point.1).collect();
        layers.push((top, bottom));
    }
    let first = all(&chart.series).map(|point| point.0).fold(f64::MAX, f64::min);
    let mut xs = range(all(&chart.series).map(|point| point.0), 0.0);
    if first < f64::MAX && first < xs.end {
        xs.start = first;
    }
    let ys = range(below.into_iter(), 0.08);
    let mut context = plane(&plot, (&chart.x, &chart.y), xs, ys, true)?;
    for (index, (top, bottom)) in layers.into_iter().enumerate() {
        let outline: Vec<(f64, f64)> = top.into_iter().chain(bottom.into_iter().rev()).collect();
        if outline.len() > 2 {
            let colour = SERIES[index % SERIES.len()];
            context.draw_series([Polygon::new(outline, colour.mix(0.85).filled())]).map_err(failed)?;
        }
    }
    Ok(())
}

/// From deep blue (most negative) over the paper's neighbour to deep orange (most positive).
fn shade(value: f64, most: f64) -> RGBColor {
    let share = if most > 0.0 { (value / most).clamp(-1.0, 1.0) } else { 0.0 };
    let end = if share < 0.0 { (0x00, 0x5A, 0x8F) } else { (0xB8, 0x4E, 0x00) };
    // The root keeps small values apart from zero.
    let t = share.abs().sqrt();
    let mix = |from: f64, to: u8| {
        let mixed = from + (f64::from(to) - from) * t;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
        let byte = mixed.round() as u8;
        byte
    };
    RGBColor(mix(236.0, end.0), mix(234.0, end.1), mix(230.0, end.2))
}

fn grid<DB: DrawingBackend>(sheet: &Sheet<DB>, chart: &Grid) -> Result<(), PlotError> {
    let (left, key) = sheet.split_horizontally(i32::try_from(sheet.dim_in_pixel().0).unwrap_or(1_200) - 170);
    let plot = head(&left, &chart.title, &[])?;
    let edges = |values: &[f64]| -> Vec<(f64, f64)> {
        let half = |a: f64, b: f64| f64::midpoint(a, b);
        let at = |index: usize| values.get(index).copied();
        (0..values.len())
            .filter_map(|index| {
                let here = at(index)?;
                let before = index.checked_sub(1).and_then(at);
                let after = at(index + 1);
                let gap = after.map(|a| a - here).or(before.map(|b| here - b)).unwrap_or(1.0);
                Some((
                    before.map_or(here - gap / 2.0, |b| half(b, here)),
                    after.map_or(here + gap / 2.0, |a| half(here, a)),
                ))
            })
            .collect()
    };
    let (columns, rows) = (edges(&chart.columns), edges(&chart.rows));
    let span = |edges: &[(f64, f64)]| match (edges.first(), edges.last()) {
        (Some(first), Some(last)) => first.0..last.1,
        _ => 0.0..1.0,
    };
    let most = chart.values.iter().flatten().fold(0.0_f64, |most, value| most.max(value.abs()));
    let mut context = plane(&plot, (&chart.x, &chart.y), span(&columns), span(&rows), false)?;
    for (row, (low, high)) in chart.values.iter().zip(&rows) {
        for (value, (from, to)) in row.iter().zip(&columns) {
            let cell = Rectangle::new([(*from, *low), (*to, *high)], shade(*value, most).filled());
            context.draw_series([cell]).map_err(failed)?;
        }
    }
    // The line along which the sign turns, between neighbouring rows of a column.
    for (column, (from, to)) in columns.iter().enumerate() {
        for (row, (_, edge)) in rows.iter().enumerate() {
            let sign =
                |row: usize| chart.values.get(row).and_then(|row| row.get(column)).map(|value| *value > 0.0);
            if let (Some(a), Some(b)) = (sign(row), sign(row + 1))
                && a != b
            {
                context
                    .draw_series([PathElement::new([(*from, *edge), (*to, *edge)], INK.stroke_width(3))])
                    .map_err(failed)?;
            }
        }
    }
    let (_, height) = key.dim_in_pixel();
    let height = i32::try_from(height).unwrap_or(720);
    let (top, bottom) = (110, height - 110);
    let steps = 60;
    for step in 0..steps {
        let share = 1.0 - 2.0 * f64::from(step) / f64::from(steps - 1);
        let y = top + (bottom - top) * step / steps;
        let next = top + (bottom - top) * (step + 1) / steps;
        key.draw(&Rectangle::new([(10, y), (34, next)], shade(share * most, most).filled()))
            .map_err(failed)?;
    }
    let label = |y: i32, text: String| {
        let style = (FONT, 16).into_font().color(&SOFT).pos(Pos::new(HPos::Left, VPos::Center));
        key.draw(&Text::new(text, (42, y), style)).map_err(failed)
    };
    label(top, number(&most))?;
    label(i32::midpoint(top, bottom), "0".to_owned())?;
    label(bottom, number(&-most))?;
    let style = (FONT, 16).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    key.draw(&Text::new(chart.unit.clone(), (10, top - 28), style)).map_err(failed)
}
