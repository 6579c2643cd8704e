//! Whether a database is whole: its pages and indexes, that every stored event can be read, and what must hold between rows.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use toolgate_engine::store::StoreError;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};

use super::fault::Fault;
use super::readers;
use crate::text;

/// Most lines of damage that are reported: after the first ones the rest rarely tells more.
pub const DAMAGE_LINES_MAX: usize = 100;

/// What a check of a whole database found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// One line per damage, at most [`DAMAGE_LINES_MAX`]; none if the database is whole.
    pub damage: Vec<String>,
    /// Entries of the log that were read.
    pub entries: u64,
}

/// Checks everything in the database at `path`, however long that takes. It may be in use: the check reads a snapshot.
///
/// Damage is in the report; an error means that the file could not be opened at all.
pub fn check(path: &Path) -> Result<CheckReport, StoreError> {
    run(
        path,
        &[
            check_tables,
            check_pages,
            check_events,
            check_runs,
            check_places,
            check_projects,
        ],
    )
}

/// The same without what must hold between rows: whether a file holds what was written to it.
pub(crate) fn check_file(path: &Path) -> Result<CheckReport, StoreError> {
    run(path, &[check_pages, check_events])
}

/// What must hold between rows alone, in a file that may be of an earlier version: nothing is checked where a table for it is
/// missing.
pub(crate) fn check_contradictions(path: &Path) -> Result<Vec<String>, StoreError> {
    run(path, &[check_rows]).map(|report| report.damage)
}

/// Looks for damage of one kind.
type Check = fn(&Connection, &mut CheckReport) -> Result<(), Fault>;

fn run(path: &Path, checks: &[Check]) -> Result<CheckReport, StoreError> {
    if !path.is_file() {
        let why = format!("{} is not there, or is not a file", path.display());
        return Err(StoreError::Unavailable(why));
    }
    let connection = readers::open(path).map_err(Fault::into_store_error)?;
    let mut report = CheckReport::default();
    for check in checks {
        // Damage of the file also ends the statement that looks for it.
        if let Err(fault) = check(&connection, &mut report) {
            match fault.into_store_error() {
                StoreError::Corrupt(why) => {
                    report.damage.push(why);
                    break;
                }
                other => return Err(other),
            }
        }
    }
    report.damage.truncate(DAMAGE_LINES_MAX);
    Ok(report)
}

/// A database without tables has lost everything; what else is looked for would not be found.
fn check_tables(connection: &Connection, _: &mut CheckReport) -> Result<(), Fault> {
    let count = connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'log'",
        [],
        |row| row.get::<_, i64>(0),
    )?;
    match count {
        0 => Err(StoreError::Corrupt("it has no log, as if it had never been used".into()).into()),
        _ => Ok(()),
    }
}

fn check_pages(connection: &Connection, report: &mut CheckReport) -> Result<(), Fault> {
    let sql = format!("PRAGMA integrity_check({DAMAGE_LINES_MAX})");
    report.damage.extend(damage(connection, &sql)?);
    Ok(())
}

fn check_events(connection: &Connection, report: &mut CheckReport) -> Result<(), Fault> {
    let mut statement = connection.prepare("SELECT space, first, format, events FROM log")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        report.entries += 1;
        let events: String = row.get(3)?;
        if let Err(error) = text::read(row.get(2)?, &events) {
            let space = SpaceId::from_bytes(row.get(0)?);
            let first: i64 = row.get(1)?;
            report.damage.push(format!("{space}, seq {first}: {error}"));
            if report.damage.len() >= DAMAGE_LINES_MAX {
                break;
            }
        }
    }
    Ok(())
}

const HAS_FLOORS: &str = "SELECT count(*) FROM sqlite_schema WHERE name = 'log_floors'";

fn check_rows(connection: &Connection, report: &mut CheckReport) -> Result<(), Fault> {
    let has_floors = connection.query_row(HAS_FLOORS, [], |row| row.get::<_, bool>(0))?;
    if has_floors {
        check_runs(connection, report)?;
        check_places(connection, report)?;
        check_projects(connection, report)?;
    }
    Ok(())
}

// The last entry of each run is found in the index: no other is read.
const RUNS: &str = "
    SELECT id, version, coalesce(found.last, 0) FROM runs
    LEFT JOIN log AS found
        ON found.run = runs.id AND found.first = (SELECT max(first) FROM log WHERE log.run = runs.id)
    WHERE version <> coalesce(found.last, 0) LIMIT ?1";

/// The row of a run and its log are one write, and a run is deleted row first: whatever has a row has its whole log.
fn check_runs(connection: &Connection, report: &mut CheckReport) -> Result<(), Fault> {
    let mut statement = connection.prepare(RUNS)?;
    let mut rows = statement.query([DAMAGE_LINES_MAX as i64])?;
    while let Some(row) = rows.next()? {
        let run = RunId::from_bytes(row.get(0)?);
        let (version, last): (i64, i64) = (row.get(1)?, row.get(2)?);
        report
            .damage
            .push(format!("{run}: its version is {version}, its log ends at {last}"));
    }
    Ok(())
}

const PLACES: &str = "
    SELECT space, first, before FROM (
        SELECT space, first, lag(last, 1, 0) OVER (PARTITION BY space ORDER BY first) AS before FROM log
    ) LEFT JOIN log_floors USING (space)
    WHERE first < before + ?1 OR (first > before + ?1 AND first - ?1 > coalesce(floor, 0)) LIMIT ?2";

/// The log of a space has no gap but where entries were deleted, which is up to its floor.
fn check_places(connection: &Connection, report: &mut CheckReport) -> Result<(), Fault> {
    let mut statement = connection.prepare(PLACES)?;
    let mut rows = statement.query([Seq::STRIDE as i64, DAMAGE_LINES_MAX as i64])?;
    while let Some(row) = rows.next()? {
        let space = SpaceId::from_bytes(row.get(0)?);
        let (first, before): (i64, i64) = (row.get(1)?, row.get(2)?);
        report
            .damage
            .push(format!("{space}, seq {first}: the entry before ends at {before}"));
    }
    Ok(())
}

const WITHOUT_PROJECT: &str = "
    SELECT project, count(*), 'runs' FROM runs WHERE project NOT IN (SELECT id FROM projects) GROUP BY project
    UNION ALL
    SELECT project, count(*), 'spaces' FROM spaces WHERE project NOT IN (SELECT id FROM projects) GROUP BY project
    UNION ALL
    SELECT project, count(*), 'keys' FROM keys WHERE project NOT IN (SELECT id FROM projects) GROUP BY project
    LIMIT ?1";

/// A project is deleted with everything in it: what belongs to none is reached by no key.
fn check_projects(connection: &Connection, report: &mut CheckReport) -> Result<(), Fault> {
    let mut statement = connection.prepare(WITHOUT_PROJECT)?;
    let mut rows = statement.query([DAMAGE_LINES_MAX as i64])?;
    while let Some(row) = rows.next()? {
        let project = ProjectId::from_bytes(row.get(0)?);
        let (count, what): (i64, String) = (row.get(1)?, row.get(2)?);
        report.damage.push(format!(
            "{project}: it is not there, but {count} {what} of it are"
        ));
    }
    Ok(())
}

/// Looks for damaged pages for at most `limit`. What is not seen by then is left to the full check, so that a large
/// database does not keep the gateway from starting.
pub(crate) fn quick(connection: &Connection, limit: Duration) -> Result<(), Fault> {
    let found = within(connection, limit, || damage(connection, "PRAGMA quick_check(1)"));
    match found {
        Ok(lines) => match lines.into_iter().next() {
            Some(line) => Err(StoreError::Corrupt(line).into()),
            None => Ok(()),
        },
        Err(Fault::Sql(error)) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            tracing::warn!(
                ?limit,
                "the quick check of the database did not end in time; `toolgate store check` looks at everything"
            );
            Ok(())
        }
        Err(fault) => Err(fault),
    }
}

/// The lines of a check, without the one that says that all is well.
fn damage(connection: &Connection, sql: &str) -> Result<Vec<String>, Fault> {
    let mut statement = connection.prepare(sql)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Does `work` on the connection, and interrupts it after `limit`.
fn within<T>(connection: &Connection, limit: Duration, work: impl FnOnce() -> T) -> T {
    let interrupt = connection.get_interrupt_handle();
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(limit) {
                interrupt.interrupt();
            }
        });
        let value = work();
        drop(done);
        value
    })
}
