//! Makes a server's schema fit: first by writing references out, then by keeping the types alone.

use serde_json::{Map, Value, json};
use toolgate_kernel::schema::{self, Limits, Validator, subschemas, tidy};
use toolgate_kernel::tool::{ClientToolLimits, client_tools};

/// Longest description that every gateway takes.
const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Deepest that references are written out: deeper than this nothing fits anyway.
const DEPTH_MAX: usize = 16;
/// Most schemas that writing references out may make: a few that refer to each other grow without bound.
const SUBSCHEMAS_MAX: usize = 10_000;

/// What a schema has to fit.
#[derive(Debug, Clone)]
pub enum Profile {
    /// What a gateway takes in a client's request.
    Client(ClientToolLimits),
    /// What a gateway takes from its own configuration: references within the schema may stay.
    Trusted,
}

/// A schema that fits.
pub(crate) struct Fitted {
    pub schema: Value,
    /// It lost something.
    pub simplified: bool,
}

/// A description that fits; a tool without one is described by its name.
pub(crate) fn description(name: &str, given: Option<&str>) -> String {
    match given.unwrap_or_default().trim() {
        "" => format!("The tool {name}."),
        words => words.chars().take(DESCRIPTION_CHARS_MAX).collect(),
    }
}

/// The schema as it fits, or why it cannot be made to.
pub(crate) fn parameters(
    name: &str,
    description: &str,
    given: &Value,
    profile: &Profile,
) -> Result<Fitted, String> {
    let written_out = written_out(given);
    let types = types_only(&written_out, 0);
    let as_it_is = match profile {
        Profile::Client(_) => None,
        Profile::Trusted => Some((given.clone(), false)),
    };
    let candidates = as_it_is.into_iter().chain([(written_out, false), (types, true)]);
    let mut why = String::new();
    for (schema, simplified) in candidates {
        match profile.check(name, description, &schema) {
            Ok(()) => return Ok(Fitted { schema, simplified }),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

impl Profile {
    fn check(&self, name: &str, description: &str, parameters: &Value) -> Result<(), String> {
        let problems = match self {
            Self::Client(limits) => {
                let tool = json!([{"name": name, "description": description, "parameters": parameters}]);
                client_tools(&tool, "/tools", limits).map(drop)
            }
            Self::Trusted if parameters["type"] != "object" => {
                return Err("its schema is not of type object".into());
            }
            Self::Trusted => {
                let schema = parameters.clone().into();
                Validator::compile(&schema, schema::Profile::Trusted, "/parameters").map(drop)
            }
        };
        let first = |problems: Vec<toolgate_kernel::problem::Problem>| problems.into_iter().next();
        problems.map_err(|problems| first(problems).map(|problem| problem.message).unwrap_or_default())
    }
}

/// The schema without references: each is replaced by what it stands for. One that leads nowhere, or to itself
/// without end, stands for anything.
fn written_out(schema: &Value) -> Value {
    let mut copy = schema.clone();
    let mut left = SUBSCHEMAS_MAX;
    resolve(&mut copy, schema, 0, &mut left);
    if let Value::Object(members) = &mut copy {
        members.remove("$defs");
        members.remove("definitions");
        members.entry("type").or_insert_with(|| "object".into());
        tidy(&mut copy);
        return copy;
    }
    json!({"type": "object"})
}

fn resolve(schema: &mut Value, root: &Value, depth: usize, left: &mut usize) {
    let Value::Object(members) = schema else { return };
    if depth > DEPTH_MAX || *left == 0 {
        members.clear();
        return;
    }
    *left -= 1;
    if let Some(Value::String(reference)) = members.remove("$ref") {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        if let Some(Value::Object(target)) = target {
            for (keyword, value) in target {
                members.entry(keyword.clone()).or_insert_with(|| value.clone());
            }
        }
        return resolve(schema, root, depth + 1, left);
    }
    if depth > 0 {
        members.remove("$defs");
        members.remove("definitions");
    }
    subschemas(members).for_each(|part| resolve(part, root, depth + 1, left));
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

    fn fit(schema: Value, profile: &Profile) -> Result<(Value, bool), String> {
        let fitted = parameters("mcp_a_b", "Does.", &schema, profile)?;
        Ok((fitted.schema, fitted.simplified))
    }

    fn fitted(schema: Value) -> (Value, bool) {
        fit(schema, &Profile::Client(ClientToolLimits::default())).unwrap()
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
        assert_eq!(fitted(schema.clone()), (expected, false));
        // In the gateway's own configuration they may stay.
        assert_eq!(fit(schema.clone(), &Profile::Trusted), Ok((schema, false)));
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
    fn a_schema_that_would_grow_without_bound_is_cut() {
        let properties: Map<String, Value> =
            (0..20).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
        let (fitted, simplified) = fitted(json!({"type": "object", "properties": properties}));
        assert!(simplified && fitted["properties"]["p19"].is_object());
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
        let why = fit(schema, &Profile::Client(ClientToolLimits::default())).unwrap_err();
        assert!(why.contains("colour"), "{why}");
    }
}
