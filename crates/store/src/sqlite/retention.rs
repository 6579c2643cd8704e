//! Deleting: runs, spaces, people, and entries of logs. Each write is small, so that appends do not wait behind it.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use toolgate_engine::records::Owner;
use toolgate_engine::store::{
    Deleted, FoundEntries, LogPlace, LooseSpaces, Purged, Retention, RunRecord, StoreError, Trim, TrimLimit,
    Trimmed,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::column::{bounded, change, first, rows, seq};
use super::fault::Fault;
use super::{SqliteStore, consumption, log, records, runs};
use crate::text;

#[async_trait]
impl Retention for SqliteStore {
    async fn log_floor(&self, space: SpaceId) -> Result<Seq, StoreError> {
        self.readers.short(|db| floor(db, space))
    }
    async fn log_rewrites(&self, space: SpaceId) -> Result<u64, StoreError> {
        self.readers.short(|db| rewrites(db, space))
    }
    async fn was_deleted(&self, project: ProjectId, deleted: Deleted) -> Result<bool, StoreError> {
        self.readers.short(|db| was_deleted(db, project, deleted))
    }
    async fn ended_trees(
        &self,
        project: ProjectId,
        before: Time,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.readers
            .long(move |db| runs::ended_trees(db, project, before, limit))
            .await
    }
    async fn run_bytes(&self, run: RunId) -> Result<u64, StoreError> {
        self.readers.long(move |db| run_bytes(db, run)).await
    }
    async fn loose_spaces(
        &self,
        project: ProjectId,
        before: Time,
        after: SpaceId,
        count: usize,
    ) -> Result<LooseSpaces, StoreError> {
        self.readers
            .long(move |db| loose_spaces(db, project, before, after, count))
            .await
    }
    async fn loose_entries(
        &self,
        space: SpaceId,
        before: Time,
        after: (Time, Seq),
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.readers
            .long(move |db| loose_entries(db, space, before, after, limit))
            .await
    }
    async fn remove_runs(&self, project: ProjectId, runs: Vec<RunId>, now: Time) -> Result<(), StoreError> {
        self.writer
            .write(move |db| remove_runs(db, project, &runs, now))
            .await
    }
    async fn remove_space(&self, project: ProjectId, space: SpaceId, now: Time) -> Result<(), StoreError> {
        self.writer
            .write(move |db| remove_space(db, project, space, now))
            .await
    }
    async fn trim_log(&self, trim: Trim, limit: TrimLimit) -> Result<Trimmed, StoreError> {
        let (trimmed, space) = self.writer.write(move |db| trim_log(db, trim, limit)).await?;
        // What was counted of its log is no longer so.
        space.iter().for_each(|space| self.log_sizes.forget(*space));
        Ok(trimmed)
    }
    async fn remove_records(
        &self,
        project: ProjectId,
        owner: Owner,
        limit: usize,
    ) -> Result<Purged, StoreError> {
        self.writer
            .write(move |db| remove_records(db, project, owner, limit))
            .await
    }
    async fn remove_usage(&self, project: ProjectId, before: Day) -> Result<u64, StoreError> {
        self.writer
            .write(move |db| {
                let removed = change(db, REMOVE_USAGE, params![project.to_bytes(), before.0])?;
                Ok(removed as u64)
            })
            .await
    }
    async fn remove_consumption(
        &self,
        project: ProjectId,
        before: Day,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.writer
            .write(move |db| consumption::remove(db, project, before, limit))
            .await
    }
    async fn unlink_consumption(
        &self,
        project: ProjectId,
        user: EntityId,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.writer
            .write(move |db| consumption::unlink(db, project, user, limit))
            .await
    }
    async fn forget_nodes(&self, before: Time) -> Result<u64, StoreError> {
        self.writer
            .write(move |db| Ok(change(db, FORGET_NODES, [before.0])? as u64))
            .await
    }
    async fn unlink_runs(&self, project: ProjectId, user: EntityId, limit: usize) -> Result<u64, StoreError> {
        self.writer
            .write(move |db| {
                let values = params![project.to_bytes(), user.to_bytes(), bounded(limit)];
                Ok(change(db, UNLINK_RUNS, values)? as u64)
            })
            .await
    }
    async fn remove_entity(
        &self,
        project: ProjectId,
        entity: EntityId,
        now: Time,
    ) -> Result<bool, StoreError> {
        self.writer
            .write(move |db| remove_entity(db, project, entity, now))
            .await
    }
    async fn find_entries(
        &self,
        project: ProjectId,
        text: &str,
        after: LogPlace,
        rows: usize,
    ) -> Result<FoundEntries, StoreError> {
        let text = text.to_owned();
        self.readers
            .long(move |db| find_entries(db, project, &text, after, rows))
            .await
    }
    async fn rewrite_entry(&self, before: Entry, events: Vec<Event>) -> Result<(), StoreError> {
        self.writer
            .write(move |db| rewrite_entry(db, &before, &events))
            .await
    }
    async fn reclaim(&self, pages: u32) -> Result<u32, StoreError> {
        let reclaimed = self.writer.write(move |db| reclaim(db, pages)).await?;
        if reclaimed < pages {
            self.writer.empty_log().await?;
        }
        Ok(reclaimed)
    }
}

pub(crate) const FLOOR: &str = "SELECT floor FROM log_floors WHERE space = ?1";

/// The last place of a space's log that was deleted.
pub(crate) fn floor(connection: &Connection, space: SpaceId) -> Result<Seq, Fault> {
    let floor = first(connection, FLOOR, [space.to_bytes()], |row| seq(row, 0))?;
    Ok(floor.unwrap_or_default())
}

pub(crate) const REWRITES: &str = "SELECT rewrites FROM log_floors WHERE space = ?1";

fn rewrites(connection: &Connection, space: SpaceId) -> Result<u64, Fault> {
    let rewrites = first(connection, REWRITES, [space.to_bytes()], |row| {
        Ok(row.get::<_, i64>(0)? as u64)
    })?;
    Ok(rewrites.unwrap_or_default())
}

const WAS_DELETED: &str = "SELECT 1 FROM deleted WHERE id = ?1 AND project = ?2";

fn was_deleted(connection: &Connection, project: ProjectId, deleted: Deleted) -> Result<bool, Fault> {
    let key = params![deleted.to_bytes(), project.to_bytes()];
    let found = first(connection, WAS_DELETED, key, |_| Ok(()))?;
    Ok(found.is_some())
}

pub(crate) const IS_DELETED: &str = "SELECT 1 FROM deleted WHERE id = ?1";

fn is_deleted(connection: &Connection, deleted: Deleted) -> Result<bool, Fault> {
    let found = first(connection, IS_DELETED, [deleted.to_bytes()], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Rejects what would begin in a space that was deleted.
pub(crate) fn check_space(connection: &Connection, space: SpaceId) -> Result<(), Fault> {
    match is_deleted(connection, Deleted::Space(space))? {
        true => Err(StoreError::SpaceDeleted.into()),
        false => Ok(()),
    }
}

/// Rejects what would begin for a person who was deleted.
pub(crate) fn check_people(connection: &Connection, people: &[EntityId]) -> Result<(), Fault> {
    for person in people {
        if is_deleted(connection, Deleted::Entity(*person))? {
            return Err(StoreError::EntityDeleted.into());
        }
    }
    Ok(())
}

/// The person, unless they were deleted.
pub(crate) fn unless_deleted(
    connection: &Connection,
    person: Option<EntityId>,
) -> Result<Option<EntityId>, Fault> {
    match person {
        Some(person) if is_deleted(connection, Deleted::Entity(person))? => Ok(None),
        other => Ok(other),
    }
}

const REMEMBER: &str = "
    INSERT INTO deleted (id, project, time) VALUES (?1, ?2, ?3)
    ON CONFLICT (id) DO UPDATE SET time = excluded.time";
const FORGET: &str = "DELETE FROM deleted WHERE time < ?1";

fn remember(connection: &Connection, project: ProjectId, deleted: Deleted, now: Time) -> Result<(), Fault> {
    change(
        connection,
        REMEMBER,
        params![deleted.to_bytes(), project.to_bytes(), now.0],
    )?;
    Ok(())
}

fn forget_old(connection: &Connection, now: Time) -> Result<(), Fault> {
    change(connection, FORGET, [crate::deleted_known_since(now).0])?;
    Ok(())
}

const PROJECT_OF_RUN: &str = "SELECT project, open FROM runs WHERE id = ?1";
const REMOVE_RUN: &str = "DELETE FROM runs WHERE id = ?1";

fn remove_runs(connection: &Connection, project: ProjectId, runs: &[RunId], now: Time) -> Result<(), Fault> {
    let mut own = Vec::with_capacity(runs.len());
    for run in runs {
        let found = first(connection, PROJECT_OF_RUN, [run.to_bytes()], |row| {
            Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, bool>(1)?))
        })?;
        match found {
            Some((of, _)) if of != project.to_bytes() => {}
            Some((_, true)) => return Err(StoreError::Conflict.into()),
            Some((_, false)) | None => own.push(*run),
        }
    }
    for run in own {
        change(connection, REMOVE_RUN, [run.to_bytes()])?;
        remember(connection, project, Deleted::Run(run), now)?;
    }
    forget_old(connection, now)
}

const PROJECT_OF_SPACE: &str = "SELECT project FROM spaces WHERE id = ?1";
const REMOVE_SPACE: &str = "DELETE FROM spaces WHERE id = ?1";
const REMOVE_MEMBERS: &str = "DELETE FROM members WHERE space = ?1";

fn remove_space(connection: &Connection, project: ProjectId, space: SpaceId, now: Time) -> Result<(), Fault> {
    let of = first(connection, PROJECT_OF_SPACE, [space.to_bytes()], |row| {
        Ok(row.get::<_, [u8; 16]>(0)?)
    })?;
    if of.is_some_and(|of| of != project.to_bytes()) {
        return Ok(());
    }
    change(connection, REMOVE_SPACE, [space.to_bytes()])?;
    change(connection, REMOVE_MEMBERS, [space.to_bytes()])?;
    remember(connection, project, Deleted::Space(space), now)?;
    forget_old(connection, now)
}

/// An entry that is to be deleted.
struct Doomed {
    space: SpaceId,
    first: Seq,
    last: Seq,
    bytes: u64,
}

macro_rules! doomed {
    ($which:literal) => {
        concat!(
            "SELECT space, first, last, octet_length(events) FROM log WHERE ",
            $which,
            " ORDER BY first LIMIT ?2"
        )
    };
}
pub(crate) const OF_RUN: &str = doomed!("run = ?1");
pub(crate) const OF_SPACE: &str = doomed!("space = ?1");
// In the order of the index of these entries, which is that of their places while clocks agree.
pub(crate) const LOOSE: &str = "
    SELECT space, first, last, octet_length(events) FROM log
    WHERE space = ?1 AND run IS NULL AND time < ?3 ORDER BY time, first LIMIT ?2";

const DELETE_ENTRY: &str = "DELETE FROM log WHERE space = ?1 AND first = ?2";
const RAISE_FLOOR: &str = "
    INSERT INTO log_floors (space, floor, rewrites) VALUES (?1, ?2, 1)
    ON CONFLICT (space) DO UPDATE SET floor = max(floor, excluded.floor), rewrites = rewrites + 1";
const REMOVE_FLOOR: &str = "DELETE FROM log_floors WHERE space = ?1";

fn trim_log(
    connection: &Connection,
    trim: Trim,
    limit: TrimLimit,
) -> Result<(Trimmed, Option<SpaceId>), Fault> {
    // One more than may be deleted, to know whether there are more.
    let count = bounded(limit.entries.saturating_add(1));
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Doomed {
            space: SpaceId::from_bytes(row.get(0)?),
            first: seq(row, 1)?,
            last: seq(row, 2)?,
            bytes: row.get::<_, i64>(3)? as u64,
        })
    };
    let found = match trim {
        Trim::Run(run) => rows(connection, OF_RUN, params![run.to_bytes(), count], read)?,
        Trim::Space(space) => rows(connection, OF_SPACE, params![space.to_bytes(), count], read)?,
        Trim::Loose(space, before) => rows(
            connection,
            LOOSE,
            params![space.to_bytes(), count, before.0],
            read,
        )?,
    };
    let (mut trimmed, mut last) = (Trimmed::default(), None);
    for doomed in &found {
        if trimmed.entries >= limit.entries as u64 || trimmed.bytes >= limit.bytes as u64 {
            trimmed.more = true;
            break;
        }
        change(
            connection,
            DELETE_ENTRY,
            params![doomed.space.to_bytes(), doomed.first.0 as i64],
        )?;
        trimmed.entries += 1;
        trimmed.bytes += doomed.bytes;
        let highest = last.map_or(doomed.last, |(_, last): (_, Seq)| last.max(doomed.last));
        last = Some((doomed.space, highest));
    }
    match (trim, last) {
        (Trim::Space(space), _) if !trimmed.more => {
            // Nothing comes behind it any more: the space is remembered as deleted.
            change(connection, REMOVE_FLOOR, [space.to_bytes()])?;
        }
        (Trim::Run(_) | Trim::Loose(..) | Trim::Space(_), Some((space, last))) => {
            change(connection, RAISE_FLOOR, params![space.to_bytes(), last.0 as i64])?;
        }
        (_, None) => {}
    }
    Ok((trimmed, last.map(|(space, _)| space)))
}

pub(crate) const RUN_BYTES: &str = "SELECT coalesce(sum(octet_length(events)), 0) FROM log WHERE run = ?1";

fn run_bytes(connection: &Connection, run: RunId) -> Result<u64, Fault> {
    let bytes = first(connection, RUN_BYTES, [run.to_bytes()], |row| {
        Ok(row.get::<_, i64>(0)? as u64)
    })?;
    Ok(bytes.unwrap_or_default())
}

pub(crate) const LOOSE_SPACES: &str = "
    SELECT id, EXISTS (SELECT 1 FROM log WHERE log.space = looked.id AND log.run IS NULL AND log.time < ?2)
    FROM (SELECT id FROM spaces INDEXED BY spaces_of_project WHERE project = ?1 AND id > ?3 ORDER BY id LIMIT ?4) AS looked
    ORDER BY id";

pub(super) fn loose_spaces(
    connection: &Connection,
    project: ProjectId,
    before: Time,
    after: SpaceId,
    count: usize,
) -> Result<LooseSpaces, Fault> {
    let values = params![project.to_bytes(), before.0, after.to_bytes(), bounded(count)];
    let looked = rows(connection, LOOSE_SPACES, values, |row| {
        Ok((SpaceId::from_bytes(row.get(0)?), row.get::<_, bool>(1)?))
    })?;
    let last = looked.last().filter(|_| looked.len() >= count);
    Ok(LooseSpaces {
        next: last.map(|(space, _)| *space),
        spaces: looked
            .iter()
            .filter(|(_, is_loose)| *is_loose)
            .map(|(space, _)| *space)
            .collect(),
    })
}

pub(crate) const LOOSE_ENTRIES: &str = "
    SELECT space, first, run, time, format, events FROM log
    WHERE space = ?1 AND run IS NULL AND time < ?2 AND (time, first) > (?3, ?4) ORDER BY time, first LIMIT ?5";

pub(super) fn loose_entries(
    connection: &Connection,
    space: SpaceId,
    before: Time,
    (time, place): (Time, Seq),
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    let values = params![
        space.to_bytes(),
        before.0,
        time.0,
        bounded(place.0),
        bounded(limit)
    ];
    rows(connection, LOOSE_ENTRIES, values, |row| {
        let events = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
        log::entry(row, events)
    })
}

const OWNED: &str = "SELECT number, kind FROM records WHERE project = ?1 AND owner = ?2 LIMIT ?3";
const REMOVE_RECORD: &str = "DELETE FROM records WHERE number = ?1";
const REMOVE_SETS: &str = "DELETE FROM record_sets WHERE project = ?1 AND owner = ?2 AND records = 0";

fn remove_records(
    connection: &Connection,
    project: ProjectId,
    owner: Owner,
    limit: usize,
) -> Result<Purged, Fault> {
    let key = params![project.to_bytes(), records::owner(owner), bounded(limit)];
    let found = rows(connection, OWNED, key, |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let (mut purged, is_all) = (Purged::new(), found.len() < limit);
    for (number, kind) in found {
        change(connection, REMOVE_RECORD, [number])?;
        *purged.entry(kind).or_default() += 1;
    }
    if is_all {
        let key = params![project.to_bytes(), records::owner(owner)];
        change(connection, REMOVE_SETS, key)?;
    }
    Ok(purged)
}

pub(crate) const REMOVE_USAGE: &str = "DELETE FROM tool_usage WHERE project = ?1 AND day < ?2";

// Whoever holds a lease keeps its row, so that its runs are found.
pub(crate) const FORGET_NODES: &str = "
    DELETE FROM nodes WHERE until < ?1
    AND NOT EXISTS (SELECT 1 FROM runs INDEXED BY runs_open WHERE runs.open = 1 AND runs.node = nodes.id)";

pub(crate) const UNLINK_RUNS: &str = "
    UPDATE runs SET user = NULL, title = NULL
    WHERE id IN (SELECT id FROM runs INDEXED BY runs_of_user WHERE project = ?1 AND user = ?2 LIMIT ?3)";

const REMOVE_ENTITY: &str = "DELETE FROM entities WHERE id = ?1";
const PROJECT_OF_ENTITY: &str = "SELECT project FROM entities WHERE id = ?1";

fn remove_entity(
    connection: &Connection,
    project: ProjectId,
    entity: EntityId,
    now: Time,
) -> Result<bool, Fault> {
    let of = first(connection, PROJECT_OF_ENTITY, [entity.to_bytes()], |row| {
        Ok(row.get::<_, [u8; 16]>(0)?)
    })?;
    if of.is_some_and(|of| of != project.to_bytes()) {
        return Ok(false);
    }
    change(connection, REMOVE_ENTITY, [entity.to_bytes()])?;
    remember(connection, project, Deleted::Entity(entity), now)?;
    forget_old(connection, now)?;
    Ok(of.is_some())
}

// Space by space: in one statement SQLite would sort the whole log of each.
pub(crate) const SPACES_FROM: &str = "
    SELECT id FROM spaces INDEXED BY spaces_of_project WHERE project = ?1 AND id >= ?2 ORDER BY id";
pub(crate) const ENTRIES_OF: &str = "
    SELECT space, first, run, time, format, events FROM log WHERE space = ?1 AND first > ?2 ORDER BY first LIMIT ?3";

pub(super) fn find_entries(
    connection: &Connection,
    project: ProjectId,
    wanted: &str,
    after: LogPlace,
    limit: usize,
) -> Result<FoundEntries, Fault> {
    let mut spaces = connection.prepare_cached(SPACES_FROM)?;
    let mut spaces = spaces.query(params![project.to_bytes(), after.space.to_bytes()])?;
    let mut statement = connection.prepare_cached(ENTRIES_OF)?;
    let (mut entries, mut seen, mut last) = (Vec::new(), 0, None);
    while seen < limit
        && let Some(row) = spaces.next()?
    {
        let space = SpaceId::from_bytes(row.get(0)?);
        let from = if space == after.space { after.seq } else { Seq(0) };
        let mut rows = statement.query(params![space.to_bytes(), bounded(from.0), bounded(limit - seen)])?;
        while let Some(row) = rows.next()? {
            seen += 1;
            let events = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
            last = Some(LogPlace {
                space,
                seq: seq(row, 1)?,
            });
            if events.contains(wanted) {
                entries.push(log::entry(row, events)?);
            }
        }
    }
    let next = last.filter(|_| seen >= limit);
    Ok(FoundEntries { entries, next })
}

const ENTRY: &str = "SELECT format, events FROM log WHERE space = ?1 AND first = ?2";
const REWRITE: &str = "UPDATE log SET format = ?3, events = ?4 WHERE space = ?1 AND first = ?2";

fn rewrite_entry(connection: &Connection, before: &Entry, events: &[Event]) -> Result<(), Fault> {
    let key = params![before.space.to_bytes(), before.first.0 as i64];
    let stored = first(connection, ENTRY, key, |row| {
        let events = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        Ok(text::read(row.get(0)?, events)?)
    })?;
    match stored {
        None => Ok(()),
        Some(stored) if stored == before.events => {
            let row = params![
                before.space.to_bytes(),
                before.first.0 as i64,
                text::format(events),
                text::write(events),
            ];
            change(connection, REWRITE, row)?;
            // Nothing was deleted as far as places go.
            change(connection, RAISE_FLOOR, params![before.space.to_bytes(), 0])?;
            Ok(())
        }
        Some(_) => Err(StoreError::Conflict.into()),
    }
}

/// Moves pages from the end of the file into the room of deleted ones. A database of an earlier version keeps the room for
/// later writes, until `toolgate store vacuum` has changed that.
fn reclaim(connection: &Connection, pages: u32) -> Result<u32, Fault> {
    let free = |connection: &Connection| -> Result<u32, Fault> {
        Ok(connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?)
    };
    let before = free(connection)?;
    if before == 0 {
        return Ok(0);
    }
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    // One row per page.
    while rows.next()?.is_some() {}
    drop(rows);
    drop(statement);
    Ok(before.saturating_sub(free(connection)?))
}
