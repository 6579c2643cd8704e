//! Entities: the users and agents that take part in spaces.

use rusqlite::{Connection, Row, params};
use toolgate_engine::store::{EntityRecord, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::column::{change, first, grants, grants_text, insert, optional_json};
use super::fault::Fault;

const UPDATE: &str = "
    UPDATE entities SET kind = ?3, name = ?4, metadata = ?5, grants = ?6 WHERE project = ?1 AND subject = ?2";

const CREATE: &str = "
    INSERT INTO entities (id, project, subject, kind, name, metadata, created, grants)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";

pub(crate) fn put(connection: &Connection, entity: &EntityRecord) -> Result<EntityRecord, Fault> {
    let project = entity.project.to_bytes();
    let metadata = entity.metadata.as_ref().map(Json::as_str);
    let grants = grants_text(&entity.grants);
    let changes = params![
        project,
        entity.subject,
        entity.kind,
        entity.name,
        metadata,
        grants
    ];
    if change(connection, UPDATE, changes)? == 0 {
        return ensure(connection, entity);
    }
    stored(connection, entity)
}

/// Creates it unless its subject has one.
pub(crate) fn ensure(connection: &Connection, entity: &EntityRecord) -> Result<EntityRecord, Fault> {
    if let Some(known) = of(connection, entity.project, &entity.subject)? {
        return Ok(known);
    }
    let row = params![
        entity.id.to_bytes(),
        entity.project.to_bytes(),
        entity.subject,
        entity.kind,
        entity.name,
        entity.metadata.as_ref().map(Json::as_str),
        entity.created.0,
        grants_text(&entity.grants),
    ];
    insert(connection, CREATE, row)?;
    stored(connection, entity)
}

fn stored(connection: &Connection, entity: &EntityRecord) -> Result<EntityRecord, Fault> {
    let stored = of(connection, entity.project, &entity.subject)?;
    stored.ok_or_else(|| StoreError::Corrupt("an entity that was just written".into()).into())
}

const GET: &str = "
    SELECT id, project, subject, kind, name, metadata, created, grants FROM entities WHERE id = ?1";

pub(crate) fn get(connection: &Connection, id: EntityId) -> Result<Option<EntityRecord>, Fault> {
    first(connection, GET, [id.to_bytes()], record)
}

const OF: &str = "
    SELECT id, project, subject, kind, name, metadata, created, grants FROM entities
    WHERE project = ?1 AND subject = ?2";

pub(crate) fn of(
    connection: &Connection,
    project: ProjectId,
    subject: &str,
) -> Result<Option<EntityRecord>, Fault> {
    first(connection, OF, params![project.to_bytes(), subject], record)
}

fn record(row: &Row<'_>) -> Result<EntityRecord, Fault> {
    Ok(EntityRecord {
        id: EntityId::from_bytes(row.get(0)?),
        project: ProjectId::from_bytes(row.get(1)?),
        subject: row.get(2)?,
        kind: row.get(3)?,
        name: row.get(4)?,
        metadata: optional_json(row, 5)?,
        created: Time(row.get(6)?),
        grants: grants(row, 7)?,
    })
}
