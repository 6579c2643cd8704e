//! The log: one row per append, found by space and by run.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Params, Row, params};
use toolgate_engine::store::{Append, CommitListener, Log, LogRange, RunWrite, StoreError};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Entry, FORMAT, Seq};
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::column::{bounded, change, first, seq};
use super::fault::Fault;
use super::session::Session;
use super::{READ_AT_ONCE, SqliteStore, idempotency, runs, spaces, usage};
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
    async fn run_log(&self, run: RunId) -> Result<Vec<Entry>, StoreError> {
        let start = |db: &Connection| of_run(db, run, Seq::default(), READ_AT_ONCE);
        let Part { mut entries, cut } = self.readers.short(start)?;
        if let Some(last) = entries.last().filter(|_| cut) {
            let after = last.first;
            let rest = move |db: &Connection| of_run(db, run, after, usize::MAX);
            entries.extend(self.readers.long(rest).await?.entries);
        }
        Ok(entries)
    }
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<Vec<Entry>, StoreError> {
        let start = |db: &Connection| of_space(db, space, range, READ_AT_ONCE);
        let Part { mut entries, cut } = self.readers.short(start)?;
        if let Some(last) = entries.last().filter(|_| cut) {
            let (after, limit) = (last.last(), range.limit - entries.len());
            let range = LogRange {
                after,
                limit,
                ..range
            };
            let rest = move |db: &Connection| of_space(db, space, range, usize::MAX);
            entries.extend(self.readers.long(rest).await?.entries);
        }
        Ok(entries)
    }
}

const INSERT: &str = "
    INSERT INTO log (space, first, last, run, time, format, events) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Writes everything an append asks for and gives the place of its first event. What is most likely to
/// refuse comes first: a refusal before the first change costs nothing.
pub(crate) fn append(session: &mut Session, append: &Append, events: &str) -> Result<Seq, Fault> {
    let connection = &session.connection;
    let before = match append.run {
        // A space that is made here has no log: if it had, its primary key would refuse the row below.
        RunWrite::Create { space: Some(_), .. } => Seq::default(),
        RunWrite::None | RunWrite::Create { .. } | RunWrite::Extend { .. } => {
            session.places.last(connection, append.space)?
        }
    };
    let first = Seq(before.0 + Seq::STRIDE);
    let last = Seq(before.0 + append.events.len() as u64 * Seq::STRIDE);
    let run = write_run(connection, append, last)?;
    if let Some(record) = &append.idempotency {
        idempotency::remember(connection, record)?;
        session.answers.count(connection, record.time)?;
    }
    for used in &append.usage {
        usage::count(connection, used, Day::of(append.time))?;
    }
    let row = params![
        append.space.to_bytes(),
        first.0 as i64,
        last.0 as i64,
        run.map(RunId::to_bytes),
        append.time.0,
        FORMAT,
        events,
    ];
    change(connection, INSERT, row)?;
    session.places.set(append.space, last);
    Ok(first)
}

fn write_run(connection: &Connection, append: &Append, last: Seq) -> Result<Option<RunId>, Fault> {
    match &append.run {
        RunWrite::None => Ok(None),
        RunWrite::Create {
            record,
            space,
            family_max,
        } => {
            if let Some(max) = family_max {
                runs::check_family(connection, record.root, *max)?;
            }
            let lane = match space {
                // A space that is made here has no runs.
                Some(space) => {
                    spaces::create(connection, space)?;
                    0
                }
                None => runs::admit(connection, record)?,
            };
            runs::create(connection, record, last, lane, append)?;
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
            Ok(Some(id))
        }
    }
}

/// Spaces whose last place is remembered.
const PLACES_MAX: usize = 16_384;

/// The last place of each space that was written lately, so that an append need not look for it.
#[derive(Default)]
pub(crate) struct Places(HashMap<SpaceId, Seq>);

const LAST: &str = "SELECT last FROM log WHERE space = ?1 ORDER BY first DESC LIMIT 1";

impl Places {
    fn last(&self, connection: &Connection, space: SpaceId) -> Result<Seq, Fault> {
        if let Some(&last) = self.0.get(&space) {
            return Ok(last);
        }
        let stored = first(connection, LAST, [space.to_bytes()], |row| seq(row, 0))?;
        Ok(stored.unwrap_or_default())
    }

    fn set(&mut self, space: SpaceId, last: Seq) {
        // Starting over costs one look per space, and needs no record of who came last.
        if self.0.len() >= PLACES_MAX {
            self.0.clear();
        }
        self.0.insert(space, last);
    }

    /// After a rollback: what was set may not be so.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT space, first, run, time, format, events FROM log ", $rest)
    };
}

/// Part of a log.
pub(crate) struct Part {
    pub(crate) entries: Vec<Entry>,
    /// There may be more: reading stopped because it had read enough.
    pub(crate) cut: bool,
}

pub(crate) const OF_RUN: &str = select!("WHERE run = ?1 AND first > ?2 ORDER BY first");

/// The log of a run after `after`, until about `bytes_max` are read.
pub(crate) fn of_run(
    connection: &Connection,
    run: RunId,
    after: Seq,
    bytes_max: usize,
) -> Result<Part, Fault> {
    part(
        connection,
        OF_RUN,
        params![run.to_bytes(), bounded(after.0)],
        bytes_max,
    )
}

// Starts at the last entry that begins at or before the cursor: only that one may reach over it.
pub(crate) const OF_SPACE: &str = select!(
    "WHERE space = ?1 AND last > ?2 AND first < ?3
       AND first >= coalesce((SELECT max(first) FROM log WHERE space = ?1 AND first <= ?2), 0)
     ORDER BY first LIMIT ?4"
);

/// The log of a space within `range`, until about `bytes_max` are read.
pub(crate) fn of_space(
    connection: &Connection,
    space: SpaceId,
    range: LogRange,
    bytes_max: usize,
) -> Result<Part, Fault> {
    let after = bounded(range.after.0);
    let before = range.before.map_or(i64::MAX, |before| bounded(before.0));
    let row = params![space.to_bytes(), after, before, bounded(range.limit)];
    part(connection, OF_SPACE, row, bytes_max)
}

fn part(connection: &Connection, sql: &str, params: impl Params, bytes_max: usize) -> Result<Part, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while bytes < bytes_max {
        let Some(row) = rows.next()? else {
            return Ok(Part { entries, cut: false });
        };
        let events = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
        bytes += events.len();
        entries.push(entry(row, events)?);
    }
    Ok(Part { entries, cut: true })
}

fn entry(row: &Row<'_>, events: &str) -> Result<Entry, Fault> {
    Ok(Entry {
        space: SpaceId::from_bytes(row.get(0)?),
        first: seq(row, 1)?,
        run: row.get::<_, Option<[u8; 16]>>(2)?.map(RunId::from_bytes),
        time: Time(row.get(3)?),
        events: text::read(row.get(4)?, events)?,
    })
}
