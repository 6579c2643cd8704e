//! Curators of a project: who may sign its plugins, with which keys.

use std::collections::BTreeMap;

use toolgate_kernel::problem::Problems;
use toolgate_kernel::time::Time;
use toolgate_package::{CuratorId, CuratorKey, CuratorKeys, KeyId, PublicKey};

use crate::error::PluginError;
use crate::index::{Curator, Index, Key};

/// Most curators of one project.
const CURATORS_MAX: usize = 100;
/// Most keys of one curator, revoked ones included.
const KEYS_MAX: usize = 32;

/// A curator as an operator writes it.
#[derive(Debug, Clone, Default)]
pub struct NewCurator {
    /// Name for people; the one so far if it is left out.
    pub name: Option<String>,
    /// Keys to add, or to give other dates. Keys and dates that are left out stay as they are.
    pub keys: Vec<CuratorKey>,
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
            added_at: now,
            revoked: None,
        });
        if curator.revoked.is_some() && self.keys.is_empty() {
            let words = "this curator was revoked with all its keys; give a new key to trust it again";
            problems.add("/keys", words);
        }
        curator.name = self.name.clone().or(curator.name);
        for (number, written) in self.keys.iter().enumerate() {
            let key_id = written.id.to_string();
            let others = index.curators.iter().filter(|(other, _)| *other != id);
            let others = others.flat_map(|(_, other)| other.keys.values());
            let own = curator.keys.iter().filter(|(other, _)| **other != key_id);
            let known = others.chain(own.map(|(_, key)| key));
            match against_known(written, known)
                .and_then(|()| applied(written, curator.keys.get(&key_id), now))
            {
                Ok(key) => drop(curator.keys.insert(key_id, key)),
                Err(words) => problems.add(format!("/keys/{number}"), words),
            }
        }
        if curator.keys.len() > KEYS_MAX {
            problems.add("/keys", format!("a curator may have at most {KEYS_MAX} keys"));
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

fn applied(written: &CuratorKey, before: Option<&Key>, now: Time) -> Result<Key, &'static str> {
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
    Ok(Key {
        public_key,
        algorithm: written.key.algorithm().to_string(),
        // A date that is left out stays: adding a key again must not make it live for ever.
        not_before: written.not_before.or(before.and_then(|before| before.not_before)),
        expires: written.expires.or(before.and_then(|before| before.expires)),
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
