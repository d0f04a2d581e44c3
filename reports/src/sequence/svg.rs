//! The sequence as a picture, laid out by hand: a column a lane, a row an arrow, a band a step.
//!
//! Every row has a height of its own, so nothing overlaps: the label stands above its arrow, in up to three lines that
//! are cut to the room between the arrow's ends, or to a readable minimum, and stays inside the picture. What was cut
//! is in the row's `<title>`.

use super::{Arrow, ArrowKind, Sequence, SequenceStep, Tone, broken_words};
use crate::words;
use maud::{Markup, PreEscaped, html};

/// Width of a lane, in pixels of the picture; so are all sizes here.
const LANE: usize = 158;
/// Room on the left for the steps' numbers.
const GUTTER: usize = 52;
/// Height of the lanes' headings.
const HEADING: usize = 34;
/// Height of a line of a label.
const LINE: usize = 15;
/// Height of a row without its label.
const ROW: usize = 15;
/// Room above and below the rows of a step.
const PAD: usize = 4;
/// A character's width in the label's font, rather too wide than too narrow: fonts differ.
const CHARACTER: usize = 7;
/// The narrowest room for a label, in characters, even where the arrow is shorter.
const FEWEST: usize = 40;
/// The most lines of a label.
const LINES: usize = 3;
/// The most steps that are drawn, and those beyond that break an invariant.
const MOST_STEPS: usize = 200;

/// The look, for light and dark surroundings. [`svg`] carries it inside; a page that shows several pictures says it
/// once. All names begin with `sq`.
pub const STYLE: &str = include_str!("svg.css");

/// Where the steps' numbers lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The anchor of the scenario; that of its step 3 is `anchor/3`.
    pub anchor: String,
    /// What the picture shows, for those who do not see it.
    pub title: String,
    /// The most steps that are drawn, where it is fewer than usual.
    pub most_steps: usize,
}

/// A picture that stands alone, with its style.
pub fn svg(sequence: &Sequence) -> String {
    draw(sequence, None).into_string()
}

/// A picture for inside a page that has [`STYLE`] once.
pub fn svg_for_page(sequence: &Sequence, links: &Links) -> String {
    draw(sequence, Some(links)).into_string()
}

/// A row with its place and the lines of its label.
struct Row<'a> {
    top: usize,
    look: Look<'a>,
    lines: Vec<String>,
    full: String,
}

enum Look<'a> {
    Arrow(&'a Arrow),
    Broken,
}

impl Row<'_> {
    fn height(&self) -> usize {
        ROW + self.lines.len() * LINE
    }
}

fn draw(sequence: &Sequence, links: Option<&Links>) -> Markup {
    let lanes = sequence.lanes.len().max(1);
    // A label has at least its fewest characters of room, even with one lane.
    let width = GUTTER + (lanes * LANE).max(FEWEST * CHARACTER + 16);
    let most = links.map_or(MOST_STEPS, |links| links.most_steps.min(MOST_STEPS));
    let mut top = HEADING + 6;
    let mut bands = Vec::new();
    let mut left_out = 0usize;
    for (step, kept) in sequence.steps.iter().zip(sequence.kept(most, 0)) {
        if !kept {
            left_out += 1;
            continue;
        }
        let rows = rows(step, top + PAD, width);
        let height = 2 * PAD + rows.iter().map(Row::height).sum::<usize>();
        bands.push((step, top, height, rows));
        top += height;
    }
    let bottom = top + 8;
    let note = left_out > 0;
    let height = bottom + HEADING + if note { 24 } else { 4 };
    let title = links.map_or("Sequence of the run", |links| links.title.as_str());
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class="sq" role="img" aria-label=(words::plain(title))
            viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) {
            @if links.is_none() { style { (PreEscaped(STYLE)) } rect class="sq-paper" width=(width) height=(height) {} }
            @for (index, (step, top, height, _)) in bands.iter().enumerate() {
                (band(step, index, width, *top, *height))
            }
            @for lane in 0..sequence.lanes.len() {
                line class="sq-life" x1=(centre(lane)) x2=(centre(lane)) y1=(HEADING) y2=(bottom) {}
                (heading(sequence, lane, 2))
                (heading(sequence, lane, bottom))
            }
            @for (step, top, _, rows) in &bands { (band_rows(step, *top, rows, width, links)) }
            @if note {
                text class="sq-note" x=(GUTTER) y=(bottom + HEADING + 14) {
                    (words::counted(left_out as u64, "step", "steps")) " left out of the picture"
                }
            }
        }
    }
}

/// The middle of a lane.
fn centre(lane: usize) -> usize {
    GUTTER + lane * LANE + LANE / 2
}

fn heading(sequence: &Sequence, lane: usize, top: usize) -> Markup {
    let name = sequence.lane_name(lane);
    html! {
        g {
            title { (name) }
            rect class="sq-lane" x=(centre(lane) - LANE / 2 + 6) y=(top) width=(LANE - 12) height="26" rx="4" {}
            text class="sq-head" x=(centre(lane)) y=(top + 18) { (words::cut(&name, (LANE - 20) / CHARACTER)) }
        }
    }
}

fn band(step: &SequenceStep, index: usize, width: usize, top: usize, height: usize) -> Markup {
    let class = match (step.broken.is_empty(), index.is_multiple_of(2)) {
        (false, _) => "sq-band sq-bad",
        (true, true) => "sq-band sq-even",
        (true, false) => "sq-band",
    };
    html! { rect class=(class) data-step=(step.step) y=(top) width=(width) height=(height) {} }
}

fn band_rows(
    step: &SequenceStep,
    top: usize,
    rows: &[Row<'_>],
    width: usize,
    links: Option<&Links>,
) -> Markup {
    let number = html! {
        text class="sq-step" x="8" y=(top + PAD + 12) {
            (step.step)
            @if let Some(at) = step.at_ms { title { "at " (words::seconds(at)) } }
        }
    };
    html! {
        @if let Some(links) = links {
            a href=(format!("#{}/{}", links.anchor, step.step)) { (number) }
        } @else {
            (number)
        }
        @for row in rows {
            (draw_row(row, width))
        }
    }
}

fn rows(step: &SequenceStep, top: usize, width: usize) -> Vec<Row<'_>> {
    let arrows = step.arrows.iter().map(|arrow| {
        let between = arrow.from.abs_diff(arrow.to) * LANE;
        let room = (between / CHARACTER).saturating_sub(2).max(FEWEST);
        (Look::Arrow(arrow), wrap(&arrow.label, room, LINES), arrow.label.clone())
    });
    let broken = step.broken.iter().map(|invariant| {
        let full = broken_words(*invariant);
        let room = (width - GUTTER - 24) / CHARACTER;
        (Look::Broken, wrap(&full, room, 3), full)
    });
    let mut next = top;
    let row = |(look, lines, full)| {
        let row = Row { top: next, look, lines, full };
        next += row.height();
        row
    };
    arrows.chain(broken).map(row).collect()
}

fn draw_row(row: &Row<'_>, width: usize) -> Markup {
    let top = row.top;
    let arrow = match row.look {
        Look::Arrow(arrow) => arrow,
        Look::Broken => {
            return html! {
                g class="sq-row sq-broken" {
                    (label(row, GUTTER + 8, top, "start"))
                }
            };
        }
    };
    let class = match arrow.tone {
        Tone::Plain => "sq-row",
        Tone::Trouble => "sq-row sq-trouble",
        Tone::Broken => "sq-row sq-broken",
    };
    let (from, to) = (centre(arrow.from), centre(arrow.to));
    let longest = row.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0) * CHARACTER;
    // The label's middle: that of the arrow, as far as the label then stays inside the picture.
    let half = longest / 2 + 4;
    let middle = ((from + to) / 2).min(width.saturating_sub(half)).max(GUTTER + half);
    html! {
        g class=(class) {
            title { (row.full) }
            (label(row, middle, top, "middle"))
            @if from == to {
                circle class="sq-dot" cx=(from) cy=(top + row.lines.len() * LINE + 6) r="3.5" {}
            } @else {
                (shaft(arrow.kind, from, to, top + row.lines.len() * LINE + 6))
            }
        }
    }
}

/// The line and its head. Inputs are dashed: they answer.
fn shaft(kind: ArrowKind, from: usize, to: usize, y: usize) -> Markup {
    let class = if kind == ArrowKind::Input { "sq-line sq-input" } else { "sq-line" };
    let back = if to > from { to - 9 } else { to + 9 };
    html! {
        line class=(class) x1=(from) x2=(back) y1=(y) y2=(y) {}
        path class="sq-tip" d=(format!("M{to} {y}L{back} {}L{back} {}Z", y - 4, y + 4)) {}
    }
}

fn label(row: &Row<'_>, x: usize, top: usize, anchor: &str) -> Markup {
    html! {
        @for (index, line) in row.lines.iter().enumerate() {
            text x=(x) y=(top + 12 + index * LINE) text-anchor=(anchor) { (line) }
        }
    }
}

/// At most `lines` lines of at most `room` characters, broken between words where that is possible.
fn wrap(text: &str, room: usize, lines: usize) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while out.len() + 1 < lines && rest.len() > room {
        let space = rest[..=room].iter().rposition(|char| *char == ' ');
        let at = space.filter(|at| *at * 2 > room).unwrap_or(room);
        out.push(rest[..at].iter().collect::<String>().trim_end().to_owned());
        rest.drain(..at);
        let blank = rest.iter().take_while(|char| **char == ' ').count();
        rest.drain(..blank);
    }
    let last: String = rest.iter().collect();
    out.push(words::cut(&last, room));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn a_run_as_a_picture() {
        insta::assert_snapshot!("broken", lines(&svg(&Sequence::of(&examples::broken_run()))));
    }

    /// An element a line, so that a difference can be read.
    fn lines(svg: &str) -> String {
        let start = svg.find("</style>").map_or(0, |at| at + "</style>".len());
        svg[start..].replace("><", ">\n<")
    }

    #[test]
    fn labels_wrap_between_words_and_say_that_they_are_cut() {
        assert_eq!(wrap("one two three", 7, 2), ["one two", "three"]);
        assert_eq!(wrap("one two three four", 7, 2), ["one two", "three…"]);
        assert_eq!(wrap("abcdefghij", 4, 2), ["abcd", "efg…"]);
        assert_eq!(wrap("", 4, 2), [""]);
    }

    /// The attribute `name` of an element.
    fn number(element: &str, name: &str) -> Option<usize> {
        let start = element.find(&format!(" {name}=\""))? + name.len() + 3;
        element[start..].split('"').next()?.parse().ok()
    }

    #[test]
    fn no_label_leaves_the_picture_and_no_two_share_a_line() {
        for run in
            [examples::refused_run(), examples::server_run(), examples::broken_run(), examples::hostile_run()]
        {
            let picture = svg(&Sequence::of(&run));
            let width = number(&picture, "width").expect("the picture has a width");
            let mut lines = std::collections::BTreeSet::new();
            for element in picture.split("<text ").skip(1).filter(|element| element.contains("text-anchor")) {
                let element = format!(" {element}");
                let text = element.split('>').nth(1).and_then(|rest| rest.split("</text").next());
                let text = text
                    .unwrap_or_default()
                    .replace("&lt;", "<")
                    .replace("&gt;", ">")
                    .replace("&quot;", "\"");
                let long = text.replace("&amp;", "&").chars().count() * CHARACTER;
                let x = number(&element, "x").expect("a text has a place");
                let (left, right) =
                    if element.contains("\"middle\"") { (x - long / 2, x + long / 2) } else { (x, x + long) };
                assert!(left >= GUTTER && right <= width, "{left} {right} {width} {text}");
                assert!(lines.insert(number(&element, "y")), "two labels on one line: {text}");
            }
        }
    }

    #[test]
    fn hostile_names_are_text() {
        let picture = svg(&Sequence::of(&examples::hostile_run()));
        assert!(!picture.contains("<script") && !picture.contains('\u{1b}'), "{picture}");
    }
}
