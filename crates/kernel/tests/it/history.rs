//! A past that a client tells.

use serde_json::json;
use toolgate_kernel::history::{Earlier, EarlierPart, told};
use toolgate_kernel::id::RunId;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{Said, Turn};
use uuid::Uuid;

fn call(name: &str) -> EarlierPart {
    EarlierPart::Call {
        name: name.into(),
        input: json!({}).into(),
        output: json!(name).into(),
        failed: false,
    }
}

#[test]
fn calls_are_followed_by_their_results_and_words_after_them_are_a_turn_of_their_own() {
    let words = |text: &str| EarlierPart::Text(text.into());
    let turns = told(
        RunId::new(Uuid::from_u128(1)),
        &[
            Earlier::User(vec![Part::Text { text: "go".into() }]),
            Earlier::Assistant(vec![
                words("I look."),
                call("a"),
                call("b"),
                words("Found."),
                call("c"),
            ]),
        ],
    );
    let shape: Vec<String> = turns
        .iter()
        .map(|turn| match turn.as_ref() {
            Turn::User(_) => "user".into(),
            Turn::Assistant(said) => {
                let kinds = said.iter().map(|part| match part {
                    Said::Text(_) => "text",
                    Said::Reasoning { .. } => "reasoning",
                    Said::Call { .. } => "call",
                });
                kinds.collect::<Vec<_>>().join(" ")
            }
            Turn::Results(results) => format!("{} results", results.len()),
        })
        .collect();
    assert_eq!(
        shape,
        ["user", "text call call", "2 results", "text call", "1 results"]
    );
}

#[test]
fn of_what_a_client_tells_the_newest_that_fits_is_kept() {
    use toolgate_kernel::history::newest_within;
    let turn = |text: &str| Earlier::User(vec![Part::Text { text: text.into() }]);
    let told = vec![turn("first"), turn("second"), turn("third")];
    assert_eq!(newest_within(told.clone(), 100), told);
    assert_eq!(newest_within(told.clone(), 11), told[1..]);
    assert_eq!(newest_within(told.clone(), 10), told[2..]);
    assert_eq!(newest_within(told, 0), []);
}
