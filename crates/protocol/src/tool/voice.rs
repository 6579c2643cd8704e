//! What is said aloud of a call: before somebody decides on it, and once it has given an output. The gateway makes the
//! texts; whoever follows the events speaks them.

mod read;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest template or fallback.
pub const VOICE_CHARS_MAX: usize = 500;
/// Longest value of a variable that is spoken; the rest of a longer one is left out.
pub const VARIABLE_CHARS_MAX: usize = 120;
/// Longest name of a variable.
const NAME_CHARS_MAX: usize = 64;
/// Variable that holds what people call the tool.
const TOOL_NAME: &str = "toolName";

/// What a tool has said aloud. Stored: members may be added with a default, never renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Voice {
    /// Said when a call of it needs a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<VoiceText>,
    /// Said when a call of it has given an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<VoiceText>,
    /// Whether events carry the texts.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub enabled: bool,
}

/// A text with `{variables}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VoiceText {
    /// The text, with `{name}` or `{path.to.value}` where a value is spoken.
    pub template: String,
    /// Variables without which the fallback is said, also if the template does not speak them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires_context: Vec<String>,
    /// Said when a variable has no value, or one that the listener may not know. It has no variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// A text that is said aloud, as an event carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spoken {
    /// The text.
    pub text: String,
    /// What is said to those who may not see what the variables hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<String>,
    /// The variables that the text speaks or needs, as paths into the input or the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
}

/// What came of filling a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filled {
    /// The text; none if a variable has no value and there is no fallback.
    pub text: Option<String>,
    /// Whether the fallback stands in for the template.
    pub is_fallback: bool,
    /// Variables that have no value, in the order of the template.
    pub missing: Vec<String>,
    /// Variables that are spoken, or that the text needs to be said.
    pub spoken: Vec<String>,
}

/// Where the values of variables are looked for, first match first.
#[derive(Debug, Clone, Copy)]
pub struct Values<'v> {
    /// What people call the tool; the variable `toolName` unless a value has that name.
    pub tool: &'v str,
    /// Objects whose members are variables.
    pub objects: &'v [&'v Value],
}

impl Voice {
    /// What is said when a call with this input needs a yes.
    pub fn proposal(&self, tool: &str, input: &Value) -> Option<Spoken> {
        let objects = [input];
        self.spoken(
            self.prompt.as_ref(),
            &Values {
                tool,
                objects: &objects,
            },
        )
    }

    /// What is said when a call with this input has given this output.
    pub fn completion(&self, tool: &str, input: &Value, output: &Value) -> Option<Spoken> {
        let objects = in_output(output).chain([input]).collect::<Vec<_>>();
        self.spoken(
            self.feedback.as_ref(),
            &Values {
                tool,
                objects: &objects,
            },
        )
    }

    fn spoken(&self, text: Option<&VoiceText>, values: &Values<'_>) -> Option<Spoken> {
        let text = text.filter(|_| self.enabled)?;
        let Filled {
            text: filled, spoken, ..
        } = text.fill(values);
        Some(Spoken {
            text: filled?,
            plain: text.fallback.clone().filter(|_| !spoken.is_empty()),
            from: spoken,
        })
    }
}

impl VoiceText {
    /// Speaks the values of the variables. Without a value for each of them it is the fallback, and nothing without that:
    /// half a sentence is worse than none.
    pub fn fill(&self, values: &Values<'_>) -> Filled {
        let (mut text, mut missing, mut spoken) = (String::new(), Vec::new(), Vec::new());
        for piece in pieces(&self.template) {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Variable(name) => match values.find(name) {
                    Some(value) => {
                        text.push_str(&value);
                        note(&mut spoken, name);
                    }
                    None => note(&mut missing, name),
                },
            }
        }
        // Whether a value is there may be as much a secret as the value.
        for name in &self.requires_context {
            let names = match values.find(name) {
                Some(_) => &mut spoken,
                None => &mut missing,
            };
            note(names, name);
        }
        if missing.is_empty() {
            // The tool's own name is no secret of the call.
            spoken.retain(|name| name != TOOL_NAME || values.in_objects(name).is_some());
            return Filled {
                text: Some(text),
                is_fallback: false,
                missing,
                spoken,
            };
        }
        Filled {
            text: self.fallback.clone(),
            is_fallback: true,
            missing,
            spoken: Vec::new(),
        }
    }
}

impl Spoken {
    /// What is said to somebody who may know the values of these variables.
    pub(crate) fn heard(&self, may_know: impl Fn(&str) -> bool) -> Option<Self> {
        let Self { text, plain, from } = self;
        let text = match from.iter().all(|name| may_know(name)) {
            true => Some(text),
            false => plain.as_ref(),
        };
        text.map(|text| Self {
            text: text.clone(),
            plain: None,
            from: Vec::new(),
        })
    }
}

impl Values<'_> {
    fn find(&self, name: &str) -> Option<String> {
        let own = (name == TOOL_NAME).then(|| self.tool.to_owned());
        self.in_objects(name).or(own)
    }

    fn in_objects(&self, name: &str) -> Option<String> {
        let mut values = self.objects.iter().filter_map(|object| {
            let mut steps = name.split('.');
            steps.try_fold(*object, |value, step| match value {
                Value::Object(members) => members.get(step),
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            })
        });
        values.find_map(aloud)
    }
}

/// Where the variables of a feedback are looked for in an output: in itself, and in the `data` of a result that says
/// whether it succeeded.
pub fn in_output(output: &Value) -> impl Iterator<Item = &Value> {
    [Some(output), output.get("data")].into_iter().flatten()
}

/// A value as it is spoken, on one line and cut; none for what cannot be spoken.
fn aloud(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.split(|c: char| c.is_whitespace() || c.is_control()),
        Value::Number(_) | Value::Bool(_) => return Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let words: Vec<&str> = text.filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    match text.char_indices().nth(VARIABLE_CHARS_MAX) {
        _ if text.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", &text[..end])),
        None => Some(text),
    }
}

enum Piece<'t> {
    Text(&'t str),
    Variable(&'t str),
}

/// The template in pieces. A brace that no variable follows is text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), template);
    while let Some(open) = rest.find('{') {
        let inside = &rest[open + 1..];
        let variable = inside.split_once('}').filter(|(name, _)| is_variable(name));
        match variable {
            Some((name, after)) => {
                pieces.extend([Piece::Text(&rest[..open]), Piece::Variable(name)]);
                rest = after;
            }
            None => {
                pieces.push(Piece::Text(&rest[..=open]));
                rest = inside;
            }
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn is_variable(name: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let steps = name
        .split('.')
        .all(|step| !step.is_empty() && step.chars().all(letter));
    steps && name.chars().count() <= NAME_CHARS_MAX
}

fn note(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

fn yes() -> bool {
    true
}

fn is_true(flag: &bool) -> bool {
    *flag
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: Value) -> VoiceText {
        VoiceText::read(&value).unwrap()
    }

    fn sheet() -> VoiceText {
        text(
            json!({"template": "Creare un foglio su {topic}?", "requiresContext": ["topic"],
            "fallback": "Creare un nuovo foglio?"}),
        )
    }

    fn said(text: &VoiceText, values: &[&Value]) -> Option<String> {
        text.fill(&Values {
            tool: "Foglio",
            objects: values,
        })
        .text
    }

    #[test]
    fn variables_are_spoken_and_the_fallback_is_said_without_them() {
        assert_eq!(
            said(&sheet(), &[&json!({"topic": "Gravità"})]).unwrap(),
            "Creare un foglio su Gravità?"
        );
        for nothing in [
            json!({}),
            json!({"topic": ""}),
            json!({"topic": null}),
            json!({"topic": {"a": 1}}),
            json!(7),
        ] {
            assert_eq!(
                said(&sheet(), &[&nothing]).unwrap(),
                "Creare un nuovo foglio?",
                "{nothing}"
            );
        }
        let plain = text(json!("Vuoi creare {toolName} su {topic}?"));
        assert_eq!(
            said(&plain, &[&json!({"topic": "Energia"})]).unwrap(),
            "Vuoi creare Foglio su Energia?"
        );
        assert_eq!(said(&plain, &[&json!({})]), None);
        let filled = plain.fill(&Values {
            tool: "Foglio",
            objects: &[&json!({})],
        });
        assert_eq!(filled.missing, ["topic"]);
    }

    #[test]
    fn a_required_variable_is_needed_also_where_it_is_not_spoken() {
        let quiet = text(json!({"template": "Pronto.", "requiresContext": ["topic"], "fallback": "Forse."}));
        assert_eq!(said(&quiet, &[&json!({})]).unwrap(), "Forse.");
        assert_eq!(said(&quiet, &[&json!({"topic": 1})]).unwrap(), "Pronto.");
    }

    #[test]
    fn who_may_not_know_a_required_variable_does_not_learn_whether_it_has_a_value() {
        let voice = Voice {
            prompt: Some(text(
                json!({"template": "Pronto.", "requiresContext": ["debt"], "fallback": "Forse."}),
            )),
            feedback: None,
            enabled: true,
        };
        for input in [json!({}), json!({"debt": 7})] {
            let spoken = voice.proposal("Foglio", &input).unwrap();
            assert_eq!(spoken.heard(|_| false).unwrap().text, "Forse.", "{input}");
        }
        let spoken = voice.proposal("Foglio", &json!({"debt": 7})).unwrap();
        assert_eq!(spoken.heard(|_| true).unwrap().text, "Pronto.");
    }

    #[test]
    fn the_output_is_looked_at_before_its_data_and_before_the_input() {
        let voice = Voice {
            prompt: None,
            feedback: Some(text(json!(
                "Foglio su {topic} creato con {itemCount} elementi, {n}"
            ))),
            enabled: true,
        };
        let input = json!({"topic": "Fisica", "n": 1});
        let output = json!({"success": true, "n": 2, "data": {"itemCount": 3, "n": 4}});
        let spoken = voice.completion("Foglio", &input, &output).unwrap();
        assert_eq!(spoken.text, "Foglio su Fisica creato con 3 elementi, 2");
        assert_eq!(spoken.from, ["topic", "itemCount", "n"]);
    }

    #[test]
    fn a_value_is_cut_put_on_one_line_and_never_read_as_a_template() {
        let plain = text(json!("{a}|{b}"));
        let long = "x".repeat(VARIABLE_CHARS_MAX + 5);
        let said = said(&plain, &[&json!({"a": format!("{{b}}\n\u{7}{{b}}"), "b": long})]).unwrap();
        assert_eq!(said, format!("{{b}} {{b}}|{}…", "x".repeat(VARIABLE_CHARS_MAX)));
    }

    #[test]
    fn braces_that_name_no_variable_are_text() {
        let plain = text(json!("{ } {a b} {{a}} {"));
        assert_eq!(said(&plain, &[&json!({"a": 1})]).unwrap(), "{ } {a b} {1} {");
    }

    #[test]
    fn who_may_not_know_a_variable_hears_the_fallback_or_nothing() {
        let spoken = Spoken {
            text: "su Fisica".into(),
            plain: Some("nuovo".into()),
            from: vec!["topic".into()],
        };
        assert_eq!(spoken.heard(|_| true).unwrap().text, "su Fisica");
        let heard = spoken.heard(|_| false).unwrap();
        assert_eq!(
            (heard.text.as_str(), heard.plain, heard.from),
            ("nuovo", None, vec![])
        );
        let without = Spoken {
            plain: None,
            ..spoken
        };
        assert_eq!(without.heard(|_| false), None);
    }
}
