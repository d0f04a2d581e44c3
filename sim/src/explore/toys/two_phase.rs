//! Two-phase commit after Gray and Lamport, "Consensus on Transaction Commit": one transaction manager, `n` resource
//! managers, messages that are never lost from the set they are in.

use crate::explore::system::{Choice, Kind, Marks, Property, Step, System};

/// Two-phase commit with a number of resource managers.
#[derive(Clone, Debug)]
pub struct TwoPhase {
    managers: u32,
    /// Whether a manager may abort after it prepared: the mutant that breaks consistency.
    aborts_late: bool,
    properties: Vec<Property>,
}

/// The most managers: 2 bits of state, a `prepared` flag and a message each, in one word.
pub const MOST_MANAGERS: u32 = 12;

const WORKING: u64 = 0;
const PREPARED: u64 = 1;
const COMMITTED: u64 = 2;
const ABORTED: u64 = 3;

/// Bit positions: manager states (2 each), the transaction manager's `prepared` flags, the `Prepared` messages, then
/// the transaction manager (0 init, 1 committed, 2 aborted), the `Commit` and the `Abort` message.
const FLAGS: u32 = 24;
const MESSAGES: u32 = 36;
const MANAGER: u32 = 48;
const COMMIT: u32 = 50;
const ABORT: u32 = 51;

impl TwoPhase {
    /// The protocol with `managers` resource managers (at most [`MOST_MANAGERS`]).
    #[must_use]
    pub fn new(managers: u32) -> Self {
        Self {
            managers: managers.min(MOST_MANAGERS),
            aborts_late: false,
            properties: vec![
                Property::invariant("consistent"),
                Property { name: "commits".to_owned(), kind: Kind::Witness },
            ],
        }
    }

    /// The mutant in which a manager may abort after it prepared.
    #[must_use]
    pub fn aborting_late(managers: u32) -> Self {
        Self { aborts_late: true, ..Self::new(managers) }
    }

    fn all(&self) -> u64 {
        (1 << self.managers) - 1
    }
}

impl System for TwoPhase {
    type State = [u64; 1];

    fn initial(&self, emit: &mut impl FnMut(Self::State)) {
        emit([0]);
    }

    #[inline]
    fn successors(&self, state: &Self::State, emit: &mut impl FnMut(Step<Self::State>)) {
        let [s] = *state;
        let initial = s >> MANAGER & 3 == 0;
        if initial && s >> FLAGS & self.all() == self.all() {
            emit(Step::new(0, [s | 1 << MANAGER | 1 << COMMIT]));
        }
        if initial {
            emit(Step::new(1, [s | 2 << MANAGER | 1 << ABORT]));
        }
        for manager in 0..self.managers {
            let base = 2 + 5 * manager as u16;
            let shift = 2 * manager;
            let moved = |to: u64| s & !(3 << shift) | to << shift;
            let phase = s >> shift & 3;
            if initial && s >> (MESSAGES + manager) & 1 == 1 {
                emit(Step::new(base, [s | 1 << (FLAGS + manager)]));
            }
            if phase == WORKING {
                emit(Step::new(base + 1, [moved(PREPARED) | 1 << (MESSAGES + manager)]));
            }
            if phase == WORKING || self.aborts_late && phase == PREPARED {
                emit(Step::new(base + 2, [moved(ABORTED)]));
            }
            if s >> COMMIT & 1 == 1 {
                emit(Step::new(base + 3, [moved(COMMITTED)]));
            }
            if s >> ABORT & 1 == 1 {
                emit(Step::new(base + 4, [moved(ABORTED)]));
            }
        }
    }

    fn properties(&self) -> &[Property] {
        &self.properties
    }

    #[inline]
    fn marks(&self, [s]: &Self::State) -> Marks {
        let (mut committed, mut aborted) = (0, 0);
        for manager in 0..self.managers {
            match s >> (2 * manager) & 3 {
                COMMITTED => committed += 1,
                ABORTED => aborted += 1,
                _ => {}
            }
        }
        Marks::when(committed > 0 && aborted > 0, 0).and(Marks::when(committed == self.managers, 1))
    }

    fn choices(&self) -> u16 {
        2 + 5 * self.managers as u16
    }

    fn label(&self, _: &Self::State, choice: Choice) -> String {
        match choice.0 {
            0 => "the transaction manager commits".to_owned(),
            1 => "the transaction manager aborts".to_owned(),
            other => {
                let manager = (other - 2) / 5;
                match (other - 2) % 5 {
                    0 => format!("the transaction manager hears that manager {manager} is prepared"),
                    1 => format!("manager {manager} prepares"),
                    2 => format!("manager {manager} chooses to abort"),
                    3 => format!("manager {manager} hears the commit"),
                    _ => format!("manager {manager} hears the abort"),
                }
            }
        }
    }

    fn fields(&self, [s]: &Self::State) -> Vec<(String, String)> {
        let words = ["working", "prepared", "committed", "aborted"];
        let mut fields = vec![(
            "transaction manager".to_owned(),
            ["initial", "committed", "aborted", "aborted"][(s >> MANAGER & 3) as usize].to_owned(),
        )];
        for manager in 0..self.managers {
            let word = words[(s >> (2 * manager) & 3) as usize];
            let heard = if s >> (FLAGS + manager) & 1 == 1 { ", heard" } else { "" };
            fields.push((format!("manager {manager}"), format!("{word}{heard}")));
        }
        fields
    }
}
