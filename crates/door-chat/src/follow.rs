//! The responses that stream a run: from a message, from what became of calls, or from a cursor.

use std::collections::{HashMap, HashSet};

use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode};
use toolgate_engine::feed::{Scope, Subscription};
use toolgate_engine::intake::{Posted, Submission};
use toolgate_engine::store::RunRecord;
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::run_state::CountedState;
use toolgate_http::stream::{Follow, Mark, OpenStream, Until};
use toolgate_kernel::call::CallState;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{CallId, RunId, SpaceId};
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;

use crate::chat::Chat;
use crate::chunk::Place;
use crate::client_updates::{ClientUpdates, is_misfit, is_too_late, refused};
use crate::mismatch::Warning;
use crate::resume::Cursor;
use crate::ui_stream::{StartAt, UiStream};

/// Says that the body is a UI message stream.
const STREAM_VERSION: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");
/// What the cursor transport of the AI SDK asks for the rest by.
const WORKFLOW_RUN: HeaderName = HeaderName::from_static("x-workflow-run-id");
/// An answer begins with these however it is told: `start`, `start-step`, `data-run`.
const FIXED_CHUNKS: usize = 3;

impl Chat {
    /// The answer to a message that was just stored.
    pub async fn follow_message(
        self,
        door: &Shared,
        posted: Posted,
        events: Option<Subscription>,
        warning: Option<Warning>,
    ) -> Result<Response, Refusal> {
        let (Some(run), Some(events)) = (posted.run_id, events) else {
            return Err(Refusal::not_found("answer"));
        };
        door.access.remember(self.who.project, run, posted.space_id);
        let mark = match posted.repeated {
            true => Mark::Present,
            false => Mark::Said(posted.message_id),
        };
        let follow = self.follow(run, posted.space_id, posted.seq, mark);
        let from = StartAt::Message(posted.message_id);
        let reader = self.reader(door, posted.space_id).await?;
        let stream =
            UiStream::new(&follow, run, reader, self.dialect, from, HashSet::new()).with_warning(warning);
        respond(door, self.stream, follow, events, stream).await
    }

    /// Submits the client's updates, and streams what follows from them.
    pub async fn follow_updates(
        self,
        door: &Shared,
        run: RunId,
        space: SpaceId,
        updates: ClientUpdates,
    ) -> Result<Response, Refusal> {
        if let Some((call, result)) = updates.lone_result()
            && call.run == run
        {
            let messages = updates.messages.clone();
            return self.follow_result(door, space, call, result, &messages).await;
        }
        let (calls, last) = (updates.calls.clone(), updates.last_calls.clone());
        updates.submit(door, &self.who).await?;
        self.follow_calls(door, run, space, &calls, &last).await
    }

    /// The usual case: one result for the one call of a step. Submitted and followed in one go, so that the run's log
    /// is not read.
    async fn follow_result(
        self,
        door: &Shared,
        space: SpaceId,
        call: CallId,
        result: Submission,
        messages: &HashMap<CallId, usize>,
    ) -> Result<Response, Refusal> {
        let calls = HashSet::from([call]);
        let mut submitted = door
            .engine
            .submit_and_follow(call, result, self.who.entity())
            .await;
        if let Err(error) = submitted.as_ref()
            && is_misfit(error)
        {
            submitted = door
                .engine
                .submit_and_follow(call, refused(error), self.who.entity())
                .await;
        }
        match submitted {
            Ok((receipt, events)) => {
                let after = Seq(receipt.seq.0 - 1);
                let follow = self.follow(call.run, space, after, Mark::Moved);
                let from = StartAt::Continuation(Place::after(after));
                let reader = self.reader(door, space).await?;
                let stream = UiStream::new(&follow, call.run, reader, self.dialect, from, calls);
                respond(door, self.stream, follow, events, stream).await
            }
            Err(error) if is_too_late(&error) => {
                self.follow_calls(door, call.run, space, &calls, &calls).await
            }
            Err(error) => Err(ClientUpdates::refusal(messages, call, error)),
        }
    }

    /// What became of the calls of the client's last step, and all that followed. `calls` are all that it may have
    /// answered.
    async fn follow_calls(
        self,
        door: &Shared,
        run: RunId,
        space: SpaceId,
        calls: &HashSet<CallId>,
        last: &HashSet<CallId>,
    ) -> Result<Response, Refusal> {
        let reader = self.reader(door, space).await?;
        let state = CountedState::read(door, &self.who, run, &reader).await?;
        let first = became_of(&state, last).min();
        let first = first.or_else(|| became_of(&state, calls).min());
        let place = first.map_or(state.seq(), |seq| Seq(seq.0 - 1));
        let events = door.engine.subscribe(Scope::Run(run), Seq(0)).await?;
        // The run at the top tells its status a moment after a child run was answered. What it told between an earlier
        // answer and the newest one is over.
        let below = calls
            .iter()
            .any(|call| call.run != run && is_answered(&state, *call));
        let mark = match became_of(&state, calls).max() {
            Some(newest) if below => Mark::StatusAfter(newest),
            _ => Mark::Present,
        };
        let follow = self.follow(run, space, Seq(0), mark);
        let from = StartAt::Continuation(Place::after(place));
        let stream =
            UiStream::new(&follow, run, reader, self.dialect, from, HashSet::new()).with_state(state);
        respond(door, self.stream, follow, events, stream).await
    }

    /// A run's last answer, from its beginning or from where the client says.
    pub async fn follow_last_answer(
        self,
        door: &Shared,
        run: &RunRecord,
        cursor: Option<Cursor>,
    ) -> Result<Response, Refusal> {
        let reader = self.reader(door, run.space).await?;
        let state = CountedState::read(door, &self.who, run.id, &reader).await?;
        let last = state.messages().last();
        let message = last.ok_or_else(|| Refusal::not_found("answer"))?;
        let id = message.message.message_id;
        let after = Seq(message.seq.0 - 1);
        let from = match cursor {
            None => StartAt::Message(id),
            Some(Cursor::Index(seen)) => StartAt::Index(id, seen),
            Some(Cursor::Place(place)) => StartAt::Place(place),
        };
        let events = door.engine.subscribe(Scope::Run(run.id), after).await?;
        // Looked up after subscribing: a reply that ends from now on is streamed delta by delta.
        if let StartAt::Index(_, seen) = from
            && seen > FIXED_CHUNKS
            && CountedState::read(door, &self.who, run.id, &reader)
                .await?
                .has_replied_since(message)
        {
            return Err(uncountable());
        }
        let follow = self.follow(run.id, run.space, after, Mark::Present);
        let stream =
            UiStream::new(&follow, run.id, reader, self.dialect, from, HashSet::new()).with_state(state);
        respond(door, self.stream, follow, events, stream).await
    }

    /// Who the client is to the questions of the space.
    async fn reader(&self, door: &Shared, space: SpaceId) -> Result<Decider, Refusal> {
        Ok(door.access.decider(&self.who, space).await?)
    }

    fn follow(&self, run: RunId, space: SpaceId, after: Seq, mark: Mark) -> Follow {
        Follow {
            who: self.who.clone(),
            run: Some(run),
            space,
            after,
            until: Until::Pause(mark),
        }
    }
}

async fn respond(
    door: &Shared,
    open: OpenStream,
    follow: Follow,
    events: Subscription,
    stream: UiStream,
) -> Result<Response, Refusal> {
    let run = follow.run.map(|run| run.to_string()).unwrap_or_default();
    let mut response = follow.respond(door, open, events, stream).await?;
    let headers = response.headers_mut();
    headers.insert(STREAM_VERSION, HeaderValue::from_static("v1"));
    headers.insert(WORKFLOW_RUN, HeaderValue::try_from(run).expect("an id is ASCII"));
    Ok(response)
}

/// Whether somebody has answered a call: by a decision or a result.
fn is_answered(run: &RunState, call: CallId) -> bool {
    let is_settled = run.call(call).is_some_and(|call| call.is_settled());
    is_settled || run.decision(call.approval()).is_some()
}

/// Where it stands what became of these calls: decisions and outcomes.
fn became_of(run: &RunState, calls: &HashSet<CallId>) -> impl Iterator<Item = Seq> {
    calls.iter().flat_map(|call| {
        let decided = run.decision(call.approval()).map(|decision| decision.seq);
        let settled = match run.call(*call).map(|call| &call.state) {
            Some(CallState::Settled(settled)) => Some(settled.seq),
            _ => None,
        };
        decided.into_iter().chain(settled)
    })
}

/// Going on by a guess would lose words or tell them twice.
fn uncountable() -> Refusal {
    let detail = "a step of this answer has ended and is told in fewer chunks than it was streamed in; come back \
                  with the last id: as Last-Event-ID, or read the answer anew with startIndex=0";
    Refusal::new(StatusCode::GONE, "FOLDED", detail)
}
