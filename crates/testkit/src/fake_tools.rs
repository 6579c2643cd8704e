//! Built-in tools that do what a test needs.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use toolgate_engine::tools::{BUILT_IN, CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::agent::Action;
use toolgate_kernel::id::{CallId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{Said, Turn};
use toolgate_kernel::tool::{Binding, EXECUTION_TIMEOUT, Listed, Retry, SourceTool, ToolList};

const TOOLS: [&str; 7] = [
    "echo",
    "context",
    "fail",
    "panic",
    "slow",
    "hang",
    "signal_parent",
];

/// Fake of the built-in source. Tools: `echo` returns its input; `context` returns its call context; `fail` fails;
/// `panic` panics; `slow` waits for a permit of `gate` and returns its input; `hang` never ends.
pub struct FakeTools {
    /// Permits that `slow` waits for.
    pub gate: Arc<Semaphore>,
    list: Mutex<Arc<ToolList>>,
    calls: Mutex<Vec<(CallId, SpaceId)>>,
    cancels: Mutex<Vec<CancellationToken>>,
}

impl Default for FakeTools {
    fn default() -> Self {
        let listed = |name: &str| {
            let action = Action {
                description: format!("Does {name}."),
                parameters: json!({"type": "object"}),
                timeout: EXECUTION_TIMEOUT,
                retry: Retry::Never,
            };
            (name.to_owned(), action.into())
        };
        Self {
            gate: Arc::new(Semaphore::new(0)),
            list: Mutex::new(Arc::new(TOOLS.map(listed).into())),
            calls: Mutex::default(),
            cancels: Mutex::default(),
        }
    }
}

impl FakeTools {
    /// The list of tools from now on: `None` removes a tool, `Some` puts another definition in its place.
    pub fn relist(&self, name: &str, listed: Option<Listed>) {
        let mut list = self.list.lock().expect("no panic holds the list");
        let list = Arc::make_mut(&mut list);
        match listed {
            Some(listed) => list.insert(name.to_owned(), listed),
            None => list.remove(name),
        };
    }
    /// Ids of all calls so far, repeated ones included.
    pub fn calls(&self) -> Vec<CallId> {
        let calls = self.calls.lock().expect("no panic holds the list");
        calls.iter().map(|(call, _)| *call).collect()
    }
    /// Space of each call.
    pub fn spaces(&self) -> Vec<SpaceId> {
        let calls = self.calls.lock().expect("no panic holds the list");
        calls.iter().map(|(_, space)| *space).collect()
    }
    /// Cancellation tokens of all calls so far.
    pub fn cancels(&self) -> Vec<CancellationToken> {
        self.cancels.lock().expect("no panic holds the list").clone()
    }
}

#[async_trait]
impl ToolSource for FakeTools {
    fn name(&self) -> &'static str {
        BUILT_IN
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["prebuilt"]
    }
    fn read(&self, tool: &Members<'_>, list: &ToolList) -> Option<Binding> {
        Binding::named(tool, "action", list, "the gateway has no action named")
    }
    fn written_out(&self, name: &str, _: &Listed) -> Option<Value> {
        Some(json!({ "executionType": "prebuilt", "execution": { "action": name } }))
    }
    async fn list(&self, _: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        Ok(self.list.lock().expect("no panic holds the list").clone())
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        self.calls
            .lock()
            .expect("no panic holds the list")
            .push((context.call, context.space));
        self.cancels
            .lock()
            .expect("no panic holds the list")
            .push(context.cancel.clone());
        (context.progress)(input.clone());
        match tool.tool.as_str() {
            "context" => Ok(Json::from(seen(context)).into()),
            "fail" => Err(CallFailure::failed(format!("no luck with {input:?}"))),
            "panic" => panic!("as the test wants"),
            "hang" => std::future::pending().await,
            "slow" => {
                self.gate.acquire().await.expect("gates are not closed").forget();
                Ok(input.clone().into())
            }
            _ => Ok(input.clone().into()),
        }
    }
}

/// The call context as JSON.
fn seen(context: &CallContext) -> Value {
    let profile = context.profile.as_ref();
    json!({
        "history": context.turns.iter().map(|turn| words(turn)).collect::<Vec<_>>(),
        "profile": profile.map(|who| json!({"subject": who.subject, "name": who.name, "metadata": who.metadata})),
        "tools": context.tools,
        "grants": context.grants,
        "agent": context.agent,
        "entity": context.entity,
        "space": context.space,
        "depth": context.depth,
        "seconds": context.deadline.since(context.now).as_secs(),
        "cancelled": context.cancel.is_cancelled(),
    })
}

/// Role and text of a turn.
fn words(turn: &Turn) -> String {
    let (who, words): (&str, String) = match turn {
        Turn::User(parts) => ("user", parts.iter().filter_map(text).collect()),
        Turn::Assistant(said) => ("agent", said.iter().filter_map(said_text).collect()),
        Turn::Results(_) => ("results", String::new()),
    };
    format!("{who}: {words}")
}

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::Image { .. } => None,
    }
}

fn said_text(said: &Said) -> Option<&str> {
    match said {
        Said::Text(text) => Some(text),
        Said::Reasoning { .. } | Said::Call { .. } => None,
    }
}
