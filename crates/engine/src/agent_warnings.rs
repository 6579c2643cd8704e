//! What an author should know of the child runs of an agent when it is saved: calls that nothing will ever answer.

use std::collections::HashSet;

use serde_json::Value;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::Execution;

use crate::Engine;
use crate::store::StoreError;

/// Agents below one agent that are looked at.
const AGENTS_MAX: usize = 100;
/// Warnings that are given at once.
const WARNINGS_MAX: usize = 20;

/// An agent below, and how it is reached.
struct Reached {
    agent: AgentName,
    /// Place of the first agent's tool that leads to it.
    pointer: String,
}

impl Engine {
    /// Calls of an agent and of the agents below it that can never be answered: they would start an agent that is not
    /// there, or one deeper than `limits.depth` of this agent allows. What it asks for may be there a moment later, so
    /// these are no errors.
    pub async fn agent_warnings(
        &self,
        project: ProjectId,
        name: &AgentName,
    ) -> Result<Vec<Problem>, StoreError> {
        let Some(top) = self.inner.compiled(project, name, None).await? else {
            return Ok(Vec::new());
        };
        let depth_max = top.agent.limits.depth;
        let record = self.inner.store.agent(project, name, None).await?;
        let config = record.map(|record| record.config.to_value()).unwrap_or_default();
        let mut warnings = Vec::new();
        let mut seen = HashSet::from([name.clone()]);
        let mut level = vec![Reached {
            agent: name.clone(),
            pointer: String::new(),
        }];
        // Each agent is looked at where it stands highest: what is too deep there is too deep anywhere.
        for depth in 0..=depth_max {
            let mut below = Vec::new();
            for Reached { agent, pointer } in level {
                let Some(compiled) = self.inner.compiled(project, &agent, None).await? else {
                    let words = format!(
                        "there is no agent named {agent} now, and until there is, calls of it fail with UNAVAILABLE"
                    );
                    warnings.push(Problem::new(pointer, words));
                    continue;
                };
                for tool in compiled
                    .agent
                    .tools
                    .values()
                    .filter(|tool| tool.execution.is_run())
                {
                    let pointer = match depth {
                        0 => place(&config, &tool.name),
                        _ => pointer.clone(),
                    };
                    if depth == depth_max {
                        let words = format!(
                            "{} of {agent} would start a run {} deep, and limits.depth of {name} is {depth_max}, so every \
                             call of it fails with LIMIT_EXCEEDED",
                            tool.name,
                            depth + 1
                        );
                        warnings.push(Problem::new(pointer, words));
                    } else if let Execution::Agent { agent, .. } = &tool.execution
                        && seen.len() < AGENTS_MAX
                        && seen.insert(agent.clone())
                    {
                        let agent = agent.clone();
                        below.push(Reached { agent, pointer });
                    }
                }
            }
            level = below;
        }
        warnings.truncate(WARNINGS_MAX);
        Ok(warnings)
    }
}

/// Where a tool stands in a configuration.
fn place(config: &Value, tool: &ToolName) -> String {
    let tools = config["tools"].as_array().into_iter().flatten();
    let index = tools.enumerate().find_map(|(index, written)| {
        let is_it = written["name"] == tool.as_str() || *written == tool.as_str();
        is_it.then_some(index)
    });
    index.map_or_else(|| "/tools".to_owned(), |index| format!("/tools/{index}"))
}
