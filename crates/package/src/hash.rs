//! The two hashes of a package, each a type of its own so that none is taken for the other.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Characters of a hash in hex.
pub const HASH_CHARS: usize = 64;

/// A text that is no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a SHA-256 hash: 64 of 0-9 a-f in lower case")]
pub struct BadHash;

macro_rules! hash {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 32]);

        impl $name {
            /// The hash of these bytes.
            pub fn of(bytes: &[u8]) -> Self {
                Self(Sha256::digest(bytes).into())
            }
            /// The 32 bytes.
            pub fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = BadHash;
            fn from_str(hex: &str) -> Result<Self, BadHash> {
                parse(hex).map(Self)
            }
        }
        impl TryFrom<String> for $name {
            type Error = BadHash;
            fn try_from(hex: String) -> Result<Self, BadHash> {
                hex.parse()
            }
        }
        impl From<$name> for String {
            fn from(hash: $name) -> String {
                hash.to_string()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }
    };
}

fn parse(hex: &str) -> Result<[u8; 32], BadHash> {
    let lower_case = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if hex.len() != HASH_CHARS || !hex.bytes().all(lower_case) {
        return Err(BadHash);
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).map_err(|_| BadHash)?;
    }
    Ok(bytes)
}

hash!(
    /// SHA-256 of the canonical JSON of a package's `tools`: code, schemas and descriptions, nothing else.
    ContentHash
);
hash!(
    /// SHA-256 of the canonical JSON of the whole document without its signatures: the package's content address.
    PackageHash
);
