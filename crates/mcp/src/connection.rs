//! A server that is connected.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientRequest, ListToolsRequest, PaginatedRequestParams,
};
use rmcp::service::{Peer, RoleClient, RunningService};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::result;
use crate::server::ServerProcess;

/// How long a server may take to list its tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server may take to end when it is told to.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most pages of tools that are asked for.
const PAGES_MAX: usize = 50;

/// A server that is connected. Dropping it ends the connection, and with it a child and everything it started.
pub struct Connection {
    service: RunningService<RoleClient, ()>,
    /// Dropped after the service: a server that ends in order may do so first.
    _process: Option<ServerProcess>,
}

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The server's own name for it.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured content.
    #[serde(default)]
    pub output_schema: Option<Value>,
}

/// Calls tools of a server. Cheap to clone; outlives its connection, and then fails.
#[derive(Clone)]
pub struct Caller(Peer<RoleClient>);

/// Why a call gave no result, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server has died, or the connection was closed.
    #[error("the MCP server of this tool is gone")]
    Gone,
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
}

impl Connection {
    pub(crate) fn new(service: RunningService<RoleClient, ()>, process: Option<ServerProcess>) -> Self {
        Self {
            service,
            _process: process,
        }
    }

    /// The tools of the server. Each is read by itself, so that a malformed one does not hide the others.
    pub async fn list(&self) -> Result<Vec<Result<Listed, String>>, String> {
        let tools = tokio::time::timeout(LIST_TIMEOUT, pages(self.service.peer())).await;
        let tools = tools.unwrap_or_else(|_| Err(format!("no list of tools within {LIST_TIMEOUT:?}")))?;
        let read = |tool: &Value| Listed::deserialize(tool).map_err(|error| error.to_string());
        Ok(tools.iter().map(read).collect())
    }

    /// What calls its tools.
    pub fn caller(&self) -> Caller {
        Caller(self.service.peer().clone())
    }

    /// Ends the connection in order: a child is asked to end, and killed if it does not.
    pub async fn close(mut self) -> Result<(), String> {
        let closed = self.service.close_with_timeout(CLOSE_TIMEOUT).await;
        closed.map(drop).map_err(|error| error.to_string())
    }
}

impl Caller {
    /// Calls a tool by the server's own name for it. Dropping the future tells the server to stop.
    pub async fn call(&self, tool: &str, arguments: Option<Map<String, Value>>) -> Result<Value, CallError> {
        if self.0.is_transport_closed() {
            return Err(CallError::Gone);
        }
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments;
        let called = self.0.call_tool_once(params).await;
        match called.map_err(|error| CallError::Failed(error.to_string()))? {
            CallToolResponse::Complete(done) => result::output(done).map_err(CallError::Failed),
            CallToolResponse::InputRequired(_) => Err(CallError::InputRequired),
            CallToolResponse::Task(_) => Err(CallError::Task),
            _ => Err(CallError::Unknown),
        }
    }
}

/// All tools, as they were written.
async fn pages(peer: &Peer<RoleClient>) -> Result<Vec<Value>, String> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = peer
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let mut page = serde_json::to_value(page).map_err(|error| error.to_string())?;
        match page["tools"].take() {
            Value::Array(more) => tools.extend(more),
            _ => return Err("it lists no tools".into()),
        }
        match page["nextCursor"].take() {
            Value::String(next) => cursor = Some(next),
            _ => break,
        }
    }
    Ok(tools)
}
