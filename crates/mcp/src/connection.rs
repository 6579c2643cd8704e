//! A server that is connected.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
    ServerNotification, SubscriptionFilter,
};
use rmcp::service::{Peer, RoleClient, RunningService, RunningServiceCancellationToken, ServiceError};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::call::Caller;
use crate::client::{Desk, Handler};
use crate::oauth::{Authorizer, Challenge, OAuthError, SIGN_INS_MAX};
use crate::process::ServerProcess;
use crate::server::deepest_cause;

/// How long a server may take to list its tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection may take to close in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most pages of tools that are asked for.
const PAGES_MAX: usize = 50;
/// Most bytes of all pages together.
const LISTING_BYTES_MAX: usize = 4 << 20;
/// Requests that were given up and whose server is still to be told.
const ABANDONED_MAX: usize = 256;

/// A server that is connected. Dropping it ends the connection, and with it a child and everything it started.
pub struct Connection {
    peer: Peer<RoleClient>,
    desk: Arc<Desk>,
    abandoned: mpsc::Sender<rmcp::model::RequestId>,
    authorizer: Option<Arc<Authorizer>>,
    /// Ends the service when dropped. Dropped before the process: a server that ends in order may do so first.
    service: Option<AbortOnDropHandle<()>>,
    stop: Option<RunningServiceCancellationToken>,
    ended: watch::Receiver<bool>,
    /// Tells the server of requests that were given up; hears of changes to its tools.
    _helpers: Vec<AbortOnDropHandle<()>>,
    process: Option<ServerProcess>,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct About {
    /// The protocol revision that was agreed on: `2026-07-28` and later have no handshake.
    pub protocol: String,
    /// Name of the program.
    pub name: Option<String>,
    /// Version of the program.
    pub version: Option<String>,
    /// How its tools are meant to be used.
    pub instructions: Option<String>,
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
    /// What the server claims of the tool's effects. Hints, not to be trusted.
    #[serde(default)]
    pub annotations: Option<Value>,
}

/// Why there is no list of tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ListError {
    reason: String,
    challenge: Option<Challenge>,
}

impl ListError {
    /// What the server wants, if it wants somebody to sign in.
    pub fn needs_authorization(&self) -> Option<&Challenge> {
        self.challenge.as_ref()
    }
}

impl From<String> for ListError {
    fn from(reason: String) -> Self {
        Self {
            reason,
            challenge: None,
        }
    }
}

impl From<ListError> for String {
    fn from(error: ListError) -> Self {
        error.reason
    }
}

impl From<ServiceError> for ListError {
    fn from(error: ServiceError) -> Self {
        Self {
            reason: match &error {
                ServiceError::TransportSend(error) => deepest_cause(&*error.error),
                other => other.to_string(),
            },
            challenge: Challenge::of_request(&error),
        }
    }
}

impl From<OAuthError> for ListError {
    fn from(error: OAuthError) -> Self {
        Self {
            reason: error.to_string(),
            challenge: match error {
                OAuthError::NeedsAuthorization(challenge) => Some(challenge),
                _ => None,
            },
        }
    }
}

impl Connection {
    pub(crate) fn new(
        service: RunningService<RoleClient, Handler>,
        process: Option<ServerProcess>,
        authorizer: Option<Arc<Authorizer>>,
    ) -> Self {
        let peer = service.peer().clone();
        let desk = service.service().desk.clone();
        let stop = service.cancellation_token();
        let (abandoned, requests) = mpsc::channel(ABANDONED_MAX);
        let (end, ended) = watch::channel(false);
        let running = tokio::spawn(async move {
            // Why it ended is of no use: the next call says what matters.
            let _ = service.waiting().await;
            end.send_replace(true);
        });
        let helpers = [
            tokio::spawn(tell_of_abandoned(peer.clone(), requests)),
            tokio::spawn(listen_for_changes(peer.clone(), desk.clone())),
        ];
        Self {
            peer,
            desk,
            abandoned,
            authorizer,
            service: Some(AbortOnDropHandle::new(running)),
            stop: Some(stop),
            ended,
            _helpers: helpers.into_iter().map(AbortOnDropHandle::new).collect(),
            process,
        }
    }

    /// What the server says of itself.
    pub fn about(&self) -> About {
        let Some(info) = self.peer.peer_info() else {
            return About::default();
        };
        About {
            protocol: info.protocol_version.to_string(),
            name: info.server_info.as_ref().map(|server| server.name.clone()),
            version: info.server_info.as_ref().map(|server| server.version.clone()),
            instructions: info.instructions.clone(),
        }
    }

    /// The tools of the server. Each is read by itself, so that a malformed one does not hide the others.
    pub async fn list(&self) -> Result<Vec<Result<Listed, String>>, ListError> {
        let read = |tool: &Value| Listed::deserialize(tool).map_err(|error| error.to_string());
        Ok(self.list_raw().await?.iter().map(read).collect())
    }

    /// The tools of the server as it wrote them.
    pub async fn list_raw(&self) -> Result<Vec<Value>, ListError> {
        self.caller().list_raw().await
    }

    /// Counts the changes of its list of tools.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.desk.changes()
    }

    /// What calls its tools.
    pub fn caller(&self) -> Caller {
        Caller {
            peer: self.peer.clone(),
            desk: self.desk.clone(),
            abandoned: self.abandoned.clone(),
            authorizer: self.authorizer.clone(),
        }
    }

    /// Whether the connection has ended.
    pub fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Ends when the connection does.
    pub async fn ended(&self) {
        // The sender is gone when the service is.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Ends the connection in order: a child is asked to end, and killed if it does not.
    pub async fn close(mut self) -> Result<(), String> {
        if let Some(stop) = self.stop.take() {
            stop.cancel();
        }
        let closed = match self.service.take() {
            Some(service) => tokio::time::timeout(CLOSE_TIMEOUT, service).await,
            None => Ok(Ok(())),
        };
        if let Some(process) = self.process.take() {
            process.end().await;
        }
        match closed {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it did not close within {CLOSE_TIMEOUT:?}")),
        }
    }
}

impl Caller {
    /// The tools of the server as it wrote them.
    pub async fn list_raw(&self) -> Result<Vec<Value>, ListError> {
        let mut sign_ins = 0;
        loop {
            let tools = tokio::time::timeout(LIST_TIMEOUT, pages(&self.peer)).await;
            let late = || Err(format!("no list of tools within {LIST_TIMEOUT:?}").into());
            match (tools.unwrap_or_else(|_| late()), &self.authorizer) {
                (
                    Err(ListError {
                        challenge: Some(challenge),
                        ..
                    }),
                    Some(authorizer),
                ) if sign_ins < SIGN_INS_MAX => {
                    authorizer.satisfy(&challenge).await?;
                    sign_ins += 1;
                }
                (listed, _) => return listed,
            }
        }
    }
}

/// Tells the server of requests that nobody waits for any more.
async fn tell_of_abandoned(peer: Peer<RoleClient>, mut requests: mpsc::Receiver<rmcp::model::RequestId>) {
    while let Some(id) = requests.recv().await {
        let params = CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".into()));
        if peer.notify_cancelled(params).await.is_err() {
            return;
        }
    }
}

/// Subscribes to changes of the tools where that takes a request of its own. Older servers tell by themselves.
async fn listen_for_changes(peer: Peer<RoleClient>, desk: Arc<Desk>) {
    let Some(info) = peer.peer_info() else { return };
    let tools = info.capabilities.tools.as_ref();
    let tells = tools.and_then(|tools| tools.list_changed).unwrap_or(false);
    if !tells || info.protocol_version < ProtocolVersion::V_2026_07_28 {
        return;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let Ok(mut subscription) = peer.listen(filter).await else {
        return;
    };
    while let Ok(Some(told)) = subscription.next().await {
        if matches!(told, ServerNotification::ToolListChangedNotification(_)) {
            desk.tools_changed();
        }
    }
}

/// All tools, as they were written.
async fn pages(peer: &Peer<RoleClient>) -> Result<Vec<Value>, ListError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    let mut bytes = 0;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = peer.send_request(request).await?;
        let page = serde_json::to_string(&page).map_err(|error| error.to_string())?;
        bytes += page.len();
        // Before it is taken apart: what is a byte on the wire may be a hundred in memory.
        if bytes > LISTING_BYTES_MAX {
            return Err(format!("it lists more than {LISTING_BYTES_MAX} bytes of tools").into());
        }
        let mut page: Value = serde_json::from_str(&page).map_err(|error| error.to_string())?;
        match page["tools"].take() {
            Value::Array(more) => tools.extend(more),
            _ => return Err("it lists no tools".to_owned().into()),
        }
        match page["nextCursor"].take() {
            Value::String(next) => cursor = Some(next),
            _ => break,
        }
    }
    Ok(tools)
}
