//! What a tool source lists, and what an agent's configuration makes of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Placement, Retry, definition};
use crate::agent::Action;
use crate::json::Json;
use crate::members::Members;

/// Name of the source of the gateway's own tools.
pub const BUILT_IN: &str = "built-in";
/// Name of the source of the tools that the agents of a project share.
pub const SHARED: &str = "shared";

/// A source's part of a definition: whom to ask for which tool, and with what configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceTool {
    /// The source's name.
    pub source: String,
    /// The source's own name for the tool.
    pub tool: String,
    /// Where the source runs its tools.
    pub placement: Placement,
    /// What the agent's author wrote for this tool, or what the source listed it with ([`Listed::with_config`]). Only the
    /// source reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Json>,
    /// The [`Listed::hash`] at the time; none for a tool that only its configuration defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<String>,
}

/// The tools that a source lists for a project, by the source's own names.
pub type ToolList = BTreeMap<String, Listed>;

/// A tool as its source describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    usual: Map<String, Value>,
    hash: String,
    config: Option<Json>,
}

impl Listed {
    /// A tool with the members of a definition (`description`, `parameters`, `outputSchema`, `approval`, …), which hold
    /// where the author of an agent says nothing else. Any change of them counts as another tool.
    pub fn new(definition: Value) -> Self {
        Self {
            hash: definition::hash(&definition),
            usual: members(definition),
            config: None,
        }
    }
    /// The same tool, with what its source wants to read back in [`SourceTool::config`] when it is called: a run that pins
    /// the tool pins this too.
    pub fn with_config(self, config: Json) -> Self {
        Self {
            config: Some(config),
            ..self
        }
    }
    /// What its source listed it with.
    pub fn config(&self) -> Option<&Json> {
        self.config.as_ref()
    }
    /// The members of the definition that the source gives.
    pub fn members(&self) -> &Map<String, Value> {
        &self.usual
    }
    /// What tells this state of the tool from another.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// A tool of the gateway's own code is the same tool while its schema is: a new version of the gateway may find better
/// words for it, and the calls that waited meanwhile still mean what they meant.
impl From<Action> for Listed {
    fn from(action: Action) -> Self {
        let hash = definition::hash(&action.parameters);
        let usual = members(json!({
            "description": action.description,
            "parameters": action.parameters,
            "timeout": action.timeout.as_secs_f64(),
            "retry": match action.retry {
                Retry::Never => "never",
                Retry::Safe => "safe",
            },
        }));
        Self {
            usual,
            hash,
            config: None,
        }
    }
}

/// The members of an object.
pub(crate) fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// What a source makes of the `execution` that an agent's author wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    pub(crate) tool: String,
    pub(crate) config: Option<Json>,
    pub(crate) listed: Option<String>,
    /// Members of the definition that hold where the author says nothing else.
    pub(crate) usual: Map<String, Value>,
}

impl Binding {
    /// The tool that the member `member` of `execution` names in a source's list. None when there is no such tool, which
    /// is noted as `unknown` followed by the name.
    pub fn named(tool: &Members<'_>, member: &str, list: &ToolList, unknown: &str) -> Option<Self> {
        Self::named_with(tool, member, &[], list, unknown)
    }
    /// The same for an `execution` that may have the members `more` too.
    pub fn named_with(
        tool: &Members<'_>,
        member: &str,
        more: &[&str],
        list: &ToolList,
        unknown: &str,
    ) -> Option<Self> {
        let (section, name) = tool.named_with(member, more)?;
        let Some(listed) = list.get(name) else {
            let there: Vec<&str> = list.keys().map(String::as_str).collect();
            let hint = match crate::guess::guess(name, &there) {
                Some(meant) => format!("; did you mean {meant:?}? There are: {}", there.join(", ")),
                None if there.is_empty() => String::new(),
                None => format!("; there are: {}", there.join(", ")),
            };
            section.wrong(
                member,
                format!("{unknown} {}{hint}", crate::problem::preview(name)),
            );
            return None;
        };
        Some(Self::listed(name, listed))
    }
    /// The tool that a source lists by this name, for a source that looks it up by itself.
    pub fn listed(name: &str, listed: &Listed) -> Self {
        Self {
            tool: name.to_owned(),
            config: listed.config.clone(),
            listed: Some(listed.hash.clone()),
            usual: listed.usual.clone(),
        }
    }
    /// The same tool, with what its source wants to read back in [`SourceTool::config`] when it is called.
    pub fn with_config(self, config: Json) -> Self {
        Self {
            config: Some(config),
            ..self
        }
    }
    /// A tool that its configuration defines, with members of the definition that hold where the author says nothing else.
    pub fn configured(tool: impl Into<String>, config: Json, usual: Value) -> Self {
        Self {
            tool: tool.into(),
            config: Some(config),
            listed: None,
            usual: members(usual),
        }
    }
}
