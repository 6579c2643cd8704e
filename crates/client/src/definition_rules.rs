//! The gateway's rules for definitions of client tools, as far as they can be checked without a JSON Schema validator,
//! which would double the crates of the SDK. The gateway decides, and checks the rest: this reports the same problems in
//! the same words before anything is sent.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolgate_protocol::definition;
use toolgate_protocol::name::ToolName;
use toolgate_protocol::problem::{Problem, Problems, member, preview, shown};
use toolgate_protocol::schema_limits::{Limits, TYPES};

use crate::error::Fault;

/// What a definition may have; `strict` is OpenAI's and means nothing here.
const MEMBERS: [&str; 9] = [
    "name",
    "description",
    "parameters",
    "inputSchema",
    "outputSchema",
    "timeout",
    "version",
    "deprecated",
    "strict",
];
const LIMITS: Limits = Limits::CLIENT;

/// All problems of definitions, with pointers that begin at `/tools`. How many there may be is left to the gateway,
/// because it is a setting there.
pub(crate) fn check(definitions: &Value) -> Result<(), Vec<Fault>> {
    let problems = Problems::default();
    check_all(definitions, "/tools", &problems);
    let fault = |problem: Problem| Fault {
        pointer: problem.pointer,
        message: problem.message,
    };
    problems
        .or(Some(()))
        .map_err(|problems| problems.into_iter().map(fault).collect())
}

fn check_all(definitions: &Value, pointer: &str, problems: &Problems) {
    let Value::Array(items) = definitions else {
        let words = format!("expected an array of tools, got {}", shown(definitions));
        problems.add(pointer, words);
        return;
    };
    let mut names: HashMap<String, ToolName> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("{pointer}/{index}");
        let Some(name) = check_tool(item, &place, problems) else {
            continue;
        };
        match names.insert(name.folded(), name.clone()) {
            Some(other) if other == name => problems.add(place, format!("two tools are named {name:?}")),
            Some(other) => problems.add(place, format!("{name:?} differs from {other:?} only in case")),
            None => {}
        }
    }
}

/// Checks one tool. Its name, if the rest can be read as well.
fn check_tool(item: &Value, pointer: &str, problems: &Problems) -> Option<ToolName> {
    let tool = definition::open(item, pointer, &MEMBERS, problems)?;
    let name = definition::name(&tool);
    let description = definition::description(&tool);
    let object = json!({ "type": "object" });
    let parameters = tool.get("parameters").unwrap_or(&object);
    if parameters.get("type").and_then(Value::as_str) != Some("object") {
        tool.wrong("parameters", definition::INPUT_IS_OBJECT);
    }
    let is_sound = check_schema(parameters, &tool.at("parameters"), problems);
    if let Some(output) = tool.get("outputSchema") {
        check_schema(output, &tool.at("outputSchema"), problems);
    }
    definition::timeout(&tool);
    definition::version(&tool);
    definition::deprecated(&tool);
    name.filter(|_| description.is_some() && is_sound)
}

/// Whether the schema has no problem.
fn check_schema(schema: &Value, pointer: &str, problems: &Problems) -> bool {
    let (bytes, max) = (schema.to_string().len(), LIMITS.bytes);
    if bytes > max {
        let words = format!("the schema has {bytes} bytes; at most {max} are allowed");
        problems.add(pointer, words);
        return false;
    }
    let mut look = Look {
        problems,
        patterns: 0,
        is_sound: true,
        is_too_deep: false,
    };
    look.schema(schema, pointer, 0);
    if !look.is_too_deep && look.patterns > LIMITS.patterns {
        let (seen, max) = (look.patterns, LIMITS.patterns);
        look.wrong(
            pointer.to_owned(),
            format!("the schema has {seen} patterns; at most {max} are allowed"),
        );
    }
    look.is_sound
}

struct Look<'p> {
    problems: &'p Problems,
    patterns: usize,
    is_sound: bool,
    is_too_deep: bool,
}

impl Look<'_> {
    fn wrong(&mut self, pointer: String, words: String) {
        self.is_sound = false;
        self.problems.add(pointer, words);
    }

    fn schema(&mut self, schema: &Value, pointer: &str, depth: usize) {
        let max = LIMITS.depth;
        if depth > max {
            self.is_too_deep = true;
            let words = format!("the schema is nested deeper than {max} levels");
            self.wrong(pointer.to_owned(), words);
            return;
        }
        let Value::Object(keywords) = schema else {
            if !schema.is_boolean() {
                let words = "a schema is an object, true or false".to_owned();
                self.wrong(pointer.to_owned(), words);
            }
            return;
        };
        for (keyword, value) in keywords {
            self.keyword(keyword, value, member(pointer, keyword));
        }
        for (place, part) in parts(keywords) {
            self.schema(part, &format!("{pointer}{place}"), depth + 1);
        }
    }

    fn keyword(&mut self, keyword: &str, value: &Value, pointer: String) {
        match (keyword, value) {
            ("$ref" | "$dynamicRef", Value::String(_)) => {
                let words = format!("{keyword} is not allowed here; write out what it stands for");
                self.wrong(pointer, words);
            }
            ("type", Value::String(name)) => self.known_type(name, pointer),
            ("type", Value::Array(names)) => {
                for (index, name) in names.iter().enumerate() {
                    self.known_type(name.as_str().unwrap_or_default(), format!("{pointer}/{index}"));
                }
            }
            ("properties", Value::Object(properties)) if properties.len() > LIMITS.properties => {
                let (seen, max) = (properties.len(), LIMITS.properties);
                let words = format!("{seen} properties in one object; at most {max} are allowed");
                self.wrong(pointer, words);
            }
            ("pattern", Value::String(_)) => self.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
            _ => {}
        }
    }

    fn known_type(&mut self, name: &str, pointer: String) {
        if !TYPES.contains(&name) {
            let (seen, all) = (preview(name), TYPES.join(", "));
            self.wrong(pointer, format!("{seen} is not a type; use one of {all}"));
        }
    }
}

/// The schemas that stand in a schema, each with its place.
fn parts(keywords: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut parts = Vec::new();
    for (keyword, value) in keywords {
        let place = member("", keyword);
        match (keyword.as_str(), value) {
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "items"
                | "unevaluatedItems"
                | "contains"
                | "contentSchema",
                schema,
            ) => parts.push((place, schema)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(of)) => {
                let of = of.iter().enumerate();
                parts.extend(of.map(|(index, schema)| (format!("{place}/{index}"), schema)));
            }
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                Value::Object(of),
            ) => parts.extend(of.iter().map(|(name, schema)| (member(&place, name), schema))),
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_the_gateways_words() {
        for line in include_str!("../../kernel/tests/samples/client-definitions.jsonl").lines() {
            let sample: Value = serde_json::from_str(line).unwrap();
            let faults = check(&sample["tools"]).err().unwrap_or_default();
            let faults: Vec<Value> = faults
                .into_iter()
                .map(|Fault { pointer, message }| {
                    let pointer = pointer.strip_prefix("/tools").expect("pointers begin there");
                    json!({"pointer": pointer, "message": message})
                })
                .collect();
            assert_eq!(Value::Array(faults), sample["faults"], "{}", sample["title"]);
        }
    }
}
