//! Definitions that somebody wants to have checked.

use serde_json::{Value, json};
use toolgate_kernel::agent::Defaults;
use toolgate_kernel::tool::{Checked, ClientToolLimits, Rules, check, check_agent};

use crate::agent::{catalog, defaults};
use crate::schema::lines;

fn by_client_rules(definitions: Value) -> Checked {
    check(
        &definitions,
        "/tools",
        &Rules::Client(&ClientToolLimits::default()),
    )
}

fn with_defaults<T>(read: impl FnOnce(&Defaults<'_>) -> T) -> T {
    read(&defaults(&catalog(&[])))
}

fn by_trusted_rules(definitions: Value) -> Checked {
    with_defaults(|defaults| check(&definitions, "/tools", &Rules::Trusted(defaults)))
}

fn names(checked: &Checked) -> Vec<&str> {
    checked.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn sound_definitions_come_back_in_their_order() {
    let tools = json!([{ "name": "b", "description": "B." }, { "name": "a", "description": "A." }]);
    for checked in [by_client_rules(tools.clone()), by_trusted_rules(tools)] {
        assert_eq!(names(&checked), ["b", "a"]);
        assert!(
            checked.errors.is_empty() && checked.warnings.is_empty(),
            "{checked:?}"
        );
    }
}

#[test]
fn one_definition_is_told_of_its_own_places() {
    let one =
        json!({ "name": "1a", "description": "A.", "parameters": { "type": "object", "required": "b" } });
    let list = |one: Value| Value::Array(vec![one]);
    for (alone, listed) in [
        (by_client_rules(one.clone()), by_client_rules(list(one.clone()))),
        (by_trusted_rules(one.clone()), by_trusted_rules(list(one.clone()))),
    ] {
        let places = |checked: &Checked| {
            lines(&checked.errors)
                .iter()
                .map(|line| line.split(' ').next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&alone), ["/tools/name", "/tools/parameters/required"]);
        assert_eq!(places(&listed), ["/tools/0/name", "/tools/0/parameters/required"]);
        assert!(alone.tools.is_empty());
    }
}

#[test]
fn a_deprecated_tool_is_sound_and_warned_of() {
    let tools = json!([{ "name": "a", "description": "A." },
        { "name": "old", "description": "Old.", "deprecated": "Use a.", "version": "1" }]);
    for checked in [by_client_rules(tools.clone()), by_trusted_rules(tools)] {
        assert!(checked.errors.is_empty());
        assert_eq!(lines(&checked.warnings), ["/tools/1 old is deprecated: Use a."]);
    }
}

#[test]
fn each_profile_has_its_own_rules() {
    let referring = json!([{ "name": "a", "description": "A.", "parameters": { "type": "object",
        "$defs": { "b": { "type": "string" } }, "properties": { "b": { "$ref": "#/$defs/b" } } } }]);
    assert_eq!(by_client_rules(referring.clone()).errors.len(), 1);
    assert!(by_trusted_rules(referring).errors.is_empty());
    let executed = json!([{ "name": "a", "description": "A.", "executionType": "basic", "execution": { "mode": "pass-through" } }]);
    assert_eq!(by_client_rules(executed.clone()).errors.len(), 2);
    assert!(by_trusted_rules(executed).errors.is_empty());
}

#[test]
fn what_is_no_definition_is_told_so() {
    for odd in [json!("tools"), json!(5), json!([1])] {
        for checked in [by_client_rules(odd.clone()), by_trusted_rules(odd.clone())] {
            assert!(!checked.errors.is_empty(), "{odd}");
            assert!(checked.tools.is_empty());
        }
    }
}

#[test]
fn an_agent_is_checked_whole() {
    let config = |steps: i32| {
        json!({ "agent": { "name": "guide", "system": "Help." }, "loop": { "maxSteps": steps },
            "tools": [{ "name": "old", "description": "Old.", "deprecated": true }] })
    };
    let sound = with_defaults(|defaults| check_agent(&config(5), defaults));
    assert_eq!(names(&sound), ["old"]);
    assert_eq!(
        lines(&sound.warnings),
        ["/tools/0 old is deprecated: This tool is deprecated."]
    );
    let wrong = with_defaults(|defaults| check_agent(&config(-1), defaults));
    assert_eq!(wrong.errors[0].pointer, "/loop/maxSteps");
}
