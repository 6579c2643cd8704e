//! Verifies a package's signatures with the keys of trusted curators.

use toolgate_kernel::time::Time;

use crate::curator::{CuratorKey, CuratorKeys};
use crate::document::Package;
use crate::hash::{ContentHash, PackageHash};
use crate::id::{CuratorId, KeyId};
use crate::sign::{content_message, package_message};

/// What a package's signatures say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Nobody vouches for it.
    Unsigned,
    /// A curator vouches for the tools and their code, and for nothing else: id, version, permissions, dependencies and
    /// engine may have been changed by anybody.
    ToolsOnly {
        /// Who signed.
        curator: CuratorId,
        /// With which key.
        key: KeyId,
    },
    /// A curator vouches for the whole document.
    Verified {
        /// Who signed.
        curator: CuratorId,
        /// With which key.
        key: KeyId,
    },
    /// It claims a hash or a signature that does not hold.
    Rejected(Rejection),
}

/// Why a claim does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The tools were changed after the hash was made.
    #[error("the tools were changed: contentHash is {claimed}, but they hash to {actual}")]
    ContentHash {
        /// As the document says.
        claimed: ContentHash,
        /// As it is.
        actual: ContentHash,
    },
    /// The document was changed after the hash was made.
    #[error("the package was changed: packageHash is {claimed}, but it hashes to {actual}")]
    PackageHash {
        /// As the document says.
        claimed: PackageHash,
        /// As it is.
        actual: PackageHash,
    },
    /// No key of this curator is configured.
    #[error("the curator {0} is not trusted here: no key of theirs is configured")]
    UnknownCurator(CuratorId),
    /// The curator has no such key.
    #[error("the curator {curator} has no key with the id {key}")]
    UnknownKey {
        /// The curator that the document names.
        curator: CuratorId,
        /// The key that it names.
        key: KeyId,
    },
    /// Every key that could count does not: for the last of them, this is why.
    #[error("the key {key} of {curator} {why}")]
    KeyNotInForce {
        /// The curator that the document names.
        curator: CuratorId,
        /// The key.
        key: KeyId,
        /// What is the matter with it.
        why: NotInForce,
    },
    /// No key made it.
    #[error("{member} was not made by a key of {curator}")]
    BadSignature {
        /// `signature` or `packageSignature`.
        member: &'static str,
        /// The curator that the document names.
        curator: CuratorId,
    },
}

impl Rejection {
    /// Stable word for what is wrong.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ContentHash { .. } => "CONTENT_CHANGED",
            Self::PackageHash { .. } => "PACKAGE_CHANGED",
            Self::UnknownCurator(_) => "UNKNOWN_CURATOR",
            Self::UnknownKey { .. } => "UNKNOWN_KEY",
            Self::KeyNotInForce { why, .. } => match why {
                NotInForce::Revoked => "KEY_REVOKED",
                NotInForce::NotYet(_) => "KEY_NOT_YET_VALID",
                NotInForce::Expired(_) => "KEY_EXPIRED",
            },
            Self::BadSignature { .. } => "BAD_SIGNATURE",
        }
    }
}

/// Why a key does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotInForce {
    /// It was revoked.
    #[error("was revoked")]
    Revoked,
    /// It counts later.
    #[error("counts from {0} on")]
    NotYet(Time),
    /// It no longer counts.
    #[error("expired at {0}; the curator has to sign the package again with a newer key")]
    Expired(Time),
}

/// Verifies every hash and signature that the document claims. A signature has no date of its own, so a key that has
/// expired or was revoked by `now` verifies nothing, whenever the signature was made.
pub fn verify(package: &Package, keys: &CuratorKeys, now: Time) -> Verification {
    match claims(package, keys, now) {
        Ok(verification) => verification,
        Err(rejection) => Verification::Rejected(rejection),
    }
}

fn claims(package: &Package, keys: &CuratorKeys, now: Time) -> Result<Verification, Rejection> {
    let claims = &package.claims;
    let (content, whole) = (package.content_hash(), package.hash());
    if let Some(claimed) = claims.content_hash.filter(|claimed| *claimed != content) {
        let actual = content;
        return Err(Rejection::ContentHash { claimed, actual });
    }
    if let Some(claimed) = claims.package_hash.filter(|claimed| *claimed != whole) {
        let actual = whole;
        return Err(Rejection::PackageHash { claimed, actual });
    }
    let (Some(signature), Some(curator)) = (&claims.signature, &claims.curator) else {
        return Ok(Verification::Unsigned);
    };
    let candidates = candidates(curator, claims.key.as_ref(), keys, now)?;
    let bad = |member| Rejection::BadSignature {
        member,
        curator: curator.clone(),
    };
    let message = content_message(content);
    let signer = candidates
        .into_iter()
        .find(|candidate| candidate.key.verifies(message.as_bytes(), signature))
        .ok_or_else(|| bad("signature"))?;
    let (curator, key) = (curator.clone(), signer.id.clone());
    let Some(signature) = &claims.package_signature else {
        return Ok(Verification::ToolsOnly { curator, key });
    };
    // By the same key: two signatures of different keys are no document that anybody has signed.
    match signer.key.verifies(package_message(whole).as_bytes(), signature) {
        true => Ok(Verification::Verified { curator, key }),
        false => Err(bad("packageSignature")),
    }
}

/// The keys that may have signed: the one that the document names, or all that count.
fn candidates<'k>(
    curator: &CuratorId,
    named: Option<&KeyId>,
    keys: &'k CuratorKeys,
    now: Time,
) -> Result<Vec<&'k CuratorKey>, Rejection> {
    let of_curator = keys.of(curator);
    if of_curator.is_empty() {
        return Err(Rejection::UnknownCurator(curator.clone()));
    }
    let mut in_force = Vec::new();
    let mut last = None;
    for key in of_curator
        .iter()
        .filter(|key| named.is_none_or(|id| *id == key.id))
    {
        match not_in_force(key, now) {
            None => in_force.push(key),
            Some(why) => last = Some((key.id.clone(), why)),
        }
    }
    match (in_force.is_empty(), last, named) {
        (false, _, _) => Ok(in_force),
        (true, Some((key, why)), _) => Err(Rejection::KeyNotInForce {
            curator: curator.clone(),
            key,
            why,
        }),
        (true, None, Some(key)) => Err(Rejection::UnknownKey {
            curator: curator.clone(),
            key: key.clone(),
        }),
        (true, None, None) => Err(Rejection::UnknownCurator(curator.clone())),
    }
}

fn not_in_force(key: &CuratorKey, now: Time) -> Option<NotInForce> {
    if key.revoked {
        return Some(NotInForce::Revoked);
    }
    if let Some(from) = key.not_before.filter(|from| now < *from) {
        return Some(NotInForce::NotYet(from));
    }
    let expired = key.expires.filter(|expires| now >= *expires);
    expired.map(NotInForce::Expired)
}
