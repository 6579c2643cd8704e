//! Idempotency keys with the responses to their requests, for a day.

use rusqlite::{Connection, params};
use toolgate_engine::store::IdempotencyRecord;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

use super::column::{change, first, insert, json};
use super::fault::Fault;

const REMEMBER: &str = "
    INSERT INTO idempotency (project, key, request, answer, time) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (project, key) DO UPDATE
    SET request = excluded.request, answer = excluded.answer, time = excluded.time
    WHERE idempotency.time < ?6";

/// Stores a response under its key; `Exists` if the key was used within a day.
pub(crate) fn remember(connection: &Connection, record: &IdempotencyRecord) -> Result<(), Fault> {
    let row = params![
        record.project.to_bytes(),
        record.key,
        record.request,
        record.answer.as_str(),
        record.time.0,
        crate::idempotency_kept_since(record.time).0,
    ];
    insert(connection, REMEMBER, row)
}

const GET: &str = "
    SELECT project, key, request, answer, time FROM idempotency WHERE project = ?1 AND key = ?2";

pub(crate) fn get(
    connection: &Connection,
    project: ProjectId,
    key: &str,
) -> Result<Option<IdempotencyRecord>, Fault> {
    first(connection, GET, params![project.to_bytes(), key], |row| {
        Ok(IdempotencyRecord {
            project: ProjectId::from_bytes(row.get(0)?),
            key: row.get(1)?,
            request: row.get(2)?,
            answer: json(row, 3)?,
            time: Time(row.get(4)?),
        })
    })
}

pub(crate) const FORGET: &str = "DELETE FROM idempotency WHERE time < ?1";

/// Deletes records that are a day old at `now`.
pub(crate) fn forget(connection: &Connection, now: Time) -> Result<(), Fault> {
    change(connection, FORGET, [crate::idempotency_kept_since(now).0])?;
    Ok(())
}

const LATEST: &str = "SELECT time FROM idempotency ORDER BY time DESC LIMIT 1";

/// Time of the newest record: the store has no clock of its own.
pub(crate) fn latest(connection: &Connection) -> Result<Option<Time>, Fault> {
    first(connection, LATEST, [], |row| Ok(Time(row.get(0)?)))
}

/// Records written between two deletions of old ones.
const FORGET_EVERY: u32 = 1024;

/// Counts written records, to delete old ones from time to time.
#[derive(Default)]
pub(crate) struct Answers(u32);

impl Answers {
    /// Counts a record that was written at `now`.
    pub(crate) fn count(&mut self, connection: &Connection, now: Time) -> Result<(), Fault> {
        self.0 = (self.0 + 1) % FORGET_EVERY;
        if self.0 == 0 {
            forget(connection, now)
        } else {
            Ok(())
        }
    }
}
