//! What checking a value could cost, counted before it is checked: which subschemas are tried on which value, and how
//! much text each pattern reads. The count walks schema and value as the validator does, tries nothing and stops at a
//! limit, so a schema and a value that are harmless each, and not together, are refused at little cost.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::CHECK_DEPTH_MAX;
use super::expansion::{Shape, trials};
use super::names::{Names, Target};

/// Bytes of a compiled pattern times bytes of text that take as long as one step. A pattern whose states cannot be kept
/// in a table is followed state by state, for every byte.
const PATTERN_BYTES_PER_STEP: u64 = 256;
/// Bytes of text that a keyword such as `maxLength` reads in one step.
const TEXT_BYTES_PER_STEP: u64 = 256;
/// Steps of a `format`, and of each byte that it reads.
const FORMAT_STEPS: u64 = 16;
const FORMAT_STEPS_PER_BYTE: u64 = 2;
/// Steps of a keyword that computes with fractions.
const FRACTION_STEPS: u64 = 20;
/// How often `uniqueItems` may look at one value: few items are compared with each other, many by hash.
const UNIQUE_LOOKS: u64 = 8;
/// Steps of remembering that a value was tried. Bounds the memory that this takes, too.
const REMEMBER_STEPS: u64 = 16;
/// Deepest walk: that of a recursive schema, and the schemas around its first level.
const DEPTH_MAX: usize = CHECK_DEPTH_MAX + 128;
/// Steps that the schema of schemas takes for one value.
const DIALECT_STEPS: u64 = 100;

/// A schema as far as it says what checking a value takes.
pub(super) struct Plan {
    /// The first is the schema itself.
    nodes: Vec<Node>,
    estimate: Estimate,
}

/// What a value of so many bytes takes at most, whatever it is.
struct Estimate {
    steps_per_value: u64,
    pattern_bytes: u64,
    /// The same value may be tried again and again: there is no telling from its size.
    is_unbounded: bool,
}

/// One schema, by the values that it and the schemas in it are tried on.
#[derive(Default)]
struct Node {
    /// Steps for any value, and more for an object.
    steps: u64,
    object_steps: u64,
    /// Size of the compiled `pattern`.
    pattern: Option<u64>,
    has_format: bool,
    has_unique_items: bool,
    /// Tried on the same value, each so often.
    in_place: Vec<usize>,
    trials: usize,
    properties: HashMap<String, usize>,
    /// Size of the compiled pattern, and what is tried on the members that match: all of them may.
    pattern_properties: Vec<(u64, usize)>,
    additional_properties: Option<usize>,
    every_member: Vec<usize>,
    names: Option<usize>,
    prefix: Vec<usize>,
    items: Option<usize>,
    every_item: Vec<usize>,
    /// A reference inside leads back here: the validator remembers what became of each array and object.
    is_recursive: bool,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Whether a value matches: what a recursive schema has tried is remembered.
    Check,
    /// All that is wrong with it: everything is tried again.
    Explain,
}

impl Plan {
    /// Reads a schema that was examined and compiled; `program_bytes` says how large a pattern is once it is compiled.
    pub fn new<'s>(
        root: &'s Value,
        names: &Names<'s>,
        follows: bool,
        shape: Shape,
        program_bytes: &dyn Fn(&str) -> u64,
    ) -> Self {
        let mut reading = Reading {
            names,
            follows,
            program_bytes,
            nodes: Vec::new(),
            known: HashMap::new(),
            open: HashSet::new(),
            dialect: None,
        };
        reading.schema(root);
        let nodes = reading.nodes;
        let estimate = Estimate::of(&nodes, shape);
        Self { nodes, estimate }
    }

    /// Steps that checking `value` takes at most; none when they are more than `max`.
    pub fn steps(&self, value: &Value, purpose: Purpose, max: u64) -> Option<u64> {
        let mut walk = Walk {
            nodes: &self.nodes,
            left: max,
            tried: (purpose == Purpose::Check).then(HashSet::new),
        };
        walk.visit(0, value, DEPTH_MAX)?;
        Some(max - walk.left)
    }

    /// Steps that checking a value of so many bytes of JSON takes at most. Far above what most values take.
    pub fn steps_of_bytes(&self, bytes: usize) -> u64 {
        let Estimate {
            steps_per_value,
            pattern_bytes,
            is_unbounded,
        } = self.estimate;
        if is_unbounded {
            return u64::MAX;
        }
        // A value has a comma, a bracket or a quote of its own.
        let values = bytes as u64 / 2 + 1;
        let text = (bytes as u64).saturating_mul(pattern_bytes) / PATTERN_BYTES_PER_STEP;
        values.saturating_mul(steps_per_value).saturating_add(text)
    }
}

impl Estimate {
    fn of(nodes: &[Node], shape: Shape) -> Self {
        let steps = |node: &Node| {
            let unique = if node.has_unique_items { UNIQUE_LOOKS } else { 0 };
            node.steps + node.object_steps + node.text_steps(1) + unique
        };
        let patterns = |node: &Node| {
            let of_members: u64 = node.pattern_properties.iter().map(|(bytes, _)| bytes).sum();
            node.pattern.unwrap_or(0) + of_members
        };
        let total = |of: &dyn Fn(&Node) -> u64| match nodes.len() >= shape.subschemas {
            true => nodes.iter().map(of).sum(),
            // Some are tried several times on one value.
            false => nodes
                .iter()
                .map(of)
                .max()
                .unwrap_or(0)
                .saturating_mul(shape.subschemas as u64),
        };
        Self {
            steps_per_value: total(&steps),
            pattern_bytes: total(&patterns),
            is_unbounded: shape.returns > 1,
        }
    }
}

impl Node {
    fn text_steps(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        let length = self.steps.saturating_mul(bytes / TEXT_BYTES_PER_STEP);
        let format = if self.has_format {
            bytes.saturating_mul(FORMAT_STEPS_PER_BYTE) + FORMAT_STEPS
        } else {
            0
        };
        let pattern = self.pattern.map_or(0, |program| pattern_steps(program, bytes));
        length.saturating_add(format).saturating_add(pattern)
    }
}

fn pattern_steps(program: u64, bytes: u64) -> u64 {
    program.saturating_mul(bytes) / PATTERN_BYTES_PER_STEP + 1
}

struct Reading<'s, 'a> {
    names: &'a Names<'s>,
    follows: bool,
    program_bytes: &'a dyn Fn(&str) -> u64,
    nodes: Vec<Node>,
    /// By the address of a schema: one that several references lead to is read once.
    known: HashMap<*const Value, usize>,
    /// Those that are being read.
    open: HashSet<usize>,
    dialect: Option<usize>,
}

impl<'s> Reading<'s, '_> {
    fn schema(&mut self, schema: &'s Value) -> usize {
        if let Some(&index) = self.known.get(&std::ptr::from_ref(schema)) {
            self.nodes[index].is_recursive |= self.open.contains(&index);
            return index;
        }
        let index = self.nodes.len();
        self.known.insert(schema, index);
        self.open.insert(index);
        self.nodes.push(Node::default());
        let mut node = Node {
            steps: 1,
            ..Node::default()
        };
        if let Value::Object(keywords) = schema {
            node.trials = trials(keywords);
            for (keyword, value) in keywords {
                self.keyword(&mut node, keyword, value);
            }
            self.references(&mut node, schema, keywords);
        }
        self.open.remove(&index);
        node.is_recursive = self.nodes[index].is_recursive;
        self.nodes[index] = node;
        index
    }

    fn keyword(&mut self, node: &mut Node, keyword: &str, value: &'s Value) {
        match keyword {
            "enum" | "const" | "required" | "dependentRequired" | "type" => node.steps += values_in(value),
            "multipleOf" => node.steps += FRACTION_STEPS,
            "format" | "contentEncoding" | "contentMediaType" => node.has_format = true,
            "uniqueItems" => node.has_unique_items = value == &Value::Bool(true),
            "pattern" => node.pattern = value.as_str().map(self.program_bytes),
            "not" | "if" | "then" | "else" => node.in_place.push(self.schema(value)),
            "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                node.steps += 1;
                node.in_place.extend(self.inside(value));
            }
            "properties" => {
                let members = value.as_object().into_iter().flatten();
                node.properties = members
                    .map(|(name, schema)| (name.clone(), self.schema(schema)))
                    .collect();
                node.object_steps += node.properties.len() as u64;
            }
            "patternProperties" => {
                let members = value.as_object().into_iter().flatten();
                node.pattern_properties = members
                    .map(|(pattern, schema)| ((self.program_bytes)(pattern), self.schema(schema)))
                    .collect();
            }
            "additionalProperties" => node.additional_properties = Some(self.schema(value)),
            "unevaluatedProperties" => node.every_member.push(self.schema(value)),
            "propertyNames" => node.names = Some(self.schema(value)),
            "prefixItems" => node.prefix = self.inside(value),
            "items" => node.items = Some(self.schema(value)),
            "contains" | "unevaluatedItems" | "additionalItems" => node.every_item.push(self.schema(value)),
            // These say something to people, or keep schemas for references.
            "title" | "description" | "default" | "examples" | "$comment" | "$defs" | "definitions"
            | "contentSchema" => {}
            _ => node.steps += 1,
        }
    }

    fn inside(&mut self, value: &'s Value) -> Vec<usize> {
        match value {
            Value::Array(items) => items.iter().map(|item| self.schema(item)).collect(),
            // `dependencies` may hold lists of names beside schemas.
            Value::Object(members) => members
                .values()
                .filter(|schema| !schema.is_array())
                .map(|schema| self.schema(schema))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        }
    }

    fn references(&mut self, node: &mut Node, schema: &'s Value, keywords: &'s Map<String, Value>) {
        for keyword in ["$ref", "$dynamicRef"] {
            let reference = keywords.get(keyword).filter(|_| self.follows);
            let Some(reference) = reference.and_then(Value::as_str) else {
                continue;
            };
            match self.names.target(schema, reference) {
                Some(Target::Schema(target)) => node.in_place.push(self.schema(target)),
                Some(Target::Dialect) => node.in_place.push(self.dialect()),
                None => {}
            }
            if keyword == "$dynamicRef" {
                let targets = self.names.dynamic_targets(reference);
                node.in_place
                    .extend(targets.iter().map(|target| self.schema(target)));
            }
        }
    }

    /// The schema of schemas: the same for every value in it.
    fn dialect(&mut self) -> usize {
        let index = self.nodes.len();
        if let Some(known) = self.dialect {
            return known;
        }
        self.dialect = Some(index);
        self.nodes.push(Node {
            steps: DIALECT_STEPS,
            every_member: vec![index],
            every_item: vec![index],
            is_recursive: true,
            ..Node::default()
        });
        index
    }
}

fn values_in(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(values_in).sum::<u64>() + 1,
        Value::Object(members) => members.values().map(values_in).sum::<u64>() + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

struct Walk<'p> {
    nodes: &'p [Node],
    left: u64,
    /// The arrays and objects that recursive schemas were tried on, by address.
    tried: Option<HashSet<(usize, *const Value)>>,
}

impl Walk<'_> {
    /// Counts what a schema takes for a value; none when that is too much.
    fn visit(&mut self, schema: usize, value: &Value, depth: usize) -> Option<()> {
        let node = &self.nodes[schema];
        let depth = depth.checked_sub(1)?;
        self.spend(node.steps)?;
        if node.is_recursive
            && (value.is_array() || value.is_object())
            && let Some(tried) = &mut self.tried
        {
            if !tried.insert((schema, std::ptr::from_ref(value))) {
                return Some(());
            }
            self.spend(REMEMBER_STEPS)?;
        }
        for _ in 0..node.trials {
            for part in &node.in_place {
                self.visit(*part, value, depth)?;
            }
        }
        match value {
            Value::String(text) => self.spend(node.text_steps(text.len())),
            Value::Array(items) => self.visit_items(node, items, depth),
            Value::Object(members) => self.visit_members(node, members, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(()),
        }
    }

    fn visit_items(&mut self, node: &Node, items: &[Value], depth: usize) -> Option<()> {
        for (index, item) in items.iter().enumerate() {
            if node.has_unique_items {
                self.visit_all(item)?;
            }
            let own = node.prefix.get(index).or(node.items.as_ref());
            for part in own.into_iter().chain(&node.every_item) {
                self.visit(*part, item, depth)?;
            }
        }
        Some(())
    }

    fn visit_members(&mut self, node: &Node, members: &Map<String, Value>, depth: usize) -> Option<()> {
        self.spend(node.object_steps)?;
        for (name, member) in members {
            let own = node.properties.get(name).or(node.additional_properties.as_ref());
            for part in own.into_iter().chain(&node.every_member) {
                self.visit(*part, member, depth)?;
            }
            for (program, part) in &node.pattern_properties {
                self.spend(pattern_steps(*program, name.len() as u64))?;
                self.visit(*part, member, depth)?;
            }
            if let Some(names) = node.names {
                self.visit(names, &Value::from(name.as_str()), depth)?;
            }
        }
        Some(())
    }

    /// Counts a value that is looked at whole.
    fn visit_all(&mut self, value: &Value) -> Option<()> {
        self.spend(UNIQUE_LOOKS)?;
        match value {
            Value::String(text) => self.spend(text.len() as u64 / TEXT_BYTES_PER_STEP),
            Value::Array(items) => items.iter().try_for_each(|item| self.visit_all(item)),
            Value::Object(members) => members.values().try_for_each(|member| self.visit_all(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(()),
        }
    }

    fn spend(&mut self, steps: u64) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }
}
