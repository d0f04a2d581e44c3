//! Colours, font and the style that serves both colour schemes.

use super::PlotError;
use plotters::style::{FontStyle, RGBColor, register_font as register};
use std::sync::OnceLock;

/// The paper.
pub(super) const PAPER: RGBColor = RGBColor(0xFD, 0xFC, 0xFA);
/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(0x1B, 0x1F, 0x24);
/// Secondary text.
pub(super) const SOFT: RGBColor = RGBColor(0x59, 0x63, 0x6E);
/// Lines of the grid.
pub(super) const RULE: RGBColor = RGBColor(0xDF, 0xE2, 0xE6);

/// Colours of series, apart also for readers who do not tell red from green (after Okabe and Ito), dark enough on paper
/// and light enough on a dark sheet.
pub(super) const SERIES: [RGBColor; 8] = [
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xB5, 0x89, 0x00),
    RGBColor(0x56, 0xA4, 0xD9),
    RGBColor(0x7A, 0x6F, 0xC4),
    RGBColor(0x80, 0x80, 0x80),
];

/// The one font, whatever the machine has: the same chart gives the same bytes.
pub(super) const FONT: &str = "sans-serif";

static FONT_BYTES: &[u8] = include_bytes!("../../assets/dejavu-sans-subset.ttf");

pub(super) fn register_font() -> Result<(), PlotError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED.get_or_init(|| register(FONT, FontStyle::Normal, FONT_BYTES).is_ok());
    if registered {
        Ok(())
    } else {
        Err(PlotError::Draw("the font that is built in cannot be read".to_owned()))
    }
}

/// Adds a style to an SVG that swaps paper, ink and rules where the reader prefers a dark scheme.
pub(super) fn both_schemes(svg: &str) -> String {
    let swaps =
        [("#FDFCFA", "#16191D"), ("#1B1F24", "#E8EAED"), ("#59636E", "#A8B0B9"), ("#DFE2E6", "#343A41")];
    let mut style = String::from("<style>@media (prefers-color-scheme: dark) {");
    for (light, dark) in swaps {
        style.push_str(&format!(
            " [fill=\"{light}\"] {{ fill: {dark}; }} [stroke=\"{light}\"] {{ stroke: {dark}; }}"
        ));
    }
    style.push_str(" }</style>");
    match svg.find("<svg").and_then(|at| svg[at..].find('>').map(|end| at + end + 1)) {
        Some(at) => format!("{}\n{style}{}", &svg[..at], &svg[at..]),
        None => svg.to_owned(),
    }
}
