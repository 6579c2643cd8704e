//! Signs a package.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolgate_kernel::problem::Problem;

use crate::document::{self, Package};
use crate::hash::{ContentHash, PackageHash};
use crate::id::{CuratorId, KeyId};
use crate::key::SigningKey;

/// What stands before the package hash in the text that is signed, so that no signature of anything else fits.
pub const PACKAGE_SIGNATURE_PREFIX: &str = "toolgate-plugin-v1:";

/// Why nothing was signed: the document has these problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the package has {} problems and was not signed", .0.len())]
pub struct SignError(pub Vec<Problem>);

/// Signs a document: its tools, as every verifier of the first format checks them, and the whole of it. Signatures and
/// hashes that it had are replaced; `sourceUrl`, which no signature covers, stays.
pub fn sign(
    document: Value,
    key: &SigningKey,
    curator: &CuratorId,
    key_id: Option<&KeyId>,
) -> Result<Value, SignError> {
    let mut document = document;
    if let Value::Object(members) = &mut document {
        for name in [
            "contentHash",
            "signature",
            "packageHash",
            "packageSignature",
            "curatorId",
            "keyId",
        ] {
            members.shift_remove(name);
        }
    }
    let package = Package::from_value(document).map_err(SignError)?;
    let mut signed = package.document().clone();
    let Value::Object(members) = &mut signed else {
        unreachable!("a package is an object");
    };
    let content_hash = package.content_hash();
    members.insert("curatorId".into(), curator.as_str().into());
    if let Some(id) = key_id {
        members.insert("keyId".into(), id.as_str().into());
    }
    members.insert("contentHash".into(), content_hash.to_string().into());
    let signature = STANDARD.encode(key.sign(content_message(content_hash).as_bytes()));
    members.insert("signature".into(), signature.into());
    // After everything that it covers.
    let package_hash = document::package_hash(members);
    members.insert("packageHash".into(), package_hash.to_string().into());
    let signature = STANDARD.encode(key.sign(package_message(package_hash).as_bytes()));
    members.insert("packageSignature".into(), signature.into());
    Ok(signed)
}

/// The text whose signature is `signature`.
pub(crate) fn content_message(hash: ContentHash) -> String {
    hash.to_string()
}

/// The text whose signature is `packageSignature`.
pub(crate) fn package_message(hash: PackageHash) -> String {
    format!("{PACKAGE_SIGNATURE_PREFIX}{hash}")
}
