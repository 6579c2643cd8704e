//! The source of MCP tools: lists the accepted tools of a project's servers, and runs their calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_engine::tools::{CallContext, CallFailure, Called, SetTool, ToolSource};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::question::Answer;
use toolgate_kernel::tool::{Binding, Listed, Placement, SourceTool, ToolList};
use toolgate_mcp::TOOL_NAME_PREFIX;

use crate::asked::Task;
use crate::config::NAME_CHARS_MAX;
use crate::error::ServerError;
use crate::index::State;
use crate::outcome::Promise;
use crate::server_call::ServerCall;
use crate::servers::McpServers;
use crate::snapshot::{PinnedTool, Snapshot};
use crate::supervisor::Patience;

/// Name of the source, which stands in every definition that a run has pinned.
pub const SOURCE: &str = "mcp";

/// Member of an agent's configuration with the servers that it brings.
const OWN_SERVERS: &str = "mcpServers";

/// Offers the tools of MCP servers to agents: by name, or as
/// `{"executionType": "mcp", "execution": {"server": "time", "tool": "get_current_time"}}`.
pub struct McpSource {
    servers: McpServers,
}

impl McpSource {
    /// The tools of these servers.
    pub fn new(servers: McpServers) -> Self {
        Self { servers }
    }

    /// What is needed to call a tool as a run has pinned it.
    async fn found(
        &self,
        tool: &SourceTool,
        project: ProjectId,
    ) -> Result<(PinnedTool, Arc<Snapshot>), CallFailure> {
        let pinned = PinnedTool::of(tool).ok_or_else(CallFailure::removed)?;
        let snapshot = self.servers.0.cache.snapshot(project).await?;
        let known = snapshot.catalogs.get(&pinned.server);
        let known = known.and_then(|catalog| catalog.tools.get(&pinned.tool));
        let known = known.filter(|known| !known.gone && snapshot.servers.contains_key(&pinned.server));
        let known = known.ok_or_else(CallFailure::removed)?;
        match known.state {
            State::Accepted if known.hash == pinned.hash => Ok((pinned, snapshot)),
            State::Accepted => Err(CallFailure::unavailable(
                "this tool was changed after the run had begun, and the call was not made, since it may mean something \
                 else now; go on without it, the next run has the tool as it is now",
            )),
            State::Held { .. } => Err(CallFailure::unavailable(format!(
                "the MCP server {:?} has changed this tool, and the call was not made: the change waits for a review by \
                 the people who run the project; go on without it",
                pinned.server
            ))),
            State::Rejected { .. } => Err(CallFailure::unavailable(
                "this tool was rejected in a review, and the call was not made; go on without it",
            )),
        }
    }

    fn call_of<'a>(
        &'a self,
        pinned: &'a PinnedTool,
        snapshot: &'a Snapshot,
        context: &'a CallContext,
    ) -> Result<ServerCall<'a>, CallFailure> {
        let configured = snapshot
            .servers
            .get(&pinned.server)
            .ok_or_else(CallFailure::removed)?;
        let catalog = snapshot.catalogs.get(&pinned.server);
        let tool = catalog.and_then(|catalog| catalog.tools.get(&pinned.tool));
        let has_schema = tool.is_some_and(|tool| tool.definition["outputSchema"].is_object());
        let secrets = snapshot.secrets.get(&pinned.server);
        Ok(ServerCall {
            inner: &self.servers.0,
            configured,
            pinned,
            secrets: secrets.ok_or_else(CallFailure::removed)?,
            promise: match has_schema {
                true => Promise::Schema,
                false => Promise::None,
            },
            context,
        })
    }
}

#[async_trait]
impl ToolSource for McpSource {
    fn name(&self) -> &'static str {
        SOURCE
    }
    fn placement(&self) -> Placement {
        Placement::Mcp
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["mcp"]
    }
    /// `{"tool": name}` with the name that models are told, or `{"server": name, "tool": name}` with the server's own.
    fn read(&self, tool: &Members<'_>, list: &ToolList) -> Option<Binding> {
        const UNKNOWN: &str = "no MCP server of the project has a tool named";
        let (section, name) = tool.named_with("tool", &["server"])?;
        let Some(server) = section.text("server", NAME_CHARS_MAX) else {
            return Binding::named_with(tool, "tool", &["server"], list, UNKNOWN);
        };
        let is_meant = |listed: &Listed| {
            let pinned = listed
                .config()
                .and_then(|config| config.read::<PinnedTool>().ok());
            pinned.is_some_and(|pinned| pinned.server == server && pinned.tool == name)
        };
        let found = list.iter().find(|(_, listed)| is_meant(listed));
        match found {
            Some((listed_as, listed)) => Some(Binding::listed(listed_as, listed)),
            None => {
                let words = format!("the MCP server {server:?} offers no tool named {name:?}");
                section.wrong("tool", words);
                None
            }
        }
    }
    /// Its servers, each with its tools.
    fn sets(&self, list: &ToolList) -> BTreeMap<String, Vec<SetTool>> {
        let mut sets = BTreeMap::<String, Vec<SetTool>>::new();
        for (listed, tool) in list {
            let pinned = tool.config().and_then(|config| config.read::<PinnedTool>().ok());
            if let Some(pinned) = pinned {
                // Tools of an agent's server are listed as `<agent>/<name>`.
                let name = listed.rsplit('/').next().unwrap_or(listed).to_owned();
                let listed = listed.clone();
                sets.entry(pinned.server)
                    .or_default()
                    .push(SetTool { name, listed });
            }
        }
        sets
    }
    async fn check_agent(&self, project: ProjectId, config: &Value) -> Vec<Problem> {
        let Some(Value::Object(servers)) = config.get(OWN_SERVERS) else {
            return Vec::new();
        };
        let pointer = format!("/{OWN_SERVERS}");
        match self.servers.check_agents(project, servers, &pointer).await {
            Ok(()) => Vec::new(),
            Err(ServerError::Invalid(problems)) => problems,
            Err(error) => vec![Problem::new(pointer, error.to_string())],
        }
    }
    async fn adopt_agent(
        &self,
        project: ProjectId,
        agent: &AgentName,
        config: &Value,
    ) -> Result<(), CallFailure> {
        let none = Map::new();
        let servers = config
            .get(OWN_SERVERS)
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let put = self.servers.put_agents(project, agent.as_str(), servers).await;
        put.map_err(|error| CallFailure::unavailable(error.to_string()))
    }
    async fn forget_agent(&self, project: ProjectId, agent: &AgentName) {
        let forgot = self
            .servers
            .put_agents(project, agent.as_str(), &Map::new())
            .await;
        if let Err(error) = forgot {
            tracing::warn!(%error, %agent, "the MCP servers of a removed agent are still there");
        }
    }
    fn name_prefix(&self) -> Option<&'static str> {
        Some(TOOL_NAME_PREFIX)
    }
    async fn list(&self, project: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        Ok(self.servers.0.listed_servers(project).await?.list.clone())
    }
    async fn still_offers(&self, tool: &SourceTool, project: ProjectId) -> Result<(), CallFailure> {
        self.found(tool, project).await.map(drop)
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let (pinned, snapshot) = self.found(tool, context.project).await?;
        self.call_of(&pinned, &snapshot, context)?.begin(input).await
    }
    async fn resume(
        &self,
        tool: &SourceTool,
        input: &Json,
        task: &str,
        answers: &[Answer],
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        // A task goes on as it began, also when the definition has changed since.
        let pinned = PinnedTool::of(tool).ok_or_else(CallFailure::removed)?;
        let snapshot = self.servers.0.cache.snapshot(context.project).await?;
        let call = self.call_of(&pinned, &snapshot, context)?;
        call.resume(input, task, answers).await
    }
    async fn abandon(&self, tool: &SourceTool, task: &str, project: ProjectId) {
        let id = match Task::read(task) {
            Some(Task::Live { call, .. }) => return self.servers.0.live.end(call),
            Some(Task::Poll { id, .. }) => id,
            Some(Task::Again { .. }) | None => return,
        };
        let Some(pinned) = PinnedTool::of(tool) else {
            return;
        };
        let Ok(snapshot) = self.servers.0.cache.snapshot(project).await else {
            return;
        };
        let Some(configured) = snapshot.servers.get(&pinned.server) else {
            return;
        };
        let inner = &self.servers.0;
        let handle = inner.pool.handle(inner, project, &pinned.server, configured);
        // Best effort: the server forgets the task by itself some day.
        if let Ok(lease) = handle.lease(Patience::Wait).await {
            let _ = lease.caller.cancel_task(&id).await;
        }
    }
}
