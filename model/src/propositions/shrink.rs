//! Random cases that shrink: a case is what was built from a list of drawn numbers, so a smaller list is a smaller
//! case, whatever the case is.

use super::evidence::Evidence;

/// The numbers that a random case is built from.
#[derive(Debug)]
pub struct Draws<'a> {
    source: Source<'a>,
    taken: Vec<u64>,
}

enum Source<'a> {
    Fresh(&'a mut dyn FnMut(u64) -> u64),
    Replayed(&'a [u64]),
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fresh(_) => "Fresh",
            Self::Replayed(_) => "Replayed",
        })
    }
}

impl<'a> Draws<'a> {
    pub(super) fn fresh(below: &'a mut dyn FnMut(u64) -> u64) -> Self {
        Self { source: Source::Fresh(below), taken: Vec::new() }
    }

    fn replayed(values: &'a [u64]) -> Self {
        Self { source: Source::Replayed(values), taken: Vec::new() }
    }

    /// A number below `n`; zero where `n` is zero. Smaller numbers count as simpler.
    pub fn below(&mut self, n: u64) -> u64 {
        let value = match &mut self.source {
            _ if n == 0 => 0,
            Source::Fresh(below) => below(n),
            Source::Replayed(values) => {
                values.get(self.taken.len()).copied().unwrap_or(0).min(n.saturating_sub(1))
            }
        };
        self.taken.push(value);
        value
    }

    /// An index below `n`.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// Heads or tails; tails is simpler.
    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// One of `items`, the first being the simplest; `None` where there is none.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> Option<&'t T> {
        let index = self.index(items.len());
        items.get(index)
    }

    /// Puts `items` into an arbitrary order; all zeros leave it as it is.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in 0..items.len() {
            let other = at + self.index(items.len() - at);
            items.swap(at, other);
        }
    }

    pub(super) fn taken(self) -> Vec<u64> {
        self.taken
    }
}

/// The most cases that are tried to make one smaller.
const MOST_TRIES: usize = 4_000;

/// Makes a refuting case smaller while it still refutes: shorter lists first, then smaller numbers. Returns the evidence
/// of the smallest case met and how many cases were evaluated.
pub(super) fn shrink(
    mut values: Vec<u64>,
    mut evidence: Evidence,
    law: &mut dyn FnMut(&mut Draws<'_>) -> Result<(), Evidence>,
) -> (Evidence, u64) {
    let mut tries = 0usize;
    let mut attempt = |candidate: &[u64]| {
        tries += 1;
        let mut draws = Draws::replayed(candidate);
        law(&mut draws).err().map(|evidence| (draws.taken(), evidence))
    };
    let mut progress = true;
    let mut left = MOST_TRIES;
    while progress && left > 0 {
        progress = false;
        let mut length = values.len();
        // Spans are taken out, long ones first, then single numbers are lowered.
        while length > 0 && left > 0 {
            let mut at = 0;
            while at < values.len() && left > 0 {
                let mut candidate = values.clone();
                candidate.drain(at..(at + length).min(values.len()));
                left -= 1;
                match attempt(&candidate) {
                    Some((smaller, told)) if is_smaller(&smaller, &values) => {
                        (values, evidence, progress) = (smaller, told, true);
                    }
                    _ => at += length,
                }
            }
            length /= 2;
        }
        let mut at = 0;
        while at < values.len() && left > 0 {
            let value = values.get(at).copied().unwrap_or(0);
            let mut lowered = false;
            for lower in [0, value / 2, value.saturating_sub(1)] {
                if lower >= value || left == 0 {
                    continue;
                }
                let mut candidate = values.clone();
                if let Some(slot) = candidate.get_mut(at) {
                    *slot = lower;
                }
                left -= 1;
                if let Some((smaller, told)) = attempt(&candidate)
                    && is_smaller(&smaller, &values)
                {
                    (values, evidence, progress, lowered) = (smaller, told, true, true);
                    break;
                }
            }
            if !lowered {
                at += 1;
            }
        }
    }
    (evidence, tries as u64)
}

/// Shorter is smaller; of one length, the lexicographic order decides.
fn is_smaller(new: &[u64], old: &[u64]) -> bool {
    (new.len(), new) < (old.len(), old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refuting_case_becomes_the_smallest_of_its_kind() {
        // A list refutes when it holds a number above 10.
        let mut law = |draws: &mut Draws<'_>| {
            let length = draws.index(20);
            let list: Vec<u64> = (0..length).map(|_| draws.below(1_000)).collect();
            if list.iter().any(|n| *n > 10) { Err(Evidence::said(format!("{list:?}"))) } else { Ok(()) }
        };
        let values = vec![6, 3, 700, 2, 11, 400, 9];
        let (evidence, tries) = shrink(values, Evidence::said("unshrunk"), &mut law);
        assert_eq!(evidence.text, "[11]");
        assert!(tries > 0);
    }
}
