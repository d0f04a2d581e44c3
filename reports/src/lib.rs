//! Reports.

pub mod state_graph;
