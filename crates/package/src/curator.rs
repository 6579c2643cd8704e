//! The keys of the curators that somebody trusts.

use std::collections::BTreeMap;

use serde_json::Value;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::{Problem, Problems, member, shown};
use toolgate_kernel::time::Time;

use crate::id::{CuratorId, KeyId};
use crate::key::{PEM_BYTES_MAX, PublicKey};

/// Most curators of one list.
pub const CURATORS_MAX: usize = 256;
/// Most keys of one curator, old ones included.
pub const KEYS_MAX: usize = 32;

const ID_CHARS_MAX: usize = 128;
const TIME_CHARS_MAX: usize = 64;

/// Public keys by curator. A curator has several while one key replaces another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CuratorKeys(BTreeMap<CuratorId, Vec<CuratorKey>>);

/// One key of a curator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CuratorKey {
    /// Its id, unique among the curator's keys.
    pub id: KeyId,
    /// The key.
    pub key: PublicKey,
    /// Time from which on it counts.
    pub not_before: Option<Time>,
    /// Time from which on it no longer counts.
    pub expires: Option<Time>,
    /// It no longer counts, and never did: somebody else may have it.
    pub revoked: bool,
}

impl CuratorKey {
    /// A key without an end, with its fingerprint as id.
    pub fn new(key: PublicKey) -> Self {
        Self {
            id: key.fingerprint(),
            key,
            not_before: None,
            expires: None,
            revoked: false,
        }
    }

    /// Reads `{"publicKey": PEM, "id"?, "notBefore"?, "expires"?, "revoked"?}`, or the PEM alone.
    pub fn read(value: &Value, pointer: &str) -> Result<Self, Vec<Problem>> {
        let problems = Problems::default();
        let key = read_key(value, pointer, &problems);
        problems.or(key)
    }
}

impl CuratorKeys {
    /// Reads `{"CURATOR": {"keys": [key, …]}, …}`. A list of keys, a key, or a PEM text may stand in for the object.
    pub fn read(value: &Value, pointer: &str) -> Result<Self, Vec<Problem>> {
        let problems = Problems::default();
        let keys = read_curators(value, pointer, &problems);
        problems.or(keys)
    }

    /// Adds a key; one of the same id is replaced.
    pub fn add(&mut self, curator: CuratorId, key: CuratorKey) {
        let keys = self.0.entry(curator).or_default();
        keys.retain(|other| other.id != key.id);
        keys.push(key);
    }
    /// The keys of a curator; empty for an unknown one.
    pub fn of(&self, curator: &CuratorId) -> &[CuratorKey] {
        self.0.get(curator).map_or(&[], Vec::as_slice)
    }
    /// The curators.
    pub fn curators(&self) -> impl Iterator<Item = &CuratorId> {
        self.0.keys()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn read_curators(value: &Value, pointer: &str, problems: &Problems) -> Option<CuratorKeys> {
    let Value::Object(curators) = value else {
        let words = format!(
            "expected an object with the keys of each curator, got {}",
            shown(value)
        );
        problems.add(pointer, words);
        return None;
    };
    if curators.len() > CURATORS_MAX {
        let words = format!("{} curators; at most {CURATORS_MAX} are allowed", curators.len());
        problems.add(pointer, words);
        return None;
    }
    let mut keys = CuratorKeys::default();
    for (name, written) in curators {
        let place = member(pointer, name);
        let curator = name
            .parse::<CuratorId>()
            .map_err(|bad| problems.add(&place, bad.to_string()))
            .ok();
        for key in read_keys(written, &place, problems) {
            let Some(curator) = &curator else { continue };
            if keys.of(curator).iter().any(|other| other.id == key.id) {
                problems.add(&place, format!("two keys of {curator} have the id {}", key.id));
            }
            keys.add(curator.clone(), key);
        }
    }
    Some(keys)
}

fn read_keys(written: &Value, pointer: &str, problems: &Problems) -> Vec<CuratorKey> {
    let (list, pointer) = match written {
        Value::Object(members) if members.contains_key("keys") => {
            Members::open(written, pointer, &["keys"], problems);
            (&members["keys"], format!("{pointer}/keys"))
        }
        _ => (written, pointer.to_owned()),
    };
    let Value::Array(items) = list else {
        return read_key(list, &pointer, problems).into_iter().collect();
    };
    if items.is_empty() || items.len() > KEYS_MAX {
        let words = format!("expected 1 to {KEYS_MAX} keys, got {}", items.len());
        problems.add(&pointer, words);
    }
    let items = items.iter().take(KEYS_MAX).enumerate();
    items
        .filter_map(|(index, item)| read_key(item, &format!("{pointer}/{index}"), problems))
        .collect()
}

fn read_key(value: &Value, pointer: &str, problems: &Problems) -> Option<CuratorKey> {
    let pem = |text: &str, pointer: &str| {
        PublicKey::from_pem(text)
            .map_err(|bad| problems.add(pointer, bad.to_string()))
            .ok()
    };
    if let Value::String(text) = value {
        return pem(text, pointer).map(CuratorKey::new);
    }
    let known = ["id", "publicKey", "notBefore", "expires", "revoked"];
    let members = Members::open(value, pointer, &known, problems)?;
    if members.get("publicKey").is_none() {
        members.lacks("a key needs a \"publicKey\", a PEM text");
    }
    let key = members
        .text("publicKey", PEM_BYTES_MAX)
        .and_then(|text| pem(text, &members.at("publicKey")));
    let id = members.text("id", ID_CHARS_MAX).and_then(|id| {
        id.parse::<KeyId>()
            .map_err(|bad| members.wrong("id", bad.to_string()))
            .ok()
    });
    let (not_before, expires) = (time(&members, "notBefore"), time(&members, "expires"));
    if let (Some(from), Some(to)) = (not_before, expires)
        && from >= to
    {
        members.wrong("expires", "the key expires before it begins to count");
    }
    let revoked = members.choice_of_bool("revoked").unwrap_or(false);
    let key = key?;
    Some(CuratorKey {
        id: id.unwrap_or_else(|| key.fingerprint()),
        key,
        not_before,
        expires,
        revoked,
    })
}

fn time(members: &Members<'_>, name: &str) -> Option<Time> {
    let written = members.text(name, TIME_CHARS_MAX)?;
    written
        .parse()
        .map_err(|_| {
            let words = format!("expected a moment such as \"2027-01-31T09:00:00Z\", got {written:?}");
            members.wrong(name, words);
        })
        .ok()
}
