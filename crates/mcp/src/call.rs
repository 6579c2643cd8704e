//! Calls of a connected server: open ones, and what they come to.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelTaskParams, ClientRequest, DetailedTask,
    GetTaskParams, InputRequests, RequestId, ServerResult, TaskPayload, UpdateTaskParams,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::client::{Asked, Desk, Progress, Told};
use crate::oauth::{Authorizer, Challenge};
use crate::result::ToolResult;

/// Calls tools of a server. Cheap to clone; outlives its connection, and then fails.
#[derive(Clone)]
pub struct Caller {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) desk: Arc<Desk>,
    /// Takes the ids of requests that nobody waits for any more.
    pub(crate) abandoned: mpsc::Sender<RequestId>,
    pub(crate) authorizer: Option<Arc<Authorizer>>,
}

/// A call to make, or to go on with.
#[derive(Debug, Clone, Default)]
pub struct CallRequest {
    /// The server's own name of the tool.
    pub tool: String,
    /// Arguments by the tool's schema; none for a tool without parameters.
    pub arguments: Option<Map<String, Value>>,
    /// Answers to what the server asked when the call was made before, by its keys.
    pub input_responses: Option<Map<String, Value>>,
    /// What the server wants to see again, exactly.
    pub request_state: Option<String>,
    /// Whose call it is, as the caller tells owners apart; what a server asks of one is never shown to another. None for a
    /// caller that says nothing of it.
    pub owner: Option<u128>,
}

/// Why a call gave no result, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server has died, or the connection was closed.
    #[error("the MCP server of this tool is gone")]
    Gone,
    /// The call did not reach the server: nobody listens at its address, or it does not know the session any more.
    #[error("the MCP server of this tool cannot be reached")]
    Unreached,
    /// The tool failed, in the server's words.
    #[error("{0}")]
    Failed(String),
    /// The server wants something first that only a person can give.
    #[error("the MCP server asks for something that only a person can give")]
    InputRequired,
    /// The server goes on by itself and gives a handle to poll.
    #[error("the MCP server made a task of this call, which cannot be waited for")]
    Task,
    /// The response is of a kind that this version does not know.
    #[error("the MCP server gave an answer of an unknown kind")]
    Unknown,
    /// The server wants a person to sign in, or to let it do more.
    #[error("a person must sign in to the MCP server of this tool first")]
    NeedsAuthorization(Challenge),
}

/// What a call came to for now.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It is done.
    Complete(ToolResult),
    /// The server asks first: the call is to be made again with the answers.
    InputRequired(InputRequired),
    /// The server goes on by itself.
    Task(TaskHandle),
}

/// What a server asks before it goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// `{method, params}` by the server's keys. Empty when it only wants to be asked again later.
    pub requests: Vec<(String, Value)>,
    /// To be given back exactly.
    pub request_state: Option<String>,
}

/// A task of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskHandle {
    /// Id of the task.
    pub id: String,
    /// How long the server wants to be left alone, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// What it does now, in words.
    pub message: Option<String>,
}

impl TaskHandle {
    /// A task of which nothing is known but its id.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            poll_interval_ms: None,
            message: None,
        }
    }
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// It goes on.
    Working(TaskHandle),
    /// The server asks first.
    InputRequired(TaskHandle, Vec<(String, Value)>),
    /// It is done.
    Completed(ToolResult),
    /// It failed, in the server's words.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

/// What comes next of an open call.
#[derive(Debug)]
pub enum Step {
    /// It goes on.
    Progress(Progress),
    /// The server asks something, and waits.
    Asked(Asked),
    /// The server asked something, and nobody was asked: several calls are under way, and it did not say which one asks.
    Unasked,
    /// It has ended; nothing comes after it.
    Done(Result<Answer, CallError>),
}

/// A call under way. Dropping it tells the server to stop.
pub struct OpenCall {
    handle: RequestHandle<RoleClient>,
    told: mpsc::Receiver<Told>,
    desk: Arc<Desk>,
    abandoned: mpsc::Sender<RequestId>,
    is_done: bool,
}

impl Caller {
    /// Calls a tool by the server's own name for it. Dropping the future tells the server to stop.
    pub async fn call(&self, tool: &str, arguments: Option<Map<String, Value>>) -> Result<Value, CallError> {
        let request = CallRequest {
            tool: tool.to_owned(),
            arguments,
            ..CallRequest::default()
        };
        let result = self.converse(request, None).await?;
        result.plain().map_err(CallError::Failed)
    }

    /// Starts a call.
    pub async fn open(&self, request: CallRequest) -> Result<OpenCall, CallError> {
        if self.peer.is_transport_closed() {
            return Err(CallError::Gone);
        }
        let owner = request.owner;
        let mut params = CallToolRequestParams::new(request.tool);
        params.arguments = request.arguments;
        params.input_responses = request
            .input_responses
            .map(|responses| responses.into_iter().collect());
        params.request_state = request.request_state;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self
            .peer
            .send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = sent.await.map_err(failed)?;
        Ok(OpenCall {
            told: self
                .desk
                .open(handle.id.clone(), handle.progress_token.clone(), owner),
            handle,
            desk: self.desk.clone(),
            abandoned: self.abandoned.clone(),
            is_done: false,
        })
    }

    /// Asks where a task stands.
    pub async fn task(&self, id: &str) -> Result<TaskState, CallError> {
        let got = self.peer.get_task(GetTaskParams::new(id)).await.map_err(failed)?;
        state(got.task)
    }

    /// Answers what a task asks.
    pub async fn answer_task(&self, id: &str, responses: Map<String, Value>) -> Result<(), CallError> {
        let params = UpdateTaskParams::new(id, responses.into_iter().collect());
        self.peer.update_task(params).await.map_err(failed)
    }

    /// Tells the server that nobody wants a task any more.
    pub async fn cancel_task(&self, id: &str) -> Result<(), CallError> {
        self.peer
            .cancel_task(CancelTaskParams::new(id))
            .await
            .map_err(failed)
    }
}

impl OpenCall {
    /// What comes next. May be dropped and asked again.
    pub async fn next(&mut self) -> Step {
        tokio::select! {
            biased;
            Some(told) = self.told.recv() => match told {
                Told::Progress(progress) => Step::Progress(progress),
                Told::Asked(asked) => Step::Asked(asked),
                Told::Unasked => Step::Unasked,
            },
            response = &mut self.handle.rx => {
                self.is_done = true;
                Step::Done(match response {
                    Ok(response) => response.map_err(failed).and_then(answer),
                    Err(_) => Err(CallError::Gone),
                })
            }
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.desk.close(&self.handle.id, &self.handle.progress_token);
        if !self.is_done {
            // With so many that were given up the server is told of the next ones only.
            let _ = self.abandoned.try_send(self.handle.id.clone());
        }
    }
}

fn answer(response: ServerResult) -> Result<Answer, CallError> {
    match response {
        ServerResult::CallToolResult(done) => Ok(Answer::Complete(done.into())),
        ServerResult::InputRequiredResult(asked) => Ok(Answer::InputRequired(InputRequired {
            requests: requests(asked.input_requests.unwrap_or_default()),
            request_state: asked.request_state,
        })),
        ServerResult::CreateTaskResult(created) => Ok(Answer::Task(handle(created.task))),
        _ => Err(CallError::Unknown),
    }
}

fn state(DetailedTask { task, payload, .. }: DetailedTask) -> Result<TaskState, CallError> {
    Ok(match payload {
        TaskPayload::Working => TaskState::Working(handle(task)),
        TaskPayload::InputRequired { input_requests } => {
            TaskState::InputRequired(handle(task), requests(input_requests))
        }
        TaskPayload::Completed { result } => {
            let result: Result<CallToolResult, _> = serde_json::from_value(Value::Object(result));
            TaskState::Completed(result.map_err(|_| CallError::Unknown)?.into())
        }
        TaskPayload::Failed { error } => {
            let words = error.get("message").and_then(Value::as_str);
            TaskState::Failed(words.unwrap_or("the MCP server says that it failed").to_owned())
        }
        TaskPayload::Cancelled => TaskState::Cancelled,
        _ => return Err(CallError::Unknown),
    })
}

fn handle(task: rmcp::model::Task) -> TaskHandle {
    TaskHandle {
        id: task.task_id,
        poll_interval_ms: task.poll_interval_ms,
        message: task.status_message,
    }
}

fn requests(requests: InputRequests) -> Vec<(String, Value)> {
    let written = |request| serde_json::to_value(request).unwrap_or_default();
    requests
        .into_iter()
        .map(|(key, request)| (key, written(request)))
        .collect()
}

fn failed(error: ServiceError) -> CallError {
    if let Some(challenge) = Challenge::of_request(&error) {
        return CallError::NeedsAuthorization(challenge);
    }
    if let Some(words) = Challenge::unsigned(&error) {
        return CallError::Failed(words);
    }
    match error {
        ServiceError::TransportSend(error) if is_unseen(&error) => CallError::Unreached,
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => CallError::Gone,
        ServiceError::McpError(error) => CallError::Failed(error.message.into_owned()),
        ServiceError::UnexpectedResponse => CallError::Unknown,
        error => CallError::Failed(error.to_string()),
    }
}

/// Whether the server has done nothing of a request that failed like this.
fn is_unseen(error: &DynamicTransportError) -> bool {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::SessionExpired) => true,
        Some(StreamableHttpError::Client(error)) => error.is_connect(),
        _ => false,
    }
}
