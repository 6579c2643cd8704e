//! Counts down, a second at a time, and cheers.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::tool::Retry;
use toolgate_tools::ServerTool;

pub struct Countdown;

#[async_trait]
impl ServerTool for Countdown {
    fn name(&self) -> &'static str {
        "countdown"
    }
    fn action(&self) -> Action {
        Action {
            description: "Count down by seconds, then cheer.".into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "from": {"type": "integer", "minimum": 0, "description": "Seconds."},
                    "cheers": {"type": "integer", "minimum": 1, "description": "How often to cheer."},
                },
                "required": ["from"],
            }),
            timeout: Duration::from_secs(5),
            // Counting again harms nobody, so a crash in the middle is not the end of the call.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, input: Value, context: &CallContext) -> Result<Value, CallFailure> {
        for left in (1..=input["from"].as_u64().unwrap_or_default()).rev() {
            (context.progress)(json!({"left": left}).into());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let cheers = input["cheers"].as_u64().unwrap_or(1);
        Ok(json!({"said": "Hurrah! ".repeat(cheers as usize)}))
    }
}
