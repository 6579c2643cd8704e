//! The log: one row per append, found by space and by run.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use toolgate_engine::store::{
    Above, Append, CommitListener, LeaseWrite, Log, LogOrder, LogPage, LogRange, RunWrite, StoreError,
    StoredDefinition,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::column::{bounded, change, first, seq};
use super::fault::Fault;
use super::session::Session;
use super::{
    READ_AT_ONCE, SqliteStore, agents, consumption, definitions, idempotency, retention, runs, spaces, usage,
};
use crate::text;

#[async_trait]
impl Log for SqliteStore {
    fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.listeners.add(listener);
    }

    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        crate::check(&append);
        self.writer.append(append).await
    }
    async fn run_log(&self, run: RunId, range: LogRange) -> Result<LogPage, StoreError> {
        self.page(run.to_bytes(), [OF_RUN, OF_RUN_BACKWARDS], range).await
    }
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<LogPage, StoreError> {
        self.page(space.to_bytes(), [OF_SPACE, OF_SPACE_BACKWARDS], range)
            .await
    }
    async fn space_tail(&self, space: SpaceId) -> Result<Seq, StoreError> {
        self.readers.short(|db| tail(db, space))
    }
    async fn definitions(
        &self,
        project: ProjectId,
        hashes: &[String],
    ) -> Result<Vec<StoredDefinition>, StoreError> {
        self.readers.short(|db| definitions::get(db, project, hashes))
    }
}

impl SqliteStore {
    /// Reads a page with the statement for its order. Starts on the caller's thread, because most logs are short.
    async fn page(
        &self,
        of: [u8; 16],
        [oldest, newest]: [&'static str; 2],
        range: LogRange,
    ) -> Result<LogPage, StoreError> {
        let sql = match range.order {
            LogOrder::OldestFirst => oldest,
            LogOrder::NewestFirst => newest,
        };
        let short = LogRange {
            bytes: range.bytes.min(READ_AT_ONCE),
            ..range
        };
        let mut page = self.readers.short(|db| read(db, sql, of, short))?;
        if let Some(last) = page.entries.last().filter(|_| page.more && !page.is_full(range)) {
            let rest = LogRange {
                limit: range.limit - page.entries.len(),
                bytes: range.bytes - page.bytes,
                ..range.behind(last)
            };
            let rest = self.readers.long(move |db| read(db, sql, of, rest)).await?;
            page.entries.extend(rest.entries);
            page.bytes += rest.bytes;
            page.more = rest.more;
        }
        Ok(page)
    }
}

const INSERT: &str = "
    INSERT INTO log (space, first, last, run, time, format, events) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Writes all parts of an append and returns the sequence number of its first event. The checks most likely to
/// reject it come first: a rejection before the first change needs no rollback.
pub(crate) fn append(session: &mut Session, append: &Append, events: &str) -> Result<Written, Fault> {
    let connection = &session.connection;
    let before = match append.run {
        // A space that is created here has no log: if it had, its primary key would reject the row below.
        RunWrite::Create { space: Some(_), .. } => Seq::default(),
        RunWrite::None | RunWrite::Create { .. } | RunWrite::Extend { .. } => {
            session.places.last(connection, append.space)?
        }
    };
    let first = Seq(before.0 + Seq::STRIDE);
    let last = Seq(before.0 + append.events.len() as u64 * Seq::STRIDE);
    let run = write_run(connection, append, last)?;
    if let Some(node) = takes_lease(&append.run).filter(|node| session.introduced != Some(*node)) {
        runs::introduce(connection, node)?;
        session.introduced = Some(node);
    }
    for record in &append.idempotency {
        idempotency::remember(connection, record)?;
        session.answers.count(connection, record.time)?;
    }
    for used in &append.usage {
        usage::count(connection, used, Day::of(append.time))?;
    }
    for added in &append.consumption {
        consumption::add(connection, added, Day::of(append.time))?;
    }
    for wake in &append.wakes {
        runs::wake(connection, *wake)?;
    }
    let row = params![
        append.space.to_bytes(),
        first.0 as i64,
        last.0 as i64,
        run.map(RunId::to_bytes),
        append.time.0,
        text::format(&append.events),
        events,
    ];
    change(connection, INSERT, row)?;
    session.places.set(append.space, last);
    let above = match &append.above {
        Some(above) => Some(write_above(session, above, append.time)?),
        None => None,
    };
    Ok(Written { first, above })
}

/// Where the events of an append were written.
pub(crate) struct Written {
    pub(crate) first: Seq,
    /// The first place in the log of the run at the top, and that run unless it has ended.
    pub(crate) above: Option<(Seq, Option<RunId>)>,
}

fn write_above(session: &mut Session, above: &Above, time: Time) -> Result<(Seq, Option<RunId>), Fault> {
    let connection = &session.connection;
    let before = session.places.last(connection, above.space)?;
    let first = Seq(before.0 + Seq::STRIDE);
    let last = Seq(before.0 + above.events.len() as u64 * Seq::STRIDE);
    let is_open = runs::advance(connection, above.run, last)?;
    let run = is_open.then_some(above.run);
    let row = params![
        above.space.to_bytes(),
        first.0 as i64,
        last.0 as i64,
        run.map(RunId::to_bytes),
        time.0,
        text::format(&above.events),
        text::write(&above.events),
    ];
    change(connection, INSERT, row)?;
    session.places.set(above.space, last);
    Ok((first, run))
}

/// The node that drives the run from this append on, if that is new.
fn takes_lease(run: &RunWrite) -> Option<NodeId> {
    match run {
        RunWrite::Create { record, .. } => record.node,
        RunWrite::Extend {
            lease: LeaseWrite::Take(node),
            ..
        } => Some(*node),
        RunWrite::None | RunWrite::Extend { .. } => None,
    }
}

fn write_run(connection: &Connection, append: &Append, last: Seq) -> Result<Option<RunId>, Fault> {
    match &append.run {
        RunWrite::None => {
            retention::check_space(connection, append.space)?;
            retention::check_people(connection, &append.begins_for())?;
            Ok(None)
        }
        RunWrite::Create {
            record,
            space,
            descendants_max,
            definitions,
        } => {
            retention::check_space(connection, append.space)?;
            retention::check_people(connection, &append.begins_for())?;
            if let Some(max) = descendants_max {
                runs::check_descendants(connection, record.root, *max)?;
            }
            // Child runs end with the run that started them.
            if record.parent.is_none() {
                agents::check_present(connection, record.project, &record.agent)?;
            }
            let lane = match space {
                // A space that is created here has no runs.
                Some(space) => {
                    spaces::create(connection, space)?;
                    0
                }
                None => runs::admit(connection, record)?,
            };
            runs::create(connection, record, last, lane, append)?;
            definitions::keep(connection, record.project, definitions)?;
            Ok(Some(record.id))
        }
        &RunWrite::Extend {
            id,
            version,
            epoch,
            status,
            wake_at,
            lease,
        } => {
            let extension = runs::Extension {
                id,
                space: append.space,
                seen: version,
                epoch,
                status,
                wake_at,
                lease,
                version: last,
                updated: append.time,
                tokens: crate::tokens(append),
            };
            runs::extend(connection, &extension)?;
            // The end of a run clears it without a statement of its own.
            if let Some(asks) = crate::asks(append).filter(|_| !status.is_final()) {
                runs::note_asks(connection, id, asks)?;
            }
            Ok(Some(id))
        }
    }
}

/// Most spaces whose last sequence number is cached.
const PLACES_MAX: usize = 16_384;

/// Cache of the last sequence number of recently written spaces, which saves each append a query.
#[derive(Default)]
pub(crate) struct Places(HashMap<SpaceId, Seq>);

const LAST: &str = "SELECT last FROM log WHERE space = ?1 ORDER BY first DESC LIMIT 1";

pub(super) fn tail(connection: &Connection, space: SpaceId) -> Result<Seq, Fault> {
    let last = first(connection, LAST, [space.to_bytes()], |row| seq(row, 0))?;
    // The last entries may have been deleted, and their places are not given again.
    Ok(last.unwrap_or_default().max(retention::floor(connection, space)?))
}

impl Places {
    fn last(&self, connection: &Connection, space: SpaceId) -> Result<Seq, Fault> {
        if let Some(&last) = self.0.get(&space) {
            return Ok(last);
        }
        tail(connection, space)
    }

    fn set(&mut self, space: SpaceId, last: Seq) {
        // Clearing the cache costs one query per space, and needs no order of use.
        if self.0.len() >= PLACES_MAX {
            self.0.clear();
        }
        self.0.insert(space, last);
    }

    /// Clears the cache after a rollback: its numbers may not be stored.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

// Both start at the last entry that begins at or before the cursor: only that one may extend past it.
macro_rules! within {
    ($of:literal, $order:literal) => {
        concat!(
            "SELECT space, first, run, time, format, events FROM log
             WHERE ",
            $of,
            " = ?1 AND last > ?2 AND first < ?3
               AND first >= coalesce((SELECT max(first) FROM log WHERE ",
            $of,
            " = ?1 AND first <= ?2), 0)
             ORDER BY first ",
            $order,
            " LIMIT ?4"
        )
    };
}

pub(crate) const OF_RUN: &str = within!("run", "ASC");
pub(crate) const OF_RUN_BACKWARDS: &str = within!("run", "DESC");
pub(crate) const OF_SPACE: &str = within!("space", "ASC");
pub(crate) const OF_SPACE_BACKWARDS: &str = within!("space", "DESC");

pub(super) fn read(
    connection: &Connection,
    sql: &str,
    of: [u8; 16],
    range: LogRange,
) -> Result<LogPage, Fault> {
    let after = bounded(range.after.0);
    let before = range.before.map_or(i64::MAX, |before| bounded(before.0));
    let mut statement = connection.prepare_cached(sql)?;
    // One more than requested, to know whether there is a next page.
    let mut rows = statement.query(params![of, after, before, bounded(range.limit.saturating_add(1))])?;
    let mut page = LogPage::default();
    while let Some(row) = rows.next()? {
        if page.is_full(range) {
            page.more = true;
            break;
        }
        let events = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
        page.bytes += events.len();
        page.entries.push(entry(row, events)?);
    }
    Ok(page)
}

/// An entry from a row with space, first place, run, time and format.
pub(crate) fn entry(row: &Row<'_>, events: &str) -> Result<Entry, Fault> {
    Ok(Entry {
        space: SpaceId::from_bytes(row.get(0)?),
        first: seq(row, 1)?,
        run: row.get::<_, Option<[u8; 16]>>(2)?.map(RunId::from_bytes),
        time: Time(row.get(3)?),
        events: text::read(row.get(4)?, events)?,
    })
}
