//! Tools are found by what they are for.

use serde_json::{Value, json};
use toolgate_kernel::tool::Query;

use crate::agent::{read, tool};

fn tools() -> Value {
    json!([
        tool(
            json!({ "name": "draw", "category": "Création", "triggers": ["crea disegno", "mappa"], "permissions": ["WRITE"] })
        ),
        tool(
            json!({ "name": "quiz", "category": "assessment", "triggers": ["Verifica la Città"], "permissions": ["WRITE", "VOICE"] })
        ),
        tool(json!({ "name": "plain" })),
    ])
}

/// The names of the tools that a query finds: trigger, category, permission; an empty word is not said.
fn check(query: [&str; 3], expected: &[&str]) {
    let [trigger, category, permission] = query.map(|word| (!word.is_empty()).then(|| word.to_owned()));
    let query = Query {
        trigger,
        category,
        permission,
    };
    let agent = read(json!({ "tools": tools() }));
    let found = agent.tools.values().filter(|tool| query.fits(tool));
    let found: Vec<&str> = found.map(|tool| tool.name.as_str()).collect();
    assert_eq!(found, expected, "{query:?}");
}

#[test]
fn a_query_that_says_nothing_finds_all() {
    check(["", "", ""], &["draw", "plain", "quiz"]);
}

#[test]
fn a_trigger_is_found_by_words_in_a_row_whatever_their_case_and_accents() {
    check(["MAPPA", "", ""], &["draw"]);
    check(["disegno", "", ""], &["draw"]);
    check(["Créa Disegno!", "", ""], &["draw"]);
    check(["la citta", "", ""], &["quiz"]);
    check(["la citta\u{300}", "", ""], &["quiz"]);
    check(["verifica citta", "", ""], &[]);
    check(["disegno crea", "", ""], &[]);
    check(["map", "", ""], &[]);
    check(["!", "", ""], &[]);
}

#[test]
fn categories_and_permissions_are_found_whole_and_all_of_a_query_must_fit() {
    check(["", "creation", ""], &["draw"]);
    check(["", "creat", ""], &[]);
    check(["", "", "WRITE"], &["draw", "quiz"]);
    check(["", "", "write"], &[]);
    check(["", "Assessment", "WRITE"], &["quiz"]);
    check(["mappa", "assessment", ""], &[]);
}
