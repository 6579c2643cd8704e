//! What no two projects and no two keys may share: their names and their hashes. A row that is there stays when one is stored, so
//! a project whose name is taken would be lost, and its runs would belong to a project that is not there.

use std::collections::BTreeMap;
use std::io;

use toolgate_engine::store::StoreError;
use toolgate_kernel::id::{KeyId, ProjectId};

use super::Database;
use super::row::{Row, Value};
use super::tables::{Table, named};

/// The names of projects and the hashes of keys, with whose they are.
#[derive(Default)]
pub(super) struct Claims {
    projects: BTreeMap<String, ProjectId>,
    keys: BTreeMap<Vec<u8>, Key>,
}

struct Key {
    id: KeyId,
    project: ProjectId,
    hint: String,
}

/// The tables whose rows have something that no two may share.
const TABLES: [&str; 2] = ["projects", "keys"];

impl Claims {
    /// Reads the lines of a file up to the first that claims nothing, which come back with it: an export begins with its projects
    /// and keys.
    pub(super) fn of_file(
        lines: &mut impl Iterator<Item = io::Result<String>>,
    ) -> (Self, Vec<io::Result<String>>) {
        let (mut claims, mut read) = (Self::default(), Vec::new());
        for line in lines {
            let row = line.as_ref().ok().and_then(|line| Row::read(line).ok());
            read.push(line);
            match row {
                Some((table, row)) if TABLES.contains(&table.name) => claims.add(table, &row),
                _ => break,
            }
        }
        (claims, read)
    }

    async fn of_database(database: &mut dyn Database) -> Result<Self, StoreError> {
        let mut claims = Self::default();
        for table in TABLES.into_iter().filter_map(named) {
            let mut last = None;
            loop {
                let rows = database.rows(table, None, last.as_ref()).await?;
                rows.iter().for_each(|row| claims.add(table, row));
                match rows.into_iter().last() {
                    Some(row) => last = Some(row),
                    None => break,
                }
            }
        }
        Ok(claims)
    }

    fn add(&mut self, table: &Table, row: &Row) {
        match (table.name, &row.0[..]) {
            ("projects", [Value::Id(id), Value::Text(name), ..]) => {
                self.projects.insert(name.clone(), ProjectId::from_bytes(*id));
            }
            (
                "keys",
                [
                    Value::Id(id),
                    Value::Id(project),
                    _,
                    Value::Bytes(hash),
                    Value::Text(hint),
                    ..,
                ],
            ) => {
                let key = Key {
                    id: KeyId::from_bytes(*id),
                    project: ProjectId::from_bytes(*project),
                    hint: hint.clone(),
                };
                self.keys.insert(hash.clone(), key);
            }
            // A row without a name or a hash is one that no database takes.
            _ => {}
        }
    }

    /// `Unavailable` if the database has one of these names or hashes under another id.
    pub(super) async fn require_free(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        let there = Self::of_database(database).await?;
        let taken = self.taken_project(&there).or_else(|| self.taken_key(&there));
        taken.map_or(Ok(()), |why| Err(StoreError::Unavailable(why)))
    }

    fn taken_project(&self, there: &Self) -> Option<String> {
        self.projects.iter().find_map(|(name, id)| {
            let other = there.projects.get(name).filter(|other| *other != id)?;
            Some(format!(
                "it has another project named {name:?} ({other}, that of the file is {id}) and a project cannot be renamed, \
                 import into an empty database, export the other projects one by one with --project, or delete the one that is \
                 there unless it is \"default\""
            ))
        })
    }

    fn taken_key(&self, there: &Self) -> Option<String> {
        self.keys.iter().find_map(|(hash, key)| {
            let other = there.keys.get(hash).filter(|other| other.id != key.id)?;
            Some(format!(
                "the key {:?} of project {} is there already, as {} of project {}, import into an empty database, or delete \
                 that key there",
                key.hint,
                self.name_of(key.project),
                other.id,
                there.name_of(other.project)
            ))
        })
    }

    /// A project for people.
    fn name_of(&self, id: ProjectId) -> String {
        let found = self.projects.iter().find(|(_, project)| **project == id);
        found.map_or_else(|| id.to_string(), |(name, _)| format!("{name:?}"))
    }
}
