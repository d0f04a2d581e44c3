//! A layered drawing: one row a depth, states as boxes with their fields, steps as curves with their choices. Within a
//! row, states are put near those they come from (barycentre heuristic of Sugiyama's method).

use super::escaped;
use std::io::{self, Write};
use windtunnel_model::state_graph::{StateGraph, StateKind};

/// Units are pixels.
const CHARACTER: f64 = 6.7;
const LINE: f64 = 15.0;
const PADDING: f64 = 8.0;
const GAP: f64 = 46.0;
const ROW_GAP: f64 = 78.0;
const MARGIN: f64 = 30.0;
/// How often the order within the rows is improved, down and up.
const SWEEPS: usize = 8;

/// Where a state is drawn.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Draws the graph. Good for some dozens of states; nothing is left out of larger ones.
///
/// # Errors
/// When `out` cannot be written.
pub fn svg(graph: &StateGraph, out: &mut impl Write) -> io::Result<()> {
    let lines = lines(graph);
    let places = layout(graph, &lines);
    let width = places.iter().map(|place| place.x + place.width).fold(200.0, f64::max) + MARGIN + 60.0;
    let height = places.iter().map(|place| place.y + place.height).fold(80.0, f64::max) + MARGIN;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"ui-monospace, monospace\" font-size=\"11\">"
    )?;
    writeln!(out, "<title>{}</title>", escaped(&graph.name))?;
    writeln!(
        out,
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#667\"/></marker></defs>"
    )?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
    edges(graph, &places, out)?;
    for ((node, place), lines) in graph.nodes.iter().zip(&places).zip(&lines) {
        let (stroke, fill) = match node.kind {
            StateKind::Inner => ("#99a", "#f6f7fb"),
            StateKind::Initial => ("#246", "#e4eefb"),
            StateKind::Final => ("#274", "#e6f5ea"),
            StateKind::Deadlock => ("#b60", "#fdf0df"),
            StateKind::Violation => ("#b22", "#fde6e6"),
        };
        writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"5\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.4\"/>",
            place.x, place.y, place.width, place.height
        )?;
        for (row, line) in lines.iter().enumerate() {
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#223\">{}</text>",
                place.x + PADDING,
                place.y + PADDING + LINE * (row as f64 + 0.75),
                escaped(line)
            )?;
        }
    }
    if graph.truncated {
        writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"18\" fill=\"#b22\">not all states are drawn: there are too many</text>"
        )?;
    }
    writeln!(out, "</svg>")
}

/// What stands in each box: all fields at the start, then only what differs from the first state that leads there.
fn lines(graph: &StateGraph) -> Vec<Vec<String>> {
    let mut first_from = vec![None; graph.nodes.len()];
    for edge in &graph.edges {
        if let Some(from @ None) = first_from.get_mut(edge.to)
            && edge.from < edge.to
        {
            *from = Some(edge.from);
        }
    }
    graph
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            let fields = match first_from[index] {
                Some(from) => graph.changed(from, index),
                None => node.fields.clone(),
            };
            let mut lines: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            if lines.is_empty() {
                lines.push("(no field changed)".to_owned());
            }
            lines.iter_mut().for_each(|line| shorten(line, 44));
            lines
        })
        .collect()
}

fn shorten(text: &mut String, most: usize) {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push('…');
    }
}

fn layout(graph: &StateGraph, lines: &[Vec<String>]) -> Vec<Place> {
    let depth = graph.nodes.iter().map(|node| node.depth as usize).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); depth + 1];
    for (index, node) in graph.nodes.iter().enumerate() {
        rows[node.depth as usize].push(index);
    }
    order(graph, &mut rows);
    let size = |index: usize| {
        let longest = lines[index].iter().map(|line| line.chars().count()).max().unwrap_or(0);
        (
            (longest as f64 * CHARACTER + 2.0 * PADDING).max(60.0),
            lines[index].len() as f64 * LINE + 2.0 * PADDING,
        )
    };
    let row_width = |row: &Vec<usize>| row.iter().map(|&index| size(index).0 + GAP).sum::<f64>();
    let widest = rows.iter().map(row_width).fold(0.0, f64::max);
    let mut places = vec![Place::default(); graph.nodes.len()];
    let mut y = MARGIN;
    for row in &rows {
        let mut x = MARGIN + (widest - row_width(row)) / 2.0;
        let mut tallest: f64 = 0.0;
        for &index in row {
            let (width, height) = size(index);
            places[index] = Place { x, y, width, height };
            x += width + GAP;
            tallest = tallest.max(height);
        }
        y += tallest + ROW_GAP;
    }
    places
}

/// Orders each row by the mean position of the neighbours in the row above, then below, and so on.
fn order(graph: &StateGraph, rows: &mut [Vec<usize>]) {
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        neighbours[edge.from].push(edge.to);
        neighbours[edge.to].push(edge.from);
    }
    let mut position = vec![0.0f64; graph.nodes.len()];
    let settle = |row: &[usize], position: &mut [f64]| {
        for (at, &index) in row.iter().enumerate() {
            position[index] = (at as f64 + 0.5) / row.len() as f64;
        }
    };
    rows.iter().for_each(|row| settle(row, &mut position));
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        for step in 1..rows.len() {
            let (at, other) =
                if down { (step, step - 1) } else { (rows.len() - 1 - step, rows.len() - step) };
            let weight = |index: usize| {
                let near: Vec<f64> = neighbours[index]
                    .iter()
                    .filter(|&&neighbour| graph.nodes[neighbour].depth as usize == other)
                    .map(|&neighbour| position[neighbour])
                    .collect();
                if near.is_empty() { position[index] } else { near.iter().sum::<f64>() / near.len() as f64 }
            };
            let mut weighted: Vec<(f64, usize)> =
                rows[at].iter().map(|&index| (weight(index), index)).collect();
            weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[at] = weighted.into_iter().map(|(_, index)| index).collect();
            settle(&rows[at], &mut position);
        }
    }
}

/// Steps between the same two states share a curve and list their choices.
fn edges(graph: &StateGraph, places: &[Place], out: &mut impl Write) -> io::Result<()> {
    let mut bundles: Vec<((usize, usize), Vec<&str>)> = Vec::new();
    for edge in &graph.edges {
        match bundles.iter_mut().find(|(ends, _)| *ends == (edge.from, edge.to)) {
            Some((_, labels)) => labels.push(&edge.label),
            None => bundles.push(((edge.from, edge.to), vec![&edge.label])),
        }
    }
    for ((from, to), labels) in bundles {
        let (a, b) = (places[from], places[to]);
        let (path, x, y) = if from == to {
            let (x, y) = (a.x + a.width, a.y + a.height / 2.0);
            (format!("M{x:.1} {:.1}c34 -22 34 34 0 14", y - 7.0), x + 28.0, y)
        } else if b.y > a.y {
            let (x1, y1, x2, y2) = (a.x + a.width / 2.0, a.y + a.height, b.x + b.width / 2.0, b.y);
            let bend = (y2 - y1) / 2.0;
            (
                format!("M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}", y1 + bend, y2 - bend),
                x1 + (x2 - x1) * 0.7,
                y1 + (y2 - y1) * 0.68,
            )
        } else {
            // Back or along: from the right side round to the right side.
            let (x1, y1, x2, y2) = (a.x + a.width, a.y + a.height / 2.0, b.x + b.width, b.y + b.height / 2.0);
            let out = x1.max(x2) + 40.0;
            (
                format!("M{x1:.1} {y1:.1}C{out:.1} {y1:.1} {out:.1} {y2:.1} {x2:.1} {y2:.1}"),
                out - 12.0,
                (y1 + y2) / 2.0,
            )
        };
        writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"#667\" marker-end=\"url(#tip)\"/>")?;
        let shown = 3;
        let mut lines: Vec<String> = labels.iter().take(shown).map(|label| (*label).to_owned()).collect();
        if labels.len() > shown {
            lines.push(format!("and {} more", labels.len() - shown));
        }
        let top = y - LINE * 0.8 * (lines.len() as f64 - 1.0) / 2.0;
        for (row, line) in lines.iter_mut().enumerate() {
            shorten(line, 40);
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#345\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                top + LINE * 0.8 * row as f64,
                escaped(line)
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn boxes_do_not_overlap_and_every_state_and_step_is_drawn() {
        let graph = sample();
        let places = layout(&graph, &lines(&graph));
        for (index, a) in places.iter().enumerate() {
            for b in &places[index + 1..] {
                let apart = a.x + a.width <= b.x
                    || b.x + b.width <= a.x
                    || a.y + a.height <= b.y
                    || b.y + b.height <= a.y;
                assert!(apart, "{a:?} overlaps {b:?}");
            }
        }
        let mut out = Vec::new();
        svg(&graph, &mut out).expect("a vector can be written");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.matches("rx=\"5\"").count(), 5);
        assert_eq!(text.matches("marker-end").count(), 6);
        assert!(text.contains("phase: ran &amp; broke"));
    }
}
