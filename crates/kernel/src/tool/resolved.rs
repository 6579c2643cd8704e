//! A definition as a run has it: everything filled in, by its author, by its source or by default. It is stored under its
//! hash, and a run that goes on after a restart has the tools that its model was told of, whatever became of them since.

use std::ops::Deref;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Approval, ApprovalTerms, BUILT_IN, Execution, Placement, Prerequisite, Retry, SHARED, Tool, Visibility,
    Voice, definition,
};
use crate::agent::Starter;
use crate::json::Json;
use crate::name::ToolName;
use crate::problem::Problem;
use crate::schema::{Profile, Validator};
use crate::view::hidden;

/// A resolved definition. Stored: members may be added with a default, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// What the model calls it.
    pub name: ToolName,
    /// Description that the model is given.
    pub description: String,
    /// JSON Schema of the input.
    pub parameters: Json,
    /// JSON Schema of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for: creation, navigation, utility, or the project's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Words of a person that suggest it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// What is said aloud of its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Its author's number for this state of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What executes the tool.
    pub execution: Execution,
    /// Who may see its input and output besides secret principals.
    pub visibility: Visibility,
    /// What the agent must have been granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// What the person whom the run works for must have been granted, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub person_permissions: Vec<String>,
    /// Tools that must have given an output before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prerequisites: Vec<Prerequisite>,
    /// Whether a person has to say yes first.
    pub approval: ApprovalRule,
    /// Who may say it, and on what terms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approval_terms: ApprovalTerms,
    /// How long a call waits for a decision; [`APPROVAL_EXPIRY`](crate::run::APPROVAL_EXPIRY) if the author does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout: Option<Duration>,
    /// Deadline of an execution, or of a client's answer.
    pub timeout: Duration,
    /// What a crash in mid-execution means.
    pub retry: Retry,
    /// Set when it should not be used any more; the words travel with the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Hash of the shared tool that it was copied from. A call fails once the project no longer has that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
}

/// Whether a person has to say yes before a call runs, as it is written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalRule {
    /// No approval is needed.
    #[default]
    Never,
    /// Every call needs an approval.
    Always,
    /// Yes, when the input fits this schema.
    When(Json),
}

fn is_default(terms: &ApprovalTerms) -> bool {
    *terms == ApprovalTerms::default()
}

impl Definition {
    /// The definition that was stored as `stored`.
    pub fn read(stored: &Json) -> Result<Self, serde_json::Error> {
        stored.read()
    }
    /// What is stored of it. It holds what the agent's record holds of its tools, keys in `execution` included: never
    /// shown as it is.
    pub fn stored(&self) -> Json {
        serde_json::to_value(self).expect("a definition is JSON").into()
    }
    /// SHA-256 of the definition, in hex. The order of members does not matter.
    pub fn hash(&self) -> String {
        definition::hash(&serde_json::to_value(self).expect("a definition is JSON"))
    }
    /// The source that the definition comes from: none when the agent's own configuration defines it.
    pub fn source(&self) -> Option<&str> {
        match (&self.shared, &self.execution) {
            (Some(_), _) => Some(SHARED),
            (None, Execution::Source(tool)) if tool.listed.is_some() => Some(&tool.source),
            (None, Execution::Spawn) => Some(BUILT_IN),
            (None, _) => None,
        }
    }
    /// What people call the tool.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(self.name.as_str())
    }
    /// Where the tool runs.
    pub fn placement(&self) -> Placement {
        self.execution.placement()
    }
    /// Whether users see its inputs and outputs: it runs on a client, or its author shows it.
    pub fn is_shown(&self) -> bool {
        !hidden(self.placement(), self.visibility == Visibility::Public)
    }
    /// Whether somebody who may start its agent may call it without a model: a backend any tool, a user those that it is
    /// shown.
    pub fn is_callable_by(&self, who: &Starter) -> bool {
        *who == Starter::Backend || self.is_shown()
    }
    /// Makes it ready to validate calls. Its schemas compiled when it was made, so only one that came otherwise has
    /// problems.
    pub fn compile(self) -> Result<Tool, Vec<Problem>> {
        let compile = |schema: &Json, pointer| Validator::compile(schema, Profile::Trusted, pointer);
        let input = compile(&self.parameters, "/parameters")?;
        let output = self.output_schema.as_ref();
        let output = output
            .map(|schema| compile(schema, "/outputSchema"))
            .transpose()?;
        let approval = match &self.approval {
            ApprovalRule::Never => Approval::Never,
            ApprovalRule::Always => Approval::Always,
            ApprovalRule::When(schema) => Approval::When(compile(schema, "/approval/when")?),
        };
        Ok(Tool::new(self, input, output.map(Validator::of_output), approval))
    }
}

impl Tool {
    /// A definition whose schemas are compiled.
    pub(crate) fn new(
        definition: Definition,
        input: Validator,
        output: Option<Validator>,
        approval: Approval,
    ) -> Self {
        Self {
            hash: definition.hash(),
            definition,
            approval,
            input,
            output,
            given_name: None,
        }
    }
}

impl Deref for Tool {
    type Target = Definition;
    fn deref(&self) -> &Definition {
        &self.definition
    }
}
