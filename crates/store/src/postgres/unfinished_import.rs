//! Whether an import into the database was interrupted: then it holds a part of what it should.

use toolgate_engine::store::StoreError;

use super::PostgresStore;
use super::attempts::{read, write};
use super::column::{change, first, get};
use super::fault::Fault;
use super::session::Db;

/// Progress of imports that have not ended.
pub(crate) const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS imports (id text NOT NULL PRIMARY KEY, lines bigint NOT NULL)";
/// Most databases never have the table.
const EXISTS: &str = "SELECT to_regclass('imports') IS NOT NULL";
const ANY: &str = "SELECT EXISTS (SELECT 1 FROM imports)";
const GIVE_UP: &str = "DELETE FROM imports";

impl PostgresStore {
    /// Whether an import is under way or was interrupted.
    pub async fn has_unfinished_import(&self) -> Result<bool, StoreError> {
        read!(self, db => is_there(db))
    }

    /// Forgets interrupted imports: what they have stored stays, and none goes on.
    pub async fn give_up_imports(&self) -> Result<(), StoreError> {
        write!(self, db => give_up(db))
    }
}

/// Whether the table is there.
pub(crate) async fn table_exists(db: &Db<'_>) -> Result<bool, Fault> {
    let exists = first(db, EXISTS, &[], |row| get::<bool>(row, 0)).await?;
    Ok(exists.unwrap_or_default())
}

async fn is_there(db: &Db<'_>) -> Result<bool, Fault> {
    if !table_exists(db).await? {
        return Ok(false);
    }
    let any = first(db, ANY, &[], |row| get::<bool>(row, 0)).await?;
    Ok(any.unwrap_or_default())
}

async fn give_up(db: &Db<'_>) -> Result<(), Fault> {
    if table_exists(db).await? {
        change(db, GIVE_UP, &[]).await?;
    }
    Ok(())
}
