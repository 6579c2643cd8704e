//! Tools on the gateway's side that do what a test needs.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use toolgate_engine::tools::{CallContext, CallFailure, ServerTools};
use toolgate_kernel::agent::Action;
use toolgate_kernel::id::{CallId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::{EXECUTION_TIMEOUT, Execution, Retry};

/// Larger outputs of runs below become `"too large"`.
pub const FAKE_OUTPUT_BYTES_MAX: usize = 10_000;

/// Actions: `echo` gives its input back; `fail` fails; `panic` panics; `slow` waits for a permit of `gate` and
/// gives its input back; `hang` never ends.
pub struct FakeTools {
    /// What `slow` waits for.
    pub gate: Arc<Semaphore>,
    calls: Mutex<Vec<(CallId, SpaceId)>>,
}

impl Default for FakeTools {
    fn default() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            calls: Mutex::default(),
        }
    }
}

impl FakeTools {
    /// Every call so far, also the same one again.
    pub fn calls(&self) -> Vec<CallId> {
        let calls = self.calls.lock().expect("no panic holds the list");
        calls.iter().map(|(call, _)| *call).collect()
    }
    /// Where each of them was to work.
    pub fn spaces(&self) -> Vec<SpaceId> {
        let calls = self.calls.lock().expect("no panic holds the list");
        calls.iter().map(|(_, space)| *space).collect()
    }
}

#[async_trait]
impl ServerTools for FakeTools {
    fn action(&self, name: &str) -> Option<Action> {
        let known = ["echo", "fail", "panic", "slow", "hang", "signal_parent"].contains(&name);
        known.then(|| Action {
            description: format!("Does {name}."),
            parameters: serde_json::json!({"type": "object"}),
            timeout: EXECUTION_TIMEOUT,
            retry: Retry::Never,
        })
    }
    async fn run(
        &self,
        execution: &Execution,
        input: &Json,
        context: &CallContext,
    ) -> Result<Json, CallFailure> {
        let Execution::Prebuilt { action } = execution else {
            return Err(CallFailure::failed("only actions are faked"));
        };
        self.calls
            .lock()
            .expect("no panic holds the list")
            .push((context.call, context.space));
        (context.progress)(input.clone());
        match action.as_str() {
            "fail" => Err(CallFailure::failed(format!("no luck with {input:?}"))),
            "panic" => panic!("as the test wants"),
            "hang" => std::future::pending().await,
            "slow" => {
                self.gate.acquire().await.expect("gates are not closed").forget();
                Ok(input.clone())
            }
            _ => Ok(input.clone()),
        }
    }
    async fn bounded(&self, output: Json, _: &CallContext) -> Json {
        match output.as_str().len() > FAKE_OUTPUT_BYTES_MAX {
            true => Json::string("too large"),
            false => output,
        }
    }
}
