//! The store in one SQLite file: one writer thread, concurrent readers.

mod activity;
mod agents;
mod backup;
mod check;
mod column;
mod consumption;
mod definitions;
mod directory;
mod entities;
pub(crate) mod fault;
mod holdings;
mod idempotency;
mod leftover;
pub(crate) mod lock;
mod log;
pub(crate) mod migrate;
mod probe;
mod projects;
pub(crate) mod readers;
mod receipts;
mod records;
mod retention;
mod run_lists;
mod runs;
#[cfg(test)]
mod scale;
mod search;
mod session;
mod spaces;
#[cfg(test)]
mod tests;
pub(crate) mod unfinished_import;
mod usage;
mod vacuum;
mod work;
mod writer;

#[cfg(test)]
pub(crate) use projects::REMOVE as REMOVE_PROJECT;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use toolgate_engine::store::{Store, StoreError};

pub use backup::{Restored, backup, restore};
pub use check::{CheckReport, DAMAGE_LINES_MAX, check};
pub use vacuum::vacuum;

use crate::listeners::Listeners;
use fault::Fault;
use holdings::LogSizes;
use lock::DataLock;
use readers::Readers;
use session::Session;
use writer::Writer;

/// Settings of the SQLite store.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Connections kept open for reading; also the most long reads at the same time.
    pub readers: usize,
    /// Length of the write queue; a caller waits while it is full.
    pub pending_max: usize,
    /// Most writes in one commit.
    pub batch_max: usize,
    /// How long a commit waits for more writes, if the one before held several.
    pub linger: Duration,
    /// Look for damaged pages before anything is written, for at most this long.
    pub check: Option<Duration>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            readers: 4,
            pending_max: 4096,
            batch_max: 512,
            linger: Duration::from_micros(100),
            check: None,
        }
    }
}

/// A store in one SQLite file. Dropping it waits until all accepted writes are on disk.
pub struct SqliteStore {
    readers: Arc<Readers>,
    writer: Writer,
    listeners: Listeners,
    damage: Damage,
    log_sizes: Arc<LogSizes>,
}

/// Whether a read or a write has met damage of the file. It stays so until the file was looked after.
#[derive(Clone, Default)]
pub(crate) struct Damage(Arc<AtomicBool>);

impl Damage {
    /// The caller's error; damage of the file is remembered.
    pub(crate) fn note(&self, fault: Fault) -> StoreError {
        if fault.is_damage() {
            self.0.store(true, Ordering::Relaxed);
        }
        fault.into_store_error()
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl SqliteStore {
    /// Opens or creates the database at `path`, its directory included, and migrates it to this version.
    ///
    /// `Unavailable` if another process uses it; `Corrupt` if it was made by a newer version, or if damage was found.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let unavailable = |error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(unavailable)?;
        }
        let lock = DataLock::take(path)?;
        // It holds configurations with secrets; SQLite's own files beside it inherit the mode.
        lock::private().open(path).map_err(unavailable)?;
        let session = open_session(path, options.check).map_err(Fault::into_store_error)?;
        let listeners = Listeners::default();
        let damage = Damage::default();
        Ok(Self {
            readers: Readers::new(path, options.readers, damage.clone()),
            writer: Writer::start(session, lock, listeners.clone(), damage.clone(), &options)?,
            listeners,
            damage,
            log_sizes: Arc::default(),
        })
    }
}

/// Opens or creates the database at `path` as a gateway would, for something else than a gateway.
pub(crate) fn open_alone(path: &Path) -> Result<(Connection, DataLock), StoreError> {
    let unavailable = |error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(unavailable)?;
    }
    let lock = DataLock::take(path)?;
    lock::private().open(path).map_err(unavailable)?;
    let session = open_session(path, None).map_err(Fault::into_store_error)?;
    Ok((session.connection, lock))
}

/// Migrates the database at `path` to this version, and gives the versions of the migrations that it had not; a file that is
/// not there is made. `Unavailable` if a gateway uses it.
pub fn migrate(path: &Path) -> Result<Vec<u32>, StoreError> {
    let before = match path.is_file() {
        true => readers::open(path)
            .and_then(|db| migrate::applied(&db))
            .unwrap_or_default(),
        false => Vec::new(),
    };
    let (connection, _lock) = open_alone(path)?;
    let mut versions = migrate::applied(&connection).map_err(Fault::into_store_error)?;
    versions.retain(|version| !before.contains(version));
    Ok(versions)
}

/// Most bytes of a log or record that are read on the caller's thread. Most are shorter, and a handover to another
/// thread costs three times as much as reading it.
const READ_AT_ONCE: usize = 32 << 10;
/// Pages of the write-ahead log before a checkpoint moves them into the database: 16 MiB.
const CHECKPOINT_PAGES: u32 = 4096;
/// Most bytes of the write-ahead log that stay on disk after a burst of writes.
const LOG_BYTES_KEPT: u32 = 64 << 20;
/// Longest wait for a lock that another program, such as `sqlite3`, holds on the file.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Prepared statements cached per connection: more than there are.
const STATEMENTS_KEPT: usize = 128;

fn open_session(path: &Path, check: Option<Duration>) -> Result<Session, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    // So that the room of what is deleted can be given back. No effect on a file that has tables already.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let why = format!(
            "{} cannot have a write-ahead log (journal mode {mode})",
            path.display()
        );
        return Err(StoreError::Unavailable(why).into());
    }
    leftover::write_again(&connection, path)?;
    if let Some(limit) = check {
        check::quick(&connection, limit)?;
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    // What is deleted is overwritten in the file. FAST would leave the pages of long texts as they are.
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    migrate::migrate(&mut connection)?;
    Session::new(connection)
}

/// Applies the settings that every connection needs.
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
        if self.damage.is_known() {
            let why = "the database file is damaged, see `toolgate store check`";
            return Err(StoreError::Corrupt(why.into()));
        }
        self.readers.long(probe::read).await?;
        self.writer.write(probe::write).await
    }
    async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }
}
