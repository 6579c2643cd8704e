//! What changed between two definitions.

use serde::Serialize;
use serde_json::Value;
use toolgate_kernel::problem::member;

/// Most differences that are told.
const DIFFERENCES_MAX: usize = 100;

/// One place at which two definitions differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// JSON pointer to the place.
    pub pointer: String,
    /// What stood there; none if there was nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What stands there now; none if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The differences, as deep in as they are.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(pointer: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    if before == after || found.len() >= DIFFERENCES_MAX {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for name in old
                .keys()
                .chain(new.keys().filter(|name| !old.contains_key(*name)))
            {
                compare(member(&pointer, name), old.get(name), new.get(name), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                compare(
                    format!("{pointer}/{index}"),
                    old.get(index),
                    new.get(index),
                    found,
                );
            }
        }
        _ => found.push(Difference {
            pointer,
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_stand_as_deep_as_they_are() {
        let before = json!({"description": "Adds.", "a": [1, 2], "same": {"x": 1}, "gone": true});
        let after = json!({"description": "Adds. <!-- x -->", "a": [1], "same": {"x": 1}, "new": 3});
        let found: Vec<(String, Option<Value>, Option<Value>)> = differences(&before, &after)
            .into_iter()
            .map(|difference| (difference.pointer, difference.before, difference.after))
            .collect();
        let expected = vec![
            (
                "/description".into(),
                Some(json!("Adds.")),
                Some(json!("Adds. <!-- x -->")),
            ),
            ("/a/1".into(), Some(json!(2)), None),
            ("/gone".into(), Some(json!(true)), None),
            ("/new".into(), None, Some(json!(3))),
        ];
        assert_eq!(found, expected);
    }
}
