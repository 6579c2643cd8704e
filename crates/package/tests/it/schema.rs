//! The published schema and the parser agree.

use serde_json::{Value, json};
use toolgate_package::{Algorithm, SCHEMA, SigningKey, sign};

use crate::sample::{document, parse, with, without};

fn schema() -> jsonschema::Validator {
    jsonschema::draft202012::new(&serde_json::from_str(SCHEMA).expect("JSON")).expect("a schema")
}

fn tool(member: &str, value: Value) -> Value {
    with(&format!("/tools/0/{member}"), value)
}

#[test]
fn what_the_parser_accepts_the_schema_accepts() {
    let key = SigningKey::generate(Algorithm::Ed25519);
    let curator = "acme".parse().unwrap();
    let good = [
        document(),
        sign(document(), &key, &curator, None).unwrap(),
        sign(document(), &key, &curator, Some(&"2026".parse().unwrap())).unwrap(),
        with("/$schema", json!("urn:toolgate:schema:plugin:1")),
        with("/installedAt", json!("2026-11-17T09:00:00Z")),
        with("/version", json!("0.1.0-beta.2+build.5")),
        with("/engine", json!(">=0.1, <2")),
        with(
            "/permissions",
            json!([
                "fetch:localhost",
                "fetch:127.0.0.1",
                "fetch:[::1]",
                "fetch:*.a-b.example.org"
            ]),
        ),
        with("/sourceUrl", json!("http://127.0.0.1:8787/v1/plugins/x")),
        without("/permissions"),
        without("/dependencies"),
        without("/engine"),
        without("/description"),
        without("/tools/0/parameters"),
        tool("approval", json!("always")),
        tool("approval", json!({ "when": { "type": "object" } })),
        tool("deprecated", json!("Use another.")),
        tool("timeout", json!(2.5)),
        tool("visibility", json!("public")),
    ];
    let schema = schema();
    for document in good {
        assert!(
            parse(&document).is_ok(),
            "{document}: {:?}",
            parse(&document).err()
        );
        assert!(
            schema.is_valid(&document),
            "{document}: {:?}",
            schema.validate(&document).err()
        );
    }
}

#[test]
fn what_the_schema_refuses_the_parser_refuses_too() {
    let bad = [
        json!([]),
        json!({}),
        without("/id"),
        without("/name"),
        without("/version"),
        without("/tools"),
        without("/tools/0/name"),
        without("/tools/0/description"),
        without("/tools/0/executorCode"),
        with("/id", json!("Time")),
        with("/id", json!("a".repeat(65))),
        with("/name", json!("")),
        with("/name", json!(" ")),
        with("/name", json!("x".repeat(129))),
        with("/version", json!("1.2")),
        with("/version", json!("01.2.3")),
        with("/description", json!("")),
        with("/description", json!(null)),
        with("/extra", json!(1)),
        with("/tools", json!([])),
        with("/tools", json!([7])),
        tool("name", json!("1st")),
        tool("description", json!("")),
        tool("parameters", json!({ "type": "string" })),
        tool("parameters", json!({})),
        tool("inputSchema", json!({ "type": "object" })),
        tool("executorCode", json!(" ")),
        tool("executionType", json!("basic")),
        tool("execution", json!(null)),
        tool("extra", json!(1)),
        tool("retry", json!("always")),
        tool("visibility", json!("members")),
        with("/permissions", json!("storage")),
        with("/permissions", json!(["root"])),
        with("/permissions", json!(["fetch:*"])),
        with("/permissions", json!(["fetch:*.com"])),
        with("/permissions", json!(["fetch:Example.com"])),
        with("/permissions", json!(["fetch:https://example.com"])),
        with("/permissions", json!(["storage", "storage"])),
        with("/dependencies", json!([])),
        with("/dependencies", json!({ "Units": "*" })),
        with("/dependencies", json!({ "units": 1 })),
        with("/engine", json!("")),
        with("/engine", json!(1)),
        with("/contentHash", json!("A".repeat(64))),
        with("/packageHash", json!("0")),
        with("/signature", json!("AAAA")),
        with("/signature", json!("A")),
        with("/packageSignature", json!("AAAA")),
        with("/curatorId", json!("a b")),
        with("/keyId", json!("")),
        with("/sourceUrl", json!("ftp://example.com")),
        with("/$schema", json!("urn:other")),
    ];
    let schema = schema();
    for document in bad {
        assert!(!schema.is_valid(&document), "the schema accepts {document}");
        assert!(parse(&document).is_err(), "the parser accepts {document}");
    }
}

#[test]
fn the_schema_says_which_version_it_is() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(schema["$id"], "urn:toolgate:schema:plugin:1");
    assert_eq!(schema["properties"]["$schema"]["const"], schema["$id"]);
}
