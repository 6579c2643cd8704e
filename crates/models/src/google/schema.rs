//! Gemini accepts a subset of JSON Schema. Other keywords are translated or removed.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use toolgate_kernel::json::Json;

/// Keywords that Gemini rejects or misreads.
const UNKNOWN: &[&str] = &[
    "$schema",
    "$comment",
    "const",
    "examples",
    "default",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "dependentRequired",
    "dependentSchemas",
    "contains",
    "not",
    "if",
    "then",
    "else",
];

/// A tool's schema in Gemini's subset: the original text unless it contains an unsupported keyword.
pub(super) struct Schema<'a>(pub &'a Json);

impl Serialize for Schema<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let text = self.0.as_str();
        let quoted = |word: &&str| {
            let mut found = text.match_indices(*word);
            found.any(|(at, _)| text[..at].ends_with('"') && text[at + word.len()..].starts_with('"'))
        };
        if !UNKNOWN.iter().any(quoted) {
            return self.0.serialize(out);
        }
        let mut schema = self.0.to_value();
        simplify(&mut schema);
        schema.serialize(out)
    }
}

fn simplify(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    if let Some(only) = schema.remove("const") {
        schema.insert("enum".into(), Value::Array(vec![only]));
    }
    make_inclusive(schema, "exclusiveMinimum", "minimum", 1);
    make_inclusive(schema, "exclusiveMaximum", "maximum", -1);
    schema.retain(|keyword, _| !UNKNOWN.contains(&keyword.as_str()));
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(simplify)
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(simplify)
            }
            ("items" | "additionalProperties", schema) => simplify(schema),
            _ => {}
        }
    }
}

/// Turns an exclusive bound into an inclusive one: exact for integers, and slightly wider for other numbers.
fn make_inclusive(schema: &mut Map<String, Value>, excluded: &str, included: &str, step: i64) {
    let Some(bound) = schema.remove(excluded) else {
        return;
    };
    let nearest = match bound.as_i64() {
        Some(bound) if schema.get("type") == Some(&"integer".into()) => {
            Value::from(bound.saturating_add(step))
        }
        _ => bound,
    };
    schema.entry(included).or_insert(nearest);
}
