//! What the schemas inside a schema are called, and where a reference leads: to one of them, never outside.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::uri;
use serde_json::Value;

use crate::problem::preview;

/// What a schema is called that does not say.
const NAMELESS: &str = "json-schema:///";
/// The schema of schemas: everybody knows it, so that nobody has to fetch it.
pub(super) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Whatever begins like this is not for others to be called.
const RESERVED: &str = "https://json-schema.org/draft/";

/// Target of a `$ref`.
#[derive(Clone, Copy)]
pub(super) enum Target<'s> {
    /// To a schema inside.
    Schema(&'s Value),
    /// To the schema of schemas.
    Dialect,
}

/// A schema's name without its fragment, as every reference is resolved against it.
pub(super) type Base = Arc<str>;

/// The names inside one schema.
pub(super) struct Names<'s> {
    named: HashMap<Base, &'s Value>,
    anchors: HashMap<(Base, &'s str), &'s Value>,
    dynamic: HashMap<&'s str, Vec<&'s Value>>,
    /// By the address of a schema.
    bases: HashMap<*const Value, Base>,
}

impl<'s> Names<'s> {
    pub fn new(root: &'s Value) -> (Self, Base) {
        let base: Base = NAMELESS.into();
        let names = Self {
            named: HashMap::from([(base.clone(), root)]),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            bases: HashMap::new(),
        };
        (names, base)
    }

    /// Notes that `schema`, which stands in `base`, calls itself `id`; says in words why it may not.
    pub fn identify(&mut self, base: &Base, id: &str, schema: &'s Value) -> Result<Base, String> {
        let seen = preview(id);
        let (name, fragment) =
            resolve(base, id).ok_or_else(|| format!("{seen} is not a URI that a schema can be called"))?;
        if !fragment.is_empty() || name.starts_with(RESERVED) {
            return Err(format!(
                "{seen} is not a name for this schema; use one of your own"
            ));
        }
        let name: Base = name.into();
        match self.named.insert(name.clone(), schema) {
            Some(other) if !std::ptr::eq(other, schema) => {
                Err(format!("another schema is called {seen} as well"))
            }
            _ => Ok(name),
        }
    }

    /// Notes in which named schema a schema stands.
    pub fn place(&mut self, schema: &'s Value, base: &Base) {
        self.bases.insert(schema, base.clone());
    }

    /// In which named schema a schema stands.
    pub fn base(&self, schema: &'s Value) -> Option<&Base> {
        self.bases.get(&std::ptr::from_ref(schema))
    }

    /// Notes an anchor; false when another schema in `base` has it.
    pub fn anchor(&mut self, base: &Base, anchor: &'s str, schema: &'s Value, dynamic: bool) -> bool {
        if dynamic {
            self.dynamic.entry(anchor).or_default().push(schema);
        }
        let earlier = self.anchors.insert((base.clone(), anchor), schema);
        earlier.is_none_or(|earlier| std::ptr::eq(earlier, schema))
    }

    /// Where `reference`, which stands in `schema`, leads; nothing when that is outside or not there.
    pub fn target(&self, schema: &'s Value, reference: &str) -> Option<Target<'s>> {
        let (name, fragment) = resolve(self.base(schema)?, reference)?;
        if name == DIALECT && fragment.is_empty() {
            return Some(Target::Dialect);
        }
        let (name, root) = self.named.get_key_value(name.as_str())?;
        let fragment = decode(&fragment)?;
        let found = if fragment.is_empty() || fragment.starts_with('/') {
            root.pointer(&fragment)
        } else {
            self.anchors.get(&(name.clone(), fragment.as_ref())).copied()
        };
        found.map(Target::Schema)
    }

    /// Everywhere that a `$dynamicRef` may lead instead, depending on the way to it.
    pub fn dynamic_targets(&self, reference: &str) -> &[&'s Value] {
        let anchor = reference
            .rsplit_once('#')
            .and_then(|(_, fragment)| decode(fragment));
        let found = anchor.and_then(|anchor| self.dynamic.get(anchor.as_ref()));
        found.map_or(&[], Vec::as_slice)
    }
}

/// Whether a schema can be called `id` at all.
pub(super) fn is_name(id: &str) -> bool {
    resolve(NAMELESS, id).is_some_and(|(name, fragment)| fragment.is_empty() && !name.starts_with(RESERVED))
}

/// A reference without its fragment, and the fragment.
fn resolve(base: &str, reference: &str) -> Option<(String, String)> {
    let base = uri::from_str(base).ok()?;
    let whole = uri::resolve_against(&base.borrow(), reference).ok()?;
    let whole = whole.as_str();
    let (name, fragment) = whole.split_once('#').unwrap_or((whole, ""));
    Some((name.to_owned(), fragment.to_owned()))
}

/// A URI fragment with its `%` escapes undone.
fn decode(fragment: &str) -> Option<Cow<'_, str>> {
    if !fragment.contains('%') {
        return Some(fragment.into());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => (digit(rest.next()?)? * 16 + digit(rest.next()?)?) as u8,
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
