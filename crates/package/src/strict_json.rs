//! Reads JSON that is going to be hashed: no member twice, no number that others read differently.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use toolgate_kernel::problem::{PROBLEMS_MAX, Problem, Problems, member, preview};

use crate::canonical::{inexact, is_exact};

/// Parses `bytes` into a tree. A member that occurs twice in an object is a problem: which of the two counts differs
/// between implementations.
pub fn parse(bytes: &[u8]) -> Result<Value, Vec<Problem>> {
    let reading = Reading::default();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = reading
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    match read {
        Ok(value) => reading.problems.or(Some(value)),
        Err(error) => Err(vec![Problem::new("", format!("is not JSON: {error}"))]),
    }
}

/// One step of a JSON pointer.
pub(crate) enum Segment {
    Member(String),
    Item(usize),
}

/// Where a walk through a document is. The pointer is made only when there is a problem to report: made at each
/// value it would take quadratic time.
#[derive(Default)]
pub(crate) struct Path {
    segments: Vec<Segment>,
    reported: usize,
}

impl Path {
    pub fn within<T>(&mut self, segment: Segment, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.segments.push(segment);
        let walked = walk(self);
        self.segments.pop();
        walked
    }
    /// Reports a problem here.
    pub fn add(&mut self, message: String, problems: &Problems) {
        // One more than are listed, so that the list says there are more.
        if self.reported <= PROBLEMS_MAX {
            self.reported += 1;
            problems.add(self.pointer(), message);
        }
    }
    fn pointer(&self) -> String {
        self.segments
            .iter()
            .fold(String::new(), |pointer, segment| match segment {
                Segment::Member(name) => member(&pointer, name),
                Segment::Item(index) => format!("{pointer}/{index}"),
            })
    }
}

#[derive(Default)]
struct Reading {
    path: RefCell<Path>,
    problems: Problems,
}

impl Reading {
    fn report(&self, message: String) {
        self.path.borrow_mut().add(message, &self.problems);
    }
    fn enter(&self, segment: Segment) {
        self.path.borrow_mut().segments.push(segment);
    }
    fn leave(&self) {
        self.path.borrow_mut().segments.pop();
    }
    fn number(&self, number: Number) -> Value {
        if !is_exact(&number) {
            self.report(inexact(&number));
        }
        Value::Number(number)
    }
}

impl<'de> DeserializeSeed<'de> for &Reading {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Reading {
    type Value = Value;
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.number(value.into()))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is not finite"))?;
        Ok(self.number(number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            self.enter(Segment::Item(list.len()));
            let item = items.next_element_seed(self)?;
            self.leave();
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.enter(Segment::Member(name.clone()));
            let value = members.next_value_seed(self)?;
            let seen = preview(&name);
            if map.insert(name, value).is_some() {
                self.report(format!("the member {seen} occurs twice; leave one of them out"));
            }
            self.leave();
        }
        Ok(Value::Object(map))
    }
}
