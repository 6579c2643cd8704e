//! Limits on connections of clients: `[http.connections]`.

use std::time::Duration;

use serde::Deserialize;

use super::text;
use crate::listen::{Limits, Timeouts, fit_to_descriptors};

/// Connections of clients.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Connections {
    /// At once.
    pub max: usize,
    /// At once from one address; 0 for no limit of its own.
    pub per_address_max: usize,
    /// Longest time for a request's header.
    #[serde(deserialize_with = "text::duration")]
    pub header_timeout: Duration,
    /// Longest time between two requests.
    #[serde(deserialize_with = "text::duration")]
    pub idle_timeout: Duration,
    /// Longest time for a client to take the next bytes of an answer.
    #[serde(deserialize_with = "text::duration")]
    pub write_timeout: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            max: 4096,
            per_address_max: 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
        }
    }
}

impl Connections {
    /// What the accept loop is held to. Raises the process's limit of open files.
    pub fn limits(&self) -> Limits {
        Limits {
            connections_max: fit_to_descriptors(self.max),
            per_address_max: self.per_address_max,
            timeouts: Timeouts {
                header: self.header_timeout,
                idle: self.idle_timeout,
                write: self.write_timeout,
            },
        }
    }
}
