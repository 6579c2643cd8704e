//! A message, the run that answers, and the tools it asks for on the way.

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
use toolgate_kernel::event::{EndReason, Event as Body, Status, Usage};
use toolgate_kernel::id::{CallId, RunId, SpaceId};
use toolgate_kernel::tool::Placement;

use crate::client::Client;
use crate::desk::{CONCURRENCY_DEFAULT, Desk, Offer, Sign, sign};
use crate::error::Error;
use crate::event::Event;
use crate::resources::RunRequest;
use crate::stream::EventStream;
use crate::tool::{ToolCall, ToolError, ToolResult};
use crate::words::Words;
use crate::work::{Handler, Override, Told, Worked};

/// How often a chat executes tools and goes on, unless said otherwise.
const TOOL_ROUNDS_DEFAULT: u32 = 5;
/// Chunks that may wait for a slow reader; then the gateway waits.
const CHUNKS_WAITING_MAX: usize = 64;

/// What to say, to whom, and how far to go.
#[derive(Clone)]
pub struct ChatRequest {
    request: RunRequest,
    max_tool_rounds: u32,
    first: Option<Override>,
    only: Option<Arc<HashSet<String>>>,
    until_end: bool,
}

impl ChatRequest {
    /// Says this to the default agent, in a space of its own.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            request: RunRequest::new(message),
            max_tool_rounds: TOOL_ROUNDS_DEFAULT,
            first: None,
            only: None,
            until_end: false,
        }
    }

    /// Who answers.
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.request.agent = Some(agent.into());
        self
    }

    /// Where: the conversation goes on there.
    pub fn space(mut self, space: SpaceId) -> Self {
        self.request.space = Some(space);
        self
    }

    /// Whatever to attach; never given to a model.
    pub fn metadata(mut self, metadata: Value) -> Self {
        self.request.metadata = Some(metadata);
        self
    }

    /// In how many steps tools are executed before the stream ends; 5 unless said otherwise, 0 for no limit.
    pub fn max_tool_rounds(mut self, rounds: u32) -> Self {
        self.max_tool_rounds = rounds;
        self
    }

    /// Asked before the client's own tools, and for calls of client tools that are not its own: to confirm, to log,
    /// to execute otherwise. `None` leaves the call to the client's tools; [`ToolCall::execute`] runs them.
    pub fn on_tool_call<F, R>(mut self, run: F) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Result<Value, ToolError>>> + Send + 'static,
    {
        self.first = Some(Arc::new(move |call| Box::pin(run(call))));
        self
    }

    /// Takes calls of these tools and leaves the rest to others. Without it, whoever is asked first
    /// ([`ChatRequest::on_tool_call`]) gets every call of a client tool: each is claimed, and released when nothing
    /// here executes it.
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.only = Some(Arc::new(tools.into_iter().map(Into::into).collect()));
        self
    }

    /// Also follow while the run waits for somebody else: a person who approves, another client.
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

/// What a chat stream yields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Chunk {
    /// The message is stored; this run answers.
    Started {
        /// Which run.
        run: RunId,
        /// Where: give it to the next [`ChatRequest::space`].
        space: SpaceId,
    },
    /// The model says more. Every word comes once, in order, whatever was cut on the way; after a `step-retry` event
    /// the step begins anew.
    Text(String),
    /// Something happened in the run.
    Event(Box<Event>),
    /// A tool begins to run here.
    ToolStart(ToolCall),
    /// It has run; its result is on its way.
    ToolResult(ToolResult),
    /// The result is stored, or somebody else's was.
    ToolEnd {
        /// Which call.
        call: CallId,
        /// Ours counts.
        stored: bool,
    },
    /// Nothing more comes.
    Finished(Reply),
}

/// What a chat came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The run that answered.
    pub run: RunId,
    /// Where.
    pub space: SpaceId,
    /// The text of the last step.
    pub text: String,
    /// Where the run stands.
    pub status: Status,
    /// Why it ended, when it has.
    pub reason: Option<EndReason>,
    /// What went wrong, where the gateway says so.
    pub error: Option<String>,
    /// What it has cost, when it has ended.
    pub usage: Usage,
    /// Why the stream ended before the run.
    pub pause: Option<Pause>,
}

/// Why a chat stream ends before its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The run waits for somebody else: a person, or a client that has the tool.
    Waiting,
    /// [`ChatRequest::max_tool_rounds`] are used up: the calls of the last step stay open.
    ToolRounds,
}

/// A chat as it happens. Dropping it stops the following and the tools; the run goes on at the gateway.
pub struct ChatStream {
    chunks: mpsc::Receiver<Result<Chunk, Error>>,
    _task: AbortOnDropHandle<()>,
}

impl ChatStream {
    pub(crate) fn open(client: Client, request: ChatRequest) -> Self {
        let (out, chunks) = mpsc::channel(CHUNKS_WAITING_MAX);
        let task = tokio::spawn(async move {
            if let Err(error) = run(client, request, &out).await {
                // Who does not listen any more needs not be told.
                let _ = out.send(Err(error)).await;
            }
        });
        Self {
            chunks,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Reads to the end and gives what came of it.
    pub async fn finish(mut self) -> Result<Reply, Error> {
        while let Some(chunk) = self.next().await {
            if let Chunk::Finished(reply) = chunk? {
                return Ok(reply);
            }
        }
        Err(Error::Protocol("the chat ended without an end".into()))
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
    let mut request = chat.request;
    request.client_tools = client.client_tool_definitions();
    let request = client.before_request(request).await?;
    let posted = client.runs().start(&request).await?;
    let run = posted
        .run_id
        .ok_or_else(|| Error::Protocol("nobody answers the message".into()))?;
    let space = posted.space_id;
    say(out, Chunk::Started { run, space }).await;
    let (tell, told) = mpsc::channel(CHUNKS_WAITING_MAX);
    let handler = Handler {
        client: client.clone(),
        first: chat.first,
        only: chat.only,
    };
    let following = Following {
        events: client.runs().subscribe(run, posted.seq),
        desk: Desk::new(handler, tell, CONCURRENCY_DEFAULT),
        told,
        rounds: Rounds::new(chat.max_tool_rounds),
        until_end: chat.until_end,
        pending: BTreeSet::new(),
        words: Words::default(),
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
    say(out, Chunk::Finished(reply)).await;
    Ok(())
}

async fn say(out: &Out, chunk: Chunk) {
    // The task is stopped when nobody listens.
    let _ = out.send(Ok(chunk)).await;
}

/// A run that is followed, and the calls of it that are worked on.
struct Following<'a> {
    events: EventStream,
    desk: Desk,
    told: mpsc::Receiver<Told>,
    rounds: Rounds,
    until_end: bool,
    /// Calls that a client or a person has to move, ours among them.
    pending: BTreeSet<CallId>,
    words: Words,
    reply: Reply,
    out: &'a Out,
}

impl Following<'_> {
    async fn follow(mut self) -> Result<Reply, Error> {
        while self.reply.pause.is_none() {
            tokio::select! {
                biased;
                Some(told) = self.told.recv() => self.pass_on(told).await,
                Some((call, worked)) = self.desk.next(), if self.desk.is_busy() => {
                    let stored = matches!(worked?, Worked::Stored { .. });
                    say(self.out, Chunk::ToolEnd { call, stored }).await;
                }
                event = self.events.next() => match event.transpose()? {
                    Some(event) => self.take(event).await,
                    None => break,
                },
            }
            if self.waits_for_others() {
                self.reply.pause = Some(Pause::Waiting);
            }
        }
        self.wind_up().await?;
        Ok(self.reply)
    }

    async fn take(&mut self, event: Event) {
        self.note(&event);
        let sign = sign(&event);
        if let Some(new) = event.body.as_ref().and_then(|body| self.words.new_in(body)) {
            say(self.out, Chunk::Text(new)).await;
        }
        say(self.out, Chunk::Event(Box::new(event))).await;
        match sign {
            Some(Sign::Settled(call)) => {
                self.pending.remove(&call);
                self.desk.settle(call);
            }
            Some(Sign::Offered(offer)) if self.desk.wants(&offer) => self.begin(offer),
            Some(Sign::Offered(_)) | None => {}
        }
    }

    fn begin(&mut self, offer: Offer) {
        match self.rounds.may_go_on() {
            true => self.desk.take(offer),
            false => self.reply.pause = Some(Pause::ToolRounds),
        }
    }

    /// Keeps what the reply will say.
    fn note(&mut self, event: &Event) {
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

    async fn pass_on(&mut self, told: Told) {
        let chunk = match told {
            Told::Began(call) => Chunk::ToolStart(call),
            Told::Ran(result) => Chunk::ToolResult(result),
        };
        say(self.out, chunk).await;
    }

    /// The status alone would not do: it moves after the event that settles the last call.
    fn waits_for_others(&self) -> bool {
        let waits = matches!(self.reply.status, Status::WaitingTool | Status::WaitingApproval);
        let only_others = self.desk.open() == 0 && !self.pending.is_empty();
        waits && only_others && !self.until_end && self.reply.pause.is_none()
    }

    /// Lets what is under way come to its end: a result that was computed is handed in.
    async fn wind_up(&mut self) -> Result<(), Error> {
        while self.desk.is_busy() {
            tokio::select! {
                biased;
                Some(told) = self.told.recv() => self.pass_on(told).await,
                Some((call, worked)) = self.desk.next() => {
                    let stored = matches!(worked?, Worked::Stored { .. });
                    say(self.out, Chunk::ToolEnd { call, stored }).await;
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
    /// This step is counted.
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

    /// A new step begins.
    fn step(&mut self) {
        self.counted = false;
    }

    /// Whether a call of this step may be executed.
    fn may_go_on(&mut self) -> bool {
        if !self.counted {
            self.counted = true;
            self.count += 1;
        }
        self.max == 0 || self.count <= self.max
    }
}
