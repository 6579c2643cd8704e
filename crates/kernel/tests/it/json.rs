//! What a JSON text must be to be kept.

use toolgate_kernel::json::Json;

fn check(text: &str, kept: bool) {
    assert_eq!(Json::parse(text.to_owned()).is_ok(), kept, "{text:.60}");
    // The same rule where it stands in a request or a stored event.
    let wrapped = format!("[{text}]");
    assert_eq!(
        serde_json::from_str::<Vec<Json>>(&wrapped).is_ok(),
        kept,
        "{wrapped:.60}"
    );
}

#[test]
fn any_value_is_kept_as_its_text() {
    for text in [
        "null",
        "-0.5e-3",
        r#""\u00e9 \ud83d\ude00""#,
        r#"{"b":1,"a":[true,{}]}"#,
    ] {
        check(text, true);
        let json = Json::parse(text.to_owned()).unwrap();
        assert_eq!(json.as_str(), text);
        json.to_value();
    }
}

#[test]
fn a_text_that_no_tree_can_hold_is_refused_at_the_door() {
    check("1e999", false);
    check(&"9".repeat(400), false);
    check(r#""\ud800""#, false);
    check(r#"{"a":"\udc00x"}"#, false);
    let brackets = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check(&brackets(127), true);
    check(&brackets(128), false);
    check(&brackets(1_000_000), false);
    check(
        &format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000)),
        false,
    );
}

#[test]
fn equal_values_are_equal_whatever_their_spacing_and_order() {
    let json = |text: &str| Json::parse(text.to_owned()).unwrap();
    assert_eq!(json(r#"{"a":1,"b":[2]}"#), json(r#"{ "b": [2], "a": 1 }"#));
    assert_ne!(json(r#"{"a":1}"#), json(r#"{"a":2}"#));
}
