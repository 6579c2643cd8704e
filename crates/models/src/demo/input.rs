//! Builds an input for a tool from the user's message.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::{normalize_words, required};

/// How many levels of a schema are followed.
const DEPTH_MAX: usize = 8;

/// An input that matches `schema` as far as the rules can: required members only, with strings and numbers
/// from the message in order.
pub(super) fn make(schema: &Value, asked: &str, tool: &str) -> Value {
    let mut material = Material {
        root: schema,
        asked,
        heard: normalize_words(asked),
        texts: quoted(asked),
        rest: after(asked, tool),
        numbers: numbers(asked),
    };
    match material.value(schema, 0) {
        input @ Value::Object(_) => input,
        _ => json!({}),
    }
}

/// The values found in the message.
struct Material<'a> {
    root: &'a Value,
    asked: &'a str,
    heard: String,
    texts: VecDeque<&'a str>,
    /// The text after the tool's name.
    rest: &'a str,
    numbers: VecDeque<f64>,
}

impl Material<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth == DEPTH_MAX {
            return Value::Null;
        }
        if let Some(path) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
            let target = self.root.pointer(path).cloned().unwrap_or_default();
            return self.value(&target, depth + 1);
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(options) = schema["enum"].as_array() {
            return self.choose(options);
        }
        for alternatives in ["anyOf", "oneOf", "allOf"] {
            if let Some(first) = schema[alternatives].get(0) {
                return self.value(first, depth + 1);
            }
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
        match kind {
            Some("string") => self.text(schema).into(),
            Some("integer") => Value::from(self.number(schema).round() as i64),
            Some("number") => Value::from(self.number(schema)),
            Some("boolean") => Value::from(!["no", "not", "false", "off"].iter().any(|word| self.says(word))),
            Some("array") => {
                let length = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 16);
                (0..length)
                    .map(|_| self.value(&schema["items"], depth + 1))
                    .collect()
            }
            Some("null") => Value::Null,
            Some("object") | None if schema["properties"].is_object() || kind.is_some() => {
                let members = required(schema).map(|name| {
                    (
                        name.to_owned(),
                        self.value(&schema["properties"][name], depth + 1),
                    )
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
            _ => self.text(schema).into(),
        }
    }

    fn says(&self, word: &str) -> bool {
        self.heard.contains(&format!(" {word} "))
    }

    fn choose(&self, options: &[Value]) -> Value {
        let said = options.iter().find(|option| {
            option
                .as_str()
                .is_some_and(|text| self.heard.contains(&normalize_words(text)))
        });
        said.or(options.first()).cloned().unwrap_or_default()
    }

    fn text(&mut self, schema: &Value) -> String {
        let found = |mark: &str| self.asked.split_whitespace().find(|word| word.contains(mark));
        let text = match schema["format"].as_str() {
            Some("uri" | "url") => found("://").unwrap_or("https://example.com/"),
            Some("email") => found("@").unwrap_or("someone@example.com"),
            Some("date") => "2030-01-01",
            Some("date-time") => "2030-01-01T00:00:00Z",
            _ => self.texts.pop_front().unwrap_or(self.rest),
        };
        let longest = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
        text.chars()
            .take(longest.try_into().unwrap_or(usize::MAX))
            .collect()
    }

    fn number(&mut self, schema: &Value) -> f64 {
        let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
        let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
        self.numbers.pop_front().unwrap_or(1.0).min(most).max(least)
    }
}

/// The texts between quotation marks.
fn quoted(asked: &str) -> VecDeque<&str> {
    asked
        .split(['"', '“', '”'])
        .skip(1)
        .step_by(2)
        .filter(|text| !text.is_empty())
        .collect()
}

/// The text after the tool's name, or after the name's last word, or else the whole message.
fn after<'a>(asked: &'a str, tool: &str) -> &'a str {
    let name = normalize_words(tool);
    let last = name.split_whitespace().last().unwrap_or_default();
    let mut rest = asked;
    for (at, word) in words_with_offsets(asked) {
        if normalize_words(word).contains(last) {
            rest = &asked[at + word.len()..];
            break;
        }
    }
    let rest = rest.trim_start_matches([':', ',', '-', '–']).trim();
    let rest = ["with ", "for ", "to ", "about ", "that "]
        .iter()
        .find_map(|word| rest.strip_prefix(word))
        .unwrap_or(rest);
    if rest.is_empty() { asked.trim() } else { rest }
}

/// The words of a text with their byte offsets.
fn words_with_offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace()
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

fn numbers(asked: &str) -> VecDeque<f64> {
    let tokens = asked.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    tokens
        .filter_map(|token| token.trim_end_matches('.').parse().ok())
        .collect()
}
