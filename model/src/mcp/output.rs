//! Limits on the size of a result (000, section 3.5; mcp.md 3.7).

/// What is done with a result's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes to the assistant.
    Passed,
    /// It goes to the assistant with a warning.
    Warned,
    /// It is saved; the assistant gets an error text that names the file.
    TooManyTokens,
    /// It is saved; the assistant gets the file's name and the beginning.
    Persisted,
}

/// The thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Tokens above which a warning is shown; `None`: none seen.
    pub warning_tokens: Option<u64>,
    /// Tokens above which the text is replaced (`MAX_MCP_OUTPUT_TOKENS`).
    pub tokens: u64,
    /// Serialised characters above which it is persisted all the same; `None`: not documented.
    pub characters: Option<u64>,
    /// Exact tokens are counted only where characters/4 is above half of `tokens`; otherwise the estimate decides.
    pub estimates_first: bool,
}

impl OutputLimits {
    /// 000: a warning above 10,000 tokens, the limit at 25,000.
    pub const DOCUMENTED: Self =
        Self { warning_tokens: Some(10_000), tokens: 25_000, characters: None, estimates_first: false };
    /// Claude Code 2.1.332.
    pub const CLAUDE_CODE: Self =
        Self { warning_tokens: None, tokens: 25_000, characters: Some(50_000), estimates_first: true };

    /// Decides over a text. `count` is the exact count of tokens, asked for only where it is needed; `tool_limit` is
    /// the tool's `_meta["anthropic/maxResultSizeChars"]`, which replaces both tests.
    pub fn judge(&self, characters: u64, tool_limit: Option<u64>, count: impl FnOnce() -> u64) -> Outcome {
        if let Some(limit) = tool_limit {
            return if characters > limit.min(500_000) { Outcome::Persisted } else { Outcome::Passed };
        }
        // Half of the limit, without rounding: characters / 4 > tokens / 2.
        if !self.estimates_first || characters > self.tokens.saturating_mul(2) {
            let tokens = count();
            if tokens > self.tokens {
                return Outcome::TooManyTokens;
            }
            if self.warning_tokens.is_some_and(|limit| tokens > limit) {
                return Outcome::Warned;
            }
        }
        match self.characters {
            Some(limit) if characters > limit => Outcome::Persisted,
            _ => Outcome::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// mcp.md 3.7: 48,960 passed, 50,960 did not; 190,000 passed under a tool limit of 200,000.
    #[test]
    fn the_observed_thresholds() {
        let limits = OutputLimits::CLAUDE_CODE;
        assert_eq!(limits.judge(48_960, None, || 12_000), Outcome::Passed);
        assert_eq!(limits.judge(50_960, None, || 12_000), Outcome::Persisted);
        assert_eq!(limits.judge(190_000, Some(200_000), || 99_999), Outcome::Passed);
        assert_eq!(limits.judge(200_001, Some(200_000), || 0), Outcome::Persisted);
        assert_eq!(limits.judge(120_000, None, || 25_001), Outcome::TooManyTokens);
        // The fake counter of an offline run always says 10: the first test never fires.
        assert_eq!(limits.judge(120_000, None, || 10), Outcome::Persisted);
        assert_eq!(OutputLimits::DOCUMENTED.judge(60_000, None, || 15_000), Outcome::Warned);
    }
}
