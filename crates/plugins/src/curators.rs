//! Curators of a project: who may sign its plugins, with which keys.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use toolgate_kernel::problem::Problems;
use toolgate_kernel::time::Time;
use toolgate_package::{CuratorId, CuratorKey, CuratorKeys, KeyId, PublicKey};

use crate::error::PluginError;
use crate::index::{Curator, Index, Key, Retired};

/// Most curators of one project.
const CURATORS_MAX: usize = 100;
/// Most keys of one curator that are not revoked.
const KEYS_MAX: usize = 32;
/// Revoked keys of one curator that are kept whole; of older ones a hash is kept.
const REVOKED_KEYS_MAX: usize = 32;
/// Most revoked keys of one curator that are kept as hashes. None is ever forgotten, so there is an end.
const RETIRED_KEYS_MAX: usize = 1_000;

/// A curator as an operator writes it.
#[derive(Debug, Clone, Default)]
pub struct NewCurator {
    /// Name for people; the one so far if it is left out.
    pub name: Option<String>,
    /// Keys to add, or to give other dates. Keys that are left out stay as they are.
    pub keys: Vec<NewKey>,
}

/// A key as an operator writes it. Dates that are left out stay as they are.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The key, with the dates that are written.
    pub key: CuratorKey,
    /// Takes the beginning away that it has.
    pub clear_not_before: bool,
    /// Takes the end away that it has.
    pub clear_expires: bool,
}

impl From<CuratorKey> for NewKey {
    fn from(key: CuratorKey) -> Self {
        Self {
            key,
            clear_not_before: false,
            clear_expires: false,
        }
    }
}

impl NewCurator {
    /// The curator with these changes, or everything that is wrong with them.
    pub(crate) fn applied(&self, id: &str, index: &Index, now: Time) -> Result<Curator, PluginError> {
        let problems = Problems::default();
        if let Err(bad) = id.parse::<CuratorId>() {
            problems.add("", bad.to_string());
        }
        let before = index.curators.get(id);
        if before.is_none() && index.curators.len() >= CURATORS_MAX {
            let words = format!("the project has {CURATORS_MAX} curators, which is the most it may have");
            problems.add("", words);
        }
        let mut curator = before.cloned().unwrap_or(Curator {
            name: None,
            keys: BTreeMap::new(),
            retired: BTreeMap::new(),
            added_at: now,
            revoked: None,
        });
        if curator.revoked.is_some() && self.keys.is_empty() {
            let words = "this curator was revoked with all its keys; give a new key to trust it again";
            problems.add("/keys", words);
        }
        curator.name = self.name.clone().or(curator.name);
        for (number, written) in self.keys.iter().enumerate() {
            let key_id = written.key.id.to_string();
            let others = index.curators.iter().filter(|(other, _)| *other != id);
            let others = others.map(|(_, other)| other);
            let known = others.clone().flat_map(|other| other.keys.values());
            let own = curator.keys.iter().filter(|(other, _)| **other != key_id);
            let known = known.chain(own.map(|(_, key)| key));
            let retired = others.chain([&curator]).flat_map(|other| &other.retired);
            match against_known(&written.key, known)
                .and_then(|()| against_retired(&written.key, curator.retired.contains_key(&key_id), retired))
                .and_then(|()| applied(written, curator.keys.get(&key_id), now))
            {
                Ok(key) => drop(curator.keys.insert(key_id, key)),
                Err(words) => problems.add(format!("/keys/{number}"), words),
            }
        }
        if curator.keys.values().filter(|key| key.revoked.is_none()).count() > KEYS_MAX {
            let words = format!(
                "a curator may have at most {KEYS_MAX} keys that are not revoked; revoke one that is not used"
            );
            problems.add("/keys", words);
        }
        retire_oldest(&mut curator);
        if curator.retired.len() > RETIRED_KEYS_MAX {
            let words = format!(
                "{RETIRED_KEYS_MAX} keys of this curator were revoked, and none of them may be forgotten; trust its \
                 next key under another curator id"
            );
            problems.add("/keys", words);
        }
        // Its old keys stay revoked: what they have signed does not run again.
        curator.revoked = None;
        problems.or(Some(curator)).map_err(PluginError::Invalid)
    }
}

/// A key stands under one id in a project: a second one would outlive the revocation of the first.
fn against_known<'i>(written: &CuratorKey, known: impl Iterator<Item = &'i Key>) -> Result<(), &'static str> {
    let public_key = written.key.to_pem();
    let same = known
        .filter(|key| key.public_key == public_key)
        .max_by_key(|key| key.revoked.is_some());
    match same.map(|same| &same.revoked) {
        None => Ok(()),
        Some(Some(_)) => Err("this key was revoked under another id; make a new pair of keys"),
        Some(None) => {
            Err("the project knows this key under another id; make a new pair of keys, or leave this one out")
        }
    }
}

/// Neither the id nor the text of a key that was revoked long ago comes back: what it has signed would run again.
fn against_retired<'i>(
    written: &CuratorKey,
    is_id_retired: bool,
    mut retired: impl Iterator<Item = (&'i String, &'i Retired)>,
) -> Result<(), &'static str> {
    let hash = key_hash(&written.key.to_pem());
    if is_id_retired || retired.any(|(_, retired)| retired.key_hash == hash) {
        return Err(
            "this key, or another under this id, was revoked; make a new pair of keys, and give it a new id",
        );
    }
    Ok(())
}

/// Keeps the hashes of the keys that were revoked first, where there are too many to keep whole.
fn retire_oldest(curator: &mut Curator) {
    let revoked = curator.keys.iter().filter_map(|(id, key)| {
        let revocation = key.revoked.as_ref()?;
        Some((revocation.time, id.clone()))
    });
    let mut revoked: Vec<(Time, String)> = revoked.collect();
    revoked.sort();
    let beyond = revoked.len().saturating_sub(REVOKED_KEYS_MAX);
    for (time, id) in revoked.into_iter().take(beyond) {
        let Some(key) = curator.keys.remove(&id) else {
            continue;
        };
        let key_hash = key_hash(&key.public_key);
        curator.retired.insert(id, Retired { key_hash, time });
    }
}

/// SHA-256 of a key's PEM text, in hex.
fn key_hash(pem: &str) -> String {
    let digest = Sha256::digest(pem);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn applied(new: &NewKey, before: Option<&Key>, now: Time) -> Result<Key, &'static str> {
    let written = &new.key;
    let public_key = written.key.to_pem();
    match before {
        Some(before) if before.revoked.is_some() => {
            return Err("this key was revoked; add a new pair of keys under another id");
        }
        Some(before) if before.public_key != public_key => {
            return Err("a key never changes; add the new one under another id, and revoke this one");
        }
        Some(_) | None => {}
    }
    if written.revoked {
        return Err("to revoke a key, delete it");
    }
    let kept = |cleared: bool, date: fn(&Key) -> Option<Time>| before.filter(|_| !cleared).and_then(date);
    Ok(Key {
        public_key,
        algorithm: written.key.algorithm().to_string(),
        // A date that is left out stays: adding a key again must not make it live for ever.
        not_before: written
            .not_before
            .or(kept(new.clear_not_before, |key| key.not_before)),
        expires: written.expires.or(kept(new.clear_expires, |key| key.expires)),
        added_at: before.map_or(now, |before| before.added_at),
        revoked: None,
    })
}

/// The keys of the project's curators, for verifying; those of a revoked curator count as revoked.
pub(crate) fn keys(index: &Index) -> CuratorKeys {
    let mut keys = CuratorKeys::default();
    for (curator, known) in &index.curators {
        for (id, stored) in &known.keys {
            let ids = (curator.parse::<CuratorId>(), id.parse::<KeyId>());
            // Both were checked when they were stored.
            let ((Ok(curator), Ok(id)), Ok(key)) = (ids, PublicKey::from_pem(&stored.public_key)) else {
                continue;
            };
            let key = CuratorKey {
                id,
                key,
                not_before: stored.not_before,
                expires: stored.expires,
                revoked: known.revoked.is_some() || stored.revoked.is_some(),
            };
            keys.add(curator, key);
        }
    }
    keys
}
