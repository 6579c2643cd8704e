//! Tries again what failed in passing: a deadlock, a connection that was lost, a server that was replaced by another.

use std::time::Duration;

use toolgate_engine::store::StoreError;

use super::fault::Fault;
use super::pool::Pool;

/// Pauses before the second and later attempts: together long enough for a restart of a server, and short enough for a
/// request to wait. Whoever can wait longer asks again.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(5),
    Duration::from_millis(25),
    Duration::from_millis(125),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// Attempts at one piece of work.
#[derive(Default)]
pub(crate) struct Attempts {
    made: usize,
}

impl Attempts {
    /// The outcome for the caller; none if there is to be another attempt, after a pause.
    pub(crate) async fn judge<T>(
        &mut self,
        result: Result<T, Fault>,
        pool: &Pool,
    ) -> Option<Result<T, StoreError>> {
        match result {
            Ok(value) => Some(Ok(value)),
            Err(fault) => match self.pause(&fault, pool).await {
                true => None,
                false => Some(Err(fault.into_store_error())),
            },
        }
    }

    /// Waits before another attempt; false if there is to be none.
    pub(crate) async fn pause(&mut self, fault: &Fault, pool: &Pool) -> bool {
        if matches!(fault, Fault::ReadOnly) {
            pool.drop_connections();
        }
        let Some(pause) = PAUSES.get(self.made).filter(|_| fault.is_passing()) else {
            return false;
        };
        tracing::debug!(?fault, "tries again");
        self.made += 1;
        // Spread, so that two that stood in each other's way do not meet again.
        let spread = rand_part();
        tokio::time::sleep(pause.mul_f64(0.5 + spread)).await;
        true
    }
}

/// A number from 0 to 1.
fn rand_part() -> f64 {
    let [.., a, b] = uuid::Uuid::now_v7().into_bytes();
    f64::from(u16::from_le_bytes([a, b])) / f64::from(u16::MAX)
}

/// Reads on a connection of the pool; again if that fails in passing.
macro_rules! read {
    ($store:expr, $db:ident => $work:expr) => {{
        let mut attempts = $crate::postgres::attempts::Attempts::default();
        loop {
            let result = match $store.pool.get().await {
                Ok(lease) => {
                    let $db = &lease.db();
                    $work.await
                }
                Err(fault) => Err(fault),
            };
            if let Some(outcome) = attempts.judge(result, &$store.pool).await {
                break outcome;
            }
        }
    }};
}

/// Does work in a transaction of its own; again if that fails in passing and nothing is stored.
macro_rules! write {
    ($store:expr, $db:ident => $work:expr) => {
        $crate::postgres::attempts::transact!($store, "BEGIN", $db => $work)
    };
}

/// Reads in a transaction that sees one state of the database throughout.
macro_rules! snapshot {
    ($store:expr, $db:ident => $work:expr) => {
        $crate::postgres::attempts::transact!($store, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", $db => $work)
    };
}

macro_rules! transact {
    ($store:expr, $begin:literal, $db:ident => $work:expr) => {{
        let mut attempts = $crate::postgres::attempts::Attempts::default();
        loop {
            let result = match $store.pool.get().await {
                Ok(lease) => match $crate::postgres::attempts::Transaction::begin(lease, $begin).await {
                    Ok(transaction) => {
                        let result = {
                            let $db = &transaction.db();
                            $work.await
                        };
                        transaction.end(result).await
                    }
                    Err(fault) => Err(fault),
                },
                Err(fault) => Err(fault),
            };
            if let Some(outcome) = attempts.judge(result, &$store.pool).await {
                break outcome;
            }
        }
    }};
}

pub(crate) use {read, snapshot, transact, write};

/// A transaction on a connection of its own. Dropped before its end, the connection is closed and nothing is stored.
pub(crate) struct Transaction {
    lease: Option<super::pool::Lease>,
}

impl Transaction {
    pub(crate) async fn begin(lease: super::pool::Lease, sql: &str) -> Result<Self, Fault> {
        let transaction = Self { lease: Some(lease) };
        transaction.db().control(sql).await??;
        Ok(transaction)
    }

    pub(crate) fn db(&self) -> super::session::Db<'_> {
        self.lease
            .as_ref()
            .expect("a transaction has its connection")
            .db()
    }

    /// Commits what was done, or rolls it back if it failed.
    pub(crate) async fn end<T>(mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.db().control(end).await;
        match (result, ended) {
            (result, Ok(Ok(()))) => {
                // Nothing is under way any more: the connection can be used again.
                drop(self.lease.take());
                result
            }
            (Ok(_), Ok(Err(error))) => Err(Fault::of_lone_write(error)),
            (Ok(_), Err(_)) => Err(Fault::Unknown),
            (Err(fault), _) => Err(fault),
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.throw_away();
        }
    }
}
