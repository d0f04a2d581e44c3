//! What the explorer explores: a transition system over packed states.

use super::packed::Packed;

/// A choice: the index of one next step in the system's own, documented and stable numbering. A run *is* the list of
/// its choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Choice(pub u16);

/// Which properties a state or a step marks: bit `i` stands for property `i` of [`System::properties`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks(pub u64);

impl Marks {
    /// No property is marked.
    pub const NONE: Self = Self(0);

    /// How many properties a system can have.
    pub const CAPACITY: usize = 64;

    /// The mark of property `index`, or none where the index is beyond the capacity.
    #[must_use]
    pub fn of(index: usize) -> Self {
        if index < Self::CAPACITY { Self(1 << index) } else { Self::NONE }
    }

    /// The mark of property `index` where `condition` holds.
    #[must_use]
    pub fn when(condition: bool, index: usize) -> Self {
        if condition { Self::of(index) } else { Self::NONE }
    }

    /// Whether nothing is marked.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether property `index` is marked.
    #[must_use]
    pub fn contains(self, index: usize) -> bool {
        index < Self::CAPACITY && self.0 >> index & 1 == 1
    }

    /// The marked properties in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let index = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (index < Self::CAPACITY).then_some(index)
        })
    }
}

/// What a mark on a property means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Must hold in every state and step: a mark is a violation.
    Invariant,
    /// "Can this happen?": a mark is the witness that was asked for.
    Witness,
}

/// One property that is judged while exploring.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    /// Its name, as on the command line.
    pub name: String,
    /// What a mark on it means.
    pub kind: Kind,
}

impl Property {
    /// An invariant.
    pub fn invariant(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Invariant }
    }

    /// A witness.
    pub fn witness(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Witness }
    }
}

/// One step out of a state: the choice, the state that it leads to, and the properties that the *step* marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<S> {
    /// The choice.
    pub choice: Choice,
    /// The state after it.
    pub state: S,
    /// The properties that this step marks (what the state alone shows belongs in [`System::marks`]).
    pub marks: Marks,
}

impl<S> Step<S> {
    /// A step that marks nothing.
    pub fn new(choice: u16, state: S) -> Self {
        Self { choice: Choice(choice), state, marks: Marks::NONE }
    }
}

/// A transition system.
///
/// The laws that the engine relies on: every method is a pure function of its arguments, and `successors` emits the
/// steps of a state in one fixed order. Everything that the explorer reports (numbers of states, counterexamples) is
/// then the same in every run.
pub trait System: Sync {
    /// The packed state: plain words without heap.
    type State: Packed;

    /// Emits the initial states.
    fn initial(&self, emit: &mut impl FnMut(Self::State));

    /// Emits every step out of `state`, in a documented, stable order.
    fn successors(&self, state: &Self::State, emit: &mut impl FnMut(Step<Self::State>));

    /// The properties that [`System::marks`] and [`Step::marks`] speak of; at most [`Marks::CAPACITY`].
    fn properties(&self) -> &[Property] {
        &[]
    }

    /// The properties that `state` marks.
    fn marks(&self, _state: &Self::State) -> Marks {
        Marks::NONE
    }

    /// Whether a state without steps is a proper end. Any other state without steps is a deadlock.
    fn is_final(&self, _state: &Self::State) -> bool {
        true
    }

    /// Whether a step counts as progress. A cycle without such a step is reported by [`super::cycles::without_progress`];
    /// where nothing is progress, every cycle is.
    fn is_progress(&self, _from: &Self::State, _step: &Step<Self::State>) -> bool {
        false
    }

    /// How many choices the numbering has: all that are emitted lie below it.
    fn choices(&self) -> u16;

    /// The choice, made in `state`, in the words of the domain.
    fn label(&self, state: &Self::State, choice: Choice) -> String;

    /// The state as named fields, in the words of the domain: for counterexamples, drawings and exports.
    fn fields(&self, state: &Self::State) -> Vec<(String, String)>;
}

/// A replayed schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed<S> {
    /// The initial state.
    pub first: S,
    /// The steps, each with the state after it.
    pub steps: Vec<Step<S>>,
}

/// Replays a schedule from initial state number `start`: the steps it takes, or the position at which a choice was not
/// among the steps of the state.
///
/// # Errors
/// [`ReplayError`] when there is no such initial state or a choice is not possible where the schedule makes it.
pub fn replay<S: System>(
    system: &S,
    start: usize,
    schedule: &[Choice],
) -> Result<Replayed<S::State>, ReplayError> {
    let mut initial = Vec::new();
    system.initial(&mut |state| initial.push(state));
    let first = initial.get(start).copied().ok_or(ReplayError::NoSuchStart { start })?;
    let mut state = first;
    let mut steps = Vec::with_capacity(schedule.len());
    for (position, &choice) in schedule.iter().enumerate() {
        let mut taken = None;
        system.successors(&state, &mut |step| {
            if step.choice == choice && taken.is_none() {
                taken = Some(step);
            }
        });
        let step = taken.ok_or(ReplayError::NotPossible { position, choice })?;
        state = step.state;
        steps.push(step);
    }
    Ok(Replayed { first, steps })
}

/// Why a schedule could not be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The system has fewer initial states.
    #[error("there is no initial state {start}")]
    NoSuchStart {
        /// The number asked for.
        start: usize,
    },
    /// The choice is not among the steps of the state that the schedule reached.
    #[error("choice {} is not possible at step {position}", choice.0)]
    NotPossible {
        /// The position in the schedule, from 0.
        position: usize,
        /// The choice.
        choice: Choice,
    },
}
