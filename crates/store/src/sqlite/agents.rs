//! Agents' configurations, every revision of them.

use rusqlite::{Connection, Row, params};
use toolgate_engine::records::Owner;
use toolgate_engine::store::{AgentRecord, Purged, RevisionRecord, StoreError};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::column::{agent_name, bounded, change, first, json, rows};
use super::fault::Fault;
use super::records;

const NEWEST: &str = "
    SELECT project, name, revision, config, created, removed FROM agents
    WHERE project = ?1 AND name = ?2 ORDER BY revision DESC LIMIT 1";

/// Values of `removed` of the newest revision.
const PRESENT: i64 = 0;
/// The agent keeps its records for when it returns.
const RETIRED: i64 = 1;
/// The agent has no records any more.
const PURGED: i64 = 2;

/// The newest revision, and what its `removed` says.
fn newest(
    connection: &Connection,
    project: ProjectId,
    name: &AgentName,
) -> Result<Option<(AgentRecord, i64)>, Fault> {
    let of = params![project.to_bytes(), name.as_str()];
    first(connection, NEWEST, of, |row| Ok((record(row)?, row.get(5)?)))
}

const CREATE: &str = "
    INSERT INTO agents (project, name, revision, config, removed, created) VALUES (?1, ?2, ?3, ?4, 0, ?5)";

pub(crate) fn put(
    connection: &Connection,
    project: ProjectId,
    name: &AgentName,
    config: &Json,
    now: Time,
) -> Result<u32, Fault> {
    let revision = match newest(connection, project, name)? {
        Some((newest, PRESENT)) if newest.config == *config => return Ok(newest.revision),
        Some((newest, removed)) => {
            if removed == PURGED {
                // A run that outlived the agent may have stored records after the purge.
                forget(connection, project, name)?;
            }
            newest.revision + 1
        }
        None => 1,
    };
    let row = params![
        project.to_bytes(),
        name.as_str(),
        revision,
        config.as_str(),
        now.0
    ];
    change(connection, CREATE, row)?;
    Ok(revision)
}

const REMOVE: &str = "
    UPDATE agents SET removed = ?3
    WHERE project = ?1 AND name = ?2 AND removed < ?3
      AND revision = (SELECT max(revision) FROM agents WHERE project = ?1 AND name = ?2)";

pub(crate) fn remove(connection: &Connection, project: ProjectId, name: &AgentName) -> Result<bool, Fault> {
    let of = params![project.to_bytes(), name.as_str(), RETIRED];
    Ok(change(connection, REMOVE, of)? > 0)
}

pub(crate) fn purge(
    connection: &Connection,
    project: ProjectId,
    name: &AgentName,
) -> Result<Option<Purged>, Fault> {
    let of = params![project.to_bytes(), name.as_str(), PURGED];
    let purged = change(connection, REMOVE, of)? > 0;
    let records = forget(connection, project, name)?;
    Ok(purged.then_some(records))
}

const IS_REMOVED: &str = "
    SELECT removed FROM agents WHERE project = ?1 AND name = ?2 ORDER BY revision DESC LIMIT 1";

/// Refuses a run of an agent that was removed. In the same transaction as the run's row: whoever removes the agent and
/// then looks for its runs finds every one.
pub(crate) fn check_present(
    connection: &Connection,
    project: ProjectId,
    name: &AgentName,
) -> Result<(), Fault> {
    let key = params![project.to_bytes(), name.as_str()];
    match first(connection, IS_REMOVED, key, |row| Ok(row.get::<_, i64>(0)?))? {
        Some(PRESENT) | None => Ok(()),
        Some(_) => Err(StoreError::AgentRemoved.into()),
    }
}

/// Deletes all records that the agent owns.
fn forget(connection: &Connection, project: ProjectId, name: &AgentName) -> Result<Purged, Fault> {
    records::remove_owned(connection, project, Owner::Entity(entity_of(project, name)))
}

const REVISION: &str = "
    SELECT project, name, revision, config, created FROM agents
    WHERE project = ?1 AND name = ?2 AND revision = ?3";

pub(crate) fn get(
    connection: &Connection,
    project: ProjectId,
    name: &AgentName,
    revision: Option<u32>,
) -> Result<Option<AgentRecord>, Fault> {
    match revision {
        Some(revision) => {
            let of = params![project.to_bytes(), name.as_str(), revision];
            first(connection, REVISION, of, record)
        }
        None => {
            let newest = newest(connection, project, name)?;
            Ok(newest.and_then(|(record, removed)| (removed == PRESENT).then_some(record)))
        }
    }
}

pub(crate) const REVISIONS: &str = "
    SELECT revision, created FROM agents WHERE project = ?1 AND name = ?2 AND revision < ?3
    ORDER BY revision DESC LIMIT ?4";

pub(crate) fn revisions(
    connection: &Connection,
    project: ProjectId,
    name: &AgentName,
    before: Option<u32>,
    limit: usize,
) -> Result<Vec<RevisionRecord>, Fault> {
    let before = before.map_or(i64::MAX, i64::from);
    let of = params![project.to_bytes(), name.as_str(), before, bounded(limit)];
    rows(connection, REVISIONS, of, |row| {
        Ok(RevisionRecord {
            revision: row.get(0)?,
            created: Time(row.get(1)?),
        })
    })
}

pub(crate) const LIST: &str = "
    SELECT project, name, revision, config, created FROM agents
    WHERE project = ?1 AND removed = 0
      AND revision = (SELECT max(revision) FROM agents AS other
                      WHERE other.project = agents.project AND other.name = agents.name)
    ORDER BY name";

pub(crate) fn list(connection: &Connection, project: ProjectId) -> Result<Vec<AgentRecord>, Fault> {
    rows(connection, LIST, [project.to_bytes()], record)
}

fn record(row: &Row<'_>) -> Result<AgentRecord, Fault> {
    Ok(AgentRecord {
        project: ProjectId::from_bytes(row.get(0)?),
        name: agent_name(row, 1)?,
        revision: row.get(2)?,
        config: json(row, 3)?,
        created: Time(row.get(4)?),
    })
}
