//! Limits on what requests may store, and on what one user may have: `[content]` and `[quotas]`.

use serde::Deserialize;
use toolgate_engine::quota::QuotaLimits;
use toolgate_http::content::ContentLimits;

/// Most bytes of each kind of content.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Content {
    /// Of one message, without its metadata.
    pub message_bytes_max: usize,
    /// Of the metadata of a message, a space or an entity.
    pub metadata_bytes_max: usize,
    /// Of one report of progress.
    pub progress_bytes_max: usize,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            message_bytes_max: 1 << 20,
            metadata_bytes_max: 32 << 10,
            progress_bytes_max: 16 << 10,
        }
    }
}

impl Content {
    /// What the doors check.
    pub fn limits(&self) -> ContentLimits {
        ContentLimits {
            message: self.message_bytes_max,
            metadata: self.metadata_bytes_max,
            progress: self.progress_bytes_max,
        }
    }
}

/// What one user with a public key may have. A backend has no quotas.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// Spaces that it made.
    pub spaces: u64,
    /// Bytes of the logs and files of these.
    pub stored_bytes: u64,
    /// Runs in these that have not ended.
    pub open_runs: u64,
    /// Open event streams.
    pub streams: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            spaces: 1000,
            stored_bytes: 1 << 30,
            open_runs: 100,
            streams: 64,
        }
    }
}

impl Quotas {
    /// What the engine checks.
    pub fn limits(&self) -> QuotaLimits {
        QuotaLimits {
            spaces: self.spaces,
            stored_bytes: self.stored_bytes,
            open_runs: self.open_runs,
        }
    }
}
