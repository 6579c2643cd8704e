//! The official JSON Schema test suite: draft 2020-12, everything that is required of an implementation, against
//! the profile for trusted authors. `make json-schema-suite` brings it and runs this.
//!
//! What we do otherwise is listed here by name, and each of it is held to: a schema that would have to be
//! fetched is refused, a format is checked.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use toolgate_kernel::json::Json;
use toolgate_kernel::schema::{Profile, Validator};

/// Never a remote fetch: these refer to a schema on a server, and are told that it leads nowhere.
const NOT_FETCHED: [(&str, &[&str]); 2] = [
    (
        "dynamicRef",
        &[
            "strict-tree schema, guards against misspelled properties",
            "tests for implementation dynamic anchor and reference link",
            "$ref and $dynamicAnchor are independent of order - $defs first",
            "$ref and $dynamicAnchor are independent of order - $ref first",
            "$ref to $dynamicRef finds detached $dynamicAnchor",
        ],
    ),
    (
        "refRemote",
        &[
            "remote ref",
            "fragment within remote ref",
            "anchor within remote ref",
            "ref within remote ref",
            "base URI change",
            "base URI change - change folder",
            "base URI change - change folder in subschema",
            "root ref in remote ref",
            "remote ref with ref to defs",
            "Location-independent identifier in remote ref",
            "retrieved nested refs resolve relative to their URI not $id",
            "remote HTTP ref with different $id",
            "remote HTTP ref with different URN $id",
            "remote HTTP ref with nested absolute ref",
            "$ref to $ref finds detached $anchor",
        ],
    ),
];

/// A tool that says `"format": "email"` wants one, so these are checked. The suite's optional part asks for the same.
const CHECKED_FORMATS: [&str; 17] = [
    "email",
    "regex",
    "ipv4",
    "ipv6",
    "hostname",
    "date",
    "date-time",
    "time",
    "json-pointer",
    "relative-json-pointer",
    "iri",
    "iri-reference",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
    "duration",
];

/// Every schema is read as 2020-12: a dialect of its own would have to be fetched.
const OWN_DIALECT: &str = "no validation: invalid number, but it still validates";

/// How many tests of 4.26.0's suite are not taken as they stand: 44 not fetched, 17 formats, 1 dialect.
const NOT_TAKEN: usize = 62;

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    description: String,
    data: Value,
    valid: bool,
}

#[test]
#[ignore = "needs the suite: make json-schema-suite"]
fn the_required_part_passes() {
    let (mut passed, mut not_taken, mut failed) = (0, 0, Vec::new());
    for (file, group) in groups() {
        let name = format!("{file}: {}", group.description);
        let compiled = Validator::compile(&Json::from(&group.schema), Profile::Trusted, "");
        match (compiled, is_fetched(&file, &group.description)) {
            (Ok(validator), false) => {
                for test in &group.tests {
                    let otherwise = is_otherwise(&file, &group.description, &test.description);
                    if (validator.check(&test.data).is_empty() == test.valid) == otherwise {
                        failed.push(format!("{name}: {}", test.description));
                    } else if otherwise {
                        not_taken += 1;
                    } else {
                        passed += 1;
                    }
                }
            }
            (Err(problems), true) if problems[0].message.contains("leads nowhere") => {
                not_taken += group.tests.len()
            }
            (Ok(_), true) => failed.push(format!("{name}: was fetched")),
            (Err(problems), _) => failed.push(format!("{name}: refused: {problems:?}")),
        }
    }
    println!("JSON Schema 2020-12, required: {passed} passed, {not_taken} not taken by choice");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(not_taken, NOT_TAKEN);
    assert!(passed > 1_000, "{passed} tests are not the whole suite");
}

/// Every group of tests of the required part, with the name of its file.
fn groups() -> Vec<(String, Group)> {
    let root = std::env::var("JSON_SCHEMA_SUITE")
        .expect("JSON_SCHEMA_SUITE names the folder of the suite; `make json-schema-suite` sets it");
    let folder = PathBuf::from(root).join("tests/draft2020-12");
    let listed = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = listed.map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).expect("a file of the suite");
        let groups: Vec<Group> = serde_json::from_str(&text).expect("groups of tests");
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        groups.into_iter().map(move |group| (name.clone(), group))
    };
    files.into_iter().flat_map(read).collect()
}

fn is_fetched(file: &str, group: &str) -> bool {
    NOT_FETCHED
        .iter()
        .any(|(name, groups)| *name == file && groups.contains(&group))
}

/// Whether a test comes out the other way round.
fn is_otherwise(file: &str, group: &str, test: &str) -> bool {
    let format = group
        .strip_suffix(" format")
        .filter(|format| CHECKED_FORMATS.contains(format));
    match file {
        "format" => format.is_some() && test.ends_with("is only an annotation by default"),
        "vocabulary" => test == OWN_DIALECT,
        _ => false,
    }
}
