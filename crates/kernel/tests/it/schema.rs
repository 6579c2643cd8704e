//! What is said of a value that does not fit its schema.

use serde_json::{Value, json};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::schema::{CHECK_PROBLEMS_MAX, Profile, Validator};

/// Each problem with its pointer, for comparing.
pub fn lines(problems: &[Problem]) -> Vec<String> {
    let line = |problem: &Problem| format!("{} {}", problem.pointer, problem.message);
    problems.iter().map(line).collect()
}

fn compiled(schema: &Value) -> Validator {
    Validator::compile(&Json::from(schema), Profile::Trusted, "")
        .unwrap_or_else(|problems| panic!("{schema}: {problems:?}"))
}

/// What is said of `value`, each with its pointer; nothing when it fits.
#[track_caller]
pub fn check(schema: Value, value: Value, expected: &[&str]) {
    let validator = compiled(&schema);
    let problems = validator.check(&value);
    assert_eq!(lines(&problems), expected, "{value} against {schema}");
    assert_eq!(validator.fits(&value), expected.is_empty());
    assert_eq!(
        validator.check_text(&value.to_string()),
        if expected.is_empty() {
            Ok(value)
        } else {
            Err(problems)
        }
    );
}

fn one(property: Value) -> Value {
    json!({ "type": "object", "properties": { "xyz": property } })
}

fn nested(depth: usize, leaf: Value) -> Value {
    (0..depth).fold(leaf, |inner, _| json!({ "x": inner }))
}

#[test]
fn the_four_common_messages_are_given_word_for_word() {
    let schema = json!({ "type": "object", "required": ["xyz"], "additionalProperties": false,
        "properties": { "xyz": { "type": "string" }, "limit": { "type": "integer" } } });
    check(
        schema.clone(),
        json!({}),
        &["/xyz Missing required parameter: xyz"],
    );
    check(
        schema.clone(),
        json!({ "xyz": "a", "abc": 1 }),
        &["/abc Unknown parameter: abc"],
    );
    check(
        schema.clone(),
        json!({ "xyz": 1 }),
        &["/xyz Parameter xyz has wrong type: expected string, got number"],
    );
    check(
        schema.clone(),
        json!({ "xyz": "", "limit": 2.5 }),
        &["/limit Parameter limit must be an integer, got: 2.5"],
    );
    check(schema, json!({ "xyz": "", "limit": 2.0 }), &[]);
}

#[test]
fn everything_wrong_is_said_at_once() {
    check(
        json!({ "type": "object", "required": ["query"], "additionalProperties": false,
            "properties": { "limit": { "type": "integer" } } }),
        json!({ "limit": "five", "a": 1, "b": 2 }),
        &[
            "/limit Parameter limit has wrong type: expected integer, got string",
            "/a Unknown parameter: a",
            "/b Unknown parameter: b",
            "/query Missing required parameter: query",
        ],
    );
}

#[test]
fn nested_names_are_dotted_paths() {
    let schema = json!({ "properties": {
        "address": { "type": "object", "required": ["city"], "properties": { "zip": { "type": "string" } } },
        "tags": { "items": { "type": "string" } },
        "0": { "properties": { "a/b": { "type": "null" } } } } });
    check(
        schema.clone(),
        json!({ "address": {} }),
        &["/address/city Missing required parameter: address.city"],
    );
    check(
        schema.clone(),
        json!({ "address": { "city": "", "zip": 1 }, "tags": ["a", true] }),
        &[
            "/address/zip Parameter address.zip has wrong type: expected string, got number",
            "/tags/1 Parameter tags[1] has wrong type: expected string, got boolean",
        ],
    );
    check(
        schema,
        json!({ "0": { "a/b": 1 } }),
        &["/0/a~1b Parameter 0.a/b has wrong type: expected null, got number"],
    );
}

/// A schema, a value that does not fit, and what is said of it.
const SENTENCES: &str = r#"
{"type": "string"} | 1 | has wrong type: expected string, got number
{"type": "number"} | "1" | has wrong type: expected number, got string
{"type": "integer"} | true | has wrong type: expected integer, got boolean
{"type": "integer"} | 2.5 | must be an integer, got: 2.5
{"type": "boolean"} | null | has wrong type: expected boolean, got null
{"type": "array"} | {} | has wrong type: expected array, got object
{"type": "object"} | [] | has wrong type: expected object, got array
{"type": "null"} | 0 | has wrong type: expected null, got number
{"type": "string", "enum": ["active", "inactive"]} | "gone" | must be one of: "active", "inactive"; got: "gone"
{"type": "number", "minimum": 0.01} | 0 | must be at least 0.01, got: 0
{"type": "number", "multipleOf": 0.01} | 0.015 | must be a multiple of 0.01, got: 0.015
{"type": ["string", "null"]} | 1 | has wrong type: expected null or string, got number
{"enum": ["a", 1, null]} | "b" | must be one of: "a", 1, null; got: "b"
{"const": "a"} | [] | must be "a", got: an array
{"minimum": 1} | 0 | must be at least 1, got: 0
{"maximum": 100} | 101 | must be at most 100, got: 101
{"exclusiveMinimum": 0} | 0 | must be greater than 0, got: 0
{"exclusiveMaximum": 1.5} | 2 | must be less than 1.5, got: 2
{"multipleOf": 0.5} | 0.7 | must be a multiple of 0.5, got: 0.7
{"minLength": 1} | "" | must have at least 1 character, got: 0
{"maxLength": 2} | "äöü" | must have at most 2 characters, got: 3
{"pattern": "^[a-z]+$"} | "A" | must match the pattern "^[a-z]+$", got: "A"
{"format": "email"} | "no" | must be a valid email, got: "no"
{"format": "date-time"} | "now" | must be a valid date-time, got: "now"
{"format": "date"} | "2026-02-30" | must be a valid date, got: "2026-02-30"
{"format": "time"} | "25:00:00Z" | must be a valid time, got: "25:00:00Z"
{"format": "duration"} | "1h" | must be a valid duration, got: "1h"
{"format": "uri"} | "no uri" | must be a valid uri, got: "no uri"
{"format": "hostname"} | "-a" | must be a valid hostname, got: "-a"
{"format": "ipv4"} | "1.2.3" | must be a valid ipv4, got: "1.2.3"
{"format": "ipv6"} | ":::" | must be a valid ipv6, got: ":::"
{"format": "uuid"} | "1" | must be a valid uuid, got: "1"
{"format": "regex"} | "(" | must be a valid regex, got: "("
{"minItems": 1} | [] | must have at least 1 item, got: 0
{"maxItems": 1} | [1, 2] | must have at most 1 item, got: 2
{"uniqueItems": true} | [1, 1] | must not hold the same item twice
{"contains": {"const": 1}} | [2] | holds too few or too many items of the form it must contain
{"minProperties": 1} | {} | must have at least 1 member, got: 0
{"maxProperties": 1} | {"a": 1, "b": 2} | must have at most 1 member, got: 2
{"propertyNames": {"maxLength": 1}} | {"ab": 1} | has a member whose name is not allowed: "ab"
{"anyOf": [{"type": "string"}, {"minimum": 5}]} | 1 | fits none of the allowed forms: not string, it must be at least 5, got: 1
{"oneOf": [{"minimum": 1}, {"maximum": 5}]} | 3 | fits several of the forms that exclude each other
{"not": {"type": "null"}} | null | has a form that is not allowed
false | 1 | is not allowed
"#;

#[test]
fn every_constraint_has_its_sentence() {
    for row in SENTENCES.trim().lines() {
        let [schema, value, sentence] = row.splitn(3, " | ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let read = |text| serde_json::from_str::<Value>(text).unwrap();
        let expected = format!("/xyz Parameter xyz {sentence}");
        check(one(read(schema)), json!({ "xyz": read(value) }), &[&expected]);
        // And the same below an object in an array in an object.
        let nested = json!({ "type": "object", "properties": { "list": { "type": "array", "items": one(read(schema)) } } });
        let expected = format!("/list/1/xyz Parameter list[1].xyz {sentence}");
        check(
            nested,
            json!({ "list": [{}, { "xyz": read(value) }] }),
            &[&expected],
        );
    }
}

/// Schemas, each with a value that fits it.
const FITTING: &str = r#"
{"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]+$"} | "abc"
{"type": "string", "maxLength": 3} | "äöü"
{"type": "string", "format": "email"} | "ada@example.com"
{"type": "string", "format": "uri"} | "https://example.com/a?b#c"
{"type": "string", "format": "date-time"} | "2026-11-16T01:02:03Z"
{"type": "string", "format": "no-such-format"} | "anything"
{"type": "integer", "minimum": 0, "maximum": 150} | 150
{"type": "integer"} | 2.0
{"type": "number", "minimum": 0.01, "multipleOf": 0.01} | 19.99
{"type": "boolean"} | false
{"type": "null"} | null
{"type": "string", "enum": ["active", "inactive"]} | "active"
{"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 10} | ["a"]
{"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}, "required": ["city"]} | {"city": "Oslo", "zip": 1}
{"type": "object", "additionalProperties": {"type": "integer"}} | {"a": 1}
{"type": ["string", "null"]} | null
"#;

#[test]
fn what_fits_is_told_nothing() {
    for row in FITTING.trim().lines() {
        let (schema, value) = row.split_once(" | ").expect("a schema and a value");
        let read = |text| serde_json::from_str::<Value>(text).unwrap();
        check(one(read(schema)), json!({ "xyz": read(value) }), &[]);
    }
}

#[test]
fn a_whole_input_and_an_output_are_called_what_they_are() {
    check(
        json!({ "type": "object" }),
        json!([]),
        &[" Input has wrong type: expected object, got array"],
    );
    let output =
        compiled(&json!({ "required": ["a"], "properties": { "b": { "type": "null" } } })).of_output();
    assert_eq!(
        lines(&output.check(&json!({ "b": 1 }))),
        [
            "/a Missing required output field: a",
            "/b Output field b has wrong type: expected null, got number"
        ],
    );
}

#[test]
fn text_that_is_no_json_is_a_problem_like_any_other() {
    let validator = compiled(&json!({ "type": "object" }));
    let refuse = |text: &str| validator.check_text(text).unwrap_err().remove(0).message;
    assert!(refuse("{\"a\":").starts_with("Invalid tool arguments JSON: EOF"));
    assert!(refuse(&"[".repeat(1_000_000)).starts_with("Invalid tool arguments JSON: recursion limit"));
}

#[test]
fn a_long_text_is_cut_where_a_sentence_repeats_it() {
    let problems = compiled(&json!({ "const": 1 })).check(&json!("é".repeat(100_000)));
    assert!(problems[0].message.len() < 200, "{problems:?}");
}

#[test]
fn a_value_wrong_in_a_million_places_is_told_of_a_few() {
    let validator = compiled(&json!({ "items": { "type": "string" } }));
    let numbers = |count: u32| (0..count).map(Value::from).collect::<Value>();
    assert_eq!(validator.check(&numbers(1_000)).len(), CHECK_PROBLEMS_MAX);
    assert_eq!(validator.check(&numbers(1_000_000)).len(), 1);
}

#[test]
fn what_a_schema_calls_itself_changes_nothing() {
    let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com/root",
        "$defs": { "a": { "type": "string" } }, "properties": { "x": { "$ref": "#/$defs/a" } } });
    check(
        schema,
        json!({ "x": 1 }),
        &["/x Parameter x has wrong type: expected string, got number"],
    );
}

#[test]
fn a_trusted_schema_refers_to_itself_by_pointer_or_anchor() {
    let string = json!({ "$anchor": "text", "type": "string" });
    for reference in ["#/$defs/a%20b", "#/%24defs/a%20b", "#text", "#/x-elsewhere/deep"] {
        let schema = json!({ "$defs": { "a b": string }, "x-elsewhere": { "deep": { "type": "string" } },
            "properties": { "x": { "$ref": reference } } });
        check(
            schema.clone(),
            json!({ "x": 1 }),
            &["/x Parameter x has wrong type: expected string, got number"],
        );
        check(schema, json!({ "x": "1" }), &[]);
    }
}

#[test]
fn recursive_schemas_check_recursive_values() {
    let tree = json!({ "$defs": { "node": { "type": "object", "required": ["name"],
        "properties": { "children": { "items": { "$ref": "#/$defs/node" } } } } }, "$ref": "#/$defs/node" });
    check(
        tree.clone(),
        json!({ "name": 1, "children": [{ "name": 2, "children": [] }] }),
        &[],
    );
    check(
        tree,
        json!({ "name": 1, "children": [{ "name": 2 }, { "children": [{}] }] }),
        &[
            "/children/1/name Missing required parameter: children[1].name",
            "/children/1/children/0/name Missing required parameter: children[1].children[0].name",
        ],
    );
}

#[test]
fn schemas_that_go_in_circles_end() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "not": { "$dynamicRef": "#me" }, "$dynamicAnchor": "me" }),
    ] {
        compiled(&schema).check(&json!({ "a": [1] }));
    }
}

#[test]
fn a_recursive_schema_that_multiplies_ends_on_deep_values() {
    let twice = json!({ "type": "object", "allOf": [
        { "properties": { "x": { "$ref": "#" } } },
        { "properties": { "x": { "$ref": "#" } } } ] });
    check(twice.clone(), nested(100, json!({})), &[]);
    check(
        twice.clone(),
        nested(100, json!(1)),
        &[" Input does not fit the schema"],
    );
    check(
        twice,
        nested(2, json!(1)),
        &["/x/x Parameter x.x has wrong type: expected object, got number"],
    );
}

#[test]
fn deep_values_do_not_overflow_a_small_stack() {
    let long_way = (0..30).fold(
        json!({ "properties": { "x": { "$ref": "#" } } }),
        |inner, _| json!({ "allOf": [inner] }),
    );
    let small = std::thread::Builder::new().stack_size(1024 * 1024);
    let checked = small.spawn(move || {
        check(long_way.clone(), nested(30, json!({})), &[]);
        check(
            long_way,
            nested(100, json!({})),
            &[" Input is nested too deeply; at most 33 levels are allowed"],
        );
    });
    checked.unwrap().join().unwrap();
}

#[test]
fn odd_names_are_names() {
    let schema = json!({ "type": "object", "properties": { "__proto__": { "type": "string" } },
        "additionalProperties": false });
    check(schema.clone(), json!({ "__proto__": "a" }), &[]);
    check(
        schema,
        json!({ "__proto__": 1, "constructor": 1, "": 1 }),
        &[
            "/__proto__ Parameter __proto__ has wrong type: expected string, got number",
            "/constructor Unknown parameter: constructor",
            "/ Unknown parameter: ",
        ],
    );
}
