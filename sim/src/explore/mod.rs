//! The explorer: every reachable state of a [`System`], exactly, in breadth-first order.
//!
//! [`explore`] keeps every state once in an append-only log with its parent and the choice that led to it, so the first
//! violation of an invariant comes with a shortest counterexample. A bound that is hit makes the result `bounded`,
//! never `holds`.

mod bounds;
pub mod cycles;
pub mod export;
mod fingerprint;
pub mod harness;
mod index;
mod log;
mod memory;
mod packed;
mod parallel;
mod search;
mod simulate;
mod system;
pub mod toys;

pub use bounds::{Bound, Bounds, Stopped};
pub use fingerprint::{Swept, shows, sweep};
pub use log::Log;
pub use packed::Packed;
pub use search::{Exploration, Found, Options, explore};
pub use simulate::{Sampled, Walks, walk};
pub use system::{Choice, Kind, Marks, Property, ReplayError, Replayed, Step, System, replay};
