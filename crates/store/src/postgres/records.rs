//! Records of built-in tools.

use async_trait::async_trait;
use tokio_postgres::Row;
use toolgate_engine::records::{
    Amendment, Change, Expected, FoundRecords, Listing, NewRecord, Owner, Record, RecordSet, Records,
    Reindexed,
};
use toolgate_engine::store::{Purged, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_search::Query;

use super::attempts::{read, snapshot, write};
use super::column::{Id, Param, bounded, change, first, get, id, json, number, rows, string, text};
use super::fault::Fault;
use super::session::Db;
use super::{PostgresStore, receipts, search};

#[async_trait]
impl Records for PostgresStore {
    async fn record(&self, set: RecordSet, id: &str) -> Result<Option<Record>, StoreError> {
        read!(self, db => of(db, set, id))
    }
    async fn list_records(&self, set: RecordSet, listing: Listing) -> Result<Vec<Record>, StoreError> {
        read!(self, db => list(db, set, &listing))
    }
    async fn records_size(&self, set: RecordSet) -> Result<(u64, u64), StoreError> {
        read!(self, db => size(db, set))
    }
    async fn list_data(
        &self,
        set: RecordSet,
        listing: Listing,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        read!(self, db => list_data(db, set, &listing))
    }
    async fn amend_records(&self, set: RecordSet, amendment: Amendment, now: Time) -> Result<(), StoreError> {
        write!(self, db => amend(db, set, &amendment, now))
    }
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError> {
        read!(self, db => receipts::of(db, project, key))
    }
    async fn find_records(
        &self,
        sets: &[RecordSet],
        question: &str,
        limit: usize,
    ) -> Result<FoundRecords, StoreError> {
        let query = Query::new(question);
        snapshot!(self, db => search::find(db, sets, &query, limit))
    }
    async fn stale_records(
        &self,
        kind: &'static str,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        read!(self, db => search::stale(db, kind, limit))
    }
    async fn reindex_records(&self, set: RecordSet, reindexed: Vec<Reindexed>) -> Result<(), StoreError> {
        write!(self, db => search::reindex(db, set, &reindexed))
    }
    async fn record_sets(&self, kind: &'static str) -> Result<Vec<RecordSet>, StoreError> {
        read!(self, db => record_sets(db, kind))
    }
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        read!(self, db => due(db, kind, now, limit))
    }
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError> {
        read!(self, db => next_due(db, kind))
    }
}

const GET: &str = "
    SELECT id, body, due, created, updated, version, data FROM records
    WHERE project = $1 AND owner = $2 AND kind = $3 AND id = $4";

async fn of(db: &Db<'_>, set: RecordSet, id: &str) -> Result<Option<Record>, Fault> {
    let key: [Param<'_>; 4] = [&set.project.uuid(), &owner(set.owner), &set.kind, &text(id)];
    first(db, GET, &key, |row| {
        let data = get(row, 6)?;
        Ok(Record { data, ..record(row)? })
    })
    .await
}

macro_rules! listed {
    ($columns:literal, $conditions:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM records WHERE project = $1 AND owner = $2 AND kind = $3 AND id >= $4 ",
            $conditions,
            " ORDER BY id LIMIT $5"
        )
    };
}
pub(super) const LIST: &str = listed!("id, body, due, created, updated, version", "");
pub(super) const LIST_BELOW: &str = listed!("id, body, due, created, updated, version", "AND id < $6");

async fn list(db: &Db<'_>, set: RecordSet, listing: &Listing) -> Result<Vec<Record>, Fault> {
    listed(db, [LIST, LIST_BELOW], set, listing, record).await
}

const LIST_DATA: &str = listed!("id, data", "AND data IS NOT NULL");
const LIST_DATA_BELOW: &str = listed!("id, data", "AND data IS NOT NULL AND id < $6");

async fn list_data(db: &Db<'_>, set: RecordSet, listing: &Listing) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let read = |row: &Row| Ok((string(row, 0)?, get(row, 1)?));
    listed(db, [LIST_DATA, LIST_DATA_BELOW], set, listing, read).await
}

/// A page of a set, with the statement for ids up to the end of the set or the one for ids with a prefix.
async fn listed<T>(
    db: &Db<'_>,
    [all, below]: [&str; 2],
    set: RecordSet,
    listing: &Listing,
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let (from, to) = range(listing);
    let (project, owner, limit) = (set.project.uuid(), owner(set.owner), bounded(listing.limit));
    let key: [Param<'_>; 5] = [&project, &owner, &set.kind, &from, &limit];
    match to {
        Some(to) => rows(db, below, &[&key[..], &[&to]].concat(), read).await,
        None => rows(db, all, &key, read).await,
    }
}

/// The first id of the page, and the first id after its prefix, as they are stored.
fn range(listing: &Listing) -> (String, Option<String>) {
    let prefix = text(&listing.prefix).into_owned();
    // No stored text has a byte below one, so this is the direct successor.
    let behind = listing
        .after
        .as_ref()
        .map(|after| format!("{}\u{1}", text(after)));
    let from = behind.unwrap_or_default().max(prefix.clone());
    let mut rest = prefix;
    while let Some(last) = rest.pop() {
        let next = (last..=char::MAX).nth(1);
        if let Some(next) = next {
            rest.push(next);
            return (from, Some(rest));
        }
    }
    (from, None)
}

const SIZE: &str = "
    SELECT records, bytes FROM record_sets WHERE project = $1 AND owner = $2 AND kind = $3";

async fn size(db: &Db<'_>, set: RecordSet) -> Result<(u64, u64), Fault> {
    let key: [Param<'_>; 3] = [&set.project.uuid(), &owner(set.owner), &set.kind];
    let size = first(db, SIZE, &key, |row| Ok((number(row, 0)?, number(row, 1)?))).await?;
    Ok(size.unwrap_or_default())
}

const BEGIN_SETS: &str = "
    INSERT INTO record_sets (project, owner, kind, records, bytes, searchable)
    SELECT $1, owner, kind, 0, 0, 0 FROM unnest($2::bytea[], $3::text[]) AS new (owner, kind)
    WHERE NOT EXISTS (SELECT 1 FROM record_sets AS known
        WHERE known.project = $1 AND known.owner = new.owner AND known.kind = new.kind COLLATE \"C\")
    ORDER BY owner, kind
    ON CONFLICT DO NOTHING";
const LOCK_SETS: &str = "
    SELECT record_sets.number FROM record_sets
    JOIN unnest($2::bytea[], $3::text[]) AS wanted (owner, kind)
      ON record_sets.owner = wanted.owner AND record_sets.kind = wanted.kind COLLATE \"C\"
    WHERE record_sets.project = $1
    ORDER BY record_sets.owner, record_sets.kind FOR UPDATE OF record_sets";

/// Locks sets of a project until the transaction ends: their records are changed by one at a time.
pub(super) async fn lock_sets(db: &Db<'_>, project: ProjectId, sets: &[RecordSet]) -> Result<(), Fault> {
    let owners: Vec<Vec<u8>> = sets.iter().map(|set| owner(set.owner)).collect();
    let kinds: Vec<&str> = sets.iter().map(|set| set.kind).collect();
    let project = project.uuid();
    let key: [Param<'_>; 3] = [&project, &owners, &kinds];
    change(db, BEGIN_SETS, &key).await?;
    db.query(LOCK_SETS, &key).await.map(drop)
}

async fn amend(db: &Db<'_>, set: RecordSet, amendment: &Amendment, now: Time) -> Result<(), Fault> {
    let Amendment {
        expected,
        at_most,
        changes,
        receipt,
        turn,
    } = amendment;
    let turn_set = turn.as_ref().map(|turn| turn.set);
    let sets: Vec<RecordSet> = [Some(set), turn_set].into_iter().flatten().collect();
    lock_sets(db, set.project, &sets).await?;
    if let Some(receipt) = receipt {
        receipts::check(db, set.project, receipt).await?;
    }
    for Expected { id, version } in expected {
        expect(db, set, id, *version).await?;
    }
    if let Some(turn) = turn {
        expect(db, turn.set, &turn.id, turn.version).await?;
        put(db, turn.set, &turn.record(), now).await?;
    }
    for wanted in changes {
        match wanted {
            Change::Put(record) => put(db, set, record, now).await?,
            Change::Remove(id) => remove(db, set, id).await?,
            Change::Clear => clear(db, set).await?,
        }
    }
    if at_most.is_some() && Some(size(db, set).await?.0) > *at_most {
        return Err(StoreError::Conflict.into());
    }
    match receipt {
        Some(receipt) => receipts::keep(db, set.project, receipt).await,
        None => Ok(()),
    }
}

const VERSION: &str = "
    SELECT version FROM records WHERE project = $1 AND owner = $2 AND kind = $3 AND id = $4";

async fn expect(db: &Db<'_>, set: RecordSet, id: &str, version: Option<u64>) -> Result<(), Fault> {
    let key: [Param<'_>; 4] = [&set.project.uuid(), &owner(set.owner), &set.kind, &text(id)];
    let found = first(db, VERSION, &key, |row| number(row, 0)).await?;
    match found == version {
        true => Ok(()),
        false => Err(StoreError::Conflict.into()),
    }
}

const PUT: &str = "
    INSERT INTO records (project, owner, kind, id, body, data, due, created, updated, version)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, 1)
    ON CONFLICT (project, owner, kind, id) DO UPDATE SET
        body = excluded.body, data = excluded.data, due = excluded.due, updated = excluded.updated,
        version = records.version + 1
    RETURNING number, version";

async fn put(db: &Db<'_>, set: RecordSet, new: &NewRecord, now: Time) -> Result<(), Fault> {
    let row: [Param<'_>; 8] = [
        &set.project.uuid(),
        &owner(set.owner),
        &set.kind,
        &text(&new.id),
        &new.body.as_str(),
        &new.data,
        &new.due.map(|due| due.0),
        &now.0,
    ];
    let stored = first(db, PUT, &row, |row| Ok((get::<i64>(row, 0)?, number(row, 1)?))).await?;
    let (number, version) =
        stored.ok_or_else(|| StoreError::Corrupt("a record that was put has no row".into()))?;
    if version > 1 {
        search::forget(db, number).await?;
    }
    match &new.text {
        Some(text) => search::keep(db, set, number, text).await,
        None => Ok(()),
    }
}

// Triggers remove what search finds of a record, and count what is left in its set.
const REMOVE: &str = "DELETE FROM records WHERE project = $1 AND owner = $2 AND kind = $3 AND id = $4";

async fn remove(db: &Db<'_>, set: RecordSet, id: &str) -> Result<(), Fault> {
    let key: [Param<'_>; 4] = [&set.project.uuid(), &owner(set.owner), &set.kind, &text(id)];
    change(db, REMOVE, &key).await.map(drop)
}

const CLEAR: &str = "DELETE FROM records WHERE project = $1 AND owner = $2 AND kind = $3";

async fn clear(db: &Db<'_>, set: RecordSet) -> Result<(), Fault> {
    let key: [Param<'_>; 3] = [&set.project.uuid(), &owner(set.owner), &set.kind];
    change(db, CLEAR, &key).await.map(drop)
}

const LOCK_OWNED: &str = "
    SELECT number FROM record_sets WHERE project = $1 AND owner = $2 ORDER BY owner, kind FOR UPDATE";
const COUNT_OWNED: &str = "
    SELECT kind, count(*) FROM records WHERE project = $1 AND owner = $2 GROUP BY kind";
const REMOVE_OWNED: &str = "DELETE FROM records WHERE project = $1 AND owner = $2";

/// Deletes all records of an owner, and says how many those were.
pub(super) async fn remove_owned(db: &Db<'_>, project: ProjectId, of: Owner) -> Result<Purged, Fault> {
    let key: [Param<'_>; 2] = [&project.uuid(), &owner(of)];
    db.query(LOCK_OWNED, &key).await?;
    let counts = rows(db, COUNT_OWNED, &key, |row| {
        Ok((string(row, 0)?, number(row, 1)?))
    })
    .await?;
    change(db, REMOVE_OWNED, &key).await?;
    Ok(counts.into_iter().collect())
}

const SETS: &str = "SELECT project, owner FROM record_sets WHERE kind = $1 AND records > 0";

async fn record_sets(db: &Db<'_>, kind: &'static str) -> Result<Vec<RecordSet>, Fault> {
    rows(db, SETS, &[&kind], |row| record_set(row, 0, kind)).await
}

pub(super) const DUE: &str = "
    SELECT id, body, due, created, updated, version, project, owner FROM records
    WHERE kind = $1 AND due IS NOT NULL AND due <= $2 ORDER BY due LIMIT $3";

async fn due(
    db: &Db<'_>,
    kind: &'static str,
    now: Time,
    limit: usize,
) -> Result<Vec<(RecordSet, Record)>, Fault> {
    rows(db, DUE, &[&kind, &now.0, &bounded(limit)], |row| {
        Ok((record_set(row, 6, kind)?, record(row)?))
    })
    .await
}

pub(super) const NEXT_DUE: &str = "SELECT min(due) FROM records WHERE kind = $1 AND due IS NOT NULL";

async fn next_due(db: &Db<'_>, kind: &'static str) -> Result<Option<Time>, Fault> {
    let due = first(db, NEXT_DUE, &[&kind], |row| get::<Option<i64>>(row, 0)).await?;
    Ok(due.flatten().map(Time))
}

pub(super) fn record(row: &Row) -> Result<Record, Fault> {
    Ok(Record {
        id: string(row, 0)?,
        body: json(row, 1)?,
        data: None,
        due: get::<Option<i64>>(row, 2)?.map(Time),
        created: Time(get(row, 3)?),
        updated: Time(get(row, 4)?),
        version: number(row, 5)?,
    })
}

pub(super) fn owner(owner: Owner) -> Vec<u8> {
    let (letter, id) = match owner {
        Owner::Project => return Vec::new(),
        Owner::Entity(entity) => (b'e', entity.to_bytes()),
        Owner::Space(space) => (b's', space.to_bytes()),
    };
    [&[letter], id.as_slice()].concat()
}

/// The set of a row with project and owner in this column and the next.
pub(super) fn record_set(row: &Row, column: usize, kind: &'static str) -> Result<RecordSet, Fault> {
    Ok(RecordSet {
        project: id(row, column)?,
        owner: read_owner(&get::<Vec<u8>>(row, column + 1)?)?,
        kind,
    })
}

fn read_owner(bytes: &[u8]) -> Result<Owner, Fault> {
    let id = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).ok();
    let owner = match bytes.split_first() {
        None => Some(Owner::Project),
        Some((b'e', rest)) => id(rest).map(|id| Owner::Entity(EntityId::from_bytes(id))),
        Some((b's', rest)) => id(rest).map(|id| Owner::Space(SpaceId::from_bytes(id))),
        Some(_) => None,
    };
    owner.ok_or_else(|| StoreError::Corrupt("a record's owner".into()).into())
}
