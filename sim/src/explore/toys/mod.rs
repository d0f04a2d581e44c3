//! Small hand-written systems: measured against other checkers, and small enough to check the explorer itself by.

pub mod call_loop;
pub mod two_phase;
