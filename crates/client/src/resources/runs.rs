//! Runs.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
pub use toolgate_protocol::event::Usage;
use toolgate_protocol::event::{Claim, Seq, Status};
use toolgate_protocol::id::{ApprovalId, CallId, MessageId, RunId, SpaceId};
use toolgate_protocol::message::Executor;
use toolgate_protocol::time::Time;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;
use crate::resources::questions::OpenQuestion;
use crate::stream::EventStream;
use crate::tool::Definition;

/// A message that starts a run, or goes to the run under way.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// The message's text.
    pub message: String,
    /// The agent that answers; by default the space's agent, or the project's `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The space; by default a new one is created for this run.
    #[serde(skip_serializing_if = "Option::is_none", rename = "spaceId")]
    pub space: Option<SpaceId>,
    /// Client tools that the caller executes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<Definition>,
    /// The client that executes tools for the sender: calls are offered to it for five seconds before anybody else. A
    /// chat names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// Data to attach to the message; never sent to a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Idempotency key: a message with the same id is processed once.
    pub message_id: MessageId,
}

impl RunRequest {
    /// A message for the default agent in a new space.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            agent: None,
            space: None,
            client_tools: Vec::new(),
            executor: None,
            metadata: None,
            message_id: MessageId::new(Uuid::now_v7()),
        }
    }
}

/// The receipt of a stored message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// The message's id.
    pub message_id: MessageId,
    /// The space that it was posted to.
    pub space_id: SpaceId,
    /// The run that answers; `None` if the message starts none.
    pub run_id: Option<RunId>,
    /// A cursor from which all events that the message caused can be read.
    pub seq: Seq,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// The run's id.
    pub id: RunId,
    /// The space of its events.
    pub space_id: SpaceId,
    /// Name of its agent.
    pub agent: String,
    /// Its current status.
    pub status: Status,
    /// When it started.
    pub created_at: Time,
    /// When its last event was stored.
    pub updated_at: Time,
    /// Position of its last event.
    pub seq: Seq,
}

/// A run's current state.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run as in a list.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The calls and approvals that it waits for.
    pub pending: Pending,
    /// Tokens used so far.
    pub usage: Usage,
    /// The model's last text.
    #[serde(default)]
    pub text: Option<String>,
    /// Why the run ended, or why the model's last step ended.
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// The error of a failed run; needs a secret key.
    #[serde(default)]
    pub error: Option<String>,
}

/// The calls, approvals and questions that a run waits for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Pending {
    /// Open calls of client tools.
    pub calls: Vec<OpenCall>,
    /// Open approvals.
    pub approvals: Vec<Asked>,
    /// Open questions of tools.
    #[serde(default)]
    pub questions: Vec<OpenQuestion>,
}

/// An open call of a client tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenCall {
    /// The call's id.
    pub tool_call_id: CallId,
    /// The tool's name.
    pub tool_name: String,
    /// The call's input.
    pub input: Value,
    /// The client that holds the lease, if any.
    #[serde(default)]
    pub claim: Option<Claim>,
}

/// An open approval.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The approval's id, which the decision is sent to.
    pub approval_id: ApprovalId,
    /// The call that waits for it.
    pub tool_call_id: CallId,
    /// The tool's name.
    pub tool_name: String,
    /// The call's input, if the reader may see it.
    #[serde(default)]
    pub input: Option<Value>,
}

/// A filter of runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only runs of this space.
    pub space: Option<SpaceId>,
    /// Only runs in this status.
    pub status: Option<Status>,
    /// Only runs of this agent. This filter and those below need a secret key.
    pub agent: Option<String>,
    /// Only runs that this user has started: an entity's id or subject.
    pub user: Option<String>,
    /// Only runs whose first message has this text near its beginning.
    pub text: Option<String>,
    /// Only runs created at this time or later.
    pub since: Option<Time>,
    /// Only runs created before this time.
    pub until: Option<Time>,
    /// `next_cursor` of the previous page.
    pub before: Option<RunId>,
    /// Most runs per page; the gateway's default if not set.
    pub limit: Option<usize>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPage {
    /// The runs of this page.
    pub runs: Vec<RunSummary>,
    /// The value of `before` for the next page; `None` on the last.
    pub next_cursor: Option<RunId>,
}

/// Starts, reads and cancels runs.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    pub(crate) client: &'a Client,
}

impl Runs<'_> {
    /// Starts a run. Retried while the gateway does not answer; the message id makes sure that it is
    /// processed once.
    pub async fn start(&self, request: &RunRequest) -> Result<Posted, Error> {
        let http = self.client.http();
        http.send(Method::POST, "v1/runs", request, RetryPolicy::Brief)
            .await
    }

    /// A run's current state.
    pub async fn get(&self, run: RunId) -> Result<Run, Error> {
        self.client.http().get(&format!("v1/runs/{run}"), &[]).await
    }

    /// A page of runs.
    pub async fn list(&self, filter: &RunFilter) -> Result<RunPage, Error> {
        let query: Vec<(&str, String)> = [
            ("space", filter.space.map(|space| space.to_string())),
            ("status", filter.status.map(|status| status.as_str().to_owned())),
            ("agent", filter.agent.clone()),
            ("user", filter.user.clone()),
            ("text", filter.text.clone()),
            ("since", filter.since.map(|time| time.to_string())),
            ("until", filter.until.map(|time| time.to_string())),
            ("before", filter.before.map(|run| run.to_string())),
            ("limit", filter.limit.map(|limit| limit.to_string())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        self.client.http().get("v1/runs", &query).await
    }

    /// Cancels a run and its child runs. A run that has ended stays as it is.
    pub async fn cancel(&self, run: RunId) -> Result<(), Error> {
        let path = format!("v1/runs/{run}/cancel");
        self.client
            .http()
            .post(&path, &json!({}), RetryPolicy::Brief)
            .await
    }

    /// The run's events after a cursor, until it ends; from the beginning with `Seq::default()`.
    pub fn subscribe(&self, run: RunId, after: Seq) -> EventStream {
        EventStream::of_run(self.client.http().clone(), run, after)
    }
}
