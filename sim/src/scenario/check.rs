//! Comparing a run with what its scenario expects.
