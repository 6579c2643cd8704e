//! Gemini reads a part of JSON Schema. What it does not know is said otherwise, or left out.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use toolgate_kernel::json::Json;

/// Keywords that Gemini refuses or misreads.
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

/// A tool's schema as Gemini takes it: the text itself unless it holds something to mend.
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
        mend(&mut schema);
        schema.serialize(out)
    }
}

fn mend(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    if let Some(only) = schema.remove("const") {
        schema.insert("enum".into(), Value::Array(vec![only]));
    }
    include(schema, "exclusiveMinimum", "minimum", 1);
    include(schema, "exclusiveMaximum", "maximum", -1);
    schema.retain(|keyword, _| !UNKNOWN.contains(&keyword.as_str()));
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(mend)
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(mend)
            }
            ("items" | "additionalProperties", schema) => mend(schema),
            _ => {}
        }
    }
}

/// A bound that is left out becomes the next integer, which is kept; for other numbers it is near enough.
fn include(schema: &mut Map<String, Value>, excluded: &str, included: &str, step: i64) {
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
