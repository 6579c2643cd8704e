//! The tools that a caller may use: those of an agent, for backends all that the project has by name, and every agent
//! that the caller may start as `ask_<agent>`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_kernel::agent::Agent;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::{AgentName, NAME_CHARS_MAX, ToolName};
use toolgate_kernel::tool::{Retry, Tool};

use crate::visitor::{Abilities, Visitor};

/// What the name of an agent's tool begins with.
const ASK: &str = "ask_";
/// Hexadecimal digits that tell apart agents whose names are too long to follow [`ASK`].
const HASH_CHARS: usize = 8;

/// Something that `tools/call` can name.
#[derive(Clone)]
pub(crate) enum Offer {
    /// A tool of the project.
    Tool(Arc<Tool>),
    /// An agent, asked with a message.
    Agent(Arc<Agent>),
}

/// Everything that the caller may use, by name.
pub(crate) async fn offers(door: &Shared, visitor: &Visitor) -> Result<BTreeMap<String, Offer>, Refusal> {
    let who = &visitor.who;
    let mut offers = BTreeMap::new();
    for agent in agents(door, visitor).await? {
        offers.insert(ask_name(&agent.name), Offer::Agent(agent));
    }
    // After the agents: a tool of the project keeps its name.
    if who.is_backend() {
        let catalog = door.engine.sources().catalog(who.project).await;
        let names = catalog.tools().map(|tool| tool.name.to_string()).collect();
        for tool in door.engine.tools_by_name(who.project, names).await? {
            offers.insert(tool.name.to_string(), Offer::Tool(tool));
        }
    }
    if let Some(agent) = own_agent(door, visitor).await? {
        let starter = who.starter();
        for tool in agent.tools.values().filter(|tool| tool.is_callable_by(&starter)) {
            offers.insert(tool.name.to_string(), Offer::Tool(tool.clone()));
        }
    }
    Ok(offers)
}

/// What this name means to the caller, without listing everything where that can be avoided.
pub(crate) async fn offer(door: &Shared, visitor: &Visitor, name: &str) -> Result<Option<Offer>, Refusal> {
    let who = &visitor.who;
    let Ok(tool) = name.parse::<ToolName>() else {
        return Ok(None);
    };
    if let Some(agent) = own_agent(door, visitor).await?
        && let Some(own) = agent.tools.get(&tool)
        && own.is_callable_by(&who.starter())
    {
        return Ok(Some(Offer::Tool(own.clone())));
    }
    if who.is_backend() {
        let names = vec![name.to_owned()];
        let found = door.engine.tools_by_name(who.project, names).await?.pop();
        if let Some(tool) = found {
            return Ok(Some(Offer::Tool(tool)));
        }
    }
    let Some(agent) = name.strip_prefix(ASK) else {
        return Ok(None);
    };
    if let Ok(agent) = agent.parse::<AgentName>()
        && let Some(agent) = find(door, visitor, &agent).await?
    {
        return Ok(Some(Offer::Agent(agent)));
    }
    let mut agents = agents(door, visitor).await?.into_iter();
    Ok(agents
        .find(|agent| ask_name(&agent.name) == name)
        .map(Offer::Agent))
}

/// The agents that the caller may start, by name.
pub(crate) async fn agents(door: &Shared, visitor: &Visitor) -> Result<Vec<Arc<Agent>>, Refusal> {
    let mut agents = Vec::new();
    for record in door.engine.agent_records(visitor.who.project).await? {
        agents.extend(find(door, visitor, &record.name).await?);
    }
    Ok(agents)
}

/// The agent whose tools the address names, when the caller may start it.
pub(crate) async fn own_agent(door: &Shared, visitor: &Visitor) -> Result<Option<Arc<Agent>>, Refusal> {
    find(door, visitor, &visitor.agent).await
}

/// An agent that the caller may start: anywhere, or in the space that the request names.
async fn find(door: &Shared, visitor: &Visitor, name: &AgentName) -> Result<Option<Arc<Agent>>, Refusal> {
    let who = &visitor.who;
    let space = match (visitor.space, who.is_backend()) {
        (Some(space), false) => Some(door.access.space(who, space).await?),
        _ => None,
    };
    let found = door
        .engine
        .agent_for(who.project, name, &who.starter(), space.as_ref())
        .await?;
    Ok(found)
}

/// The name of an agent's tool: always one that every client accepts.
pub(crate) fn ask_name(agent: &AgentName) -> String {
    let name = format!("{ASK}{agent}");
    if name.len() <= NAME_CHARS_MAX {
        return name;
    }
    let hash = Sha256::digest(agent.as_str());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    // Names are ASCII.
    let kept = &name[..NAME_CHARS_MAX - HASH_CHARS - 1];
    format!("{kept}_{}", &hash[..HASH_CHARS])
}

impl Offer {
    /// As it is told to the client. Before 2026-07-28 the schema of an output must be one of an object, and a client
    /// refuses the whole list otherwise.
    pub fn listed(&self, name: &str, abilities: Abilities) -> Listed {
        match self {
            Self::Tool(tool) => {
                let description = describe(tool);
                let listed = Listed::new(name.to_owned(), description, object(&tool.parameters));
                let listed =
                    listed.with_annotations(ToolAnnotations::new().idempotent(tool.retry == Retry::Safe));
                match tool.output_schema.as_ref().map(object) {
                    Some(schema) if abilities.modern || is_of_object(&schema) => {
                        listed.with_raw_output_schema(schema)
                    }
                    _ => listed,
                }
            }
            Self::Agent(agent) => {
                let about = agent
                    .description
                    .as_deref()
                    .unwrap_or("An agent of this project.");
                let description = format!("Ask the agent {}: {about}", agent.name);
                Listed::new(name.to_owned(), description, Arc::new(ask_input()))
                    .with_raw_output_schema(Arc::new(ask_output()))
            }
        }
    }

    /// Whether its output has a schema, so that clients read it as data.
    pub fn has_output_schema(&self) -> bool {
        match self {
            Self::Tool(tool) => tool.output_schema.is_some(),
            Self::Agent(_) => true,
        }
    }
}

fn describe(tool: &Tool) -> String {
    match &tool.deprecated {
        None => tool.description.clone(),
        Some(why) => format!("{} (Deprecated: {why})", tool.description),
    }
}

fn is_of_object(schema: &JsonObject) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

fn object(schema: &Json) -> Arc<JsonObject> {
    let schema = match schema.to_value() {
        Value::Object(schema) => schema,
        // A schema may be `true`; an object that says nothing means the same.
        _ => JsonObject::new(),
    };
    Arc::new(schema)
}

fn ask_input() -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "message": {"type": "string", "minLength": 1, "description": "What to say to the agent."},
            "space": {
                "type": "string",
                "description": "The space of an earlier answer, to go on with that conversation.",
            },
        },
        "required": ["message"],
        "additionalProperties": false,
    });
    members(schema)
}

fn ask_output() -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "description": "What the agent answered."},
            "space": {"type": "string", "description": "Give it as `space` to go on with the conversation."},
        },
        "required": ["answer", "space"],
    });
    members(schema)
}

fn members(schema: Value) -> JsonObject {
    match schema {
        Value::Object(members) => members,
        _ => unreachable!("the schemas above are objects"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_agents_tool_always_fits() {
        let named = |name: &str| ask_name(&name.parse().unwrap());
        assert_eq!(named("tutor"), "ask_tutor");
        let (long, other) = ("a".repeat(64), format!("{}b", "a".repeat(63)));
        assert_eq!(named(&long).len(), NAME_CHARS_MAX);
        assert_ne!(named(&long), named(&other));
        assert!(named(&long).parse::<ToolName>().is_ok());
    }
}
