//! What an author should know of an agent when it is saved.

use toolgate_kernel::agent::{ChildWalk, WARNINGS_MAX, config_warnings};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;

use crate::Engine;
use crate::budget::UnpricedRule;
use crate::store::StoreError;

impl Engine {
    /// What is valid in an agent and most likely not meant: calls, also of agents below it, that can never be answered,
    /// placeholders that nothing fills, misspelt keywords of schemas. What it asks for may be there a moment later, so
    /// these are no errors.
    pub async fn agent_warnings(
        &self,
        project: ProjectId,
        name: &AgentName,
    ) -> Result<Vec<Problem>, StoreError> {
        let Some(top) = self.inner.compiled(project, name, None).await? else {
            return Ok(Vec::new());
        };
        let record = self.inner.store.agent(project, name, None).await?;
        let config = record.map(|record| record.config.to_value()).unwrap_or_default();
        let mut walk = ChildWalk::new(&top.agent, &config);
        while let Some(below) = walk.next_agent() {
            let below = self.inner.compiled(project, &below, None).await?;
            walk.look(below.as_ref().map(|compiled| &*compiled.agent));
        }
        let mut warnings = config_warnings(&config);
        let settings = self.inner.project_settings(project).await?;
        let model = &top.agent.model.name;
        if settings.budgets.limit_cost() && settings.prices.of(model).is_none() {
            let becomes = match settings.budgets.unpriced {
                UnpricedRule::Reject => "so its runs are refused",
                UnpricedRule::Allow => "so its runs count as if they cost nothing",
            };
            let words =
                format!("{model} has no price in prices.models and a budget of cost holds, {becomes}");
            warnings.push(Problem::new("/model", words));
        }
        warnings.extend(walk.warnings());
        warnings.truncate(WARNINGS_MAX);
        Ok(warnings)
    }
}
