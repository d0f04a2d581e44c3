//! Shared parts of the benchmarks.

pub mod harness;
pub mod measure;
pub mod peers;
