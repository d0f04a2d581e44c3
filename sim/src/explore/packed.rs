//! Packed states: fixed numbers of machine words, hashed with a strong finalizer.

/// A packed state.
pub trait Packed: Copy + Eq + Send + Sync + std::fmt::Debug + 'static {
    /// A hash whose every bit depends on every bit of the state. A weak one would cluster in the index and, as a
    /// fingerprint, silently make the search partial.
    fn fingerprint(&self) -> u64;
}

/// Odd multipliers of splitmix64's finalizer (Stafford's variant 13).
const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;
/// The fractional part of the golden ratio: where the fold starts, so that the zero state does not hash to zero.
const START: u64 = 0x9e37_79b9_7f4a_7c15;

/// Splitmix64's finalizer: a bijection of 64 bits.
#[inline]
fn finalize(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(FIRST);
    x = (x ^ (x >> 27)).wrapping_mul(SECOND);
    x ^ (x >> 31)
}

impl<const W: usize> Packed for [u64; W] {
    /// Each word is folded in by a bijection, so two states that differ in their last word only never collide, and
    /// one-word states never collide at all.
    #[inline]
    fn fingerprint(&self) -> u64 {
        let mut hash = START;
        let Some((last, rest)) = self.split_last() else { return hash };
        for word in rest {
            hash = (hash ^ word).wrapping_mul(FIRST);
            hash ^= hash >> 32;
        }
        finalize(hash ^ last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_states_have_different_fingerprints() {
        let mut seen: Vec<u64> = (0..100_000u64).map(|word| [word].fingerprint()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100_000);
    }

    #[test]
    fn every_word_and_its_position_count() {
        let mut seen = Vec::new();
        for position in 0..8 {
            for bit in 0..64 {
                let mut state = [0u64; 8];
                state[position] = 1 << bit;
                seen.push(state.fingerprint());
            }
        }
        seen.push([0u64; 8].fingerprint());
        let all = seen.len();
        // Their low and high halves too: they choose the slot and the tag.
        for half in [|hash: &u64| *hash as u32, |hash: &u64| (*hash >> 32) as u32] {
            let mut halves: Vec<u32> = seen.iter().map(half).collect();
            halves.sort_unstable();
            halves.dedup();
            assert_eq!(halves.len(), all);
        }
    }
}
