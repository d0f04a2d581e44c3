//! The lab of the propositions: numbers from a seeded generator, exploration by the explorer, time by the clock. What a
//! check states and what it comes to is the model's; here is only what the model does not do itself.

mod exploration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;
use std::time::Instant;
use windtunnel_model::propositions::{Exploration, Explored, Lab};

/// A lab with a seed.
#[derive(Debug)]
pub struct SeededLab {
    seed: u64,
    numbers: Pcg32,
    since: Instant,
}

impl SeededLab {
    /// A lab whose streams of numbers depend on `seed` and their names only.
    pub fn new(seed: u64) -> Self {
        Self { seed, numbers: Pcg32::new(seed, 0), since: Instant::now() }
    }
}

impl Lab for SeededLab {
    fn begin(&mut self, stream: &str) {
        // FNV-1a: the stream of a name is the same in every build.
        let hash = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        self.numbers = Pcg32::new(self.seed, hash);
    }

    fn below(&mut self, n: u64) -> u64 {
        // Multiply-shift over 64 drawn bits: the bias is below n / 2^64.
        let drawn = u64::from(self.numbers.next_u32()) << 32 | u64::from(self.numbers.next_u32());
        u64::try_from((u128::from(drawn) * u128::from(n)) >> 64).unwrap_or(0)
    }

    fn explore(&mut self, question: &Exploration) -> Result<Explored, String> {
        exploration::explored(question)
    }

    fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let lap = now.duration_since(self.since).as_secs_f64();
        self.since = now;
        lap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_its_name_and_the_seed_only() {
        let draw = |seed, name: &str| {
            let mut lab = SeededLab::new(seed);
            lab.begin(name);
            (0..8).map(|_| lab.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, "a"), draw(7, "a"));
        assert_ne!(draw(7, "a"), draw(7, "b"));
        assert_ne!(draw(7, "a"), draw(8, "a"));
        assert!(draw(7, "a").iter().all(|n| *n < 1_000));
    }
}
