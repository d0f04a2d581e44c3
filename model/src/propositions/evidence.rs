//! What a check has to show: witnesses and counterexamples in the words of the domain.

use crate::trace::TraceStep;
use serde::Serialize;

/// A witness or a counterexample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The case in one sentence.
    pub text: String,
    /// The case as a sequence, where it is one.
    #[serde(skip_serializing_if = "Drawing::is_none")]
    pub drawing: Drawing,
}

/// A case that is a sequence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Drawing {
    /// It is none.
    #[default]
    None,
    /// Messages between parties.
    Exchange(Vec<Arrow>),
    /// A run of the harness.
    Run(Vec<TraceStep>),
    /// Steps in the words of the domain.
    Steps(Vec<String>),
}

impl Drawing {
    /// Whether there is nothing to draw.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// One message of an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Arrow {
    /// Who sends it.
    pub from: String,
    /// Who gets it.
    pub to: String,
    /// What it says.
    pub text: String,
}

impl Arrow {
    /// An arrow.
    pub fn new(from: impl Into<String>, to: impl Into<String>, text: impl Into<String>) -> Self {
        Self { from: from.into(), to: to.into(), text: text.into() }
    }
}

impl Evidence {
    /// A case told in one sentence.
    pub fn said(text: impl Into<String>) -> Self {
        Self { text: text.into(), drawing: Drawing::None }
    }

    /// The same case, drawn.
    #[must_use]
    pub fn with_drawing(mut self, drawing: Drawing) -> Self {
        self.drawing = drawing;
        self
    }
}

/// What a check shows when it succeeds: a witness where the statement says "may", or where one is worth seeing.
pub type Shown = Option<Evidence>;

/// What a check comes to.
pub type Outcome = Result<Shown, Failure>;

/// Why a check does not hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// This case refutes it.
    Refuted(Evidence),
    /// A bound was hit before the search was complete; which.
    Bounded(String),
    /// It could not be judged; why.
    Unknown(String),
}

impl Failure {
    /// A refutation told in one sentence.
    pub fn refuted(text: impl Into<String>) -> Self {
        Self::Refuted(Evidence::said(text))
    }
}

impl From<Evidence> for Failure {
    fn from(evidence: Evidence) -> Self {
        Self::Refuted(evidence)
    }
}
