//! Shared parts of the benchmarks.

pub mod measure;
pub mod peers;
