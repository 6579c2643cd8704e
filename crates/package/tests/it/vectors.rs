//! The test vectors in `vectors/`, which other implementations reproduce. `REWRITE_GOLDEN=1` writes them anew.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolgate_kernel::time::Time;
use toolgate_package::canonical::canonical;
use toolgate_package::key::BadKey;
use toolgate_package::{CuratorKey, CuratorKeys, Package, PublicKey, SigningKey, Verification, sign, verify};

use crate::sample::{changed, document, package};

const NOW: &str = "2026-11-17T12:00:00Z";
const CURATOR: &str = "test-curator";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(name)
}

fn kept(name: &str) -> Value {
    let text = std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).expect("vectors are JSON")
}

/// Compares what is computed with the kept file, or rewrites it.
fn hold(name: &str, computed: &Value) {
    if std::env::var_os("REWRITE_GOLDEN").is_some() {
        let text = format!("{}\n", serde_json::to_string_pretty(computed).expect("JSON"));
        std::fs::write(file(name), text).expect("the folder is writable");
    }
    assert_eq!(&kept(name), computed, "{name} is not what the code computes");
}

/// The test keys. They are published, so nobody may trust them.
fn key(name: &str) -> SigningKey {
    let keys = kept("keys.json");
    SigningKey::from_pem(keys[name]["privateKey"].as_str().expect("a PEM text")).expect("a key")
}

fn keys() -> CuratorKeys {
    let mut keys = CuratorKeys::default();
    for name in ["ed25519", "rsa"] {
        keys.add(CURATOR.parse().unwrap(), CuratorKey::new(key(name).public()));
    }
    keys
}

#[test]
fn the_keys_are_pairs_and_have_their_fingerprints() {
    for name in ["ed25519", "rsa"] {
        let (kept, key) = (&kept("keys.json")[name], key(name));
        assert_eq!(kept["publicKey"], key.public().to_pem());
        assert_eq!(kept["id"], key.public().fingerprint().as_str());
        assert_eq!(kept["privateKey"], key.to_pem().as_str());
    }
}

#[test]
fn the_canonical_texts_hold() {
    let texts = [
        (
            "the example of RFC 8785",
            r#"{"numbers":[333333333.33333329,1E14,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#,
        ),
        (
            "names in the order of UTF-16",
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
        ),
        ("empty values", r#"{"a":{},"b":[],"":"","c":[[]],"d":null}"#),
        (
            "numbers",
            "[0,-0,1,-1,0.1,1e-7,0.000001,123456789012345,9007199254740991,-9007199254740991,5e-324,2.2250738585072014e-308,0.30000000000000004,1.0,100.50,4.35,1e15]",
        ),
        (
            "control characters",
            r#"["\u0000\u0001\b\t\n\u000b\f\r\u001f\u007f\u2028\u2029"]"#,
        ),
        (
            "names that look alike",
            r#"{"a":1,"A":2,"\u00e4":3,"a\u0308":4,"__proto__":5,"constructor":6,"toString":7}"#,
        ),
        ("numbers as names", r#"{"10":1,"9":2,"1":3,"-1":4,"01":5}"#),
        ("deep", r#"[[[[[{"z":[{"y":{"x":[{"w":1}]}}]}]]]]]"#),
    ];
    let (numbers, levels) = (many_numbers(), format!("{}{}", "[".repeat(127), "]".repeat(127)));
    let accepted: Vec<Value> = texts
        .into_iter()
        .chain([
            ("many numbers", numbers.as_str()),
            ("127 levels", levels.as_str()),
        ])
        .map(|(name, text)| {
            let value: Value = serde_json::from_str(text).expect("JSON");
            json!({ "name": name, "json": text, "canonical": canonical(&value).expect("a canonical text") })
        })
        .collect();
    let too_deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let refused = [
        ("2^53", "9007199254740992"),
        ("2^53 + 1, which becomes 2^53 in a double", "[9007199254740993]"),
        ("-2^53", "{\"a\":-9007199254740992}"),
        ("2^64", "18446744073709551616"),
        ("1e300", "[[1e300]]"),
        ("a number beyond all doubles", "1e999"),
        ("128 levels", too_deep.as_str()),
        ("half a character", r#"["\ud800"]"#),
        ("half a character in a name", r#"{"\udc00":1}"#),
    ];
    for (name, text) in refused {
        let value = serde_json::from_str::<Value>(text).map_err(|_| ());
        assert!(
            value.and_then(|value| canonical(&value).map_err(|_| ())).is_err(),
            "{name}"
        );
    }
    let refused: Vec<Value> = refused
        .iter()
        .map(|(name, text)| json!({ "name": name, "json": text }))
        .collect();
    hold(
        "canonical.json",
        &json!({ "accepted": accepted, "refused": refused }),
    );
}

/// Doubles of every size, the same each time: the shortest text of a number is where implementations differ.
fn many_numbers() -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bits = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let fits = |number: &f64| number.is_finite() && number.abs() < 9e15;
    let any = std::iter::repeat_with(move || f64::from_bits(bits()))
        .filter(fits)
        .take(150);
    let mut bits = 0_u64;
    let near = std::iter::repeat_with(move || {
        bits = bits
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (bits >> 11) as f64 / (1_u64 << (bits % 60)) as f64
    });
    let all: Vec<f64> = any.chain(near.filter(fits).take(150)).collect();
    serde_json::to_string(&all).expect("JSON")
}

/// Documents of every shape.
fn documents() -> Vec<(&'static str, Value)> {
    let smallest = json!({
        "id": "a", "name": "A", "version": "0.0.1",
        "tools": [{ "name": "a", "description": "A.", "executorCode": "return 1;" }],
    });
    let code = "// Umlauts äöü, quotes \" ' `, a tab\t and a line\nreturn `€ ${args.x} 😀 \\u0041`;";
    let odd = json!({
        "id": "odd-texts", "name": "Größe – 大小 😀", "version": "1.0.0-rc.1+build.7",
        "tools": [{
            "name": "b", "description": "B \u{2028} b", "executorCode": code, "timeout": 0.25,
            "parameters": {
                "type": "object",
                "properties": { "ö": { "type": "number", "minimum": -1.5e-9, "multipleOf": 0.1 }, "z": {}, "a": true },
                "required": ["a"],
            },
        }],
    });
    vec![
        ("everything", document()),
        ("smallest", smallest),
        ("odd texts", odd),
    ]
}

fn signed(document: &Value, name: &str) -> Value {
    let key = key(name);
    let id = key.public().fingerprint();
    sign(document.clone(), &key, &CURATOR.parse().unwrap(), Some(&id)).expect("valid")
}

#[test]
fn the_packages_hold() {
    let keys = keys();
    let computed: Vec<Value> = documents()
        .into_iter()
        .map(|(name, document)| {
            let read = package(&document);
            let both = ["ed25519", "rsa"].map(|algorithm| {
                let signed = signed(&document, algorithm);
                let verified = verify(&package(&signed), &keys, NOW.parse().unwrap());
                assert!(matches!(verified, Verification::Verified { .. }), "{name}: {verified:?}");
                (algorithm, signed)
            });
            json!({
                "name": name,
                "document": document,
                "canonicalTools": canonical(&document["tools"]).unwrap(),
                "contentHash": read.content_hash().to_string(),
                "canonicalPackage": canonical(&document).unwrap(),
                "packageHash": read.hash().to_string(),
                "signed": both.into_iter().map(|(name, signed)| (name.to_owned(), signed)).collect::<serde_json::Map<_, _>>(),
            })
        })
        .collect();
    hold("packages.json", &json!(computed));
}

/// Changes of the signed package "everything", and whether the forger makes the hashes anew.
fn forgeries() -> Vec<(&'static str, Value)> {
    let code = json!("return { time: new Date().toISOString(), zone: args.zone } ;");
    vec![
        ("/id", json!("times")),
        ("/name", json!("Time!")),
        ("/version", json!("1.2.1")),
        ("/description", json!("Tells the time!")),
        ("/tools/0/name", json!("get_times")),
        ("/tools/0/description", json!("The time in a zone!")),
        ("/tools/0/parameters/properties/zone/type", json!("number")),
        ("/tools/0/parameters/required", json!(["zone"])),
        ("/tools/0/outputSchema/type", json!("array")),
        ("/tools/0/executorCode", code),
        ("/tools/0/timeout", json!("3s")),
        ("/tools/0/retry", json!("never")),
        ("/tools/0/approval", json!("never")),
        (
            "/permissions",
            json!([
                "fetch:api.example.com",
                "fetch:*.example.org",
                "fetch:evil.example.net",
                "storage"
            ]),
        ),
        ("/permissions", json!([])),
        ("/dependencies", json!({ "units": "^1.1" })),
        ("/dependencies", json!({})),
        ("/engine", json!(">=0.0.1")),
        ("/curatorId", json!("somebody")),
        ("/keyId", json!("other")),
        ("/contentHash", json!("0".repeat(64))),
        ("/packageHash", json!("0".repeat(64))),
        ("/signature", json!("AAAA")),
        ("/packageSignature", json!("AAAA")),
    ]
}

#[test]
fn the_tampered_packages_hold() {
    let (keys, now) = (keys(), NOW.parse::<Time>().unwrap());
    let mut computed = Vec::new();
    for algorithm in ["ed25519", "rsa"] {
        let original = signed(&document(), algorithm);
        for (pointer, value) in forgeries() {
            for hashes in ["kept", "anew"] {
                let mut forged = changed(original.clone(), pointer, value.clone());
                if hashes == "anew" {
                    forged["contentHash"] = json!(package(&forged).content_hash().to_string());
                    forged["packageHash"] = json!(package(&forged).hash().to_string());
                    if forged == original {
                        continue;
                    }
                }
                let text = serde_json::to_string_pretty(&forged).expect("JSON");
                let read = Package::parse(text.as_bytes()).expect("a valid document");
                let Verification::Rejected(rejection) = verify(&read, &keys, now) else {
                    panic!("{pointer} with hashes {hashes} is not rejected");
                };
                computed.push(json!({
                    "signedBy": algorithm,
                    "change": { "pointer": pointer, "value": value },
                    "hashes": hashes,
                    "code": rejection.code(),
                }));
            }
        }
    }
    hold(
        "tampered.json",
        &json!({ "package": "everything", "now": NOW, "forgeries": computed }),
    );
}

#[test]
fn keys_of_small_order_and_signatures_with_such_a_point_are_refused() {
    let weak = kept("weak.json");
    let list = |name: &str| weak[name].as_array().expect("a list").clone();
    for weak in list("keys") {
        let read = PublicKey::from_pem(weak["publicKey"].as_str().expect("a PEM text"));
        assert!(
            matches!(read, Err(BadKey::Weak | BadKey::Unknown)),
            "{}: {read:?}",
            weak["name"]
        );
    }
    for weak in list("signatures") {
        let text = |name: &str| weak[name].as_str().expect("a text").to_owned();
        let signature = STANDARD.decode(text("signature")).expect("base64");
        let key = key(&text("key")).public();
        assert!(
            !key.verifies(text("message").as_bytes(), &signature),
            "{}",
            weak["name"]
        );
    }
}
