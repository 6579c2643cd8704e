//! Keywords of a schema that look like typos. A validator ignores a keyword that it does not know, so `"requried"` is a
//! valid schema in which nothing is required.

use serde_json::Value;

use super::expansion;
use crate::guess::slips;
use crate::problem::{Problem, member};

/// Keywords that a typo is recognised of. Short ones (`not`, `if`, `then`, `else`, `$id`) are near too many words.
const KEYWORDS: &[&str] = &[
    "type",
    "enum",
    "$ref",
    "$defs",
    "const",
    "title",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "format",
    "default",
    "minimum",
    "maximum",
    "pattern",
    "examples",
    "required",
    "contains",
    "readOnly",
    "writeOnly",
    "minItems",
    "maxItems",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$vocabulary",
    "minLength",
    "maxLength",
    "multipleOf",
    "properties",
    "deprecated",
    "description",
    "definitions",
    "uniqueItems",
    "minContains",
    "maxContains",
    "prefixItems",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "dependentSchemas",
    "dependentRequired",
    "patternProperties",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];
/// Words that are meant as they stand: the keywords above, further ones, and those of earlier drafts and of OpenAPI.
const KNOWN: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "$id",
    "$schema",
    "$comment",
    "id",
    "schema",
    "comment",
    "example",
    "nullable",
    "discriminator",
    "xml",
    "externalDocs",
    "dependencies",
    "additionalItems",
    "$recursiveRef",
    "$recursiveAnchor",
    "strict",
    "defaults",
];
/// Longest word that is taken for a typo.
const WORD_CHARS_MAX: usize = 32;
/// Longest keyword in which one typo is allowed; in a longer one two are.
const ONE_SLIP_CHARS_MAX: usize = 6;
/// Deepest schema that is looked at.
const DEPTH_MAX: usize = 64;

/// Unknown keywords of a schema, and of all schemas inside it, that are most likely typos of a keyword. Other unknown
/// words are left alone: annotations are allowed, and those of vendors (`x-…`) are never near.
pub fn misspelt_keywords(schema: &Value, pointer: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    look(schema, pointer, 0, &mut problems);
    problems
}

fn look(schema: &Value, pointer: &str, depth: usize, problems: &mut Vec<Problem>) {
    let Value::Object(keywords) = schema else { return };
    if depth > DEPTH_MAX {
        return;
    }
    for word in keywords.keys() {
        if let Some(meant) = meant(word) {
            let words =
                format!("{word:?} is no keyword of JSON Schema and has no effect; did you mean {meant:?}?");
            problems.push(Problem::new(member(pointer, word), words));
        }
    }
    for part in expansion::applied(keywords).chain(expansion::defined(keywords)) {
        look(
            part.schema,
            &format!("{pointer}{}", part.place),
            depth + 1,
            problems,
        );
    }
}

/// The keyword that an unknown word is most likely a typo of.
fn meant(word: &str) -> Option<&'static str> {
    let chars = word.chars().count();
    if chars > WORD_CHARS_MAX || word.starts_with("x-") || KEYWORDS.contains(&word) || KNOWN.contains(&word) {
        return None;
    }
    let lower = word.to_lowercase();
    let near = KEYWORDS.iter().filter_map(|keyword| {
        let known = keyword.to_lowercase();
        let slips = match is_swapped(&lower, &known) {
            true => 1,
            false => slips(&lower, &known),
        };
        let allowed = 1 + usize::from(keyword.len() > ONE_SLIP_CHARS_MAX);
        (slips <= allowed).then_some((slips, *keyword))
    });
    Some(near.min_by_key(|(slips, _)| *slips)?.1)
}

/// Whether two neighbouring letters changed places, which counts as one slip.
fn is_swapped(one: &str, other: &str) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let differ: Vec<usize> = (0..one.len())
        .filter(|&at| one.as_bytes()[at] != other.as_bytes()[at])
        .collect();
    let [first, second] = differ[..] else { return false };
    let (one, other) = (one.as_bytes(), other.as_bytes());
    second == first + 1 && one[first] == other[second] && one[second] == other[first]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn typos_are_told_with_the_keyword_that_was_meant() {
        for (word, keyword) in [
            ("requried", "required"),
            ("propertes", "properties"),
            ("discription", "description"),
            ("tpye", "type"),
            ("Type", "type"),
            ("enums", "enum"),
            ("ref", "$ref"),
            ("readonly", "readOnly"),
            ("additionalPropertys", "additionalProperties"),
            ("maxLenght", "maxLength"),
            ("anyof", "anyOf"),
        ] {
            assert_eq!(meant(word), Some(keyword), "{word}");
        }
    }

    #[test]
    fn keywords_and_annotations_are_left_alone() {
        let known = KEYWORDS.iter().chain(KNOWN).copied();
        let own = [
            "x-requried",
            "x-order",
            "note",
            "notes",
            "when",
            "label",
            "unit",
            "order",
            "group",
            "widget",
            "file",
            "count",
            "terms",
            "time",
            "name",
            "enumNames",
            "markdownDescription",
            "hint",
            "options",
            "über",
            "errorMessage",
            "",
        ];
        for word in known.chain(own) {
            assert_eq!(meant(word), None, "{word}");
        }
    }

    #[test]
    fn schemas_inside_are_looked_at_and_names_of_properties_are_not_keywords() {
        let schema = json!({
            "type": "object",
            "properties": {
                "requried": { "type": "string" },
                "list": { "type": "array", "items": { "anyOf": [{ "tpye": "string" }] } },
            },
            "$defs": { "one": { "discription": "x" } },
            "default": { "propertes": 1 },
            "enum": [{ "requried": 1 }],
        });
        let problems = misspelt_keywords(&schema, "/p");
        let mut places: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        places.sort_unstable();
        assert_eq!(
            places,
            [
                "/p/$defs/one/discription",
                "/p/properties/list/items/anyOf/0/tpye"
            ]
        );
        assert_eq!(
            problems[0].message.matches("did you mean").count(),
            1,
            "{}",
            problems[0].message
        );
    }
}
