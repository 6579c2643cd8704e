//! Agents' configurations, every revision of them.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use toolgate_engine::records::Owner;
use toolgate_engine::store::{AgentRecord, Purged, RevisionRecord};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::column::{Id, agent_name, bounded, change, first, get, id, json, rows, small};
use super::fault::Fault;
use super::records;
use super::session::Db;

/// Values of `removed` of the newest revision.
const PRESENT: i64 = 0;
/// The agent keeps its records for when it returns.
const RETIRED: i64 = 1;
/// The agent has no records any more.
const PURGED: i64 = 2;

// A lock per agent, in memory alone: who starts a run shares it until the run is stored, who changes the agent has it to
// itself. So whoever removes an agent and then looks for its runs finds every one.
pub(super) const LOCK_SHARED: &str =
    "SELECT pg_advisory_xact_lock_shared(lock) FROM unnest($1::bigint[]) AS locks (lock)";
const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// The locks of agents, in order.
pub(super) fn lock_keys(agents: &BTreeSet<(ProjectId, AgentName)>) -> Vec<i64> {
    let keys: BTreeSet<i64> = agents
        .iter()
        .map(|(project, name)| lock_key(*project, name))
        .collect();
    keys.into_iter().collect()
}

/// Two agents may share a key, which only makes one wait for the other.
fn lock_key(project: ProjectId, name: &AgentName) -> i64 {
    let mut hash = Sha256::new();
    hash.update(b"agent");
    hash.update(project.to_bytes());
    hash.update(name.as_str());
    let hash: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = hash;
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

async fn lock(db: &Db<'_>, project: ProjectId, name: &AgentName) -> Result<(), Fault> {
    db.query(LOCK, &[&lock_key(project, name)]).await.map(drop)
}

/// Those of these agents that were removed.
pub(super) const REMOVED_OF: &str = "
    SELECT wanted.project, wanted.name FROM unnest($1::uuid[], $2::text[]) AS wanted (project, name)
    WHERE (SELECT removed FROM agents
           WHERE agents.project = wanted.project AND agents.name = wanted.name COLLATE \"C\"
           ORDER BY revision DESC LIMIT 1) > 0";

const NEWEST: &str = "
    SELECT project, name, revision, config, created, removed FROM agents
    WHERE project = $1 AND name = $2 ORDER BY revision DESC LIMIT 1";

/// The newest revision, and what its `removed` says.
async fn newest(
    db: &Db<'_>,
    project: ProjectId,
    name: &AgentName,
) -> Result<Option<(AgentRecord, i64)>, Fault> {
    let read = |row: &Row| Ok((record(row)?, get(row, 5)?));
    first(db, NEWEST, &[&project.uuid(), &name.as_str()], read).await
}

const CREATE: &str = "
    INSERT INTO agents (project, name, revision, config, removed, created) VALUES ($1, $2, $3, $4, 0, $5)";

pub(super) async fn put(
    db: &Db<'_>,
    project: ProjectId,
    name: &AgentName,
    config: &Json,
    now: Time,
) -> Result<u32, Fault> {
    lock(db, project, name).await?;
    let revision = match newest(db, project, name).await? {
        Some((newest, PRESENT)) if newest.config == *config => return Ok(newest.revision),
        Some((newest, removed)) => {
            if removed == PURGED {
                // A run that outlived the agent may have stored records after the purge.
                forget(db, project, name).await?;
            }
            newest.revision + 1
        }
        None => 1,
    };
    let number = i64::from(revision);
    let (project, name, config) = (project.uuid(), name.as_str(), config.as_str());
    change(db, CREATE, &[&project, &name, &number, &config, &now.0]).await?;
    Ok(revision)
}

const REMOVE: &str = "
    UPDATE agents SET removed = $3
    WHERE project = $1 AND name = $2 AND removed < $3
      AND revision = (SELECT max(revision) FROM agents WHERE project = $1 AND name = $2)";

pub(super) async fn remove(db: &Db<'_>, project: ProjectId, name: &AgentName) -> Result<bool, Fault> {
    mark(db, project, name, RETIRED).await
}

async fn mark(db: &Db<'_>, project: ProjectId, name: &AgentName, removed: i64) -> Result<bool, Fault> {
    lock(db, project, name).await?;
    let marked = change(db, REMOVE, &[&project.uuid(), &name.as_str(), &removed]).await;
    Ok(marked? > 0)
}

pub(super) async fn purge(
    db: &Db<'_>,
    project: ProjectId,
    name: &AgentName,
) -> Result<Option<Purged>, Fault> {
    let purged = mark(db, project, name, PURGED).await?;
    let records = forget(db, project, name).await?;
    Ok(purged.then_some(records))
}

/// Deletes all records that the agent owns.
async fn forget(db: &Db<'_>, project: ProjectId, name: &AgentName) -> Result<Purged, Fault> {
    records::remove_owned(db, project, Owner::Entity(entity_of(project, name))).await
}

const REVISION: &str = "
    SELECT project, name, revision, config, created FROM agents
    WHERE project = $1 AND name = $2 AND revision = $3";

pub(super) async fn of(
    db: &Db<'_>,
    project: ProjectId,
    name: &AgentName,
    revision: Option<u32>,
) -> Result<Option<AgentRecord>, Fault> {
    match revision {
        Some(revision) => {
            let revision = i64::from(revision);
            first(
                db,
                REVISION,
                &[&project.uuid(), &name.as_str(), &revision],
                record,
            )
            .await
        }
        None => {
            let newest = newest(db, project, name).await?;
            Ok(newest.and_then(|(record, removed)| (removed == PRESENT).then_some(record)))
        }
    }
}

const REVISIONS: &str = "
    SELECT revision, created FROM agents WHERE project = $1 AND name = $2 AND revision < $3
    ORDER BY revision DESC LIMIT $4";

pub(super) async fn revisions(
    db: &Db<'_>,
    project: ProjectId,
    name: &AgentName,
    before: Option<u32>,
    limit: usize,
) -> Result<Vec<RevisionRecord>, Fault> {
    let before = before.map_or(i64::MAX, i64::from);
    let (project, name) = (project.uuid(), name.as_str());
    rows(
        db,
        REVISIONS,
        &[&project, &name, &before, &bounded(limit)],
        |row| {
            Ok(RevisionRecord {
                revision: small(row, 0)?,
                created: Time(get(row, 1)?),
            })
        },
    )
    .await
}

const LIST: &str = "
    SELECT project, name, revision, config, created FROM agents
    WHERE project = $1 AND removed = 0
      AND revision = (SELECT max(revision) FROM agents AS other
                      WHERE other.project = agents.project AND other.name = agents.name)
    ORDER BY name";

pub(super) async fn list(db: &Db<'_>, project: ProjectId) -> Result<Vec<AgentRecord>, Fault> {
    rows(db, LIST, &[&project.uuid()], record).await
}

fn record(row: &Row) -> Result<AgentRecord, Fault> {
    Ok(AgentRecord {
        project: id(row, 0)?,
        name: agent_name(row, 1)?,
        revision: small(row, 2)?,
        config: json(row, 3)?,
        created: Time(get(row, 4)?),
    })
}
