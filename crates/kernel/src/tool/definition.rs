//! What every written definition has, whoever wrote it.

use std::fmt::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::json::Json;
use crate::members::Members;
use crate::problem::Problems;
use crate::schema::{Limits, Validator};

pub use toolgate_protocol::definition::*;

/// The schema of the input and its validator: as written, or else the usual one, or else of any object.
pub(crate) fn parameters(tool: &Members<'_>, limits: &Limits) -> Option<(Json, Validator)> {
    let object = json!({ "type": "object" });
    let (schema, member) = match (tool.own("parameters"), tool.own("inputSchema")) {
        (Some(schema), None) => (schema, "parameters"),
        (None, Some(schema)) => (schema, "inputSchema"),
        (None, None) => (tool.get("parameters").unwrap_or(&object), "parameters"),
        (Some(schema), Some(_)) => {
            let words = "\"inputSchema\" is another word for \"parameters\"; give one of them";
            tool.wrong("inputSchema", words);
            (schema, "parameters")
        }
    };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        tool.wrong(member, INPUT_IS_OBJECT);
    }
    compile(schema, limits, &tool.at(member), tool.problems)
}

/// The schema of the output and its validator, when there is one.
pub(crate) fn output(tool: &Members<'_>, limits: &Limits) -> Option<(Json, Validator)> {
    let schema = tool.get("outputSchema")?;
    let (schema, output) = compile(schema, limits, &tool.at("outputSchema"), tool.problems)?;
    Some((schema, output.of_output()))
}

/// Compiles one schema of a definition.
pub(crate) fn compile(
    schema: &Value,
    limits: &Limits,
    pointer: &str,
    problems: &Problems,
) -> Option<(Json, Validator)> {
    let schema = Json::from(schema);
    let validator = problems.take(Validator::compile_within(&schema, limits, pointer))?;
    Some((schema, validator))
}

/// SHA-256 of a definition, in hex. The order of members and the spacing do not matter.
pub(crate) fn hash(definition: &Value) -> String {
    let mut text = String::new();
    write_sorted(definition, &mut text);
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        write!(hex, "{byte:02x}").expect("a string takes everything");
    }
    hex
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (index, (name, value)) in members.into_iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                write_scalar(&name.as_str().into(), out);
                out.push(':');
                write_sorted(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write_sorted(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => write_scalar(value, out),
    }
}

fn write_scalar(value: &Value, out: &mut String) {
    write!(out, "{value}").expect("a string takes everything");
}
