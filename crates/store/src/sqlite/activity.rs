//! What a project does, summed up from its rows.

use rusqlite::{Connection, params};
use toolgate_engine::activity::{Activity, Hour, HourRecord};
use toolgate_engine::usage::Day;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

use super::column::rows;
use super::fault::Fault;
use super::{runs, usage};

// Walks the runs of all projects that are open: there are few beside those that ended.
const OPEN: &str = "
    SELECT status, count(*) FROM runs INDEXED BY runs_open WHERE open = 1 AND project = ?1 GROUP BY status";

const HOURS: &str = "
    SELECT created / 3600000, status, count(*), sum(tokens) FROM runs INDEXED BY runs_by_time
    WHERE project = ?1 AND created >= ?2 GROUP BY 1, 2";

pub(crate) fn since(connection: &Connection, project: ProjectId, since: Time) -> Result<Activity, Fault> {
    let id = project.to_bytes();
    let open = rows(connection, OPEN, [id], |row| {
        let status = runs::status(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        Ok((status, row.get::<_, i64>(1)? as u64))
    })?;
    let hours = rows(connection, HOURS, params![id, since.0], |row| {
        Ok(HourRecord {
            hour: Hour(row.get(0)?),
            status: runs::status(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?,
            runs: row.get::<_, i64>(2)? as u64,
            tokens: row.get::<_, i64>(3)? as u64,
        })
    })?;
    Ok(Activity {
        open,
        hours,
        calls: usage::of_project(connection, project, Day::of(since))?,
    })
}
