//! Readiness probe: whether the database gives what runs need and accepts a write, tested by reading and writing.

use super::column::change;
use super::fault::Fault;
use super::session::Db;

/// Bytes of the test write, as many as a long append: on an almost full disk a few bytes would still fit.
const PROBE_BYTES: usize = 64 << 10;

// A node that probes at the same time has shown it already.
const LOCK: &str = "SELECT written FROM probe WHERE id = 1 FOR UPDATE SKIP LOCKED";
const WRITE: &str = "UPDATE probe SET written = written + 1, filling = $1 WHERE id = 1";

pub(super) async fn write(db: &Db<'_>) -> Result<(), Fault> {
    if db.query(LOCK, &[]).await?.is_empty() {
        return Ok(());
    }
    // Incompressible enough: the bytes count up, and each write has others.
    let start = uuid::Uuid::now_v7().as_u128() as u64;
    let numbers =
        (0..PROBE_BYTES as u64 / 8).map(|n| start.wrapping_add(n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let filling: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    change(db, WRITE, &[&filling]).await.map(drop)
}

/// Each reads the end of a table or index that every run needs.
const READS: &[&str] = &[
    "SELECT id FROM projects ORDER BY id LIMIT 1",
    "SELECT id FROM keys ORDER BY id LIMIT 1",
    "SELECT name FROM agents ORDER BY project, name, revision LIMIT 1",
    "SELECT id FROM spaces ORDER BY id DESC LIMIT 1",
    "SELECT id FROM runs ORDER BY id DESC LIMIT 1",
    "SELECT space FROM heads ORDER BY space LIMIT 1",
    "SELECT first FROM log ORDER BY space DESC, first DESC LIMIT 1",
    "SELECT key FROM idempotency ORDER BY time DESC LIMIT 1",
];

pub(super) async fn read(db: &Db<'_>) -> Result<(), Fault> {
    for sql in READS {
        db.query(sql, &[]).await?;
    }
    Ok(())
}
