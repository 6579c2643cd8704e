//! Sessions of the console: `[sessions]`.

use std::time::Duration;

use serde::Deserialize;
use toolgate_access::SessionLimits;

use super::text;

/// Browsers that have signed in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sessions {
    /// A session that is not used for so long has ended.
    #[serde(deserialize_with = "text::duration")]
    pub idle: Duration,
    /// A session ends after so long, however much it is used.
    #[serde(deserialize_with = "text::duration")]
    pub lifetime: Duration,
    /// Sessions of one project; of more, those that were used least recently end.
    pub per_project: usize,
}

impl Default for Sessions {
    fn default() -> Self {
        let SessionLimits {
            idle,
            lifetime,
            per_project,
        } = SessionLimits::default();
        Self {
            idle,
            lifetime,
            per_project,
        }
    }
}

impl Sessions {
    /// How long sessions last, and how many there are.
    pub fn limits(&self) -> SessionLimits {
        SessionLimits {
            idle: self.idle,
            lifetime: self.lifetime,
            per_project: self.per_project,
        }
    }
}
