//! Canonical JSON, against the examples of RFC 8785, a simple implementation of our own, and itself.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_package::Package;
use toolgate_package::canonical::canonical;

#[test]
fn the_example_of_the_rfc() {
    let value: Value = serde_json::from_str(
        r#"{"numbers": [333333333.33333329, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#,
    )
    .unwrap();
    let expected = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(canonical(&value).unwrap(), expected);
}

#[test]
fn names_are_sorted_by_utf16() {
    let value: Value = serde_json::from_str(
        r#"{"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7}"#,
    )
    .unwrap();
    let names: Vec<u64> = serde_json::from_str::<Value>(&canonical(&value).unwrap())
        .unwrap()
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_u64)
        .collect();
    assert_eq!(names, [2, 4, 6, 7, 1, 5, 3]);
}

#[test]
fn numbers_beyond_what_all_read_alike_are_refused_at_their_places() {
    let value = json!({ "a": [1, 9_007_199_254_740_991_u64, 9_007_199_254_740_992_u64], "b/c": -1e300 });
    let problems = canonical(&value).unwrap_err();
    let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
    assert_eq!(pointers, ["/a/2", "/b~1c"]);
    assert_eq!(
        canonical(&json!([-0.0, 1.0, 1e21 / 1e6])).unwrap(),
        "[0,1,1000000000000000]"
    );
}

/// Canonical JSON in the plainest way: sort, and write.
fn plain(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
            out.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                plain(&name.as_str().into(), out);
                out.push(':');
                plain(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                plain(item, out);
            }
            out.push(']');
        }
        Value::String(text) => plain_text(text, out),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => out.push_str(&whole.to_string()),
            None => panic!("the plain writer knows whole numbers only"),
        },
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

fn plain_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{0}'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn values(number: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        any::<String>().prop_map(Value::from)
    ];
    scalar.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().rev().collect::<Map<_, _>>())),
        ]
    })
}

fn whole_numbers() -> impl Strategy<Value = Value> {
    (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from)
}

fn numbers() -> impl Strategy<Value = Value> {
    let float = any::<f64>().prop_filter_map("in range", |number| {
        (number.abs() <= 9_007_199_254_740_991.0).then(|| Value::from(number))
    });
    prop_oneof![whole_numbers(), float]
}

/// Bounded, so that the suite takes a few seconds; `PROPTEST_CASES` makes it longer.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: 2 * usual.cases,
        failure_persistence: None,
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_writes_what_the_plain_writer_writes(value in values(whole_numbers())) {
        let mut expected = String::new();
        plain(&value, &mut expected);
        prop_assert_eq!(canonical(&value).unwrap(), expected);
    }

    #[test]
    fn the_canonical_text_is_the_same_value_and_its_own_canonical_text(value in values(numbers())) {
        let text = canonical(&value).unwrap();
        let again: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(canonical(&again).unwrap(), text);
        let same = |a: &Value, b: &Value| serde_json::to_string(&sorted(a)) .unwrap() == serde_json::to_string(&sorted(b)).unwrap();
        prop_assert!(same(&value, &again));
    }

    #[test]
    fn the_parser_takes_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(Package::parse(&bytes).is_err());
    }

    #[test]
    fn the_parser_takes_any_value_at_any_place(value in values(numbers()), place in 0..PLACES.len()) {
        let changed = crate::sample::changed(crate::sample::document(), PLACES[place], value);
        if let Err(problems) = Package::parse(changed.to_string().as_bytes()) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn a_valid_document_cut_or_changed_anywhere_is_no_panic(at in 0..600_usize, byte in any::<u8>()) {
        let mut bytes = crate::sample::document().to_string().into_bytes();
        let at = at % bytes.len();
        prop_assert!(Package::parse(&bytes[..at]).is_err());
        bytes[at] = byte;
        if let Ok(package) = Package::parse(&bytes) {
            prop_assert_eq!(Package::from_value(package.document().clone()).unwrap().hash(), package.hash());
        }
    }
}

const PLACES: [&str; 12] = [
    "/id",
    "/version",
    "/tools",
    "/tools/0",
    "/tools/0/parameters",
    "/tools/0/executorCode",
    "/permissions",
    "/permissions/0",
    "/dependencies",
    "/dependencies/units",
    "/signature",
    "/extra",
];

/// The value with sorted members and every number as a float: equal values have equal texts.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, value)| (name.clone(), sorted(value)))
                .collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Number(number) => (number.as_f64().unwrap() + 0.0).into(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
