//! Tools that become tasks for a client that knows tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::asking::{Retry, Round, form};
use crate::{Fixture, made, text, unknown};

/// How often a client is told to look at a task, in milliseconds.
const POLL_MS: u64 = 100;
/// How long a job that fails takes to do so.
const FAILURE_DELAY: Duration = Duration::from_millis(300);

impl Fixture {
    pub(crate) async fn job(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let knows_tasks = context
            .client_capabilities()
            .is_some_and(|has| has.supports_tasks());
        let given = request.arguments.clone().unwrap_or_default();
        let seconds = given.get("seconds").and_then(Value::as_u64).unwrap_or_default();
        let filename = given
            .get("filename")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let retry = Retry::of(request);
        let needs_tasks = || {
            Err(ErrorData::missing_required_client_capability(
                ClientCapabilities::builder().enable_tasks().build(),
            ))
        };
        match request.name.as_ref() {
            "slow_compute" if knows_tasks => Ok(self.spawn(move |task| compute(task, seconds))),
            "slow_compute" => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(text("Computed").into())
            }
            "confirm_delete" if knows_tasks => Ok(self.spawn(move |task| confirm(task, filename))),
            "confirm_delete" => {
                let asked =
                    BTreeMap::from([("confirm".to_owned(), form("Delete it?", "confirm", "boolean"))]);
                match self.ask(asked, None, &retry, context).await? {
                    Round::Ask(question) => Ok(question.into()),
                    Round::Answered(_) => Ok(text(format!("Deleted {filename}")).into()),
                }
            }
            _ if !knows_tasks => needs_tasks(),
            "failing_job" => Ok(self.spawn(|_| fail_as_tool())),
            "protocol_error_job" => Ok(self.spawn(|_| fail_as_protocol())),
            "multi_input" => Ok(self.spawn(ask_twice)),
            "test_tool_with_task" => {
                let question = form("What is your name?", "name", "string");
                let asked = BTreeMap::from([("user_name".to_owned(), question)]);
                match self.ask(asked, Some("task"), &retry, context).await? {
                    Round::Ask(question) => Ok(question.into()),
                    Round::Answered(answers) => {
                        let name = answers["user_name"]["content"]["name"]
                            .as_str()
                            .unwrap_or_default();
                        let words = format!("Hello, {name}!");
                        Ok(self.spawn(move |_| async { Ok(text(words)) }))
                    }
                }
            }
            name => Err(unknown("tool", name)),
        }
    }

    fn spawn<F>(&self, job: impl FnOnce(TaskContext) -> F) -> CallToolResponse
    where
        F: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
    {
        let options = TaskOptions::new().with_poll_interval_ms(POLL_MS);
        let task = self.tasks.spawn(options, |task| Box::pin(job(task)));
        CreateTaskResult::new(task).into()
    }
}

async fn compute(task: TaskContext, seconds: u64) -> Result<CallToolResult, TaskExit> {
    tokio::select! {
        () = task.cancelled() => Err(TaskExit::Cancelled),
        () = tokio::time::sleep(Duration::from_secs(seconds)) => Ok(text("Computed")),
    }
}

async fn confirm(task: TaskContext, filename: String) -> Result<CallToolResult, TaskExit> {
    let answer = task
        .request_input("confirm", form("Delete it?", "confirm", "boolean"))
        .await?;
    let words = match answer["action"] == json!("accept") {
        true => format!("Deleted {filename}"),
        false => format!("Kept {filename}"),
    };
    Ok(text(words))
}

async fn fail_as_tool() -> Result<CallToolResult, TaskExit> {
    tokio::time::sleep(FAILURE_DELAY).await;
    Ok(made(
        json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": "The job failed"}]}),
    ))
}

async fn fail_as_protocol() -> Result<CallToolResult, TaskExit> {
    Err(ErrorData::internal_error("The server failed", None).into())
}

async fn ask_twice(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let first = task.request_input("first", form("The first name?", "name", "string"));
    let second = task.request_input("second", form("The second name?", "name", "string"));
    let (first, second) = tokio::join!(first, second);
    Ok(text(format!(
        "{} {}",
        first?["content"]["name"], second?["content"]["name"]
    )))
}
