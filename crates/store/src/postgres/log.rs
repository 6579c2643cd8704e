//! The log: one row per append, found by space and by run.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_postgres::Row;
use toolgate_engine::store::{
    Append, CommitListener, Log, LogOrder, LogPage, LogRange, StoreError, StoredDefinition,
};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;
use uuid::Uuid;

use super::attempts::read;
use super::column::{Id, bounded, first, get, id, number, optional_id, seq, small};
use super::fault::Fault;
use super::session::Db;
use super::{PostgresStore, definitions};
use crate::text;

#[async_trait]
impl Log for PostgresStore {
    fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.listeners.add(listener);
    }

    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        crate::check(&append);
        self.writer.append(append).await
    }
    async fn run_log(&self, run: RunId, range: LogRange) -> Result<LogPage, StoreError> {
        let sql = match range.order {
            LogOrder::OldestFirst => OF_RUN,
            LogOrder::NewestFirst => OF_RUN_BACKWARDS,
        };
        read!(self, db => page(db, sql, run.uuid(), range))
    }
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<LogPage, StoreError> {
        let sql = match range.order {
            LogOrder::OldestFirst => OF_SPACE,
            LogOrder::NewestFirst => OF_SPACE_BACKWARDS,
        };
        read!(self, db => page(db, sql, space.uuid(), range))
    }
    async fn space_tail(&self, space: SpaceId) -> Result<Seq, StoreError> {
        read!(self, db => tail(db, space))
    }
    async fn definitions(
        &self,
        project: ProjectId,
        hashes: &[String],
    ) -> Result<Vec<StoredDefinition>, StoreError> {
        read!(self, db => definitions::of(db, project, hashes))
    }
}

pub(super) const TAIL: &str = "SELECT last FROM heads WHERE space = $1";

async fn tail(db: &Db<'_>, space: SpaceId) -> Result<Seq, Fault> {
    let last = first(db, TAIL, &[&space.uuid()], |row| seq(row, 0)).await?;
    Ok(last.unwrap_or_default())
}

// Begins with the last entry that begins at or before the cursor, if it extends past it. Those behind are compared as pairs: as
// places of one space, or one run, the planner would take them for few, and read and sort all of them for one page. An entry is
// left out if those before it have as many bytes as the page may have; `found` counts them all the same.
macro_rules! within {
    ($of:literal, $order:literal) => {
        concat!(
            "SELECT space, first, run, time, format, events, found FROM (
                SELECT *, count(*) OVER () AS found,
                       sum(octet_length(events)) OVER (ORDER BY first ",
            $order,
            " ROWS UNBOUNDED PRECEDING) - octet_length(events) AS bytes_before
                FROM (SELECT * FROM (
                        SELECT * FROM (
                            SELECT * FROM log WHERE ",
            $of,
            " = $1 AND first <= $2 ORDER BY first DESC LIMIT 1) AS before
                        WHERE last > $2 AND first < $3
                        UNION ALL
                        (SELECT * FROM log WHERE ",
            $of,
            " IS NOT NULL AND (",
            $of,
            ", first) > ($1, $2) AND (",
            $of,
            ", first) < ($1, $3) ORDER BY ",
            $of,
            " ",
            $order,
            ", first ",
            $order,
            " LIMIT $4)) AS either
                      ORDER BY first ",
            $order,
            " LIMIT $4) AS page) AS sized
             WHERE bytes_before < greatest($5, 1::bigint)
             ORDER BY first ",
            $order
        )
    };
}

pub(super) const OF_RUN: &str = within!("run", "ASC");
pub(super) const OF_RUN_BACKWARDS: &str = within!("run", "DESC");
pub(super) const OF_SPACE: &str = within!("space", "ASC");
pub(super) const OF_SPACE_BACKWARDS: &str = within!("space", "DESC");

async fn page(db: &Db<'_>, sql: &str, of: Uuid, range: LogRange) -> Result<LogPage, Fault> {
    let after = bounded(range.after.0);
    let before = range.before.map_or(i64::MAX, |before| bounded(before.0));
    // One more than requested, to know whether there is a next page.
    let limit = bounded(range.limit.saturating_add(1));
    let rows = db
        .query(sql, &[&of, &after, &before, &limit, &bounded(range.bytes)])
        .await?;
    let mut page = LogPage::default();
    for row in rows.iter().take(range.limit) {
        let events: &str = row.try_get(5)?;
        page.bytes += events.len();
        page.entries.push(entry(row, events)?);
    }
    let found = rows.first().map(|row| number(row, 6)).transpose()?;
    page.more = found.unwrap_or_default() > page.entries.len() as u64;
    Ok(page)
}

/// An entry from a row with space, first place, run, time and format.
pub(super) fn entry(row: &Row, events: &str) -> Result<Entry, Fault> {
    Ok(Entry {
        space: id(row, 0)?,
        first: seq(row, 1)?,
        run: optional_id(row, 2)?,
        time: Time(get(row, 3)?),
        events: text::read(small(row, 4)?, events)?,
    })
}
