//! The writer's side of the database: its connection, and what it remembers between transactions.

use rusqlite::Connection;

use super::column::change;
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

    pub(crate) fn begin(&self) -> Result<(), Fault> {
        change(&self.connection, "BEGIN IMMEDIATE", []).map(drop)
    }

    pub(crate) fn commit(&self) -> Result<(), Fault> {
        change(&self.connection, "COMMIT", []).map(drop)
    }

    /// Undoes the transaction, if one is open, and forgets what may have come from it.
    pub(crate) fn roll_back(&mut self) {
        self.places.forget();
        if self.connection.is_autocommit() {
            return;
        }
        if let Err(fault) = change(&self.connection, "ROLLBACK", []) {
            // The next BEGIN fails as well then, and its callers are told.
            tracing::error!(?fault, "a transaction could not be rolled back");
        }
    }
}
