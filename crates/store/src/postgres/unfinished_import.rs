//! Whether an import into the database was interrupted: then it holds a part of what it should.

use toolgate_engine::store::StoreError;

use super::PostgresStore;
use super::attempts::read;
use super::column::{first, get};
use super::fault::Fault;
use super::pool::Pool;
use super::session::Db;

/// Progress of imports that have not ended.
pub(crate) const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS imports (id text NOT NULL PRIMARY KEY, lines bigint NOT NULL)";
/// Most databases never have the table.
const EXISTS: &str = "SELECT to_regclass('imports') IS NOT NULL";
const ANY: &str = "SELECT EXISTS (SELECT 1 FROM imports)";
const GIVE_UP: &str = "DELETE FROM imports";
/// Where each log ends, which follows from its entries and is not carried over. Appends to a space without it are refused.
pub(crate) const HEADS: &str = "
    INSERT INTO heads (space, last)
    SELECT space, max(last) FROM (
        SELECT space, last FROM log UNION ALL SELECT space, floor FROM log_floors) AS places (space, last)
    GROUP BY space
    ON CONFLICT (space) DO UPDATE SET last = greatest(heads.last, excluded.last)";

impl PostgresStore {
    /// Whether an import is under way or was interrupted.
    pub async fn has_unfinished_import(&self) -> Result<bool, StoreError> {
        read!(self, db => is_there(db))
    }

    /// Forgets interrupted imports: what they have stored stays and can be appended to, and none goes on.
    pub async fn give_up_imports(&self) -> Result<(), StoreError> {
        give_up(&self.pool).await.map_err(Fault::into_store_error)
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

async fn give_up(pool: &Pool) -> Result<(), Fault> {
    let lease = pool.get_extra().await?;
    if !table_exists(&lease.db()).await? {
        return Ok(());
    }
    // All logs are read, which may take longer than any other statement.
    let patient = "SET statement_timeout = 0; SET lock_timeout = 0";
    lease.client.batch_execute(patient).await?;
    let both = format!("BEGIN; {HEADS}; {GIVE_UP}; COMMIT");
    Ok(lease.client.batch_execute(&both).await?)
}
