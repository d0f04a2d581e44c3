//! What tokens cost: a dated table that a user may replace, and the cost of a request (context-cost 5.4).

use serde::{Deserialize, Serialize};

/// The table that ships: dated inside.
pub const SHIPPED: &str = include_str!("../../data/models.json");

/// Where long inputs cost more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongInput {
    /// Up to here, in tokens, the plain price was seen.
    pub not_above: u64,
    /// From here on, in tokens, the raised price was seen; in between it is not known.
    pub above_at_most: u64,
    /// What the input price is multiplied by.
    pub factor: f64,
}

/// What is known of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// A part of the model's id that names it.
    #[serde(rename = "match")]
    pub matches: String,
    /// The context window in tokens.
    pub window: Option<u64>,
    /// The shortest prefix that is cached, in tokens.
    pub minimum_cacheable: Option<u64>,
    /// USD per million input tokens.
    pub input: f64,
    /// USD per million output tokens.
    pub output: f64,
    /// USD per million tokens written to the cache for five minutes.
    pub write_5m: f64,
    /// USD per million tokens written to the cache for an hour.
    pub write_1h: f64,
    /// USD per million tokens read from the cache. The ratio to the input price is not the same for every model.
    pub read: f64,
    /// Where the numbers come from.
    pub source: String,
    /// Where long inputs cost more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_input: Option<LongInput>,
}

/// The table of models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// The day on which the table was made.
    pub date: String,
    /// The models; the first whose `match` is part of an id stands for it.
    pub models: Vec<ModelFacts>,
}

impl Models {
    /// Reads a table.
    ///
    /// # Errors
    /// When `text` is not such a table.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// What is known of the model `id`.
    pub fn find(&self, id: &str) -> Option<&ModelFacts> {
        self.models.iter().find(|model| id.contains(&model.matches))
    }
}

/// The generation (major, minor) that a model's id tells: `claude-opus-5-5`, `claude-3-5-haiku-20241022`,
/// `claude-sonnet-4-20250514`; `None` for an id of another shape.
pub fn generation(id: &str) -> Option<(u8, u8)> {
    let id = id.split('[').next().unwrap_or(id);
    let mut numbers =
        id.split('-').filter_map(|part| part.parse::<u32>().ok()).filter(|number| *number < 100);
    let major = u8::try_from(numbers.next()?).ok()?;
    Some((major, numbers.next().and_then(|minor| u8::try_from(minor).ok()).unwrap_or(0)))
}

/// The window of a model as the observed harness takes it: 1,000,000 with `[1m]`, for generation 5 and for unknown ids;
/// 200,000 up to 4.6 (context-cost 2.1). Generations between are in neither list: `None`.
pub fn window(id: &str) -> Option<u64> {
    if id.ends_with("[1m]") {
        return Some(1_000_000);
    }
    match generation(id) {
        None | Some((5.., _)) => Some(1_000_000),
        Some((0..=3, _) | (4, 0..=6)) => Some(200_000),
        Some((4, _)) => None,
    }
}

/// The tokens of one request by what they are charged as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Uncached input.
    pub input: u64,
    /// Written to the cache for five minutes.
    pub write_5m: u64,
    /// Written to the cache for an hour.
    pub write_1h: u64,
    /// Read from the cache.
    pub read: u64,
    /// Output.
    pub output: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.write_5m += other.write_5m;
        self.write_1h += other.write_1h;
        self.read += other.read;
        self.output += other.output;
    }
}

impl ModelFacts {
    /// USD for one request; `None` where its input lies between the lengths at which the plain and the raised price
    /// were seen.
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let whole = usage.input + usage.write_5m + usage.write_1h + usage.read;
        let factor = match self.long_input {
            Some(long) if whole >= long.above_at_most => long.factor,
            Some(long) if whole > long.not_above => return None,
            _ => 1.0,
        };
        let per_token = factor
            * (usage.input as f64).mul_add(
                self.input,
                (usage.write_5m as f64).mul_add(
                    self.write_5m,
                    (usage.write_1h as f64).mul_add(self.write_1h, usage.read as f64 * self.read),
                ),
            );
        Some((usage.output as f64).mul_add(self.output, per_token) / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_generation_and_window() {
        let cases = [
            ("claude-opus-5-5", Some((5, 5)), Some(1_000_000)),
            ("claude-sonnet-4-5-20250929", Some((4, 5)), Some(200_000)),
            ("claude-sonnet-4-5-20250929[1m]", Some((4, 5)), Some(1_000_000)),
            ("claude-sonnet-4-20250514", Some((4, 0)), Some(200_000)),
            ("claude-3-5-haiku-20241022", Some((3, 5)), Some(200_000)),
            ("claude-opus-4-8", Some((4, 8)), None),
            ("something", None, Some(1_000_000)),
        ];
        for (id, expected, tokens) in cases {
            assert_eq!((generation(id), window(id)), (expected, tokens), "{id}");
        }
    }

    #[test]
    fn the_shipped_table_is_readable_and_dated() {
        let models = Models::read(SHIPPED).unwrap();
        assert!(models.date.starts_with("2026-"));
        let haiku = models.find("claude-haiku-5-5").unwrap();
        let million = Usage { input: 1_000_000, ..Usage::default() };
        assert_eq!(haiku.cost(&million), Some(0.5));
        assert_eq!(haiku.cost(&Usage { input: 110_000, ..Usage::default() }), None, "not known in between");
    }
}
