//! Revisions of the protocol and their eras, as data.
//!
//! Source: MCP specification, "Versioning"; mcp.md 1.1. A revision is a date; its order is that of the dates.

use serde_json::Value;

/// A protocol revision, `YYYY-MM-DD`. Dates that no specification has are representable, since peers may name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    year: u16,
    month: u8,
    day: u8,
}

/// How a connection opens and where versions stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// `initialize`, then a session (2025-11-25 and older).
    Legacy,
    /// Version and capabilities in every request (2026-07-28 and newer).
    Modern,
}

impl Era {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl Version {
    /// Before the first published revision; some clients still accept it.
    pub const V2024_10_07: Self = Self::new(2024, 10, 7);
    /// The first published revision.
    pub const V2024_11_05: Self = Self::new(2024, 11, 5);
    /// Streamable HTTP, batches, audio.
    pub const V2025_03_26: Self = Self::new(2025, 3, 26);
    /// Structured content, form elicitation; batches removed.
    pub const V2025_06_18: Self = Self::new(2025, 6, 18);
    /// The last revision with a handshake.
    pub const V2025_11_25: Self = Self::new(2025, 11, 25);
    /// The first revision without a handshake.
    pub const V2026_07_28: Self = Self::new(2026, 7, 28);

    /// The published revisions, oldest first.
    pub const PUBLISHED: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The published revisions with a handshake, oldest first.
    pub const LEGACY: [Self; 4] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    /// A revision by its date; the date is not checked against the calendar.
    pub const fn new(year: u16, month: u8, day: u8) -> Self {
        Self { year, month, day }
    }

    /// Its era: that of 2026-07-28 and everything later is modern.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    /// The revision that a JSON string names; `None` for anything that is not a date.
    pub fn from_value(value: &Value) -> Option<Self> {
        value.as_str().and_then(|text| text.parse().ok())
    }

    /// The revision as JSON.
    pub fn to_value(self) -> Value {
        self.to_string().into()
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A text that is no revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no protocol revision: expected a date such as `2025-11-25`")]
pub struct NotAVersion {
    /// What was written.
    pub found: String,
}

impl std::str::FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = || {
            let mut parts = text.split('-');
            let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
            let shape = parts.next().is_none() && (year.len(), month.len(), day.len()) == (4, 2, 2);
            let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
            (shape && digits).then_some(())?;
            Some(Self::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?))
        };
        parsed().ok_or_else(|| NotAVersion { found: text.to_owned() })
    }
}

impl serde::Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <std::borrow::Cow<'_, str>>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_printed() {
        for version in Version::PUBLISHED {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        for text in ["", "2025-11-2", "DRAFT-2026-v1", "2025-11-25-1", "+025-11-25", "1.0"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        assert!(Version::LEGACY.iter().all(|v| v.era() == Era::Legacy));
        assert_eq!("2027-01-01".parse::<Version>().map(Version::era), Ok(Era::Modern));
    }
}
