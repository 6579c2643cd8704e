//! Whether an import into the database was interrupted: then it holds a part of what it should.

use rusqlite::Connection;
use toolgate_engine::store::StoreError;

use super::SqliteStore;
use super::column::{change, first};
use super::fault::Fault;

/// Progress of imports that have not ended.
pub(crate) const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS imports (id TEXT NOT NULL PRIMARY KEY, lines INTEGER NOT NULL) STRICT";
/// Most databases never have the table.
const EXISTS: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'imports'";
const ANY: &str = "SELECT 1 FROM imports LIMIT 1";
const GIVE_UP: &str = "DELETE FROM imports";

impl SqliteStore {
    /// Whether an import was interrupted.
    pub async fn has_unfinished_import(&self) -> Result<bool, StoreError> {
        self.readers.short(is_there)
    }

    /// Forgets interrupted imports: what they have stored stays, and none goes on.
    pub async fn give_up_imports(&self) -> Result<(), StoreError> {
        self.writer.write(give_up).await
    }
}

/// Whether the table is there.
pub(crate) fn table_exists(connection: &Connection) -> Result<bool, Fault> {
    Ok(first(connection, EXISTS, [], |_| Ok(()))?.is_some())
}

fn is_there(connection: &Connection) -> Result<bool, Fault> {
    Ok(table_exists(connection)? && first(connection, ANY, [], |_| Ok(()))?.is_some())
}

fn give_up(connection: &Connection) -> Result<(), Fault> {
    if table_exists(connection)? {
        change(connection, GIVE_UP, [])?;
    }
    Ok(())
}
