//! A whole tool source: one tool, which rolls a die, for agents that say `{"executionType": "dice", "execution": {"tool": "roll"}}`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::{Listed, Placement, SourceTool, ToolList};

pub struct Dice;

#[async_trait]
impl ToolSource for Dice {
    fn name(&self) -> &'static str {
        "dice"
    }
    fn placement(&self) -> Placement {
        Placement::Plugin
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["dice"]
    }
    async fn list(&self, _: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        let roll = json!({
            "description": "Roll a die.",
            "parameters": {"type": "object", "properties": {"sides": {"type": "integer", "minimum": 2}}, "required": ["sides"]},
            "retry": "safe",
        });
        Ok(Arc::new(ToolList::from([("roll".to_owned(), Listed::new(roll))])))
    }
    async fn call(&self, _: &SourceTool, input: &Json, context: &CallContext) -> Result<Called, CallFailure> {
        let sandboxed = context.sandboxed(&[]);
        // The same call rolls the same again after a crash.
        let seed = u64::from(sandboxed.call.number) + 3;
        let rolled = json!({"rolled": seed % input.to_value()["sides"].as_u64().unwrap_or(6) + 1});
        Ok(Json::from(rolled).into())
    }
}
