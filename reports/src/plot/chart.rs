//! What a plot shows, apart from how it is drawn.

/// A named sequence of points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// Points in the order of x.
    pub points: Vec<(f64, f64)>,
}

/// A point that is pointed out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marker {
    /// Where.
    pub at: (f64, f64),
    /// What it is.
    pub text: String,
}

/// Lines over one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The title.
    pub title: String,
    /// The label of the x axis, with its unit.
    pub x: String,
    /// The label of the y axis, with its unit.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
    /// Points that are pointed out.
    pub markers: Vec<Marker>,
}

/// Layers on top of each other; every series has the same x values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Area {
    /// The title.
    pub title: String,
    /// The label of the x axis, with its unit.
    pub x: String,
    /// The label of the y axis, with its unit.
    pub y: String,
    /// The layers, from below.
    pub series: Vec<Series>,
}

/// A heat map of signed values: negative and positive in two hues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// The title.
    pub title: String,
    /// The label of the columns.
    pub x: String,
    /// The label of the rows.
    pub y: String,
    /// The unit of the values.
    pub unit: String,
    /// The values of the columns.
    pub columns: Vec<f64>,
    /// The values of the rows, from below.
    pub rows: Vec<f64>,
    /// `values[row][column]`.
    pub values: Vec<Vec<f64>>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Lines.
    Lines(Lines),
    /// Stacked layers.
    Area(Area),
    /// A heat map.
    Grid(Grid),
}
