//! Maps JSON pointers of a configuration to lines of its file.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// Members that a configuration has and Markdown leaves implicit.
const IMPLICIT: [&str; 2] = ["execution", "properties"];

/// The line of every value in a file.
pub struct Lines {
    root: LineNode,
}

/// A value's line, counted from 1, with those of its members.
#[derive(Debug, Default)]
pub struct LineNode {
    line: usize,
    parts: BTreeMap<String, LineNode>,
}

impl Lines {
    /// The lines of a JSON text. A text that is not JSON has only its first line.
    pub fn json(text: &str) -> Self {
        Self {
            root: json_lines(text, text),
        }
    }

    /// The lines of front matter that begins after `lines_before` lines.
    pub fn yaml(root: &Node, lines_before: usize) -> Self {
        Self {
            root: root.lines(root.line, lines_before),
        }
    }

    /// The value at `pointer`, or its nearest ancestor that is written in the file: its pointer and its line.
    pub fn find(&self, pointer: &str) -> (String, usize) {
        let mut node = &self.root;
        let mut found = String::new();
        for segment in pointer.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            match node.parts.get(&name) {
                Some(part) => {
                    node = part;
                    found = format!("{found}/{segment}");
                }
                None if IMPLICIT.contains(&segment) => {}
                None => break,
            }
        }
        (found, node.line)
    }

    /// The line of the value at `pointer`.
    pub fn line(&self, pointer: &str) -> usize {
        self.find(pointer).1
    }
}

/// `raw` is a slice of `text`, so its offset gives its line.
fn json_lines(text: &str, raw: &str) -> LineNode {
    let raw = raw.trim_start();
    let offset = raw.as_ptr() as usize - text.as_ptr() as usize;
    let line = 1 + text[..offset].bytes().filter(|byte| *byte == b'\n').count();
    let inside = |part: &RawValue| json_lines(text, part.get());
    let parts = if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw) {
        members
            .into_iter()
            .map(|(name, part)| (name, inside(part)))
            .collect()
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) {
        let named = items.into_iter().enumerate();
        named
            .map(|(index, part)| (index.to_string(), inside(part)))
            .collect()
    } else {
        BTreeMap::new()
    };
    LineNode { line, parts }
}

/// A value of front matter with its line.
#[derive(Debug)]
pub struct Node {
    line: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Leaf(Value),
    List(Vec<Node>),
    /// Members, each with the line of its name.
    Map(Vec<(String, usize, Node)>),
}

impl Node {
    /// The value without lines.
    pub fn value(&self) -> Value {
        match &self.kind {
            Kind::Leaf(value) => value.clone(),
            Kind::List(items) => items.iter().map(Node::value).collect(),
            Kind::Map(members) => {
                let members = members.iter().map(|(name, _, node)| (name.clone(), node.value()));
                Value::Object(Map::from_iter(members))
            }
        }
    }

    fn lines(&self, line: usize, lines_before: usize) -> LineNode {
        let parts = match &self.kind {
            Kind::Leaf(_) => BTreeMap::new(),
            Kind::List(items) => {
                let named = items.iter().enumerate();
                named
                    .map(|(index, node)| (index.to_string(), node.lines(node.line, lines_before)))
                    .collect()
            }
            Kind::Map(members) => members
                .iter()
                .map(|(name, line, node)| (name.clone(), node.lines(*line, lines_before)))
                .collect(),
        };
        LineNode {
            line: line + lines_before,
            parts,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(source)?;
        Ok(Self {
            line: spanned.referenced.line() as usize,
            kind: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value that JSON can represent")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Leaf(value.into()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Leaf(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Leaf(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Leaf(
            Number::from_f64(value).map_or(Value::Null, Value::Number),
        ))
    }
    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Leaf(value.into()))
    }
    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Leaf(Value::Null))
    }
    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Leaf(Value::Null))
    }
    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Kind, D::Error> {
        Kind::deserialize(source)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            let line = name.referenced.line() as usize;
            members.push((name.value, line, map.next_value()?));
        }
        Ok(Kind::Map(members))
    }
}
