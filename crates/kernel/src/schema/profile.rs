//! Limits of schemas, by how far their author is trusted.

use std::collections::HashSet;

use serde_json::Value;

use super::expansion::{self, Shape};
use super::names::{Base, DIALECT, Names, Target};
use crate::problem::{Problems, member, preview};

pub use toolgate_protocol::schema_limits::Limits;
use toolgate_protocol::schema_limits::TYPES;

/// How far the author of a schema is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Config files, plugins, MCP: JSON Schema 2020-12, local `$ref`, never a remote fetch.
    Trusted,
    /// Anything in a request: a bounded subset.
    Client,
}

impl Profile {
    /// Default limits of this profile.
    pub const fn limits(self) -> Limits {
        match self {
            Self::Trusted => Limits::TRUSTED,
            Self::Client => Limits::CLIENT,
        }
    }
}

/// A schema that was looked through.
pub(super) struct Examined<'s> {
    /// What its references come to.
    pub shape: Shape,
    /// Where they lead.
    pub names: Names<'s>,
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
    let (names, base) = Names::new(schema);
    let mut look = Look {
        root: schema,
        limits,
        problems,
        seen: HashSet::new(),
        names,
        references: Vec::new(),
        patterns: Vec::new(),
        astray: false,
        too_deep: false,
    };
    look.schema(schema, pointer, 0, &base);
    look.references(pointer, &base);
    if look.too_deep {
        return None;
    }
    let Look { names, patterns, .. } = look;
    if patterns.len() > limits.patterns {
        let (seen, max) = (patterns.len(), limits.patterns);
        problems.add(
            pointer,
            format!("the schema has {seen} patterns; at most {max} are allowed"),
        );
        return None;
    }
    match expansion::expand(schema, &names, limits.expansion) {
        Ok(shape) => Some(Examined {
            shape,
            names,
            patterns,
        }),
        Err(message) => {
            problems.add(pointer, message);
            None
        }
    }
}

struct Look<'s, 'p> {
    root: &'s Value,
    limits: &'p Limits,
    problems: &'p Problems,
    /// Schemas visited so far, by address.
    seen: HashSet<*const Value>,
    names: Names<'s>,
    /// Where each reference stands, in which schema, and what it says.
    references: Vec<(String, &'s Value, &'s str)>,
    patterns: Vec<(String, &'s str)>,
    /// Looking where only a reference leads.
    astray: bool,
    too_deep: bool,
}

impl<'s> Look<'s, '_> {
    fn schema(&mut self, schema: &'s Value, pointer: &str, depth: usize, base: &Base) {
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
        let base = match keywords.get("$id") {
            Some(Value::String(id)) => self.identify(schema, id, pointer, base),
            // What is no text, the meta-schema complains about.
            _ => base.clone(),
        };
        self.names.place(schema, &base);
        for (keyword, value) in keywords {
            let place = member(pointer, keyword);
            match (keyword.as_str(), value) {
                ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                    let dynamic = keyword == "$dynamicAnchor";
                    if !self.names.anchor(&base, name, schema, dynamic) {
                        self.problems.add(
                            place,
                            format!("another schema is called {} as well", preview(name)),
                        );
                    }
                }
                ("$schema", dialect) => self.dialect(keywords.contains_key("$id"), dialect, place),
                ("$ref" | "$dynamicRef", Value::String(reference)) => {
                    self.reference(keyword, reference, schema, place);
                }
                _ => self.keyword(keyword, value, &place),
            }
        }
        for part in expansion::applied(keywords).chain(expansion::defined(keywords)) {
            self.schema(part.schema, &format!("{pointer}{}", part.place), depth + 1, &base);
        }
    }

    /// What references in a schema are resolved against that calls itself `id`.
    fn identify(&mut self, schema: &'s Value, id: &str, pointer: &str, base: &Base) -> Base {
        let inside = !std::ptr::eq(schema, self.root);
        let named = if inside && (self.limits.expansion == 0 || self.astray) {
            Err("$id is allowed at the top of a schema only".to_owned())
        } else {
            self.names.identify(base, id, schema)
        };
        named.unwrap_or_else(|words| {
            self.problems.add(member(pointer, "$id"), words);
            base.clone()
        })
    }

    /// A schema inside that has a name may say what it is written in, if that is what all of it is written in.
    fn dialect(&self, named: bool, dialect: &Value, place: String) {
        let same = dialect.as_str().map(|dialect| dialect.trim_end_matches('#')) == Some(DIALECT);
        if !(named && same) {
            self.problems
                .add(place, "$schema is allowed at the top of a schema only");
        }
    }

    fn reference(&mut self, keyword: &str, reference: &'s str, schema: &'s Value, place: String) {
        if self.limits.expansion == 0 {
            let words = format!("{keyword} is not allowed here; write out what it stands for");
            self.problems.add(place, words);
        } else {
            self.references.push((place, schema, reference));
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
    fn references(&mut self, pointer: &str, base: &Base) {
        self.astray = true;
        let mut next = 0;
        while let Some((place, schema, reference)) = self.references.get(next).cloned() {
            next += 1;
            match self.names.target(schema, reference) {
                Some(Target::Dialect) => {}
                Some(Target::Schema(target)) if self.seen.contains(&std::ptr::from_ref(target)) => {}
                Some(Target::Schema(target)) => {
                    let path = reference.split_once('#').map_or("", |(_, path)| path);
                    let base = self.names.base(schema).unwrap_or(base).clone();
                    self.schema(target, &format!("{pointer}{path}"), 0, &base);
                }
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
