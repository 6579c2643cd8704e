//! The execution types that tool sources read, as a project has them at one moment.

use std::sync::Arc;

use serde_json::json;

use crate::members::Members;
use crate::problem::Problems;
use crate::tool::{Binding, Execution, Placement, SourceTool};

/// Reads the `execution` of a tool, given the whole tool; notes what is wrong with it.
pub type ReadExecution = dyn Fn(&Members<'_>) -> Option<Binding> + Send + Sync;

/// What the tool sources of a project offer at one moment. Listing is asynchronous and reading a configuration is not, so
/// a catalog is made first and read against afterwards.
#[derive(Default)]
pub struct Catalog(Vec<ExecutionType>);

/// An execution type that a source reads.
struct ExecutionType {
    name: &'static str,
    source: &'static str,
    placement: Placement,
    read: Box<ReadExecution>,
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
        self.0.push(ExecutionType {
            name,
            source,
            placement,
            read: Box::new(read),
        });
    }
    /// The execution types, in the order they were added.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|kind| kind.name)
    }
    /// Whether `prebuilt` has an action of this name.
    pub(super) fn has_action(&self, name: &str) -> bool {
        let (tool, unheard) = (json!({ "execution": { "action": name } }), Problems::default());
        let tool = Members::open(&tool, "", &["execution"], &unheard);
        tool.is_some_and(|tool| matches!(self.read("prebuilt", &tool), Some(Some(_))))
    }
    /// Reads a tool of this execution type. None when no source reads it.
    pub(super) fn read(&self, name: &str, tool: &Members<'_>) -> Option<Option<(Execution, Usual)>> {
        let kind = self.0.iter().find(|kind| kind.name == name)?;
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
