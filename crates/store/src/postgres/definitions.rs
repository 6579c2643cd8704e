//! The definitions of tools that runs pin, once per content.

use std::collections::BTreeMap;

use toolgate_engine::store::StoredDefinition;
use toolgate_kernel::id::ProjectId;
use uuid::Uuid;

use super::batch::{Trip, pairs};
use super::column::{Id, get, json, rows};
use super::fault::Fault;
use super::session::Db;

const KEEP: &str = "
    INSERT INTO definitions (project, hash, definition)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[]) ON CONFLICT DO NOTHING";

/// Definitions to store, as parameters.
pub(super) struct Columns<'a> {
    projects: Vec<Uuid>,
    hashes: Vec<String>,
    definitions: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(stored: &'a BTreeMap<(ProjectId, String), StoredDefinition>) -> Self {
        let (projects, hashes) = pairs(stored.keys().map(|(project, hash)| (*project, hash.as_str())));
        Self {
            projects,
            hashes,
            definitions: stored.values().map(|stored| stored.definition.as_str()).collect(),
        }
    }

    pub(super) async fn add_to<'t>(&'t self, trip: &mut Trip<'t>) -> Result<(), Fault> {
        let params = vec![&self.projects as _, &self.hashes as _, &self.definitions as _];
        trip.add_if(!self.hashes.is_empty(), KEEP, params).await.map(drop)
    }
}

const GET: &str = "SELECT hash, definition FROM definitions WHERE project = $1 AND hash = ANY ($2::text[])";

pub(super) async fn of(
    db: &Db<'_>,
    project: ProjectId,
    hashes: &[String],
) -> Result<Vec<StoredDefinition>, Fault> {
    rows(db, GET, &[&project.uuid(), &hashes], |row| {
        Ok(StoredDefinition {
            hash: get(row, 0)?,
            definition: json(row, 1)?,
        })
    })
    .await
}
