//! What a tool is: a definition that can be checked, and where it runs.

pub(crate) mod approval_terms;
mod check;
mod client;
mod conflict;
pub(crate) mod definition;
mod execution;
mod prerequisite;
mod query;
mod resolved;
pub(crate) mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name::ToolName;
use crate::schema::Validator;

pub use check::{Checked, Rules, check, check_agent};
pub use client::{ClientToolLimits, KeyKind, client_tools, compile_client, merge, merge_with};
pub use conflict::{Conflict, settle_conflicts};
pub use execution::{Execution, ModelChoice, PromptTool, ResultSchema, Wait};
pub use prerequisite::{Prerequisite, Scope};
pub use query::Query;
pub use resolved::{ApprovalRule, Definition};
pub use source::{BUILT_IN, Binding, Listed, SHARED, SourceTool, ToolList};
pub use toolgate_protocol::tool::{
    ApprovalTerms, Approvers, CLIENT_DEADLINE, ClientTool, ConsentRef, Decider, Filled, Placement, Remember,
    Spoken, TIMEOUT_MAX, VARIABLE_CHARS_MAX, VOICE_CHARS_MAX, Values, Voice, VoiceText, in_output,
};

/// How long a tool on the gateway's side may take by default.
pub const EXECUTION_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a run of its own may take, all that it waits for included, when nobody says.
pub const CHILD_TIMEOUT: Duration = Duration::from_secs(3600);

/// A definition, ready to validate calls. Made by `agent`, `client` and [`Definition::compile`], never by hand.
#[derive(Debug)]
pub struct Tool {
    definition: Definition,
    /// Whether a person has to say yes first.
    pub approval: Approval,
    /// Checks the input.
    pub input: Validator,
    /// Checks the output.
    pub output: Option<Validator>,
    /// SHA-256 of the definition, in hex: pinned by every run that starts with it.
    pub hash: String,
    /// What the client that brought it calls it, where the run had to rename it.
    pub given_name: Option<Arc<str>>,
}

/// Who may see a tool's input and output besides secret principals. Client tools are always seen by members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Nobody: others learn its name only.
    #[default]
    Private,
    /// The members of the space.
    Public,
}

/// Whether a person has to say yes before a call runs.
#[derive(Debug)]
pub enum Approval {
    /// No approval is needed.
    Never,
    /// Every call needs an approval.
    Always,
    /// Yes, when the input fits this schema.
    When(Validator),
}

impl Approval {
    /// Whether this input needs a yes. When in doubt it does.
    pub fn needed(&self, input: &Value) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::When(rule) => rule.may_fit(input),
        }
    }
}

/// What a crash in mid-execution means for a tool on the gateway's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retry {
    /// It may have happened: settle as interrupted and tell the model.
    #[default]
    Never,
    /// Running it again does no harm.
    Safe,
}

/// SHA-256 of a caller's definition, in hex: the same as the compiled tool's, so that one can be kept by it.
pub fn client_tool_hash(tool: &ClientTool) -> String {
    definition::hash(&serde_json::to_value(tool).expect("a definition is JSON"))
}

/// The tools of an agent or a run, by name: the registry. A [`Query`] finds those for a purpose.
pub type Toolbox = BTreeMap<ToolName, Arc<Tool>>;
