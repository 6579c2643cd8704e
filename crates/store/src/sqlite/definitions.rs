//! The definitions of tools that runs pin, once per content.

use rusqlite::{Connection, params};
use toolgate_engine::store::StoredDefinition;
use toolgate_kernel::id::ProjectId;

use super::column::{change, first, json};
use super::fault::Fault;

const KEEP: &str = "INSERT OR IGNORE INTO definitions (project, hash, definition) VALUES (?1, ?2, ?3)";

pub(crate) fn keep(
    connection: &Connection,
    project: ProjectId,
    definitions: &[StoredDefinition],
) -> Result<(), Fault> {
    for stored in definitions {
        let row = params![project.to_bytes(), stored.hash, stored.definition.as_str()];
        change(connection, KEEP, row)?;
    }
    Ok(())
}

const GET: &str = "SELECT definition FROM definitions WHERE project = ?1 AND hash = ?2";

pub(crate) fn get(
    connection: &Connection,
    project: ProjectId,
    hashes: &[String],
) -> Result<Vec<StoredDefinition>, Fault> {
    let mut found = Vec::with_capacity(hashes.len());
    for hash in hashes {
        let definition = first(connection, GET, params![project.to_bytes(), hash], |row| {
            json(row, 0)
        })?;
        found.extend(definition.map(|definition| StoredDefinition {
            hash: hash.clone(),
            definition,
        }));
    }
    Ok(found)
}
