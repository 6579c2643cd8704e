//! The store in a PostgreSQL database, which many nodes may share.
//!
//! Reads and most writes take a connection of the pool. Appends go through `writer`, which commits those that wait
//! together: `batch` reads and locks what they need, `plan` decides on each, and all that is accepted is written at once.

mod activity;
mod address;
mod agents;
mod attempts;
mod batch;
mod check;
pub(crate) mod column;
mod consumption;
mod definitions;
mod directory;
mod entities;
pub(crate) mod fault;
mod holdings;
mod hosts;
mod idempotency;
mod listening;
mod log;
mod migrate;
mod people;
mod plan;
#[cfg(test)]
mod plans;
pub(crate) mod pool;
mod probe;
mod projects;
mod receipts;
mod records;
mod retention;
mod run_lists;
mod runs;
#[cfg(test)]
mod scale;
mod search;
pub(crate) mod session;
mod spaces;
mod start_lock;
mod tls;
pub(crate) mod unfinished_import;
mod usage;
mod writer;

#[cfg(test)]
pub(crate) use projects::REMOVE as REMOVE_PROJECT;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use toolgate_engine::store::{Store, StoreError};

pub use address::{BadAddress, PostgresAddress};
pub use check::check;
pub use listening::ServerMessages;
pub use start_lock::StartLock;
pub(crate) use start_lock::{hold as hold_start, require_unused};

use crate::listeners::Listeners;
use attempts::{read, write};
use fault::Fault;
use holdings::LogSizes;
use pool::{Lease, Pool};
use writer::Writer;

/// Settings of the PostgreSQL store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Most connections of this process, those for appends included.
    pub connections_max: usize,
    /// Of these, connections for appends; each commits one batch at a time.
    pub append_connections: usize,
    /// Longest wait for a connection while all of them are busy.
    pub wait_max: Duration,
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest time that the server works on one statement.
    pub statement_timeout: Duration,
    /// Longest time that a statement waits for a lock.
    pub lock_timeout: Duration,
    /// Length of the queue of appends; a caller waits while it is full.
    pub pending_max: usize,
    /// Most appends in one commit.
    pub batch_max: usize,
    /// How long a heartbeat lasts by the clock of the database server, which then also decides which leases have ended: the clocks of
    /// the nodes may differ. None goes by the times that callers give, as a test with a clock of its own needs it.
    pub lease: Option<Duration>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections_max: 16,
            append_connections: 2,
            wait_max: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            pending_max: 4096,
            batch_max: 256,
            lease: None,
        }
    }
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    pool: Arc<Pool>,
    /// The writer's.
    appends: Arc<Pool>,
    writer: Writer,
    listeners: Listeners,
    log_sizes: LogSizes,
    lease: Option<Duration>,
}

/// What opening a database did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Migrated {
    /// Versions of the migrations that were applied, in order.
    pub versions: Vec<u32>,
}

impl PostgresStore {
    /// Connects to the database and migrates it to this version.
    ///
    /// `Unavailable` if it cannot be reached; `Corrupt` if it was made by a version that this one cannot work beside.
    pub async fn open(address: &PostgresAddress, options: PostgresOptions) -> Result<Self, StoreError> {
        let (store, migrated) = Self::open_and_tell(address, options).await?;
        if !migrated.versions.is_empty() {
            tracing::info!(versions = ?migrated.versions, "migrated the database");
        }
        Ok(store)
    }

    /// Connects to the database, migrates it, and says what was migrated.
    pub async fn open_and_tell(
        address: &PostgresAddress,
        options: PostgresOptions,
    ) -> Result<(Self, Migrated), StoreError> {
        let tls = tls::connector(&address.protection)
            .map_err(|why| StoreError::Unavailable(format!("TLS to {address}: {why}")))?;
        let for_appends = options.append_connections.max(1);
        let for_others = options.connections_max.saturating_sub(for_appends).max(1);
        let pool = Pool::new(address.clone(), tls.clone(), options.clone(), for_others);
        let versions = prepare(&pool).await.map_err(Fault::into_store_error)?;
        let listeners = Listeners::default();
        let appends = Pool::new(address.clone(), tls, options.clone(), for_appends);
        let store = Self {
            pool,
            writer: Writer::start(appends.clone(), listeners.clone(), &options),
            appends,
            listeners,
            log_sizes: LogSizes::default(),
            lease: options.lease,
        };
        Ok((store, Migrated { versions }))
    }
}

/// What callers of a store are told that was closed.
const CLOSED: &str = "the store is closed";

impl PostgresStore {
    /// Makes sure that this program may still use the database. Once a newer one has migrated it beyond what this one
    /// knows, nothing is read or written any more.
    async fn check_version(&self) -> Result<(), StoreError> {
        let checked = read!(self, db => migrate::check(db));
        if let Err(StoreError::Corrupt(why)) = checked {
            tracing::error!(
                why,
                "the database was migrated by a newer version; this gateway stops to use it"
            );
            self.pool.close(&why);
            self.appends.close(&why);
            return Err(StoreError::Unavailable(why));
        }
        checked
    }
}

/// A connection for something else than a gateway, to a database that is migrated to this version.
pub(crate) async fn connect_and_migrate(
    address: &PostgresAddress,
    options: PostgresOptions,
) -> Result<Lease, Fault> {
    let pool = pool_of_one(address, options)?;
    prepare(&pool).await?;
    pool.get().await
}

/// A connection for something that only reads. Changes nothing: a database without tables, or of an earlier version, is
/// `Unavailable`.
pub(crate) async fn connect_to_read(
    address: &PostgresAddress,
    options: PostgresOptions,
) -> Result<Lease, Fault> {
    let lease = pool_of_one(address, options)?.get().await?;
    migrate::require_current(&lease).await?;
    Ok(lease)
}

fn pool_of_one(address: &PostgresAddress, options: PostgresOptions) -> Result<Arc<Pool>, Fault> {
    let tls = tls::connector(&address.protection)
        .map_err(|why| Fault::Failed(format!("TLS to {address}: {why}")))?;
    Ok(Pool::new(address.clone(), tls, options, 1))
}

/// Migrates the database, warns of what makes its commits less than they should be, and deletes old idempotency records.
async fn prepare(pool: &Arc<Pool>) -> Result<Vec<u32>, Fault> {
    let mut lease = pool.get().await?;
    let rows = lease.client.query_typed(SERVER, &[]).await?;
    let [encoding, fsync, full_pages] = match rows.first() {
        Some(row) => [0, 1, 2].map(|column| row.try_get::<_, String>(column).unwrap_or_default()),
        None => Default::default(),
    };
    if encoding != "UTF8" {
        let why = format!("the database has the encoding {encoding}, create it with ENCODING 'UTF8'");
        return Err(StoreError::Unavailable(why).into());
    }
    if fsync != "on" || full_pages != "on" {
        tracing::warn!(
            fsync,
            full_page_writes = full_pages,
            "the PostgreSQL server may lose what it has committed when the machine fails"
        );
    }
    let versions = migrate::migrate(&mut lease).await?;
    idempotency::forget_old(&lease.db()).await?;
    // Whoever migrates, or waits until another has, changes settings of the connection and holds a lock.
    lease.throw_away();
    Ok(versions)
}

const SERVER: &str = "
    SELECT current_setting('server_encoding'), current_setting('fsync'), current_setting('full_page_writes')";

#[async_trait]
impl Store for PostgresStore {
    async fn ready(&self) -> Result<(), StoreError> {
        self.check_version().await?;
        read!(self, db => probe::read(db))?;
        write!(self, db => probe::write(db))
    }
    async fn close(&self) {
        self.writer.close().await;
        self.pool.close(CLOSED);
    }
}
