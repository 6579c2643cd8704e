//! An agent's configuration: read, checked with all problems at once, and compiled for use.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name::AgentName;
use crate::problem::Problem;
use crate::prompt::ToolChoice;
use crate::tool::Toolbox;

/// Who makes the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Chat completions: OpenAI and every compatible server.
    Openai,
    /// Messages.
    Anthropic,
    /// Gemini.
    Google,
    /// The built-in rule-based stand-in.
    Demo,
}

/// Which model, as the events tell it: no address, no key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelName {
    /// Who makes it.
    pub provider: Provider,
    /// What they call it.
    pub name: String,
}

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

/// A model and how to ask it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// Which.
    pub name: ModelName,
    /// Where, when not at the vendor's own address.
    pub base_url: Option<String>,
    /// The key, when the agent brings its own.
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
    /// How often one step is tried when the model breaks midway.
    pub attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 5,
            calls: 256,
            calls_per_step: 64,
            tokens: 2_000_000,
            depth: 4,
            attempts: 3,
        }
    }
}

/// A checked configuration.
#[derive(Debug)]
pub struct Agent {
    /// Unique in its project.
    pub name: AgentName,
    /// One line for people.
    pub description: Option<String>,
    /// The system prompt.
    pub instructions: String,
    /// What it asks.
    pub model: ModelSpec,
    /// Whether it may, must or must not use tools.
    pub tool_choice: ToolChoice,
    /// What a run may use up.
    pub limits: Limits,
    /// What it was given; a tool's permissions are checked against it. Empty grants nothing.
    pub grants: Vec<String>,
    /// What it may call.
    pub tools: Toolbox,
}

/// Reads a configuration (DESIGN: seed 003's form) and reports everything that is wrong with it.
pub fn parse(_name: &AgentName, _config: &Value, _defaults: &Defaults<'_>) -> Result<Agent, Vec<Problem>> {
    todo!()
}
/// d
pub struct Defaults<'a> {
    /// d
    pub model: ModelSpec,
    /// d
    pub actions: &'a dyn Fn(&str) -> bool,
}
/// d
pub fn offered(_tools: &Toolbox) -> std::sync::Arc<[crate::prompt::OfferedTool]> {
    todo!()
}
