//! Canonical JSON (RFC 8785): the one text of a value that everybody hashes alike.

use serde_json::{Number, Value};
use toolgate_kernel::problem::{Problem, Problems};

use crate::strict_json::{Path, Segment};

/// Largest whole number that every JSON implementation reads alike, 2^53 - 1 (RFC 7493).
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// The canonical text of `value`. Numbers beyond [`INTEGER_MAX`] are rejected, at their pointers: another implementation
/// would read them as something else.
pub fn canonical(value: &Value) -> Result<String, Vec<Problem>> {
    let problems = Problems::default();
    refuse_numbers(value, &mut Path::default(), &problems);
    let text = problems.is_empty().then(|| text(value));
    problems.or(text)
}

/// The canonical text of a value whose numbers were checked.
pub(crate) fn text(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).expect("a checked value has a canonical text")
}

/// Whether every implementation reads this number alike.
pub(crate) fn is_exact(number: &Number) -> bool {
    number
        .as_f64()
        .is_some_and(|number| number.abs() <= INTEGER_MAX as f64)
}

/// Why a number is refused.
pub(crate) fn inexact(number: &Number) -> String {
    format!(
        "the number {number} is beyond {INTEGER_MAX} (2^53 - 1), which not everybody reads alike; write it as a text"
    )
}

fn refuse_numbers(value: &Value, path: &mut Path, problems: &Problems) {
    match value {
        Value::Number(number) if !is_exact(number) => path.add(inexact(number), problems),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.within(Segment::Item(index), |path| refuse_numbers(item, path, problems));
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                path.within(Segment::Member(name.clone()), |path| {
                    refuse_numbers(value, path, problems);
                });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
