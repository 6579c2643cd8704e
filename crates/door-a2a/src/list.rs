//! `ListTasks`: the caller's tasks, those whose status changed last first.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use toolgate_a2a::error::Error;
use toolgate_a2a::request::ListTasks;
use toolgate_a2a::task::TaskState;
use toolgate_a2a::{Dialect, Invalid};
use toolgate_engine::store::{RecentFilter, RunRecord};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::RunId;
use toolgate_kernel::time::Time;

use crate::asking::Asking;
use crate::context;
use crate::follow::{Start, read};
use crate::problem::refused;

const PAGE_DEFAULT: usize = 50;
const PAGE_MAX: i32 = 100;
/// A page ends with the task that reaches so many bytes.
const PAGE_BYTES_MAX: usize = 1 << 20;

pub(crate) async fn list(asking: &Asking<'_>, request: ListTasks) -> Result<Value, Error> {
    let door = asking.door();
    let size = match request.page_size {
        None => PAGE_DEFAULT,
        Some(size) if (1..=PAGE_MAX).contains(&size) => size as usize,
        Some(size) => {
            let words = format!("must be from 1 to {PAGE_MAX}, got {size}");
            return Err(Invalid::one("pageSize", words).into());
        }
    };
    let Some(filter) = filter(asking, &request, size)? else {
        return Ok(page(Vec::new(), String::new(), size, 0));
    };
    let (mut rows, total) = door
        .engine
        .recent_runs(asking.who.project, filter)
        .await
        .map_err(|error| refused(error, ""))?;
    let mut more = rows.len() > size;
    rows.truncate(size);
    let (mut tasks, mut bytes, mut last) = (Vec::new(), 0, None);
    for row in rows {
        if bytes >= PAGE_BYTES_MAX {
            more = true;
            break;
        }
        let task = task(asking, &request, &row).await?;
        bytes += task.to_string().len();
        tasks.push(task);
        last = Some((row.updated, row.id));
    }
    let token = last.filter(|_| more).map_or_else(String::new, token);
    Ok(page(tasks, token, size, total))
}

fn page(tasks: Vec<Value>, token: String, size: usize, total: u64) -> Value {
    json!({"tasks": tasks, "nextPageToken": token, "pageSize": size, "totalSize": total})
}

async fn task(asking: &Asking<'_>, request: &ListTasks, row: &RunRecord) -> Result<Value, Error> {
    let read = read(asking.door(), &asking.who, (row.id, row.space), Start::Present).await?;
    let history = request.history_length.unwrap_or(0);
    let task = read.fold.task(Some(history), request.include_artifacts);
    Ok(task.to_json(Dialect::V1))
}

/// None when no task can fit.
fn filter(asking: &Asking<'_>, request: &ListTasks, size: usize) -> Result<Option<RecentFilter>, Error> {
    let statuses = match request.status.map(statuses) {
        Some([]) => return Ok(None),
        Some(statuses) => statuses.to_vec(),
        None => Vec::new(),
    };
    let since = match &request.status_timestamp_after {
        None => None,
        Some(text) => {
            let moment: jiff::Timestamp = text.parse().map_err(|_| {
                Invalid::one(
                    "statusTimestampAfter",
                    "must be a time as in 2026-11-18T12:00:00Z",
                )
            })?;
            Some(Time(moment.as_millisecond()))
        }
    };
    let before = match &request.page_token {
        None => None,
        Some(text) => Some(
            cursor(text)
                .ok_or_else(|| Invalid::one("pageToken", "is not one that a page was answered with"))?,
        ),
    };
    Ok(Some(RecentFilter {
        member: asking.who.entity(),
        agent: Some(asking.agent.clone()),
        space: request
            .context_id
            .as_ref()
            .map(|id| context::space_of(&asking.who, id)),
        statuses,
        since,
        before,
        // One more tells whether there is a next page.
        limit: size + 1,
    }))
}

fn statuses(state: TaskState) -> &'static [Status] {
    match state {
        TaskState::Submitted => &[Status::Queued],
        TaskState::Working => &[Status::Running, Status::WaitingTime],
        TaskState::InputRequired => &[Status::WaitingTool, Status::WaitingApproval],
        TaskState::Completed => &[Status::Completed],
        TaskState::Failed => &[Status::Failed],
        TaskState::Canceled => &[Status::Cancelled],
        TaskState::AuthRequired | TaskState::Rejected | TaskState::Unspecified => &[],
    }
}

fn token((time, run): (Time, RunId)) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}.{run}", time.0))
}

fn cursor(token: &str) -> Option<(Time, RunId)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (time, run) = text.split_once('.')?;
    Some((Time(time.parse().ok()?), run.parse().ok()?))
}
