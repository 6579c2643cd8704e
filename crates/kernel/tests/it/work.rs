//! What checking a value could cost is counted first: a schema and a value that are harmless each, and not together, are
//! refused unchecked, and ordinary ones are not.

use serde_json::{Value, json};
use toolgate_kernel::json::Json;
use toolgate_kernel::schema::{CHECK_STEPS_MAX, Misfit, Profile, Validator};

/// Largest result of a client tool, by default.
const RESULT_BYTES: usize = 256 * 1024;

fn compile(schema: Value, profile: Profile) -> Validator {
    Validator::compile(&Json::from(schema), profile, "").unwrap()
}

#[track_caller]
fn too_costly(schema: Value, profile: Profile, value: &Value) {
    let told = compile(schema, profile).verify(value);
    assert!(matches!(told, Err(Misfit::TooCostly(_))), "{told:?}");
}

#[track_caller]
fn fits(schema: Value, profile: Profile, value: &Value) {
    assert_eq!(compile(schema, profile).verify(value), Ok(()));
}

fn repeats() -> Value {
    let pattern = |last: char| json!({ "type": "string", "pattern": format!("a[ab]{{900}}[^{last}]") });
    json!({ "anyOf": ('a'..='e').map(pattern).collect::<Vec<_>>() })
}

#[test]
fn bounded_repeats_over_long_text_are_refused_unchecked() {
    let text = |bytes: usize| Value::from("ab".repeat(bytes / 2));
    too_costly(repeats(), Profile::Client, &text(400_000));
    too_costly(repeats(), Profile::Client, &text(RESULT_BYTES));
    fits(repeats(), Profile::Client, &text(2_000));
}

#[test]
fn many_subschemas_over_many_values_are_refused_unchecked() {
    let all: Vec<Value> = (0..1_000).map(|n| json!({ "minimum": n - 1_000_000 })).collect();
    let schema = json!({ "items": { "allOf": all } });
    let numbers = |count: usize| Value::from((0..count).collect::<Vec<_>>());
    too_costly(schema.clone(), Profile::Trusted, &numbers(1_000_000));
    too_costly(schema.clone(), Profile::Trusted, &numbers(20_000));
    fits(schema, Profile::Trusted, &numbers(1_000));
}

#[test]
fn keywords_that_hold_much_count_for_each_value() {
    let objects = Value::from(vec![json!({}); 50_000]);
    let options: Vec<String> = (0..1_500).map(|n| n.to_string()).collect();
    too_costly(json!({ "items": { "enum": options } }), Profile::Client, &objects);
    let properties: Value = (0..1_000).map(|n| (n.to_string(), json!({}))).collect();
    too_costly(
        json!({ "items": { "properties": properties } }),
        Profile::Trusted,
        &objects,
    );
}

#[test]
fn a_recursive_schema_that_tries_a_value_again_at_each_level_remembers_what_came_of_it() {
    let twice = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, { "type": "integer" }] });
    let schema = json!({ "items": twice });
    let deep = (0..30).fold(json!(1), |inner, _| json!([inner]));
    fits(schema, Profile::Trusted, &deep);
}

#[test]
fn ordinary_results_of_any_allowed_size_are_checked() {
    let row = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "pattern": "^[a-z0-9-]{1,64}$" },
            "mail": { "type": "string", "format": "email" },
            "kind": { "enum": ["a", "b", "c"] },
            "amount": { "type": "number", "minimum": 0 },
            "tags": { "type": "array", "items": { "type": "string", "maxLength": 20 } },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        },
        "required": ["id"],
    });
    let value = json!({ "id": "row-1", "mail": "ada@example.com", "kind": "b", "amount": 1.5, "tags": ["x", "y"], "note": null });
    let rows = RESULT_BYTES / value.to_string().len();
    fits(
        json!({ "type": "array", "items": row }),
        Profile::Client,
        &Value::from(vec![value; rows]),
    );
    let text = Value::from("word ".repeat(RESULT_BYTES / 5));
    fits(
        json!({ "type": "string", "pattern": "^[a-z ]+$" }),
        Profile::Client,
        &text,
    );
    // A tree: each node is reached by one way.
    let node =
        json!({ "type": "object", "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } });
    let tree = (0..12).fold(json!({}), |inner, _| json!({ "left": inner, "right": inner }));
    fits(node, Profile::Trusted, &tree);
}

#[test]
fn the_estimate_by_bytes_is_never_below_the_count() {
    let schemas = [
        repeats(),
        json!({ "type": "array", "items": { "enum": [1, 2, 3], "format": "email", "multipleOf": 0.5 } }),
        json!({ "properties": { "a": { "maxLength": 3 } }, "additionalProperties": { "uniqueItems": true } }),
    ];
    let values = [
        json!("ab".repeat(500)),
        json!([1, 2, 3, 1.5, "a@b", []]),
        json!({ "a": "abc", "b": [1, 2, [3, 4]], "c": {} }),
        json!([]),
    ];
    for schema in &schemas {
        let validator = compile(schema.clone(), Profile::Client);
        for value in &values {
            let estimate = validator.steps_of_bytes(value.to_string().len());
            let counted = validator.steps_of(value).unwrap();
            assert!(
                counted <= estimate && estimate < CHECK_STEPS_MAX,
                "{schema} {value}"
            );
        }
    }
}
