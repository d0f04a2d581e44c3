//! State graphs: what an exploration drew, ready for reports and exports. The types are here so that a report needs
//! nothing of the explorer.

use serde::{Deserialize, Serialize};

/// What is special about a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateKind {
    /// Nothing.
    #[default]
    Inner,
    /// A run starts here.
    Initial,
    /// A run ends here.
    Final,
    /// Nothing can happen here, and it is no proper end.
    Deadlock,
    /// An invariant is broken here, or by the step that leads here.
    Violation,
}

/// One state: its fields in the words of the domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateNode {
    /// Names and values.
    pub fields: Vec<(String, String)>,
    /// What is special about it.
    pub kind: StateKind,
    /// Steps from an initial state.
    pub depth: u32,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEdge {
    /// The index of the state it leaves.
    pub from: usize,
    /// The index of the state it reaches.
    pub to: usize,
    /// The choice in the words of the domain.
    pub label: String,
}

/// A state graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateGraph {
    /// The name of the scenario.
    pub name: String,
    /// The states, in breadth-first order.
    pub nodes: Vec<StateNode>,
    /// The steps, by the state they leave.
    pub edges: Vec<StateEdge>,
    /// Whether states were left out because there were too many.
    pub truncated: bool,
}

impl StateGraph {
    /// The fields of node `index` that differ from those of `before`: what a step changed.
    pub fn changed(&self, before: usize, index: usize) -> Vec<(String, String)> {
        let old = self.nodes.get(before).map(|node| node.fields.as_slice()).unwrap_or_default();
        let new = self.nodes.get(index).map(|node| node.fields.as_slice()).unwrap_or_default();
        new.iter().filter(|field| !old.contains(field)).cloned().collect()
    }
}
