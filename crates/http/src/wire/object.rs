//! Objects: their members, and the macros that make a struct, its reader and its description in one.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use toolgate_kernel::guess::{guess, hint};
use toolgate_kernel::problem::Problem;
use utoipa::openapi::schema::{
    AllOfBuilder, AnyOfBuilder, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, Type,
};
use utoipa::openapi::{Ref, RefOr};

use super::{At, REQUIRED, Wire, wrong_kind};

/// Most members of an object that the door looks into.
const MEMBERS_MAX: usize = 64;

/// The members of an object as they stand in the body.
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

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
    /// Reports every member that is not in `known`. Gives the known ones that were probably meant by them.
    pub fn refuse_others<'k>(
        &self,
        known: &[&'k str],
        at: &At<'_>,
        problems: &mut Vec<Problem>,
    ) -> Vec<&'k str> {
        let mut meant = Vec::new();
        for (name, _) in &self.0 {
            if !known.contains(&name.as_ref()) {
                let shown: String = name.chars().take(64).collect();
                let message = format!("is not known here; {}", hint(name, known));
                problems.push(At::Member(at, &shown).problem(message));
                meant.extend(guess(name, known));
            }
        }
        meant
    }
}

/// Takes back that these members are missing: nobody is told twice of one slip.
pub fn excuse(meant: &[&str], at: &At<'_>, problems: &mut Vec<Problem>) {
    for name in meant {
        let missing = At::Member(at, name).problem(REQUIRED);
        problems.retain(|problem| *problem != missing);
    }
}

/// Says which members exclude each other, and how many of them were given.
pub fn expected_one(how_many: &str, members: &[&str], given: usize) -> String {
    let named: Vec<String> = members.iter().map(|member| format!("{member:?}")).collect();
    let named = match named.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    };
    let given = match given {
        0 => "none".to_owned(),
        some => some.to_string(),
    };
    format!("expected {how_many} {named}, got {given}")
}

/// Adds to an object's description that exactly one of each of these members is given, and at most one of
/// each of those pairs.
pub fn chosen(object: Object, one: &[&[&str]], few: &[[&str; 2]]) -> Schema {
    if one.is_empty() && few.is_empty() {
        return object.into();
    }
    let exactly = |names: &&[&str]| {
        names.iter().fold(OneOfBuilder::new(), |choice, name| {
            // An optional member is described as "this, or null": here it has to be this.
            let given = match &object.properties[*name] {
                RefOr::T(Schema::AnyOf(or_null)) => or_null.items[0].clone(),
                other => other.clone(),
            };
            choice.item(ObjectBuilder::new().required(*name).property(*name, given))
        })
    };
    let at_most = |pair: &[&str; 2]| {
        let left_out =
            |name| ObjectBuilder::new().property(name, ObjectBuilder::new().schema_type(Type::Null));
        AnyOfBuilder::new()
            .item(left_out(pair[0]))
            .item(left_out(pair[1]))
    };
    let all = AllOfBuilder::new().item(object.clone());
    let all = one.iter().map(exactly).fold(all, AllOfBuilder::item);
    few.iter().map(at_most).fold(all, AllOfBuilder::item).into()
}

/// A member's description with its words.
pub fn described(schema: RefOr<Schema>, words: &str) -> RefOr<Schema> {
    let words = words.trim();
    match schema {
        RefOr::Ref(mut reference) => {
            reference.description = words.into();
            reference.into()
        }
        RefOr::T(Schema::Object(object)) => ObjectBuilder::from(object).description(Some(words)).into(),
        RefOr::T(Schema::Array(array)) => ArrayBuilder::from(array).description(Some(words)).into(),
        RefOr::T(Schema::AnyOf(any)) => AnyOfBuilder::from(any).description(Some(words)).into(),
        RefOr::T(Schema::OneOf(one)) => OneOfBuilder::from(one).description(Some(words)).into(),
        other => other,
    }
}

/// A reference to a component.
pub fn component(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

/// Whether members that are not known are ignored rather than refused.
#[doc(hidden)]
#[macro_export]
macro_rules! ignores {
    (others) => {
        true
    };
    () => {
        false
    };
}

/// A request body or a part of one: the struct, its reader and its description. Members that are not known are
/// refused, unless it says `ignore others`.
#[macro_export]
macro_rules! wire {
    ($(#[doc = $doc:literal])* $name:ident {
        $( $(#[doc = $fdoc:literal])* $field:ident $wire:literal : $ty:ty ),* $(,)?
    }
    $( exactly one of [$($one:ident $one_wire:literal),*] )*
    $( at most one of [$($few:ident $few_wire:literal),*] )*
    $( ignore $others:ident )?) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $( $(#[doc = $fdoc])* pub $field: $ty, )* }

        impl $crate::wire::Wire for $name {
            fn read(
                value: &serde_json::value::RawValue,
                at: &$crate::wire::At<'_>,
                problems: &mut Vec<toolgate_kernel::problem::Problem>,
            ) -> Option<Self> {
                let before = problems.len();
                let members = $crate::wire::Members::read(value, at, problems)?;
                // First: a name that is misspelt explains what is missing.
                let meant = match $crate::ignores!($($others)?) {
                    true => Vec::new(),
                    false => members.refuse_others(&[$($wire),*], at, problems),
                };
                $( let $field = members.take::<$ty>($wire, at, problems); )*
                $crate::wire::object::excuse(&meant, at, problems);
                $(
                    // A member that could not be read was given, and its problem is told already.
                    let given = [$( !matches!($one, Some(None)) ),*].iter().filter(|given| **given).count();
                    let is_misspelt = given == 0 && [$($one_wire),*].iter().any(|name| meant.contains(name));
                    if given != 1 && !is_misspelt {
                        problems.push(at.problem($crate::wire::expected_one("exactly one of", &[$($one_wire),*], given)));
                    }
                )*
                $(
                    let given = [$( !matches!($few, Some(None)) ),*].iter().filter(|given| **given).count();
                    if given > 1 {
                        problems.push(at.problem($crate::wire::expected_one("at most one of", &[$($few_wire),*], given)));
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
                    .additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::FreeForm(
                        $crate::ignores!($($others)?),
                    )));
                $(
                    let schema = $crate::wire::object::described(<$ty as Wire>::schema(), concat!($($fdoc),*));
                    let object = object.property($wire, schema);
                    let object = if <$ty as Wire>::OPTIONAL { object } else { object.required($wire) };
                )*
                let (one, few) = ([$( [$($one_wire),*].as_slice() ),*], [$( [$($few_wire),*] ),*]);
                $crate::wire::object::chosen(object.build(), &one, &few).into()
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

/// One of a few words.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $word:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum $name { $( $(#[$vdoc])* $variant, )* }

        impl $crate::wire::Wire for $name {
            fn read(
                value: &serde_json::value::RawValue,
                at: &$crate::wire::At<'_>,
                problems: &mut Vec<toolgate_kernel::problem::Problem>,
            ) -> Option<Self> {
                match $crate::wire::string(value, at, problems)?.as_str() {
                    $( $word => Some(Self::$variant), )*
                    other => {
                        let words = toolgate_kernel::problem::one_of(other, &[$($word),*]);
                        problems.push(at.problem(words));
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
