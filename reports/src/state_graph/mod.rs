//! State graphs in the formats that other tools read, and as a drawing: DOT (Graphviz), AUT (Aldebaran, for CADP and
//! mCRL2), GraphML (yEd, Gephi, NetworkX), SVG.

mod svg;

pub use svg::svg;

use std::io::{self, Write};
use windtunnel_model::state_graph::{StateGraph, StateKind};

/// Writes the graph for Graphviz.
///
/// # Errors
/// When `out` cannot be written.
pub fn dot(graph: &StateGraph, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "digraph {} {{", quoted(&graph.name))?;
    writeln!(out, "  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];")?;
    for (index, node) in graph.nodes.iter().enumerate() {
        let fields: Vec<String> =
            node.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let look = match node.kind {
            StateKind::Inner => "",
            StateKind::Initial => ", penwidth=2",
            StateKind::Final => ", peripheries=2",
            StateKind::Deadlock => ", color=orange, penwidth=2",
            StateKind::Violation => ", color=red, penwidth=2",
        };
        writeln!(out, "  s{index} [label={}{look}];", quoted(&fields.join("\n")))?;
    }
    for edge in &graph.edges {
        writeln!(out, "  s{} -> s{} [label={}];", edge.from, edge.to, quoted(&edge.label))?;
    }
    writeln!(out, "}}")
}

/// Writes the graph in the Aldebaran format: labelled transitions only.
///
/// # Errors
/// When `out` cannot be written.
pub fn aut(graph: &StateGraph, out: &mut impl Write) -> io::Result<()> {
    let start = graph.nodes.iter().position(|node| node.depth == 0).unwrap_or(0);
    writeln!(out, "des ({start}, {}, {})", graph.edges.len(), graph.nodes.len())?;
    for edge in &graph.edges {
        // The format knows no escape for a quotation mark.
        writeln!(out, "({}, \"{}\", {})", edge.from, edge.label.replace(['"', '\n'], "'"), edge.to)?;
    }
    Ok(())
}

/// Writes the graph as GraphML.
///
/// # Errors
/// When `out` cannot be written.
pub fn graphml(graph: &StateGraph, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">")?;
    for (id, on) in [("fields", "node"), ("kind", "node"), ("depth", "node"), ("choice", "edge")] {
        let kind = if id == "depth" { "int" } else { "string" };
        writeln!(out, "  <key id=\"{id}\" for=\"{on}\" attr.name=\"{id}\" attr.type=\"{kind}\"/>")?;
    }
    writeln!(out, "  <graph id=\"{}\" edgedefault=\"directed\">", escaped(&graph.name))?;
    for (index, node) in graph.nodes.iter().enumerate() {
        let fields: Vec<String> =
            node.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        writeln!(
            out,
            "    <node id=\"s{index}\"><data key=\"fields\">{}</data><data key=\"kind\">{}</data><data key=\"depth\">{}</data></node>",
            escaped(&fields.join("; ")),
            word(node.kind),
            node.depth
        )?;
    }
    for (index, edge) in graph.edges.iter().enumerate() {
        writeln!(
            out,
            "    <edge id=\"e{index}\" source=\"s{}\" target=\"s{}\"><data key=\"choice\">{}</data></edge>",
            edge.from,
            edge.to,
            escaped(&edge.label)
        )?;
    }
    writeln!(out, "  </graph>\n</graphml>")
}

fn word(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Inner => "inner",
        StateKind::Initial => "initial",
        StateKind::Final => "final",
        StateKind::Deadlock => "deadlock",
        StateKind::Violation => "violation",
    }
}

/// A string of DOT.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Text inside XML. Characters that XML cannot hold are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}')
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_model::state_graph::{StateEdge, StateNode};

    pub(super) fn sample() -> StateGraph {
        let node = |phase: &str, kind, depth: u32| StateNode {
            fields: vec![("phase".to_owned(), phase.to_owned()), ("calls".to_owned(), depth.to_string())],
            kind,
            depth,
        };
        let edge = |from, to, label: &str| StateEdge { from, to, label: label.to_owned() };
        StateGraph {
            name: "a \"small\" <one>".to_owned(),
            nodes: vec![
                node("start", StateKind::Initial, 0),
                node("hook", StateKind::Inner, 1),
                node("blocked", StateKind::Final, 2),
                node("ran & broke", StateKind::Violation, 2),
                node("stuck", StateKind::Deadlock, 3),
            ],
            edges: vec![
                edge(0, 1, "the assistant calls Bash"),
                edge(1, 2, "the hook exits 2"),
                edge(1, 3, "the hook exits 1"),
                edge(3, 4, "no answer"),
                edge(2, 2, "stay"),
                edge(3, 1, "again"),
            ],
            truncated: false,
        }
    }

    fn text(write: fn(&StateGraph, &mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&sample(), &mut out).expect("a vector can be written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn dot_escapes_and_lists_every_state_and_step() {
        let text = text(dot);
        assert!(text.starts_with("digraph \"a \\\"small\\\" <one>\" {"));
        assert_eq!(text.matches(" -> ").count(), 6);
        assert!(text.contains("s3 [label=\"phase: ran & broke\\ncalls: 2\", color=red, penwidth=2];"));
    }

    #[test]
    fn aut_counts_in_its_head() {
        let text = text(aut);
        assert_eq!(text.lines().next(), Some("des (0, 6, 5)"));
        assert!(text.contains("(1, \"the hook exits 2\", 2)"));
    }

    #[test]
    fn graphml_escapes() {
        let text = text(graphml);
        assert!(text.contains("phase: ran &amp; broke; calls: 2"));
        assert_eq!(text.matches("<edge ").count(), 6);
    }
}
