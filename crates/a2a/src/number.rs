//! Numbers as protobuf leaves them: libraries that keep JSON in a `google.protobuf.Value` turn every number into a
//! double, so `10` arrives as `10.0`, also within JSON Schemas.

use serde_json::{Number, Value};

/// Largest whole number that a double holds exactly, 2^53 - 1.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// The value with every whole double in it turned back into an integer. Numbers that a double cannot hold exactly, and
/// negative zero, stay as they are.
pub fn repaired(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(repaired_number(number)),
        Value::Array(items) => items.into_iter().map(repaired).collect(),
        Value::Object(members) => Value::Object(repaired_members(members)),
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

/// The same for the members of an object.
pub fn repaired_members(members: crate::Metadata) -> crate::Metadata {
    let members = members.into_iter();
    members.map(|(name, value)| (name, repaired(value))).collect()
}

fn repaired_number(number: Number) -> Number {
    if !number.is_f64() {
        return number;
    }
    match number.as_f64() {
        Some(double) if double.fract() == 0.0 && double.abs() <= EXACT_MAX && !is_negative_zero(double) => {
            Number::from(double as i64)
        }
        _ => number,
    }
}

fn is_negative_zero(double: f64) -> bool {
    double == 0.0 && double.is_sign_negative()
}
