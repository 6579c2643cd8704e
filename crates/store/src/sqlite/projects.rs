//! Projects and their keys.

use rusqlite::{Connection, Row, params};
use toolgate_engine::store::{IdentityProvider, KeyKind, KeyRecord, ProjectRecord, StoreError};
use toolgate_kernel::id::{KeyId, ProjectId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::column::{change, first, insert, optional_json, rows};
use super::fault::Fault;

const UPDATE: &str = "
    UPDATE projects SET jwt_secret = ?2, jwks_url = ?3, jwt_issuer = ?4, jwt_audience = ?5, settings = ?6
    WHERE id = ?1";

const CREATE: &str = "
    INSERT INTO projects (id, jwt_secret, jwks_url, jwt_issuer, jwt_audience, settings, name, created)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT DO NOTHING";

pub(crate) fn put(connection: &Connection, project: &ProjectRecord) -> Result<(), Fault> {
    let id = project.id.to_bytes();
    let settings = project.settings.as_ref().map(Json::as_str);
    let provider = project.identity_provider.as_ref();
    let (jwks_url, issuer, audience) = (
        provider.map(|provider| provider.jwks_url.as_str()),
        provider.and_then(|provider| provider.issuer.as_deref()),
        provider.and_then(|provider| provider.audience.as_deref()),
    );
    let changed = params![id, project.jwt_secret, jwks_url, issuer, audience, settings];
    if change(connection, UPDATE, changed)? > 0 {
        return Ok(());
    }
    let row = params![
        id,
        project.jwt_secret,
        jwks_url,
        issuer,
        audience,
        settings,
        project.name,
        project.created.0,
    ];
    insert(connection, CREATE, row)
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, jwt_secret, jwks_url, jwt_issuer, jwt_audience, created, settings FROM projects ",
            $rest
        )
    };
}

const GET: &str = select!("WHERE id = ?1");

pub(crate) fn get(connection: &Connection, id: ProjectId) -> Result<Option<ProjectRecord>, Fault> {
    first(connection, GET, [id.to_bytes()], project)
}

const NAMED: &str = select!("WHERE name = ?1");

pub(crate) fn named(connection: &Connection, name: &str) -> Result<Option<ProjectRecord>, Fault> {
    first(connection, NAMED, [name], project)
}

const LIST: &str = select!("ORDER BY name");

pub(crate) fn list(connection: &Connection) -> Result<Vec<ProjectRecord>, Fault> {
    rows(connection, LIST, [], project)
}

/// Everything that belongs to a project; what is found through another table goes before that table's rows do.
pub(crate) const REMOVE: &[&str] = &[
    "DELETE FROM keys WHERE project = ?1",
    "DELETE FROM log WHERE space IN (SELECT id FROM spaces WHERE project = ?1)",
    "DELETE FROM members WHERE space IN (SELECT id FROM spaces WHERE project = ?1)",
    "DELETE FROM log_floors WHERE space IN (SELECT id FROM spaces WHERE project = ?1)",
    "DELETE FROM deleted WHERE project = ?1",
    "DELETE FROM spaces WHERE project = ?1",
    "DELETE FROM runs WHERE project = ?1",
    "DELETE FROM definitions WHERE project = ?1",
    "DELETE FROM records WHERE project = ?1",
    "DELETE FROM receipts WHERE project = ?1",
    "DELETE FROM idempotency WHERE project = ?1",
    "DELETE FROM tool_usage WHERE project = ?1",
    "DELETE FROM consumption WHERE project = ?1",
    "DELETE FROM agents WHERE project = ?1",
    "DELETE FROM entities WHERE project = ?1",
];

pub(crate) fn remove(connection: &Connection, id: ProjectId) -> Result<bool, Fault> {
    for sql in REMOVE {
        change(connection, sql, [id.to_bytes()])?;
    }
    Ok(change(connection, "DELETE FROM projects WHERE id = ?1", [id.to_bytes()])? > 0)
}

fn project(row: &Row<'_>) -> Result<ProjectRecord, Fault> {
    Ok(ProjectRecord {
        id: ProjectId::from_bytes(row.get(0)?),
        name: row.get(1)?,
        jwt_secret: row.get(2)?,
        identity_provider: match row.get::<_, Option<String>>(3)? {
            Some(jwks_url) => Some(IdentityProvider {
                jwks_url,
                issuer: row.get(4)?,
                audience: row.get(5)?,
            }),
            None => None,
        },
        created: Time(row.get(6)?),
        settings: optional_json(row, 7)?,
    })
}

const CREATE_KEY: &str = "
    INSERT INTO keys (id, project, kind, hash, hint, name, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT DO NOTHING";

pub(crate) fn put_key(connection: &Connection, key: &KeyRecord) -> Result<(), Fault> {
    let row = params![
        key.id.to_bytes(),
        key.project.to_bytes(),
        kind_text(key.kind),
        key.hash,
        key.hint,
        key.name,
        key.created.0,
    ];
    insert(connection, CREATE_KEY, row)
}

const KEY: &str = "SELECT id, project, kind, hash, hint, name, created FROM keys WHERE hash = ?1";

pub(crate) fn key(connection: &Connection, hash: [u8; 32]) -> Result<Option<KeyRecord>, Fault> {
    first(connection, KEY, [hash], key_record)
}

pub(crate) const KEYS: &str = "
    SELECT id, project, kind, hash, hint, name, created FROM keys WHERE project = ?1 ORDER BY id";

pub(crate) fn keys(connection: &Connection, project: ProjectId) -> Result<Vec<KeyRecord>, Fault> {
    rows(connection, KEYS, [project.to_bytes()], key_record)
}

const REMOVE_KEY: &str = "DELETE FROM keys WHERE project = ?1 AND id = ?2";

pub(crate) fn remove_key(connection: &Connection, project: ProjectId, id: KeyId) -> Result<bool, Fault> {
    Ok(change(connection, REMOVE_KEY, [project.to_bytes(), id.to_bytes()])? > 0)
}

fn key_record(row: &Row<'_>) -> Result<KeyRecord, Fault> {
    let kind: String = row.get(2)?;
    Ok(KeyRecord {
        id: KeyId::from_bytes(row.get(0)?),
        project: ProjectId::from_bytes(row.get(1)?),
        kind: kind_of(&kind).ok_or_else(|| StoreError::Corrupt(format!("a key of kind {kind:?}")))?,
        hash: row.get(3)?,
        hint: row.get(4)?,
        name: row.get(5)?,
        created: Time(row.get(6)?),
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
