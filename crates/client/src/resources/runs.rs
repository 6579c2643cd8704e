//! Runs.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
pub use toolgate_kernel::event::Usage;
use toolgate_kernel::event::{Claim, Seq, Status};
use toolgate_kernel::id::{ApprovalId, CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::http::Patience;
use crate::stream::EventStream;
use crate::tool::Definition;

/// A message that starts a run, or goes to the one under way.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// The words.
    pub message: String,
    /// Who answers; otherwise the space's agent, or the project's `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where; otherwise in a space that is made for this run.
    #[serde(skip_serializing_if = "Option::is_none", rename = "spaceId")]
    pub space: Option<SpaceId>,
    /// Tools that the caller executes itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<Definition>,
    /// Whatever the sender attaches; never given to a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The same id again is the same message: sent twice, it is said once.
    pub message_id: MessageId,
}

impl RunRequest {
    /// A message for the default agent in a space of its own.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            agent: None,
            space: None,
            client_tools: Vec::new(),
            metadata: None,
            message_id: MessageId::new(Uuid::now_v7()),
        }
    }
}

/// A message is stored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// Which message.
    pub message_id: MessageId,
    /// Where.
    pub space_id: SpaceId,
    /// The run that answers; none when nobody does.
    pub run_id: Option<RunId>,
    /// A cursor from which everything that the message caused is seen.
    pub seq: Seq,
}

/// A run's row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// Which.
    pub id: RunId,
    /// Where its events stand.
    pub space_id: SpaceId,
    /// Whose configuration it follows.
    pub agent: String,
    /// Where it stands.
    pub status: Status,
    /// When it began.
    pub created_at: Time,
    /// When it last moved.
    pub updated_at: Time,
    /// Place of its last event.
    pub seq: Seq,
}

/// A run as it stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its row.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// What it waits for.
    pub pending: Pending,
    /// What it has cost.
    pub usage: Usage,
    /// The last words of the model.
    #[serde(default)]
    pub text: Option<String>,
    /// Why the run ended, or why the model stopped last.
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// What went wrong; for backends only.
    #[serde(default)]
    pub error: Option<String>,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Pending {
    /// Client calls that are open.
    pub calls: Vec<OpenCall>,
    /// Questions that nobody has answered.
    pub approvals: Vec<Asked>,
}

/// A client call that is open.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenCall {
    /// Which.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// What to run it with.
    pub input: Value,
    /// Who holds it.
    #[serde(default)]
    pub claim: Option<Claim>,
}

/// A question that nobody has answered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Where to send the decision.
    pub approval_id: ApprovalId,
    /// Which call.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// Exactly what will run, where the reader may see it.
    #[serde(default)]
    pub input: Option<Value>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// In this space only.
    pub space: Option<SpaceId>,
    /// In this status only.
    pub status: Option<Status>,
    /// `next_cursor` of the page before.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// What to give as `before` for the next page; none on the last.
    pub next_cursor: Option<RunId>,
}

/// Starts, reads and stops runs.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    pub(crate) client: &'a Client,
}

impl Runs<'_> {
    /// Starts one. Sent again by itself when the gateway does not answer; it is said once all the same.
    pub async fn start(&self, request: &RunRequest) -> Result<Posted, Error> {
        let http = self.client.http();
        http.send(Method::POST, "v1/runs", request, Patience::Brief).await
    }

    /// How one stands.
    pub async fn get(&self, run: RunId) -> Result<Run, Error> {
        self.client.http().get(&format!("v1/runs/{run}"), &[]).await
    }

    /// A page of them.
    pub async fn list(&self, filter: &RunFilter) -> Result<RunPage, Error> {
        let query: Vec<(&str, String)> = [
            ("space", filter.space.map(|space| space.to_string())),
            ("status", filter.status.map(|status| status.as_str().to_owned())),
            ("before", filter.before.map(|run| run.to_string())),
            ("limit", filter.limit.map(|limit| limit.to_string())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        self.client.http().get("v1/runs", &query).await
    }

    /// Stops one, and everything below it. One that has ended stays as it is.
    pub async fn cancel(&self, run: RunId) -> Result<(), Error> {
        let path = format!("v1/runs/{run}/cancel");
        self.client.http().tell(&path, &json!({}), Patience::Brief).await
    }

    /// Its events after a place, until it ends; from the beginning with `Seq::default()`.
    pub fn subscribe(&self, run: RunId, after: Seq) -> EventStream {
        EventStream::of_run(self.client.http().clone(), run, after)
    }
}
