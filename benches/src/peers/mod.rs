//! The same systems for Stateright: packed (our own systems behind its trait) and written as one would by hand.

pub mod idiomatic;

use stateright::{Model, Property};
use windtunnel::explore::{Step, System};

/// A state for Stateright, hashed as the one word that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word(pub u64);

/// One of our packed systems as a Stateright model. An action carries the state it leads to, so that nothing is
/// computed twice.
#[derive(Clone, Debug)]
pub struct Packed<S>(pub S);

impl<S> Model for Packed<S>
where
    S: System<State = [u64; 1]>,
{
    type State = Word;
    type Action = (u16, u64);

    fn init_states(&self) -> Vec<Word> {
        let mut states = Vec::new();
        self.0.initial(&mut |[word]| states.push(Word(word)));
        states
    }

    fn actions(&self, state: &Word, actions: &mut Vec<Self::Action>) {
        self.0
            .successors(&[state.0], &mut |step: Step<[u64; 1]>| actions.push((step.choice.0, step.state[0])));
    }

    fn next_state(&self, _: &Word, (_, next): Self::Action) -> Option<Word> {
        Some(Word(next))
    }

    /// One property that never finds anything: without an open property Stateright stops at once.
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("bits", |_: &Self, state: &Word| state.0 < 1 << 60)]
    }
}
