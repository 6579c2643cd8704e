//! Names that people choose, in the form every door and every model accepts.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest name of a tool or an agent.
pub const NAME_CHARS_MAX: usize = 64;

/// A name that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name; use 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _, as in \"search_orders\""
)]
pub struct BadName(String);

fn parse(raw: &str) -> Result<Arc<str>, BadName> {
    let starts = raw.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if starts && raw.len() <= NAME_CHARS_MAX && raw.chars().all(allowed) {
        Ok(raw.into())
    } else {
        Err(BadName(raw.chars().take(NAME_CHARS_MAX + 1).collect()))
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(raw: String) -> Result<Self, BadName> {
                parse(&raw).map(Self)
            }
        }
        impl std::str::FromStr for $name {
            type Err = BadName;
            fn from_str(raw: &str) -> Result<Self, BadName> {
                parse(raw).map(Self)
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.to_string()
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

name!(
    /// A tool's public name.
    ToolName
);
name!(
    /// An agent's name, unique in its project.
    AgentName
);

impl ToolName {
    /// The name in lower case: two tools whose names differ only in case are taken for the same by models and people.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}
