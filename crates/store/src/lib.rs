//! Stores events and records behind the engine's [`Store`] seam: in memory for
//! tests, in SQLite for one node, in PostgreSQL for many. Decides nothing: it writes what it is given, all or none, and rejects a
//! write whose writer has not read the newest version.
//!
//! Start with `sqlite` (the store, then `writer` for how commits are grouped and `log` for what an append
//! writes); `memory` implements the same semantics in plain maps, `postgres` with locks instead of a single writer.

mod listeners;
mod memory;
mod postgres;
#[cfg(test)]
mod scale;
mod sqlite;
mod text;
pub mod transfer;
mod walk;

pub use memory::MemoryStore;
pub use postgres::{
    BadAddress, Migrated, PostgresAddress, PostgresOptions, PostgresStore, ServerMessages, StartLock,
    check as check_postgres,
};
pub use sqlite::{
    CheckReport, DAMAGE_LINES_MAX, Restored, SqliteOptions, SqliteStore, backup, check as check_database,
    migrate as migrate_sqlite, restore, vacuum as vacuum_database,
};

use std::time::Duration;

use toolgate_engine::records::{RECEIPTS_KEPT, Records};
use toolgate_engine::store::{Append, DELETED_KNOWN, LANES, RunWrite, Store};
use toolgate_kernel::event::Event;
use toolgate_kernel::time::Time;

/// Everything that is stored, whichever store it is: what a gateway is built on.
pub trait Storage: Store + Records {}

impl<S: Store + Records> Storage for S {}

/// Retention of idempotency records: how long a repeated request gets the stored response.
const IDEMPOTENCY_KEPT: Duration = Duration::from_hours(24);

/// Idempotency records older than this are deleted at `now`.
fn idempotency_kept_since(now: Time) -> Time {
    Time(now.0.saturating_sub(IDEMPOTENCY_KEPT.as_millis() as i64))
}

/// Most tokens that one append adds to a run, so that sums do not overflow whatever a vendor reports.
const TOKENS_MAX: u64 = 1 << 40;

/// Tokens that an append adds to its run.
fn tokens(append: &Append) -> u64 {
    let steps = append.events.iter().filter_map(|event| match event {
        Event::StepFinish(step) => Some(step.usage.total()),
        Event::ContextCut(cut) => cut.usage.map(|usage| usage.total()),
        Event::ToolSampling(sampling) => Some(sampling.usage.total()),
        _ => None,
    });
    steps.fold(0, u64::saturating_add).min(TOKENS_MAX)
}

/// Whether the run of an append may wait for a person after it; none when the append says nothing of that. A step that
/// begins has no calls yet, so nothing of the step before waits.
fn asks(append: &Append) -> Option<bool> {
    append.events.iter().rev().find_map(|event| match event {
        Event::ToolApprovalRequest(_) | Event::ToolQuestion(_) => Some(true),
        Event::StepStart(_) | Event::RunFinish(_) => Some(false),
        _ => None,
    })
}

/// The lane of a new run in a space whose open runs have the lanes `taken`.
fn free_lane(taken: &[u8]) -> u8 {
    let free = (0..LANES).find(|lane| !taken.contains(lane));
    free.unwrap_or((taken.len() % usize::from(LANES)) as u8)
}

/// Receipts older than this are deleted at `now`.
fn receipts_kept_since(now: Time) -> Time {
    Time(now.0.saturating_sub(RECEIPTS_KEPT.as_millis() as i64))
}

/// That something was deleted before this is forgotten at `now`.
fn deleted_known_since(now: Time) -> Time {
    Time(now.0.saturating_sub(DELETED_KNOWN.as_millis() as i64))
}

/// Panics if an append contradicts itself, which is a bug of the caller.
fn check(append: &Append) {
    assert!(!append.events.is_empty(), "an append has at least one event");
    debug_assert!(
        append.events.iter().all(Event::is_durable),
        "only durable events are stored"
    );
    if let Some(above) = &append.above {
        assert!(
            !above.events.is_empty() && above.space != append.space,
            "a child run has a space of its own, and tells something above"
        );
    }
    if let RunWrite::Create { record, space, .. } = &append.run {
        let one_space =
            record.space == append.space && space.as_ref().is_none_or(|new| new.id == append.space);
        assert!(one_space, "a run begins in the space it is appended to");
    }
}
