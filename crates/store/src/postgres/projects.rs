//! Projects and their keys.

use tokio_postgres::Row;
use toolgate_engine::store::{IdentityProvider, KeyKind, KeyRecord, ProjectRecord, StoreError};
use toolgate_kernel::id::{KeyId, ProjectId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::column::{
    Id, Param, change, first, get, id, insert, optional_json, optional_string, optional_text, rows, string,
    text,
};
use super::fault::Fault;
use super::idempotency::hash;
use super::session::Db;

const UPDATE: &str = "
    UPDATE projects SET jwt_secret = $2, jwks_url = $3, jwt_issuer = $4, jwt_audience = $5, settings = $6
    WHERE id = $1";

const CREATE: &str = "
    INSERT INTO projects (id, jwt_secret, jwks_url, jwt_issuer, jwt_audience, settings, name, created)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT DO NOTHING";

pub(super) async fn put(db: &Db<'_>, project: &ProjectRecord) -> Result<(), Fault> {
    let id = project.id.uuid();
    let secret = optional_text(project.jwt_secret.as_deref());
    let settings = project.settings.as_ref().map(Json::as_str);
    let provider = project.identity_provider.as_ref();
    let jwks_url = provider.map(|provider| text(&provider.jwks_url));
    let issuer = optional_text(provider.and_then(|provider| provider.issuer.as_deref()));
    let audience = optional_text(provider.and_then(|provider| provider.audience.as_deref()));
    let (name, created) = (text(&project.name), project.created.0);
    let changed: [Param<'_>; 6] = [&id, &secret, &jwks_url, &issuer, &audience, &settings];
    if change(db, UPDATE, &changed).await? > 0 {
        return Ok(());
    }
    insert(db, CREATE, &[&changed[..], &[&name, &created]].concat()).await
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, jwt_secret, jwks_url, jwt_issuer, jwt_audience, created, settings FROM projects ",
            $rest
        )
    };
}

const GET: &str = select!("WHERE id = $1");

pub(super) async fn of(db: &Db<'_>, id: ProjectId) -> Result<Option<ProjectRecord>, Fault> {
    first(db, GET, &[&id.uuid()], project).await
}

const NAMED: &str = select!("WHERE name = $1");

pub(super) async fn named(db: &Db<'_>, name: &str) -> Result<Option<ProjectRecord>, Fault> {
    first(db, NAMED, &[&text(name)], project).await
}

const LIST: &str = select!("ORDER BY name");

pub(super) async fn list(db: &Db<'_>) -> Result<Vec<ProjectRecord>, Fault> {
    rows(db, LIST, &[], project).await
}

/// Everything that belongs to a project; what is found through another table goes before that table's rows do.
pub(crate) const REMOVE: &[&str] = &[
    "DELETE FROM keys WHERE project = $1",
    "DELETE FROM log WHERE space IN (SELECT id FROM spaces WHERE project = $1)",
    "DELETE FROM heads WHERE space IN (SELECT id FROM spaces WHERE project = $1)",
    "DELETE FROM members WHERE space IN (SELECT id FROM spaces WHERE project = $1)",
    "DELETE FROM log_floors WHERE space IN (SELECT id FROM spaces WHERE project = $1)",
    "DELETE FROM deleted WHERE project = $1",
    "DELETE FROM spaces WHERE project = $1",
    "DELETE FROM runs WHERE project = $1",
    "DELETE FROM definitions WHERE project = $1",
    "DELETE FROM records WHERE project = $1",
    "DELETE FROM record_sets WHERE project = $1",
    "DELETE FROM receipts WHERE project = $1",
    "DELETE FROM idempotency WHERE project = $1",
    "DELETE FROM tool_usage WHERE project = $1",
    "DELETE FROM consumption WHERE project = $1",
    "DELETE FROM agents WHERE project = $1",
    "DELETE FROM entities WHERE project = $1",
];

// In the order in which appends lock them, so that neither waits for the other forever.
const LOCK_HEADS: &str = "
    SELECT 1 FROM heads WHERE space IN (SELECT id FROM spaces WHERE project = $1) ORDER BY space FOR UPDATE";

pub(super) async fn remove(db: &Db<'_>, id: ProjectId) -> Result<bool, Fault> {
    let id = id.uuid();
    db.query(LOCK_HEADS, &[&id]).await?;
    for sql in REMOVE {
        change(db, sql, &[&id]).await?;
    }
    Ok(change(db, "DELETE FROM projects WHERE id = $1", &[&id]).await? > 0)
}

fn project(row: &Row) -> Result<ProjectRecord, Fault> {
    Ok(ProjectRecord {
        id: id(row, 0)?,
        name: string(row, 1)?,
        jwt_secret: optional_string(row, 2)?,
        identity_provider: match optional_string(row, 3)? {
            Some(jwks_url) => Some(IdentityProvider {
                jwks_url,
                issuer: optional_string(row, 4)?,
                audience: optional_string(row, 5)?,
            }),
            None => None,
        },
        created: Time(get(row, 6)?),
        settings: optional_json(row, 7)?,
    })
}

const CREATE_KEY: &str = "
    INSERT INTO keys (id, project, kind, hash, hint, name, created) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING";

pub(super) async fn put_key(db: &Db<'_>, key: &KeyRecord) -> Result<(), Fault> {
    let row: [Param<'_>; 7] = [
        &key.id.uuid(),
        &key.project.uuid(),
        &kind_text(key.kind),
        &&key.hash[..],
        &text(&key.hint),
        &optional_text(key.name.as_deref()),
        &key.created.0,
    ];
    insert(db, CREATE_KEY, &row).await
}

const KEY: &str = "SELECT id, project, kind, hash, hint, name, created FROM keys WHERE hash = $1";

pub(super) async fn key(db: &Db<'_>, hash: [u8; 32]) -> Result<Option<KeyRecord>, Fault> {
    first(db, KEY, &[&&hash[..]], key_record).await
}

const KEYS: &str = "
    SELECT id, project, kind, hash, hint, name, created FROM keys WHERE project = $1 ORDER BY id";

pub(super) async fn keys(db: &Db<'_>, project: ProjectId) -> Result<Vec<KeyRecord>, Fault> {
    rows(db, KEYS, &[&project.uuid()], key_record).await
}

const REMOVE_KEY: &str = "DELETE FROM keys WHERE project = $1 AND id = $2";

pub(super) async fn remove_key(db: &Db<'_>, project: ProjectId, id: KeyId) -> Result<bool, Fault> {
    Ok(change(db, REMOVE_KEY, &[&project.uuid(), &id.uuid()]).await? > 0)
}

fn key_record(row: &Row) -> Result<KeyRecord, Fault> {
    let kind: String = get(row, 2)?;
    Ok(KeyRecord {
        id: id(row, 0)?,
        project: id(row, 1)?,
        kind: kind_of(&kind).ok_or_else(|| StoreError::Corrupt(format!("a key of kind {kind:?}")))?,
        hash: hash(&get::<Vec<u8>>(row, 3)?)?,
        hint: string(row, 4)?,
        name: optional_string(row, 5)?,
        created: Time(get(row, 6)?),
    })
}

fn kind_text(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Secret => "secret",
        KeyKind::Public => "public",
    }
}

fn kind_of(text: &str) -> Option<KeyKind> {
    [KeyKind::Secret, KeyKind::Public]
        .into_iter()
        .find(|&kind| kind_text(kind) == text)
}
