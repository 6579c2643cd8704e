//! What is due, done: asking the model, running calls, following child runs.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::call::{Call, CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{EndReason, Event, RunFinish, Seq, Status, ToolProgress};
use toolgate_kernel::id::{EntityId, MessageId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::run::json_in;
use toolgate_kernel::template::plain;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Execution, Tool};
use tracing::Instrument;

use super::{Done, Driver};
use crate::feed::{End, Scope};
use crate::model::{Ask, ModelError, ModelErrorKind};
use crate::post::{Birth, ChildStart};
use crate::reply::Gathering;
use crate::tools::CallContext;
use crate::{Engine, Inner};

/// The action by which a child run tells its parent something before its end.
const SIGNAL_PARENT: &str = "signal_parent";

impl Driver {
    /// Asks the model for a step.
    pub(crate) fn ask(
        &self,
        step: u32,
        failures: u32,
        not_before: Option<Time>,
        history: Arc<[Arc<Turn>]>,
    ) -> BoxFuture<'static, Done> {
        let inner = self.inner.clone();
        let agent = self.run.agent().clone();
        let turns = history.iter().chain(self.run.turns()).cloned().collect();
        let ask = Ask {
            model: agent.model.clone(),
            instructions: agent.instructions.as_str().into(),
            turns,
            tools: self.kit.offered.clone(),
            tool_choice: agent.tool_choice.clone(),
        };
        let mut gathering = Gathering::new(
            self.run.next_call(0),
            step,
            self.kit.toolbox.clone(),
            self.driving.clone(),
            inner.clock.clone(),
        );
        let span = tracing::info_span!(
            "chat",
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.request.model = %ask.model.name.name,
            gen_ai.usage.input_tokens = tracing::field::Empty,
            gen_ai.usage.output_tokens = tracing::field::Empty,
            toolgate.run = %self.id,
            toolgate.step = step,
        );
        let asking = async move {
            if let Some(wait) = not_before
                .map(|moment| moment.since(inner.clock.now()))
                .filter(|w| !w.is_zero())
            {
                tokio::time::sleep(wait).await;
            }
            let replying = AssertUnwindSafe(inner.model.reply(&ask, &mut gathering)).catch_unwind();
            let ending = replying.await.unwrap_or_else(|_| {
                let message = "the model's adapter broke down".to_owned();
                Err(ModelError {
                    message,
                    kind: ModelErrorKind::Retryable,
                    retry_after: None,
                })
            });
            if let Ok(ending) = &ending {
                let span = tracing::Span::current();
                span.record("gen_ai.usage.input_tokens", ending.usage.input_tokens);
                span.record("gen_ai.usage.output_tokens", ending.usage.output_tokens);
            }
            Done::Replied {
                step,
                failures,
                parts: gathering.into_parts(),
                ending,
            }
        };
        asking.instrument(span).boxed()
    }

    /// Ends the run instead of asking, when it and its family have used up what they may.
    pub(crate) async fn exhausted(&mut self) -> Option<String> {
        if !self.run.is_of_family() {
            return None;
        }
        // A store that cannot be read now is asked again with the next step.
        let spent = self.inner.spent(self.project, self.root).await.ok()?;
        spent.beyond_tokens(self.run.budget())
    }

    /// Runs a call on the gateway's side.
    pub(crate) fn call(&self, call: &Call, history: &[Arc<Turn>]) -> BoxFuture<'static, Done> {
        let id = call.tool.call;
        let tool = call.definition.clone().expect("only a known tool runs");
        let span = tracing::info_span!(
            "execute_tool",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = %call.tool.name,
            gen_ai.tool.call.id = %id,
            toolgate.run = %self.id,
        );
        let running = match (&tool.execution, &call.state) {
            (execution, CallState::Executing { child: Some(child) }) if execution.is_run() => {
                match self.child_of(call, &tool, *child) {
                    Ok(start) => {
                        // The time runs on while the gateway is down.
                        let left = call.since.after(tool.timeout).since(self.inner.clock.now());
                        let running = child_run(self.inner.clone(), start, self.progress_of(call));
                        let ended = tokio::time::timeout(left, running);
                        ended
                            .map(move |ended| ended.unwrap_or_else(|_| timed_out(&tool)))
                            .boxed()
                    }
                    Err(outcome) => std::future::ready(outcome).boxed(),
                }
            }
            (Execution::Prebuilt { .. } | Execution::Request(_) | Execution::Image(_), _) => {
                let cancel = CancellationToken::new();
                let mut context = self.context(call, &tool, history, cancel.clone());
                let speaker = self.run.speaker();
                let stop = cancel.drop_guard();
                let input = call.input.clone();
                let inner = self.inner.clone();
                async move {
                    if let Some(speaker) = speaker {
                        // Who cannot be looked up is nobody: no tool grants anything to that.
                        context.profile = inner.store.entity(speaker).await.ok().flatten();
                    }
                    let running = inner.tools.run(&tool.execution, &input, &context);
                    let running = AssertUnwindSafe(running).catch_unwind();
                    let outcome = match tokio::time::timeout(tool.timeout, running).await {
                        Ok(Ok(Ok(output))) => Outcome::Output(output),
                        Ok(Ok(Err(failure))) => Outcome::error(failure.code, failure.message),
                        Ok(Err(_)) => Outcome::error(ErrorCode::ExecutionFailed, "the tool broke down"),
                        Err(_) => timed_out(&tool),
                    };
                    drop(stop);
                    outcome
                }
                .boxed()
            }
            (
                Execution::Agent { .. }
                | Execution::Spawn
                | Execution::Prompt(_)
                | Execution::Waiting(_)
                | Execution::Client
                | Execution::Static(_)
                | Execution::PassThrough,
                _,
            ) => {
                unreachable!("settled, offered or started before it is performed")
            }
        };
        running
            .map(move |outcome| Done::Called { call: id, outcome })
            .instrument(span)
            .boxed()
    }

    /// The run that executes a call, as it begins.
    fn child_of(&self, call: &Call, tool: &Tool, child: RunId) -> Result<ChildStart, Outcome> {
        let own = self.run.agent();
        let input = call.input.to_value();
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
                (agent, None, child_text(&call.input, &input))
            }
            Execution::Agent { agent } => (agent.clone(), None, child_text(&call.input, &input)),
            _ => unreachable!("only these are runs of their own"),
        };
        Ok(ChildStart {
            id: child,
            project: self.project,
            root: self.root,
            parent: call.tool.call,
            depth: self.run.depth() + 1,
            revision: behind.is_some().then_some(self.run.revision()),
            agent,
            behind,
            budget: self.run.budget(),
            message: child_message(child, self.run.speaker(), text),
        })
    }

    fn context(
        &self,
        call: &Call,
        tool: &Tool,
        history: &[Arc<Turn>],
        cancel: CancellationToken,
    ) -> CallContext {
        let agent = self.run.agent();
        let now = self.inner.clock.now();
        CallContext {
            project: self.project,
            space: self.space,
            run: self.id,
            root: self.root,
            depth: self.run.depth(),
            agent: agent.name.clone(),
            entity: agent.entity(self.project),
            call: call.tool.call,
            profile: None,
            turns: history.iter().chain(self.run.turns()).cloned().collect(),
            tools: self.kit.toolbox.keys().cloned().collect(),
            grants: agent.grants.clone(),
            deadline: now.after(tool.timeout),
            now,
            cancel,
            progress: self.progress_of(call),
        }
    }

    fn progress_of(&self, call: &Call) -> Arc<dyn Fn(Json) + Send + Sync> {
        let (driving, clock, run, tool) = (
            self.driving.clone(),
            self.inner.clock.clone(),
            self.id,
            call.tool.clone(),
        );
        Arc::new(move |progress| {
            driving.publish(
                run,
                clock.now(),
                vec![ToolProgress::of(&tool, Some(progress)).into()],
            );
        })
    }
}

fn timed_out(tool: &Tool) -> Outcome {
    let words = format!("{} gave no answer within {:?}", tool.name, tool.timeout);
    Outcome::error(ErrorCode::Timeout, words)
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
async fn child_run(
    inner: Arc<Inner>,
    start: ChildStart,
    progress: Arc<dyn Fn(Json) + Send + Sync>,
) -> Outcome {
    let (child, agent) = (start.id, start.agent.clone());
    match inner.start_child(start).await {
        Ok(Birth::Started) => {}
        Ok(Birth::NoAgent) => {
            return Outcome::error(ErrorCode::Unavailable, format!("there is no agent named {agent}"));
        }
        Ok(Birth::Ended) => return Outcome::error(ErrorCode::Cancelled, "the first run has ended"),
        Ok(Birth::UsedUp(words)) => return Outcome::error(ErrorCode::LimitExceeded, words),
        Err(error) => {
            tracing::warn!(run = %child, %error, "a child run could not be started");
            return Outcome::error(ErrorCode::Unavailable, "the agent could not be started");
        }
    }
    follow_to_end(&Engine { inner }, child, &agent, progress).await
}

/// What a child run says on its way.
#[derive(Default)]
struct Told {
    text: String,
    /// What it told its parent before its end.
    signals: Vec<serde_json::Value>,
    /// Its answer is JSON of a form.
    formed: bool,
}

async fn follow_to_end(
    engine: &Engine,
    child: RunId,
    agent: &AgentName,
    progress: Arc<dyn Fn(Json) + Send + Sync>,
) -> Outcome {
    let mut told = Told::default();
    let mut cursor = Seq(0);
    loop {
        let Ok(mut following) = engine.subscribe(Scope::Run(child), cursor).await else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        loop {
            let after = following.cursor();
            let batch = match following.next().await {
                Ok(batch) => batch,
                Err(End::Finished) => {
                    return Outcome::error(ErrorCode::ExecutionFailed, "the agent gave no answer");
                }
                Err(End::Cut) => break,
            };
            for (seq, event) in batch.placed().filter(|(seq, _)| *seq > after) {
                cursor = seq;
                match event {
                    Event::RunStart(e) => told.formed = e.behind.is_some(),
                    Event::StepStart(_) => told.text.clear(),
                    Event::TextEnd(e) => told.text.push_str(&e.text),
                    Event::ToolOutputAvailable(e) if e.tool_name.as_ref() == SIGNAL_PARENT => {
                        let signal = e.output.as_ref().map_or_else(Json::null, Clone::clone);
                        told.signals.push(signal.to_value());
                        progress(signal);
                    }
                    Event::RunFinish(end) => return outcome_of(end, agent, told),
                    _ => {}
                }
            }
        }
    }
}

fn outcome_of(end: &RunFinish, agent: &AgentName, told: Told) -> Outcome {
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
        Status::Cancelled => Outcome::error(ErrorCode::Cancelled, format!("{agent} was cancelled")),
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
            Outcome::error(code, format!("{agent} failed: {detail}"))
        }
    }
}
