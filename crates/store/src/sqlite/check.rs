//! Whether a database is whole: its pages and indexes, and that every stored event can be read.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::SpaceId;

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
    if !path.is_file() {
        let why = format!("{} is not there, or is not a file", path.display());
        return Err(StoreError::Unavailable(why));
    }
    let connection = readers::open(path).map_err(Fault::into_store_error)?;
    let mut report = CheckReport::default();
    let checks = [check_pages, check_events];
    for check in checks {
        // Damage of the file also ends the statement that looks for it.
        if let Err(fault) = check(&connection, &mut report) {
            match fault.into_store_error() {
                StoreError::Corrupt(why) => report.damage.push(why),
                other => return Err(other),
            }
        }
    }
    report.damage.truncate(DAMAGE_LINES_MAX);
    Ok(report)
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
