//! A space as it stands, for a reader whose cursor is older than what is kept of its log, or ahead of it.

use http::StatusCode;
use serde_json::{Value, json};
use toolgate_access::Principal;
use toolgate_engine::CursorPlace;
use toolgate_engine::store::RunFilter;
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::run_state::CountedState;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::SpaceId;

use crate::routes::spaces::SpaceBody;
use crate::snapshot::RunBody;

/// Most open runs that a snapshot shows, the newest of them.
const RUNS_MAX: usize = 16;

/// Refuses a cursor that has missed events which were deleted, or that is ahead of the log, with a snapshot to start from. A
/// reader without a cursor is given what is kept.
pub(crate) async fn check_cursor(
    door: &Shared,
    who: &Principal,
    space: SpaceId,
    after: Seq,
) -> Result<(), Refusal> {
    let (floor, code, seen) = match door.engine.cursor_place(space, after).await? {
        CursorPlace::Kept => return Ok(()),
        CursorPlace::Deleted { floor } => {
            let seen = format!("events after {} were deleted", after.0);
            (floor, "PAST_RETENTION", seen)
        }
        CursorPlace::Ahead { floor } => {
            let seen = format!(
                "{} is ahead of the log, which may be that of a restored backup",
                after.0
            );
            (floor, "AHEAD_OF_LOG", seen)
        }
    };
    let words = format!("{seen}, go on after `snapshot.seq`, or read what is kept without a cursor");
    let snapshot = snapshot(door, who, space, floor).await?;
    Err(Refusal::new(StatusCode::GONE, code, words).snapshot(snapshot))
}

/// The place is read first: whatever happens after it comes with the stream, also when the runs show it already.
async fn snapshot(door: &Shared, who: &Principal, space: SpaceId, floor: Seq) -> Result<Value, Refusal> {
    let seq = door.engine.space_tail(space).await?;
    let record = door.access.space(who, space).await?;
    let reader = door.access.decider(who, space).await?;
    let mut runs = Vec::new();
    let filter = RunFilter {
        space: Some(space),
        statuses: Status::OPEN.to_vec(),
        limit: RUNS_MAX,
        ..RunFilter::default()
    };
    for run in door.engine.runs(who.project, filter).await?.runs {
        let state = CountedState::read(door, who, run.id, &reader).await?;
        let body = RunBody::read(door, run, &state, &reader).await?;
        runs.push(serde_json::to_value(body).expect("a run has text keys"));
    }
    Ok(json!({
        "seq": seq,
        "deletedUpTo": floor,
        "space": SpaceBody::from(record),
        "runs": runs,
    }))
}
