//! Ids that authors and curators choose.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest id of a plugin.
pub const PLUGIN_ID_CHARS_MAX: usize = 64;
/// Longest id of a curator or a key.
pub const CURATOR_ID_CHARS_MAX: usize = 128;

/// A text that is no id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen:?} is not {what}; {rule}")]
pub struct BadId {
    seen: String,
    what: &'static str,
    rule: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $fits:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl std::str::FromStr for $name {
            type Err = BadId;
            fn from_str(raw: &str) -> Result<Self, BadId> {
                let fits: fn(&str) -> bool = $fits;
                match fits(raw) {
                    true => Ok(Self(raw.into())),
                    false => Err(BadId {
                        seen: raw.chars().take(PLUGIN_ID_CHARS_MAX + 1).collect(),
                        what: $what,
                        rule: $rule,
                    }),
                }
            }
        }
        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(raw: String) -> Result<Self, BadId> {
                raw.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.to_string()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, out)
            }
        }
    };
}

fn is_plugin_id(raw: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=PLUGIN_ID_CHARS_MAX).contains(&raw.len()) && !raw.starts_with('-') && raw.bytes().all(allowed)
}

fn is_curator_id(raw: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._@:-".contains(&byte);
    (1..=CURATOR_ID_CHARS_MAX).contains(&raw.len())
        && raw.starts_with(|first: char| first.is_ascii_alphanumeric())
        && raw.bytes().all(allowed)
}

id!(
    /// A plugin's id: `[a-z0-9][a-z0-9-]{0,63}`.
    PluginId,
    "the id of a plugin",
    "use 1 to 64 of a-z 0-9 -, starting with a letter or digit, as in \"unit-converter\"",
    is_plugin_id
);
id!(
    /// A curator's id: `[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}`.
    CuratorId,
    "the id of a curator",
    "use 1 to 128 of A-Z a-z 0-9 . _ @ : -, starting with a letter or digit, as in \"acme-plugins\"",
    is_curator_id
);
id!(
    /// The id of one of a curator's keys, in the same form as a curator's id.
    KeyId,
    "the id of a key",
    "use 1 to 128 of A-Z a-z 0-9 . _ @ : -, starting with a letter or digit, as in \"2026-11\"",
    is_curator_id
);
