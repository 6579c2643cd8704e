//! Full-text search of records. The index holds which records have which terms; [`toolgate_search`] makes the terms and ranks
//! the records.

use std::collections::HashMap;

use tokio_postgres::Row;
use toolgate_engine::records::{Found, FoundRecords, Record, RecordSet, Reindexed, SearchText};
use toolgate_engine::store::StoreError;
use toolgate_search::{ANALYSIS, Query, Weighed, rank};

use super::column::{Id, Param, bounded, change, first, get, number, rows, small, text};
use super::fault::Fault;
use super::records::{lock_sets, owner, record, record_set};
use super::session::Db;

const FORGET: &str = "DELETE FROM searchable WHERE number = $1";

/// Removes what a record is found by.
pub(super) async fn forget(db: &Db<'_>, number: i64) -> Result<(), Fault> {
    change(db, FORGET, &[&number]).await.map(drop)
}

const SET: &str = "
    SELECT number, searchable FROM record_sets WHERE project = $1 AND owner = $2 AND kind = $3";

/// Number of a set, and how many of its records can be found; none for a set without records.
async fn numbered(db: &Db<'_>, set: RecordSet) -> Result<Option<(i64, u64)>, Fault> {
    let key: [Param<'_>; 3] = [&set.project.uuid(), &owner(set.owner), &set.kind];
    first(db, SET, &key, |row| Ok((get(row, 0)?, number(row, 1)?))).await
}

const KEEP: &str = "
    INSERT INTO searchable (number, record_set, kind, analysis, terms) VALUES ($1, $2, $3, $4, $5)";

/// Stores what a record is found by.
pub(super) async fn keep(
    db: &Db<'_>,
    set: RecordSet,
    number: i64,
    found_by: &SearchText,
) -> Result<(), Fault> {
    let (set_number, _) = numbered(db, set)
        .await?
        .ok_or_else(|| StoreError::Corrupt("a record has no record set".into()))?;
    let terms: Vec<String> = found_by
        .terms
        .iter()
        .map(|term| in_set(set_number, term))
        .collect();
    let row: [Param<'_>; 5] = [
        &number,
        &set_number,
        &set.kind,
        &i64::from(found_by.analysis),
        &terms,
    ];
    change(db, KEEP, &row).await.map(drop)
}

/// A term of one set: no search of another set reads it.
fn in_set(set_number: i64, term: &str) -> String {
    format!("{set_number}x{}", text(term))
}

pub(super) const HAVING: &str = "
    SELECT wanted.place, searchable.number
    FROM unnest($1::text[]) WITH ORDINALITY AS wanted (term, place)
    JOIN searchable ON searchable.terms @> ARRAY[wanted.term COLLATE \"C\"]";
const NUMBERED: &str = "
    SELECT id, body, due, created, updated, version, project, owner, number FROM records
    WHERE number = ANY ($1::bigint[])";

/// Within one snapshot.
pub(super) async fn find(
    db: &Db<'_>,
    sets: &[RecordSet],
    query: &Query,
    limit: usize,
) -> Result<FoundRecords, Fault> {
    let lookups = query.lookups();
    let mut lists = vec![Vec::new(); lookups.len()];
    let mut total = 0;
    for set in sets {
        let Some((set_number, searchable)) = numbered(db, *set).await? else {
            continue;
        };
        total += searchable;
        let terms: Vec<String> = lookups.iter().map(|term| in_set(set_number, term)).collect();
        let having = rows(db, HAVING, &[&terms], |row| {
            Ok((small::<usize>(row, 0)?, number(row, 1)?))
        })
        .await;
        for (place, record) in having? {
            // Counted from one.
            lists[place - 1].push(record);
        }
    }
    let ranking = rank(query, &lists, total, limit);
    let kind = sets.first().map_or("", |set| set.kind);
    let numbers: Vec<i64> = ranking.rows.iter().map(|(number, _)| *number as i64).collect();
    let read = |row: &Row| Ok((number(row, 8)?, (record_set(row, 6, kind)?, record(row)?)));
    let records = rows(db, NUMBERED, &[&numbers], read).await?;
    let mut records: HashMap<u64, (RecordSet, Record)> = records.into_iter().collect();
    let hits = ranking.rows.iter().filter_map(|(number, score)| {
        let (set, record) = records.remove(number)?;
        Some(Found {
            set,
            record,
            score: *score,
        })
    });
    Ok(FoundRecords {
        hits: hits.collect(),
        query: Weighed::new(query, &ranking.weights),
    })
}

const STALE: &str = "
    SELECT id, body, due, created, updated, version, project, owner, data
    FROM searchable JOIN records USING (number)
    WHERE searchable.kind = $1 AND analysis < $2 LIMIT $3";

pub(super) async fn stale(
    db: &Db<'_>,
    kind: &'static str,
    limit: usize,
) -> Result<Vec<(RecordSet, Record)>, Fault> {
    let key: [Param<'_>; 3] = [&kind, &i64::from(ANALYSIS), &bounded(limit)];
    rows(db, STALE, &key, |row| {
        let data = get(row, 8)?;
        Ok((record_set(row, 6, kind)?, Record { data, ..record(row)? }))
    })
    .await
}

const AT_VERSION: &str = "
    SELECT number FROM records
    WHERE project = $1 AND owner = $2 AND kind = $3 AND id = $4 AND version = $5";

pub(super) async fn reindex(db: &Db<'_>, set: RecordSet, reindexed: &[Reindexed]) -> Result<(), Fault> {
    lock_sets(db, set.project, &[set]).await?;
    let (project, owner) = (set.project.uuid(), owner(set.owner));
    for Reindexed {
        id,
        version,
        text: terms,
    } in reindexed
    {
        let key: [Param<'_>; 5] = [&project, &owner, &set.kind, &text(id), &bounded(*version)];
        let number = first(db, AT_VERSION, &key, |row| get::<i64>(row, 0)).await?;
        if let Some(number) = number {
            forget(db, number).await?;
            keep(db, set, number, terms).await?;
        }
    }
    Ok(())
}
