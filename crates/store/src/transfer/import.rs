//! Reads a file that was exported into a database.

use std::io::{BufRead, BufReader, Read};

use flate2::read::GzDecoder;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;

use super::Database;
use super::claims::Claims;
use super::row::{FORMAT, Header, Manifest, Row};
use super::tables::{TABLES, Table};

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// What the database has of the file now, counted by reading it back.
    pub manifest: Manifest,
    /// Counts and hashes are those of the file. Not known after adding all projects of a file to others.
    pub verified: bool,
    /// Rows that an earlier import of the same file had stored.
    pub resumed_after: u64,
}

/// Bytes of rows that are stored together.
const BATCH_BYTES: usize = 4 << 20;

/// Stores what is in a file, and reads it back to compare counts and hashes. After an interruption the same file goes on
/// where it was. `Exists` if the database has data already; with `into_used` that is added to. `Unavailable`, with nothing
/// stored, if a project of the file has the name of another in the database, or a key is there already under another id.
pub async fn import(
    database: &mut dyn Database,
    from: impl Read,
    into_used: bool,
    mut progress: impl FnMut(u64),
) -> Result<Imported, StoreError> {
    let mut lines = BufReader::new(GzDecoder::new(from)).lines();
    let header: Header = read_line(lines.next())?;
    if header.toolgate_export != FORMAT {
        return Err(bad(format!(
            "its format is {}, expected {FORMAT}",
            header.toolgate_export
        )));
    }
    let project = header.project.as_deref().map(str::parse::<ProjectId>).transpose();
    let project = project.map_err(|_| bad("its header names no project"))?;
    let resumed_after = database.progress(&header.id).await?;
    if resumed_after.is_none() && !into_used && is_used(database, project).await? {
        return Err(StoreError::Exists);
    }
    let resumed_after = resumed_after.unwrap_or_default();
    let (claims, head) = Claims::of_file(&mut lines);
    claims.require_free(database).await?;
    let mut lines = head.into_iter().chain(lines);

    let mut counted = Manifest::default();
    let mut batch = Batch::default();
    let manifest = loop {
        let line = lines
            .next()
            .ok_or_else(|| bad("it ends before its manifest: the export was interrupted"))?
            .map_err(|error| bad(error.to_string()))?;
        if line.starts_with('{') {
            break serde_json::from_str::<Manifest>(&line).map_err(|error| bad(error.to_string()))?;
        }
        let (table, row) = Row::read(&line).map_err(bad)?;
        counted.count(table, &line);
        let number = counted.rows();
        if number <= resumed_after {
            continue;
        }
        if batch.is_full(table) {
            batch.store(database, &header.id, number - 1).await?;
            progress(number - 1);
        }
        batch.add(table, row);
    };
    if counted != manifest {
        return Err(bad("its rows are not those of its manifest: it is damaged"));
    }
    batch.store(database, &header.id, counted.rows()).await?;
    progress(counted.rows());
    let stored = read_back(database, project).await?;
    // With the data of other projects beside it, what was there before cannot be told from what was added.
    let verified = !into_used || project.is_some();
    if verified && stored != manifest {
        let table = manifest
            .tables
            .iter()
            .find(|(name, tally)| stored.tables.get(*name) != Some(tally));
        let name = table.map_or("another table", |(name, _)| name);
        return Err(StoreError::Corrupt(format!(
            "{name} is not what the file has, import it again"
        )));
    }
    database.finish(&header.id).await?;
    Ok(Imported {
        manifest: stored,
        verified,
        resumed_after,
    })
}

/// Rows of one table that are stored together.
#[derive(Default)]
struct Batch {
    table: Option<&'static Table>,
    rows: Vec<Row>,
    bytes: usize,
}

impl Batch {
    /// Whether a row of this table belongs to the next one.
    fn is_full(&self, table: &'static Table) -> bool {
        let other = self.table.is_some_and(|own| own.name != table.name);
        other || self.rows.len() >= table.page || self.bytes >= BATCH_BYTES
    }

    fn add(&mut self, table: &'static Table, row: Row) {
        self.bytes += row.size();
        self.table = Some(table);
        self.rows.push(row);
    }

    async fn store(
        &mut self,
        database: &mut dyn Database,
        import: &str,
        lines: u64,
    ) -> Result<(), StoreError> {
        if let Some(table) = self.table {
            database.store(import, lines, table, &self.rows).await?;
        }
        *self = Self::default();
        Ok(())
    }
}

async fn is_used(database: &mut dyn Database, project: Option<ProjectId>) -> Result<bool, StoreError> {
    let projects = &TABLES[0];
    Ok(!database.rows(projects, project, None).await?.is_empty())
}

async fn read_back(database: &mut dyn Database, project: Option<ProjectId>) -> Result<Manifest, StoreError> {
    let mut manifest = Manifest::default();
    for table in TABLES {
        let mut last = None;
        loop {
            let rows = database.rows(table, project, last.as_ref()).await?;
            for row in &rows {
                manifest.count(table, &row.line(table));
            }
            match rows.into_iter().last() {
                Some(row) => last = Some(row),
                None => break,
            }
        }
    }
    Ok(manifest)
}

fn read_line<T: serde::de::DeserializeOwned>(
    line: Option<Result<String, std::io::Error>>,
) -> Result<T, StoreError> {
    let line = line.ok_or_else(|| bad("it is empty"))?;
    let line = line.map_err(|error| bad(error.to_string()))?;
    serde_json::from_str(&line).map_err(|error| bad(error.to_string()))
}

fn bad(why: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!(
        "this is no file that `toolgate store export` has written: {why}"
    ))
}
