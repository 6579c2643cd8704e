//! A call that is a run of its own: started, followed to its end, and its answer brought up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::call::{Call, ErrorCode, Outcome};
use toolgate_kernel::event::{EndReason, Event, RunFinish, RunStart, Seq, Status};
use toolgate_kernel::id::{EntityId, MessageId, ProjectId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::run::json_in;
use toolgate_kernel::template::plain;
use toolgate_kernel::tool::{Execution, Tool};

use super::Driver;
use crate::family::{Birth, ChildStart};
use crate::feed::{End, Scope};
use crate::start::Kinship;
use crate::store::StoreError;
use crate::tools::{CallContext, SIGNAL_PARENT};
use crate::{Engine, Inner};

/// How long to wait before a child that cannot be followed now is followed again.
const FOLLOW_DELAY: Duration = Duration::from_millis(100);

impl Driver {
    /// Runs a call that is a run of its own.
    pub(super) fn run_below(
        &self,
        call: &Call,
        tool: &Tool,
        history: &[Arc<Turn>],
        child: RunId,
    ) -> BoxFuture<'static, Outcome> {
        let start = match self.child_of(call, tool, child) {
            Ok(start) => start,
            Err(outcome) => return std::future::ready(outcome).boxed(),
        };
        // What is asked for by a tool made of words is the tool's, whoever answers.
        let name = match &tool.execution {
            Execution::Prompt(_) => tool.name.to_string(),
            _ => start.agent.to_string(),
        };
        let context = self.context(call, tool, history, CancellationToken::new());
        let inner = self.inner.clone();
        async move {
            match child_run(inner.clone(), start, &name, &context).await {
                Outcome::Output(output) => Outcome::Output(inner.tools.bounded(output, &context).await),
                failure @ Outcome::Error { .. } => failure,
            }
        }
        .boxed()
    }

    /// The run that executes a call, as it begins.
    fn child_of(&self, call: &Call, tool: &Tool, child: RunId) -> Result<ChildStart, Outcome> {
        let own = self.run.agent();
        let input = call.input().to_value();
        let (agent, behind, text) = match &tool.execution {
            Execution::Prompt(prompt) => {
                let text = prompt.prompt.fill(&input, plain);
                (own.name.clone(), Some(tool.name.clone()), text)
            }
            Execution::Spawn => {
                let named = input["agent"].as_str().unwrap_or_default();
                let agent = named.parse().map_err(|_| {
                    Outcome::error(
                        ErrorCode::ValidationFailed,
                        format!("{named:?} is no name of an agent"),
                    )
                })?;
                (agent, None, child_text(&call.input(), &input))
            }
            Execution::Agent { agent } => (agent.clone(), None, child_text(&call.input(), &input)),
            _ => unreachable!("only these are runs of their own"),
        };
        Ok(ChildStart {
            id: child,
            project: self.project,
            agent,
            revision: behind.is_some().then_some(self.run.revision()),
            kinship: Kinship {
                root: self.root,
                home: self.home,
                parent: call.tool.call,
                depth: self.run.depth() + 1,
                behind,
                budget: self.run.budget(),
            },
            message: child_message(child, self.run.speaker(), text),
        })
    }
}

/// What a child run is asked: the input's `prompt`, or else all of it.
fn child_text(input: &Json, value: &serde_json::Value) -> String {
    match value.get("prompt").and_then(|prompt| prompt.as_str()) {
        Some(prompt) => prompt.to_owned(),
        None => input.as_str().to_owned(),
    }
}

fn child_message(child: RunId, from: Option<EntityId>, text: String) -> Message {
    // The same message however often the start is tried.
    let message_id = MessageId::from_bytes(child.to_bytes());
    Message {
        message_id,
        from,
        parts: vec![Part::Text { text }],
        metadata: None,
    }
}

/// Starts a child run unless it is there, and waits for its end.
async fn child_run(inner: Arc<Inner>, start: ChildStart, name: &str, context: &CallContext) -> Outcome {
    let (child, agent) = (start.id, start.agent.clone());
    match inner.start_child(start).await {
        Ok(Birth::Started) => {}
        Ok(Birth::NoAgent(known)) => return Outcome::error(ErrorCode::Unavailable, no_agent(&agent, &known)),
        Ok(Birth::Ended) => return Outcome::error(ErrorCode::Cancelled, "the first run has ended"),
        Ok(Birth::UsedUp(words)) => return Outcome::error(ErrorCode::LimitExceeded, words),
        Err(error) => {
            tracing::warn!(run = %child, %error, "a child run could not be started");
            return Outcome::error(ErrorCode::Unavailable, "the agent could not be started");
        }
    }
    follow_to_end(&Engine { inner }, child, name, context).await
}

fn no_agent(agent: &AgentName, known: &[AgentName]) -> String {
    let known: Vec<&str> = known.iter().map(AgentName::as_str).collect();
    format!("there is no agent named {agent}; there are: {}", known.join(", "))
}

/// What a child run says on its way.
#[derive(Default)]
struct Told {
    text: String,
    /// The tools by which it tells its parent something.
    signalling: BTreeSet<ToolName>,
    /// What it told its parent before its end.
    signals: Vec<serde_json::Value>,
    /// Its answer is JSON of a form.
    formed: bool,
}

async fn follow_to_end(engine: &Engine, child: RunId, name: &str, context: &CallContext) -> Outcome {
    let mut told = Told::default();
    let mut cursor = Seq(0);
    loop {
        let Ok(mut following) = engine.subscribe(Scope::Run(child), cursor).await else {
            tokio::time::sleep(FOLLOW_DELAY).await;
            continue;
        };
        'following: loop {
            let after = following.cursor();
            let batch = match following.next().await {
                Ok(batch) => batch,
                Err(End::Finished) => {
                    return Outcome::error(ErrorCode::ExecutionFailed, "the agent gave no answer");
                }
                Err(End::Cut) => break,
            };
            for (seq, event) in batch.placed().filter(|(seq, _)| *seq > after) {
                match event {
                    Event::RunStart(start) => {
                        told.formed = start.behind.is_some();
                        let Ok(signalling) = engine.inner.signalling(context.project, start).await else {
                            tokio::time::sleep(FOLLOW_DELAY).await;
                            break 'following;
                        };
                        told.signalling = signalling;
                    }
                    Event::StepStart(_) => told.text.clear(),
                    Event::TextEnd(e) => told.text.push_str(&e.text),
                    Event::ToolOutputAvailable(e) if told.signalling.contains(e.tool_name.as_ref()) => {
                        let signal = e.output.as_ref().map_or_else(Json::null, Clone::clone);
                        told.signals.push(signal.to_value());
                        (context.progress)(signal);
                    }
                    Event::RunFinish(end) => return outcome_of(end, name, told),
                    _ => {}
                }
                cursor = seq;
            }
        }
    }
}

impl Inner {
    /// The tools of a run by which it tells its parent something, whatever they are called.
    async fn signalling(
        &self,
        project: ProjectId,
        start: &RunStart,
    ) -> Result<BTreeSet<ToolName>, StoreError> {
        let compiled = self.compiled(project, &start.agent, Some(start.revision)).await?;
        let agent = compiled.and_then(|agent| agent.behind(start.behind.as_ref()));
        let tools = agent.iter().flat_map(|agent| agent.tools.toolbox.values());
        let signals = |tool: &&Arc<Tool>| matches!(&tool.execution, Execution::Prebuilt { action } if action == SIGNAL_PARENT);
        Ok(tools.filter(signals).map(|tool| tool.name.clone()).collect())
    }
}

fn outcome_of(end: &RunFinish, name: &str, told: Told) -> Outcome {
    match end.status {
        Status::Completed => {
            // A tool made of words gives JSON when its answer is JSON; that it has its form was checked by the run.
            let answer = match json_in(&told.text) {
                Ok(value) if told.formed => value,
                _ => told.text.into(),
            };
            let output = match told.signals.is_empty() {
                true => answer,
                false => serde_json::json!({ "answer": answer, "signals": told.signals }),
            };
            Outcome::Output(output.into())
        }
        Status::Cancelled => Outcome::error(ErrorCode::Cancelled, format!("{name} was cancelled")),
        Status::Failed
        | Status::Queued
        | Status::Running
        | Status::WaitingTool
        | Status::WaitingApproval
        | Status::WaitingTime => {
            let (code, why) = match end.reason {
                EndReason::InvalidOutput => (
                    ErrorCode::InvalidOutput,
                    "its answer has not the form it must have",
                ),
                EndReason::Limit => (ErrorCode::LimitExceeded, "it used up what it may"),
                _ => (ErrorCode::ExecutionFailed, "it could not answer"),
            };
            let detail = end.error.as_deref().unwrap_or(why);
            Outcome::error(code, format!("{name} failed: {detail}"))
        }
    }
}
