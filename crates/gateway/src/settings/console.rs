//! Whether there is a console: `[console]`.

use serde::Deserialize;

/// The web console.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Console {
    /// Whether it is served at `/`, and a login link is printed at each start.
    pub enabled: bool,
}

impl Default for Console {
    fn default() -> Self {
        Self { enabled: true }
    }
}
