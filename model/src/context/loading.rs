//! Whether tool definitions stand upfront or are deferred: the setting, the model and the endpoint decide.

use crate::profile::context::ContextParameters;

/// What `ENABLE_TOOL_SEARCH` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Nothing.
    Unset,
    /// Defer.
    Defer,
    /// Everything upfront.
    Upfront,
    /// Defer where the definitions reach this percentage of the window.
    Auto {
        /// The percentage.
        percent: u64,
    },
}

impl Setting {
    /// Reads the value of the variable (context-cost 2.1). A word that nobody knows defers, like `true`.
    pub fn parse(value: Option<&str>, parameters: &ContextParameters) -> Self {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return Self::Unset };
        match value {
            "false" | "0" => return Self::Upfront,
            "auto" => return Self::Auto { percent: parameters.threshold_default_percent.value },
            _ => {}
        }
        let Some(number) = value.strip_prefix("auto:") else { return Self::Defer };
        let number = number.trim_start();
        let (negative, digits) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        // The leading integer: `2.5` is 2. Absurdly long numbers are far above 100 all the same.
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        match digits.get(..end) {
            None | Some("") => Self::Auto { percent: parameters.threshold_default_percent.value },
            Some(_) if negative => Self::Defer,
            Some(text) => match text.parse().unwrap_or(u64::MAX) {
                0 => Self::Defer,
                100.. => Self::Upfront,
                percent => Self::Auto { percent },
            },
        }
    }
}

/// The size of the deferrable definitions, as the decision learns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The count endpoint's answer, in tokens.
    Counted(u64),
    /// No count could be had: characters of name, description and compact schema.
    Characters(u64),
}

/// What the decision rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The setting.
    pub setting: Setting,
    /// The model's generation, where its id says it.
    pub generation: Option<(u8, u8)>,
    /// The model's window in tokens, where it is known.
    pub window: Option<u64>,
    /// Whether the endpoint is the vendor's own host.
    pub first_party: bool,
    /// Whether experimental API features are switched off.
    pub betas_disabled: bool,
    /// Whether a deny rule names the search tool.
    pub search_denied: bool,
    /// The size of the deferrable definitions.
    pub size: Size,
}

/// Where the definitions stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Loading {
    /// All definitions in the first layer.
    Upfront,
    /// Names only, definitions on demand.
    Deferred,
    /// It cannot be said.
    Unknown,
}

/// The decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Decision {
    /// Where the definitions stand.
    pub loading: Loading,
    /// Whether names are announced as deferred although the definitions stand upfront.
    pub names_announced_too: bool,
    /// Why, in words.
    pub reason: String,
}

impl Decision {
    fn new(loading: Loading, reason: impl Into<String>) -> Self {
        Self { loading, names_announced_too: false, reason: reason.into() }
    }
}

/// Decides where the definitions stand (context-cost 2.1).
///
/// Threshold, exact to the token: deferred if and only if `c - offset >= percent % of W`, with `c` the count of all
/// deferrable definitions; without a count, `characters / ratio >= percent % of W`.
pub fn decide(facts: &Facts, parameters: &ContextParameters) -> Decision {
    if !parameters.deferral_exists.value {
        return Decision::new(Loading::Upfront, "this harness knows no deferral");
    }
    if facts.betas_disabled {
        return Decision::new(Loading::Upfront, "experimental API features are switched off");
    }
    if facts.generation.is_some_and(|generation| generation < parameters.deferral_from_generation.value) {
        return Decision::new(Loading::Upfront, "the model is too old for deferred definitions");
    }
    match facts.setting {
        Setting::Upfront => Decision::new(Loading::Upfront, "switched off by ENABLE_TOOL_SEARCH"),
        _ if facts.search_denied => Decision::new(Loading::Upfront, "the search tool is denied"),
        Setting::Defer => Decision::new(Loading::Deferred, "switched on by ENABLE_TOOL_SEARCH"),
        Setting::Unset if facts.first_party || parameters.unset_defers_on_foreign_host.value => {
            Decision::new(Loading::Deferred, "deferring is the default")
        }
        Setting::Unset => Decision::new(Loading::Upfront, "the endpoint is not the vendor's own host"),
        Setting::Auto { percent } => by_threshold(percent, facts, parameters),
    }
}

fn by_threshold(percent: u64, facts: &Facts, parameters: &ContextParameters) -> Decision {
    let Some(window) = facts.window else {
        return Decision::new(
            Loading::Unknown,
            "the model's window is not known, so its share is not either",
        );
    };
    // Compared as products, so that no rounding decides: (c - offset) * 100 >= percent * W.
    let share = u128::from(percent) * u128::from(window);
    let (reached, what) = match facts.size {
        Size::Counted(count) => {
            let offset = parameters.threshold_count_offset.value;
            let net = u128::from(count.saturating_sub(offset));
            (net * 100 >= share, format!("{count} tokens counted, less {offset}"))
        }
        Size::Characters(characters) => {
            let tenths = u128::from(parameters.threshold_tenths_of_chars_per_token.value.max(1));
            (
                u128::from(characters) * 10 * 100 >= share * tenths,
                format!("{characters} characters, not counted"),
            )
        }
    };
    let limit = share / 100;
    if reached {
        Decision::new(Loading::Deferred, format!("{what}: at least {percent} % of the window ({limit})"))
    } else {
        Decision {
            loading: Loading::Upfront,
            names_announced_too: parameters.names_announced_below_threshold.value,
            reason: format!("{what}: below {percent} % of the window ({limit})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::context::{CLAUDE_CODE, DOCUMENTED, TEACHING};

    fn facts(setting: Setting, size: Size, window: u64) -> Facts {
        Facts {
            setting,
            generation: Some((5, 5)),
            window: Some(window),
            first_party: false,
            betas_disabled: false,
            search_denied: false,
            size,
        }
    }

    #[test]
    fn the_threshold_is_exact_to_the_token() {
        for (setting, window, flip) in [
            ("auto", 1_000_000, 100_500),
            ("auto:5", 1_000_000, 50_500),
            ("auto:10.9", 200_000, 20_500),
            ("auto:x", 1_000_000, 100_500),
        ] {
            let setting = Setting::parse(Some(setting), &CLAUDE_CODE);
            let at = |count| decide(&facts(setting, Size::Counted(count), window), &CLAUDE_CODE);
            assert_eq!(at(flip).loading, Loading::Deferred);
            assert_eq!(at(flip - 1).loading, Loading::Upfront);
            assert!(at(flip - 1).names_announced_too, "the observed harness pays for both");
            assert!(!decide(&facts(setting, Size::Counted(1), window), &DOCUMENTED).names_announced_too);
        }
        let fallback = |n| {
            decide(&facts(Setting::Auto { percent: 10 }, Size::Characters(n), 200_000), &CLAUDE_CODE).loading
        };
        assert_eq!((fallback(49_999), fallback(50_000)), (Loading::Upfront, Loading::Deferred));
    }

    #[test]
    fn numbers_outside_the_percentages_need_no_count() {
        let parse = |text| Setting::parse(Some(text), &CLAUDE_CODE);
        assert_eq!(parse("auto:0"), Setting::Defer);
        assert_eq!(parse("auto:-5"), Setting::Defer);
        assert_eq!(parse("auto:100"), Setting::Upfront);
        assert_eq!(parse("auto:99999999999999999999999"), Setting::Upfront);
        assert_eq!(parse("auto:99"), Setting::Auto { percent: 99 });
        assert_eq!(parse(""), Setting::Unset);
        assert_eq!(parse("whatever"), Setting::Defer);
    }

    #[test]
    fn an_unknown_window_is_said_to_be_unknown() {
        let mut unknown = facts(Setting::Auto { percent: 10 }, Size::Counted(5), 1);
        unknown.window = None;
        assert_eq!(decide(&unknown, &CLAUDE_CODE).loading, Loading::Unknown);
        assert_eq!(decide(&unknown, &TEACHING).loading, Loading::Upfront);
    }
}
