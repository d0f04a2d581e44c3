//! The harness under the choices of a scenario's closed world, as a system that the explorer explores: the same `step`,
//! the same invariants and the same choices as in every other world, with payloads left out.

mod codec;
mod symmetry;
mod system;
mod words;

pub use codec::{DoesNotFitError, Layout, Moment, TooManyBitsError};
pub use system::{Harness, HarnessError, Properties, Reductions, Setup};
