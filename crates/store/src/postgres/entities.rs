//! Entities: the users and agents that take part in spaces.

use tokio_postgres::Row;
use toolgate_engine::store::{EntityRecord, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::column::{
    Id, Param, change, first, get, grants, grants_text, id, optional_json, optional_string, optional_text,
    string, text,
};
use super::fault::Fault;
use super::session::Db;

macro_rules! insert {
    ($conflict:literal) => {
        concat!(
            "INSERT INTO entities (id, project, subject, kind, name, metadata, created, grants)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (project, subject) ",
            $conflict
        )
    };
}
// An id that another subject has fails the statement.
const PUT: &str = insert!(
    "DO UPDATE SET kind = excluded.kind, name = excluded.name, metadata = excluded.metadata, grants = excluded.grants"
);
const ENSURE: &str = insert!("DO NOTHING");

/// Makes an entity, or changes the one with its subject.
pub(super) async fn put(db: &Db<'_>, entity: &EntityRecord) -> Result<EntityRecord, Fault> {
    store(db, PUT, entity).await
}

/// Creates it unless its subject has one.
pub(super) async fn ensure(db: &Db<'_>, entity: &EntityRecord) -> Result<EntityRecord, Fault> {
    match of(db, entity.project, &entity.subject).await? {
        Some(known) => Ok(known),
        None => store(db, ENSURE, entity).await,
    }
}

async fn store(db: &Db<'_>, sql: &str, entity: &EntityRecord) -> Result<EntityRecord, Fault> {
    let row: [Param<'_>; 8] = [
        &entity.id.uuid(),
        &entity.project.uuid(),
        &text(&entity.subject),
        &text(&entity.kind),
        &optional_text(entity.name.as_deref()),
        &entity.metadata.as_ref().map(Json::as_str),
        &entity.created.0,
        &grants_text(&entity.grants),
    ];
    change(db, sql, &row).await?;
    let stored = of(db, entity.project, &entity.subject).await?;
    stored.ok_or_else(|| StoreError::Corrupt("an entity that was just written".into()).into())
}

const GET: &str = "
    SELECT id, project, subject, kind, name, metadata, created, grants FROM entities WHERE id = $1";

pub(super) async fn by_id(db: &Db<'_>, id: EntityId) -> Result<Option<EntityRecord>, Fault> {
    first(db, GET, &[&id.uuid()], record).await
}

const OF: &str = "
    SELECT id, project, subject, kind, name, metadata, created, grants FROM entities
    WHERE project = $1 AND subject = $2";

pub(super) async fn of(
    db: &Db<'_>,
    project: ProjectId,
    subject: &str,
) -> Result<Option<EntityRecord>, Fault> {
    first(db, OF, &[&project.uuid(), &text(subject)], record).await
}

fn record(row: &Row) -> Result<EntityRecord, Fault> {
    Ok(EntityRecord {
        id: id(row, 0)?,
        project: id(row, 1)?,
        subject: string(row, 2)?,
        kind: string(row, 3)?,
        name: optional_string(row, 4)?,
        metadata: optional_json(row, 5)?,
        created: Time(get(row, 6)?),
        grants: grants(row, 7)?,
    })
}
