//! The same search on several threads: partitioned by hash, level-synchronous, with the same log to the last state.
//!
//! A block of parents is worked on in four rounds. Each worker expands a slice of the parents and sorts the successors
//! into a mailbox a part; each part's owner inserts its mail, slice by slice, under provisional numbers; the new states
//! of all parts are merged in the order in which one thread would have met them; the owners put the final numbers in.

use super::index::{Index, Slot};
use super::log::Log;
use super::packed::Packed;
use super::search::{Pending, Search, Site, Tally, part_of};
use super::system::{Marks, Step, System};

/// Fewer parents than this are expanded faster by one thread.
pub(super) const WORTHWHILE: u32 = 4096;

/// The place of a successor in the order of one thread: its parent, then its position among the parent's successors.
type Place = (u32, u32);

/// A successor and its position among its parent's.
#[derive(Clone, Copy, Debug)]
struct Mail<S> {
    pending: Pending<S>,
    position: u32,
}

impl<S> Mail<S> {
    fn place(&self) -> Place {
        (self.pending.parent, self.position)
    }
}

/// What one worker expanded.
struct Slice<S> {
    /// One mailbox a part.
    boxes: Vec<Vec<Mail<S>>>,
    /// Steps that mark properties.
    marked: Vec<(Place, Marks, u16)>,
    tally: Tally,
}

/// What one part's owner found to be new.
struct Fresh<S> {
    news: Vec<Mail<S>>,
    /// Positions in `news` of states that mark properties.
    marked: Vec<(usize, Marks)>,
    /// The final number of each.
    numbers: Vec<u32>,
}

/// Expands the parents `from..to` and inserts what they lead to, on as many threads as the index has parts.
pub(super) fn block<S: System>(search: &mut Search<'_, S>, from: u32, to: u32) {
    let parts = search.visited.parts.len();
    let slices = expand(search, from, to, parts);
    let base = search.visited.log.len() as u32;
    let Search { system, visited, .. } = search;
    let (system, log) = (*system, &visited.log);
    let mut fresh: Vec<Fresh<S::State>> = std::thread::scope(|scope| {
        let slices = &slices;
        let owners: Vec<_> = visited
            .parts
            .iter_mut()
            .enumerate()
            .map(|(part, index)| scope.spawn(move || insert(system, log, index, slices, part, parts)))
            .collect();
        owners.into_iter().map(join).collect()
    });
    merge(search, &slices, &mut fresh);
    std::thread::scope(|scope| {
        for (index, fresh) in search.visited.parts.iter_mut().zip(&fresh) {
            scope.spawn(move || {
                // From the last on: a final number is at least the provisional one, so it is never one that is still
                // to be replaced.
                for (position, (mail, &number)) in fresh.news.iter().zip(&fresh.numbers).enumerate().rev() {
                    index.renumber(mail.pending.hash, base + position as u32, number);
                }
            });
        }
    });
    for slice in &slices {
        search.tally.add(&slice.tally);
    }
}

fn expand<S: System>(search: &Search<'_, S>, from: u32, to: u32, parts: usize) -> Vec<Slice<S::State>> {
    let (system, log, seen) = (search.system, &search.visited.log, search.seen);
    let width = (to - from).div_ceil(parts as u32);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..parts as u32)
            .map(|worker| {
                let start = to.min(from + worker * width);
                let end = to.min(start + width);
                scope.spawn(move || slice(system, log, seen, start..end, parts))
            })
            .collect();
        workers.into_iter().map(join).collect()
    })
}

fn slice<S: System>(
    system: &S,
    log: &Log<S::State>,
    seen: u64,
    parents: std::ops::Range<u32>,
    parts: usize,
) -> Slice<S::State> {
    let mut slice = Slice {
        boxes: (0..parts).map(|_| Vec::new()).collect(),
        marked: Vec::new(),
        tally: Tally::new(system.choices()),
    };
    for parent in parents {
        let state = *log.state(parent);
        let mut position = 0;
        let Slice { boxes, marked, tally } = &mut slice;
        system.successors(&state, &mut |step: Step<S::State>| {
            let hash = step.state.fingerprint();
            tally.taken.insert(step.choice.0);
            if step.marks.0 & !seen != 0 {
                marked.push(((parent, position), step.marks, step.choice.0));
            }
            let pending = Pending { state: step.state, hash, parent, choice: step.choice.0 };
            boxes[part_of(hash, parts)].push(Mail { pending, position });
            position += 1;
        });
        if position == 0 {
            tally.dead_end(system, parent, &state);
        }
        tally.transitions += u64::from(position);
    }
    slice
}

fn insert<S: System>(
    system: &S,
    log: &Log<S::State>,
    index: &mut Index,
    slices: &[Slice<S::State>],
    part: usize,
    parts: usize,
) -> Fresh<S::State> {
    /// How far ahead of the insertion the slots are asked for.
    const AHEAD: usize = 16;
    let base = log.len() as u32;
    let mut fresh = Fresh { news: Vec::new(), marked: Vec::new(), numbers: Vec::new() };
    for slice in slices {
        let mail = &slice.boxes[part];
        for (at, letter) in mail.iter().enumerate() {
            if let Some(later) = mail.get(at + AHEAD) {
                index.prefetch(later.pending.hash);
            }
            let Mail { pending, .. } = letter;
            let news = &fresh.news;
            let slot = index.find(pending.hash, |number| {
                // What is not in the log yet is among the news of this part.
                let known = match number.checked_sub(base) {
                    None => log.state(number),
                    Some(position) => &news[position as usize].pending.state,
                };
                *known == pending.state
            });
            if let Slot::Vacant(slot) = slot {
                let position = fresh.news.len();
                index.occupy(slot, pending.hash, base + position as u32);
                fresh.news.push(*letter);
                let marks = system.marks(&pending.state);
                if !marks.is_empty() {
                    fresh.marked.push((position, marks));
                }
                if index.is_full() {
                    let news = &fresh.news;
                    index.grow(base + news.len() as u32, |number| match number.checked_sub(base) {
                        None => {
                            let hash = log.state(number).fingerprint();
                            (part_of(hash, parts) == part).then_some(hash)
                        }
                        Some(position) => Some(news[position as usize].pending.hash),
                    });
                }
            }
        }
    }
    fresh
}

/// Appends the new states to the log in the order of their places, and notes the marks in that order too: the mark of
/// a step goes before that of the state it leads to.
fn merge<S: System>(search: &mut Search<'_, S>, slices: &[Slice<S::State>], fresh: &mut [Fresh<S::State>]) {
    let mut noted: Vec<(Place, bool, Marks, Site)> = Vec::new();
    for (place, marks, choice) in slices.iter().flat_map(|slice| &slice.marked) {
        noted.push((*place, false, *marks, Site::Step(place.0, *choice)));
    }
    let mut heads = vec![0usize; fresh.len()];
    loop {
        let next = (0..fresh.len())
            .filter_map(|part| fresh[part].news.get(heads[part]).map(|mail| (mail.place(), part)))
            .min();
        let Some((_, part)) = next else { break };
        let Mail { pending, .. } = fresh[part].news[heads[part]];
        heads[part] += 1;
        fresh[part].numbers.push(search.visited.log.len() as u32);
        search.visited.log.push(pending.state, pending.parent, pending.choice);
    }
    for part in fresh.iter() {
        for &(position, marks) in &part.marked {
            noted.push((part.news[position].place(), true, marks, Site::State(part.numbers[position])));
        }
    }
    noted.sort_unstable_by_key(|&(place, of_state, ..)| (place, of_state));
    for (_, _, marks, site) in noted {
        search.note(marks, site);
    }
}

/// A worker's result; its panic is passed on.
fn join<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
