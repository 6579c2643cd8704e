//! What a user has stored and under way, for quotas.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, params};
use toolgate_engine::records::{Owner, RecordSet};
use toolgate_engine::store::Holdings;
use toolgate_engine::workspace::FILE;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};

use super::column::{first, rows};
use super::fault::Fault;
use super::records;

/// Spaces whose size is remembered; beyond it all are forgotten and counted again.
const KNOWN_MAX: usize = 100_000;

/// How many bytes the logs of spaces have up to which place. Counting goes on from there, so an entry is counted once;
/// counting in the write of each append would cost every append a page.
#[derive(Default)]
pub(crate) struct LogSizes(Mutex<HashMap<SpaceId, (Seq, u64)>>);

impl LogSizes {
    /// Forgets what was counted of a space: a part of its log was deleted.
    pub(crate) fn forget(&self, space: SpaceId) {
        let mut sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.remove(&space);
    }

    fn of(&self, connection: &Connection, space: SpaceId) -> Result<u64, Fault> {
        const SINCE: &str = "
            SELECT coalesce(sum(octet_length(events)), 0), coalesce(max(last), ?2) FROM log
            WHERE space = ?1 AND first > ?2";
        let known = |sizes: &Self| {
            sizes
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&space)
                .copied()
        };
        let (place, bytes) = known(self).unwrap_or_default();
        let key = params![space.to_bytes(), place.0 as i64];
        let more = first(connection, SINCE, key, |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
        })?;
        let (more, last) = more.unwrap_or((0, place.0));
        let mut sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sizes.len() >= KNOWN_MAX {
            sizes.clear();
        }
        sizes.insert(space, (Seq(last), bytes + more));
        Ok(bytes + more)
    }
}

// The last part is whether everything that was ever said in the space was deleted.
const OWN_SPACES: &str = "
    SELECT members.space, (SELECT count(*) FROM runs WHERE runs.space = members.space AND runs.open = 1),
           EXISTS (SELECT 1 FROM log_floors WHERE log_floors.space = members.space AND floor > 0)
           AND NOT EXISTS (SELECT 1 FROM log WHERE log.space = members.space)
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.project = ?2 AND runs.space = members.space)
    FROM members JOIN spaces ON spaces.id = members.space
    WHERE members.entity = ?1 AND spaces.project = ?2 AND spaces.by_backend = 0 AND members.position =
          (SELECT min(others.position) FROM members AS others WHERE others.space = members.space)";

// Of files one record is the count of what they take up, which stays when the last of them is deleted.
const HAS_RECORDS: &str = "
    SELECT 1 FROM record_sets WHERE project = ?1 AND owner = ?2 AND records > (kind = ?3) LIMIT 1";

fn has_records(connection: &Connection, project: ProjectId, space: SpaceId) -> Result<bool, Fault> {
    let key = params![project.to_bytes(), records::owner(Owner::Space(space)), FILE];
    Ok(first(connection, HAS_RECORDS, key, |_| Ok(()))?.is_some())
}

pub(crate) fn of(
    connection: &Connection,
    sizes: &LogSizes,
    project: ProjectId,
    user: EntityId,
) -> Result<Holdings, Fault> {
    let key = params![user.to_bytes(), project.to_bytes()];
    let spaces = rows(connection, OWN_SPACES, key, |row| {
        Ok((
            SpaceId::from_bytes(row.get(0)?),
            row.get::<_, i64>(1)? as u64,
            row.get::<_, bool>(2)?,
        ))
    })?;
    let mut holdings = Holdings::default();
    for (space, open_runs, is_emptied) in spaces {
        let files = RecordSet {
            project,
            owner: Owner::Space(space),
            kind: FILE,
        };
        let is_empty = is_emptied && !has_records(connection, project, space)?;
        holdings.spaces += u64::from(!is_empty);
        holdings.open_runs += open_runs;
        holdings.bytes += sizes.of(connection, space)? + records::size(connection, files)?.1;
    }
    Ok(holdings)
}
