//! Example 6.3: a server `db` in two scopes.

use crate::mcp::servers::{Policy, Scope, Transport, resolve};
use crate::propositions::{
    Check, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};
use crate::sources::named::{Definition, Effective, Mechanism, Origin, effective};
use serde_json::{Map, Value, json};

/// The example.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "example-6.3",
    title: "A server in two scopes",
    notion: "The project defines `db` with the URL https://db.example.com/mcp and an Authorization header, the local scope \
             with the URL http://localhost:9000/mcp alone.",
    statement: "Taking whole entries, requests go to the local URL without the header; merging fieldwise, the project's \
                credentials go to the local URL, a combination that no source wrote.",
    source: "000, example 6.3; sources-and-sandbox, section 2 (ex63-local-overrides)",
    hypotheses: &[Hypothesis {
        text: "the whole entry is taken",
        why: "a developer who redirects a server to his own machine does not mean to send it the project's secret",
    }],
    checks: &[
        Check {
            name: "whole-entry",
            method: Method::Enumeration,
            claim: "the effective entry is the local one, to the byte, and so is what is started",
            run: |trial| entry(trial, whole),
        },
        Check {
            name: "fieldwise",
            method: Method::Witness,
            claim: "fieldwise merging gives the local URL with the project's header",
            run: |trial| match entry(trial, fieldwise) {
                Err(crate::propositions::Failure::Refuted(evidence)) => Ok(Some(evidence)),
                Ok(_) => Err(crate::propositions::Failure::refuted("the merged entry is the local one")),
                other => other,
            },
        },
    ],
    ablations: &[Variation {
        name: "fieldwise-merge",
        text: "each field is taken from the highest scope that has it",
        run: |trial| entry(trial, fieldwise),
    }],
    mutants: &[Variation {
        name: "project-first",
        text: "the project goes before the local scope",
        run: |trial| entry(trial, |definitions| definitions.last().map(|definition| definition.says.clone())),
    }],
    differences: &[],
    real: None,
};

/// What counts of the two definitions.
type Choose = fn(&[Definition<Value>]) -> Option<Value>;

fn whole(definitions: &[Definition<Value>]) -> Option<Value> {
    match effective(Mechanism::McpServer.composition(), definitions) {
        Effective::One(definition) => Some(definition.says.clone()),
        Effective::Nothing | Effective::All(_) | Effective::Ambiguous(_) => None,
    }
}

fn fieldwise(definitions: &[Definition<Value>]) -> Option<Value> {
    let mut merged = Map::new();
    for definition in definitions {
        for (field, value) in definition.says.as_object()? {
            merged.entry(field.clone()).or_insert_with(|| value.clone());
        }
    }
    Some(Value::Object(merged))
}

fn entry(trial: &mut Trial<'_>, choose: Choose) -> Outcome {
    let local = json!({"type": "http", "url": "http://localhost:9000/mcp"});
    let project = json!({
        "type": "http",
        "url": "https://db.example.com/mcp",
        "headers": {"Authorization": "the project's secret"},
    });
    trial.every([(local, project)], |(local, project)| -> Result<(), Evidence> {
        let definitions = [
            Definition { origin: Origin::Local, says: local.clone() },
            Definition { origin: Origin::Project, says: project.clone() },
        ];
        let chosen = choose(&definitions).unwrap_or_default();
        ensure!(chosen == local, "requests go to {} with {}", text(&chosen, "url"), text(&chosen, "headers"));
        let file = |entry: &Value| Map::from_iter([("db".to_owned(), entry.clone())]);
        let (local, project) = (file(&local), file(&project));
        let resolved = resolve(&[(Scope::Project, &project), (Scope::Local, &local)], &Policy::default());
        let started: Vec<_> = resolved.iter().filter(|server| server.absent.is_none()).collect();
        let at_local = matches!(
            started.as_slice(),
            [server] if server.scope == Scope::Local
                && matches!(&server.transport, Some(Transport::Remote { url, .. }) if url == "http://localhost:9000/mcp")
        );
        ensure!(at_local, "started: {started:?}");
        Ok(())
    })
}

fn text(entry: &Value, field: &str) -> String {
    entry.get(field).map_or("nothing".to_owned(), Value::to_string)
}
