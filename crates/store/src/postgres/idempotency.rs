//! Idempotency keys with the responses to their requests, for a day.

use std::collections::BTreeMap;

use toolgate_engine::store::{IdempotencyRecord, StoreError};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use super::batch::{Trip, pairs};
use super::column::{Id, change, first, get, id, json, string, text};
use super::fault::Fault;
use super::session::Db;

/// Times of the records with these keys.
pub(super) const TIMES: &str = "
    SELECT idempotency.project, idempotency.key, time
    FROM unnest($1::uuid[], $2::text[]) AS wanted (project, key)
    JOIN idempotency ON idempotency.project = wanted.project AND idempotency.key = wanted.key COLLATE \"C\"";

/// Removes the records with these keys.
pub(super) const REMOVE: &str = "
    DELETE FROM idempotency USING unnest($1::uuid[], $2::text[]) AS old (project, key)
    WHERE idempotency.project = old.project AND idempotency.key = old.key COLLATE \"C\"";

// A key that is there fails the transaction: the batch has looked for it before, so somebody else has just used it.
const REMEMBER: &str = "
    INSERT INTO idempotency (project, key, request, answer, time)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::text[], $5::bigint[])";

/// New records, as parameters.
pub(super) struct Columns<'a> {
    projects: Vec<Uuid>,
    keys: Vec<String>,
    requests: Vec<&'a [u8]>,
    answers: Vec<&'a str>,
    times: Vec<i64>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(records: &'a BTreeMap<(ProjectId, String), IdempotencyRecord>) -> Self {
        let (projects, keys) = pairs(records.keys().map(|(project, key)| (*project, key.as_str())));
        let records = records.values();
        Self {
            projects,
            keys,
            requests: records.clone().map(|record| &record.request[..]).collect(),
            answers: records.clone().map(|record| record.answer.as_str()).collect(),
            times: records.map(|record| record.time.0).collect(),
        }
    }

    pub(super) async fn add_to<'t>(&'t self, trip: &mut Trip<'t>) -> Result<(), Fault> {
        let params = vec![
            &self.projects as _,
            &self.keys as _,
            &self.requests as _,
            &self.answers as _,
            &self.times as _,
        ];
        trip.add_if(!self.keys.is_empty(), REMEMBER, params)
            .await
            .map(drop)
    }
}

const GET: &str = "
    SELECT project, key, request, answer, time FROM idempotency WHERE project = $1 AND key = $2";

pub(super) async fn of(
    db: &Db<'_>,
    project: ProjectId,
    key: &str,
) -> Result<Option<IdempotencyRecord>, Fault> {
    first(db, GET, &[&project.uuid(), &text(key)], |row| {
        let request: Vec<u8> = get(row, 2)?;
        let answer: Json = json(row, 3)?;
        Ok(IdempotencyRecord {
            project: id(row, 0)?,
            key: string(row, 1)?,
            request: hash(&request)?,
            answer,
            time: Time(get(row, 4)?),
        })
    })
    .await
}

/// A SHA-256 that was stored.
pub(super) fn hash(bytes: &[u8]) -> Result<[u8; 32], Fault> {
    let read = <[u8; 32]>::try_from(bytes);
    read.map_err(|_| StoreError::Corrupt("a hash that has not 32 bytes".into()).into())
}

const LATEST: &str = "SELECT time FROM idempotency ORDER BY time DESC LIMIT 1";
// Rows that another node deletes at the same time are left to it.
const FORGET: &str = "
    DELETE FROM idempotency WHERE (project, key) IN (
        SELECT project, key FROM idempotency WHERE time < $1 FOR UPDATE SKIP LOCKED)";

/// Deletes records that are a day older than the newest: the store has no clock of its own.
pub(super) async fn forget_old(db: &Db<'_>) -> Result<(), Fault> {
    let latest = first(db, LATEST, &[], |row| Ok(Time(get(row, 0)?))).await?;
    if let Some(latest) = latest {
        forget(db, latest).await?;
    }
    Ok(())
}

/// Deletes records that are a day old at `now`.
pub(super) async fn forget(db: &Db<'_>, now: Time) -> Result<(), Fault> {
    let kept_since = crate::idempotency_kept_since(now);
    change(db, FORGET, &[&kept_since.0]).await.map(drop)
}
