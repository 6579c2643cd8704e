//! Full-text search of records. The index holds which records have which terms; [`toolgate_search`] makes the terms and ranks
//! the records.

use rusqlite::{Connection, params};
use toolgate_engine::records::{Found, FoundRecords, Record, RecordSet, Reindexed, SearchText};
use toolgate_engine::store::StoreError;
use toolgate_search::{ANALYSIS, Query, Weighed, rank};

use super::column::{bounded, change, first, rows};
use super::fault::Fault;
use super::records::{owner, record, record_set};

const FORGET: &str = "DELETE FROM searchable WHERE number = ?1";

/// Removes what a record is found by.
pub(super) fn forget(connection: &Connection, number: i64) -> Result<(), Fault> {
    change(connection, FORGET, [number]).map(drop)
}

const SET: &str = "
    SELECT number, searchable FROM record_sets WHERE project = ?1 AND owner = ?2 AND kind = ?3";

/// Number of a set, and how many of its records can be found; none for a set without records.
fn numbered(connection: &Connection, set: RecordSet) -> Result<Option<(i64, i64)>, Fault> {
    let key = params![set.project.to_bytes(), owner(set.owner), set.kind];
    first(connection, SET, key, |row| Ok((row.get(0)?, row.get(1)?)))
}

const KEEP: &str = "INSERT INTO searchable (number, record_set, kind, analysis) VALUES (?1, ?2, ?3, ?4)";
const KEEP_TERMS: &str = "INSERT INTO record_terms (rowid, terms) VALUES (?1, ?2)";

/// Stores what a record is found by.
pub(super) fn keep(
    connection: &Connection,
    set: RecordSet,
    number: i64,
    text: &SearchText,
) -> Result<(), Fault> {
    let (set_number, _) =
        numbered(connection, set)?.ok_or_else(|| StoreError::Corrupt("a record has no record set".into()))?;
    change(
        connection,
        KEEP,
        params![number, set_number, set.kind, text.analysis],
    )?;
    let terms: Vec<String> = text.terms.iter().map(|term| in_set(set_number, term)).collect();
    change(connection, KEEP_TERMS, params![number, terms.join(" ")]).map(drop)
}

/// A term of one set: no search of another set reads it.
fn in_set(set_number: i64, term: &str) -> String {
    format!("{set_number}x{term}")
}

const HAVING: &str = "SELECT rowid FROM record_terms WHERE record_terms MATCH ?1";
const NUMBERED: &str = "
    SELECT id, body, due, created, updated, version, project, owner FROM records WHERE number = ?1";

pub(super) fn find(
    connection: &Connection,
    sets: &[RecordSet],
    query: &Query,
    limit: usize,
) -> Result<FoundRecords, Fault> {
    // One snapshot for all that is read.
    let connection = &connection.unchecked_transaction()?;
    let lookups = query.lookups();
    let mut lists = vec![Vec::new(); lookups.len()];
    let mut total = 0;
    for set in sets {
        let Some((number, searchable)) = numbered(connection, *set)? else {
            continue;
        };
        total += searchable as u64;
        for (term, list) in lookups.iter().zip(&mut lists) {
            // Quoted, so that no term is parsed as an operator of the FTS query language.
            let quoted = format!("\"{}\"", in_set(number, term));
            list.extend(rows(connection, HAVING, [quoted], |row| {
                Ok(row.get::<_, i64>(0)? as u64)
            })?);
        }
    }
    let ranking = rank(query, &lists, total, limit);
    let mut hits = Vec::with_capacity(ranking.rows.len());
    for (number, score) in &ranking.rows {
        let kind = sets.first().map_or("", |set| set.kind);
        let found = first(connection, NUMBERED, [*number as i64], |row| {
            Ok((record_set(row, 6, kind)?, record(row)?))
        })?;
        hits.extend(found.map(|(set, record)| Found {
            set,
            record,
            score: *score,
        }));
    }
    Ok(FoundRecords {
        hits,
        query: Weighed::new(query, &ranking.weights),
    })
}

const STALE: &str = "
    SELECT id, body, due, created, updated, version, project, owner, data
    FROM searchable JOIN records USING (number)
    WHERE searchable.kind = ?1 AND analysis < ?2 LIMIT ?3";

pub(super) fn stale(
    connection: &Connection,
    kind: &'static str,
    limit: usize,
) -> Result<Vec<(RecordSet, Record)>, Fault> {
    rows(
        connection,
        STALE,
        params![kind, ANALYSIS, bounded(limit)],
        |row| {
            let data = row.get(8)?;
            Ok((record_set(row, 6, kind)?, Record { data, ..record(row)? }))
        },
    )
}

const AT_VERSION: &str = "
    SELECT number FROM records
    WHERE project = ?1 AND owner = ?2 AND kind = ?3 AND id = ?4 AND version = ?5";

pub(super) fn reindex(connection: &Connection, set: RecordSet, reindexed: &[Reindexed]) -> Result<(), Fault> {
    for Reindexed { id, version, text } in reindexed {
        let key = params![
            set.project.to_bytes(),
            owner(set.owner),
            set.kind,
            id,
            bounded(*version)
        ];
        let number = first(connection, AT_VERSION, key, |row| Ok(row.get::<_, i64>(0)?))?;
        if let Some(number) = number {
            forget(connection, number)?;
            keep(connection, set, number, text)?;
        }
    }
    Ok(())
}
