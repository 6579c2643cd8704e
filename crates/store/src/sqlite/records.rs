//! Records of built-in tools.

use async_trait::async_trait;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};
use toolgate_engine::records::{
    Amendment, Change, Expected, FoundRecords, Listing, NewRecord, Owner, Record, RecordSet, Records,
    Reindexed,
};
use toolgate_engine::store::{Purged, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_search::Query;

use super::column::{bounded, change, first, json, rows};
use super::fault::Fault;
use super::{READ_AT_ONCE, SqliteStore, receipts, search};

#[async_trait]
impl Records for SqliteStore {
    async fn record(&self, set: RecordSet, id: &str) -> Result<Option<Record>, StoreError> {
        let found = self.readers.short(|db| get(db, set, id, READ_AT_ONCE))?;
        match found {
            Some(Got { cut: true, .. }) => {
                let id = id.to_owned();
                let whole = move |db: &Connection| get(db, set, &id, usize::MAX);
                Ok(self.readers.long(whole).await?.map(|got| got.record))
            }
            found => Ok(found.map(|got| got.record)),
        }
    }
    async fn list_records(&self, set: RecordSet, listing: Listing) -> Result<Vec<Record>, StoreError> {
        self.readers.long(move |db| list(db, set, &listing)).await
    }
    async fn records_size(&self, set: RecordSet) -> Result<(u64, u64), StoreError> {
        self.readers.long(move |db| size(db, set)).await
    }
    async fn list_data(
        &self,
        set: RecordSet,
        listing: Listing,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.readers.long(move |db| list_data(db, set, &listing)).await
    }
    async fn amend_records(&self, set: RecordSet, amendment: Amendment, now: Time) -> Result<(), StoreError> {
        self.writer.write(move |db| amend(db, set, &amendment, now)).await
    }
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError> {
        self.readers.short(|db| receipts::get(db, project, key))
    }
    async fn find_records(
        &self,
        sets: &[RecordSet],
        question: &str,
        limit: usize,
    ) -> Result<FoundRecords, StoreError> {
        let (sets, query) = (sets.to_vec(), Query::new(question));
        self.readers
            .long(move |db| search::find(db, &sets, &query, limit))
            .await
    }
    async fn stale_records(
        &self,
        kind: &'static str,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        self.readers.long(move |db| search::stale(db, kind, limit)).await
    }
    async fn reindex_records(&self, set: RecordSet, reindexed: Vec<Reindexed>) -> Result<(), StoreError> {
        self.writer
            .write(move |db| search::reindex(db, set, &reindexed))
            .await
    }
    async fn record_sets(&self, kind: &'static str) -> Result<Vec<RecordSet>, StoreError> {
        self.readers.long(move |db| record_sets(db, kind)).await
    }
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        self.readers.long(move |db| due(db, kind, now, limit)).await
    }
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError> {
        self.readers.short(|db| next_due(db, kind))
    }
}

/// A record, perhaps without its data.
pub(crate) struct Got {
    pub(crate) record: Record,
    /// Whether its data was omitted, because it is larger than requested.
    pub(crate) cut: bool,
}

const GET: &str = "
    SELECT id, body, due, created, updated, version,
        CASE WHEN length(data) <= ?5 THEN data END, coalesce(length(data) > ?5, 0)
    FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id = ?4";

/// A record, with its data if that has no more than `bytes_max` bytes.
pub(crate) fn get(
    connection: &Connection,
    set: RecordSet,
    id: &str,
    bytes_max: usize,
) -> Result<Option<Got>, Fault> {
    let key = params![
        set.project.to_bytes(),
        owner(set.owner),
        set.kind,
        id,
        bounded(bytes_max)
    ];
    first(connection, GET, key, |row| {
        let data = row.get(6)?;
        let record = Record { data, ..record(row)? };
        let cut = row.get(7)?;
        Ok(Got { record, cut })
    })
}

const LIST: &str = "
    SELECT id, body, due, created, updated, version FROM records
    WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id >= ?4 AND id < ?5
    ORDER BY id LIMIT ?6";

pub(crate) fn list(connection: &Connection, set: RecordSet, listing: &Listing) -> Result<Vec<Record>, Fault> {
    let (from, to) = range(listing);
    let key = params![
        set.project.to_bytes(),
        owner(set.owner),
        set.kind,
        from,
        to,
        bounded(listing.limit),
    ];
    rows(connection, LIST, key, record)
}

const LIST_DATA: &str = "
    SELECT id, data FROM records
    WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id >= ?4 AND id < ?5 AND data IS NOT NULL
    ORDER BY id LIMIT ?6";

pub(crate) fn list_data(
    connection: &Connection,
    set: RecordSet,
    listing: &Listing,
) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let (from, to) = range(listing);
    let key = params![
        set.project.to_bytes(),
        owner(set.owner),
        set.kind,
        from,
        to,
        bounded(listing.limit),
    ];
    rows(connection, LIST_DATA, key, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// The first id of the page, and the first id after its prefix.
fn range(listing: &Listing) -> (String, Value) {
    // An id followed by a zero is its direct successor.
    let behind = listing.after.as_ref().map(|after| format!("{after}\0"));
    let from = behind.unwrap_or_default().max(listing.prefix.clone());
    let mut rest = listing.prefix.clone();
    while let Some(last) = rest.pop() {
        let next = (last..=char::MAX).nth(1);
        if let Some(next) = next {
            rest.push(next);
            return (from, rest.into());
        }
    }
    // SQLite sorts every text before any blob.
    (from, Value::Blob(Vec::new()))
}

const SIZE: &str = "
    SELECT records, bytes FROM record_sets WHERE project = ?1 AND owner = ?2 AND kind = ?3";

pub(crate) fn size(connection: &Connection, set: RecordSet) -> Result<(u64, u64), Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind];
    let size = first(connection, SIZE, key, |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
    })?;
    Ok(size.unwrap_or_default())
}

const VERSION: &str = "
    SELECT version FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id = ?4";

pub(crate) fn amend(
    connection: &Connection,
    set: RecordSet,
    amendment: &Amendment,
    now: Time,
) -> Result<(), Fault> {
    let Amendment {
        expected,
        at_most,
        changes,
        receipt,
        turn,
    } = amendment;
    if let Some(receipt) = receipt {
        receipts::check(connection, set.project, receipt)?;
    }
    for Expected { id, version } in expected {
        expect(connection, set, id, *version)?;
    }
    if let Some(turn) = turn {
        expect(connection, turn.set, &turn.id, turn.version)?;
        put(connection, turn.set, &turn.record(), now)?;
    }
    for wanted in changes {
        match wanted {
            Change::Put(record) => put(connection, set, record, now)?,
            Change::Remove(id) => remove(connection, set, id)?,
            Change::Clear => clear(connection, set)?,
        }
    }
    if at_most.is_some() && Some(size(connection, set)?.0) > *at_most {
        return Err(StoreError::Conflict.into());
    }
    match receipt {
        Some(receipt) => receipts::keep(connection, set.project, receipt),
        None => Ok(()),
    }
}

fn expect(connection: &Connection, set: RecordSet, id: &str, version: Option<u64>) -> Result<(), Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind, id];
    let found = first(connection, VERSION, key, |row| Ok(row.get::<_, i64>(0)? as u64))?;
    match found == version {
        true => Ok(()),
        false => Err(StoreError::Conflict.into()),
    }
}

const PUT: &str = "
    INSERT INTO records (project, owner, kind, id, body, data, due, created, updated, version)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 1)
    ON CONFLICT (project, owner, kind, id) DO UPDATE SET
        body = excluded.body, data = excluded.data, due = excluded.due, updated = excluded.updated,
        version = version + 1
    RETURNING number, version";
fn put(connection: &Connection, set: RecordSet, new: &NewRecord, now: Time) -> Result<(), Fault> {
    let row = params![
        set.project.to_bytes(),
        owner(set.owner),
        set.kind,
        new.id,
        new.body.as_str(),
        new.data,
        new.due.map(|due| due.0),
        now.0,
    ];
    let (number, version) = first(connection, PUT, row, |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    })?
    .ok_or_else(|| StoreError::Corrupt("a record that was put has no row".into()))?;
    if version > 1 {
        search::forget(connection, number)?;
    }
    match &new.text {
        Some(text) => search::keep(connection, set, number, text),
        None => Ok(()),
    }
}

// Triggers remove what search finds of a record, and count what is left in its set.
const REMOVE: &str = "DELETE FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id = ?4";

fn remove(connection: &Connection, set: RecordSet, id: &str) -> Result<(), Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind, id];
    change(connection, REMOVE, key).map(drop)
}

const CLEAR: &str = "DELETE FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3";

fn clear(connection: &Connection, set: RecordSet) -> Result<(), Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind];
    change(connection, CLEAR, key).map(drop)
}

const COUNT_OWNED: &str = "
    SELECT kind, COUNT(*) FROM records WHERE project = ?1 AND owner = ?2 GROUP BY kind";
const REMOVE_OWNED: &str = "DELETE FROM records WHERE project = ?1 AND owner = ?2";

/// Deletes all records of an owner, and says how many those were.
pub(crate) fn remove_owned(connection: &Connection, project: ProjectId, of: Owner) -> Result<Purged, Fault> {
    let key = params![project.to_bytes(), owner(of)];
    let counts = rows(connection, COUNT_OWNED, key, |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
    })?;
    change(connection, REMOVE_OWNED, key)?;
    Ok(counts.into_iter().collect())
}

const SETS: &str = "SELECT project, owner FROM record_sets WHERE kind = ?1 AND records > 0";

fn record_sets(connection: &Connection, kind: &'static str) -> Result<Vec<RecordSet>, Fault> {
    rows(connection, SETS, [kind], |row| record_set(row, 0, kind))
}

const DUE: &str = "
    SELECT id, body, due, created, updated, version, project, owner FROM records
    WHERE kind = ?1 AND due <= ?2 ORDER BY due LIMIT ?3";

pub(crate) fn due(
    connection: &Connection,
    kind: &'static str,
    now: Time,
    limit: usize,
) -> Result<Vec<(RecordSet, Record)>, Fault> {
    rows(connection, DUE, params![kind, now.0, bounded(limit)], |row| {
        Ok((record_set(row, 6, kind)?, record(row)?))
    })
}

const NEXT_DUE: &str = "SELECT min(due) FROM records WHERE kind = ?1 AND due IS NOT NULL";

pub(crate) fn next_due(connection: &Connection, kind: &'static str) -> Result<Option<Time>, Fault> {
    let due = first(connection, NEXT_DUE, [kind], |row| {
        Ok(row.get::<_, Option<i64>>(0)?)
    })?;
    Ok(due.flatten().map(Time))
}

pub(super) fn record(row: &Row<'_>) -> Result<Record, Fault> {
    Ok(Record {
        id: row.get(0)?,
        body: json(row, 1)?,
        data: None,
        due: row.get::<_, Option<i64>>(2)?.map(Time),
        created: Time(row.get(3)?),
        updated: Time(row.get(4)?),
        version: row.get::<_, i64>(5)? as u64,
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
pub(super) fn record_set(row: &Row<'_>, column: usize, kind: &'static str) -> Result<RecordSet, Fault> {
    Ok(RecordSet {
        project: ProjectId::from_bytes(row.get(column)?),
        owner: read_owner(&row.get::<_, Vec<u8>>(column + 1)?)?,
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
