//! The actions behind `prebuilt` tools. There are none yet.

use async_trait::async_trait;
use toolgate_engine::tools::{CallContext, CallFailure, ServerTools};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;

/// No actions at all.
pub struct NoActions;

#[async_trait]
impl ServerTools for NoActions {
    fn has(&self, _action: &str) -> bool {
        false
    }

    async fn call(&self, action: &str, _input: &Json, _context: &CallContext) -> Result<Json, CallFailure> {
        Err(CallFailure {
            code: ErrorCode::NotFound,
            message: format!("this gateway has no action named {action:?}"),
        })
    }
}
