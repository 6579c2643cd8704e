//! A tool source that hands its calls to a server of its own, which may ask people before it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_engine::tools::{CallContext, CallFailure, Called, Delegation, ToolSource};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Answer, Ask, Question};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Listed, Placement, SourceTool, ToolList};

/// How soon a task wants to be looked at again.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The source `tasks` with the tools `work` and `work_safe` (`retry: safe`). A call's `plan` is a list of words, and its task
/// goes through them: `wait` is under way until it is looked at, `ask` asks for a `seat` (a form) and `page` to visit a page,
/// `both` the two at once, `end` gives the answers as output, `fail` fails, `lost` has lost the task, `stay` never ends.
/// Its state is a remote server's: it outlives the engines that are given the same one.
#[derive(Default)]
pub struct TaskSource {
    tasks: Mutex<BTreeMap<String, Task>>,
}

/// A task as its server knows it.
#[derive(Debug, Clone, Default)]
pub struct Task {
    plan: Vec<String>,
    at: usize,
    /// How often it was started.
    pub starts: usize,
    /// How often it was asked about without answers.
    pub looks: usize,
    /// Answers that it was given, as JSON.
    pub answers: Vec<Value>,
    /// How often nobody wanted it any more.
    pub abandoned: usize,
}

impl TaskSource {
    /// Every task there was, by name: the id of its call.
    pub fn tasks(&self) -> BTreeMap<String, Task> {
        self.lock().clone()
    }
    /// The only task there was.
    pub fn task(&self) -> Task {
        let tasks = self.tasks();
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks.into_values().next().expect("counted")
    }
    /// From now on no task is known any more.
    pub fn lose_all(&self) {
        for task in self.lock().values_mut() {
            task.plan = vec!["lost".into()];
            task.at = 0;
        }
    }
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.tasks.lock().expect("no panic holds the tasks")
    }
}

#[async_trait]
impl ToolSource for TaskSource {
    fn name(&self) -> &'static str {
        "tasks"
    }
    fn placement(&self) -> Placement {
        Placement::Mcp
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["tasks"]
    }
    async fn list(&self, _: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        let listed = |name: &str, retry: &str| {
            let tool = json!({
                "description": "Works elsewhere.", "parameters": {"type": "object"}, "retry": retry, "timeout": "60s",
            });
            (name.to_owned(), Listed::new(tool))
        };
        let tools = [listed("work", "never"), listed("work_safe", "safe")];
        Ok(Arc::new(ToolList::from(tools)))
    }
    async fn call(&self, _: &SourceTool, input: &Json, context: &CallContext) -> Result<Called, CallFailure> {
        let name = context.call.to_string();
        let mut tasks = self.lock();
        let task = tasks.entry(name.clone()).or_default();
        task.starts += 1;
        task.plan = words(&input.to_value()["plan"]);
        task.stand(&name, context.now)
    }
    async fn resume(
        &self,
        _: &SourceTool,
        _: &Json,
        name: &str,
        answers: &[Answer],
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let mut tasks = self.lock();
        let task = tasks.get_mut(name).expect("a task that was started");
        match (task.word(), answers) {
            ("wait", []) => task.at += 1,
            ("ask" | "page" | "both", [_, ..]) => {
                let told = answers.iter().map(|answer| {
                    let content = answer.content.as_ref().map(Json::to_value);
                    json!({ "key": answer.key, "action": answer.action, "content": content })
                });
                task.answers.extend(told);
                task.at += 1;
            }
            _ => {}
        }
        task.looks += usize::from(answers.is_empty());
        task.stand(name, context.now)
    }
    async fn abandon(&self, _: &SourceTool, name: &str, _: ProjectId) {
        let mut tasks = self.lock();
        tasks.get_mut(name).expect("a task that was started").abandoned += 1;
    }
}

impl Task {
    fn word(&self) -> &str {
        self.plan.get(self.at).map_or("end", String::as_str)
    }

    /// Where it stands.
    fn stand(&self, name: &str, now: Time) -> Result<Called, CallFailure> {
        let delegated = |check_at: Option<Time>, questions| {
            Ok(Called::Delegated(Delegation {
                task: name.into(),
                check_at,
                questions,
            }))
        };
        match self.word() {
            "wait" | "stay" => delegated(Some(now.after(LOOK_AGAIN)), Vec::new()),
            "ask" => delegated(None, vec![seat()]),
            "page" => delegated(Some(now.after(LOOK_AGAIN)), vec![page()]),
            "both" => delegated(None, vec![seat(), page()]),
            "fail" => Err(CallFailure::failed("the task has failed")),
            "lost" => Err(CallFailure::new(ErrorCode::Interrupted, "the task is lost")),
            _ => Ok(Json::from(json!({ "answers": self.answers })).into()),
        }
    }
}

fn seat() -> Question {
    Question {
        key: "seat".into(),
        message: "Which seat?".into(),
        timeout: None,
        ask: Ask::Form {
            schema: json!({
                "type": "object", "properties": {"seat": {"type": "string", "maxLength": 3}}, "required": ["seat"],
            })
            .into(),
        },
    }
}

fn page() -> Question {
    Question {
        key: "page".into(),
        message: "Please sign in.".into(),
        timeout: None,
        ask: Ask::Url {
            url: "https://airline.example/sign-in".into(),
        },
    }
}

fn words(plan: &Value) -> Vec<String> {
    let words = plan.as_array().into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}
