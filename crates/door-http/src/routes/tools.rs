//! Tools: which there are, and those that a request brings.

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_engine::Engine;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::{ClientTool, Placement};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::answer::{Answer, ok};
use crate::auth::Principal;
use crate::describe::{BadQuery, Refused};
use crate::problem::Refusal;
use crate::query::Query;
use crate::schema::Any;
use crate::wire::{At, Wire, component};
use crate::{Shared, schema};

/// Definitions that came with a request, not checked yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientTools(Value);

impl ClientTools {
    /// Checks them; `pointer` is where they stand in the body.
    pub fn check(&self, engine: &Engine, pointer: &str) -> Result<Vec<ClientTool>, Vec<Problem>> {
        engine.client_tools(&self.0, pointer)
    }
}

impl Wire for ClientTools {
    fn read(value: &RawValue, _: &At<'_>, _: &mut Vec<Problem>) -> Option<Self> {
        Some(Self(
            serde_json::from_str(value.get()).expect("the body was checked"),
        ))
    }
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(component("NewClientTool")).into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        components.push(("NewClientTool".into(), <Any as PartialSchema>::schema()));
        components.push(("ClientTool".into(), <ClientToolBody as PartialSchema>::schema()));
    }
}

/// A tool that the caller of a run executes itself.
#[derive(ToSchema)]
#[schema(as = ClientTool, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what the kernel keeps")]
pub(crate) struct ClientToolBody {
    /// What the model calls it.
    name: String,
    /// What the model is told.
    description: String,
    /// JSON Schema of the input.
    #[schema(value_type = Object)]
    parameters: Value,
    /// JSON Schema of the output.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// Deadline of an answer, in milliseconds.
    timeout_ms: Option<u64>,
    /// Its author's number for this state of it.
    version: Option<String>,
    /// Set when it should not be used any more.
    deprecated: Option<String>,
    /// What the caller calls it, when the run had to call it something else.
    given_name: Option<String>,
}

/// A tool of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = Tool)]
pub(crate) struct ToolBody {
    /// What the model calls it.
    name: String,
    /// Whose it is.
    #[schema(value_type = schema::AgentName)]
    agent: AgentName,
    /// What the model is told.
    description: String,
    /// JSON Schema of the input; for backends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    parameters: Option<Json>,
    /// Where it runs.
    #[schema(value_type = PlacementWord)]
    placement: Placement,
    /// Its author's number for this state of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Set when it should not be used any more: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
}

/// Where a tool runs.
#[derive(ToSchema)]
#[schema(as = Placement, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the kernel's placements")]
pub(crate) enum PlacementWord {
    Server,
    Plugin,
    Mcp,
    Client,
}

/// Tools.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolList {
    /// By agent, then by name.
    tools: Vec<ToolBody>,
}

/// The tools of the project's agents. A user sees the names of those that run on clients.
#[utoipa::path(
    get, path = "/v1/tools", operation_id = "list_tools", tag = "tools",
    params(("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent only.")),
    responses((status = 200, description = "All of them.", body = ToolList), BadQuery, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    who: Principal,
    query: Query,
) -> Result<Answer<ToolList>, Refusal> {
    let only: Option<AgentName> = query.read("agent")?;
    let mut tools = Vec::new();
    for record in door.engine.store().agents(who.project).await? {
        if only.as_ref().is_some_and(|only| *only != record.name) {
            continue;
        }
        let Some((_, agent)) = door.engine.agent(who.project, &record.name, None).await? else {
            continue;
        };
        let shown = agent
            .tools
            .values()
            .filter(|tool| who.user.is_none() || tool.placement() == Placement::Client);
        tools.extend(shown.map(|tool| ToolBody {
            name: tool.name.to_string(),
            agent: agent.name.clone(),
            description: tool.description.clone(),
            parameters: who.user.is_none().then(|| tool.parameters.clone()),
            placement: tool.placement(),
            version: tool.version.clone(),
            deprecated: tool.deprecated.clone(),
        }));
    }
    Ok(ok(ToolList { tools }))
}
