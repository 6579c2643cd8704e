//! Receipts: results of calls whose changes are stored.

use rusqlite::{Connection, params};
use toolgate_engine::records::Receipt;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;

use super::column::{change, first, json};
use super::fault::Fault;

const GET: &str = "SELECT answer FROM receipts WHERE project = ?1 AND key = ?2";

pub(crate) fn get(connection: &Connection, project: ProjectId, key: &str) -> Result<Option<Json>, Fault> {
    first(connection, GET, params![project.to_bytes(), key], |row| {
        json(row, 0)
    })
}

/// Checks that there is no such receipt, else `Exists`. Called first, before anything is changed.
pub(crate) fn check(connection: &Connection, project: ProjectId, receipt: &Receipt) -> Result<(), Fault> {
    match get(connection, project, &receipt.key)? {
        Some(_) => Err(StoreError::Exists.into()),
        None => Ok(()),
    }
}

const FORGET: &str = "DELETE FROM receipts WHERE time < ?1";
const KEEP: &str = "INSERT INTO receipts (project, key, time, answer) VALUES (?1, ?2, ?3, ?4)";

/// Stores a receipt, and deletes those past their retention.
pub(crate) fn keep(connection: &Connection, project: ProjectId, receipt: &Receipt) -> Result<(), Fault> {
    change(connection, FORGET, [crate::receipts_kept_since(receipt.time).0])?;
    let row = params![
        project.to_bytes(),
        receipt.key,
        receipt.time.0,
        receipt.answer.as_str()
    ];
    change(connection, KEEP, row)?;
    Ok(())
}
