//! The store in one SQLite file: one thread writes, readers read beside it.

mod agents;
mod column;
mod definitions;
mod directory;
mod entities;
mod fault;
mod idempotency;
mod lock;
mod log;
mod migrate;
mod probe;
mod projects;
mod readers;
mod receipts;
mod records;
mod runs;
mod session;
mod spaces;
#[cfg(test)]
mod tests;
mod usage;
mod work;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use toolgate_engine::store::{Store, StoreError};

use crate::listeners::Listeners;
use fault::Fault;
use lock::DataLock;
use readers::Readers;
use session::Session;
use writer::Writer;

/// What may be set.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Connections kept for reading, and long reads at once.
    pub readers: usize,
    /// Writes that may wait; whoever brings one more waits until there is room.
    pub pending_max: usize,
    /// Most writes in one commit.
    pub batch_max: usize,
    /// How long a commit waits for more writes to share it, while writes come in company.
    pub linger: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            readers: 4,
            pending_max: 4096,
            batch_max: 512,
            linger: Duration::from_micros(100),
        }
    }
}

/// A store in one SQLite file. Dropping it waits until what was accepted is on disk.
pub struct SqliteStore {
    readers: Arc<Readers>,
    writer: Writer,
    listeners: Listeners,
}

impl SqliteStore {
    /// Opens or makes the database at `path`, its directory included, and brings it to this version.
    ///
    /// `Unavailable` when another process uses it; `Corrupt` when it was made by a newer version.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let unavailable = |error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(unavailable)?;
        }
        let lock = DataLock::take(path)?;
        // Configurations with secrets are in it: SQLite's own files beside it inherit the mode.
        lock::private().open(path).map_err(unavailable)?;
        let session = open_session(path).map_err(Fault::told)?;
        let listeners = Listeners::default();
        Ok(Self {
            readers: Readers::new(path, options.readers),
            writer: Writer::start(session, lock, listeners.clone(), &options)?,
            listeners,
        })
    }
}

/// Bytes of a log or a record that are read on the caller's thread. Most are shorter, and handing one to another
/// thread costs three times as much as reading it.
const READ_AT_ONCE: usize = 32 << 10;
/// Pages of the write-ahead log before they are moved into the database: 16 MiB.
const CHECKPOINT_PAGES: u32 = 4096;
/// What a burst of writes may leave of the write-ahead log on disk.
const LOG_BYTES_KEPT: u32 = 64 << 20;
/// How long to wait for a lock that somebody with another tool holds on the file.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Statements kept ready per connection: more than there are.
const STATEMENTS_KEPT: usize = 128;

fn open_session(path: &Path) -> Result<Session, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let why = format!(
            "{} cannot have a write-ahead log (journal mode {mode})",
            path.display()
        );
        return Err(StoreError::Unavailable(why).into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    migrate::migrate(&mut connection)?;
    Session::new(connection)
}

/// What every connection needs.
fn prepare(connection: &Connection) -> Result<(), Fault> {
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // Without it SQLite prepares a statement again whenever a value is bound that might change the plan.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

#[async_trait]
impl Store for SqliteStore {
    async fn ready(&self) -> Result<(), StoreError> {
        self.writer.write(probe::write).await
    }
    async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }
}
