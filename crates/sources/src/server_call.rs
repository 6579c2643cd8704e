//! One call of a tool of a server, from its turn to its outcome.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_egress::Secrets;
use toolgate_engine::tools::{CallContext, CallFailure, Called, Delegation};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Answer as Said, Ask, Question};
use toolgate_kernel::time::Time;
use toolgate_mcp::{Answer, CallError, CallRequest, Progress, Step, ToolResult};

use crate::asked::{self, Sorted, Task};
use crate::live::{AskingCall, Stand};
use crate::oauth::Identity;
use crate::outcome::{self, Promise};
use crate::progress_pace::ProgressPace;
use crate::rounds::Round;
use crate::sampling::ServerSampling;
use crate::servers::Inner;
use crate::snapshot::{Configured, PinnedTool};
use crate::supervisor::{Handle, Lease, Patience};

/// How long a server that only wants to be asked again is left alone, times the number of rounds.
const AGAIN: Duration = Duration::from_secs(2);
/// Longest time that it is left alone.
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// How often a call is made again for a server that wants more each time.
pub(crate) const ROUNDS_MAX: u32 = 50;
/// How often a server may have a model asked during one request, refusals included.
pub(crate) const SAMPLINGS_MAX: u32 = 64;
/// How often a call that waits for a person on this node is looked at.
const LIVE_CHECK: Duration = Duration::from_secs(60);
/// What the model is told of a question that reached nobody.
const UNASKED: &str = "The MCP server asked a question during this call or another one, and it was cancelled: several calls \
    were under way, and the server does not say which of them asks. Make the call again while no other is under way; \
    \"calls\": 1 in the server's configuration makes sure of that.";

/// A call of one tool.
pub(crate) struct ServerCall<'a> {
    pub inner: &'a Arc<Inner>,
    pub configured: &'a Configured,
    pub pinned: &'a PinnedTool,
    pub promise: Promise,
    /// What the server was given, and may repeat to people and models.
    pub secrets: &'a Secrets,
    pub context: &'a CallContext,
}

/// What one request to the server came to.
enum Once {
    Answered(Answer),
    /// It asks people, and its request stays open.
    Waits(Called),
}

impl ServerCall<'_> {
    /// Makes the call.
    pub async fn begin(&self, input: &Json) -> Result<Called, CallFailure> {
        let came = self.call(self.request(input), 0, None).await;
        self.hidden(came)
    }

    /// Goes on with a call that was delegated.
    pub async fn resume(&self, input: &Json, task: &str, answers: &[Said]) -> Result<Called, CallFailure> {
        let read = Task::read(task);
        let read = read.ok_or_else(|| CallFailure::failed("the task of this call cannot be read"))?;
        let came = match read {
            Task::Live { round, .. } => self.go_on_live(round, answers).await,
            Task::Again { state, given, round } => {
                let stored = Round { state, given, round };
                self.again(input, task, stored, answers).await
            }
            Task::Poll { id, given } => self.poll(&id, given, answers).await,
        };
        if !matches!(came, Ok(Called::Delegated(_))) {
            self.inner.rounds.forget(self.context.call);
        }
        self.hidden(came)
    }

    /// What came of it, without the secrets that the server was given.
    fn hidden(&self, came: Result<Called, CallFailure>) -> Result<Called, CallFailure> {
        let hide = |words: &str| self.secrets.hide(words);
        match came {
            Ok(Called::Delegated(mut delegation)) => {
                for question in &mut delegation.questions {
                    question.message = hide(&question.message);
                    question.ask = match &question.ask {
                        Ask::Form { schema } => Ask::Form {
                            schema: self.secrets.hide_in(schema.to_value()).into(),
                        },
                        Ask::Url { url } => Ask::Url { url: hide(url) },
                    };
                }
                Ok(Called::Delegated(delegation))
            }
            Ok(output) => Ok(output),
            Err(failure) => Err(CallFailure::new(failure.code, hide(&failure.message))),
        }
    }

    fn request(&self, input: &Json) -> CallRequest {
        CallRequest {
            tool: self.pinned.tool.clone(),
            arguments: match input.to_value() {
                Value::Object(arguments) => Some(arguments),
                _ => None,
            },
            // Members of a space may see what is asked in it.
            owner: Some(u128::from_be_bytes(self.context.space.to_bytes())),
            ..CallRequest::default()
        }
    }

    /// Makes the call again for a server that wanted something first.
    async fn again(
        &self,
        input: &Json,
        task: &str,
        stored: Round,
        answers: &[Said],
    ) -> Result<Called, CallFailure> {
        let rounds = &self.inner.rounds;
        let Round { state, given, round } = rounds.newest(self.context.call).unwrap_or(stored);
        let mut responses = asked::responses(answers);
        responses.extend(given);
        let request = CallRequest {
            input_responses: Some(responses).filter(|responses| !responses.is_empty()),
            request_state: state,
            ..self.request(input)
        };
        // A look gives the same task; once people have answered it may be another one.
        let looked_at = answers.is_empty().then_some(task);
        if looked_at.is_none() {
            rounds.forget(self.context.call);
        }
        self.call(request, round, looked_at).await
    }

    /// Makes the call, and makes it again while the server only wants what needs no person. `looked_at` is the task that
    /// the engine looks at, and that has to stay what it is.
    async fn call(
        &self,
        mut request: CallRequest,
        mut round: u32,
        looked_at: Option<&str>,
    ) -> Result<Called, CallFailure> {
        loop {
            let asks = match self.once(request.clone()).await? {
                Once::Waits(called) => return Ok(called),
                Once::Answered(Answer::Complete(result)) => return self.complete(result).await,
                Once::Answered(Answer::Task(task)) => return Ok(self.polls(&task, Map::new(), Vec::new())),
                Once::Answered(Answer::InputRequired(asks)) => asks,
            };
            round += 1;
            if round > ROUNDS_MAX {
                return Err(CallFailure::failed(asks_without_end(ROUNDS_MAX)));
            }
            let (questions, given) = self.answered(asks.requests).await?;
            let state = asks.request_state;
            if !questions.is_empty() || given.is_empty() {
                let round = Round { state, given, round };
                return Ok(self.waits(round, questions, looked_at));
            }
            request.input_responses = Some(given);
            request.request_state = state;
        }
    }

    /// Sends one request, and passes on what the server tells and asks meanwhile.
    async fn once(&self, request: CallRequest) -> Result<Once, CallFailure> {
        let handle = self.handle();
        let bytes = request
            .arguments
            .as_ref()
            .map_or(0, |arguments| json!(arguments).to_string().len());
        let turn = handle.turns.turn(self.context.share(), bytes).await;
        let _turn = turn.map_err(|_| self.busy())?;
        let lease = self.lease(&handle).await?;
        let open = lease.caller.open(request).await;
        let mut open = open.map_err(|error| self.not_begun(error))?;
        let (mut is_unasked, mut samplings) = (false, 0);
        let mut pace = ProgressPace::new();
        loop {
            let step = tokio::select! {
                biased;
                step = open.next() => step,
                progress = pace.due() => {
                    self.tell(progress);
                    continue;
                }
            };
            if !matches!(step, Step::Progress(_))
                && let Some(held) = pace.rest()
            {
                self.tell(held);
            }
            match step {
                Step::Progress(progress) => {
                    if let Some(progress) = pace.heard(progress) {
                        self.tell(progress);
                    }
                }
                Step::Unasked => is_unasked = true,
                Step::Asked(asked) if asked.is_sampling() => {
                    samplings += 1;
                    if samplings > SAMPLINGS_MAX {
                        return Err(CallFailure::failed(asks_without_end(SAMPLINGS_MAX)));
                    }
                    let sampled = self.sampling().sample(&asked.params).await;
                    asked.respond(sampled);
                }
                Step::Asked(asked) => {
                    let question = self.question(key(0), asked.params.clone())?;
                    let asking = AskingCall {
                        call: open,
                        asked,
                        lease,
                        sampling: self.sampling(),
                    };
                    let (call, share) = (self.context.call, self.context.share());
                    if !self.inner.live.keep(call, share, asking) {
                        return Err(self.busy());
                    }
                    return Ok(Once::Waits(self.waits_live(0, Some(question))));
                }
                Step::Done(done) => {
                    let mut answer = done.map_err(|error| self.broken(error))?;
                    if let Answer::Complete(result) = &mut answer
                        && is_unasked
                    {
                        result.content.push(json!({"type": "text", "text": UNASKED}));
                    }
                    return Ok(Once::Answered(answer));
                }
            }
        }
    }

    fn tell(&self, progress: Progress) {
        (self.context.progress)(self.secrets.hide_in(told(progress)).into());
    }

    pub async fn complete(&self, result: ToolResult) -> Result<Called, CallFailure> {
        if result.is_error {
            return Err(CallFailure::failed(result.failure()));
        }
        let output = outcome::output(result, self.promise, &self.inner.workspace, self.context).await;
        // A server was given secrets and may repeat them.
        Ok(Called::Output(self.secrets.hide_in(output).into()))
    }

    /// What people are asked, and the answers to what needs nobody.
    pub async fn answered(
        &self,
        requests: Vec<(String, Value)>,
    ) -> Result<(Vec<Question>, Map<String, Value>), CallFailure> {
        let sorted = asked::sorted(requests).map_err(CallFailure::failed)?;
        let Sorted {
            mut questions,
            mut given,
            sampling,
        } = sorted;
        for (key, params) in sampling {
            let sampled = self.sampling().sample(&params).await;
            given.insert(key, sampled.map_err(CallFailure::failed)?);
        }
        for question in &mut questions {
            question.timeout = self.configured.config.question_timeout;
        }
        Ok((questions, given))
    }

    /// The call waits until people have answered, or until it is time to make it again.
    fn waits(&self, next: Round, questions: Vec<Question>, looked_at: Option<&str>) -> Called {
        let pause = (AGAIN * next.round).min(AGAIN_MAX);
        let task = match looked_at {
            Some(task) => {
                self.inner.rounds.remember(self.context.call, next);
                task.into()
            }
            None => {
                let Round { state, given, round } = next;
                Task::Again { state, given, round }.text()
            }
        };
        Called::Delegated(Delegation {
            task,
            check_at: questions.is_empty().then(|| self.now().after(pause)),
            questions,
        })
    }

    async fn go_on_live(&self, round: u32, answers: &[Said]) -> Result<Called, CallFailure> {
        let Some(live) = self.inner.live.get(self.context.call) else {
            return Err(CallFailure::new(
                ErrorCode::Interrupted,
                "the gateway was restarted while the MCP server waited for an answer: what it had done by then is unknown",
            ));
        };
        let stand = match answers.iter().find(|answer| answer.key == key(round)) {
            Some(answer) => {
                live.answer(round, asked::response(answer)).await;
                live.beyond(round).await
            }
            None => live.now(),
        };
        match stand {
            Stand::Asks { round: at, params } if at > round => {
                let question = self.question(key(at), params)?;
                Ok(self.waits_live(at, Some(question)))
            }
            Stand::Asks { .. } | Stand::Working => Ok(self.waits_live(round, None)),
            Stand::Ended(done) => {
                // What it gave is stored from here on.
                self.inner.live.end(self.context.call);
                match done.map_err(|error| self.broken(error))? {
                    Answer::Complete(result) => self.complete(result).await,
                    Answer::Task(task) => Ok(self.polls(&task, Map::new(), Vec::new())),
                    Answer::InputRequired(_) => Err(CallFailure::failed(
                        "the MCP server speaks two revisions of the protocol at once",
                    )),
                }
            }
        }
    }

    fn waits_live(&self, round: u32, question: Option<Question>) -> Called {
        Called::Delegated(Delegation {
            task: Task::Live {
                call: self.context.call,
                round,
            }
            .text(),
            check_at: Some(self.now().after(LIVE_CHECK)),
            questions: question.into_iter().collect(),
        })
    }

    fn question(&self, key: String, params: Value) -> Result<Question, CallFailure> {
        let question = asked::question(key, params).map_err(CallFailure::failed)?;
        Ok(Question {
            timeout: self.configured.config.question_timeout,
            ..question
        })
    }

    fn sampling(&self) -> ServerSampling {
        ServerSampling {
            server: self.configured.name.clone(),
            is_permitted: self.configured.config.sampling,
            model: self.context.sampling.clone(),
        }
    }

    pub fn handle(&self) -> Handle {
        let (project, key) = (self.context.project, &self.pinned.server);
        self.inner.pool.handle(self.inner, project, key, self.configured)
    }

    async fn lease(&self, handle: &Handle) -> Result<Lease, CallFailure> {
        handle.lease(Patience::Wait).await.map_err(|reason| {
            CallFailure::unavailable(format!(
                "the MCP server {:?} of this tool is not available, and the call was not made: {reason}",
                self.configured.name
            ))
        })
    }

    pub fn now(&self) -> Time {
        self.inner.clock.now()
    }

    fn busy(&self) -> CallFailure {
        CallFailure::new(
            ErrorCode::LimitExceeded,
            format!(
                "too many calls of the MCP server {:?} wait already, and the call was not made; try again in a moment",
                self.configured.name
            ),
        )
    }

    fn not_begun(&self, error: CallError) -> CallFailure {
        match error {
            CallError::Gone | CallError::Unreached => CallFailure::unavailable(format!(
                "the MCP server {:?} of this tool has just ended, and the call was not made; it is started again",
                self.configured.name
            )),
            CallError::NeedsAuthorization(_) => self.unsigned(),
            error => CallFailure::failed(error.to_string()),
        }
    }

    /// The server has refused the gateway's token, so it has done nothing.
    fn unsigned(&self) -> CallFailure {
        let identity = Identity {
            project: self.context.project,
            server: self.pinned.server.clone(),
        };
        self.inner.noted(&identity, true);
        CallFailure::unavailable(format!(
            "a person must sign in to the MCP server {:?} of this tool first; the call was not made",
            self.configured.name
        ))
    }

    pub fn broken(&self, error: CallError) -> CallFailure {
        match error {
            CallError::Gone => CallFailure::new(
                ErrorCode::Interrupted,
                format!(
                    "the MCP server {:?} ended while the call ran: what it had done by then is unknown",
                    self.configured.name
                ),
            ),
            CallError::Unreached => self.not_begun(error),
            CallError::NeedsAuthorization(_) => self.unsigned(),
            error => CallFailure::failed(error.to_string()),
        }
    }
}

/// Why a call is given up whose server asked this often.
pub(crate) fn asks_without_end(times: u32) -> String {
    format!("the MCP server asked for more {times} times, and the call was given up")
}

/// The name of a question of a live call.
fn key(round: u32) -> String {
    format!("ask-{round}")
}

fn told(progress: Progress) -> Value {
    let mut told = json!({ "progress": progress.progress });
    if let Some(total) = progress.total {
        told["total"] = total.into();
    }
    if let Some(message) = progress.message {
        told["status"] = message.into();
    }
    told
}
