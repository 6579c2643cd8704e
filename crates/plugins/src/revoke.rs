//! Revocation: which packages, curators and keys of a project must not be trusted any more. Changes the index alone.

use crate::error::{PluginError, Reason};
use crate::index::{Curator, Index, Revocation};
use crate::plugins::missing_plugin;

/// Most packages that a project may have revoked.
const REVOKED_MAX: usize = 1_000;

/// What must not run any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoke {
    /// The package with this hash, stored or not.
    Package(String),
    /// Every stored package of a plugin.
    Plugin(String),
    /// Everything that a curator has signed.
    Curator(String),
    /// Everything that one key of a curator has signed.
    Key {
        /// Id of the curator.
        curator: String,
        /// Id of the key.
        key: String,
    },
}

/// Revokes something; what it names has to be known, but for a package.
pub(crate) fn revoke(index: &mut Index, what: &Revoke, revocation: &Revocation) -> Result<(), PluginError> {
    match what {
        Revoke::Package(hash) => revoke_package(index, hash, revocation),
        Revoke::Plugin(plugin) => {
            let hashes: Vec<String> = index.versions(plugin).map(|(hash, _)| hash.clone()).collect();
            if hashes.is_empty() {
                return Err(missing_plugin(plugin));
            }
            for hash in &hashes {
                revoke_package(index, hash, revocation);
            }
        }
        Revoke::Curator(curator) => {
            let curator = known(index, curator)?;
            curator.revoked.get_or_insert_with(|| revocation.clone());
            let texts: Vec<String> = curator.keys.values().map(|key| key.public_key.clone()).collect();
            revoke_keys(index, &texts, revocation);
        }
        Revoke::Key { curator, key } => {
            let known = known(index, curator)?.keys.get(key);
            let known = known
                .ok_or_else(|| PluginError::Missing(format!("key {key:?} of the curator {curator:?}")))?;
            let text = known.public_key.clone();
            revoke_keys(index, &[text], revocation);
        }
    }
    match index.revoked.len() > REVOKED_MAX {
        true => {
            let words = format!(
                "a project may have revoked at most {REVOKED_MAX} packages; revoke their curator instead"
            );
            Err(PluginError::Refused(vec![Reason::LimitExceeded.at("", words)]))
        }
        false => Ok(()),
    }
}

fn revoke_package(index: &mut Index, hash: &str, revocation: &Revocation) {
    let entry = index.revoked.entry(hash.to_owned());
    entry.or_insert_with(|| revocation.clone());
    let stored = index.packages.get(hash);
    if let Some(content) = stored.and_then(|stored| stored.content_hash.clone()) {
        let entry = index.revoked_contents.entry(content);
        entry.or_insert_with(|| revocation.clone());
    }
}

/// Revokes these keys, by whichever ids and for whichever curators they are known.
fn revoke_keys(index: &mut Index, public_keys: &[String], revocation: &Revocation) {
    let keys = index
        .curators
        .values_mut()
        .flat_map(|curator| curator.keys.values_mut());
    for key in keys.filter(|key| public_keys.contains(&key.public_key)) {
        key.revoked.get_or_insert_with(|| revocation.clone());
    }
}

fn known<'i>(index: &'i mut Index, curator: &str) -> Result<&'i mut Curator, PluginError> {
    let known = index.curators.get_mut(curator);
    known.ok_or_else(|| PluginError::Missing(format!("curator {curator:?}")))
}
