//! The definitions that a run pins. A run begins with the hash of every tool its model is told of, and the definitions are
//! stored in the same write; a run that goes on later has those, whatever its agent or its sources say by then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toolgate_kernel::event::RunStart;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::ToolName;
use toolgate_kernel::tool::{
    ApprovalRule, ApprovalTerms, Definition, Execution, Placement, Retry, SourceTool, Tool, Toolbox,
    Visibility,
};

use crate::Inner;
use crate::agents::{Compiled, Kit};
use crate::shares::share_of;
use crate::store::StoreError;

impl Inner {
    /// The tools of a run as its model was told of them.
    pub(crate) async fn pinned(
        &self,
        project: ProjectId,
        agent: &Compiled,
        start: &RunStart,
    ) -> Result<Arc<Kit>, StoreError> {
        let share = share_of(project, None);
        let now = self
            .kit(share, agent, &start.client_tools, start.categories.as_deref())
            .await
            .map_err(|_| StoreError::Corrupt("the client tools of a run do not compile".into()))?;
        if now.pins == start.tools {
            return Ok(now);
        }
        let Ok(pins) = start.tools.read::<BTreeMap<ToolName, String>>() else {
            return Ok(now);
        };
        let (same, other): (Vec<_>, Vec<_>) = pins.into_iter().partition(|(name, hash)| {
            let tool = now.toolbox.get(name);
            tool.is_some_and(|tool| tool.hash == *hash)
        });
        let stored = self
            .stored_tools(project, other.iter().map(|(_, hash)| hash))
            .await?;
        let same = same.into_iter().map(|(name, _)| now.toolbox[&name].clone());
        let other = other.into_iter().map(|(name, hash)| {
            let stored = stored.get(&hash).cloned();
            // Before definitions were stored, runs went by the agent's revision.
            let tool = stored.or_else(|| now.toolbox.get(&name).cloned());
            tool.unwrap_or_else(|| Arc::new(gone(name)))
        });
        let tools: Toolbox = same.chain(other).map(|tool| (tool.name.clone(), tool)).collect();
        Ok(Arc::new(Kit::new(tools)))
    }

    /// Those of these definitions that are stored, compiled, by hash.
    pub(crate) async fn stored_tools<'h>(
        &self,
        project: ProjectId,
        hashes: impl Iterator<Item = &'h String>,
    ) -> Result<BTreeMap<String, Arc<Tool>>, StoreError> {
        let (mut tools, mut unknown) = (BTreeMap::new(), Vec::new());
        for hash in hashes {
            match self.agents.tool(project, hash) {
                Some(tool) => drop(tools.insert(hash.clone(), tool)),
                None => unknown.push(hash.clone()),
            }
        }
        if unknown.is_empty() {
            return Ok(tools);
        }
        for stored in self.store.definitions(project, &unknown).await? {
            let definition: Definition = stored
                .definition
                .read()
                .map_err(|error| StoreError::Corrupt(format!("definition {}: {error}", stored.hash)))?;
            let tool = definition
                .compile()
                .map_err(|_| StoreError::Corrupt(format!("definition {} does not compile", stored.hash)))?;
            let tool = Arc::new(tool);
            self.agents.keep_tool(project, &stored.hash, &tool);
            tools.insert(stored.hash, tool);
        }
        Ok(tools)
    }
}

/// Stands for a tool of which nothing is left but its name: a call of it is settled as unavailable.
fn gone(name: ToolName) -> Tool {
    let source = SourceTool {
        source: String::new(),
        tool: name.to_string(),
        placement: Placement::Server,
        config: None,
        listed: None,
    };
    let definition = Definition {
        name,
        description: "This tool was removed.".into(),
        parameters: serde_json::json!({ "type": "object" }).into(),
        output_schema: None,
        title: None,
        category: None,
        triggers: Vec::new(),
        voice: None,
        version: None,
        execution: Execution::Source(Arc::new(source)),
        visibility: Visibility::default(),
        permissions: Vec::new(),
        person_permissions: Vec::new(),
        prerequisites: Vec::new(),
        approval: ApprovalRule::Never,
        approval_terms: ApprovalTerms::default(),
        approval_timeout: None,
        timeout: Duration::from_secs(1),
        retry: Retry::Never,
        deprecated: None,
        shared: None,
    };
    definition.compile().expect("an object is a schema")
}
