//! Settings of projects for tests: the demo model and default limits.

use std::sync::Arc;

use toolgate_engine::budget::BudgetLimits;
use toolgate_engine::project::{ProjectSettings, Projects};
use toolgate_kernel::agent::{ModelName, ModelSpec, Provider};
use toolgate_kernel::tool::{ClientToolLimits, Conflict};

/// The same settings for every project.
pub fn project_settings() -> Arc<dyn Projects> {
    project_settings_with(|_| ())
}

/// The same, changed by the test.
pub fn project_settings_with(change: impl FnOnce(&mut ProjectSettings)) -> Arc<dyn Projects> {
    let name = ModelName {
        provider: Provider::Demo,
        name: "demo".into(),
    };
    let mut settings = ProjectSettings {
        default_model: ModelSpec {
            name,
            base_url: None,
            api_key: None,
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            reasoning_tokens: None,
        },
        client_tools: ClientToolLimits::default(),
        conflict: Conflict::default(),
        budgets: BudgetLimits::default(),
        prices: Arc::default(),
    };
    change(&mut settings);
    Arc::new(settings)
}
