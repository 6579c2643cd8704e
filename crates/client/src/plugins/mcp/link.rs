//! The connection to a server while there is one, and its tools.

use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, watch};
use tokio_util::task::AbortOnDropHandle;
use toolgate_kernel::tool::ClientToolLimits;
use toolgate_mcp::{
    CallError, CallRequest, Caller, Catalog, CatalogTool, Connection, McpError, Profile, ToolResult,
};
use toolgate_protocol::call::ErrorCode;

use super::McpServer;
use crate::client::WeakClient;
use crate::tool::{Definition, Tool, ToolCall, ToolError};

/// First pause before a server that could not be started is started again; doubled each time.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How often a call is made at most: once more when it did not reach the server.
const CALL_ATTEMPTS: u32 = 2;

/// The error of a call whose server is not there, with the code that the gateway's own calls have then.
fn unavailable(reason: impl std::fmt::Display) -> ToolError {
    ToolError::new(format_args!("{}: {reason}", ErrorCode::Unavailable.as_str()))
}

/// One server. Starts it again when a call finds it dead.
pub(super) struct Link {
    server: McpServer,
    /// Held while the server is started: other calls wait for that.
    state: Mutex<State>,
    /// Hears of changes of the tools, once the plugin is registered.
    follower: SyncMutex<Option<AbortOnDropHandle<()>>>,
    /// Counts the connections, so that a follower takes the changes of the newest.
    connections: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    failures: u32,
    /// Before this the server is not started again.
    not_before: Option<Instant>,
    is_closed: bool,
}

impl Link {
    /// Starts or reaches the server and asks for its tools.
    pub async fn open(server: McpServer) -> Result<(Arc<Self>, Catalog), McpError> {
        let connection = server.server.connect().await?;
        let link = Self {
            server,
            state: Mutex::default(),
            follower: SyncMutex::default(),
            connections: watch::Sender::new(1),
        };
        let catalog = link.list(&connection).await?;
        link.state.lock().await.connection = Some(connection);
        Ok((Arc::new(link), catalog))
    }

    /// The tools of a catalog, as this client runs them.
    pub fn tools(self: &Arc<Self>, catalog: &Catalog) -> Vec<Tool> {
        catalog.tools().map(|tool| self.bridged(tool)).collect()
    }

    /// Keeps the tools of the client's plugin as the server lists them.
    pub fn follow(self: &Arc<Self>, client: WeakClient) {
        let (link, plugin) = (Arc::downgrade(self), format!("mcp:{}", self.server.server.name()));
        let mut connections = self.connections.subscribe();
        let follow = async move {
            loop {
                let Some(mut changes) = (match link.upgrade() {
                    Some(link) => link.changes().await,
                    None => return,
                }) else {
                    // Until there is another connection nothing changes.
                    match connections.changed().await {
                        Ok(()) => continue,
                        Err(_) => return,
                    }
                };
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() {
                        match connections.changed().await {
                            Ok(()) => {}
                            Err(_) => return,
                        }
                    },
                    newer = connections.changed() => if newer.is_err() { return },
                }
                let (Some(link), Some(client)) = (link.upgrade(), client.upgrade()) else {
                    return;
                };
                link.list_again(&client, &plugin).await;
            }
        };
        let task = AbortOnDropHandle::new(tokio::spawn(follow));
        *self.follower.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Ends the connection in order.
    pub async fn close(&self) -> Result<(), String> {
        self.follower
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut state = self.state.lock().await;
        state.is_closed = true;
        match state.connection.take() {
            Some(connection) => connection.close().await,
            None => Ok(()),
        }
    }

    async fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.state
            .lock()
            .await
            .connection
            .as_ref()
            .map(Connection::changes)
    }

    async fn list_again(self: &Arc<Self>, client: &crate::client::Client, plugin: &str) {
        let listed = match &self.state.lock().await.connection {
            Some(connection) => self.list(connection).await,
            None => return,
        };
        let replaced = match listed {
            Ok(catalog) => client
                .replace_tools(plugin, self.tools(&catalog))
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = replaced {
            tracing::warn!(
                plugin,
                error,
                "the tools of an MCP server have changed, and cannot be taken"
            );
        }
    }

    async fn list(&self, connection: &Connection) -> Result<Catalog, McpError> {
        let listed = connection.list().await;
        let listed = listed.map_err(|reason| self.server.server.error(reason))?;
        let profile = Profile::Client(ClientToolLimits::default());
        let is_wanted = |tool: &str| self.server.only.as_ref().is_none_or(|only| only.contains(tool));
        Ok(Catalog::new(
            self.server.server.name(),
            listed,
            &profile,
            is_wanted,
        ))
    }

    /// A tool that asks the server. Its call is dropped when its time is over or nobody waits any more: the server is
    /// then told to stop.
    fn bridged(self: &Arc<Self>, tool: &CatalogTool) -> Tool {
        let definition = Definition::new(&tool.name, &tool.description).parameters(tool.parameters.clone());
        let original: Arc<str> = tool.original.as_str().into();
        let link = self.clone();
        Tool::new(definition, move |call: ToolCall| {
            let (link, original) = (link.clone(), original.clone());
            async move {
                let request = CallRequest {
                    tool: original.to_string(),
                    arguments: call.input.as_object().cloned(),
                    ..CallRequest::default()
                };
                link.call(request).await?.plain().map_err(ToolError::new)
            }
        })
    }

    /// Calls the server. One that the call did not reach, because it was restarted, is connected to anew and called
    /// once more.
    async fn call(&self, request: CallRequest) -> Result<ToolResult, ToolError> {
        let host = self.server.elicit.as_deref();
        for attempt in 1..=CALL_ATTEMPTS {
            let (generation, caller) = self.caller().await.map_err(unavailable)?;
            let error = match caller.converse(request.clone(), host).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            match error {
                CallError::Unreached if attempt < CALL_ATTEMPTS => self.disconnect(generation).await,
                CallError::Unreached | CallError::Gone => {
                    self.disconnect(generation).await;
                    return Err(unavailable(error));
                }
                error => return Err(ToolError::new(error)),
            }
        }
        Err(unavailable(CallError::Unreached))
    }

    /// Drops a connection that does not work any more, unless there is a newer one.
    async fn disconnect(&self, generation: u64) {
        let mut state = self.state.lock().await;
        if *self.connections.borrow() == generation {
            state.connection = None;
        }
    }

    /// What calls the server, started again if it has died; and which connection that is.
    async fn caller(&self) -> Result<(u64, Caller), String> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|open| !open.is_ended()) {
            return Ok((*self.connections.borrow(), connection.caller()));
        }
        if state.is_closed {
            return Err("the MCP server of this tool is gone".into());
        }
        state.connection = None;
        if let Some(left) = state
            .not_before
            .and_then(|at| at.checked_duration_since(Instant::now()))
        {
            let seconds = left.as_secs() + 1;
            return Err(format!(
                "the MCP server of this tool is gone; it is started again in {seconds} seconds"
            ));
        }
        match self.server.server.connect().await {
            Ok(connection) => {
                let caller = connection.caller();
                *state = State {
                    connection: Some(connection),
                    ..State::default()
                };
                self.connections.send_modify(|count| *count += 1);
                Ok((*self.connections.borrow(), caller))
            }
            Err(error) => {
                let pause = (PAUSE_FIRST * 2_u32.saturating_pow(state.failures)).min(PAUSE_MAX);
                state.failures = (state.failures + 1).min(16);
                state.not_before = Some(Instant::now() + pause);
                Err(error.to_string())
            }
        }
    }
}
