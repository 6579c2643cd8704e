//! What runs a tool. The kernel decides on all of it but `Source`, which it passes on to whoever owns the tool.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Placement, SourceTool};
use crate::agent::ModelSpec;
use crate::json::Json;
use crate::name::AgentName;
use crate::problem::Problem;
use crate::schema::{Profile, Validator};
use crate::template::Template;
use crate::time::Time;

/// How a tool is executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Execution {
    /// Whoever holds the conversation.
    Client,
    /// A fixed output.
    Static(Json),
    /// The output is the input.
    PassThrough,
    /// A child run of another agent of the project; the input's `prompt`, or else the whole input, is its message.
    Agent {
        /// The agent's name.
        agent: AgentName,
        /// What its answer must be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<ResultSchema>,
    },
    /// A child run of the agent that the input names.
    Spawn,
    /// A child run that answers a prompt.
    Prompt(Arc<PromptTool>),
    /// A durable pause.
    Waiting(Wait),
    /// The tool source that lists the tool.
    Source(Arc<SourceTool>),
}

impl Execution {
    /// Whether a call of it is a run of its own.
    pub fn is_run(&self) -> bool {
        match self {
            Self::Agent { .. } | Self::Spawn | Self::Prompt(_) => true,
            Self::Client | Self::Static(_) | Self::PassThrough | Self::Waiting(_) | Self::Source(_) => false,
        }
    }

    /// Where a tool with this execution runs.
    pub fn placement(&self) -> Placement {
        match self {
            Self::Client => Placement::Client,
            Self::Source(tool) => tool.placement,
            Self::Static(_)
            | Self::PassThrough
            | Self::Agent { .. }
            | Self::Spawn
            | Self::Prompt(_)
            | Self::Waiting(_) => Placement::Server,
        }
    }
}

/// A durable pause (`waiting`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// So long.
    For(Duration),
    /// Until this moment.
    Until(Time),
    /// Until somebody outside gives a signal.
    Signal,
    /// As the input says: `seconds`, `until`, or else a signal.
    Input,
}

/// A prompt tool: a child run that answers a prompt.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptTool {
    /// What is asked, with places for the input.
    pub prompt: Template,
    /// The model that is asked, when not the agent's own. Its key is no part of a stored definition: the child run
    /// reads it from the agent's revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// What the answer must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultSchema>,
}

/// Another model than the agent's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelChoice {
    /// Of the same vendor, by name.
    Named(String),
    /// With all that belongs to it.
    Own(ModelSpec),
}

/// What an answer must be.
#[derive(Debug, Clone)]
pub struct ResultSchema {
    /// As it was written.
    pub schema: Json,
    /// Checks an answer.
    pub validator: Arc<Validator>,
}

impl ResultSchema {
    /// Compiles a schema; gives the problems when it is none.
    pub fn compile(schema: Json) -> Result<Self, Vec<Problem>> {
        let validator = Validator::compile(&schema, Profile::Trusted, "")?;
        Ok(Self {
            schema,
            validator: Arc::new(validator),
        })
    }
}

impl PartialEq for ResultSchema {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}
impl Serialize for ResultSchema {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.schema.serialize(out)
    }
}
impl<'de> Deserialize<'de> for ResultSchema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let schema = Json::deserialize(from)?;
        Self::compile(schema).map_err(|_| de::Error::custom("the result schema does not compile"))
    }
}
