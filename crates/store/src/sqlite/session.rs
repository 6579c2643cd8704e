//! The writer's connection, and its caches between transactions.

use rusqlite::Connection;
use toolgate_kernel::id::NodeId;

use super::fault::Fault;
use super::idempotency::{self, Answers};
use super::log::Places;

/// State that writes work on.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) places: Places,
    pub(crate) answers: Answers,
    /// The node that surely has a row, which saves each new run a statement.
    pub(crate) introduced: Option<NodeId>,
}

impl Session {
    /// Opens a session on the stored state; deletes old idempotency records.
    pub(crate) fn new(connection: Connection) -> Result<Self, Fault> {
        if let Some(latest) = idempotency::latest(&connection)? {
            idempotency::forget(&connection, latest)?;
        }
        Ok(Self {
            connection,
            places: Places::default(),
            answers: Answers::default(),
            introduced: None,
        })
    }

    pub(crate) fn begin(&self) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])
            .map(drop)
    }

    pub(crate) fn commit(&self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([]).map(drop)
    }

    /// Rolls back the transaction, if one is open, and clears the caches that it may have changed.
    pub(crate) fn roll_back(&mut self) {
        self.places.forget();
        self.introduced = None;
        if self.connection.is_autocommit() {
            return;
        }
        if let Err(error) = self.connection.execute("ROLLBACK", []) {
            // The next BEGIN fails as well then, and its callers get the error.
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}
