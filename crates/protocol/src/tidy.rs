//! Rewriting schemas that come from elsewhere.

use serde_json::{Map, Value};

/// Keywords that name or describe a schema and do not constrain the value. They cost bytes and help no model.
const NAMES: [&str; 3] = ["$schema", "$id", "title"];

/// Removes naming keywords, and formats that only Rust has (`uint32`), whose bounds remain.
pub fn tidy(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    // A property may be called `title`: only keywords are removed.
    NAMES.iter().for_each(|name| drop(members.remove(*name)));
    if let Some(Value::String(format)) = members.get("format")
        && ["uint", "int", "float", "double"]
            .iter()
            .any(|own| format.starts_with(own))
    {
        members.remove("format");
    }
    subschemas(members).for_each(tidy);
}

/// The direct subschemas of a schema, to be changed in place.
pub fn subschemas(members: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    members
        .iter_mut()
        .flat_map(|(keyword, value)| -> Vec<&mut Value> {
            match (keyword.as_str(), value) {
                (
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(of),
                ) => of.values_mut().collect(),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(of)) => of.iter_mut().collect(),
                (
                    "items"
                    | "additionalProperties"
                    | "contains"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "propertyNames",
                    schema @ Value::Object(_),
                ) => vec![schema],
                _ => Vec::new(),
            }
        })
}
