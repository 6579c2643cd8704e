//! One `tools/call`, from its start to its answer.
//!
//! The call is a run, so everything that it waits for outlasts this request. What the client can do decides how long the
//! request stays open and what it is told then:
//!
//! | client | a call that waits for a person, a client or a moment | a call at work |
//! | --- | --- | --- |
//! | with tasks | a task, at once | a task after [`TASK_AFTER`] |
//! | 2026-07-28 without tasks | `input_required`: the form of an approval at once if it can show one, "try again" after [`RETRY_AFTER`] otherwise | open, with progress |
//! | earlier | open, with progress; an approval is asked for by `elicitation/create` if the client can | open, with progress |

use std::pin::pin;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, ElicitResult, InputRequests,
    InputRequiredResult,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio::time::Instant;
use toolgate_engine::feed::Subscription;
use toolgate_http::stream::OpenStream;
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::name::ToolName;

use crate::answer::{Form, failure, words};
use crate::following::{Following, Look};
use crate::listing::{Offer, offer};
use crate::progress::{PROGRESS_SEND_MAX, Progress};
use crate::questions::{self, Question};
use crate::resume::Waiting;
use crate::start::{NotStarted, start_ask, start_call};
use crate::visitor::{Abilities, Visitor};
use crate::{Mcp, problem};

/// How long a call is waited for before a client that takes tasks is given one.
const TASK_AFTER: Duration = Duration::from_secs(5);
/// How long a call that waits for others is waited for before a client without tasks is told to try again.
const RETRY_AFTER: Duration = Duration::from_secs(20);
/// Longest time that one request stays open.
const OPEN_MAX: Duration = Duration::from_secs(600);

/// A call that is being answered.
struct Answering<'a> {
    mcp: &'a Mcp,
    visitor: &'a Visitor,
    abilities: Abilities,
    request: &'a CallToolRequestParams,
    context: &'a RequestContext<RoleServer>,
    form: Form,
    run: RunId,
    /// The message that began the run, if this request did.
    began: Option<MessageId>,
    /// The person put the run's question aside.
    put_aside: bool,
    since: Instant,
    progress: Progress,
}

/// Answers `tools/call`.
pub(crate) async fn call(
    mcp: &Mcp,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let visitor = Visitor::of(&context.extensions)?;
    let abilities = Abilities::of(&context);
    let found = offer(&mcp.shared, visitor, &request.name).await;
    let Some(found) = found.map_err(problem::error)? else {
        let words = format!(
            "there is no tool named {:?} that you may call here; see tools/list",
            request.name
        );
        return Err(ErrorData::invalid_params(words, None));
    };
    // Refused before anything is stored.
    let open = OpenStream::reserve(&mcp.shared, &visitor.who).map_err(problem::error)?;
    let mut answering = Answering {
        mcp,
        visitor,
        abilities,
        request: &request,
        context: &context,
        form: Form::new(found.has_output_schema(), abilities),
        run: RunId::from_bytes([0; 16]),
        began: None,
        put_aside: false,
        since: Instant::now(),
        progress: Progress::new(&context),
    };
    let (space, events) = match &request.request_state {
        Some(sealed) => (answering.resume(sealed).await?, None),
        None => match answering.start(&found).await {
            Ok((space, events)) => (space, Some(events)),
            Err(NotStarted::Arguments(words)) => {
                return Ok(failure(&format!("VALIDATION_FAILED: {words}")).into());
            }
            Err(NotStarted::Refused(refusal)) => return Err(problem::error(refusal)),
        },
    };
    let place = (answering.run, space);
    let following = Following::begin(&mcp.shared, &visitor.who, place, events, open).await;
    answering.follow(following.map_err(problem::error)?).await
}

/// Why a request stops waiting for its run.
enum Left {
    /// The client closed the request.
    Closed,
    /// The gateway goes down.
    Stopping,
    /// It has been open long enough.
    TimeUp,
}

impl Answering<'_> {
    async fn start(&mut self, offer: &Offer) -> Result<(SpaceId, Subscription), NotStarted> {
        let (door, visitor) = (&self.mcp.shared, self.visitor);
        let space = visitor.space_of(self.context);
        let space = space.map_err(|error| NotStarted::Arguments(error.message.into_owned()))?;
        let arguments = self.request.arguments.clone();
        let started = match offer {
            Offer::Tool(_) => {
                let tool: Result<ToolName, _> = self.request.name.parse();
                let tool = tool.map_err(|error| NotStarted::Arguments(error.to_string()))?;
                start_call(door, visitor, space, tool, arguments).await?
            }
            Offer::Agent(agent) => start_ask(door, visitor, space, agent, arguments).await?,
        };
        self.run = started.run;
        self.began = Some(started.message);
        Ok((started.space, started.events))
    }

    /// Goes on with a call that the client was told to ask for again, with what its person answered.
    async fn resume(&mut self, sealed: &str) -> Result<SpaceId, ErrorData> {
        let (door, who) = (&self.mcp.shared, &self.visitor.who);
        let opened = self
            .mcp
            .states
            .open(door, self.visitor, self.request, sealed)
            .await?;
        (self.run, self.put_aside) = (opened.run, opened.put_aside);
        let record = door.access.run(who, self.run).await.map_err(problem::fault)?;
        for (key, answer) in self.request.input_responses.iter().flatten() {
            let answer = elicited(answer)?;
            if !questions::take(door, who, self.run, key, &answer).await? {
                self.put_aside = true;
            }
        }
        Ok(record.space)
    }

    async fn follow(&mut self, mut following: Following) -> Result<CallToolResponse, ErrorData> {
        loop {
            let look = following.look().await.map_err(problem::error)?;
            if let Some(result) = self.result(&look).await {
                drop(look);
                self.tell_rest(&mut following).await;
                return Ok(result.into());
            }
            let status = look.state.status();
            if self.abilities.tasks && waits(status) {
                return Ok(self.task(&look));
            }
            let questions = Question::open(&look.state, &look.reader, self.abilities);
            if self.asks(status) && !questions.is_empty() {
                if self.abilities.modern {
                    return self.input_required(look.questions(self.abilities)).await;
                }
                drop(look);
                self.elicit(&mut following, &questions[0]).await?;
                continue;
            }
            // Not in memory while somebody waits.
            drop(look);
            match self.moved(&mut following, status).await? {
                None => {}
                Some(left) => return self.leave(&following, left).await,
            }
        }
    }

    /// Passes on what the tool said of itself before its call ended: the log may be ahead of the stream.
    async fn tell_rest(&mut self, following: &mut Following) {
        if self.began.is_none() || !self.progress.is_wanted() {
            return;
        }
        let rest = async {
            while let Ok(news) = following.next().await {
                if let Some(progress) = &news.progress {
                    self.progress.pass_on(progress).await;
                }
                if news.ended {
                    return;
                }
            }
        };
        // The result is what matters.
        let _ = tokio::time::timeout(PROGRESS_SEND_MAX, rest).await;
    }

    /// Whether the client's person is asked what the run asks.
    fn asks(&self, status: Status) -> bool {
        status == Status::WaitingApproval && !self.put_aside
    }

    /// Waits until the run has moved.
    async fn moved(&mut self, following: &mut Following, status: Status) -> Result<Option<Left>, ErrorData> {
        let mut time_up = pin!(tokio::time::sleep_until(self.since + self.patience(status)));
        let stop = &self.mcp.shared.settings.stop;
        loop {
            tokio::select! {
                biased;
                // First: when the gateway goes down, it closes the requests too.
                () = stop.cancelled() => return Ok(Some(Left::Stopping)),
                () = self.context.ct.cancelled() => return Ok(Some(Left::Closed)),
                () = &mut time_up => return Ok(Some(Left::TimeUp)),
                () = self.progress.due() => self.progress.tell(words(status).to_owned(), None).await,
                news = following.next() => {
                    let news = news.map_err(problem::error)?;
                    if let Some(progress) = news.progress {
                        self.progress.pass_on(&progress).await;
                    }
                    if news.moved {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// How long the request stays open in this status.
    fn patience(&self, status: Status) -> Duration {
        match self.abilities {
            Abilities { tasks: true, .. } => TASK_AFTER,
            Abilities { modern: true, .. } if waits(status) => RETRY_AFTER,
            _ => OPEN_MAX,
        }
    }

    /// Answers a request that waits no longer, or gives the call up with it.
    async fn leave(&self, following: &Following, left: Left) -> Result<CallToolResponse, ErrorData> {
        let look = match left {
            Left::Closed => {
                self.cancel(following).await;
                return Err(ErrorData::internal_error("the request was cancelled", None));
            }
            Left::Stopping | Left::TimeUp => following.look().await.map_err(problem::error)?,
        };
        if let Some(result) = self.result(&look).await {
            return Ok(result.into());
        }
        if self.abilities.tasks {
            return Ok(self.task(&look));
        }
        if self.abilities.modern {
            return self.input_required(InputRequests::new()).await;
        }
        let (run, status) = (self.run, words(look.state.status()));
        Ok(failure(&format!(
            "the call has not ended and goes on without this request: {run} {status}; read it with GET /v1/runs/{run}"
        ))
        .into())
    }

    /// Cancels the run, if it is this request's alone: the client has nothing to come back with, and nobody else's
    /// message began the run.
    async fn cancel(&self, following: &Following) {
        let Some(began) = self.began else { return };
        let look = following.look().await;
        let is_ours = look.is_ok_and(|look| {
            let first = look.state.messages().first();
            look.record.tool.is_some() || first.is_some_and(|first| first.message.message_id == began)
        });
        if is_ours && let Err(error) = self.mcp.shared.engine.cancel(self.run).await {
            tracing::debug!(run = %self.run, %error, "a call whose client went away could not be cancelled");
        }
    }

    async fn result(&self, look: &Look) -> Option<CallToolResult> {
        look.result_with_files(self.mcp, &self.visitor.who, self.form)
            .await
    }

    /// A task of a run that goes on.
    fn task(&self, look: &Look) -> CallToolResponse {
        CreateTaskResult::new(look.task(None, self.abilities).task).into()
    }

    async fn input_required(&self, questions: InputRequests) -> Result<CallToolResponse, ErrorData> {
        let waiting = Waiting {
            run: self.run,
            put_aside: self.put_aside,
        };
        let door = &self.mcp.shared;
        let sealed = self
            .mcp
            .states
            .seal(door, self.visitor, self.request, waiting)
            .await?;
        let questions = (!questions.is_empty()).then_some(questions);
        Ok(InputRequiredResult::new(questions, Some(sealed)).into())
    }

    /// Asks the client's person in the middle of the call, until they or others answer.
    async fn elicit(&mut self, following: &mut Following, question: &Question) -> Result<(), ErrorData> {
        let rest = (self.since + OPEN_MAX).saturating_duration_since(Instant::now());
        let peer = &self.context.peer;
        let mut asked = pin!(peer.create_elicitation_with_timeout(question.params(), Some(rest)));
        let answer = loop {
            tokio::select! {
                biased;
                () = self.mcp.shared.settings.stop.cancelled() => return Ok(()),
                () = self.context.ct.cancelled() => return Ok(()),
                answer = &mut asked => break answer,
                news = following.next() => {
                    // Somebody else may have answered.
                    if news.map_err(problem::error)?.moved {
                        let look = following.look().await.map_err(problem::error)?;
                        let open = Question::open(&look.state, &look.reader, self.abilities);
                        if !open.iter().any(|open| open.key() == question.key()) {
                            return Ok(());
                        }
                    }
                }
            }
        };
        let taken = match answer {
            Ok(answer) => {
                let (door, who) = (&self.mcp.shared, &self.visitor.who);
                questions::take(door, who, self.run, &question.key(), &answer).await?
            }
            // The client cannot ask after all: others may answer.
            Err(_) => false,
        };
        self.put_aside |= !taken;
        Ok(())
    }
}

/// Whether a run goes on only when a person, a client or a clock says so.
fn waits(status: Status) -> bool {
    status.asks() || status == Status::WaitingTime
}

/// An answer to a form, as a client sends it back.
pub(crate) fn elicited(answer: &Value) -> Result<ElicitResult, ErrorData> {
    serde_json::from_value(answer.clone()).map_err(|error| {
        let words = format!("an input response is no answer to a form: {error}");
        ErrorData::invalid_params(words, None)
    })
}
