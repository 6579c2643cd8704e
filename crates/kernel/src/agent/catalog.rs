//! What tool sources offer a project at one moment: execution types, and tools that agents use by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::execution::SPAWN_ACTION;
use crate::guess::guess;
use crate::members::Members;
use crate::name::ToolName;
use crate::problem::preview;
use crate::tool::{BUILT_IN, Binding, Execution, Placement, SourceTool};

/// Names that a problem lists.
const NAMES_TOLD_MAX: usize = 60;

/// Reads the `execution` of a tool, given the whole tool; notes what is wrong with it.
pub type ReadExecution = dyn Fn(&Members<'_>) -> Option<Binding> + Send + Sync;

/// What the tool sources of a project offer at one moment. Listing is asynchronous and reading a configuration is not, so
/// a catalog is made first and read against afterwards.
pub struct Catalog {
    types: Vec<ExecutionType>,
    /// By name, in lower case: names that differ only in case are taken for the same.
    tools: BTreeMap<String, NamedTool>,
    /// Tools that agents use together, by the name of what has them: an MCP server.
    sets: BTreeMap<String, Vec<NamedTool>>,
}

/// A tool that an agent can use by its name alone: `"tools": ["setMemory", "lookup_order"]`.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTool {
    /// What the model calls it.
    pub name: ToolName,
    /// The source that offers it.
    pub source: &'static str,
    /// The tool as an author would write it out, with its name.
    pub written: Value,
    /// Hash of a shared tool. An agent has a copy of such a tool, so a run has to look whether it is still the same.
    pub shared: Option<String>,
}

/// An execution type that a source reads.
struct ExecutionType {
    name: &'static str,
    source: &'static str,
    placement: Placement,
    read: Box<ReadExecution>,
}

impl Default for Catalog {
    /// Nothing but the one action that the kernel itself has.
    fn default() -> Self {
        let mut catalog = Self {
            types: Vec::new(),
            tools: BTreeMap::new(),
            sets: BTreeMap::new(),
        };
        catalog.offer(NamedTool {
            name: SPAWN_ACTION.parse().expect("a name"),
            source: BUILT_IN,
            written: json!({ "name": SPAWN_ACTION, "executionType": "spawn-agent" }),
            shared: None,
        });
        catalog
    }
}

impl Catalog {
    /// Adds an execution type that the source `source` reads.
    pub fn add(
        &mut self,
        name: &'static str,
        source: &'static str,
        placement: Placement,
        read: impl Fn(&Members<'_>) -> Option<Binding> + Send + Sync + 'static,
    ) {
        self.types.push(ExecutionType {
            name,
            source,
            placement,
            read: Box::new(read),
        });
    }
    /// Adds a tool that agents use by its name alone. The first to offer a name keeps it, so that a less trusted source
    /// cannot take it: add the more trusted sources first.
    pub fn offer(&mut self, tool: NamedTool) {
        self.tools.entry(tool.name.folded()).or_insert(tool);
    }
    /// Adds a tool to a set that agents use as a whole: `"mcp": ["time"]`. The set of an agent's own server is named
    /// `<agent>/<server>`.
    pub fn offer_in(&mut self, set: &str, tool: NamedTool) {
        self.sets.entry(set.to_owned()).or_default().push(tool);
    }
    /// The tools of a set, in the order of their names.
    pub fn set(&self, name: &str) -> Option<&[NamedTool]> {
        self.sets.get(name).map(Vec::as_slice)
    }
    /// The sets that every agent can use.
    pub(super) fn set_names(&self) -> impl Iterator<Item = &str> {
        self.sets
            .keys()
            .map(String::as_str)
            .filter(|name| !name.contains('/'))
    }
    /// The tool that an agent gets by this name alone.
    pub fn by_name(&self, name: &str) -> Option<&NamedTool> {
        let tool = self.tools.get(&name.to_ascii_lowercase());
        tool.filter(|tool| tool.name.as_str() == name)
    }
    /// The tool that has this name, or one that differs from it only in case.
    pub fn owner(&self, name: &ToolName) -> Option<&NamedTool> {
        self.tools.get(&name.folded())
    }
    /// All tools that agents can use by name.
    pub fn tools(&self) -> impl Iterator<Item = &NamedTool> {
        self.tools.values()
    }
    /// The tool that an unknown name is most likely a typo of.
    pub(super) fn meant(&self, name: &str) -> Option<&str> {
        let there: Vec<&str> = self.tools().map(|tool| tool.name.as_str()).collect();
        guess(name, &there)
    }
    /// Says that there is no tool of this name, and which there are.
    pub(super) fn unknown(&self, name: &str) -> String {
        let mut there: Vec<&str> = self.tools().map(|tool| tool.name.as_str()).collect();
        there.sort_unstable();
        let meant = match self.meant(name) {
            Some(meant) => format!("; did you mean {meant:?}? There are: "),
            None => "; there are: ".to_owned(),
        };
        let more = match there.len() > NAMES_TOLD_MAX {
            true => ", and more",
            false => "",
        };
        there.truncate(NAMES_TOLD_MAX);
        format!(
            "there is no tool named {}{meant}{}{more}",
            preview(name),
            there.join(", ")
        )
    }
    /// The execution types, in the order they were added.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.types.iter().map(|kind| kind.name)
    }
    /// Reads a tool of this execution type. None when no source reads it.
    pub(super) fn read(&self, name: &str, tool: &Members<'_>) -> Option<Option<(Execution, Usual)>> {
        let kind = self.types.iter().find(|kind| kind.name == name)?;
        let Some(binding) = (kind.read)(tool) else {
            return Some(None);
        };
        let execution = Execution::Source(Arc::new(SourceTool {
            source: kind.source.to_owned(),
            tool: binding.tool,
            placement: kind.placement,
            config: binding.config,
            listed: binding.listed,
        }));
        Some(Some((execution, binding.usual)))
    }
}

pub(super) type Usual = serde_json::Map<String, serde_json::Value>;
