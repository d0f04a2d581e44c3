//! JSON Schema of tools: instances against schemas, and schemas against their own rules.
//!
//! Default dialect: 2020-12 (mcp.md 1.10). Nothing is ever fetched: an external `$ref` cannot be resolved here, and a
//! schema that needs one is not judged.

use serde_json::Value;

/// Where an instance does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place in the instance, `.name` and `[0]` parts; empty for the whole.
    pub path: String,
    /// What is wrong, e.g. `is not a number`.
    pub what: String,
}

/// More faults of one instance are not listed.
const MOST_FAULTS: usize = 20;

/// A text nested deeper is not judged: validators recurse.
pub const DEEPEST: usize = 64;

/// The faults of an instance; empty where it fits, or where the schema itself cannot be compiled.
pub fn faults(schema: &Value, instance: &Value) -> Vec<Fault> {
    if depth(schema) > DEEPEST || depth(instance) > DEEPEST {
        return Vec::new();
    }
    let Ok(validator) = jsonschema::validator_for(schema) else { return Vec::new() };
    validator
        .iter_errors(instance)
        .take(MOST_FAULTS)
        .map(|error| Fault { path: dotted(error.instance_path().as_str()), what: describe(&error) })
        .collect()
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    use jsonschema::error::{TypeKind, ValidationErrorKind};
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(expected) } => {
            let expected = expected.to_string();
            let article = if expected.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
            format!("is not {article} {expected}")
        }
        ValidationErrorKind::Required { property } => format!("lacks {property}"),
        _ => format!("does not fit: {error}"),
    }
}

/// `/a/0/b` as `.a[0].b`.
fn dotted(pointer: &str) -> String {
    pointer
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .map(|part| {
            if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
                format!("[{part}]")
            } else {
                format!(".{part}")
            }
        })
        .collect()
}

/// How deep a value is nested. Values come from a parser with a depth limit, so the recursion is bounded.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn faults_are_named() {
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}});
        assert_eq!(
            faults(&schema, &json!({"n": "five"})),
            [Fault { path: ".n".into(), what: "is not a number".into() }]
        );
        assert_eq!(faults(&schema, &json!({}))[0].what, "lacks \"n\"");
        assert!(faults(&schema, &json!({"n": 5})).is_empty());
        assert!(faults(&json!({"$ref": "https://example.com/s.json"}), &json!(1)).is_empty());
    }
}
