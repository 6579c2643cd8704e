//! What a user has stored and under way, for quotas.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use toolgate_engine::store::Holdings;
use toolgate_engine::workspace::FILE;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use uuid::Uuid;

use super::column::{Id, id, number, rows, seq};
use super::fault::Fault;
use super::session::Db;

/// Spaces whose size is remembered; beyond it all are forgotten and counted again.
const KNOWN_MAX: usize = 100_000;

/// How many bytes the logs of spaces have up to which place. Counting goes on from there, so an entry is counted once.
/// Entries become visible in the order of their places, also those of other nodes, so none is missed.
#[derive(Default)]
pub(crate) struct LogSizes(Mutex<HashMap<SpaceId, (Seq, u64)>>);

// The third part is the size of the space's files, the last whether everything that was ever in the space was deleted. Of files
// one record is the count of what they take up, which stays when the last of them is deleted.
pub(super) const OWN_SPACES: &str = "
    SELECT members.space,
           (SELECT count(*) FROM runs WHERE runs.space = members.space AND runs.open),
           coalesce((SELECT bytes FROM record_sets WHERE record_sets.project = $2
                       AND record_sets.owner = '\\x73'::bytea || uuid_send(members.space) AND record_sets.kind = $3), 0),
           coalesce((SELECT last FROM heads WHERE heads.space = members.space), 0) > 0
           AND (SELECT 1 FROM log WHERE log.space = members.space LIMIT 1) IS NULL
           AND (SELECT 1 FROM runs WHERE runs.project = $2 AND runs.space = members.space LIMIT 1) IS NULL
           AND (SELECT 1 FROM record_sets WHERE record_sets.project = $2
                  AND record_sets.owner = '\\x73'::bytea || uuid_send(members.space)
                  AND record_sets.records > (record_sets.kind = $3)::int LIMIT 1) IS NULL
    FROM members JOIN spaces ON spaces.id = members.space
    WHERE members.entity = $1 AND spaces.project = $2 AND NOT spaces.by_backend AND members.position =
          (SELECT min(others.position) FROM members AS others WHERE others.space = members.space)";

pub(super) const MORE: &str = "
    SELECT known.space, coalesce(sum(octet_length(events)), 0)::bigint, coalesce(max(last), known.place)
    FROM unnest($1::uuid[], $2::bigint[]) AS known (space, place)
    LEFT JOIN log ON log.space = known.space AND log.first > known.place
    GROUP BY known.space, known.place";

impl LogSizes {
    /// Forgets what was counted of a space: a part of its log was deleted.
    pub(crate) fn forget(&self, space: SpaceId) {
        let mut sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.remove(&space);
    }
}

pub(super) async fn of(
    db: &Db<'_>,
    sizes: &LogSizes,
    project: ProjectId,
    user: EntityId,
) -> Result<Holdings, Fault> {
    let key: [super::column::Param<'_>; 3] = [&user.uuid(), &project.uuid(), &FILE];
    let spaces = rows(db, OWN_SPACES, &key, |row| {
        Ok((
            id::<SpaceId>(row, 0)?,
            number(row, 1)?,
            number(row, 2)?,
            row.try_get::<_, bool>(3)?,
        ))
    })
    .await?;
    let logs = sizes
        .of(db, spaces.iter().map(|(space, ..)| *space).collect())
        .await?;
    let mut holdings = Holdings {
        bytes: logs,
        ..Holdings::default()
    };
    for (_, open_runs, files, is_empty) in spaces {
        holdings.spaces += u64::from(!is_empty);
        holdings.open_runs += open_runs;
        holdings.bytes += files;
    }
    Ok(holdings)
}

impl LogSizes {
    /// Bytes of the logs of these spaces.
    async fn of(&self, db: &Db<'_>, spaces: Vec<SpaceId>) -> Result<u64, Fault> {
        let known: HashMap<SpaceId, (Seq, u64)> = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let one = |space: &SpaceId| (*space, known.get(space).copied().unwrap_or_default());
            spaces.iter().map(one).collect()
        };
        let ids: Vec<Uuid> = spaces.iter().map(|space| space.uuid()).collect();
        let places: Vec<i64> = spaces.iter().map(|space| known[space].0.0 as i64).collect();
        let more = rows(db, MORE, &[&ids, &places], |row| {
            Ok((id::<SpaceId>(row, 0)?, number(row, 1)?, seq(row, 2)?))
        })
        .await?;
        let mut sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sizes.len() >= KNOWN_MAX {
            sizes.clear();
        }
        let mut total = 0;
        for (space, more, last) in more {
            let bytes = known[&space].1 + more;
            total += bytes;
            sizes.insert(space, (last, bytes));
        }
        Ok(total)
    }
}
