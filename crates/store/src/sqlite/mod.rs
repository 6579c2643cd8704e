//! The store in one SQLite file: one thread writes, readers read beside it.

mod agents;
mod column;
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
use toolgate_engine::records::{Amendment, Found, Listing, Receipt, Record, Records, Shelf};
use toolgate_engine::store::{
    AgentRecord, Append, CommitListener, EntityRecord, Family, IdempotencyRecord, KeyRecord, LogRange,
    ProjectRecord, RunFilter, RunRecord, SpaceRecord, Store, StoreError,
};
use toolgate_engine::usage::{Day, UsageRecord};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use crate::listeners::Listeners;
use fault::Fault;
use lock::DataLock;
use log::Part;
use readers::Readers;
use records::Got;
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
    fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.listeners.add(listener);
    }

    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        crate::check(&append);
        self.writer.append(append).await
    }
    async fn run_log(&self, run: RunId) -> Result<Vec<Entry>, StoreError> {
        let start = |db: &Connection| log::of_run(db, run, Seq::default(), READ_AT_ONCE);
        let Part { mut entries, cut } = self.readers.short(start)?;
        if let Some(last) = entries.last().filter(|_| cut) {
            let after = last.first;
            let rest = move |db: &Connection| log::of_run(db, run, after, usize::MAX);
            entries.extend(self.readers.long(rest).await?.entries);
        }
        Ok(entries)
    }
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<Vec<Entry>, StoreError> {
        let start = |db: &Connection| log::of_space(db, space, range, READ_AT_ONCE);
        let Part { mut entries, cut } = self.readers.short(start)?;
        if let Some(last) = entries.last().filter(|_| cut) {
            let (after, limit) = (last.last(), range.limit - entries.len());
            let range = LogRange {
                after,
                limit,
                ..range
            };
            let rest = move |db: &Connection| log::of_space(db, space, range, usize::MAX);
            entries.extend(self.readers.long(rest).await?.entries);
        }
        Ok(entries)
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.readers.short(|db| runs::get(db, run))
    }
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        self.readers
            .long(move |db| runs::list(db, project, &filter))
            .await
    }
    async fn family(&self, root: RunId) -> Result<Family, StoreError> {
        self.readers.short(|db| runs::family(db, root))
    }
    async fn claimable(&self, now: Time, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.readers.long(move |db| runs::claimable(db, now, limit)).await
    }
    async fn claim(&self, run: RunId, node: NodeId, now: Time) -> Result<Option<RunRecord>, StoreError> {
        self.writer.write(move |db| runs::claim(db, run, node, now)).await
    }
    async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError> {
        self.writer.write(move |db| runs::release(db, run, epoch)).await
    }
    async fn heartbeat(&self, node: NodeId, until: Time) -> Result<(), StoreError> {
        self.writer
            .write(move |db| runs::heartbeat(db, node, until))
            .await
    }
    async fn next_wake(&self) -> Result<Option<Time>, StoreError> {
        self.readers.short(runs::next_wake)
    }

    async fn create_space(&self, space: SpaceRecord) -> Result<(), StoreError> {
        self.writer.write(move |db| spaces::create(db, &space)).await
    }
    async fn space(&self, space: SpaceId) -> Result<Option<SpaceRecord>, StoreError> {
        self.readers.short(|db| spaces::get(db, space))
    }
    async fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize,
    ) -> Result<Vec<SpaceRecord>, StoreError> {
        self.readers
            .long(move |db| spaces::list(db, project, member, before, limit))
            .await
    }
    async fn amend_space(
        &self,
        before: SpaceRecord,
        title: Option<String>,
        metadata: Option<Json>,
        receipt: Option<Receipt>,
    ) -> Result<(), StoreError> {
        self.writer
            .write(move |db| {
                spaces::amend(db, &before, title.as_deref(), metadata.as_ref(), receipt.as_ref())
            })
            .await
    }
    async fn add_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        self.writer
            .write(move |db| spaces::add_member(db, space, member))
            .await
    }
    async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        self.writer
            .write(move |db| spaces::remove_member(db, space, member))
            .await
    }

    async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        self.writer.write(move |db| entities::put(db, &entity)).await
    }
    async fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>, StoreError> {
        self.readers.short(|db| entities::get(db, id))
    }
    async fn entity_of(&self, project: ProjectId, subject: &str) -> Result<Option<EntityRecord>, StoreError> {
        self.readers.short(|db| entities::of(db, project, subject))
    }

    async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
        now: Time,
    ) -> Result<u32, StoreError> {
        let name = name.clone();
        self.writer
            .write(move |db| agents::put(db, project, &name, &config, now))
            .await
    }
    async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<AgentRecord>, StoreError> {
        self.readers.short(|db| agents::get(db, project, name, revision))
    }
    async fn agents(&self, project: ProjectId) -> Result<Vec<AgentRecord>, StoreError> {
        self.readers.long(move |db| agents::list(db, project)).await
    }
    async fn remove_agent(&self, project: ProjectId, name: &AgentName) -> Result<bool, StoreError> {
        let name = name.clone();
        self.writer
            .write(move |db| agents::remove(db, project, &name))
            .await
    }

    async fn put_project(&self, project: ProjectRecord) -> Result<(), StoreError> {
        self.writer.write(move |db| projects::put(db, &project)).await
    }
    async fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, StoreError> {
        self.readers.short(|db| projects::get(db, id))
    }
    async fn project_named(&self, name: &str) -> Result<Option<ProjectRecord>, StoreError> {
        self.readers.short(|db| projects::named(db, name))
    }

    async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError> {
        self.writer.write(move |db| projects::put_key(db, &key)).await
    }
    async fn key(&self, hash: [u8; 32]) -> Result<Option<KeyRecord>, StoreError> {
        self.readers.short(|db| projects::key(db, hash))
    }
    async fn keys(&self, project: ProjectId) -> Result<Vec<KeyRecord>, StoreError> {
        self.readers.long(move |db| projects::keys(db, project)).await
    }
    async fn remove_key(&self, project: ProjectId, id: KeyId) -> Result<bool, StoreError> {
        self.writer
            .write(move |db| projects::remove_key(db, project, id))
            .await
    }

    async fn idempotency(
        &self,
        project: ProjectId,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.readers.short(|db| idempotency::get(db, project, key))
    }

    async fn usage(
        &self,
        project: ProjectId,
        tool: &str,
        since: Day,
    ) -> Result<Vec<UsageRecord>, StoreError> {
        let tool = tool.to_owned();
        self.readers
            .long(move |db| usage::since(db, project, &tool, since))
            .await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.writer.write(probe::write).await
    }
    async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }
}

#[async_trait]
impl Records for SqliteStore {
    async fn record(&self, shelf: Shelf, id: &str) -> Result<Option<Record>, StoreError> {
        let found = self
            .readers
            .short(|db| records::get(db, shelf, id, READ_AT_ONCE))?;
        match found {
            Some(Got { cut: true, .. }) => {
                let id = id.to_owned();
                let whole = move |db: &Connection| records::get(db, shelf, &id, usize::MAX);
                Ok(self.readers.long(whole).await?.map(|got| got.record))
            }
            found => Ok(found.map(|got| got.record)),
        }
    }
    async fn list_records(&self, shelf: Shelf, listing: Listing) -> Result<Vec<Record>, StoreError> {
        self.readers
            .long(move |db| records::list(db, shelf, &listing))
            .await
    }
    async fn shelf_size(&self, shelf: Shelf) -> Result<(u64, u64), StoreError> {
        self.readers.long(move |db| records::size(db, shelf)).await
    }
    async fn list_data(&self, shelf: Shelf, listing: Listing) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.readers
            .long(move |db| records::list_data(db, shelf, &listing))
            .await
    }
    async fn amend_shelf(&self, shelf: Shelf, amendment: Amendment, now: Time) -> Result<(), StoreError> {
        self.writer
            .write(move |db| records::amend(db, shelf, &amendment, now))
            .await
    }
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError> {
        self.readers.short(|db| receipts::get(db, project, key))
    }
    async fn find_records(&self, shelf: Shelf, words: &str, limit: usize) -> Result<Vec<Found>, StoreError> {
        let words = words.to_owned();
        self.readers
            .long(move |db| records::find(db, shelf, &words, limit))
            .await
    }
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Shelf, Record)>, StoreError> {
        self.readers
            .long(move |db| records::due(db, kind, now, limit))
            .await
    }
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError> {
        self.readers.short(|db| records::next_due(db, kind))
    }
}
