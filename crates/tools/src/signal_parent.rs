//! `signal_parent`: an interim message to the parent run. The engine passes every output of this tool to the parent.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_engine::tools::{CallContext, CallFailure, SIGNAL_PARENT};
use toolgate_kernel::agent::Action;
use toolgate_kernel::tool::Retry;

use crate::toolkit::ServerTool;

const MESSAGE_CHARS_MAX: usize = 20_000;

/// Sends a message to the parent run.
pub(crate) struct SignalParent;

#[async_trait]
impl ServerTool for SignalParent {
    fn name(&self) -> &'static str {
        SIGNAL_PARENT
    }
    fn action(&self) -> Action {
        Action {
            description: "Tell the agent that started you something before you are done.".into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "message": {"type": "string", "minLength": 1, "maxLength": MESSAGE_CHARS_MAX, "description": "What it should know."},
                },
                "required": ["message"],
            }),
            timeout: Duration::from_secs(10),
            // It has no effect outside the run's own log.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        if context.depth == 0 {
            return Err(CallFailure::failed(
                "no agent started you, so there is none to tell; answer instead",
            ));
        }
        Ok(json!({ "message": given["message"] }))
    }
}
