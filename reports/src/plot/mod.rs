//! Plots: a chart is data ([`chart`]), drawn into an SVG text or PNG bytes. Nothing is written to a file here.
//!
//! Readable in both colour schemes: an SVG carries a style that swaps ink and paper where the reader prefers dark; a PNG
//! stands on an opaque sheet of its own. Legends have a strip of their own, so that they can overlap nothing.

pub mod chart;
mod draw;
mod style;

pub use chart::{Area, Chart, Grid, Lines, Marker, Series};

/// Why a plot could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The drawing library says so.
    #[error("cannot draw: {0}")]
    Draw(String),
    /// The bitmap could not be encoded.
    #[error("cannot encode the bitmap: {0}")]
    Encode(String),
}

/// The size of a plot in pixels.
pub const SIZE: (u32, u32) = (1_200, 720);

/// Draws `chart` as an SVG document.
///
/// # Errors
/// When the drawing library refuses.
pub fn svg(chart: &Chart) -> Result<String, PlotError> {
    style::register_font()?;
    let mut text = String::new();
    {
        use plotters::prelude::IntoDrawingArea as _;
        let area = plotters_svg(&mut text).into_drawing_area();
        draw::chart(&area, chart)?;
    }
    Ok(style::both_schemes(&text))
}

fn plotters_svg(text: &mut String) -> plotters::prelude::SVGBackend<'_> {
    plotters::prelude::SVGBackend::with_string(text, SIZE)
}

/// Draws `chart` as a PNG.
///
/// # Errors
/// When the drawing library or the encoder refuses.
pub fn png(chart: &Chart) -> Result<Vec<u8>, PlotError> {
    use plotters::prelude::IntoDrawingArea as _;
    style::register_font()?;
    let mut pixels = vec![0_u8; (SIZE.0 * SIZE.1 * 3) as usize];
    {
        let area = plotters::prelude::BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area();
        draw::chart(&area, chart)?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIZE.0, SIZE.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|error| PlotError::Encode(error.to_string()))?;
    writer.write_image_data(&pixels).map_err(|error| PlotError::Encode(error.to_string()))?;
    writer.finish().map_err(|error| PlotError::Encode(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Chart {
        Chart::Lines(Lines {
            title: "Cost against tools used".to_owned(),
            x: "tools used".to_owned(),
            y: "tokens".to_owned(),
            series: vec![
                Series { name: "upfront".to_owned(), points: vec![(0.0, 5.0), (4.0, 5.0)] },
                Series { name: "deferred".to_owned(), points: vec![(0.0, 1.0), (4.0, 9.0)] },
            ],
            markers: vec![Marker { at: (2.0, 5.0), text: "crossover".to_owned() }],
        })
    }

    #[test]
    fn every_kind_of_chart_becomes_svg_and_png_with_its_words_in_it() {
        let stacked = Chart::Area(Area {
            title: "Layers".to_owned(),
            x: "request".to_owned(),
            y: "tokens".to_owned(),
            series: vec![Series { name: "tools".to_owned(), points: vec![(1.0, 3.0), (2.0, 3.0)] }],
        });
        let grid = Chart::Grid(Grid {
            title: "Heat".to_owned(),
            x: "N".to_owned(),
            y: "u".to_owned(),
            unit: "tokens".to_owned(),
            columns: vec![10.0, 20.0],
            rows: vec![1.0, 2.0],
            values: vec![vec![-5.0, 5.0], vec![1.0, 2.0]],
        });
        for (chart, words) in [(lines(), "crossover"), (stacked, "Layers"), (grid, "Heat")] {
            let text = svg(&chart).unwrap();
            assert!(text.contains(words) && text.contains("prefers-color-scheme: dark"));
            assert_eq!(text, svg(&chart).unwrap(), "the same chart gives the same bytes");
            assert_eq!(png(&chart).unwrap().get(1..4), Some(&b"PNG"[..]));
        }
    }

    #[test]
    fn charts_without_points_do_not_fail() {
        let empty = Chart::Lines(Lines::default());
        assert!(svg(&empty).is_ok());
        assert!(svg(&Chart::Grid(Grid::default())).is_ok());
        assert!(svg(&Chart::Area(Area::default())).is_ok());
    }
}
