//! The toy agent loop of the speed comparison: an assistant that ends or emits one to three calls of four tools; each
//! call goes hook, rule, question, execution; the calls of a turn interleave freely.
//!
//! One turn has 283,218 states and two have 3,245,266 with 14,963,809 transitions; models of the same loop for other
//! checkers agree on these numbers.

use crate::explore::packed::Packed;
use crate::explore::system::{Choice, Marks, Property, Step, System};

/// Calls a turn, at most.
const CALLS: usize = 3;

/// What a call waits for, or how it ended.
const HOOK: u64 = 1;
const RULE: u64 = 2;
const QUESTION: u64 = 3;
const EXECUTION: u64 = 4;
/// Ended by: result, error result, protocol error, no answer, hook, rule, person.
const ENDED: u64 = 5;
const BY_HOOK: u64 = 4;
const BY_RULE: u64 = 5;
const BY_PERSON: u64 = 6;

/// The most turns.
pub const MOST_TURNS: u8 = 63;

/// Control word: turn (6 bits), over (1), grants (4), consecutive errors (2), calls (2).
const TURN: u64 = MOST_TURNS as u64;
const OVER: u32 = 6;
const GRANTS: u32 = 7;
const ERRORS: u32 = 11;
const COUNT: u32 = 13;
/// Slots: tool (2 bits) and phase (4), cleared at the end of the turn.
const SLOTS: u32 = 15;
const SLOT_BITS: u32 = 6;
const SLOT: u64 = 0x3f;

/// Choices 0: end; 1..=84: emit; 85: next turn; then 15 a slot.
const EMIT: u16 = 1;
const NEXT_TURN: u16 = 85;
const FIRST_OF_SLOTS: u16 = 86;
const PER_SLOT: u16 = 15;

/// Which steps are left out or joined because they change no verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reductions {
    /// A hook's outcome depends on nothing and nothing depends on when it comes: while a call waits for its hook, only
    /// the first such call steps.
    pub local_hooks: bool,
    /// Hook and rule are one step.
    pub fused: bool,
    /// Calls are interchangeable: slots are kept sorted.
    pub symmetry: bool,
}

/// How the control word and the slots lie in `W` words.
pub trait Layout: Packed {
    /// The control word.
    fn control(&self) -> u64;
    /// Slot `index`.
    fn slot(&self, index: usize) -> u64;
    /// The same with another control word.
    #[must_use]
    fn with_control(self, control: u64) -> Self;
    /// The same with another slot.
    #[must_use]
    fn with_slot(self, index: usize, slot: u64) -> Self;
    /// The state with this control word and all slots empty.
    fn cleared(control: u64) -> Self;
}

impl Layout for [u64; 1] {
    #[inline]
    fn control(&self) -> u64 {
        self[0] & ((1 << SLOTS) - 1)
    }

    #[inline]
    fn slot(&self, index: usize) -> u64 {
        self[0] >> (SLOTS + SLOT_BITS * index as u32) & SLOT
    }

    #[inline]
    fn with_control(self, control: u64) -> Self {
        [self[0] >> SLOTS << SLOTS | control]
    }

    #[inline]
    fn with_slot(self, index: usize, slot: u64) -> Self {
        let shift = SLOTS + SLOT_BITS * index as u32;
        [self[0] & !(SLOT << shift) | slot << shift]
    }

    #[inline]
    fn cleared(control: u64) -> Self {
        [control]
    }
}

/// Wider states: the same content, a word for the control and one for each slot.
macro_rules! wide {
    ($($words:literal),+) => {$(
        impl Layout for [u64; $words] {
            #[inline]
            fn control(&self) -> u64 {
                self[0]
            }

            #[inline]
            fn slot(&self, index: usize) -> u64 {
                self[1 + index]
            }

            #[inline]
            fn with_control(mut self, control: u64) -> Self {
                self[0] = control;
                self
            }

            #[inline]
            fn with_slot(mut self, index: usize, slot: u64) -> Self {
                self[1 + index] = slot;
                self
            }

            #[inline]
            fn cleared(control: u64) -> Self {
                let mut state = [0; $words];
                state[0] = control;
                state
            }
        }
    )+};
}
wide!(4, 8);

/// The loop.
#[derive(Clone, Debug)]
pub struct CallLoop<S> {
    turns: u64,
    reductions: Reductions,
    properties: Vec<Property>,
    state: std::marker::PhantomData<fn() -> S>,
}

impl<S: Layout> CallLoop<S> {
    /// The loop with a number of turns (at most [`MOST_TURNS`]).
    #[must_use]
    pub fn new(turns: u8) -> Self {
        Self {
            turns: u64::from(turns.min(MOST_TURNS)),
            reductions: Reductions::default(),
            properties: vec![
                Property::invariant("turns stay within the limit"),
                Property::invariant("fewer than three errors in a row"),
                Property::witness("every tool granted"),
                Property::witness("a person rejects a call of a granted tool"),
            ],
            state: std::marker::PhantomData,
        }
    }

    /// The loop with reductions.
    #[must_use]
    pub fn reduced(turns: u8, reductions: Reductions) -> Self {
        Self { reductions, ..Self::new(turns) }
    }

    /// Whether the state lies between two turns: the states that every reduction must leave as they are.
    pub fn is_boundary(state: &S) -> bool {
        let control = state.control();
        control >> COUNT & 3 == 0 && control >> OVER & 1 == 0
    }

    #[inline]
    fn canonical(&self, mut state: S) -> S {
        if self.reductions.symmetry {
            for (low, high) in [(0, 1), (1, 2), (0, 1)] {
                let (a, b) = (state.slot(low), state.slot(high));
                if a < b {
                    state = state.with_slot(low, b).with_slot(high, a);
                }
            }
        }
        state
    }

    /// The steps of the call in slot `index` when its rule is looked at.
    #[inline]
    fn rule(&self, state: &S, index: usize, base: u16, emit: &mut impl FnMut(Step<S>)) {
        let slot = state.slot(index);
        let tool = slot & 3;
        let granted = state.control() >> GRANTS >> tool & 1 == 1;
        let to = |phase: u64| self.canonical(state.with_slot(index, tool | phase << 2));
        let asks = if granted { EXECUTION } else { QUESTION };
        emit(Step::new(base, to(EXECUTION)));
        emit(Step::new(base + 1, to(asks)));
        emit(Step::new(base + 2, to(ENDED + BY_RULE)));
        // Without a rule the two read-only tools run.
        emit(Step::new(base + 3, to(if tool < 2 { EXECUTION } else { asks })));
    }

    #[inline]
    fn call(&self, state: &S, index: usize, emit: &mut impl FnMut(Step<S>)) {
        let slot = state.slot(index);
        let tool = slot & 3;
        let base = FIRST_OF_SLOTS + PER_SLOT * index as u16;
        let control = state.control();
        let to = |phase: u64| self.canonical(state.with_slot(index, tool | phase << 2));
        match slot >> 2 {
            HOOK => {
                let blocked = Step::new(base + 1, to(ENDED + BY_HOOK));
                if self.reductions.fused {
                    // The three outcomes that do not block lead to the same rule step.
                    self.rule(state, index, base + 4, emit);
                    emit(blocked);
                } else {
                    emit(Step::new(base, to(RULE)));
                    emit(blocked);
                    emit(Step::new(base + 2, to(RULE)));
                    emit(Step::new(base + 3, to(RULE)));
                }
            }
            RULE => self.rule(state, index, base + 4, emit),
            QUESTION => {
                emit(Step::new(base + 8, to(EXECUTION)));
                let granted = state.with_control(control | 1 << (GRANTS + tool as u32));
                emit(Step::new(base + 9, self.canonical(granted.with_slot(index, tool | EXECUTION << 2))));
                emit(Step::new(base + 10, to(ENDED + BY_PERSON)));
            }
            EXECUTION => {
                for end in 0..4u16 {
                    let errors = if end == 0 { 0 } else { ((control >> ERRORS & 3) + 1).min(3) };
                    let counted = state.with_control(control & !(3 << ERRORS) | errors << ERRORS);
                    let ended = counted.with_slot(index, tool | (ENDED + u64::from(end)) << 2);
                    emit(Step::new(base + 11 + end, self.canonical(ended)));
                }
            }
            _ => {}
        }
    }
}

impl<S: Layout> System for CallLoop<S> {
    type State = S;

    fn initial(&self, emit: &mut impl FnMut(S)) {
        emit(S::cleared(0));
    }

    #[inline]
    fn successors(&self, state: &S, emit: &mut impl FnMut(Step<S>)) {
        let control = state.control();
        if control >> OVER & 1 == 1 {
            return;
        }
        let count = (control >> COUNT & 3) as usize;
        if count == 0 {
            emit(Step::new(0, state.with_control(control | 1 << OVER)));
            if control & TURN < self.turns {
                let mut choice = EMIT;
                for calls in 1..=CALLS {
                    for tools in 0..1u64 << (2 * calls) {
                        let mut next = state.with_control(control | (calls as u64) << COUNT);
                        for index in 0..calls {
                            next = next.with_slot(index, tools >> (2 * index) & 3 | HOOK << 2);
                        }
                        emit(Step::new(choice, self.canonical(next)));
                        choice += 1;
                    }
                }
            }
            return;
        }
        if (0..count).all(|index| state.slot(index) >> 2 >= ENDED) {
            emit(Step::new(NEXT_TURN, S::cleared((control & !(3 << COUNT)) + 1)));
            return;
        }
        if self.reductions.local_hooks
            && let Some(index) = (0..count).find(|&index| state.slot(index) >> 2 == HOOK)
        {
            self.call(state, index, emit);
            return;
        }
        for index in 0..count {
            self.call(state, index, emit);
        }
    }

    fn properties(&self) -> &[Property] {
        &self.properties
    }

    #[inline]
    fn marks(&self, state: &S) -> Marks {
        let control = state.control();
        let granted = control >> GRANTS & 15;
        let rejected = (0..CALLS).any(|index| {
            let slot = state.slot(index);
            slot >> 2 == ENDED + BY_PERSON && granted >> (slot & 3) & 1 == 1
        });
        Marks::when(control & TURN > self.turns, 0)
            .and(Marks::when(control >> ERRORS & 3 == 3, 1))
            .and(Marks::when(granted == 15, 2))
            .and(Marks::when(rejected, 3))
    }

    fn choices(&self) -> u16 {
        FIRST_OF_SLOTS + PER_SLOT * CALLS as u16
    }

    fn label(&self, _: &Self::State, choice: Choice) -> String {
        match choice.0 {
            0 => "the assistant ends".to_owned(),
            NEXT_TURN => "the results go back".to_owned(),
            emit if emit < NEXT_TURN => {
                let (calls, tools) = match emit - EMIT {
                    one if one < 4 => (1, one),
                    two if two < 20 => (2, two - 4),
                    three => (3, three - 20),
                };
                let tools: Vec<String> =
                    (0..calls).map(|index| format!("tool {}", tools >> (2 * index) & 3)).collect();
                format!("the assistant calls {}", tools.join(", "))
            }
            other => {
                let what = match (other - FIRST_OF_SLOTS) % PER_SLOT {
                    0 => "hook exits 0",
                    1 => "hook blocks",
                    2 => "hook exits 1",
                    3 => "hook times out",
                    4 => "rule allows",
                    5 => "rule asks",
                    6 => "rule denies",
                    7 => "no rule matches",
                    8 => "person allows once",
                    9 => "person allows always",
                    10 => "person rejects",
                    11 => "result",
                    12 => "error result",
                    13 => "protocol error",
                    _ => "no answer",
                };
                format!("call {}: {what}", (other - FIRST_OF_SLOTS) / PER_SLOT)
            }
        }
    }

    fn fields(&self, state: &S) -> Vec<(String, String)> {
        let control = state.control();
        let mut fields = vec![
            ("turn".to_owned(), (control & TURN).to_string()),
            ("over".to_owned(), (control >> OVER & 1 == 1).to_string()),
            ("granted".to_owned(), format!("{:04b}", control >> GRANTS & 15)),
            ("errors".to_owned(), (control >> ERRORS & 3).to_string()),
        ];
        for index in 0..(control >> COUNT & 3) as usize {
            let slot = state.slot(index);
            let words = [
                "empty",
                "waits for hook",
                "waits for rule",
                "waits for person",
                "runs",
                "result",
                "error result",
                "protocol error",
                "no answer",
                "blocked by hook",
                "denied by rule",
                "rejected by person",
            ];
            let word = words.get((slot >> 2) as usize).copied().unwrap_or("?");
            fields.push((format!("call {index}"), format!("tool {} {word}", slot & 3)));
        }
        fields
    }
}
