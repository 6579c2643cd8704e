//! Definitions that mean harm: refused or harmless, and little work either way.

use serde_json::{Map, Value, json};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::{PROBLEMS_MAX, Problem};
use toolgate_kernel::schema::{CHECK_PROBLEMS_MAX, Profile, Validator};
use toolgate_kernel::tool::{Checked, ClientToolLimits, Rules, check, client_tools};

use crate::agent::{catalog, defaults};
use crate::schema::lines;

/// Longest answer to anything, in bytes: what is refused is not repeated at length.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

fn by_all_rules(definitions: &Value) -> [Checked; 2] {
    let catalog = catalog(&[]);
    [
        check(definitions, "", &Rules::Client(&ClientToolLimits::default())),
        check(definitions, "", &Rules::Trusted(&defaults(&catalog))),
    ]
}

/// Refused by everybody, in few words.
#[track_caller]
fn refused(definitions: &Value) {
    for checked in by_all_rules(definitions) {
        assert!(!checked.errors.is_empty(), "{:.200}", definitions.to_string());
        assert!(checked.tools.is_empty());
        short(&checked.errors);
    }
}

#[track_caller]
fn short(problems: &[Problem]) {
    assert!(problems.len() <= PROBLEMS_MAX + 1);
    let bytes: usize = lines(problems).iter().map(String::len).sum();
    assert!(
        bytes <= ANSWER_BYTES_MAX,
        "{bytes} bytes: {:.200}",
        lines(problems)[0]
    );
}

fn tool(name: &str, parameters: Value) -> Value {
    json!({ "name": name, "description": "Does it.", "parameters": parameters })
}

fn of(property: Value) -> Value {
    json!([tool(
        "a",
        json!({ "type": "object", "properties": { "x": property } })
    )])
}

#[test]
fn ten_megabytes_are_refused_wherever_they_stand() {
    let long = "x".repeat(10_000_000);
    refused(&of(json!({ "title": long })));
    refused(&of(json!({ "pattern": long })));
    refused(&of(json!({ "enum": [long] })));
    refused(&json!([tool(&long, json!({ "type": "object" }))]));
    refused(&json!([{ "name": "a", "description": long }]));
    refused(&json!([{ "name": "a", "description": "A.", "version": long }]));
    refused(&json!([{ "name": "a", "description": "A.", (long): 1 }]));
    let many: Map<String, Value> = (0..400_000).map(|n| (format!("p{n}"), json!({}))).collect();
    refused(&json!([tool(
        "a",
        json!({ "type": "object", "properties": many })
    )]));
}

#[test]
fn many_wrong_tools_are_told_of_a_few() {
    let many: Value = (0..1_000).map(|_| json!({ "nome": 1, "pattern": 2 })).collect();
    refused(&many);
    let told = client_tools(&many, "", &ClientToolLimits::default()).unwrap_err();
    assert!(
        told.iter().all(|problem| !problem.pointer.starts_with("/64/")),
        "only what may come is read"
    );
}

#[test]
fn recursion_is_refused_to_clients_and_bounded_for_others() {
    let recursive = of(json!({ "$ref": "#" }));
    let [client, trusted] = by_all_rules(&recursive);
    assert_eq!(client.errors[0].pointer, "/0/parameters/properties/x/$ref");
    let input = &trusted.tools[0].input;
    let deep = (0..10_000).fold(json!({}), |inner, _| Value::from_iter([("x".to_owned(), inner)]));
    let told = input.check(&deep);
    assert!(told[0].message.contains("nested too deeply"), "{told:?}");
    std::mem::forget(deep);
    for way in ["#/$defs/a", "#a"] {
        // Doubling at every turn: a thousand million million tries if anybody followed.
        let doubled: Map<String, Value> = (0..50)
            .map(|n| {
                let next = if way.contains('/') {
                    format!("#/$defs/d{}", n + 1)
                } else {
                    format!("#d{}", n + 1)
                };
                (
                    format!("d{n}"),
                    json!({ "$anchor": format!("d{n}"), "allOf": [{ "$ref": next }, { "$ref": next }] }),
                )
            })
            .chain([("d50".to_owned(), json!({ "$anchor": "d50" }))])
            .collect();
        let first = if way.contains('/') { "#/$defs/d0" } else { "#d0" };
        refused(&json!([tool(
            "a",
            json!({ "type": "object", "$ref": first, "$defs": doubled })
        )]));
    }
}

#[test]
fn catastrophic_patterns_are_matched_in_linear_time_or_refused() {
    for pattern in [r"(a)\1", "^(?=a+)a+$", "((a{50}){50}){50}", "(?:a?){9999}a{9999}"] {
        refused(&of(json!({ "type": "string", "pattern": pattern })));
        refused(&of(json!({ "patternProperties": { pattern: {} } })));
    }
    // What a backtracking engine would not finish in a lifetime.
    for checked in by_all_rules(&of(json!({ "type": "string", "pattern": "^(a|a|aa)+$" }))) {
        let told = checked.tools[0]
            .input
            .check(&json!({ "x": format!("{}!", "a".repeat(100_000)) }));
        assert_eq!(told.len(), 1);
        short(&told);
    }
    let many: Vec<Value> = (0..65).map(|n| json!({ "pattern": format!("^{n}$") })).collect();
    refused(&of(json!({ "anyOf": many })));
}

#[test]
fn names_that_look_alike_are_no_names() {
    let looks = [
        "sеarch",
        "search\u{200b}",
        "ｓearch",
        "search\u{0301}",
        "ſearch",
        "search ",
        "search\0",
        "\u{202e}hcraes",
    ];
    for name in looks {
        refused(&json!([tool(name, json!({ "type": "object" }))]));
    }
    refused(&json!([
        tool("search", json!({ "type": "object" })),
        tool("search", json!({ "type": "object" }))
    ]));
}

#[test]
fn keys_that_scripts_trip_over_are_keys() {
    let names = [
        "__proto__",
        "constructor",
        "prototype",
        "toString",
        "hasOwnProperty",
    ];
    let properties: Map<String, Value> = names
        .iter()
        .map(|name| (name.to_string(), json!({ "type": "string" })))
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false });
    for checked in by_all_rules(&json!([tool("__proto__", schema)])) {
        let input = &checked.tools[0].input;
        let value = |text: &str| {
            names
                .iter()
                .map(|name| (name.to_string(), json!(text)))
                .collect::<Value>()
        };
        assert!(input.fits(&value("a")));
        assert_eq!(input.check(&json!({})).len(), names.len());
        let wrong = "/__proto__ Parameter __proto__ has wrong type: expected string, got object";
        assert!(lines(&input.check(&json!({ "__proto__": {} }))).contains(&wrong.to_owned()));
    }
    for name in names {
        refused(&json!([{ "name": "a", "description": "A.", name: { "name": "b" } }]));
    }
}

#[test]
fn an_input_wrong_in_many_ways_is_told_of_a_few() {
    let validator = Validator::compile(
        &Json::from(json!({ "additionalProperties": { "anyOf": [{ "type": "null" }, { "minLength": 9 }, { "enum": ["a"] }] } })),
        Profile::Client,
        "",
    )
    .unwrap();
    let input: Value = (0..1_000)
        .map(|n| (format!("{n}{}", "x".repeat(1_000)), json!("b")))
        .collect();
    let told = validator.check(&input);
    assert_eq!(told.len(), CHECK_PROBLEMS_MAX);
    for problem in told {
        assert!(problem.message.len() < 1_000, "{}", problem.message);
    }
}
