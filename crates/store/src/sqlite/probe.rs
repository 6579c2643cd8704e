//! Readiness probe: whether the database accepts a write, tested by writing.

use rusqlite::{Connection, params};

use super::column::{change, first};
use super::fault::Fault;

/// Bytes of the test write, as many as a long append: on an almost full disk a few bytes would still fit.
const PROBE_BYTES: usize = 64 << 10;

const COUNT: &str = "SELECT written FROM probe WHERE id = 1";
const WRITE: &str = "UPDATE probe SET written = ?1, filling = ?2 WHERE id = 1";

pub(crate) fn write(connection: &Connection) -> Result<(), Fault> {
    let written = first(connection, COUNT, [], |row| Ok(row.get::<_, i64>(0)?))?.unwrap_or_default() + 1;
    // Random, because SQLite does not write pages whose content stays the same.
    let filling = vec![written as u8; PROBE_BYTES];
    change(connection, WRITE, params![written, filling])?;
    Ok(())
}
