//! The writer's side of the database: its connection, and what it remembers between transactions.

use rusqlite::Connection;

use super::fault::Fault;
use super::idempotency::{self, Answers};
use super::log::Places;

/// What a write works with.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) places: Places,
    pub(crate) answers: Answers,
}

impl Session {
    /// Begins with what is stored; forgets old answers.
    pub(crate) fn new(connection: Connection) -> Result<Self, Fault> {
        if let Some(latest) = idempotency::latest(&connection)? {
            idempotency::forget(&connection, latest)?;
        }
        Ok(Self {
            connection,
            places: Places::default(),
            answers: Answers::default(),
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

    /// Undoes the transaction, if one is open, and forgets what may have come from it.
    pub(crate) fn roll_back(&mut self) {
        self.places.forget();
        if self.connection.is_autocommit() {
            return;
        }
        if let Err(error) = self.connection.execute("ROLLBACK", []) {
            // The next BEGIN fails as well then, and its callers are told.
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}
