//! Migrates a database to the schema of this version. Each migration is applied once, in order, all of them in
//! one transaction; a released migration is never edited.

use rusqlite::{Connection, TransactionBehavior, params};
use sha2::{Digest, Sha256};
use toolgate_engine::store::StoreError;

use super::column::{first, rows};
use super::fault::Fault;

/// Version and SQL of each migration.
const STEPS: &[(u32, &str)] = &[
    (1, include_str!("../../migrations/sqlite/0001_first.sql")),
    (2, include_str!("../../migrations/sqlite/0002_tool_usage.sql")),
    (3, include_str!("../../migrations/sqlite/0003_records.sql")),
    (4, include_str!("../../migrations/sqlite/0004_families.sql")),
    (5, include_str!("../../migrations/sqlite/0005_open_runs.sql")),
    (6, include_str!("../../migrations/sqlite/0006_wakes.sql")),
    (7, include_str!("../../migrations/sqlite/0007_definitions.sql")),
    (
        8,
        include_str!("../../migrations/sqlite/0008_project_settings.sql"),
    ),
    (9, include_str!("../../migrations/sqlite/0009_given_agents.sql")),
    (10, include_str!("../../migrations/sqlite/0010_run_indices.sql")),
    (11, include_str!("../../migrations/sqlite/0011_roles.sql")),
    (
        12,
        include_str!("../../migrations/sqlite/0012_identity_provider.sql"),
    ),
    (13, include_str!("../../migrations/sqlite/0013_search.sql")),
    (14, include_str!("../../migrations/sqlite/0014_run_tool.sql")),
    (15, include_str!("../../migrations/sqlite/0015_run_lists.sql")),
    (16, include_str!("../../migrations/sqlite/0016_consumption.sql")),
    (17, include_str!("../../migrations/sqlite/0017_retention.sql")),
    (18, include_str!("../../migrations/sqlite/0018_list_indexes.sql")),
    (19, include_str!("../../migrations/sqlite/0019_rewrites.sql")),
    (20, include_str!("../../migrations/sqlite/0020_run_walks.sql")),
    (21, include_str!("../../migrations/sqlite/0021_recent_runs.sql")),
];

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS migrations (version INTEGER NOT NULL PRIMARY KEY, checksum BLOB NOT NULL) STRICT";
const HAS_TABLE: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'";
const APPLIED: &str = "SELECT version, checksum FROM migrations ORDER BY version";
const APPLY: &str = "INSERT INTO migrations (version, checksum) VALUES (?1, ?2)";

/// Applies missing migrations. Rejects a database of a newer version, or one made by other migrations.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    transaction.execute_batch(TABLE)?;
    let applied = rows(&transaction, APPLIED, [], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, [u8; 32]>(1)?))
    })?;
    for (version, checksum) in &applied {
        verify(*version, checksum)?;
    }
    for (version, sql) in STEPS.iter().skip(applied.len()) {
        transaction.execute_batch(sql)?;
        transaction.execute(APPLY, params![version, checksum_of(sql)])?;
    }
    Ok(transaction.commit()?)
}

/// Versions of the migrations that a database has.
pub(crate) fn applied(connection: &Connection) -> Result<Vec<u32>, Fault> {
    rows(connection, APPLIED, [], |row| Ok(row.get(0)?))
}

/// An error that names the remedy, unless the database has every migration that this program knows.
pub(crate) fn require_current(connection: &Connection) -> Result<(), Fault> {
    let unavailable = |why: String| Fault::Refused(StoreError::Unavailable(why));
    if first(connection, HAS_TABLE, [], |_| Ok(()))?.is_none() {
        let why = "it has no tables of Toolgate, see that --data names the right directory";
        return Err(unavailable(why.into()));
    }
    let applied = applied(connection)?;
    let newest = STEPS.len() as u32;
    match applied.last() {
        Some(last) if *last > newest => Err(too_new(*last).into()),
        Some(last) if *last == newest => Ok(()),
        last => Err(unavailable(format!(
            "it was made by an earlier version and has migration {} of {newest}, run `toolgate store migrate` first",
            last.copied().unwrap_or_default()
        ))),
    }
}

fn too_new(version: u32) -> StoreError {
    StoreError::Corrupt(format!(
        "the database has version {version}, made by a newer toolgate; this one knows up to {}",
        STEPS.len()
    ))
}

fn verify(version: u32, checksum: &[u8; 32]) -> Result<(), StoreError> {
    match STEPS.iter().find(|(step, _)| *step == version) {
        Some((_, sql)) if checksum_of(sql) == *checksum => Ok(()),
        Some(_) => Err(StoreError::Corrupt(format!(
            "migration {version} of the database is not the one this toolgate was built with"
        ))),
        None => Err(too_new(version)),
    }
}

fn checksum_of(sql: &str) -> [u8; 32] {
    Sha256::digest(sql).into()
}
