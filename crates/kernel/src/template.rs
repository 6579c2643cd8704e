//! Text templates with placeholders: `{{name}}`, `{{path.to.value}}`. No logic, so no injection. A placeholder
//! without a value stays as written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A placeholder: its source text, and the path it names.
    Place {
        written: String,
        path: Vec<String>,
    },
}

/// A piece of a filled template.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Piece<'t> {
    /// Text of the author.
    Text(&'t str),
    /// Value of a placeholder. Untrusted data: it is never parsed for placeholders.
    Value(&'t Value),
    /// A placeholder without a value, as written.
    Open(&'t str),
}

impl Template {
    /// Parses the placeholders in `source`.
    pub fn new(source: impl Into<String>) -> Self {
        let source = source.into();
        let mut parts = Vec::new();
        let mut rest = source.as_str();
        while let Some((before, found)) = rest.split_once("{{") {
            let Some((inside, after)) = found.split_once("}}") else {
                break;
            };
            let name = inside.trim();
            if !is_path(name) {
                // No placeholder: the first brace is text, and a placeholder may begin right after it.
                let (text, after) = rest.split_at(before.len() + 1);
                parts.push(Part::Text(text.into()));
                rest = after;
                continue;
            }
            parts.push(Part::Text(before.into()));
            parts.push(Part::Place {
                written: format!("{{{{{inside}}}}}"),
                path: name.split('.').map(str::to_owned).collect(),
            });
            rest = after;
        }
        parts.push(Part::Text(rest.into()));
        Self { source, parts }
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Paths of the placeholders.
    pub fn paths(&self) -> impl Iterator<Item = String> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Place { path, .. } => Some(path.join(".")),
            Part::Text(_) => None,
        })
    }

    /// Pieces in order, with the values of placeholders. No text piece is empty.
    pub fn pieces<'t>(&'t self, values: &'t Value) -> impl Iterator<Item = Piece<'t>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) if text.is_empty() => None,
            Part::Text(text) => Some(Piece::Text(text)),
            Part::Place { written, path } => Some(match find(values, path) {
                Some(value) => Piece::Value(value),
                None => Piece::Open(written),
            }),
        })
    }

    /// The filled text; `write` formats a value. Values are not parsed
    /// again, so a value cannot inject a placeholder.
    pub fn fill(&self, values: &Value, write: impl Fn(&Value) -> String) -> String {
        let mut out = String::new();
        for piece in self.pieces(values) {
            match piece {
                Piece::Text(text) | Piece::Open(text) => out.push_str(text),
                Piece::Value(value) => out.push_str(&write(value)),
            }
        }
        out
    }

    /// The value itself if the template is a single placeholder; otherwise the filled text.
    pub fn fill_value(&self, values: &Value) -> Value {
        let mut pieces = self.pieces(values);
        if let (Some(Piece::Value(value)), None) = (pieces.next(), pieces.next()) {
            return value.clone();
        }
        self.fill(values, plain).into()
    }
}

impl From<String> for Template {
    fn from(source: String) -> Self {
        Self::new(source)
    }
}
impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.source
    }
}

/// A value as plain text: a string without quotes, anything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_path(name: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    name.split('.')
        .all(|step| !step.is_empty() && step.chars().all(letter))
}

fn find<'v>(values: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(values, |value, step| match value {
        Value::Object(members) => members.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(source: &str, values: Value) -> String {
        Template::new(source).fill(&values, plain)
    }

    #[test]
    fn places_are_filled_and_the_rest_stays() {
        let values = json!({"a": "x", "b": {"c": [1, true]}});
        assert_eq!(
            filled("{{a}} {{ b.c.0 }} {{b.c}} {{none}}", values),
            "x 1 [1,true] {{none}}"
        );
    }

    #[test]
    fn what_is_no_place_is_text() {
        let values = json!({"a": "x"});
        assert_eq!(
            filled("{% if %} {{#each a}} {{ }} {{{a}}} {{a", values),
            "{% if %} {{#each a}} {{ }} {x} {{a"
        );
    }

    #[test]
    fn a_value_cannot_bring_a_place_of_its_own() {
        assert_eq!(filled("{{a}}{{b}}", json!({"a": "{{b}}", "b": "no"})), "{{b}}no");
    }

    #[test]
    fn a_place_alone_gives_the_value_itself() {
        let values = json!({"n": 5, "list": [1]});
        assert_eq!(Template::new("{{n}}").fill_value(&values), json!(5));
        assert_eq!(Template::new("{{list}}").fill_value(&values), json!([1]));
        assert_eq!(Template::new("n={{n}}").fill_value(&values), json!("n=5"));
    }
}
