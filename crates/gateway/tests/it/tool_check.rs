//! `toolgate tool check`.

use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::binary;

/// Files with definitions.
struct Files(TempDir);

impl Files {
    fn new(files: &[(&str, Value)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, written) in files {
            std::fs::write(directory.path().join(name), written.to_string()).expect("written");
        }
        Self(directory)
    }

    /// Checks with these arguments; gives the code and what was printed.
    fn check(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, .. } = binary()
            .args(["tool", "check"])
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("the binary starts");
        (
            status.code().expect("a code"),
            String::from_utf8(stdout).expect("text"),
        )
    }
}

fn beep() -> Value {
    json!({ "name": "beep", "description": "Beeps." })
}

#[test]
fn sound_definitions_of_every_form_pass() {
    let old = json!({ "name": "old", "description": "Old.", "deprecated": "Use beep." });
    let config = json!({ "agent": { "name": "guide", "system": "Help." },
        "tools": [{ "name": "mirror", "description": "Mirrors.", "execution": { "mode": "pass-through" } }] });
    let files = Files::new(&[
        ("one.json", beep()),
        ("list.json", json!([beep(), old])),
        ("tools.json", json!({ "tools": [beep()] })),
        ("agent.json", config),
    ]);
    let (code, told) = files.check(&["one.json", "list.json", "tools.json", "agent.json"]);
    assert_eq!(
        told,
        "one.json: 1 tool valid\n\
         list.json#/1: warning: old is deprecated: Use beep.\n\
         list.json: 2 tools valid\n\
         tools.json: 1 tool valid\n\
         agent.json: 1 tool valid\n"
    );
    assert_eq!(code, 0);
}

#[test]
fn everything_wrong_is_told_with_file_and_place() {
    let wrong = json!({ "name": "1st", "description": "First.", "parameters": { "type": "object", "required": "a" } });
    let files = Files::new(&[("list.json", json!([beep(), wrong])), ("good.json", beep())]);
    let (code, told) = files.check(&["list.json", "good.json", "none.json"]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].starts_with("list.json#/1/name: error: \"1st\" is not a name"),
        "{told}"
    );
    assert!(
        lines[1].starts_with("list.json#/1/parameters/required: error: "),
        "{told}"
    );
    assert_eq!(lines[2..4], ["list.json: 2 problems", "good.json: 1 tool valid"]);
    assert!(
        lines[4].starts_with("none.json#: error: cannot be read: "),
        "{told}"
    );
    assert_eq!(code, 1);
}

#[test]
fn programs_get_the_report_as_json() {
    let files = Files::new(&[("list.json", json!([beep(), { "name": "boop" }]))]);
    let (code, told) = files.check(&["--json", "list.json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(code, 1);
    assert_eq!(
        told,
        json!([{ "file": "list.json", "valid": false, "warnings": [], "tools": [], "errors": [
            { "pointer": "/1", "message": "a tool needs a description, for the model to know when to use it" } ] }])
    );
}

#[test]
fn the_profile_and_the_limits_can_be_chosen() {
    let referring = json!({ "name": "a", "description": "A.", "parameters": { "type": "object",
        "$defs": { "b": {} }, "properties": { "b": { "$ref": "#/$defs/b" } } } });
    let files = Files::new(&[("one.json", referring), ("list.json", json!([beep()]))]);
    assert_eq!(files.check(&["one.json"]).0, 1);
    assert_eq!(files.check(&["--profile", "trusted", "one.json"]).0, 0);
    std::fs::write(files.0.path().join("few.toml"), "[client_tools]\ntools_max = 0\n").expect("written");
    let (code, told) = files.check(&["--config", "few.toml", "list.json"]);
    assert_eq!(
        (code, told.contains("at most 0 are allowed")),
        (1, true),
        "{told}"
    );
}
