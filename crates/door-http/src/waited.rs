//! Answers to requests that waited for a run.

use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::feed::Scope;
use toolgate_http::Shared;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::problem::Refusal;
use toolgate_http::run_state::CountedState;
use toolgate_http::wait::{Awaited, OpenWait, Rested, Since, ended_or_waits};
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::RunId;
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;

use crate::snapshot::RunBody;

/// Something that was given to a call: a result, or a decision.
pub(crate) struct Given<'a> {
    /// The run of the call.
    pub run: RunId,
    /// Its place in that run's log.
    pub seq: Seq,
    /// Its place in the log of the run at the top, for a call of a child run.
    pub place_above: &'a (dyn Fn(&RunState) -> Option<Seq> + Send + Sync),
}

/// Answers with what was stored: at once, or once the run has gone on with it, if somebody waits for that. A child run is
/// not for whoever answers it: the run at the top is.
pub(crate) async fn answer_after<B: Serialize, T: Serialize>(
    door: &Shared,
    wait: Option<OpenWait>,
    who: Principal,
    given: Given<'_>,
    body: B,
    told: impl FnOnce(B, RunBody) -> T,
) -> Result<Response, Refusal> {
    let Some(wait) = &wait else {
        return Ok(ok(body).into_response());
    };
    let top = door.access.reach_top(&who, given.run, "call").await?;
    let (after, since) = match top.run == given.run {
        true => (given.seq, Since::Now),
        false => {
            let state = CountedState::read(door, &who, top.run, &Decider::Backend).await?;
            let place = (given.place_above)(&state).unwrap_or(state.seq());
            (place, Since::StatusAfter(Seq(place.0.saturating_sub(1))))
        }
    };
    let events = door.engine.subscribe(Scope::Run(top.run), after).await?;
    let awaited = Awaited {
        who,
        run: top.run,
        space: top.space,
        since,
        is_rest: ended_or_waits,
    };
    match wait.rest(door, &awaited, events).await? {
        Some(rested) => answer_rested(door, wait, rested, |_, run| told(body, run)).await,
        None => Ok(answer_unfinished(wait, top.run, body)),
    }
}

/// 200 with the run that was waited for, as `told` puts it.
pub(crate) async fn answer_rested<T: Serialize>(
    door: &Shared,
    wait: &OpenWait,
    rested: Rested,
    told: impl FnOnce(RunId, RunBody) -> T,
) -> Result<Response, Refusal> {
    let Rested {
        record,
        state,
        reader,
    } = rested;
    let run = record.id;
    let body = RunBody::read(door, record, &state, &reader).await?;
    Ok((wait.applied(), ok(told(run, body))).into_response())
}

/// 202 with where to find the run, which takes longer than its caller waits.
pub(crate) fn answer_unfinished<T: Serialize>(wait: &OpenWait, run: RunId, body: T) -> Response {
    let place = HeaderValue::try_from(format!("/v1/runs/{run}")).expect("an id is ASCII");
    let answer = Answer(StatusCode::ACCEPTED, body);
    (wait.applied(), [(LOCATION, place)], answer).into_response()
}
