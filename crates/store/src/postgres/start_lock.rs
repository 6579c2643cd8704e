//! One node at a time makes what the first start makes: a project and its keys. Then others may begin to start, but no import
//! until the node serves, when its heartbeat tells of it. An import holds both locks, so that no gateway starts meanwhile.

use std::time::Duration;

use toolgate_engine::store::StoreError;

use super::PostgresStore;
use super::fault::Fault;
use super::pool::Lease;
use super::runs::or_server_time;
use super::session::Session;

/// The locks of a node that starts, until this is dropped or the process ends.
pub struct StartLock {
    /// None once it is dropped.
    lease: Option<Lease>,
}

/// Held alone by a node that may make the first project: `starting` in ASCII.
const LOCK: i64 = 0x7374_6172_7469_6e67;
/// Shared by the nodes that do not serve yet, and held alone by an import: `unserved` in ASCII.
const UNSERVED: i64 = 0x756e_7365_7276_6564;

/// How long to wait for other nodes that start.
const WAIT: Duration = Duration::from_secs(60);

/// Takes both locks for as long as the connection lasts; false if a gateway starts, or another import has them.
pub(crate) async fn hold(session: &Session) -> Result<bool, Fault> {
    for lock in [LOCK, UNSERVED] {
        let tried = session
            .client
            .query_one("SELECT pg_try_advisory_lock($1)", &[&lock])
            .await?;
        let is_held: bool = tried.try_get(0)?;
        if !is_held {
            return Ok(false);
        }
    }
    Ok(true)
}

const SERVING: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM nodes WHERE until >= ",
    or_server_time!("NULL"),
    ")"
);

/// Refuses a database that gateways use: the heartbeat of a node lasts.
pub(crate) async fn require_unused(session: &Session) -> Result<(), Fault> {
    let is_used: bool = session.client.query_one(SERVING, &[]).await?.try_get(0)?;
    match is_used {
        false => Ok(()),
        true => {
            let why = "a gateway runs on the database, stop every gateway that uses it and import again, a killed one counts \
                       until its lease ends (engine.node_lease, 15 s by default)";
            Err(StoreError::Unavailable(why.into()).into())
        }
    }
}

impl PostgresStore {
    /// Waits until no other node is at the beginning of its start and no import is under way; `Unavailable` if that takes longer
    /// than a minute.
    pub async fn lock_start(&self) -> Result<StartLock, StoreError> {
        let locked = async {
            let lease = self.pool.get_extra().await?;
            // As many nodes as there are may be before this one, whatever a statement may take.
            let patient = "SET lock_timeout = 0; SET statement_timeout = 0";
            lease.client.batch_execute(patient).await?;
            let locking = lease.client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]);
            let locked = tokio::time::timeout(WAIT, locking).await;
            locked.map_err(|_| {
                Fault::Failed(format!(
                    "other nodes start, or an import is under way, for more than {WAIT:?}"
                ))
            })??;
            // Granted at once: an import that had it would have the other lock, too.
            lease
                .client
                .execute("SELECT pg_advisory_lock_shared($1)", &[&UNSERVED])
                .await?;
            Ok::<_, Fault>(StartLock { lease: Some(lease) })
        };
        locked.await.map_err(Fault::into_store_error)
    }
}

impl StartLock {
    /// Lets the next node begin its start. Imports wait until this is dropped.
    pub async fn let_others_start(&self) -> Result<(), StoreError> {
        let Some(lease) = &self.lease else {
            return Ok(());
        };
        let unlocked = lease.client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]);
        unlocked
            .await
            .map(drop)
            .map_err(|error| Fault::from(error).into_store_error())
    }
}

impl Drop for StartLock {
    fn drop(&mut self) {
        // The locks belong to the connection.
        if let Some(lease) = self.lease.take() {
            lease.throw_away();
        }
    }
}
