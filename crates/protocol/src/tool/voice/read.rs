//! Reads what a tool has said aloud, as its author wrote it.

use serde_json::{Map, Value};

use super::{VOICE_CHARS_MAX, Voice, VoiceText, is_variable};
use crate::members::Members;
use crate::problem::{member, shown};

/// Most variables that a text may require.
const REQUIRED_MAX: usize = 32;

impl Voice {
    /// The voice of a tool, from `voice: {prompt, feedback, enabled}` or `voicePrompt`, `voiceFeedback` and `voiceEnabled`.
    /// Problems are those of a new definition alone: before there was a voice, `voice` could hold anything.
    pub fn read(tool: &Members<'_>) -> Option<Self> {
        let section = match tool.get("voice") {
            None => None,
            Some(Value::Object(section)) => Some(section),
            Some(other) => {
                tool.wrong("voice", format!("expected an object, got {}", shown(other)));
                None
            }
        };
        let unknown = section.into_iter().flat_map(Map::keys);
        for name in unknown.filter(|name| !["prompt", "feedback", "enabled"].contains(&name.as_str())) {
            let words = "unknown member; known here: prompt, feedback, enabled";
            tool.problems.add_if_new(member(&tool.at("voice"), name), words);
        }
        let written = |inner: &str, outer: &str| {
            let own = section
                .and_then(|section| section.get(inner))
                .filter(|value| !value.is_null());
            match (tool.get(outer), own) {
                (Some(value), None) => Some((value, tool.at(outer))),
                (None, Some(value)) => Some((value, member(&tool.at("voice"), inner))),
                (Some(value), Some(_)) => {
                    let words =
                        format!("{outer:?} is another word for {inner:?} in \"voice\"; give one of them");
                    tool.wrong_if_new(outer, words);
                    Some((value, tool.at(outer)))
                }
                (None, None) => None,
            }
        };
        let text = |inner, outer| {
            let (value, pointer) = written(inner, outer)?;
            VoiceText::read(value)
                .map_err(|words| tool.problems.add_if_new(pointer, words))
                .ok()
        };
        let enabled = written("enabled", "voiceEnabled").map(|(value, pointer)| {
            value.as_bool().unwrap_or_else(|| {
                let words = format!("expected true or false, got {}", shown(value));
                tool.problems.add_if_new(pointer, words);
                true
            })
        });
        let (prompt, feedback) = (text("prompt", "voicePrompt"), text("feedback", "voiceFeedback"));
        let is_said = prompt.is_some() || feedback.is_some() || enabled == Some(false);
        is_said.then(|| Self {
            prompt,
            feedback,
            enabled: enabled.unwrap_or(true),
        })
    }
}

impl VoiceText {
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        let text = |value: &Value, what: &str| match value.as_str() {
            Some(text) if !text.trim().is_empty() && text.chars().count() <= VOICE_CHARS_MAX => {
                Ok(text.to_owned())
            }
            _ => Err(format!(
                "{what} is a text of 1 to {VOICE_CHARS_MAX} characters, got {}",
                shown(value)
            )),
        };
        let Value::Object(members) = value else {
            return Ok(Self {
                template: text(value, "a spoken text")?,
                requires_context: Vec::new(),
                fallback: None,
            });
        };
        let known = ["template", "requiresContext", "fallback"];
        if let Some(unknown) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!(
                "unknown member {unknown:?}; known here: {}",
                known.join(", ")
            ));
        }
        let template = members
            .get("template")
            .ok_or("expected \"template\", the text that is said")?;
        let fallback = members.get("fallback").filter(|value| !value.is_null());
        Ok(Self {
            template: text(template, "\"template\"")?,
            requires_context: required(members.get("requiresContext"))?,
            fallback: fallback
                .map(|fallback| text(fallback, "\"fallback\""))
                .transpose()?,
        })
    }
}

fn required(value: Option<&Value>) -> Result<Vec<String>, String> {
    let names = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(names)) if names.len() <= REQUIRED_MAX => names,
        Some(other) => {
            return Err(format!(
                "\"requiresContext\" is a list of at most {REQUIRED_MAX} variables, got {}",
                shown(other)
            ));
        }
    };
    let name = |name: &Value| match name.as_str().filter(|name| is_variable(name)) {
        Some(name) => Ok(name.to_owned()),
        None => Err(format!(
            "\"requiresContext\" names variables such as \"topic\", got {}",
            shown(name)
        )),
    };
    names.iter().map(name).collect()
}
