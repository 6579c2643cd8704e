//! The chat loop: posts a message, follows its run, and executes the calls of client tools.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use toolgate_protocol::event::{EndReason, Event as Body, Status, Usage};
use toolgate_protocol::id::{CallId, RunId, SpaceId};
use toolgate_protocol::tool::Placement;

use crate::call_executor::{CONCURRENCY_DEFAULT, CallExecutor, CallUpdate, Offer, call_update};
use crate::client::Client;
use crate::error::Error;
use crate::event::Event;
use crate::resources::RunRequest;
use crate::stream::{Connection, EventStream};
use crate::streamed_text::{StreamedText, TextUpdate};
use crate::tool::{ToolCall, ToolError, ToolResult};
use crate::work::{Handler, Override, WorkEvent, WorkOutcome};

/// Default of [`ChatRequest::max_tool_rounds`].
const TOOL_ROUNDS_DEFAULT: u32 = 5;
/// Chunks buffered for a slow reader; then reading from the gateway pauses (backpressure).
const CHUNKS_WAITING_MAX: usize = 64;

/// A message, the agent and space it goes to, and how long to follow the run.
#[derive(Clone)]
pub struct ChatRequest {
    request: RunRequest,
    max_tool_rounds: u32,
    first: Option<Override>,
    only: Option<Arc<HashSet<String>>>,
    until_end: bool,
}

impl ChatRequest {
    /// A message for the default agent, in a new space.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            request: RunRequest::new(message),
            max_tool_rounds: TOOL_ROUNDS_DEFAULT,
            first: None,
            only: None,
            until_end: false,
        }
    }

    /// The agent that answers; the default agent if not set.
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.request.agent = Some(agent.into());
        self
    }

    /// The space whose conversation the message continues; a new space if not set.
    pub fn space(mut self, space: SpaceId) -> Self {
        self.request.space = Some(space);
        self
    }

    /// Data to attach to the message; never sent to a model.
    pub fn metadata(mut self, metadata: Value) -> Self {
        self.request.metadata = Some(metadata);
        self
    }

    /// The number of steps in which client tools are executed before the stream ends; 5 by default, 0 for no
    /// limit.
    pub fn max_tool_rounds(mut self, rounds: u32) -> Self {
        self.max_tool_rounds = rounds;
        self
    }

    /// Called before this client's own tools, and for calls of client tools that are not its own: to confirm,
    /// to log, or to execute the call. `None` leaves the call to the client's tools; [`ToolCall::execute`]
    /// runs them.
    pub fn on_tool_call<F, R>(mut self, run: F) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Result<Value, ToolError>>> + Send + 'static,
    {
        self.first = Some(Arc::new(move |call| Box::pin(run(call))));
        self
    }

    /// Offers only these of the client's tools to the model, executes only their calls, and leaves those of other client
    /// tools to other clients. Without it, [`ChatRequest::on_tool_call`] gets every call of a client tool: each is claimed first, and released if
    /// nothing on this client executes it.
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.only = Some(Arc::new(tools.into_iter().map(Into::into).collect()));
        self
    }

    /// Keeps following while the run waits for others: for an approval, or for another client.
    pub fn until_end(mut self) -> Self {
        self.until_end = true;
        self
    }
}

impl<T: Into<String>> From<T> for ChatRequest {
    fn from(message: T) -> Self {
        Self::new(message)
    }
}

impl fmt::Debug for ChatRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ChatRequest")
            .field("request", &self.request)
            .field("max_tool_rounds", &self.max_tool_rounds)
            .field("until_end", &self.until_end)
            .finish_non_exhaustive()
    }
}

/// An item of a chat stream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Chunk {
    /// The message is stored, and its run has started.
    Started {
        /// The run that answers.
        run: RunId,
        /// The space of the run, for the next [`ChatRequest::space`].
        space: SpaceId,
    },
    /// New text of the model. All text arrives exactly once and in order, over any reconnect, unless
    /// [`Chunk::TextRestarted`] says otherwise.
    Text(String),
    /// The model is asked once more, because its reply broke off or the gateway was restarted: the text of this
    /// step so far is void, and the step's text starts over.
    TextRestarted,
    /// The gateway does not answer any more, or again. The chat waits for it and continues.
    Connection(Connection),
    /// An event of the run.
    Event(Box<Event>),
    /// A tool starts to execute on this client.
    ToolStart(ToolCall),
    /// A tool has been executed; its result is being sent.
    ToolResult(ToolResult),
    /// The gateway has stored a result for the call.
    ToolEnd {
        /// Id of the tool call.
        call: CallId,
        /// Whether it is this client's result; otherwise another one won.
        stored: bool,
    },
    /// The stream has ended.
    Finished(Reply),
}

/// The result of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The run that answered.
    pub run: RunId,
    /// The space of the run.
    pub space: SpaceId,
    /// The text of the last step.
    pub text: String,
    /// The run's status when the stream ended.
    pub status: Status,
    /// Why the run ended, if it has.
    pub reason: Option<EndReason>,
    /// The error, if the run failed and the gateway shows it.
    pub error: Option<String>,
    /// Tokens used, known when the run has ended.
    pub usage: Usage,
    /// Why the stream ended before the run.
    pub pause: Option<Pause>,
}

/// Why a chat stream ends before its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The run waits for others: for an approval, or for a client that has the tool.
    Waiting,
    /// [`ChatRequest::max_tool_rounds`] is reached: the calls of the last step stay open.
    ToolRounds,
}

/// A chat as it happens. Dropping it cancels the local tools, releases their calls to other clients and stops
/// following; the run continues at the gateway.
pub struct ChatStream {
    chunks: mpsc::Receiver<Result<Chunk, Error>>,
    _task: AbortOnDropHandle<()>,
}

impl ChatStream {
    pub(crate) fn open(client: Client, request: ChatRequest) -> Self {
        let (out, chunks) = mpsc::channel(CHUNKS_WAITING_MAX);
        let task = tokio::spawn(async move {
            if let Err(error) = run(client, request, &out).await {
                // An error means that the stream was dropped.
                let _ = out.send(Err(error)).await;
            }
        });
        Self {
            chunks,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Reads to the end and returns the result.
    pub async fn finish(mut self) -> Result<Reply, Error> {
        while let Some(chunk) = self.next().await {
            if let Chunk::Finished(reply) = chunk? {
                return Ok(reply);
            }
        }
        Err(Error::Protocol(
            "the chat stream ended without a Finished chunk".into(),
        ))
    }
}

impl Stream for ChatStream {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_recv(cx)
    }
}

type Out = mpsc::Sender<Result<Chunk, Error>>;

async fn run(client: Client, chat: ChatRequest, out: &Out) -> Result<(), Error> {
    let handler = Handler {
        client: client.clone(),
        first: chat.first,
        only: chat.only,
    };
    let mut request = chat.request;
    request.client_tools = client.client_tool_definitions();
    if let Some(only) = &handler.only {
        request.client_tools.retain(|tool| only.contains(&tool.name));
    }
    request.executor = handler.executor();
    let request = client.before_request(request).await?;
    let posted = client.runs().start(&request).await?;
    let run = posted
        .run_id
        .ok_or_else(|| Error::Protocol("the gateway started no run for the message".into()))?;
    let space = posted.space_id;
    send_chunk(out, Chunk::Started { run, space }).await;
    let (sender, work_events) = mpsc::channel(CHUNKS_WAITING_MAX);
    let following = Following {
        events: client.runs().subscribe(run, posted.seq),
        executor: CallExecutor::new(handler, sender, CONCURRENCY_DEFAULT),
        work_events,
        rounds: Rounds::new(chat.max_tool_rounds),
        until_end: chat.until_end,
        pending: BTreeSet::new(),
        text: StreamedText::default(),
        reply: Reply {
            run,
            space,
            text: String::new(),
            status: Status::Running,
            reason: None,
            error: None,
            usage: Usage::default(),
            pause: None,
        },
        out,
    };
    let reply = following.follow().await?;
    client.after_response(&reply).await;
    send_chunk(out, Chunk::Finished(reply)).await;
    Ok(())
}

async fn send_chunk(out: &Out, chunk: Chunk) {
    // An error means that the stream was dropped, which also stops this task.
    let _ = out.send(Ok(chunk)).await;
}

/// A run that is followed, and its calls that are being executed.
struct Following<'a> {
    events: EventStream,
    executor: CallExecutor,
    work_events: mpsc::Receiver<WorkEvent>,
    rounds: Rounds,
    until_end: bool,
    /// Open calls that wait for a client or an approval, this client's included.
    pending: BTreeSet<CallId>,
    text: StreamedText,
    reply: Reply,
    out: &'a Out,
}

impl Following<'_> {
    async fn follow(mut self) -> Result<Reply, Error> {
        let mut connection = self.events.connection();
        let mut was_lost = false;
        while self.reply.pause.is_none() {
            tokio::select! {
                biased;
                Some(work_event) = self.work_events.recv() => self.pass_on(work_event).await,
                Some((call, worked)) = self.executor.next(), if self.executor.is_busy() => {
                    let stored = matches!(worked?, WorkOutcome::Stored { .. });
                    send_chunk(self.out, Chunk::ToolEnd { call, stored }).await;
                }
                Ok(()) = connection.changed() => {
                    let now = connection.borrow_and_update().clone();
                    // That the first connection stands goes without saying.
                    if let Some(now) = now.filter(|now| was_lost || *now != Connection::Up) {
                        was_lost = now != Connection::Up;
                        send_chunk(self.out, Chunk::Connection(now)).await;
                    }
                }
                event = self.events.next() => match event.transpose()? {
                    Some(event) => self.handle_event(event).await,
                    None => break,
                },
            }
            if self.waits_for_others() {
                self.reply.pause = Some(Pause::Waiting);
            }
        }
        self.finish_running_calls().await?;
        Ok(self.reply)
    }

    async fn handle_event(&mut self, event: Event) {
        self.update_reply(&event);
        let update = call_update(&event);
        match event.body.as_ref().and_then(|body| self.text.update(body)) {
            Some(TextUpdate::New(new)) => send_chunk(self.out, Chunk::Text(new)).await,
            Some(TextUpdate::Restarted) => send_chunk(self.out, Chunk::TextRestarted).await,
            None => {}
        }
        send_chunk(self.out, Chunk::Event(Box::new(event))).await;
        match update {
            Some(CallUpdate::Settled(call)) => {
                self.pending.remove(&call);
                self.executor.end_call(call);
            }
            Some(CallUpdate::Offered(offer)) if self.executor.wants(&offer) => self.begin(offer),
            Some(CallUpdate::Offered(_)) | None => {}
        }
    }

    fn begin(&mut self, offer: Offer) {
        match self.rounds.may_go_on() {
            true => self.executor.start(offer),
            false => self.reply.pause = Some(Pause::ToolRounds),
        }
    }

    /// Updates what the final [`Reply`] contains.
    fn update_reply(&mut self, event: &Event) {
        match &event.body {
            Some(Body::StepStart(_)) => {
                self.rounds.step();
                self.reply.text.clear();
            }
            Some(Body::StepRetry(_)) => self.reply.text.clear(),
            Some(Body::TextEnd(part)) => self.reply.text.push_str(&part.text),
            Some(Body::ToolInputAvailable(call)) if call.placement == Placement::Client => {
                self.pending.insert(call.tool_call_id);
            }
            Some(Body::ToolApprovalRequest(asked)) => drop(self.pending.insert(asked.tool_call_id)),
            Some(Body::ToolApprovalResponse(said)) if said.placement != Placement::Client => {
                self.pending.remove(&said.tool_call_id);
            }
            Some(Body::ToolQuestion(asked)) => drop(self.pending.insert(asked.tool_call_id)),
            Some(Body::RunStatus(moved)) => self.reply.status = moved.status,
            Some(Body::RunFinish(end)) => {
                self.reply.status = end.status;
                self.reply.reason = Some(end.reason);
                self.reply.usage = end.usage;
                self.reply.error.clone_from(&end.error);
            }
            _ => {}
        }
    }

    async fn pass_on(&mut self, work_event: WorkEvent) {
        let chunk = match work_event {
            WorkEvent::Began(call) => Chunk::ToolStart(call),
            WorkEvent::Ran(result) => Chunk::ToolResult(result),
        };
        send_chunk(self.out, chunk).await;
    }

    /// Whether the run waits for others. The status alone would not do: it changes after the event that ends
    /// the last call.
    fn waits_for_others(&self) -> bool {
        let waits = matches!(self.reply.status, Status::WaitingTool | Status::WaitingApproval);
        let only_others = self.executor.open() == 0 && !self.pending.is_empty();
        waits && only_others && !self.until_end && self.reply.pause.is_none()
    }

    /// Lets running tools finish and submits their results.
    async fn finish_running_calls(&mut self) -> Result<(), Error> {
        while self.executor.is_busy() {
            tokio::select! {
                biased;
                Some(work_event) = self.work_events.recv() => self.pass_on(work_event).await,
                Some((call, worked)) = self.executor.next() => {
                    let stored = matches!(worked?, WorkOutcome::Stored { .. });
                    send_chunk(self.out, Chunk::ToolEnd { call, stored }).await;
                }
            }
        }
        Ok(())
    }
}

/// Counts the steps in which tools were executed.
#[derive(Debug)]
struct Rounds {
    max: u32,
    count: u32,
    /// Whether the current step is counted.
    counted: bool,
}

impl Rounds {
    fn new(max: u32) -> Self {
        Self {
            max,
            count: 0,
            counted: false,
        }
    }

    /// Begins a step.
    fn step(&mut self) {
        self.counted = false;
    }

    /// Counts the current step, and returns whether its calls may be executed.
    fn may_go_on(&mut self) -> bool {
        if !self.counted {
            self.counted = true;
            self.count += 1;
        }
        self.max == 0 || self.count <= self.max
    }
}
