//! What a request body holds. Each type says in one place how it is read, with every problem at once, and
//! how it is described in the OpenAPI document; so the two cannot drift apart.

pub mod object;

use std::fmt;

use serde_json::value::RawValue;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::{Problem, member};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};

pub use crate::{wire, words};
pub use object::{Members, component, expected_one};

/// What is wrong with a member that was left out and may not be.
const REQUIRED: &str = "is required";

/// A part of a request body.
pub trait Wire: Sized {
    /// `null` is a value of its own rather than absence.
    const TAKES_NULL: bool = false;
    /// It may be left out.
    const OPTIONAL: bool = false;
    /// It is an array rather than an object, where it is one of the two.
    const IS_LIST: bool = false;

    /// Reads a value; says what is wrong with it when it gives none.
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self>;
    /// What a missing member means: a problem, unless it may be left out.
    fn absent(at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        problems.push(at.problem(REQUIRED));
        None
    }
    /// Its description, or a reference to the component that holds it.
    fn schema() -> RefOr<Schema>;
    /// The components that the description refers to.
    fn components(_components: &mut Vec<(String, RefOr<Schema>)>) {}
}

/// Where a value stands in the body.
pub enum At<'a> {
    /// It is the body.
    Root,
    /// A member of an object.
    Member(&'a At<'a>, &'a str),
    /// An item of an array.
    Item(&'a At<'a>, usize),
}

impl At<'_> {
    /// Something is wrong here; `message` goes on from the pointer.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.to_string(), message)
    }
}
/// As a JSON pointer.
impl fmt::Display for At<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) => write!(out, "{parent}{}", member("", name)),
            Self::Item(parent, index) => write!(out, "{parent}/{index}"),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    const OPTIONAL: bool = true;
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        if value.get() == "null" && !T::TAKES_NULL {
            return Some(None);
        }
        T::read(value, at, problems).map(Some)
    }
    fn absent(_: &At<'_>, _: &mut Vec<Problem>) -> Option<Self> {
        Some(None)
    }
    fn schema() -> RefOr<Schema> {
        if T::TAKES_NULL {
            return T::schema();
        }
        AnyOfBuilder::new()
            .item(T::schema())
            .item(ObjectBuilder::new().schema_type(Type::Null))
            .into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        T::components(components);
    }
}

/// A text of `MIN` to `MAX` characters.
#[derive(Debug, Clone, PartialEq)]
pub struct Text<const MIN: usize, const MAX: usize>(pub String);

impl<const MIN: usize, const MAX: usize> Wire for Text<MIN, MAX> {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        let text = string(value, at, problems)?;
        let length = text.chars().count();
        if (MIN..=MAX).contains(&length) {
            return Some(Self(text));
        }
        problems.push(at.problem(match MIN {
            1 if length == 0 => "must not be empty".into(),
            _ => format!("must have {MIN} to {MAX} characters, has {length}"),
        }));
        None
    }
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(MIN))
            .max_length(Some(MAX))
            .into()
    }
}

impl Wire for bool {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        serde_json::from_str(value.get())
            .map_err(|_| problems.push(wrong_kind(at, "true or false", value)))
            .ok()
    }
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Wire for Whole<MIN, MAX> {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        // JSON has one kind of number: 30.0 is as whole as 30.
        let number = serde_json::from_str::<u64>(value.get()).ok().or_else(|| {
            let number: f64 = serde_json::from_str(value.get()).ok()?;
            (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
        });
        let fits = number.filter(|number| (MIN..=MAX).contains(number));
        if fits.is_none() {
            problems.push(wrong_kind(
                at,
                &format!("a whole number from {MIN} to {MAX}"),
                value,
            ));
        }
        fits.map(Self)
    }
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(MIN as f64))
            .maximum(Some(MAX as f64))
            .into()
    }
}

/// `MIN` to `MAX` items.
#[derive(Debug, Clone, PartialEq)]
pub struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T: Wire, const MIN: usize, const MAX: usize> Wire for List<T, MIN, MAX> {
    const IS_LIST: bool = true;
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
            problems.push(wrong_kind(at, "an array", value));
            return None;
        };
        if !(MIN..=MAX).contains(&items.len()) {
            problems.push(at.problem(format!("must have {MIN} to {MAX} items, has {}", items.len())));
            return None;
        }
        let read = items
            .iter()
            .enumerate()
            .map(|(i, item)| T::read(item, &At::Item(at, i), problems));
        // Every item is read before the first failure counts, so that all problems are told.
        let read: Vec<Option<T>> = read.collect();
        read.into_iter().collect::<Option<Vec<T>>>().map(Self)
    }
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(T::schema())
            .min_items(Some(MIN))
            .max_items(Some(MAX))
            .into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        T::components(components);
    }
}

/// Either plain words or an object or a list that says more.
#[derive(Debug, Clone, PartialEq)]
pub enum TextOr<T> {
    /// Plain words.
    Text(String),
    /// More.
    More(T),
}

impl<T: Wire> Wire for TextOr<T> {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        if value.get().starts_with('"') {
            return Words::read(value, at, problems).map(|words| Self::Text(words.0));
        }
        let (opening, kinds) = match T::IS_LIST {
            true => ('[', "a string or an array"),
            false => ('{', "a string or an object"),
        };
        if value.get().starts_with(opening) {
            return T::read(value, at, problems).map(Self::More);
        }
        problems.push(wrong_kind(at, kinds, value));
        None
    }
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new().item(Words::schema()).item(T::schema()).into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        T::components(components);
    }
}

/// What one message may hold of plain text.
pub const WORDS_CHARS_MAX: usize = 1_000_000;
/// Plain words, never empty.
pub type Words = Text<1, WORDS_CHARS_MAX>;

/// Any JSON value, passed on as it is.
impl Wire for Json {
    const TAKES_NULL: bool = true;
    fn read(value: &RawValue, _: &At<'_>, _: &mut Vec<Problem>) -> Option<Self> {
        Some(kept(value))
    }
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

/// Any JSON object, passed on as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyObject(pub Json);

impl Wire for AnyObject {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        if value.get().starts_with('{') {
            return Some(Self(kept(value)));
        }
        problems.push(wrong_kind(at, "an object", value));
        None
    }
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

/// The value as it stands in the body.
fn kept(value: &RawValue) -> Json {
    Json::parse(value.get().to_owned()).expect("the body was checked")
}

/// A JSON string, or a problem.
pub fn string(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<String> {
    serde_json::from_str(value.get())
        .map_err(|_| problems.push(wrong_kind(at, "a string", value)))
        .ok()
}

/// "must be a string, got the number 5".
pub fn wrong_kind(at: &At<'_>, wanted: &str, value: &RawValue) -> Problem {
    const QUOTED_CHARS_MAX: usize = 32;
    let text = value.get();
    let got = match text.as_bytes()[0] {
        b'{' => "an object".into(),
        b'[' => "an array".into(),
        b'"' => "a string".into(),
        b'n' | b't' | b'f' => text.into(),
        _ => format!(
            "the number {}",
            text.chars().take(QUOTED_CHARS_MAX).collect::<String>()
        ),
    };
    // Without a pointer the words stand alone.
    let subject = match at {
        At::Root => "the body ",
        At::Member(..) | At::Item(..) => "",
    };
    at.problem(format!("{subject}must be {wanted}, got {got}"))
}
