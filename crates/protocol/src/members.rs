//! Reads a JSON object that a person wrote member by member, and collects all problems on the way.
//! `null` counts as absent.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::guess::guess;
use crate::problem::{Problems, choice, kind, member, preview, shown};

/// Longest name of a tool or an agent that is looked at.
const NAME_CHARS_MAX: usize = 256;

/// An object, its position in the author's document, and the problems so far.
#[derive(Clone)]
pub struct Members<'v> {
    map: &'v Map<String, Value>,
    usual: Option<&'v Map<String, Value>>,
    pointer: String,
    /// List that problems are added to.
    pub problems: &'v Problems,
}

impl<'v> Members<'v> {
    /// Opens `value` if it is an object, and reports every member that is not `known`.
    pub fn open(value: &'v Value, pointer: &str, known: &[&str], problems: &'v Problems) -> Option<Self> {
        let Value::Object(map) = value else {
            problems.add(pointer, format!("expected an object, got {}", kind(value)));
            return None;
        };
        let pointer = pointer.to_owned();
        let members = Self {
            map,
            usual: None,
            pointer,
            problems,
        };
        for name in map.keys().filter(|name| !known.contains(&name.as_str())) {
            let seen = preview(name);
            members.wrong(
                name,
                match guess(name, known) {
                    Some(meant) => format!("unknown member {seen}; did you mean {meant:?}?"),
                    None => format!("unknown member {seen}; known here: {}", known.join(", ")),
                },
            );
        }
        Some(members)
    }

    /// JSON pointer to a member.
    pub fn at(&self, name: &str) -> String {
        member(&self.pointer, name)
    }

    /// Reports a problem of a member, unless the document was stored before there was such a rule.
    pub fn wrong_if_new(&self, name: &str, message: impl Into<String>) {
        self.problems.add_if_new(self.at(name), message);
    }

    /// Reports a problem of a member.
    pub fn wrong(&self, name: &str, message: impl Into<String>) {
        self.problems.add(self.at(name), message);
    }

    /// Reports a problem of the object, such as a missing member.
    pub fn lacks(&self, message: impl Into<String>) {
        self.problems.add(&self.pointer, message);
    }

    /// A member of any kind, also when it is `null`.
    pub fn written(&self, name: &str) -> Option<&'v Value> {
        self.map.get(name)
    }

    /// A member of any kind that the author wrote.
    pub fn own(&self, name: &str) -> Option<&'v Value> {
        self.written(name).filter(|value| !value.is_null())
    }

    /// A member of any kind: as written, or else the usual one.
    pub fn get(&self, name: &str) -> Option<&'v Value> {
        self.own(name).or_else(|| self.usual?.get(name))
    }

    /// The same object, with values for members that its author does not mention.
    pub fn with_usual<'u>(self, usual: &'u Map<String, Value>) -> Members<'u>
    where
        'v: 'u,
    {
        Members {
            usual: Some(usual),
            ..self
        }
    }

    /// The same object, with what is wrong noted elsewhere.
    pub fn noting<'u>(&self, problems: &'u Problems) -> Members<'u>
    where
        'v: 'u,
    {
        Members {
            problems,
            ..self.clone()
        }
    }

    /// The section `execution` and the one name that its member `member` has to give.
    pub fn named(&self, member: &str) -> Option<(Self, &'v str)> {
        self.named_with(member, &[])
    }

    /// The same for an `execution` that may have these members too.
    pub fn named_with(&self, member: &str, more: &[&str]) -> Option<(Self, &'v str)> {
        if self.get("execution").is_none() {
            self.lacks(format!("expected \"execution\": {{{member:?}: name}}"));
        }
        let known: Vec<&str> = std::iter::once(member).chain(more.iter().copied()).collect();
        let section = self.section("execution", &known)?;
        if section.get(member).is_none() {
            section.lacks(format!("expected {{{member:?}: name}}"));
        }
        let name = section.text(member, NAME_CHARS_MAX)?;
        Some((section, name))
    }

    /// A member that is an object.
    pub fn section(&self, name: &str, known: &[&str]) -> Option<Self> {
        Self::open(self.get(name)?, &self.at(name), known, self.problems)
    }

    /// A member that is a text of 1 to `chars_max` characters.
    pub fn text(&self, name: &str, chars_max: usize) -> Option<&'v str> {
        text(self.get(name)?, &self.at(name), chars_max, self.problems)
    }

    /// A member that is a list of texts, each of 1 to `chars_max` characters.
    pub fn texts(&self, name: &str, items_max: usize, chars_max: usize) -> Vec<String> {
        let place = |index| format!("{}/{index}", self.at(name));
        let items = self.list(name, items_max).iter().enumerate();
        items
            .filter_map(|(index, item)| text(item, &place(index), chars_max, self.problems))
            .map(str::to_owned)
            .collect()
    }

    /// A member that is a number in `range`.
    pub fn number(&self, name: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.get(name)?;
        let number = value.as_f64().filter(|number| range.contains(number));
        if number.is_none() {
            let (from, to) = range.into_inner();
            self.wrong(
                name,
                format!("expected a number from {from} to {to}, got {}", shown(value)),
            );
        }
        number
    }

    /// A member that is a whole number in `range`.
    pub fn whole<N: Copy + PartialOrd + std::fmt::Display + TryFrom<u64>>(
        &self,
        name: &str,
        range: RangeInclusive<N>,
    ) -> Option<N> {
        let value = self.get(name)?;
        let number = value.as_u64().and_then(|number| N::try_from(number).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (from, to) = range.into_inner();
            self.wrong(
                name,
                format!(
                    "expected a whole number from {from} to {to}, got {}",
                    shown(value)
                ),
            );
        }
        number
    }

    /// A member that is one of a few words.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let value = self.get(name)?;
        let chosen = choices.iter().find(|(word, _)| value.as_str() == Some(word));
        if chosen.is_none() {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.wrong(name, format!("expected {}, got {}", choice(&words), shown(value)));
        }
        chosen.map(|(_, choice)| *choice)
    }

    /// A member that is true or false.
    pub fn choice_of_bool(&self, name: &str) -> Option<bool> {
        let value = self.get(name)?;
        if !value.is_boolean() {
            self.wrong(name, format!("expected true or false, got {}", shown(value)));
        }
        value.as_bool()
    }

    /// A member that is a list of at most `items_max`; empty when absent.
    pub fn list(&self, name: &str, items_max: usize) -> &'v [Value] {
        match self.get(name) {
            None => &[],
            Some(Value::Array(items)) if items.len() <= items_max => items,
            Some(Value::Array(items)) => {
                self.wrong(
                    name,
                    format!("{} items; at most {items_max} are allowed", items.len()),
                );
                &items[..items_max]
            }
            Some(other) => {
                self.wrong(name, format!("expected an array, got {}", kind(other)));
                &[]
            }
        }
    }
}

fn text<'v>(value: &'v Value, pointer: &str, chars_max: usize, problems: &Problems) -> Option<&'v str> {
    let Value::String(text) = value else {
        problems.add(pointer, format!("expected a text, got {}", kind(value)));
        return None;
    };
    let blank = text.trim().is_empty();
    let long = text.len() > chars_max && text.chars().count() > chars_max;
    if blank || long {
        let seen = if blank {
            "a blank one".to_owned()
        } else {
            text.chars().count().to_string()
        };
        problems.add(
            pointer,
            format!("expected a text of 1 to {chars_max} characters, got {seen}"),
        );
    }
    Some(text)
}
