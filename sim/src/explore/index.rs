//! The tagged index: open addressing over words that hold 32 bits of the hash and the state's number, so that most
//! comparisons never touch the log.

use super::memory::{in_huge_pages, prefetch};

/// At most 6 slots in 10 are taken.
const LOAD: (usize, usize) = (6, 10);

/// The smallest table.
const SMALLEST: usize = 1 << 10;

/// How many states a log can number: the index stores `number + 1` in 32 bits.
pub(super) const MOST_STATES: usize = u32::MAX as usize - 1;

/// What an insertion found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The state is there, under this number.
    Found(u32),
    /// The state is new; it would stand in this slot.
    Vacant(usize),
}

/// The index.
#[derive(Debug)]
pub(super) struct Index {
    /// `tag << 32 | number + 1`; 0 is empty.
    slots: Vec<u64>,
    taken: usize,
}

impl Index {
    pub(super) fn new() -> Self {
        Self { slots: vec![0; SMALLEST], taken: 0 }
    }

    #[inline]
    fn tag(hash: u64) -> u64 {
        hash & 0xffff_ffff_0000_0000
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Asks for the cache line where `hash` would be looked for.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.home(hash));
    }

    /// The number that the home slot of `hash` suggests, for fetching its state ahead of the comparison.
    #[inline]
    pub(super) fn suggestion(&self, hash: u64) -> Option<u32> {
        let entry = self.slots[self.home(hash)];
        (entry != 0 && Self::tag(entry) == Self::tag(hash)).then(|| (entry as u32).wrapping_sub(1))
    }

    /// Looks a state up; `same` compares it with the state of a number.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Slot {
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let mut at = hash as usize;
        loop {
            at &= mask;
            let entry = slots[at];
            if entry == 0 {
                return Slot::Vacant(at);
            }
            if (entry ^ hash) >> 32 == 0 {
                let number = (entry as u32).wrapping_sub(1);
                if same(number) {
                    return Slot::Found(number);
                }
            }
            at += 1;
        }
    }

    /// Puts state `number` into the vacant slot that [`Self::find`] gave.
    #[inline]
    pub(super) fn occupy(&mut self, slot: usize, hash: u64, number: u32) {
        self.slots[slot] = Self::tag(hash) | u64::from(number.wrapping_add(1));
        self.taken += 1;
    }

    /// Replaces a number by another, the state being the same.
    pub(super) fn renumber(&mut self, hash: u64, from: u32, to: u32) {
        let sought = Self::tag(hash) | u64::from(from.wrapping_add(1));
        let mut at = self.home(hash);
        loop {
            match self.slots[at] {
                0 => return,
                entry if entry == sought => {
                    self.slots[at] = Self::tag(hash) | u64::from(to.wrapping_add(1));
                    return;
                }
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Whether the next insertion would exceed the load.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.taken * LOAD.1 >= self.slots.len() * LOAD.0
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    /// Doubles the table and fills it anew with the states `0..len`; `hash_of` gives none for a state that another
    /// part keeps. The old table is freed first, so that growth never holds both.
    pub(super) fn grow(&mut self, len: u32, hash_of: impl Fn(u32) -> Option<u64>) {
        let doubled = self.slots.len() * 2;
        self.slots = Vec::new();
        self.slots = vec![0; doubled];
        in_huge_pages(&self.slots);
        self.taken = 0;
        // Looked up in rounds, so that the misses of one round overlap.
        const ROUND: usize = 64;
        let mut round = [(0u64, 0u32); ROUND];
        let mut filled = 0;
        for number in 0..len {
            if let Some(hash) = hash_of(number) {
                self.prefetch(hash);
                round[filled] = (hash, number);
                filled += 1;
            }
            if filled == ROUND || number + 1 == len {
                for &(hash, number) in &round[..filled] {
                    // All states differ, so nothing is compared.
                    if let Slot::Vacant(slot) = self.find(hash, |_| false) {
                        self.occupy(slot, hash, number);
                    }
                }
                filled = 0;
            }
        }
    }
}
