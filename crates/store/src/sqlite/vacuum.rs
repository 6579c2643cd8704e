//! Gives the room of deleted data back to the file system.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use toolgate_engine::store::StoreError;

use super::fault::Fault;
use super::lock::DataLock;
use super::prepare;

/// Rewrites the database at `path` without room for what was deleted, and lets it shrink by itself from then on. Gives its
/// size in bytes before and after. `Unavailable` while a gateway uses it; needs as much free disk space as it has bytes.
pub fn vacuum(path: &Path) -> Result<(u64, u64), StoreError> {
    if !path.is_file() {
        let why = format!("{} is not there, or is not a file", path.display());
        return Err(StoreError::Unavailable(why));
    }
    let _lock = DataLock::take(path)?;
    rewrite(path).map_err(Fault::into_store_error)
}

fn rewrite(path: &Path) -> Result<(u64, u64), Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    let before = bytes(&connection)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.execute_batch("VACUUM")?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok((before, bytes(&connection)?))
}

fn bytes(connection: &Connection) -> Result<u64, Fault> {
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    Ok((pragma("page_count")? * pragma("page_size")?) as u64)
}
