//! Whether a database is whole: what must hold between its rows, and that every stored event can be read.

use std::time::Duration;

use toolgate_engine::store::StoreError;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::SpaceId;
use uuid::Uuid;

use super::column::{Id, get, rows, small, string};
use super::fault::Fault;
use super::session::Db;
use super::{PostgresAddress, PostgresOptions, connect_to_read};
use crate::sqlite::{CheckReport, DAMAGE_LINES_MAX};
use crate::text;

/// Each finds rows that contradict others, and names them in one text. `{stride}` stands for the distance of two places.
const CONTRADICTIONS: &[&str] = &[
    // Entries are deleted up to the floor: a log may end there, and have gaps before it.
    "SELECT 'space ' || heads.space || ': its last place is ' || heads.last || ', its log ends at '
            || coalesce(found.last, 0)
     FROM heads LEFT JOIN (
        SELECT space, max(last) AS last FROM (
            SELECT space, last FROM log UNION ALL SELECT space, floor FROM log_floors) AS places (space, last)
        GROUP BY space) AS found USING (space)
     WHERE heads.last <> coalesce(found.last, 0)",
    "SELECT 'space ' || space || ': its log has no head' FROM log
     WHERE NOT EXISTS (SELECT 1 FROM heads WHERE heads.space = log.space) GROUP BY space",
    "SELECT 'space ' || space || ', seq ' || first || ': the entry before ends at ' || before
     FROM (
        SELECT space, first, lag(last, 1, 0::bigint) OVER (PARTITION BY space ORDER BY first) AS before FROM log
     ) AS entries
     LEFT JOIN log_floors USING (space)
     WHERE first <> before + {stride}
       AND NOT (first > before AND first - {stride} <= coalesce(floor, 0))",
    // A run is deleted row first: whatever has a row has its whole log.
    "SELECT 'run ' || id || ': its version is ' || version || ', its log ends at ' || coalesce(found.last, 0)
     FROM runs LEFT JOIN (
        SELECT run, max(last) AS last FROM log WHERE run IS NOT NULL GROUP BY run) AS found ON found.run = runs.id
     WHERE version <> coalesce(found.last, 0)",
    "SELECT 'run ' || id || ': its status ' || status || ' contradicts its flags' FROM runs
     WHERE (open <> (status NOT IN ('completed', 'failed', 'cancelled')) OR queued <> (status = 'queued'))",
    "SELECT 'records ' || sets.kind || ' of project ' || sets.project || ': ' || sets.records || ' and ' || sets.bytes
            || ' bytes are counted, ' || found.records || ' and ' || found.bytes || ' bytes are there'
     FROM record_sets AS sets JOIN LATERAL (
        SELECT count(*) AS records, coalesce(sum(octet_length(body) + coalesce(octet_length(data), 0)), 0) AS bytes
        FROM records WHERE records.project = sets.project AND records.owner = sets.owner AND records.kind = sets.kind
     ) AS found ON true
     WHERE (sets.records <> found.records OR sets.bytes <> found.bytes)",
    "SELECT 'search finds record ' || number || ', which is not there' FROM searchable
     WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.number = searchable.number)",
    // A project is deleted with everything in it: what belongs to none is reached by no key.
    "SELECT 'project ' || project || ': it is not there, but ' || count(*) || ' runs of it are' FROM runs
     WHERE NOT EXISTS (SELECT 1 FROM projects WHERE projects.id = runs.project) GROUP BY project",
    "SELECT 'project ' || project || ': it is not there, but ' || count(*) || ' spaces of it are' FROM spaces
     WHERE NOT EXISTS (SELECT 1 FROM projects WHERE projects.id = spaces.project) GROUP BY project",
    "SELECT 'project ' || project || ': it is not there, but ' || count(*) || ' keys of it are' FROM keys
     WHERE NOT EXISTS (SELECT 1 FROM projects WHERE projects.id = keys.project) GROUP BY project",
];

const EVENTS: &str = "
    SELECT space, first, format, events FROM log WHERE (space, first) > ($1, $2) ORDER BY space, first LIMIT $3";
/// Entries that are read together.
const PAGE: i64 = 500;

/// Longest time for one statement of the check.
const STATEMENT: Duration = Duration::from_secs(3600);

/// Checks everything in a database, however long that takes. It may be in use: the check reads a snapshot.
///
/// Contradictions are in the report; an error means that the database could not be read at all.
pub async fn check(address: &PostgresAddress) -> Result<CheckReport, StoreError> {
    let options = PostgresOptions {
        statement_timeout: STATEMENT,
        ..PostgresOptions::default()
    };
    let checked = async {
        let lease = connect_to_read(address, options).await?;
        let db = lease.db();
        db.control("SET idle_in_transaction_session_timeout = 0")
            .await??;
        db.control("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .await??;
        let mut report = CheckReport::default();
        for sql in CONTRADICTIONS {
            let sql = sql.replace("{stride}", &Seq::STRIDE.to_string());
            let sql = format!("{sql} LIMIT {DAMAGE_LINES_MAX}");
            report
                .damage
                .extend(rows(&db, &sql, &[], |row| string(row, 0)).await?);
        }
        check_events(&db, &mut report).await?;
        report.damage.truncate(DAMAGE_LINES_MAX);
        Ok::<_, Fault>(report)
    };
    checked.await.map_err(Fault::into_store_error)
}

async fn check_events(db: &Db<'_>, report: &mut CheckReport) -> Result<(), Fault> {
    let mut after = (Uuid::nil(), -1_i64);
    loop {
        let page = db.query(EVENTS, &[&after.0, &after.1, &PAGE]).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = (get(last, 0)?, get(last, 1)?);
        for row in &page {
            report.entries += 1;
            let events: &str = row.try_get(3)?;
            if let Err(error) = text::read(small(row, 2)?, events) {
                let (space, first): (SpaceId, i64) = (SpaceId::of(get(row, 0)?), get(row, 1)?);
                report.damage.push(format!("{space}, seq {first}: {error}"));
                if report.damage.len() >= DAMAGE_LINES_MAX {
                    return Ok(());
                }
            }
        }
    }
}
