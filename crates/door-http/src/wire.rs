//! What a request body holds. Each type says in one place how it is read, with every problem at once, and
//! how it is described in the OpenAPI document; so the two cannot drift apart.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::{Problem, member};
use utoipa::openapi::schema::{
    AdditionalProperties, AllOfBuilder, AnyOfBuilder, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder,
    Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

/// A part of a request body.
pub(crate) trait Wire: Sized {
    /// `null` is a value of its own rather than absence.
    const TAKES_NULL: bool = false;
    /// It may be left out.
    const OPTIONAL: bool = false;

    /// Reads a value; says what is wrong with it when it gives none.
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self>;
    /// What a missing member means: a problem, unless it may be left out.
    fn absent(at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        problems.push(at.problem("is required"));
        None
    }
    /// Its description, or a reference to the component that holds it.
    fn schema() -> RefOr<Schema>;
    /// The components that the description refers to.
    fn components(_components: &mut Vec<(String, RefOr<Schema>)>) {}
}

/// Where a value stands in the body.
pub(crate) enum At<'a> {
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
pub(crate) struct Text<const MIN: usize, const MAX: usize>(pub String);

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
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub u64);

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
pub(crate) struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T: Wire, const MIN: usize, const MAX: usize> Wire for List<T, MIN, MAX> {
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

/// Either plain words or something that says more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextOr<T> {
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
        T::read(value, at, problems).map(Self::More)
    }
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new().item(Words::schema()).item(T::schema()).into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        T::components(components);
    }
}

/// What one message may hold of plain text.
pub(crate) const WORDS_CHARS_MAX: usize = 1_000_000;
/// Plain words, never empty.
pub(crate) type Words = Text<1, WORDS_CHARS_MAX>;

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
pub(crate) struct AnyObject(pub Json);

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
pub(crate) fn string(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<String> {
    serde_json::from_str(value.get())
        .map_err(|_| problems.push(wrong_kind(at, "a string", value)))
        .ok()
}

/// "must be a string, got the number 5".
pub(crate) fn wrong_kind(at: &At<'_>, wanted: &str, value: &RawValue) -> Problem {
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
    at.problem(format!("must be {wanted}, got {got}"))
}

/// Most members of an object that the door looks into.
const MEMBERS_MAX: usize = 64;

/// The members of an object as they stand in the body.
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// None, with a problem, when `value` is no object; a member that stands twice is a problem.
    pub fn read(value: &'a RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(Key(name)) = map.next_key()? {
                    pairs.push((name, map.next_value()?));
                }
                Ok(pairs)
            }
        }
        #[derive(serde::Deserialize)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

        let mut reader = serde_json::Deserializer::from_str(value.get());
        let Ok(pairs) = reader.deserialize_map(Pairs) else {
            problems.push(wrong_kind(at, "an object", value));
            return None;
        };
        if pairs.len() > MEMBERS_MAX {
            let count = pairs.len();
            problems.push(at.problem(format!("has {count} members; at most {MEMBERS_MAX} are read")));
            return None;
        }
        for (i, (name, _)) in pairs.iter().enumerate() {
            if pairs[..i].iter().any(|(earlier, _)| earlier == name) {
                problems.push(At::Member(at, name).problem("is given twice"));
            }
        }
        Some(Self(pairs))
    }
    /// The member of this name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| *value)
    }
    /// The member of this name, as `T`.
    pub fn take<T: Wire>(&self, name: &str, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<T> {
        let at = At::Member(at, name);
        match self.get(name) {
            Some(value) => T::read(value, &at, problems),
            None => T::absent(&at, problems),
        }
    }
    /// Reports every member that is not in `known`.
    pub fn refuse_others(&self, known: &[&str], at: &At<'_>, problems: &mut Vec<Problem>) {
        for (name, _) in &self.0 {
            if !known.contains(&name.as_ref()) {
                let shown: String = name.chars().take(64).collect();
                let hint = closest(name, known).map(|near| format!("; did you mean {near:?}?"));
                let message = format!("is not known here{}", hint.unwrap_or_default());
                problems.push(At::Member(at, &shown).problem(message));
            }
        }
    }
}

/// The known name that `name` was probably meant to be.
fn closest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    const LETTERS_WRONG_MAX: usize = 2;
    let near = known
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .min()?;
    (near.0 <= LETTERS_WRONG_MAX && near.0 < near.1.len()).then_some(near.1)
}

/// How many letters have to change; case and `_` do not count.
fn distance(a: &str, b: &str) -> usize {
    let plain = |text: &str| -> Vec<char> {
        text.chars()
            .take(64)
            .filter(|c| *c != '_')
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    let (a, b) = (plain(a), plain(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Adds to an object's description that exactly one of these members is given.
pub(crate) fn exactly_one(object: Object, groups: &[&[&str]]) -> Schema {
    if groups.is_empty() {
        return object.into();
    }
    let choice = |names: &&[&str]| {
        names.iter().fold(OneOfBuilder::new(), |choice, name| {
            // An optional member is described as "this, or null": here it has to be this.
            let given = match &object.properties[*name] {
                RefOr::T(Schema::AnyOf(or_null)) => or_null.items[0].clone(),
                other => other.clone(),
            };
            choice.item(ObjectBuilder::new().required(*name).property(*name, given))
        })
    };
    let all = AllOfBuilder::new().item(object.clone());
    groups.iter().map(choice).fold(all, AllOfBuilder::item).into()
}

/// A member's description with its words.
pub(crate) fn described(schema: RefOr<Schema>, words: &str) -> RefOr<Schema> {
    let words = Some(words.trim());
    match schema {
        RefOr::Ref(mut reference) => {
            reference.description = words.unwrap_or_default().into();
            reference.into()
        }
        RefOr::T(Schema::Object(object)) => ObjectBuilder::from(object).description(words).into(),
        RefOr::T(Schema::Array(array)) => ArrayBuilder::from(array).description(words).into(),
        RefOr::T(Schema::AnyOf(any)) => AnyOfBuilder::from(any).description(words).into(),
        RefOr::T(Schema::OneOf(one)) => OneOfBuilder::from(one).description(words).into(),
        other => other,
    }
}

/// A reference to a component.
pub(crate) fn component(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

/// A request body or a part of one: the struct, its reader and its description.
macro_rules! wire {
    ($(#[doc = $doc:literal])* $name:ident {
        $( $(#[doc = $fdoc:literal])* $field:ident $wire:literal : $ty:ty ),* $(,)?
    } $( exactly one of [$($one:ident $one_wire:literal),*] )*) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct $name { $( $(#[doc = $fdoc])* pub $field: $ty, )* }

        impl $crate::wire::Wire for $name {
            fn read(
                value: &serde_json::value::RawValue,
                at: &$crate::wire::At<'_>,
                problems: &mut Vec<toolgate_kernel::problem::Problem>,
            ) -> Option<Self> {
                let before = problems.len();
                let members = $crate::wire::Members::read(value, at, problems)?;
                $( let $field = members.take::<$ty>($wire, at, problems); )*
                members.refuse_others(&[$($wire),*], at, problems);
                $(
                    // A member that could not be read was given, and its problem is told already.
                    let given = [$( !matches!($one, Some(None)) ),*].iter().filter(|given| **given).count();
                    if given != 1 {
                        problems.push(at.problem(concat!("give exactly one of", $(" ", $one_wire),*)));
                    }
                )*
                if problems.len() > before {
                    return None;
                }
                Some(Self { $( $field: $field?, )* })
            }
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::wire::component(stringify!($name))
            }
            fn components(
                components: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>,
            ) {
                components.push((stringify!($name).into(), <Self as utoipa::PartialSchema>::schema()));
                $( <$ty as $crate::wire::Wire>::components(components); )*
            }
        }
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                use $crate::wire::Wire;
                let object = utoipa::openapi::ObjectBuilder::new()
                    .description(Some(concat!($($doc, "\n"),*).trim()))
                    .additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::FreeForm(false)));
                $(
                    let schema = $crate::wire::described(<$ty as Wire>::schema(), concat!($($fdoc),*));
                    let object = object.property($wire, schema);
                    let object = if <$ty as Wire>::OPTIONAL { object } else { object.required($wire) };
                )*
                $crate::wire::exactly_one(object.build(), &[$( &[$($one_wire),*] ),*]).into()
            }
        }
        impl utoipa::ToSchema for $name {
            fn schemas(
                schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>,
            ) {
                $( <$ty as $crate::wire::Wire>::components(schemas); )*
            }
        }
    };
}
pub(crate) use wire;

/// One of a few words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $word:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(crate) enum $name { $( $(#[$vdoc])* $variant, )* }

        impl $crate::wire::Wire for $name {
            fn read(
                value: &serde_json::value::RawValue,
                at: &$crate::wire::At<'_>,
                problems: &mut Vec<toolgate_kernel::problem::Problem>,
            ) -> Option<Self> {
                match $crate::wire::string(value, at, problems)?.as_str() {
                    $( $word => Some(Self::$variant), )*
                    _ => {
                        problems.push(at.problem(concat!("must be one of", $(" ", $word),*)));
                        None
                    }
                }
            }
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($word),*]))
                    .into()
            }
        }
    };
}
pub(crate) use words;
