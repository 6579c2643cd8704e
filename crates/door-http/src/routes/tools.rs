//! The tools of agents.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::store::SpaceRecord;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BackendOnly, BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::{Shared, schema};
use toolgate_kernel::agent::{Agent, Provider};
use toolgate_kernel::id::{ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::tool::{self, Execution, Placement, Tool, Toolbox, Voice};
use toolgate_plugins::{PinnedTool, Trust};
use utoipa::ToSchema;

/// Source of a tool that the configuration of its agent defines.
const OF_AGENT: &str = "agent";

/// A tool of an agent, or one that agents share.
#[derive(Serialize, ToSchema)]
#[schema(as = Tool)]
pub(crate) struct ToolBody {
    /// What the model calls it.
    name: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Agent that has the tool. Absent for a shared tool as such, which stands beside the agents that use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AgentName>)]
    agent: Option<AgentName>,
    /// Where its definition comes from: `agent`, `shared`, `built-in`, `plugin`, `mcp`; for backends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Description that the model is given.
    description: String,
    /// JSON Schema of the input.
    #[schema(value_type = Object)]
    parameters: Json,
    /// Placement: where the tool runs.
    #[schema(value_type = PlacementWord)]
    placement: Placement,
    /// Category, for people who choose tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// Words of a person that suggest it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    triggers: Vec<String>,
    /// What is said aloud of its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<VoiceBody>)]
    voice: Option<Voice>,
    /// What the agent must have been granted; for backends only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    permissions: Vec<String>,
    /// Its author's number for this state of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Set when it should not be used any more: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    /// The package of a plugin that it comes from; for backends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<PluginOfTool>,
}

/// What is said aloud of the calls of a tool.
#[derive(ToSchema)]
#[schema(as = Voice)]
#[expect(dead_code, reason = "describes the kernel's voice")]
pub(crate) struct VoiceBody {
    /// Said when a call needs a yes.
    prompt: Option<VoiceTextBody>,
    /// Said when a call has given an output.
    feedback: Option<VoiceTextBody>,
    /// `false` if events do not carry the texts.
    enabled: Option<bool>,
}

/// A text with `{variables}`.
#[derive(ToSchema)]
#[schema(as = VoiceText, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the kernel's texts")]
pub(crate) struct VoiceTextBody {
    /// The text, with `{name}` or `{path.to.value}` where a value is spoken.
    template: String,
    /// Variables without which the fallback is said.
    requires_context: Option<Vec<String>>,
    /// Said when a variable has no value.
    fallback: Option<String>,
}

/// The package of a plugin that a tool comes from.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginOfTool {
    /// Id of the plugin.
    id: String,
    /// Version of the package.
    version: String,
    /// Hash of the package.
    package_hash: String,
    /// How far it is trusted; `unsigned` ones run in development mode only.
    #[schema(value_type = TrustWord)]
    verification: Trust,
}

/// How far a plugin that runs is trusted.
#[derive(ToSchema)]
#[schema(as = PluginTrust, rename_all = "kebab-case")]
#[expect(dead_code, reason = "describes the plugins' words")]
pub(crate) enum TrustWord {
    Verified,
    ToolsOnly,
    Unsigned,
}

impl PluginOfTool {
    fn of(tool: &Tool) -> Option<Self> {
        let Execution::Source(source) = &tool.execution else {
            return None;
        };
        let pinned = PinnedTool::of(source)?;
        Some(Self {
            id: pinned.plugin,
            version: pinned.version,
            package_hash: pinned.package,
            verification: pinned.trust,
        })
    }
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

/// A list of tools.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolList {
    /// By agent, then by name; then the shared tools by name.
    tools: Vec<ToolBody>,
}

/// Tools as a vendor's models are told of them.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolDefinitions {
    /// What stands under `tools` in a request to that vendor, to the letter.
    #[schema(value_type = Vec<schema::Any>)]
    tools: Json,
}

/// Tools, in our words or in a vendor's.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum FoundTools {
    /// In ours.
    Listed(ToolList),
    /// In a vendor's.
    Rendered(ToolDefinitions),
}

/// A vendor's words for tools.
#[derive(ToSchema)]
#[schema(as = ToolFormat, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a word of the query")]
pub(crate) enum FormatWord {
    Openai,
    Anthropic,
    Google,
}

/// The tools of the project's agents, and those that agents share, that fit everything in the query. A user sees exactly those
/// that it may call (`POST /v1/tools/{name}/call`): client tools and those with `visibility: public`, of agents that it may
/// start; `permission` and `format` are for backends.
#[utoipa::path(
    get, path = "/v1/tools", operation_id = "list_tools", tag = "tools",
    params(
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent only."),
        ("space" = inline(Option<schema::SpaceId>), Query, description = "Also, for a user, of the agent that a backend gave this space."),
        ("trigger" = Option<String>, Query, description = "With these words in a row in one of their triggers; case and accents do not matter."),
        ("category" = Option<String>, Query, description = "Of this category; case and accents do not matter."),
        ("permission" = Option<String>, Query, description = "That need this permission."),
        ("format" = inline(Option<FormatWord>), Query, description = "Exactly as this vendor's models are told of them. Two tools of one name need `agent`."),
    ),
    responses((status = 200, description = "All of them.", body = FoundTools), BadQuery, BackendOnly, Missing, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<FoundTools>, Refusal> {
    let (wanted, format) = (wanted(&query), format(&query)?);
    if who.user.is_some() && (wanted.permission.is_some() || format.is_some()) {
        return Err(Refusal::forbidden("permission and format need a secret key"));
    }
    let mut found = visible(&door, &who, query.read("agent")?, query.read("space")?).await?;
    // A vendor's format is for a request to a model, which has the tools of an agent.
    found.retain(|(agent, tool)| wanted.fits(tool) && (agent.is_some() || format.is_none()));
    Ok(ok(match format {
        None => {
            let tools = found
                .iter()
                .map(|(agent, tool)| ToolBody::of(agent.clone(), tool, &who));
            FoundTools::Listed(ToolList {
                tools: tools.collect(),
            })
        }
        Some(vendor) => FoundTools::Rendered(ToolDefinitions {
            tools: render(&door, vendor, found)?,
        }),
    }))
}

/// A tool, and the agent that has it; none for a shared tool as such.
pub(super) type Found = (Option<AgentName>, Arc<Tool>);

/// The tools that a caller may know: a backend all, of agents and shared; a user those that it may call, of agents that it
/// may start.
pub(super) async fn visible(
    door: &Shared,
    who: &Principal,
    agent: Option<AgentName>,
    space: Option<SpaceId>,
) -> Result<Vec<Found>, Refusal> {
    let space = match space {
        Some(space) => Some(door.access.space(who, space).await?),
        None => None,
    };
    let (mut found, starter) = (Vec::new(), who.starter());
    let is_of_all = agent.is_none();
    for agent in agents(door, who, agent, space.as_ref()).await? {
        let tools = agent.tools.values();
        let callable = tools.filter(|tool| tool.is_callable_by(&starter));
        found.extend(callable.map(|tool| (Some(agent.name.clone()), tool.clone())));
    }
    if who.user.is_none() && is_of_all {
        let shared = shared(door, who.project).await?.into_iter();
        found.extend(shared.map(|tool| (None, tool)));
    }
    Ok(found)
}

pub(super) fn wanted(query: &Query) -> tool::Query {
    let text = |name| query.text(name).map(str::to_owned);
    tool::Query {
        trigger: text("trigger"),
        category: text("category"),
        permission: text("permission"),
    }
}

fn format(query: &Query) -> Result<Option<Provider>, Refusal> {
    // The demo has no form of its own.
    let formats = Provider::ALL
        .iter()
        .filter(|(_, vendor)| *vendor != Provider::Demo);
    query.word("format", &formats.copied().collect::<Vec<_>>())
}

async fn agents(
    door: &Shared,
    who: &Principal,
    only: Option<AgentName>,
    space: Option<&SpaceRecord>,
) -> Result<Vec<Arc<Agent>>, Refusal> {
    let (mut agents, starter) = (Vec::new(), who.starter());
    for record in door.engine.agent_records(who.project).await? {
        if only.as_ref().is_none_or(|only| *only == record.name) {
            let agent = door.engine.agent_for(who.project, &record.name, &starter, space);
            agents.extend(agent.await?);
        }
    }
    Ok(agents)
}

/// The shared tools as an agent that names them has them.
pub(super) async fn shared(door: &Shared, project: ProjectId) -> Result<Vec<Arc<Tool>>, Refusal> {
    let stored = door.engine.shared_tools(project).await?.into_iter();
    let names: Vec<String> = stored.map(|tool| tool.name).collect();
    match names.is_empty() {
        true => Ok(Vec::new()),
        false => Ok(door.engine.tools_by_name(project, names).await?),
    }
}

/// No model can be given two tools of one name, unless they are the same.
fn render(
    door: &Shared,
    vendor: Provider,
    found: Vec<(Option<AgentName>, Arc<Tool>)>,
) -> Result<Json, Refusal> {
    let mut tools = Toolbox::new();
    for (_, tool) in found {
        let (name, hash) = (tool.name.clone(), tool.hash.clone());
        if let Some(other) = tools.insert(name, tool)
            && other.hash != hash
        {
            return Err(Refusal::malformed(format!(
                "query agent: is needed, since agents have different tools named {}",
                other.name
            )));
        }
    }
    let definitions = door.engine.definitions(vendor, &tools);
    definitions.ok_or_else(|| Refusal::missing("this gateway tells that vendor nothing"))
}

impl ToolBody {
    fn of(agent: Option<AgentName>, tool: &Tool, who: &Principal) -> Self {
        let all = who.user.is_none();
        Self {
            name: tool.name.to_string(),
            title: tool.title.clone(),
            agent,
            source: all.then(|| tool.source().unwrap_or(OF_AGENT).to_owned()),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            placement: tool.placement(),
            category: tool.category.clone(),
            triggers: tool.triggers.clone(),
            voice: tool.voice.clone(),
            permissions: if all { tool.permissions.clone() } else { Vec::new() },
            version: tool.version.clone(),
            deprecated: tool.deprecated.clone(),
            plugin: if all { PluginOfTool::of(tool) } else { None },
        }
    }
}
