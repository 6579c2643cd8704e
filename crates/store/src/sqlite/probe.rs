//! Whether a write would be taken: seen by making one.

use rusqlite::{Connection, params};

use super::column::{change, first};
use super::fault::Fault;

/// As much as a long append: on a disk that is almost full a word would still fit.
const PROBE_BYTES: usize = 64 << 10;

const COUNT: &str = "SELECT written FROM probe WHERE id = 1";
const WRITE: &str = "UPDATE probe SET written = ?1, filling = ?2 WHERE id = 1";

pub(crate) fn write(connection: &Connection) -> Result<(), Fault> {
    let written = first(connection, COUNT, [], |row| Ok(row.get::<_, i64>(0)?))?.unwrap_or_default() + 1;
    // Never the same twice: pages that keep their content are not written.
    let filling = vec![written as u8; PROBE_BYTES];
    change(connection, WRITE, params![written, filling])?;
    Ok(())
}
