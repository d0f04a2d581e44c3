//! Findings: what a linter, a probe or an exchange check has to say, each with an id, a place, why and the remedy.

use crate::place::Place;
use serde::{Deserialize, Serialize};

/// How much a finding weighs. The order is that of the exit code: a finding at or above the asked severity gives 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is broken.
    Note,
    /// Likely a mistake, or a loss that nobody reports.
    Warning,
    /// A fault: something that was meant does not take effect, or a clause is broken.
    Error,
}

impl Severity {
    /// The word in reports and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding, in the shape of the command-line contract (`findings`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable id in kebab case, e.g. `hook-exit-1-guard`.
    pub id: String,
    /// How much it weighs.
    pub severity: Severity,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    /// What was found, one lower-case sentence without a full stop.
    pub message: String,
    /// Why it matters.
    pub why: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The party at fault in an exchange: `client` or `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<String>,
    /// The clause of the specification or of the documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clause: Option<String>,
}

impl Finding {
    /// A finding with its id, severity, message and reason; the rest is added with the `with_` methods.
    pub fn new(id: &str, severity: Severity, message: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            severity,
            at: None,
            message: message.into(),
            why: why.into(),
            remedy: None,
            party: None,
            clause: None,
        }
    }

    /// The same finding at a place.
    #[must_use]
    pub fn with_place(mut self, at: Place) -> Self {
        self.at = Some(at);
        self
    }

    /// The same finding with a remedy.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same finding, naming the party at fault.
    #[must_use]
    pub fn with_party(mut self, party: impl Into<String>) -> Self {
        self.party = Some(party.into());
        self
    }

    /// The same finding, naming the clause it rests on.
    #[must_use]
    pub fn with_clause(mut self, clause: impl Into<String>) -> Self {
        self.clause = Some(clause.into());
        self
    }
}
