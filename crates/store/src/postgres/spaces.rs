//! Spaces and their members.

use tokio_postgres::Row;
use toolgate_engine::records::Receipt;
use toolgate_engine::store::{MemberRecord, SpaceRecord, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use super::batch::Trip;
use super::column::{
    Id, bounded, change, first, get, grants, grants_text, id, optional_agent_name, optional_json,
    optional_string, optional_text, rows_planned, text,
};
use super::fault::Fault;
use super::people;
use super::receipts;
use super::session::Db;

// An id that is there fails the transaction: whoever creates a space has looked for it, or is told that it exists.
const CREATE: &str = "
    INSERT INTO spaces (id, project, title, agent, metadata, by_backend, created)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::bigint[])";
const FIRST_MEMBERS: &str = "
    INSERT INTO members (space, entity, position) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[])
    ON CONFLICT DO NOTHING";

/// New spaces, as parameters.
#[derive(Default)]
pub(super) struct Columns<'a> {
    ids: Vec<Uuid>,
    projects: Vec<Uuid>,
    titles: Vec<Option<String>>,
    agents: Vec<Option<&'a str>>,
    metadata: Vec<Option<&'a str>>,
    by_backend: Vec<bool>,
    created: Vec<i64>,
    member_spaces: Vec<Uuid>,
    members: Vec<Uuid>,
    positions: Vec<i64>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(spaces: &'a [SpaceRecord]) -> Self {
        let mut columns = Self::default();
        for space in spaces {
            columns.ids.push(space.id.uuid());
            columns.projects.push(space.project.uuid());
            columns
                .titles
                .push(space.title.as_deref().map(|title| text(title).into_owned()));
            columns
                .agents
                .push(space.agent.as_ref().map(|name| name.as_str()));
            columns.metadata.push(space.metadata.as_ref().map(Json::as_str));
            columns.by_backend.push(space.by_backend);
            columns.created.push(space.created.0);
            for (position, member) in (1..).zip(&space.members) {
                columns.member_spaces.push(space.id.uuid());
                columns.members.push(member.uuid());
                columns.positions.push(position);
            }
        }
        columns
    }

    pub(super) async fn add_to<'t>(&'t self, trip: &mut Trip<'t>) -> Result<(), Fault> {
        let rows = vec![
            &self.ids as _,
            &self.projects as _,
            &self.titles as _,
            &self.agents as _,
            &self.metadata as _,
            &self.by_backend as _,
            &self.created as _,
        ];
        trip.add_if(!self.ids.is_empty(), CREATE, rows).await?;
        let rows = vec![&self.member_spaces as _, &self.members as _, &self.positions as _];
        trip.add_if(!self.members.is_empty(), FIRST_MEMBERS, rows)
            .await
            .map(drop)
    }
}

/// Makes a space; `Exists` when the id is there.
pub(super) async fn create(db: &Db<'_>, space: &SpaceRecord) -> Result<(), Fault> {
    people::check(db, &space.members).await?;
    let columns = Columns::of(std::slice::from_ref(space));
    let mut trip = Trip::new(db);
    columns.add_to(&mut trip).await?;
    trip.run().await
}

const AMEND: &str = "
    UPDATE spaces SET title = $1, metadata = $2
    WHERE id = $3 AND title IS NOT DISTINCT FROM $4 AND metadata IS NOT DISTINCT FROM $5";

pub(super) async fn amend(
    db: &Db<'_>,
    before: &SpaceRecord,
    title: Option<&str>,
    metadata: Option<&Json>,
    receipt: Option<&Receipt>,
) -> Result<(), Fault> {
    if let Some(receipt) = receipt {
        receipts::check(db, before.project, receipt).await?;
    }
    let changed = change(
        db,
        AMEND,
        &[
            &optional_text(title),
            &metadata.map(Json::as_str),
            &before.id.uuid(),
            &optional_text(before.title.as_deref()),
            &before.metadata.as_ref().map(Json::as_str),
        ],
    )
    .await;
    if changed? == 0 {
        return Err(StoreError::Conflict.into());
    }
    match receipt {
        Some(receipt) => receipts::keep(db, before.project, receipt).await,
        None => Ok(()),
    }
}

// Locked, so that two that join at once get different positions.
const LOCK: &str = "SELECT 1 FROM spaces WHERE id = $1 FOR UPDATE";
const ADD_MEMBER: &str = "
    INSERT INTO members (space, entity, position)
    SELECT $1, $2, (SELECT coalesce(max(position), 0) + 1 FROM members WHERE space = $1)
    FROM spaces WHERE id = $1
    ON CONFLICT DO NOTHING";

pub(super) async fn add_member(db: &Db<'_>, space: SpaceId, member: EntityId) -> Result<(), Fault> {
    db.query(LOCK, &[&space.uuid()]).await?;
    people::check(db, &[member]).await?;
    change(db, ADD_MEMBER, &[&space.uuid(), &member.uuid()])
        .await
        .map(drop)
}

const PUT_MEMBER: &str = "UPDATE members SET role = $3, grants = $4 WHERE space = $1 AND entity = $2";

pub(super) async fn put_member(
    db: &Db<'_>,
    space: SpaceId,
    member: EntityId,
    given: &MemberRecord,
) -> Result<(), Fault> {
    add_member(db, space, member).await?;
    let (role, grants) = (optional_text(given.role.as_deref()), grants_text(&given.grants));
    let changed = change(db, PUT_MEMBER, &[&space.uuid(), &member.uuid(), &role, &grants]).await;
    changed.map(drop)
}

const MEMBER: &str = "SELECT role, grants FROM members WHERE space = $1 AND entity = $2";

pub(super) async fn member(
    db: &Db<'_>,
    space: SpaceId,
    member: EntityId,
) -> Result<Option<MemberRecord>, Fault> {
    first(db, MEMBER, &[&space.uuid(), &member.uuid()], |row| {
        Ok(MemberRecord {
            role: optional_string(row, 0)?,
            grants: grants(row, 1)?,
        })
    })
    .await
}

const REMOVE_MEMBER: &str = "DELETE FROM members WHERE space = $1 AND entity = $2";

pub(super) async fn remove_member(db: &Db<'_>, space: SpaceId, member: EntityId) -> Result<(), Fault> {
    let removed = change(db, REMOVE_MEMBER, &[&space.uuid(), &member.uuid()]).await;
    removed.map(drop)
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT spaces.id, project, title, agent, metadata, created, by_backend,
                    ARRAY(SELECT entity FROM members AS own WHERE own.space = spaces.id ORDER BY position) ",
            $rest
        )
    };
}

const GET: &str = select!("FROM spaces WHERE id = $1");

pub(super) async fn of(db: &Db<'_>, space: SpaceId) -> Result<Option<SpaceRecord>, Fault> {
    first(db, GET, &[&space.uuid()], record).await
}

pub(super) const OF_PROJECT: &str =
    select!("FROM spaces WHERE project = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
pub(super) const OF_MEMBER: &str = select!(
    "FROM members JOIN spaces ON spaces.id = members.space
     WHERE members.entity = $1 AND members.space < $2 AND spaces.project = $4
     ORDER BY members.space DESC LIMIT $3"
);

/// Newest first: ids sort by creation time.
pub(super) async fn list(
    db: &Db<'_>,
    project: ProjectId,
    member: Option<EntityId>,
    before: Option<SpaceId>,
    limit: usize,
) -> Result<Vec<SpaceRecord>, Fault> {
    // The largest uuid is nobody's id.
    let before = before.map_or(Uuid::max(), Id::uuid);
    let (project, limit) = (project.uuid(), bounded(limit));
    match member {
        None => rows_planned(db, OF_PROJECT, &[&project, &before, &limit], record).await,
        Some(member) => {
            let member = member.uuid();
            rows_planned(db, OF_MEMBER, &[&member, &before, &limit, &project], record).await
        }
    }
}

fn record(row: &Row) -> Result<SpaceRecord, Fault> {
    let members: Vec<Uuid> = get(row, 7)?;
    Ok(SpaceRecord {
        id: id(row, 0)?,
        project: id(row, 1)?,
        title: optional_string(row, 2)?,
        agent: optional_agent_name(row, 3)?,
        metadata: optional_json(row, 4)?,
        members: members.into_iter().map(EntityId::of).collect(),
        created: Time(get(row, 5)?),
        by_backend: get(row, 6)?,
    })
}
