//! Connections to PostgreSQL.

use std::time::Duration;

use serde::Deserialize;
use toolgate_store::PostgresOptions;

use super::text;

/// Connections to PostgreSQL.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Postgres {
    /// Most connections, those for appends included.
    pub connections_max: usize,
    /// Of these, connections for appends.
    pub append_connections: usize,
    /// Longest wait for a connection while all are busy.
    #[serde(deserialize_with = "text::duration")]
    pub wait_max: Duration,
    /// Longest time to connect.
    #[serde(deserialize_with = "text::duration")]
    pub connect_timeout: Duration,
    /// Longest time of one statement.
    #[serde(deserialize_with = "text::duration")]
    pub statement_timeout: Duration,
    /// Longest wait of a statement for a lock.
    #[serde(deserialize_with = "text::duration")]
    pub lock_timeout: Duration,
}

impl Default for Postgres {
    fn default() -> Self {
        let options = PostgresOptions::default();
        Self {
            connections_max: options.connections_max,
            append_connections: options.append_connections,
            wait_max: options.wait_max,
            connect_timeout: options.connect_timeout,
            statement_timeout: options.statement_timeout,
            lock_timeout: options.lock_timeout,
        }
    }
}

impl Postgres {
    /// As the store takes them.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions {
            connections_max: self.connections_max,
            append_connections: self.append_connections,
            wait_max: self.wait_max,
            connect_timeout: self.connect_timeout,
            statement_timeout: self.statement_timeout,
            lock_timeout: self.lock_timeout,
            ..PostgresOptions::default()
        }
    }
}
