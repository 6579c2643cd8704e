//! What a schema may be, by how far its author is trusted.

use std::collections::HashSet;

use serde_json::Value;

use super::expansion::{self, Anchors, Shape};
use crate::problem::{Problems, member, preview};

/// How far the author of a schema is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Config files, plugins, MCP: JSON Schema 2020-12, local `$ref`, never a remote fetch.
    Trusted,
    /// Anything in a request: a bounded subset.
    Client,
}

impl Profile {
    /// What a schema of this profile may be by default.
    pub const fn limits(self) -> Limits {
        match self {
            Self::Trusted => Limits::TRUSTED,
            Self::Client => Limits::CLIENT,
        }
    }
}

/// What a schema may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest text.
    pub bytes: usize,
    /// Most schemas around a schema; what stands in `properties`, `items`, `anyOf` and their like is one deeper.
    pub depth: usize,
    /// Most members of one `properties`.
    pub properties: usize,
    /// Most patterns, in `pattern` and `patternProperties` together.
    pub patterns: usize,
    /// Most memory of one compiled pattern.
    pub pattern_program_bytes: usize,
    /// Most schemas that are tried on one value when every `$ref` is followed. Zero forbids `$ref`.
    pub expansion: usize,
}

impl Limits {
    /// For [`Profile::Trusted`].
    pub const TRUSTED: Self = Self {
        bytes: 64 * 1024,
        depth: 32,
        properties: 1_024,
        patterns: 64,
        pattern_program_bytes: 1024 * 1024,
        expansion: 10_000,
    };
    /// For [`Profile::Client`].
    pub const CLIENT: Self = Self {
        bytes: 16 * 1024,
        depth: 5,
        properties: 20,
        patterns: 10,
        pattern_program_bytes: 256 * 1024,
        expansion: 0,
    };
}

const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "array", "object", "null",
];

/// A schema that was looked through.
pub(super) struct Examined<'s> {
    /// What its references come to.
    pub shape: Shape,
    /// Every pattern, and where it stands.
    pub patterns: Vec<(String, &'s str)>,
}

/// Looks a whole schema through; nothing when it goes too deep or too far to look further.
pub(super) fn examine<'s>(
    schema: &'s Value,
    limits: &Limits,
    pointer: &str,
    problems: &Problems,
) -> Option<Examined<'s>> {
    let mut look = Look {
        limits,
        problems,
        seen: HashSet::new(),
        anchors: Anchors::new(schema),
        references: Vec::new(),
        patterns: Vec::new(),
        too_deep: false,
    };
    look.schema(schema, pointer, 0);
    look.references(pointer);
    if look.too_deep {
        return None;
    }
    let Look {
        anchors, patterns, ..
    } = look;
    if patterns.len() > limits.patterns {
        let (seen, max) = (patterns.len(), limits.patterns);
        problems.add(
            pointer,
            format!("the schema has {seen} patterns; at most {max} are allowed"),
        );
        return None;
    }
    match expansion::expand(&anchors, limits.expansion) {
        Ok(shape) => Some(Examined { shape, patterns }),
        Err(message) => {
            problems.add(pointer, message);
            None
        }
    }
}

struct Look<'s, 'p> {
    limits: &'p Limits,
    problems: &'p Problems,
    /// What was looked at, by address.
    seen: HashSet<*const Value>,
    anchors: Anchors<'s>,
    /// Where each reference stands, and what it says.
    references: Vec<(String, &'s str)>,
    patterns: Vec<(String, &'s str)>,
    too_deep: bool,
}

impl<'s> Look<'s, '_> {
    fn schema(&mut self, schema: &'s Value, pointer: &str, depth: usize) {
        let max = self.limits.depth;
        if depth > max {
            self.too_deep = true;
            self.problems
                .add(pointer, format!("the schema is nested deeper than {max} levels"));
            return;
        }
        self.seen.insert(schema);
        let Value::Object(keywords) = schema else {
            if !schema.is_boolean() {
                self.problems.add(pointer, "a schema is an object, true or false");
            }
            return;
        };
        for (keyword, value) in keywords {
            let place = member(pointer, keyword);
            match (keyword.as_str(), value) {
                ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                    if !self.anchors.insert(name, schema) {
                        self.problems.add(
                            place,
                            format!("another schema is called {} as well", preview(name)),
                        );
                    }
                }
                ("$id" | "$schema", _) => {
                    self.problems
                        .add(place, format!("{keyword} is allowed at the top of a schema only"));
                }
                _ => self.keyword(keyword, value, &place),
            }
        }
        for part in expansion::applied(keywords).chain(expansion::defined(keywords)) {
            self.schema(part.schema, &format!("{pointer}{}", part.place), depth + 1);
        }
    }

    /// What the meta-schema does not say, or says less well.
    fn keyword(&mut self, keyword: &str, value: &'s Value, pointer: &str) {
        match (keyword, value) {
            ("type", Value::String(name)) => self.known_type(name, pointer),
            ("type", Value::Array(names)) => {
                for (index, name) in names.iter().enumerate() {
                    self.known_type(name.as_str().unwrap_or_default(), &format!("{pointer}/{index}"));
                }
            }
            ("properties", Value::Object(properties)) if properties.len() > self.limits.properties => {
                let (seen, max) = (properties.len(), self.limits.properties);
                let words = format!("{seen} properties in one object; at most {max} are allowed");
                self.problems.add(pointer, words);
            }
            ("pattern", Value::String(pattern)) => self.patterns.push((pointer.to_owned(), pattern)),
            ("patternProperties", Value::Object(patterns)) => {
                let place = |pattern: &'s String| (member(pointer, pattern), pattern.as_str());
                self.patterns.extend(patterns.keys().map(place));
            }
            ("$ref" | "$dynamicRef", Value::String(_)) if self.limits.expansion == 0 => {
                let words = format!("{keyword} is not allowed here; write out what it stands for");
                self.problems.add(pointer, words);
            }
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                self.references.push((pointer.to_owned(), reference));
            }
            _ => {}
        }
    }

    fn known_type(&mut self, name: &str, pointer: &str) {
        if !TYPES.contains(&name) {
            let (seen, all) = (preview(name), TYPES.join(", "));
            self.problems
                .add(pointer, format!("{seen} is not a type; use one of {all}"));
        }
    }

    /// A reference may lead where no keyword does; that is looked through as well.
    fn references(&mut self, pointer: &str) {
        let mut next = 0;
        while let Some((place, reference)) = self.references.get(next).cloned() {
            next += 1;
            match self.anchors.target(reference) {
                Some(target) if self.seen.contains(&std::ptr::from_ref(target)) => {}
                Some(target) => self.schema(target, &format!("{pointer}{}", &reference[1..]), 0),
                None => {
                    let seen = preview(reference);
                    let words =
                        format!("{seen} leads nowhere in this schema; use one such as \"#/$defs/address\"");
                    self.problems.add(place, words);
                }
            }
        }
    }
}
