//! A source that keeps every version of its tool: `{"executionType": "editions", "execution": {"tool": "quote"}}`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::{Listed, SourceTool, ToolList};

#[derive(Default)]
pub struct Editions {
    /// The edition that it lists.
    pub newest: AtomicU64,
    /// Editions that it no longer runs.
    pub withdrawn: Mutex<Vec<u64>>,
    /// Whether it cannot say what its tools are called.
    pub silent: AtomicBool,
}

#[async_trait]
impl ToolSource for Editions {
    fn name(&self) -> &'static str {
        "editions"
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["editions"]
    }
    async fn list(&self, _: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        let newest = self.newest.load(Ordering::Relaxed);
        let definition =
            json!({"description": format!("Quotes edition {newest}."), "parameters": {"type": "object"}});
        let quote = Listed::new(definition).with_config(json!(newest).into());
        Ok(Arc::new(ToolList::from([("quote".to_owned(), quote)])))
    }
    async fn names(&self, project: ProjectId) -> Result<Vec<String>, CallFailure> {
        match self.silent.load(Ordering::Relaxed) {
            true => Err(CallFailure::unavailable("no editor is in")),
            false => Ok(self.list(project).await?.keys().cloned().collect()),
        }
    }
    async fn still_offers(&self, tool: &SourceTool, _: ProjectId) -> Result<(), CallFailure> {
        match self.withdrawn.lock().unwrap().contains(&edition(tool)) {
            true => Err(CallFailure::unavailable("withdrawn")),
            false => Ok(()),
        }
    }
    async fn call(&self, tool: &SourceTool, _: &Json, _: &CallContext) -> Result<Called, CallFailure> {
        Ok(Json::from(json!({"edition": edition(tool)})).into())
    }
}

fn edition(tool: &SourceTool) -> u64 {
    let config = tool.config.as_ref().expect("pinned with the tool");
    config.read().expect("its edition")
}
