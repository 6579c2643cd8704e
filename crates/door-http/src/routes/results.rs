//! Results of client tools: the intake contract over HTTP.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use toolgate_access::{Principal, Top};
use toolgate_engine::intake::{Receipt, Submission};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadBody, Missing, Others, Refused, Settled};
use toolgate_http::problem::{ProblemBody, Refusal};
use toolgate_http::query::At;
use toolgate_http::run_state::CountedState;
use toolgate_http::stream::{Follow, Mark, OpenStream, Until};
use toolgate_http::wait::{OpenWait, Wait};
use toolgate_http::wire::{At as Place, List, Members, Text, TextOr, Wire, Words, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::call::CallState;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{CallId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::events::{open, stream};
use crate::snapshot::RunBody;
use crate::until::{Saying, Streams};
use crate::waited::{Given, answer_after};

/// Most results in one request: what one step may ask for.
const RESULTS_MAX: usize = 64;
const LABEL_CHARS_MAX: usize = 256;

wire! {
    /// Error of a tool that failed on the client.
    ResultError {
        /// Error message.
        message "message": Words,
        /// Its class, as in JavaScript.
        name "name": Option<Text<0, LABEL_CHARS_MAX>>,
        /// For programs.
        code "code": Option<Text<0, LABEL_CHARS_MAX>>,
    }
}
wire! {
    /// Result of one call.
    OneResult {
        /// Id of the tool call.
        tool_call_id "toolCallId": Option<CallName>,
        /// The same as `toolCallId`.
        call_id "callId": Option<CallName>,
        /// What it gave: any JSON.
        result "result": Option<Json>,
        /// Error message of the tool.
        error "error": Option<TextOr<ResultError>>,
        /// Its run; checked when given.
        run_id "runId": Option<RunId>,
        /// Who says so, for people.
        source "source": Option<Text<0, LABEL_CHARS_MAX>>,
        /// Which client says so, for people.
        client_id "clientId": Option<Text<0, LABEL_CHARS_MAX>>,
    }
    exactly one of [tool_call_id "toolCallId", call_id "callId"]
    exactly one of [result "result", error "error"]
}
wire! {
    /// Results of several calls.
    ManyResults {
        /// The results.
        results "results": List<OneResult, 1, RESULTS_MAX>,
    }
}

/// A call as somebody names it. One that is no id names no call: that is 404, not 422.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallName(String);

impl Wire for CallName {
    fn read(value: &RawValue, at: &Place<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        toolgate_http::wire::string(value, at, problems).map(Self)
    }
    fn schema() -> RefOr<Schema> {
        <CallId as Wire>::schema()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        <CallId as Wire>::components(components);
    }
}

/// What one call gave, or several.
pub(crate) enum ToolResults {
    One(Box<OneResult>),
    Many(Vec<OneResult>),
}

impl Wire for ToolResults {
    fn read(value: &RawValue, at: &Place<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        match Members::read(value, at, problems)?.get("results") {
            Some(_) => ManyResults::read(value, at, problems).map(|many| Self::Many(many.results.0)),
            None => OneResult::read(value, at, problems).map(|one| Self::One(Box::new(one))),
        }
    }
    fn schema() -> RefOr<Schema> {
        toolgate_http::wire::component("ToolResults")
    }
}
impl PartialSchema for ToolResults {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(<OneResult as Wire>::schema())
            .item(<ManyResults as Wire>::schema())
            .into()
    }
}
impl ToSchema for ToolResults {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        OneResult::components(schemas);
        ManyResults::components(schemas);
    }
}

/// A result is stored. The same result again gets the same receipt.
#[derive(Serialize, ToSchema)]
#[schema(as = Receipt)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReceiptBody {
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Its run.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    /// The place of the event that settled it.
    seq: u64,
    /// When it was stored.
    #[schema(value_type = schema::Time)]
    time: Time,
}

impl From<Receipt> for ReceiptBody {
    fn from(receipt: Receipt) -> Self {
        Self {
            tool_call_id: receipt.tool_call_id,
            run_id: receipt.run_id,
            seq: receipt.seq.0,
            time: receipt.time,
        }
    }
}

/// What became of each result, in the order they were sent.
#[derive(Serialize, ToSchema)]
pub(crate) struct ResultList {
    results: Vec<ResultOutcome>,
}

/// What became of one result.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultOutcome {
    /// The call as it was named.
    tool_call_id: String,
    /// It is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<ReceiptBody>,
    /// It was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ProblemBody>,
}

/// What became of what was sent.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Taken {
    One(ReceiptBody),
    Many(ResultList),
}

/// What became of what was sent; with the run when that was waited for.
#[derive(Serialize, ToSchema)]
pub(crate) struct TakenAndRun {
    #[serde(flatten)]
    taken: Taken,
    /// The run once it has ended or waits again: of a child run's call, the run at the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunBody>,
}

/// Takes results of client calls of a run.
///
/// The first result of a call is stored and gets a receipt; the same again gets the same receipt; another
/// value is 409 and names the winner; after a deadline, a cancel or a new message it is 410 with the reason.
/// With `accept: text/event-stream` the answer is what follows. With `prefer: wait=30` it has the run too once that has
/// ended or waits again, if that is within 30 seconds.
#[utoipa::path(
    post, path = "/v1/runs/{run}/tool-results", operation_id = "submit_run_results", tag = "results",
    params(
        ("run" = inline(schema::RunId), Path),
        ("until" = inline(Option<crate::until::UntilWord>), Query, description = "When a stream ends; `pause` unless said otherwise."),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the run, such as `30s`."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=30`."),
    ),
    request_body = ToolResults,
    responses(
        (status = 200, description = "Stored; with the run, when that was waited for.", content(
            (TakenAndRun = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 202, description = "Stored, and the run is under way after the wait.", body = Taken),
        (status = 207, description = "Several were sent and not all were taken.", body = ResultList),
        BadBody, Missing, Others, Settled, Refused,
    ),
)]
pub(crate) async fn to_run(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(run): At<RunId>,
    Saying(streams): Saying,
    wait: Wait,
    body: Body<ToolResults>,
) -> Result<Response, Refusal> {
    let top = door.access.reach_top(&who, run, "run").await?;
    let within = Within {
        who,
        space: top.space,
        run: Some(run),
    };
    take(&door, within, (streams, wait), body.value).await
}

/// Takes results of client calls of a space's runs; as for a run.
#[utoipa::path(
    post, path = "/v1/spaces/{space}/tool-results", operation_id = "submit_space_results", tag = "results",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("until" = inline(Option<crate::until::UntilWord>), Query, description = "When a stream ends; `pause` unless said otherwise."),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the run, such as `30s`."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=30`."),
    ),
    request_body = ToolResults,
    responses(
        (status = 200, description = "Stored; with the run, when that was waited for.", content(
            (TakenAndRun = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 202, description = "Stored, and the run is under way after the wait.", body = Taken),
        (status = 207, description = "Several were sent and not all were taken.", body = ResultList),
        BadBody, Missing, Others, Settled, Refused,
    ),
)]
pub(crate) async fn to_space(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
    Saying(streams): Saying,
    wait: Wait,
    body: Body<ToolResults>,
) -> Result<Response, Refusal> {
    door.access.reach_space(&who, space).await?;
    let within = Within {
        who,
        space,
        run: None,
    };
    take(&door, within, (streams, wait), body.value).await
}

/// Where the calls must be. Whoever asks may reach it.
struct Within {
    who: Principal,
    space: SpaceId,
    run: Option<RunId>,
}

async fn take(
    door: &Shared,
    within: Within,
    (streams, wait): (Streams, Wait),
    results: ToolResults,
) -> Result<Response, Refusal> {
    let admitted = streams.reserve(door, &within.who)?;
    let wait = match admitted {
        None => wait.reserve(door, &within.who)?,
        Some(_) => None,
    };
    match (results, admitted) {
        (ToolResults::One(one), None) => {
            let (call, submission) = checked(door, &within, *one).await?;
            let receipt = door.engine.submit(call, submission, within.who.entity()).await?;
            let taken = Taken::One(receipt.clone().into());
            within.answer(door, wait, Some(&receipt), taken).await
        }
        (ToolResults::One(one), Some(admitted)) => {
            let (call, submission) = checked(door, &within, *one).await?;
            let top = door.access.reach_top(&within.who, call.run, "call").await?;
            if top.run != call.run {
                door.engine.submit(call, submission, within.who.entity()).await?;
                let follow = within.follow_top(door, &top, call, streams).await?;
                return open(follow, door, admitted).await;
            }
            let (receipt, events) = door
                .engine
                .submit_and_follow(call, submission, within.who.entity())
                .await?;
            stream(within.follow(&receipt, streams), door, admitted, events).await
        }
        (ToolResults::Many(many), admitted) => take_many(door, within, many, (streams, admitted), wait).await,
    }
}

async fn take_many(
    door: &Shared,
    within: Within,
    many: Vec<OneResult>,
    (streams, stream): (Streams, Option<OpenStream>),
    wait: Option<OpenWait>,
) -> Result<Response, Refusal> {
    let mut outcomes = Vec::with_capacity(many.len());
    for one in many {
        let named = one.named().to_owned();
        let outcome = match checked(door, &within, one).await {
            Ok((call, submission)) => door
                .engine
                .submit(call, submission, within.who.entity())
                .await
                .map_err(Refusal::from),
            Err(refusal) => Err(refusal),
        };
        outcomes.push((named, outcome));
    }
    let receipts: Vec<&Receipt> = outcomes
        .iter()
        .filter_map(|(_, outcome)| outcome.as_ref().ok())
        .collect();
    let all = receipts.len() == outcomes.len();
    let one_run = receipts.windows(2).all(|pair| pair[0].run_id == pair[1].run_id);
    let first = receipts.iter().min_by_key(|receipt| receipt.seq);
    let first = first.filter(|_| all && one_run).map(|first| (*first).clone());
    if let (Some(stream), Some(first)) = (stream, &first) {
        let top = door.access.reach_top(&within.who, first.run_id, "call").await?;
        let follow = match top.run == first.run_id {
            true => within.follow(first, streams),
            false => within.follow_top(door, &top, first.tool_call_id, streams).await?,
        };
        return open(follow, door, stream).await;
    }
    let results = outcomes
        .into_iter()
        .map(|(call, outcome)| told(call, outcome))
        .collect();
    let taken = Taken::Many(ResultList { results });
    match all {
        true => within.answer(door, wait, first.as_ref(), taken).await,
        false => Ok(Answer(StatusCode::MULTI_STATUS, taken).into_response()),
    }
}

impl Within {
    /// What became of what was sent; with the run that a result moved, when somebody waits for it.
    async fn answer(
        self,
        door: &Shared,
        wait: Option<OpenWait>,
        first: Option<&Receipt>,
        taken: Taken,
    ) -> Result<Response, Refusal> {
        let Some(first) = first else {
            return Ok(ok(taken).into_response());
        };
        let call = first.tool_call_id;
        let given = Given {
            run: call.run,
            seq: first.seq,
            place_above: &|state| match state.call(call).map(|call| &call.state) {
                Some(CallState::Settled(settled)) => Some(settled.seq),
                _ => None,
            },
        };
        let told = |taken, run| TakenAndRun {
            taken,
            run: Some(run),
        };
        answer_after(door, wait, self.who, given, taken, told).await
    }

    /// What follows the result of a child run's call in the run at the top, the result first. The child run itself is
    /// not for its reader.
    async fn follow_top(
        &self,
        door: &Shared,
        top: &Top,
        call: CallId,
        streams: Streams,
    ) -> Result<Follow, Refusal> {
        let state = CountedState::read(door, &self.who, top.run, &Decider::Backend).await?;
        let settled = match state.call(call).map(|call| &call.state) {
            Some(CallState::Settled(settled)) => settled.seq,
            _ => state.seq(),
        };
        let after = Seq(settled.0.saturating_sub(1));
        let until = match streams {
            Streams::UntilPause => Until::Pause(Mark::StatusAfter(after)),
            Streams::UntilEnd | Streams::No => Until::End,
        };
        Ok(Follow {
            who: self.who.clone(),
            run: Some(top.run),
            space: top.space,
            after,
            until,
        })
    }

    /// What follows a result, the result first.
    fn follow(&self, receipt: &Receipt, streams: Streams) -> Follow {
        let until = match streams {
            Streams::UntilPause => Until::Pause(Mark::Moved),
            Streams::UntilEnd | Streams::No => Until::End,
        };
        let after = Seq(receipt.seq.0 - 1);
        Follow {
            who: self.who.clone(),
            run: Some(receipt.run_id),
            space: self.space,
            after,
            until,
        }
    }
}

fn told(tool_call_id: String, outcome: Result<Receipt, Refusal>) -> ResultOutcome {
    match outcome {
        Ok(receipt) => ResultOutcome {
            tool_call_id,
            receipt: Some(receipt.into()),
            error: None,
        },
        Err(refusal) => ResultOutcome {
            tool_call_id,
            receipt: None,
            error: Some(refusal.into_body()),
        },
    }
}

/// One result in the engine's words, when its call is where it must be.
async fn checked(door: &Shared, within: &Within, one: OneResult) -> Result<(CallId, Submission), Refusal> {
    let missing = || Refusal::not_found("call");
    let call: CallId = one.named().parse().map_err(|_| missing())?;
    let here = match within.run {
        Some(run) if call.run == run => true,
        Some(run) => door.access.reach_top(&within.who, call.run, "call").await?.run == run,
        None => door.access.reach_top(&within.who, call.run, "call").await?.space == within.space,
    };
    if !here || one.run_id.is_some_and(|run| run != call.run) {
        return Err(missing());
    }
    let submission = match (one.result, one.error) {
        (Some(output), _) => Submission::Output(output),
        (None, Some(TextOr::Text(message))) => Submission::Error(message),
        (None, Some(TextOr::More(error))) => Submission::Error(error.message.0),
        (None, None) => unreachable!("one of the two was given"),
    };
    Ok((call, submission))
}

impl OneResult {
    /// The call as it was named.
    fn named(&self) -> &str {
        let name = self.tool_call_id.as_ref().or(self.call_id.as_ref());
        name.map_or("", |name| &name.0)
    }
}
