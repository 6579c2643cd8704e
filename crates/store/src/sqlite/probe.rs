//! Readiness probe: whether the database gives what runs need and accepts a write, tested by reading and writing.

use rusqlite::{Connection, params};

use super::column::{change, first};
use super::fault::Fault;

/// Bytes of the test write, as many as a long append: on an almost full disk a few bytes would still fit.
const PROBE_BYTES: usize = 64 << 10;

const COUNT: &str = "SELECT written FROM probe WHERE id = 1";
const WRITE: &str = "UPDATE probe SET written = ?1, filling = ?2 WHERE id = 1";

pub(crate) fn write(connection: &Connection) -> Result<(), Fault> {
    let written = first(connection, COUNT, [], |row| Ok(row.get::<_, i64>(0)?))?.unwrap_or_default() + 1;
    // Other bytes each time, because SQLite does not write pages whose content stays the same.
    let filling = vec![written as u8; PROBE_BYTES];
    change(connection, WRITE, params![written, filling])?;
    Ok(())
}

/// Each reads the ends of a table or index that every run needs: the first and the last row.
const READS: &[&str] = &[
    "SELECT * FROM projects ORDER BY id LIMIT 1",
    "SELECT * FROM keys ORDER BY id LIMIT 1",
    "SELECT * FROM agents ORDER BY rowid DESC LIMIT 1",
    "SELECT * FROM spaces ORDER BY id LIMIT 1",
    "SELECT * FROM spaces ORDER BY id DESC LIMIT 1",
    "SELECT * FROM members ORDER BY space DESC LIMIT 1",
    "SELECT * FROM entities ORDER BY rowid DESC LIMIT 1",
    "SELECT * FROM runs ORDER BY id LIMIT 1",
    "SELECT * FROM runs ORDER BY id DESC LIMIT 1",
    "SELECT * FROM log ORDER BY rowid LIMIT 1",
    "SELECT * FROM log ORDER BY rowid DESC LIMIT 1",
    "SELECT run, first FROM log WHERE run IS NOT NULL ORDER BY run DESC LIMIT 1",
    "SELECT * FROM idempotency ORDER BY time DESC LIMIT 1",
    "SELECT * FROM definitions LIMIT 1",
];

pub(crate) fn read(connection: &Connection) -> Result<(), Fault> {
    for sql in READS {
        let mut statement = connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        if let Some(row) = rows.next()? {
            // A long value continues on pages of its own.
            for column in 0..columns {
                row.get_ref(column)?;
            }
        }
    }
    Ok(())
}
