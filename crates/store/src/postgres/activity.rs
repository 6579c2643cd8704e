//! What a project does, summed up from its rows.

use toolgate_engine::activity::{Activity, Hour, HourRecord};
use toolgate_engine::usage::Day;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

use super::column::{Id, get, number, rows};
use super::fault::Fault;
use super::session::Db;
use super::{runs, usage};

// Walks the runs of all projects that are open: there are few beside those that ended.
pub(super) const OPEN: &str = "SELECT status, count(*) FROM runs WHERE open AND project = $1 GROUP BY status";

pub(super) const HOURS: &str = "
    SELECT created / 3600000, status, count(*), sum(tokens)::bigint FROM runs
    WHERE project = $1 AND created >= $2 GROUP BY 1, 2";

pub(super) async fn since(db: &Db<'_>, project: ProjectId, since: Time) -> Result<Activity, Fault> {
    let id = project.uuid();
    let open = rows(db, OPEN, &[&id], |row| {
        Ok((runs::status(&get::<String>(row, 0)?)?, number(row, 1)?))
    })
    .await?;
    let hours = rows(db, HOURS, &[&id, &since.0], |row| {
        Ok(HourRecord {
            hour: Hour(get(row, 0)?),
            status: runs::status(&get::<String>(row, 1)?)?,
            runs: number(row, 2)?,
            tokens: number(row, 3)?,
        })
    })
    .await?;
    Ok(Activity {
        open,
        hours,
        calls: usage::of_project(db, project, Day::of(since)).await?,
    })
}
