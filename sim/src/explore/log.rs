//! The append-only log: every state once, in breadth-first order, with how it was first reached. The log is the
//! visited set's storage and the frontier at once.

use super::memory::{in_huge_pages, prefetch};
use super::packed::Packed;
use super::system::Choice;

/// States a chunk. Chunks never move, so growth copies nothing and leaves at most one chunk of slack.
const CHUNK_BITS: u32 = 20;
const CHUNK: usize = 1 << CHUNK_BITS;

/// The parent of an initial state.
pub(super) const NO_PARENT: u32 = u32::MAX;

/// A list in chunks.
#[derive(Debug)]
struct Chunked<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T: Copy> Chunked<T> {
    fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    #[inline]
    fn push(&mut self, item: T) {
        if self.len & (CHUNK - 1) == 0 {
            self.add_chunk();
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(item);
        }
        self.len += 1;
    }

    #[cold]
    fn add_chunk(&mut self) {
        let chunk = Vec::with_capacity(CHUNK);
        in_huge_pages(&chunk);
        self.chunks.push(chunk);
    }

    #[inline]
    fn get(&self, index: usize) -> &T {
        &self.chunks[index >> CHUNK_BITS][index & (CHUNK - 1)]
    }

    #[inline]
    fn prefetch(&self, index: usize) {
        if let Some(chunk) = self.chunks.get(index >> CHUNK_BITS) {
            prefetch(chunk, index & (CHUNK - 1));
        }
    }

    /// What the chunks hold in memory: pages that were never written are not counted.
    fn memory(&self) -> usize {
        self.len * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

/// The log.
#[derive(Debug)]
pub struct Log<S> {
    states: Chunked<S>,
    parents: Chunked<u32>,
    choices: Chunked<u16>,
}

impl<S: Packed> Log<S> {
    pub(super) fn new() -> Self {
        Self { states: Chunked::new(), parents: Chunked::new(), choices: Chunked::new() }
    }

    /// How many states are in the log.
    pub fn len(&self) -> usize {
        self.states.len
    }

    /// Whether the log is empty.
    pub fn is_empty(&self) -> bool {
        self.states.len == 0
    }

    /// State `number`.
    #[inline]
    pub fn state(&self, number: u32) -> &S {
        self.states.get(number as usize)
    }

    /// The state from which `number` was first reached and the choice that led there; `None` for an initial state.
    pub fn origin(&self, number: u32) -> Option<(u32, Choice)> {
        let parent = *self.parents.get(number as usize);
        (parent != NO_PARENT).then(|| (parent, Choice(*self.choices.get(number as usize))))
    }

    #[inline]
    pub(super) fn push(&mut self, state: S, parent: u32, choice: u16) {
        self.states.push(state);
        self.parents.push(parent);
        self.choices.push(choice);
    }

    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        self.states.prefetch(number as usize);
    }

    /// The schedule that leads to state `number`, and the initial state it starts from.
    pub fn schedule(&self, number: u32) -> (u32, Vec<Choice>) {
        let mut choices = Vec::new();
        let mut at = number;
        while let Some((parent, choice)) = self.origin(at) {
            choices.push(choice);
            at = parent;
        }
        choices.reverse();
        (at, choices)
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        self.states.memory() + self.parents.memory() + self.choices.memory()
    }
}
