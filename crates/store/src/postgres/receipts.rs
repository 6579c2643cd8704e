//! Receipts: results of calls whose changes are stored.

use toolgate_engine::records::Receipt;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;

use super::column::{Id, change, first, insert, json, text};
use super::fault::Fault;
use super::session::Db;

const GET: &str = "SELECT answer FROM receipts WHERE project = $1 AND key = $2";

pub(super) async fn of(db: &Db<'_>, project: ProjectId, key: &str) -> Result<Option<Json>, Fault> {
    first(db, GET, &[&project.uuid(), &text(key)], |row| json(row, 0)).await
}

/// Checks that there is no such receipt, else `Exists`. Called first, before anything is changed.
pub(super) async fn check(db: &Db<'_>, project: ProjectId, receipt: &Receipt) -> Result<(), Fault> {
    match of(db, project, &receipt.key).await? {
        Some(_) => Err(StoreError::Exists.into()),
        None => Ok(()),
    }
}

// Rows that another node deletes at the same time are left to it.
const FORGET: &str = "
    DELETE FROM receipts WHERE (project, key) IN (
        SELECT project, key FROM receipts WHERE time < $1 FOR UPDATE SKIP LOCKED)";
const KEEP: &str = "
    INSERT INTO receipts (project, key, time, answer) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

/// Stores a receipt, and deletes those past their retention; `Exists` if another node has just stored it.
pub(super) async fn keep(db: &Db<'_>, project: ProjectId, receipt: &Receipt) -> Result<(), Fault> {
    change(db, FORGET, &[&crate::receipts_kept_since(receipt.time).0]).await?;
    let (project, key) = (project.uuid(), text(&receipt.key));
    insert(
        db,
        KEEP,
        &[&project, &key, &receipt.time.0, &receipt.answer.as_str()],
    )
    .await
}
