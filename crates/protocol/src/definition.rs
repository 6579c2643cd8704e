//! What every written definition of a tool has, whoever wrote it.

use std::time::Duration;

use serde_json::Value;

use crate::members::Members;
use crate::name::{BadName, ToolName};
use crate::problem::{Problems, kind, shown};
use crate::tool::TIMEOUT_MAX;

/// Longest description.
pub const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Longest permission, trigger, category, version or name of an action.
pub const WORD_CHARS_MAX: usize = 256;
/// What is wrong with the schema of an input that is not an object.
pub const INPUT_IS_OBJECT: &str =
    "the input of a tool is an object: its schema must say \"type\": \"object\"";
/// Shortest time-out that makes sense.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// The members of the definition at `pointer`. Unlike [`Members::open`] it says what an object is wanted for.
pub fn open<'v>(
    tool: &'v Value,
    pointer: &str,
    known: &[&str],
    problems: &'v Problems,
) -> Option<Members<'v>> {
    if !tool.is_object() {
        let words = "a tool must be an object with a name, a description and parameters";
        problems.add(pointer, format!("{words}, got {}", kind(tool)));
        return None;
    }
    Members::open(tool, pointer, known, problems)
}

/// The name, when it is one.
pub fn name(tool: &Members<'_>) -> Option<ToolName> {
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
pub fn description(tool: &Members<'_>) -> Option<String> {
    if tool.get("description").is_none() {
        tool.lacks("a tool needs a description, for the model to know when to use it");
    }
    tool.text("description", DESCRIPTION_CHARS_MAX).map(str::to_owned)
}

/// The time-out, when there is one: seconds, or a text such as `"30s"`, `"10m"`, `"500ms"`.
pub fn timeout(tool: &Members<'_>) -> Option<Duration> {
    timeout_in(tool, "timeout")
}

/// A time-out in another member, written in the same way.
pub fn timeout_in(tool: &Members<'_>, member: &str) -> Option<Duration> {
    let value = tool.get(member)?;
    let timeout = duration(value).filter(|time| (TIMEOUT_MIN..=TIMEOUT_MAX).contains(time));
    if timeout.is_none() {
        let days = TIMEOUT_MAX.as_secs() / (24 * 3600);
        let words = "expected a number of seconds or a text such as \"30s\", \"10m\" or \"500ms\"";
        tool.wrong(
            member,
            format!("{words}, up to {days} days, got {}", shown(value)),
        );
    }
    timeout
}

/// A number of seconds, or a text with a unit.
pub fn duration(value: &Value) -> Option<Duration> {
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
pub fn version(tool: &Members<'_>) -> Option<String> {
    tool.text("version", WORD_CHARS_MAX).map(str::to_owned)
}

/// Why it should not be used any more, when that is so: a text, or `true`.
pub fn deprecated(tool: &Members<'_>) -> Option<String> {
    match tool.get("deprecated")? {
        Value::Bool(yes) => yes.then(|| "This tool is deprecated.".to_owned()),
        _ => tool.text("deprecated", DESCRIPTION_CHARS_MAX).map(str::to_owned),
    }
}
