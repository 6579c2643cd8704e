//! An agent's configuration: read, checked with all problems at once, and compiled for use.
//!
//! `read` has the agent and its model, `access` who may start it, `tools` what it may call, `by_id` tools with an `id`, `execution` what runs a tool,
//! `catalog` what tool sources offer, `servers` whole MCP servers, `shared` a tool that agents of a project share,
//! `warnings` what is valid and most likely not meant.

mod access;
mod by_id;
mod catalog;
mod execution;
mod read;
mod servers;
mod shared;
mod tools;
mod warnings;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::id::{EntityId, ProjectId};
use crate::json::Json;
use crate::name::{AgentName, ToolName};
use crate::problem::{Problem, Problems};
use crate::prompt::{OfferedTool, ToolChoice};
use crate::tool::{Execution, ModelChoice, ResultSchema, Retry, Tool, Toolbox};

pub(crate) use access::GROUPS_MAX;
pub use access::{Access, DEFAULT_AGENT, GROUP_CHARS_MAX, Starter};
pub use by_id::with_name;
pub use catalog::{Catalog, NamedTool};
pub use shared::{read_shared, tools_by_name};
pub use toolgate_protocol::model::{ModelName, Provider};
pub use warnings::{ChildWalk, WARNINGS_MAX, config_warnings};

/// Most model replies in one run that a configuration may ask for.
pub const STEPS_MAX: u32 = 1_000;
/// Most calls in one run that a configuration may ask for.
pub const CALLS_MAX: u32 = 10_000;
/// Most calls in one step that a configuration may ask for.
pub const CALLS_PER_STEP_MAX: u32 = 256;
/// Most tokens in one run that a configuration may ask for.
pub const TOKENS_MAX: u64 = 100_000_000;
/// Most runs above a run that a configuration may ask for.
pub const RUN_DEPTH_MAX: u32 = 16;
/// Most tokens of one reply, or of its reasoning, that a configuration may ask for.
pub const REPLY_TOKENS_MAX: u32 = 1_000_000;
/// Most tools of one agent.
pub const TOOLS_MAX: usize = 128;
/// Most tokens of a request, and least, that a configuration may ask for.
pub const CONTEXT_TOKENS: std::ops::RangeInclusive<u64> = 256..=100_000_000;
/// Most exchanges that a configuration may keep.
pub const CONTEXT_KEEP_MAX: u32 = 10_000;
/// Longest system prompt.
pub const INSTRUCTIONS_CHARS_MAX: usize = 200_000;
/// What stands for a key wherever a configuration is shown.
const MASK: &str = "***";

/// A text that must never be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// The text, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}
impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// A model and how to ask it. Serialized without its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSpec {
    /// The vendor and its name for the model.
    pub name: ModelName,
    /// Where, when not at the vendor's own address.
    pub base_url: Option<String>,
    /// The key, when the agent brings its own.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Most tokens of one reply.
    pub max_output_tokens: Option<u32>,
    /// Ask for reasoning with this many tokens, where the vendor has such a setting.
    pub reasoning_tokens: Option<u32>,
}

/// How the names of well-known models begin.
const VENDORS: [(&str, Provider); 4] = [
    ("gpt-", Provider::Openai),
    ("chatgpt-", Provider::Openai),
    ("claude-", Provider::Anthropic),
    ("gemini-", Provider::Google),
];

impl ModelSpec {
    /// Another model of the same vendor, asked in the same way. The demo has no other models, so there the name
    /// itself tells the vendor where it can.
    pub fn named(&self, name: &str) -> Self {
        let own = self.name.provider;
        let by_name = || VENDORS.iter().find(|(start, _)| name.starts_with(start));
        let provider = match own {
            Provider::Demo => by_name().map_or(own, |(_, vendor)| *vendor),
            _ => own,
        };
        let name = ModelName {
            provider,
            name: name.to_owned(),
        };
        Self { name, ..self.clone() }
    }
}

/// What a run may use up. Each has a default; a configuration may set its own up to the ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model replies in one run (`loop.maxSteps`).
    pub steps: u32,
    /// Calls in one run.
    pub calls: u32,
    /// Calls in one step.
    pub calls_per_step: u32,
    /// Tokens in one run, read and written.
    pub tokens: u64,
    /// Runs above a run.
    pub depth: u32,
    /// Runs that one step may start.
    pub fanout: u32,
    /// Runs below the one at the top, all together.
    pub descendants: u32,
    /// How often one step is asked of the model when the reply fails or breaks off.
    pub step_attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 5,
            calls: 256,
            calls_per_step: 64,
            tokens: 2_000_000,
            depth: 4,
            fanout: 8,
            descendants: 50,
            step_attempts: 3,
        }
    }
}

/// How much of a conversation the model is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// Most tokens of a request, as they are estimated; without a limit until a vendor refuses one.
    pub max_tokens: Option<u64>,
    /// How many of the newest exchanges stay when older ones are left out; those that fit into half of it otherwise.
    pub keep: Option<u32>,
    /// What becomes of those that are left out.
    pub compact: Compact,
    /// Time zone (IANA) of the date that the model is told, where that of the person or the space is not known.
    pub time_zone: Option<String>,
}

/// What becomes of a part of the conversation that no longer fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compact {
    /// It is left out.
    #[default]
    Drop,
    /// A summary, which the model writes, stands for it.
    Summary,
}

/// Whose account of a conversation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// The gateway's: what a client posts again is a claim, not a fact.
    #[default]
    Server,
    /// The client's: every request brings the whole conversation.
    Client,
}

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Unique in its project.
    pub name: AgentName,
    /// Who may start it.
    pub access: Access,
    /// One line for people.
    pub description: Option<String>,
    /// The system prompt.
    pub instructions: String,
    /// Model that the agent uses.
    pub model: ModelSpec,
    /// Whether it may, must or must not use tools.
    pub tool_choice: ToolChoice,
    /// What a run may use up.
    pub limits: Limits,
    /// What it was given; a tool's permissions are checked against it. Empty grants nothing.
    pub grants: Vec<String>,
    /// Tools of the agent.
    pub tools: Toolbox,
    /// Why tools of the configuration are not among `tools`; never with [`Missing::Refused`].
    pub left_out: Vec<Problem>,
    /// Whose account of a conversation counts in its chats.
    pub history: History,
    /// How much of a conversation its model is given.
    pub context: Context,
    /// What its answer must be; one that is not is asked for once more.
    pub result: Option<ResultSchema>,
}

impl Agent {
    /// The agent that answers a tool that is a prompt tool of this one: no tools, and perhaps another model.
    pub fn behind(&self, tool: &ToolName) -> Option<Self> {
        self.behind_tool(self.tools.get(tool)?)
    }

    /// The same for a tool that it may no longer have.
    pub fn behind_tool(&self, tool: &Tool) -> Option<Self> {
        let Execution::Prompt(prompt) = &tool.execution else {
            return None;
        };
        let agent = Self {
            name: self.name.clone(),
            // A call starts it, nobody else.
            access: Access::Backend,
            description: None,
            instructions: tool.description.clone(),
            model: match &prompt.model {
                None => self.model.clone(),
                Some(ModelChoice::Own(model)) => model.clone(),
                Some(ModelChoice::Named(name)) => self.model.named(name),
            },
            tool_choice: ToolChoice::None,
            limits: self.limits,
            grants: Vec::new(),
            tools: Toolbox::new(),
            left_out: Vec::new(),
            history: History::Server,
            context: self.context.clone(),
            result: None,
        };
        Some(match &prompt.result {
            Some(result) => agent.with_result(result.clone()),
            None => agent,
        })
    }

    /// The agent with an answer that must fit a schema, and told so.
    pub fn with_result(mut self, result: ResultSchema) -> Self {
        let schema = result.schema.as_str();
        self.instructions.push_str(&format!(
            "\nAnswer with JSON alone that fits this schema: {schema}"
        ));
        self.result = Some(result);
        self
    }

    /// The agent as a participant: what it keeps is tied to this, in every revision.
    pub fn entity(&self, project: ProjectId) -> EntityId {
        entity_of(project, &self.name)
    }
}

/// The agent of this name as a participant.
pub fn entity_of(project: ProjectId, agent: &AgentName) -> EntityId {
    let hash = Sha256::new()
        .chain_update(b"agent\0")
        .chain_update(project.to_bytes())
        .chain_update(agent.as_str())
        .finalize();
    EntityId::from_bytes(hash[..16].try_into().expect("a hash has 32 bytes"))
}

/// What the gateway says of one of its own tools. The author of a `prebuilt` tool need not repeat it.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Description that the model is given.
    pub description: String,
    /// JSON Schema of the input.
    pub parameters: Value,
    /// How long it may take.
    pub timeout: Duration,
    /// What a crash in mid-execution means.
    pub retry: Retry,
}

/// What the author of a configuration need not say.
pub struct Defaults<'a> {
    /// What an agent without a `model` asks.
    pub model: ModelSpec,
    /// What the project's tool sources offer.
    pub catalog: &'a Catalog,
    /// What becomes of a tool that no source offers.
    pub missing: Missing,
}

impl Defaults<'_> {
    /// A collector by the rules for this document: one that is about to be stored obeys all of them.
    fn problems(&self) -> Problems {
        match self.missing {
            Missing::Refused | Missing::Unknown => Problems::of_new(),
            Missing::LeftOut => Problems::default(),
        }
    }
}

/// What becomes of a tool that no source offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The configuration is refused: for one that is about to be stored.
    Refused,
    /// The agent goes without it: for one that was stored when there was such a tool.
    LeftOut,
    /// One that is used by its name alone is left out, unless that looks like a typo; anything else is refused. For a check
    /// without a project, which may have such a tool.
    Unknown,
}

/// Reads a configuration (the long form with `agent`, or a short one with `instructions` at the top) and reports everything
/// that is wrong with it.
pub fn parse(name: &AgentName, config: &Value, defaults: &Defaults<'_>) -> Result<Agent, Vec<Problem>> {
    let problems = defaults.problems();
    let agent = read::agent(name, config, defaults, &problems);
    problems.or(agent)
}

/// Reads a list of tools that stands at `pointer`, by the rules for an agent's; gives them in the order they were
/// written.
pub(crate) fn read_tools(
    list: &Value,
    pointer: &str,
    defaults: &Defaults<'_>,
) -> Result<Vec<Arc<Tool>>, Vec<Problem>> {
    let problems = defaults.problems();
    let tools = read::tools_alone(list, defaults, &problems);
    problems.or(tools).map_err(|problems| {
        let place = |place: &str| format!("{pointer}{}", place.strip_prefix("/tools").unwrap_or(place));
        let placed = |problem: Problem| Problem::new(place(&problem.pointer), problem.message);
        problems.into_iter().map(placed).collect()
    })
}

/// The tools of a checked configuration in the order they were written.
pub(crate) fn in_order(mut tools: Toolbox, list: &Value) -> Vec<Arc<Tool>> {
    let written = list.as_array().map_or(&[][..], Vec::as_slice);
    let name = |item: &Value| match with_name(item).as_ref() {
        Value::String(name) => Some(name.clone()),
        item => item.get("name")?.as_str().map(str::to_owned),
    };
    written
        .iter()
        .filter_map(|item| tools.remove(name(item)?.as_str()))
        .collect()
}

/// The configuration as it may be shown: every `apiKey` masked, and the headers and variables of MCP servers. A tool's
/// parameter of that name stays.
pub fn redact(config: &Json) -> Json {
    let mut config = config.to_value();
    mask(&mut config);
    let servers = config.get_mut("mcpServers").and_then(Value::as_object_mut);
    for server in servers.into_iter().flat_map(|servers| servers.values_mut()) {
        for section in ["headers", "env"] {
            let members = server.get_mut(section).and_then(Value::as_object_mut);
            for value in members.into_iter().flat_map(|members| members.values_mut()) {
                *value = MASK.into();
            }
        }
    }
    config.into()
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(_) | Value::Number(_) if name == "apiKey" => *value = MASK.into(),
                    other => mask(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a model is told of these tools, in the order of their names.
pub fn offered(tools: &Toolbox) -> Arc<[OfferedTool]> {
    let offer = |tool: &Arc<Tool>| OfferedTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    };
    tools.values().map(offer).collect()
}
