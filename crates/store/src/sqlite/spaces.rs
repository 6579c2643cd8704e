//! Spaces and their members.

use rusqlite::{Connection, Row, params};
use toolgate_engine::records::Receipt;
use toolgate_engine::store::{MemberRecord, SpaceRecord, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::column::{
    bounded, change, first, grants, grants_text, insert, optional_agent_name, optional_json, rows,
};
use super::fault::Fault;
use super::{receipts, retention};

const CREATE: &str = "
    INSERT INTO spaces (id, project, title, agent, metadata, created, by_backend)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT DO NOTHING";

pub(crate) fn create(connection: &Connection, space: &SpaceRecord) -> Result<(), Fault> {
    retention::check_people(connection, &space.members)?;
    let row = params![
        space.id.to_bytes(),
        space.project.to_bytes(),
        space.title,
        space.agent.as_ref().map(|name| name.as_str()),
        space.metadata.as_ref().map(Json::as_str),
        space.created.0,
        space.by_backend,
    ];
    insert(connection, CREATE, row)?;
    space
        .members
        .iter()
        .try_for_each(|&member| join(connection, space.id, member))
}

const AMEND: &str = "
    UPDATE spaces SET title = ?1, metadata = ?2 WHERE id = ?3 AND title IS ?4 AND metadata IS ?5";

pub(crate) fn amend(
    connection: &Connection,
    before: &SpaceRecord,
    title: Option<&str>,
    metadata: Option<&Json>,
    receipt: Option<&Receipt>,
) -> Result<(), Fault> {
    if let Some(receipt) = receipt {
        receipts::check(connection, before.project, receipt)?;
    }
    let row = params![
        title,
        metadata.map(Json::as_str),
        before.id.to_bytes(),
        before.title,
        before.metadata.as_ref().map(Json::as_str),
    ];
    if change(connection, AMEND, row)? == 0 {
        return Err(StoreError::Conflict.into());
    }
    match receipt {
        Some(receipt) => receipts::keep(connection, before.project, receipt),
        None => Ok(()),
    }
}

const ADD_MEMBER: &str = "
    INSERT INTO members (space, entity, position)
    SELECT ?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM members WHERE space = ?1)
    FROM spaces WHERE id = ?1
    ON CONFLICT DO NOTHING";

pub(crate) fn add_member(connection: &Connection, space: SpaceId, member: EntityId) -> Result<(), Fault> {
    retention::check_people(connection, &[member])?;
    join(connection, space, member)
}

fn join(connection: &Connection, space: SpaceId, member: EntityId) -> Result<(), Fault> {
    change(connection, ADD_MEMBER, [space.to_bytes(), member.to_bytes()])?;
    Ok(())
}

const PUT_MEMBER: &str = "UPDATE members SET role = ?3, grants = ?4 WHERE space = ?1 AND entity = ?2";

pub(crate) fn put_member(
    connection: &Connection,
    space: SpaceId,
    member: EntityId,
    given: &MemberRecord,
) -> Result<(), Fault> {
    add_member(connection, space, member)?;
    let grants = grants_text(&given.grants);
    let row = params![space.to_bytes(), member.to_bytes(), given.role, grants];
    change(connection, PUT_MEMBER, row)?;
    Ok(())
}

const MEMBER: &str = "SELECT role, grants FROM members WHERE space = ?1 AND entity = ?2";

pub(crate) fn member(
    connection: &Connection,
    space: SpaceId,
    member: EntityId,
) -> Result<Option<MemberRecord>, Fault> {
    first(connection, MEMBER, [space.to_bytes(), member.to_bytes()], |row| {
        Ok(MemberRecord {
            role: row.get(0)?,
            grants: grants(row, 1)?,
        })
    })
}

const REMOVE_MEMBER: &str = "DELETE FROM members WHERE space = ?1 AND entity = ?2";

pub(crate) fn remove_member(connection: &Connection, space: SpaceId, member: EntityId) -> Result<(), Fault> {
    change(connection, REMOVE_MEMBER, [space.to_bytes(), member.to_bytes()])?;
    Ok(())
}

const GET: &str = "
    SELECT id, project, title, agent, metadata, created, by_backend FROM spaces WHERE id = ?1";

pub(crate) fn get(connection: &Connection, space: SpaceId) -> Result<Option<SpaceRecord>, Fault> {
    first(connection, GET, [space.to_bytes()], |row| record(connection, row))
}

pub(crate) const OF_PROJECT: &str = "
    SELECT id, project, title, agent, metadata, created, by_backend FROM spaces
    WHERE project = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";

pub(crate) const OF_MEMBER: &str = "
    SELECT spaces.id, project, title, agent, metadata, created, by_backend
    FROM members JOIN spaces ON spaces.id = members.space
    WHERE members.entity = ?1 AND members.space < ?2 AND spaces.project = ?4
    ORDER BY members.space DESC LIMIT ?3";

/// Newest first: ids sort by creation time.
pub(crate) fn list(
    connection: &Connection,
    project: ProjectId,
    member: Option<EntityId>,
    before: Option<SpaceId>,
    limit: usize,
) -> Result<Vec<SpaceRecord>, Fault> {
    // One byte longer than an id, so it sorts after all of them.
    const PAST_EVERY_ID: [u8; 17] = [0xff; 17];
    let before = before.map_or(PAST_EVERY_ID.to_vec(), |id| id.to_bytes().to_vec());
    let (project, limit) = (project.to_bytes(), bounded(limit));
    let read = |row: &Row<'_>| record(connection, row);
    match member {
        None => rows(connection, OF_PROJECT, params![project, before, limit], read),
        Some(member) => {
            let values = params![member.to_bytes(), before, limit, project];
            rows(connection, OF_MEMBER, values, read)
        }
    }
}

const MEMBERS: &str = "SELECT entity FROM members WHERE space = ?1 ORDER BY position";

// Members are read while the row's statement is open, so both come from the same snapshot.
fn record(connection: &Connection, row: &Row<'_>) -> Result<SpaceRecord, Fault> {
    let id: [u8; 16] = row.get(0)?;
    Ok(SpaceRecord {
        id: SpaceId::from_bytes(id),
        project: ProjectId::from_bytes(row.get(1)?),
        title: row.get(2)?,
        agent: optional_agent_name(row, 3)?,
        metadata: optional_json(row, 4)?,
        members: rows(connection, MEMBERS, [id], |row| {
            Ok(EntityId::from_bytes(row.get(0)?))
        })?,
        created: Time(row.get(5)?),
        by_backend: row.get(6)?,
    })
}
