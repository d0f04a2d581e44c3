//! Worlds: what answers the harness. A world turns the harness's outputs into one next input; [`closed`] lists *all*
//! next inputs in a documented, stable order, and the other worlds pick from that list, so that a run is its schedule.

pub mod closed;
pub mod outcome;
pub mod player;
pub mod process;
pub mod random;
pub mod scripted;
pub mod shrink;
