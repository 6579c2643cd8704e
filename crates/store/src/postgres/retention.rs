//! Deleting: runs, spaces, people, and entries of logs. Each write is a transaction of its own, and small.

use async_trait::async_trait;
use toolgate_engine::records::Owner;
use toolgate_engine::store::{
    Deleted, FoundEntries, LogPlace, LooseSpaces, Purged, Retention, RunRecord, StoreError, Trim, TrimLimit,
    Trimmed,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;
use uuid::Uuid;

use super::attempts::{read, write};
use super::column::{Id, Param, bounded, change, first, get, id, number, rows, seq, small, string, uuids};
use super::fault::Fault;
use super::session::Db;
use super::{PostgresStore, consumption, log, people, records, runs};
use crate::text;

#[async_trait]
impl Retention for PostgresStore {
    async fn log_floor(&self, space: SpaceId) -> Result<Seq, StoreError> {
        read!(self, db => floor(db, space))
    }
    async fn log_rewrites(&self, space: SpaceId) -> Result<u64, StoreError> {
        read!(self, db => rewrites(db, space))
    }
    async fn was_deleted(&self, project: ProjectId, deleted: Deleted) -> Result<bool, StoreError> {
        read!(self, db => was_deleted(db, project, deleted))
    }
    async fn ended_trees(
        &self,
        project: ProjectId,
        before: Time,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        read!(self, db => runs::ended_trees(db, project, before, limit))
    }
    async fn run_bytes(&self, run: RunId) -> Result<u64, StoreError> {
        read!(self, db => run_bytes(db, run))
    }
    async fn loose_spaces(
        &self,
        project: ProjectId,
        before: Time,
        after: SpaceId,
        count: usize,
    ) -> Result<LooseSpaces, StoreError> {
        read!(self, db => loose_spaces(db, project, before, after, count))
    }
    async fn loose_entries(
        &self,
        space: SpaceId,
        before: Time,
        after: (Time, Seq),
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        read!(self, db => loose_entries(db, space, before, after, limit))
    }
    async fn remove_runs(&self, project: ProjectId, runs: Vec<RunId>, now: Time) -> Result<(), StoreError> {
        write!(self, db => remove_runs(db, project, &runs, now))
    }
    async fn remove_space(&self, project: ProjectId, space: SpaceId, now: Time) -> Result<(), StoreError> {
        write!(self, db => remove_space(db, project, space, now))
    }
    async fn trim_log(&self, trim: Trim, limit: TrimLimit) -> Result<Trimmed, StoreError> {
        let (trimmed, space) = write!(self, db => trim_log(db, trim, limit))?;
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
        write!(self, db => remove_records(db, project, owner, limit))
    }
    async fn remove_usage(&self, project: ProjectId, before: Day) -> Result<u64, StoreError> {
        write!(self, db => remove_usage(db, project, before))
    }
    async fn remove_consumption(
        &self,
        project: ProjectId,
        before: Day,
        limit: usize,
    ) -> Result<u64, StoreError> {
        write!(self, db => consumption::remove(db, project, before, limit))
    }
    async fn unlink_consumption(
        &self,
        project: ProjectId,
        user: EntityId,
        limit: usize,
    ) -> Result<u64, StoreError> {
        write!(self, db => consumption::unlink(db, project, user, limit))
    }
    async fn forget_nodes(&self, before: Time) -> Result<u64, StoreError> {
        write!(self, db => forget_nodes(db, before))
    }
    async fn unlink_runs(&self, project: ProjectId, user: EntityId, limit: usize) -> Result<u64, StoreError> {
        write!(self, db => unlink_runs(db, project, user, limit))
    }
    async fn remove_entity(
        &self,
        project: ProjectId,
        entity: EntityId,
        now: Time,
    ) -> Result<bool, StoreError> {
        write!(self, db => people::remove(db, project, entity, now))
    }
    async fn find_entries(
        &self,
        project: ProjectId,
        text: &str,
        after: LogPlace,
        rows: usize,
    ) -> Result<FoundEntries, StoreError> {
        read!(self, db => find_entries(db, project, text, after, rows))
    }
    async fn rewrite_entry(&self, before: Entry, events: Vec<Event>) -> Result<(), StoreError> {
        write!(self, db => rewrite_entry(db, &before, &events))
    }
    async fn reclaim(&self, _: u32) -> Result<u32, StoreError> {
        // Autovacuum makes the room of deleted rows free for later ones.
        Ok(0)
    }
}

const FLOOR: &str = "SELECT floor FROM log_floors WHERE space = $1";

async fn floor(db: &Db<'_>, space: SpaceId) -> Result<Seq, Fault> {
    let floor = first(db, FLOOR, &[&space.uuid()], |row| seq(row, 0)).await?;
    Ok(floor.unwrap_or_default())
}

const REWRITES: &str = "SELECT rewrites FROM log_floors WHERE space = $1";

async fn rewrites(db: &Db<'_>, space: SpaceId) -> Result<u64, Fault> {
    let rewrites = first(db, REWRITES, &[&space.uuid()], |row| number(row, 0)).await?;
    Ok(rewrites.unwrap_or_default())
}

const WAS_DELETED: &str = "SELECT 1::bigint FROM deleted WHERE id = $1 AND project = $2";

async fn was_deleted(db: &Db<'_>, project: ProjectId, deleted: Deleted) -> Result<bool, Fault> {
    let key = deleted.to_bytes().to_vec();
    let found = first(db, WAS_DELETED, &[&key, &project.uuid()], |_| Ok(())).await?;
    Ok(found.is_some())
}

/// Which of these spaces were deleted.
pub(super) const DELETED_SPACES: &str = "
    SELECT space FROM unnest($1::uuid[]) AS begun (space)
    WHERE EXISTS (SELECT 1 FROM deleted WHERE id = '\\x73'::bytea || uuid_send(begun.space))";

const REMEMBER: &str = "
    INSERT INTO deleted (id, project, time) SELECT id, $2, $3 FROM unnest($1::bytea[]) AS new (id) ORDER BY id
    ON CONFLICT (id) DO UPDATE SET time = excluded.time";
const FORGET: &str = "DELETE FROM deleted WHERE time < $1";

pub(super) async fn remember(
    db: &Db<'_>,
    project: ProjectId,
    deleted: impl Iterator<Item = Deleted>,
    now: Time,
) -> Result<(), Fault> {
    let ids: Vec<Vec<u8>> = deleted.map(|deleted| deleted.to_bytes().to_vec()).collect();
    change(db, REMEMBER, &[&ids, &project.uuid(), &now.0]).await?;
    change(db, FORGET, &[&crate::deleted_known_since(now).0]).await?;
    Ok(())
}

const LOCK_RUNS: &str = "
    SELECT id, project, open FROM runs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE";
const REMOVE_RUNS: &str = "DELETE FROM runs WHERE id = ANY ($1::uuid[])";

async fn remove_runs(db: &Db<'_>, project: ProjectId, runs: &[RunId], now: Time) -> Result<(), Fault> {
    let named = uuids(runs.iter().copied());
    let found = rows(db, LOCK_RUNS, &[&named], |row| {
        Ok((
            id::<RunId>(row, 0)?,
            id::<ProjectId>(row, 1)?,
            get::<bool>(row, 2)?,
        ))
    })
    .await?;
    if found.iter().any(|(_, of, open)| *of == project && *open) {
        return Err(StoreError::Conflict.into());
    }
    let is_foreign = |run: &RunId| found.iter().any(|(id, of, _)| id == run && *of != project);
    let own: Vec<RunId> = runs.iter().copied().filter(|run| !is_foreign(run)).collect();
    change(db, REMOVE_RUNS, &[&uuids(own.iter().copied())]).await?;
    remember(db, project, own.into_iter().map(Deleted::Run), now).await
}

// Whoever appends locks the head first, so what was begun before is seen, and what begins later sees the deletion.
const LOCK_HEAD: &str = "SELECT last FROM heads WHERE space = $1 FOR UPDATE";
const PROJECT_OF_SPACE: &str = "SELECT project FROM spaces WHERE id = $1 FOR UPDATE";
const REMOVE_SPACE: &str = "DELETE FROM spaces WHERE id = $1";
const REMOVE_MEMBERS: &str = "DELETE FROM members WHERE space = $1";

async fn remove_space(db: &Db<'_>, project: ProjectId, space: SpaceId, now: Time) -> Result<(), Fault> {
    let key: [Param<'_>; 1] = [&space.uuid()];
    db.query(LOCK_HEAD, &key).await?;
    let of = first(db, PROJECT_OF_SPACE, &key, |row| id::<ProjectId>(row, 0)).await?;
    if of.is_some_and(|of| of != project) {
        return Ok(());
    }
    change(db, REMOVE_SPACE, &key).await?;
    change(db, REMOVE_MEMBERS, &key).await?;
    remember(db, project, std::iter::once(Deleted::Space(space)), now).await
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
            "SELECT space, first, last, octet_length(events)::bigint FROM log WHERE ",
            $which,
            " ORDER BY first LIMIT $2"
        )
    };
}
pub(super) const OF_RUN: &str = doomed!("run = $1");
pub(super) const OF_SPACE: &str = doomed!("space = $1");
// In the order of the index of these entries, which is that of their places while clocks agree.
const LOOSE: &str = "
    SELECT space, first, last, octet_length(events)::bigint FROM log
    WHERE space = $1 AND run IS NULL AND time < $3 ORDER BY time, first LIMIT $2";

const DELETE_ENTRIES: &str = "DELETE FROM log WHERE space = $1 AND first = ANY ($2::bigint[])";
const RAISE_FLOOR: &str = "
    INSERT INTO log_floors AS known (space, floor, rewrites) VALUES ($1, $2, 1)
    ON CONFLICT (space) DO UPDATE SET floor = greatest(known.floor, excluded.floor), rewrites = known.rewrites + 1";
const REMOVE_FLOOR: &str = "DELETE FROM log_floors WHERE space = $1";
const REMOVE_HEAD: &str = "DELETE FROM heads WHERE space = $1";

async fn trim_log(db: &Db<'_>, trim: Trim, limit: TrimLimit) -> Result<(Trimmed, Option<SpaceId>), Fault> {
    // One more than may be deleted, to know whether there are more.
    let count = bounded(limit.entries.saturating_add(1));
    let read = |row: &tokio_postgres::Row| {
        Ok(Doomed {
            space: id(row, 0)?,
            first: seq(row, 1)?,
            last: seq(row, 2)?,
            bytes: number(row, 3)?,
        })
    };
    let found = match trim {
        Trim::Run(run) => rows(db, OF_RUN, &[&run.uuid(), &count], read).await?,
        Trim::Space(space) => rows(db, OF_SPACE, &[&space.uuid(), &count], read).await?,
        Trim::Loose(space, before) => rows(db, LOOSE, &[&space.uuid(), &count, &before.0], read).await?,
    };
    let (mut trimmed, mut places, mut last) = (Trimmed::default(), Vec::new(), None);
    for doomed in &found {
        if trimmed.entries >= limit.entries as u64 || trimmed.bytes >= limit.bytes as u64 {
            trimmed.more = true;
            break;
        }
        trimmed.entries += 1;
        trimmed.bytes += doomed.bytes;
        places.push(doomed.first.0 as i64);
        let highest = last.map_or(doomed.last, |(_, last): (_, Seq)| last.max(doomed.last));
        last = Some((doomed.space, highest));
    }
    if let Some((space, last)) = last {
        // Before the entries are gone, so that two that trim the same space do it one after the other.
        change(db, RAISE_FLOOR, &[&space.uuid(), &(last.0 as i64)]).await?;
        change(db, DELETE_ENTRIES, &[&space.uuid(), &places]).await?;
    }
    if let Trim::Space(space) = trim
        && !trimmed.more
    {
        // Nothing comes behind it any more: the space is remembered as deleted.
        change(db, REMOVE_FLOOR, &[&space.uuid()]).await?;
        change(db, REMOVE_HEAD, &[&space.uuid()]).await?;
    }
    Ok((trimmed, last.map(|(space, _)| space)))
}

pub(super) const RUN_BYTES: &str =
    "SELECT coalesce(sum(octet_length(events)), 0)::bigint FROM log WHERE run = $1";

async fn run_bytes(db: &Db<'_>, run: RunId) -> Result<u64, Fault> {
    let bytes = first(db, RUN_BYTES, &[&run.uuid()], |row| number(row, 0)).await?;
    Ok(bytes.unwrap_or_default())
}

pub(super) const LOOSE_SPACES: &str = "
    SELECT id, EXISTS (SELECT 1 FROM log WHERE log.space = looked.id AND log.run IS NULL AND log.time < $2)
    FROM (SELECT id FROM spaces WHERE project = $1 AND id > $3 ORDER BY id LIMIT $4) AS looked
    ORDER BY id";

async fn loose_spaces(
    db: &Db<'_>,
    project: ProjectId,
    before: Time,
    after: SpaceId,
    count: usize,
) -> Result<LooseSpaces, Fault> {
    let key: [Param<'_>; 4] = [&project.uuid(), &before.0, &after.uuid(), &bounded(count)];
    let looked = rows(db, LOOSE_SPACES, &key, |row| {
        Ok((id::<SpaceId>(row, 0)?, get::<bool>(row, 1)?))
    })
    .await?;
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

pub(super) const LOOSE_ENTRIES: &str = "
    SELECT space, first, run, time, format, events FROM log
    WHERE space = $1 AND run IS NULL AND time < $2 AND (time, first) > ($3, $4) ORDER BY time, first LIMIT $5";

async fn loose_entries(
    db: &Db<'_>,
    space: SpaceId,
    before: Time,
    (time, place): (Time, Seq),
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    let key: [Param<'_>; 5] = [
        &space.uuid(),
        &before.0,
        &time.0,
        &bounded(place.0),
        &bounded(limit),
    ];
    rows(db, LOOSE_ENTRIES, &key, |row| {
        log::entry(row, &get::<String>(row, 5)?)
    })
    .await
}

const LOCK_OWNED: &str = "
    SELECT number FROM record_sets WHERE project = $1 AND owner = $2 ORDER BY owner, kind FOR UPDATE";
const REMOVE_OWNED: &str = "
    DELETE FROM records WHERE number IN (
        SELECT number FROM records WHERE project = $1 AND owner = $2 LIMIT $3)
    RETURNING kind";
const REMOVE_SETS: &str = "DELETE FROM record_sets WHERE project = $1 AND owner = $2 AND records = 0";

async fn remove_records(
    db: &Db<'_>,
    project: ProjectId,
    owner: Owner,
    limit: usize,
) -> Result<Purged, Fault> {
    let (project, owner) = (project.uuid(), records::owner(owner));
    db.query(LOCK_OWNED, &[&project, &owner]).await?;
    let kinds = rows(db, REMOVE_OWNED, &[&project, &owner, &bounded(limit)], |row| {
        string(row, 0)
    })
    .await?;
    if kinds.len() < limit {
        change(db, REMOVE_SETS, &[&project, &owner]).await?;
    }
    let mut purged = Purged::new();
    for kind in kinds {
        *purged.entry(kind).or_default() += 1;
    }
    Ok(purged)
}

const REMOVE_USAGE: &str = "DELETE FROM tool_usage WHERE project = $1 AND day < $2";

async fn remove_usage(db: &Db<'_>, project: ProjectId, before: Day) -> Result<u64, Fault> {
    change(db, REMOVE_USAGE, &[&project.uuid(), &before.0]).await
}

// Whoever holds a lease keeps its row, so that its runs are found.
const FORGET_NODES: &str = "
    DELETE FROM nodes WHERE until < $1
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.open AND runs.node = nodes.id)";

async fn forget_nodes(db: &Db<'_>, before: Time) -> Result<u64, Fault> {
    change(db, FORGET_NODES, &[&before.0]).await
}

const UNLINK_RUNS: &str = "
    UPDATE runs SET \"user\" = NULL, title = NULL WHERE id IN (
        SELECT id FROM runs WHERE project = $1 AND \"user\" = $2 ORDER BY id LIMIT $3 FOR UPDATE)";

async fn unlink_runs(db: &Db<'_>, project: ProjectId, user: EntityId, limit: usize) -> Result<u64, Fault> {
    change(db, UNLINK_RUNS, &[&project.uuid(), &user.uuid(), &bounded(limit)]).await
}

// What the entries hold is looked at in the database, so that only those that are wanted come over the network.
pub(super) const FIND_ENTRIES: &str = "
    SELECT space, first, run, time, format, CASE WHEN strpos(events, $5) > 0 THEN events END
    FROM (SELECT log.space, log.first, log.run, log.time, log.format, log.events
          FROM spaces JOIN log ON log.space = spaces.id
          WHERE spaces.project = $1 AND spaces.id >= $2 AND (log.space, log.first) > ($2, $3)
          ORDER BY log.space, log.first LIMIT $4) AS looked
    ORDER BY space, first";

async fn find_entries(
    db: &Db<'_>,
    project: ProjectId,
    wanted: &str,
    after: LogPlace,
    limit: usize,
) -> Result<FoundEntries, Fault> {
    let key: [Param<'_>; 5] = [
        &project.uuid(),
        &after.space.uuid(),
        &bounded(after.seq.0),
        &bounded(limit),
        &wanted,
    ];
    let looked = db.query(FIND_ENTRIES, &key).await?;
    let mut entries = Vec::new();
    for row in &looked {
        if let Some(events) = get::<Option<String>>(row, 5)? {
            entries.push(log::entry(row, &events)?);
        }
    }
    let next = match looked.last().filter(|_| looked.len() >= limit) {
        Some(last) => Some(LogPlace {
            space: SpaceId::of(get::<Uuid>(last, 0)?),
            seq: seq(last, 1)?,
        }),
        None => None,
    };
    Ok(FoundEntries { entries, next })
}

const LOCK_ENTRY: &str = "SELECT format, events FROM log WHERE space = $1 AND first = $2 FOR UPDATE";
const REWRITE: &str = "UPDATE log SET format = $3, events = $4 WHERE space = $1 AND first = $2";

async fn rewrite_entry(db: &Db<'_>, before: &Entry, events: &[Event]) -> Result<(), Fault> {
    let (space, place) = (before.space.uuid(), before.first.0 as i64);
    // Before the entry is locked, as whoever trims does it. Nothing was deleted as far as places go.
    change(db, RAISE_FLOOR, &[&space, &0_i64]).await?;
    let stored = first(db, LOCK_ENTRY, &[&space, &place], |row| {
        Ok(text::read(small(row, 0)?, &get::<String>(row, 1)?)?)
    })
    .await?;
    match stored {
        None => Ok(()),
        Some(stored) if stored == before.events => {
            let (format, events) = (i64::from(text::format(events)), text::write(events));
            change(db, REWRITE, &[&space, &place, &format, &events]).await?;
            Ok(())
        }
        Some(_) => Err(StoreError::Conflict.into()),
    }
}
