//! Records of built-in tools.

use async_trait::async_trait;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};
use toolgate_engine::records::{
    Amendment, Change, Expected, Found, Listing, NewRecord, Owner, Record, RecordSet, Records,
};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::column::{bounded, change, first, json, rows};
use super::fault::Fault;
use super::{READ_AT_ONCE, SqliteStore, receipts};

/// Most words of a query; further ones are ignored.
const SEARCH_WORDS_MAX: usize = 32;

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
        set: RecordSet,
        words: &str,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let words = words.to_owned();
        self.readers.long(move |db| find(db, set, &words, limit)).await
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
    SELECT count(*), coalesce(sum(octet_length(body) + coalesce(length(data), 0)), 0) FROM records
    WHERE project = ?1 AND owner = ?2 AND kind = ?3";

pub(crate) fn size(connection: &Connection, set: RecordSet) -> Result<(u64, u64), Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind];
    let size = first(connection, SIZE, key, |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
    })?;
    Ok(size.unwrap_or_default())
}

const VERSION: &str = "
    SELECT version FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id = ?4";
const COUNT: &str = "SELECT count(*) FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3";

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
    } = amendment;
    let (project, owner) = (set.project.to_bytes(), owner(set.owner));
    if let Some(receipt) = receipt {
        receipts::check(connection, set.project, receipt)?;
    }
    for Expected { id, version } in expected {
        let key = params![project, owner, set.kind, id];
        let found = first(connection, VERSION, key, |row| Ok(row.get::<_, i64>(0)? as u64))?;
        if found != *version {
            return Err(StoreError::Conflict.into());
        }
    }
    for wanted in changes {
        match wanted {
            Change::Put(record) => put(connection, set, record, now)?,
            Change::Remove(id) => remove(connection, set, id)?,
            Change::Clear => clear(connection, set)?,
        }
    }
    if let Some(most) = at_most {
        let count = first(connection, COUNT, params![project, owner, set.kind], |row| {
            Ok(row.get::<_, i64>(0)?)
        })?;
        if count > Some(bounded(*most)) {
            return Err(StoreError::Conflict.into());
        }
    }
    match receipt {
        Some(receipt) => receipts::keep(connection, set.project, receipt),
        None => Ok(()),
    }
}

const PUT: &str = "
    INSERT INTO records (project, owner, kind, id, body, data, due, created, updated, version)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 1)
    ON CONFLICT (project, owner, kind, id) DO UPDATE SET
        body = excluded.body, data = excluded.data, due = excluded.due, updated = excluded.updated,
        version = version + 1
    RETURNING number";
const FORGET_TEXT: &str = "DELETE FROM record_text WHERE rowid = ?1";
const PUT_TEXT: &str = "INSERT INTO record_text (rowid, shelf, text) VALUES (?1, ?2, ?3)";

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
    let number = first(connection, PUT, row, |row| Ok(row.get::<_, i64>(0)?))?;
    change(connection, FORGET_TEXT, [number])?;
    if let Some(text) = &new.text {
        change(connection, PUT_TEXT, params![number, search_term(set), text])?;
    }
    Ok(())
}

const REMOVE: &str = "
    DELETE FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id = ?4 RETURNING number";

fn remove(connection: &Connection, set: RecordSet, id: &str) -> Result<(), Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind, id];
    let numbers = rows(connection, REMOVE, key, |row| Ok(row.get::<_, i64>(0)?))?;
    forget_text(connection, &numbers)
}

const CLEAR: &str = "
    DELETE FROM records WHERE project = ?1 AND owner = ?2 AND kind = ?3 RETURNING number";

fn clear(connection: &Connection, set: RecordSet) -> Result<(), Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind];
    let numbers = rows(connection, CLEAR, key, |row| Ok(row.get::<_, i64>(0)?))?;
    forget_text(connection, &numbers)
}

const REMOVE_OWNED: &str = "DELETE FROM records WHERE project = ?1 AND owner = ?2 RETURNING number";

/// Deletes all records of an owner.
pub(crate) fn remove_owned(connection: &Connection, project: ProjectId, of: Owner) -> Result<(), Fault> {
    let key = params![project.to_bytes(), owner(of)];
    let numbers = rows(connection, REMOVE_OWNED, key, |row| Ok(row.get::<_, i64>(0)?))?;
    forget_text(connection, &numbers)
}

fn forget_text(connection: &Connection, numbers: &[i64]) -> Result<(), Fault> {
    for number in numbers {
        change(connection, FORGET_TEXT, [number])?;
    }
    Ok(())
}

// The search term of the set narrows the search, and has no weight in the ranking. Its column keeps the name `shelf`
// from migration 3: renaming a column of an FTS table means to build its index again.
const FIND: &str = "
    SELECT id, body, due, created, updated, version,
        -bm25(record_text, 0.0, 1.0), snippet(record_text, 1, '', '', '…', 32)
    FROM record_text JOIN records ON records.number = record_text.rowid
    WHERE record_text MATCH ?4 AND project = ?1 AND owner = ?2 AND kind = ?3
    ORDER BY bm25(record_text, 0.0, 1.0), id LIMIT ?5";

pub(crate) fn find(
    connection: &Connection,
    set: RecordSet,
    wanted: &str,
    limit: usize,
) -> Result<Vec<Found>, Fault> {
    // Quoted, so that no word is parsed as an operator of the FTS query language.
    let quoted: Vec<String> = query_words(wanted)
        .take(SEARCH_WORDS_MAX)
        .map(|word| format!("\"{word}\""))
        .collect();
    if quoted.is_empty() {
        return Ok(Vec::new());
    }
    let asked = format!(
        "shelf : {} AND text : ({})",
        search_term(set),
        quoted.join(" OR ")
    );
    let key = params![
        set.project.to_bytes(),
        owner(set.owner),
        set.kind,
        asked,
        bounded(limit),
    ];
    rows(connection, FIND, key, |row| {
        Ok(Found {
            record: record(row)?,
            score: row.get(6)?,
            snippet: row.get(7)?,
        })
    })
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
        let project = ProjectId::from_bytes(row.get(6)?);
        let owner = read_owner(&row.get::<_, Vec<u8>>(7)?)?;
        Ok((RecordSet { project, owner, kind }, record(row)?))
    })
}

const NEXT_DUE: &str = "SELECT min(due) FROM records WHERE kind = ?1 AND due IS NOT NULL";

pub(crate) fn next_due(connection: &Connection, kind: &'static str) -> Result<Option<Time>, Fault> {
    let due = first(connection, NEXT_DUE, [kind], |row| {
        Ok(row.get::<_, Option<i64>>(0)?)
    })?;
    Ok(due.flatten().map(Time))
}

fn record(row: &Row<'_>) -> Result<Record, Fault> {
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

/// The words of a query as written. The FTS tokenizer folds case and accents in its own way: folding them here first
/// would find nothing where the two ways differ.
fn query_words(text: &str) -> impl Iterator<Item = &str> {
    let is_accent = |c: char| matches!(c, '\u{300}'..='\u{36f}');
    let parts = text.split(move |c: char| !c.is_alphanumeric() && !is_accent(c));
    parts.filter(|word| word.contains(char::is_alphanumeric))
}

/// One search term that all records of the set share, of letters and digits only.
fn search_term(set: RecordSet) -> String {
    let bytes = [set.project.to_bytes().as_slice(), &owner(set.owner)].concat();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{hex}", set.kind)
}

fn owner(owner: Owner) -> Vec<u8> {
    let (letter, id) = match owner {
        Owner::Project => return Vec::new(),
        Owner::Entity(entity) => (b'e', entity.to_bytes()),
        Owner::Space(space) => (b's', space.to_bytes()),
    };
    [&[letter], id.as_slice()].concat()
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
