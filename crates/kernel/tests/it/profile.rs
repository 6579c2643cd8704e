//! What a schema may be, by how far its author is trusted.

use serde_json::{Map, Value, json};
use toolgate_kernel::json::Json;
use toolgate_kernel::schema::{Limits, Profile, Validator};

use crate::schema::{check as check_value, lines};

const NO_PATTERN: &str = "this pattern is not a regular expression that can be matched in linear time; it must be \
    short when its repeats are written out, without look-around and without back-references";

/// What is said of a schema that is not acceptable; nothing when it is.
#[track_caller]
fn check(profile: Profile, schema: Value, expected: &[&str]) {
    let refused = Validator::compile(&Json::from(&schema), profile, "/p").err();
    assert_eq!(
        lines(&refused.unwrap_or_default()),
        expected,
        "{:.200}",
        schema.to_string()
    );
}

#[test]
fn a_schema_is_told_of_everything_wrong_with_it() {
    check(
        Profile::Trusted,
        json!({ "type": "object", "properties": {
            "a": { "type": "strng", "minimum": "x" },
            "b": { "required": "a", "items": [{}] },
            "c": 5,
            "d": { "pattern": "(?=x)" },
            "e": { "patternProperties": { "(": {} } },
            "f": { "$id": "https://json-schema.org/draft/2020-12/schema" },
        } }),
        &[
            "/p/properties/a/type \"strng\" is not a type; use one of string, number, integer, boolean, array, object, null",
            "/p/properties/b/items a schema is an object, true or false",
            "/p/properties/c a schema is an object, true or false",
            "/p/properties/f/$id \"https://json-schema.org/draft/2020-12/schema\" is not a name for this schema; use one of your own",
            "/p/properties/a/minimum \"minimum\" has wrong type: expected number, got string",
            "/p/properties/b/required \"required\" has wrong type: expected array, got string",
            &format!("/p/properties/d/pattern {NO_PATTERN}"),
            &format!("/p/properties/e/patternProperties/( {NO_PATTERN}"),
        ],
    );
}

#[test]
fn a_property_that_is_named_like_a_keyword_is_a_property() {
    let schema = json!({ "properties": { "$ref": { "type": "string" }, "type": { "type": "null" } } });
    check(Profile::Client, schema.clone(), &[]);
    check_value(
        schema,
        json!({ "$ref": "https://example.com", "type": null }),
        &[],
    );
}

#[test]
fn nothing_outside_a_schema_is_ever_fetched() {
    for reference in [
        "https://example.com/a",
        "file:///etc/passwd",
        "other.json",
        "#/nowhere",
        "#nowhere",
        "#/a b",
        "#%zz",
    ] {
        let words =
            format!("{reference:?} leads nowhere in this schema; use one such as \"#/$defs/address\"");
        check(
            Profile::Trusted,
            json!({ "$ref": reference }),
            &[&format!("/p/$ref {words}")],
        );
        check(
            Profile::Trusted,
            json!({ "$dynamicRef": reference }),
            &[&format!("/p/$dynamicRef {words}")],
        );
        // Where no keyword leads, but a reference does.
        check(
            Profile::Trusted,
            json!({ "$ref": "#/hidden", "hidden": { "not": { "$ref": reference } } }),
            &[&format!("/p/hidden/not/$ref {words}")],
        );
    }
}

#[test]
fn a_client_schema_has_no_references_at_all() {
    for keyword in [
        "items",
        "not",
        "additionalProperties",
        "additionalItems",
        "contentSchema",
    ] {
        let words = format!("/p/{keyword}/$ref $ref is not allowed here; write out what it stands for");
        let reference = json!({ "$ref": "#/$defs/a" });
        check(
            Profile::Client,
            json!({ "$defs": { "a": {} }, keyword: reference }),
            &[&words],
        );
    }
    check(
        Profile::Client,
        json!({ "dependencies": { "a": ["b"], "b": { "$ref": "#" } } }),
        &["/p/dependencies/b/$ref $ref is not allowed here; write out what it stands for"],
    );
}

#[test]
fn an_anchor_names_one_schema() {
    let anchored = json!({ "$anchor": "a" });
    check(
        Profile::Trusted,
        json!({ "items": anchored, "not": anchored }),
        &["/p/not/$anchor another schema is called \"a\" as well"],
    );
}

#[test]
fn a_client_schema_keeps_to_its_limits() {
    let deep = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "items": inner }));
    let wide = |count: usize| {
        let properties: Map<_, _> = (0..count).map(|index| (format!("p{index}"), json!({}))).collect();
        json!({ "properties": properties })
    };
    let patterns = |count: usize| {
        (0..count)
            .map(|index| json!({ "pattern": format!("{index}") }))
            .collect::<Value>()
    };
    check(Profile::Client, deep(5), &[]);
    check(
        Profile::Client,
        deep(6),
        &["/p/items/items/items/items/items/items the schema is nested deeper than 5 levels"],
    );
    check(Profile::Client, wide(20), &[]);
    check(
        Profile::Client,
        wide(21),
        &["/p/properties 21 properties in one object; at most 20 are allowed"],
    );
    check(Profile::Client, json!({ "allOf": patterns(10) }), &[]);
    check(
        Profile::Client,
        json!({ "allOf": patterns(11) }),
        &["/p the schema has 11 patterns; at most 10 are allowed"],
    );
    check(
        Profile::Client,
        json!({ "description": "x".repeat(16 * 1024) }),
        &["/p the schema has 16402 bytes; at most 16384 are allowed"],
    );
    for kind in [
        "string", "number", "integer", "boolean", "array", "object", "null",
    ] {
        check(Profile::Client, json!({ "type": kind }), &[]);
    }
}

#[test]
fn limits_can_be_set() {
    let schema = Json::from(json!({ "items": { "items": {} } }));
    let limits = Limits {
        depth: 1,
        ..Limits::CLIENT
    };
    let refused = Validator::compile_within(&schema, &limits, "").unwrap_err();
    assert_eq!(
        lines(&refused),
        ["/items/items the schema is nested deeper than 1 levels"]
    );
}

#[test]
fn a_trusted_schema_has_limits_too() {
    let deep = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "not": inner }));
    check(Profile::Trusted, deep(32), &[]);
    let place = "/not".repeat(33);
    let words = "the schema is nested deeper than 32 levels";
    check(Profile::Trusted, deep(33), &[&format!("/p{place} {words}")]);
    let huge = json!({ "enum": (0..1_000_000).collect::<Vec<u32>>() });
    check(
        Profile::Trusted,
        huge,
        &["/p the schema has 6888900 bytes; at most 65536 are allowed"],
    );
}

#[test]
fn references_that_multiply_are_refused() {
    let steps = "/p checking one value could take more than 10000 steps; use fewer references and nest \
        unevaluatedProperties and unevaluatedItems less";
    let define = |count: usize, each: &dyn Fn(String) -> Value| {
        let define = |index| (format!("d{index}"), each(format!("#/$defs/d{}", index + 1)));
        let mut definitions: Map<_, _> = (0..count).map(define).collect();
        definitions.insert(format!("d{count}"), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/d0", "$defs": definitions })
    };
    let doubled = |next| json!({ "allOf": [{ "$ref": next }, { "$ref": next }] });
    check(Profile::Trusted, define(10, &doubled), &[]);
    check(Profile::Trusted, define(20, &doubled), &[steps]);
    let chained = |next| json!({ "$ref": next });
    check(Profile::Trusted, define(60, &chained), &[]);
    check(
        Profile::Trusted,
        define(1_000, &chained),
        &["/p its references nest deeper than 128 levels"],
    );
    // No reference at all, and yet each level tries the one below three times.
    let left_over = |depth: usize| {
        let wrap = |inner, _| json!({ "allOf": [inner], "unevaluatedProperties": false });
        (0..depth).fold(json!({}), wrap)
    };
    check(Profile::Trusted, left_over(5), &[]);
    check(Profile::Trusted, left_over(25), &[steps]);
}

#[test]
fn catastrophic_patterns_take_linear_time_or_are_refused() {
    check_value(
        json!({ "pattern": "^(a+)+$" }),
        json!(format!("{}b", "a".repeat(100_000))),
        &[&format!(
            " Input must match the pattern \"^(a+)+$\", got: \"{}…\"",
            "a".repeat(64)
        )],
    );
    for pattern in [
        r"(a)\1",
        "^(?=a)",
        "(?<!a)b",
        "(",
        "((a{100}){100}){100}",
        r"\p{L}{1000}",
    ] {
        check(
            Profile::Client,
            json!({ "pattern": pattern }),
            &[&format!("/p/pattern {NO_PATTERN}")],
        );
    }
    for pattern in [
        r"^\S+@\S+\.\S+$",
        "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        "^.{1,100}$",
    ] {
        check(Profile::Client, json!({ "pattern": pattern }), &[]);
    }
}

#[test]
fn a_trusted_schema_brings_others_under_their_names() {
    let address = json!({ "$id": "/schemas/address", "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "required": ["city"], "properties": { "zip": { "$ref": "#/$defs/zip" } },
        "$defs": { "zip": { "$anchor": "zip", "type": "string" } } });
    let order = |reference: &str| {
        json!({ "$id": "https://example.com/schemas/order", "$defs": { "address": address },
            "properties": { "to": { "$ref": reference } } })
    };
    for reference in [
        "address",
        "/schemas/address",
        "https://example.com/schemas/address",
    ] {
        check_value(
            order(reference),
            json!({ "to": { "zip": 1 } }),
            &[
                "/to/city Missing required parameter: to.city",
                "/to/zip Parameter to.zip has wrong type: expected string, got number",
            ],
        );
    }
    check_value(
        order("address#zip"),
        json!({ "to": 1 }),
        &["/to Parameter to has wrong type: expected string, got number"],
    );
    for outside in [
        "https://example.com/schemas/person",
        "person",
        "address#nowhere",
        "http://[",
    ] {
        let refused = Validator::compile(&Json::from(&order(outside)), Profile::Trusted, "/p").unwrap_err();
        assert!(refused[0].message.contains("leads nowhere"), "{refused:?}");
    }
}

#[test]
fn a_name_belongs_to_one_schema() {
    let named = |id: &str| json!({ "$id": id });
    check(
        Profile::Trusted,
        json!({ "properties": { "a": named("x"), "b": named("x"), "c": named("http://[") } }),
        &[
            "/p/properties/b/$id another schema is called \"x\" as well",
            "/p/properties/c/$id \"http://[\" is not a URI that a schema can be called",
        ],
    );
    check(
        Profile::Client,
        json!({ "$id": "x", "properties": { "a": named("y") } }),
        &["/p/properties/a/$id $id is allowed at the top of a schema only"],
    );
    check(
        Profile::Trusted,
        json!({ "properties": { "a": { "$schema": "https://json-schema.org/draft/2020-12/schema" } } }),
        &["/p/properties/a/$schema $schema is allowed at the top of a schema only"],
    );
}

#[test]
fn a_recursion_over_dynamic_names_is_counted_like_any_other() {
    // Each list may be either of the two, and so on for ever: the work is bounded, or the schema is refused.
    let list = |id: String, next: String| {
        json!({ "$id": id, "$dynamicAnchor": "item", "allOf": [
            { "properties": { "x": { "$dynamicRef": "#item" } } }, { "$ref": next } ] })
    };
    let all: Map<String, Value> = (0..30)
        .map(|at| {
            (
                at.to_string(),
                list(format!("urn:list:{at}"), format!("urn:list:{}", at + 1)),
            )
        })
        .chain([("30".to_owned(), json!({ "$id": "urn:list:30" }))])
        .collect();
    check(
        Profile::Trusted,
        json!({ "$ref": "urn:list:0", "$defs": all }),
        &[
            "/p checking one value could take more than 10000 steps; use fewer references and nest \
           unevaluatedProperties and unevaluatedItems less",
        ],
    );
}
