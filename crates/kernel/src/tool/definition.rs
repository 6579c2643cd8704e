//! What every written definition has, whoever wrote it.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::TIMEOUT_MAX;
use crate::json::Json;
use crate::members::Members;
use crate::name::{BadName, ToolName};
use crate::problem::{Problems, shown};
use crate::schema::{Limits, Validator};

/// Longest description.
pub const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Longest permission, trigger, category, version or name of an action.
pub(crate) const WORD_CHARS_MAX: usize = 256;
/// Shortest time-out that makes sense.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// The name, when it is one.
pub(crate) fn name(tool: &Members<'_>) -> Option<ToolName> {
    match tool.get("name") {
        Some(Value::String(name)) => name
            .parse()
            .map_err(|bad: BadName| tool.wrong("name", bad.to_string()))
            .ok(),
        Some(other) => {
            tool.wrong("name", format!("expected a name, got {}", shown(other)));
            None
        }
        None => {
            tool.lacks("a tool needs a name");
            None
        }
    }
}

/// The description, which a model cannot do without.
pub(crate) fn description(tool: &Members<'_>) -> Option<String> {
    if tool.get("description").is_none() {
        tool.lacks("a tool needs a description, for the model to know when to use it");
    }
    tool.text("description", DESCRIPTION_CHARS_MAX).map(str::to_owned)
}

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
        let words = "the input of a tool is an object: its schema must say \"type\": \"object\"";
        tool.wrong(member, words);
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

/// The time-out, when there is one: seconds, or a text such as `"30s"`, `"10m"`, `"500ms"`.
pub(crate) fn timeout(tool: &Members<'_>) -> Option<Duration> {
    let value = tool.get("timeout")?;
    let timeout = duration(value).filter(|time| (TIMEOUT_MIN..=TIMEOUT_MAX).contains(time));
    if timeout.is_none() {
        let days = TIMEOUT_MAX.as_secs() / (24 * 3600);
        let words = "expected a number of seconds or a text such as \"30s\", \"10m\" or \"500ms\"";
        tool.wrong(
            "timeout",
            format!("{words}, up to {days} days, got {}", shown(value)),
        );
    }
    timeout
}

/// A number of seconds, or a text with a unit.
pub(crate) fn duration(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(seconds) => seconds.as_f64()?,
        Value::String(text) => {
            let (amount, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
            let unit = match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return None,
            };
            amount.trim().parse::<f64>().ok()? * unit
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// The version, when there is one.
pub(crate) fn version(tool: &Members<'_>) -> Option<String> {
    tool.text("version", WORD_CHARS_MAX).map(str::to_owned)
}

/// Why it should not be used any more, when that is so: a text, or `true`.
pub(crate) fn deprecated(tool: &Members<'_>) -> Option<String> {
    match tool.get("deprecated")? {
        Value::Bool(yes) => yes.then(|| "This tool is deprecated.".to_owned()),
        _ => tool.text("deprecated", DESCRIPTION_CHARS_MAX).map(str::to_owned),
    }
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
