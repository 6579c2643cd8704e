//! What a schema comes to when every reference is followed.

use serde_json::{Map, Value};

use super::names::{Names, Target};
use crate::problem::member;

/// Most schemas around a schema when references are followed.
const EXPANDED_DEPTH_MAX: usize = 128;
/// What checking one value against the schema of schemas takes.
const DIALECT: Shape = Shape {
    subschemas: 100,
    depth: 8,
    returns: 30,
};

/// What checking one value against a schema takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Schemas, each counted as often as references lead to it.
    pub subschemas: usize,
    /// Schemas around a schema.
    pub depth: usize,
    /// References that lead back to a schema they stand in.
    pub returns: usize,
}

impl Shape {
    /// Whether the schema goes as deep as the value does.
    pub fn is_recursive(self) -> bool {
        self.returns > 0
    }
}

/// Counts; says in words what is too much of it. Zero forbids references: none is followed then, and what is
/// left is no more than what was written.
pub(super) fn expand<'s>(root: &'s Value, names: &Names<'s>, subschemas_max: usize) -> Result<Shape, String> {
    let mut expansion = Expansion {
        names,
        subschemas_max: if subschemas_max == 0 {
            usize::MAX
        } else {
            subschemas_max
        },
        follows: subschemas_max > 0,
        around: Vec::new(),
        shape: Shape {
            subschemas: 0,
            depth: 0,
            returns: 0,
        },
    };
    expansion.visit(root, 1)?;
    Ok(expansion.shape)
}

struct Expansion<'s, 'a> {
    names: &'a Names<'s>,
    subschemas_max: usize,
    follows: bool,
    around: Vec<&'s Value>,
    shape: Shape,
}

impl<'s> Expansion<'s, '_> {
    /// Counts a schema that is tried `times` on one value.
    fn visit(&mut self, schema: &'s Value, times: usize) -> Result<(), String> {
        if self.around.iter().any(|outer| std::ptr::eq(*outer, schema)) {
            self.shape.returns += 1;
            return Ok(());
        }
        self.count(times, self.around.len())?;
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        self.around.push(schema);
        for part in applied(keywords) {
            let again = if part.in_place { trials(keywords) } else { 1 };
            self.visit(part.schema, times.saturating_mul(again))?;
        }
        let times = times.saturating_mul(trials(keywords));
        for keyword in ["$ref", "$dynamicRef"] {
            let reference = keywords.get(keyword).filter(|_| self.follows);
            let Some(reference) = reference.and_then(Value::as_str) else {
                continue;
            };
            match self.names.target(schema, reference) {
                Some(Target::Schema(target)) => self.visit(target, times)?,
                Some(Target::Dialect) => self.visit_dialect(times)?,
                None => {}
            }
            if keyword == "$dynamicRef" {
                for target in self.names.dynamic_targets(reference) {
                    self.visit(target, times)?;
                }
            }
        }
        self.around.pop();
        Ok(())
    }

    fn visit_dialect(&mut self, times: usize) -> Result<(), String> {
        self.shape.returns += DIALECT.returns;
        self.count(
            times.saturating_mul(DIALECT.subschemas),
            self.around.len() + DIALECT.depth,
        )
    }

    /// Counts schemas with so many around them.
    fn count(&mut self, schemas: usize, depth: usize) -> Result<(), String> {
        self.shape.subschemas = self.shape.subschemas.saturating_add(schemas);
        self.shape.depth = self.shape.depth.max(depth);
        if self.shape.subschemas > self.subschemas_max {
            let max = self.subschemas_max;
            return Err(format!(
                "checking one value could take more than {max} steps; use fewer references and nest \
                 unevaluatedProperties and unevaluatedItems less"
            ));
        }
        if depth > EXPANDED_DEPTH_MAX {
            return Err(format!(
                "its references nest deeper than {EXPANDED_DEPTH_MAX} levels"
            ));
        }
        Ok(())
    }
}

/// How often what a schema applies to the same value is tried: what is left over is only known once the others
/// have been tried again.
pub(super) fn trials(keywords: &Map<String, Value>) -> usize {
    let left_over = ["unevaluatedProperties", "unevaluatedItems"];
    if left_over.iter().any(|keyword| keywords.contains_key(*keyword)) {
        3
    } else {
        1
    }
}

/// A schema that stands in another.
pub(super) struct Part<'s> {
    pub schema: &'s Value,
    /// Where it stands in the other.
    pub place: String,
    /// Whether it is about the same value.
    in_place: bool,
}

/// The schemas that a schema applies.
pub(super) fn applied(keywords: &Map<String, Value>) -> impl Iterator<Item = Part<'_>> {
    keywords
        .iter()
        .flat_map(|(keyword, value)| match keyword.as_str() {
            "not" | "if" | "then" | "else" => vec![itself(keyword, value, true)],
            "allOf" | "anyOf" | "oneOf" | "dependentSchemas" => inside(keyword, value, true),
            // From an older draft, and still honoured: beside schemas it may hold lists of names.
            "dependencies" => {
                let mut parts = inside(keyword, value, true);
                parts.retain(|part| !part.schema.is_array());
                parts
            }
            "additionalProperties"
            | "additionalItems"
            | "unevaluatedProperties"
            | "propertyNames"
            | "items"
            | "unevaluatedItems"
            | "contains"
            | "contentSchema" => vec![itself(keyword, value, false)],
            "properties" | "patternProperties" | "prefixItems" => inside(keyword, value, false),
            _ => Vec::new(),
        })
}

/// The schemas that a schema keeps for references to lead to.
pub(super) fn defined(keywords: &Map<String, Value>) -> impl Iterator<Item = Part<'_>> {
    keywords
        .iter()
        .flat_map(|(keyword, value)| match keyword.as_str() {
            "$defs" | "definitions" => inside(keyword, value, false),
            _ => Vec::new(),
        })
}

fn itself<'s>(keyword: &str, schema: &'s Value, in_place: bool) -> Part<'s> {
    let place = member("", keyword);
    Part {
        schema,
        place,
        in_place,
    }
}

fn inside<'s>(keyword: &str, value: &'s Value, in_place: bool) -> Vec<Part<'s>> {
    let part = |name: &str, schema| Part {
        schema,
        place: member(&member("", keyword), name),
        in_place,
    };
    match value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, item)| part(&index.to_string(), item))
                .collect()
        }
        Value::Object(members) => members.iter().map(|(name, item)| part(name, item)).collect(),
        // Not what the keyword takes: the meta-schema says so.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}
