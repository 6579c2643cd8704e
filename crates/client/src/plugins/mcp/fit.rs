//! Makes a server's schema fit what a gateway takes from a client: first by writing references out, then by keeping
//! the types alone.

use serde_json::{Map, Value, json};
use toolgate_kernel::schema::Limits;
use toolgate_kernel::tool::ClientToolLimits;

use super::anything;
use crate::registry::check;
use crate::schema::{subschemas, tidy};
use crate::tool::Definition;

/// Longest description that a gateway takes.
const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Deepest that references are written out: deeper than this nothing fits anyway.
const DEPTH_MAX: usize = 16;

/// The definition as a gateway takes it, and whether its schema lost something; or why there is none.
pub(super) fn definition(
    name: String,
    description: &str,
    schema: Value,
) -> Result<(Definition, bool), String> {
    let description = match description.trim() {
        "" => format!("The tool {name}."),
        words => words.chars().take(DESCRIPTION_CHARS_MAX).collect(),
    };
    let written_out = written_out(&schema);
    let types = types_only(&written_out, 0);
    let candidates = [(written_out, false), (types, true)];
    let mut why = String::new();
    for (parameters, simplified) in candidates {
        let definition = Definition::new(name.clone(), description.clone()).parameters(parameters);
        let list = serde_json::to_value([&definition]).expect("a definition is JSON");
        match check(&list, &ClientToolLimits::default()) {
            Ok(()) => return Ok((definition, simplified)),
            Err(faults) => {
                why = faults
                    .first()
                    .map(|fault| fault.message.clone())
                    .unwrap_or_default()
            }
        }
    }
    Err(why)
}

/// The schema without references: each is replaced by what it stands for. One that leads nowhere, or to itself
/// without end, stands for anything.
fn written_out(schema: &Value) -> Value {
    let mut copy = schema.clone();
    resolve(&mut copy, schema, 0);
    if let Value::Object(members) = &mut copy {
        members.remove("$defs");
        members.remove("definitions");
        members.entry("type").or_insert_with(|| "object".into());
        tidy(&mut copy);
        return copy;
    }
    anything()
}

fn resolve(schema: &mut Value, root: &Value, depth: usize) {
    let Value::Object(members) = schema else { return };
    if depth > DEPTH_MAX {
        members.clear();
        return;
    }
    if let Some(Value::String(reference)) = members.remove("$ref") {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        if let Some(Value::Object(target)) = target {
            for (keyword, value) in target {
                members.entry(keyword.clone()).or_insert_with(|| value.clone());
            }
        }
        return resolve(schema, root, depth + 1);
    }
    if depth > 0 {
        members.remove("$defs");
        members.remove("definitions");
    }
    subschemas(members).for_each(|part| resolve(part, root, depth + 1));
}

/// The types, descriptions and choices of a schema, as deep and as wide as a gateway takes.
fn types_only(schema: &Value, depth: usize) -> Value {
    let Value::Object(from) = schema else {
        return json!({});
    };
    let mut kept = Map::new();
    for keyword in ["type", "description", "enum", "required"] {
        if let Some(value) = from.get(keyword) {
            kept.insert(keyword.into(), value.clone());
        }
    }
    if depth < Limits::CLIENT.depth {
        if let Some(items) = from.get("items") {
            kept.insert("items".into(), types_only(items, depth + 1));
        }
        if let Some(Value::Object(properties)) = from.get("properties") {
            let required = from
                .get("required")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let mut names: Vec<&String> = properties.keys().collect();
            names.sort_by_key(|name| !required.contains(&Value::from(name.as_str())));
            names.truncate(Limits::CLIENT.properties);
            let part = |name: &String| (name.clone(), types_only(&properties[name], depth + 1));
            kept.insert(
                "properties".into(),
                Value::Object(names.into_iter().map(part).collect()),
            );
        }
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(schema: Value) -> (Value, bool) {
        let (definition, simplified) = definition("mcp_a_b".into(), "Does.", schema).unwrap();
        (definition.parameters, simplified)
    }

    #[test]
    fn a_schema_that_fits_stays_as_it_is() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
        assert_eq!(fitted(schema.clone()), (schema, false));
    }

    #[test]
    fn references_are_written_out() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/zone", "description": "Here."}},
            "$defs": {"zone": {"type": "string", "maxLength": 9}},
        });
        let expected = json!({"type": "object", "properties": {"a": {"description": "Here.", "type": "string", "maxLength": 9}}});
        assert_eq!(fitted(schema), (expected, false));
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_cut_where_it_gets_too_deep() {
        let schema = json!({
            "type": "object",
            "properties": {"child": {"$ref": "#"}, "name": {"type": "string"}},
        });
        let (fitted, simplified) = fitted(schema);
        assert!(simplified);
        assert_eq!(
            fitted["properties"]["child"]["properties"]["name"]["type"],
            "string"
        );
    }

    #[test]
    fn of_too_many_properties_the_required_ones_are_kept() {
        let properties: Map<String, Value> = (0..30)
            .map(|n| (format!("p{n}"), json!({"type": "string"})))
            .collect();
        let (fitted, simplified) =
            fitted(json!({"type": "object", "properties": properties, "required": ["p29"]}));
        assert!(simplified && fitted["properties"]["p29"].is_object());
    }

    #[test]
    fn what_cannot_be_made_to_fit_is_refused_with_the_reason() {
        let schema = json!({"type": "object", "properties": {"x": {"type": "colour"}}});
        let why = definition("mcp_a_b".into(), "Does.", schema).unwrap_err();
        assert!(why.contains("colour"), "{why}");
    }
}
