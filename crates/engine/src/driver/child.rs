//! A call that is a child run: how it starts, and what its log comes to as an outcome.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolgate_kernel::call::{Asks, Call, CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{ChildStatus, EndReason, Event, RunFinish, RunStart, Seq, Status};
use toolgate_kernel::id::{EntityId, MessageId, ProjectId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::run::{RunState, json_in};
use toolgate_kernel::template::plain;
use toolgate_kernel::tool::{Decider, Execution, Tool};

use super::Driver;
use super::load::{next, patient};
use crate::Inner;
use crate::run_tree::{Birth, ChildStart};
use crate::start::Kinship;
use crate::store::{LogRange, Pages, RunRecord, StoreError};
use crate::tools::{BUILT_IN, CallContext, SIGNAL_PARENT};

/// A child run as its parent sees it.
pub(super) struct Child {
    id: RunId,
    /// How it starts, or why it cannot.
    start: Result<ChildStart, Outcome>,
    /// The tool that was called.
    tool: Arc<Tool>,
    /// What it is called in words to the model.
    name: String,
    /// That it waits for a person or a client, as the parent's log says.
    asks: Option<ChildStatus>,
    context: CallContext,
}

/// What a look at a delegated call found.
pub(super) enum Found {
    /// It was not under way, and is now.
    Started,
    /// It is under way, as the parent knows.
    Waits,
    /// It began to wait for a person or a client, or waits for something else, or no longer.
    Moved(ChildStatus),
    /// It has ended.
    Ended(Outcome),
}

impl Driver {
    /// The child run that executes a call.
    pub(super) fn child(&self, call: &Call, id: RunId) -> Child {
        let tool = call.definition.as_ref().expect("only a known tool is delegated");
        let start = self.child_of(call, tool, id);
        // A prompt tool answers under its own name, whichever agent runs it.
        let name = match (&tool.execution, &start) {
            (Execution::Prompt(_), _) | (_, Err(_)) => tool.name.to_string(),
            (_, Ok(start)) => start.agent.to_string(),
        };
        let asks = match &call.state {
            CallState::Delegated {
                asks: Some((Asks::Child(asks), _)),
                ..
            } => Some(*asks),
            _ => None,
        };
        Child {
            id,
            start,
            tool: tool.clone(),
            name,
            asks,
            context: self.context(call, tool, &[], CancellationToken::new()),
        }
    }

    /// The run that executes a call, as it begins.
    fn child_of(&self, call: &Call, tool: &Tool, child: RunId) -> Result<ChildStart, Outcome> {
        let own = self.run.agent();
        let input = call.input().to_value();
        let mut result = None;
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
            Execution::Agent {
                agent,
                result: schema,
            } => {
                result = schema.clone();
                (agent.clone(), None, child_text(&call.input(), &input))
            }
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
                unknown_requester: self.run.has_unknown_requester(),
                offered_to: self.run.offered_to(),
                result,
            },
            message: Message {
                on_behalf_of: self.run.others_behind(),
                ..child_message(child, self.run.speaker(), text)
            },
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
    Message::new(message_id, from, vec![Part::Text { text }])
}

impl Child {
    /// Its run.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Starts the run if it is not there, and reads its outcome if it has ended.
    pub async fn look(&self, inner: &Arc<Inner>) -> Result<Found, StoreError> {
        match patient(|| inner.store.run(self.id)).await? {
            Some(record) if record.status.is_final() => {
                let outcome = match self.outcome(inner, &record).await {
                    Ok(Outcome::Output(output)) => {
                        Outcome::Output(inner.tools.bounded(output, &self.context).await)
                    }
                    Ok(failure @ Outcome::Error { .. }) => failure,
                    Err(error @ (StoreError::Unavailable(_) | StoreError::Timeout)) => return Err(error),
                    Err(error) => {
                        tracing::error!(run = %self.id, %error, "the log of a child run cannot be read");
                        no_answer()
                    }
                };
                Ok(Found::Ended(outcome))
            }
            Some(record) => {
                let now = ChildStatus {
                    status: record.status,
                    seq: record.version,
                };
                Ok(match Some(now).filter(|now| now.status.asks()) == self.asks {
                    true => Found::Waits,
                    false => Found::Moved(now),
                })
            }
            None => self.begin(inner).await,
        }
    }

    async fn begin(&self, inner: &Arc<Inner>) -> Result<Found, StoreError> {
        let start = match &self.start {
            Ok(start) => start.clone(),
            Err(outcome) => return Ok(Found::Ended(outcome.clone())),
        };
        if let Err(failure) = inner.tools.check_shared(&self.tool, start.project).await {
            return Ok(Found::Ended(Outcome::error(failure.code, failure.message)));
        }
        let agent = start.agent.clone();
        let (code, words) = match inner.start_child(start).await {
            Ok(Birth::Started) => return Ok(Found::Started),
            Ok(Birth::NoAgent(known)) => (ErrorCode::Unavailable, no_agent(&agent, &known)),
            Ok(Birth::Ended) => (ErrorCode::Cancelled, "the first run has ended".to_owned()),
            Ok(Birth::UsedUp(words)) => (ErrorCode::LimitExceeded, words),
            // Nothing is lost: it is tried again until the call's time is up.
            Err(error @ (StoreError::Unavailable(_) | StoreError::Timeout)) => return Err(error),
            Err(error) => {
                tracing::warn!(run = %self.id, %error, "a child run could not be started");
                (
                    ErrorCode::Unavailable,
                    "the agent could not be started".to_owned(),
                )
            }
        };
        Ok(Found::Ended(Outcome::error(code, words)))
    }

    /// What the log of the run, which has ended, comes to.
    async fn outcome(&self, inner: &Inner, record: &RunRecord) -> Result<Outcome, StoreError> {
        let (mut run, mut start) = (RunState::default(), None);
        let mut pages = Pages::of_run(self.id, LogRange::default());
        while let Some(page) = next(&mut pages, inner).await? {
            for entry in &page.entries {
                start = start.or_else(|| entry.events.iter().find_map(Event::run_start).cloned());
                run.extend(entry, &Decider::Backend);
            }
        }
        let (Some(start), Some(end)) = (start, run.end()) else {
            return Ok(no_answer());
        };
        // One that ends at its step limit is completed; without an answer it has failed its caller.
        if end.status != Status::Completed || end.error.is_some() {
            return Ok(failure(end, &self.name));
        }
        let signalling = inner.signalling(record.project, &start).await?;
        Ok(Outcome::Output(output_of(&run, &start, &signalling)))
    }
}

fn no_answer() -> Outcome {
    Outcome::error(ErrorCode::ExecutionFailed, "the agent gave no answer")
}

fn no_agent(agent: &AgentName, known: &[AgentName]) -> String {
    let known: Vec<&str> = known.iter().map(AgentName::as_str).collect();
    format!("there is no agent named {agent}; there are: {}", known.join(", "))
}

impl Inner {
    /// The tools of a run by which it tells its parent something, whatever they are called.
    async fn signalling(
        &self,
        project: ProjectId,
        start: &RunStart,
    ) -> Result<BTreeSet<ToolName>, StoreError> {
        let compiled = self.compiled(project, &start.agent, Some(start.revision)).await?;
        let Some(agent) = compiled.and_then(|agent| agent.behind(start.behind.as_ref())) else {
            return Ok(BTreeSet::new());
        };
        let kit = self.pinned(project, &agent, start).await?;
        let signalling = kit.toolbox.values().filter(|tool| signals(tool));
        Ok(signalling.map(|tool| tool.name.clone()).collect())
    }
}

/// Whether a run tells its parent something by this tool.
pub(super) fn signals(tool: &Tool) -> bool {
    matches!(&tool.execution, Execution::Source(own) if own.source == BUILT_IN && own.tool == SIGNAL_PARENT)
}

/// A completed run's answer, beside what it signalled on its way.
fn output_of(run: &RunState, start: &RunStart, signalling: &BTreeSet<ToolName>) -> Json {
    let text = run.answer();
    // A prompt tool gives JSON when its answer is JSON, as does an agent whose answer must fit a schema; that it does was
    // checked by the run.
    let answer = match json_in(&text) {
        Ok(value) if start.behind.is_some() || start.result_schema.is_some() => value,
        _ => text.into(),
    };
    let mut signals: Vec<(Seq, serde_json::Value)> = run
        .calls()
        .iter()
        .filter(|call| signalling.contains(call.tool.name.as_ref()))
        .filter_map(|call| match &call.state {
            CallState::Settled(settled) => match &settled.outcome {
                Outcome::Output(signal) => Some((settled.seq, signal.to_value())),
                Outcome::Error { .. } => None,
            },
            _ => None,
        })
        .collect();
    if signals.is_empty() {
        return answer.into();
    }
    signals.sort_by_key(|(seq, _)| *seq);
    let signals: Vec<_> = signals.into_iter().map(|(_, signal)| signal).collect();
    serde_json::json!({ "answer": answer, "signals": signals }).into()
}

/// What the parent is told of a run that did not complete.
fn failure(end: &RunFinish, name: &str) -> Outcome {
    if end.status == Status::Cancelled {
        return Outcome::error(ErrorCode::Cancelled, format!("{name} was cancelled"));
    }
    let (code, why) = match end.reason {
        EndReason::InvalidOutput => (
            ErrorCode::InvalidOutput,
            "its answer does not match the result schema",
        ),
        EndReason::Limit | EndReason::MaxSteps => (ErrorCode::LimitExceeded, "it used up what it may"),
        _ => (ErrorCode::ExecutionFailed, "it could not answer"),
    };
    let detail = end.error.as_deref().unwrap_or(why);
    Outcome::error(code, format!("{name} failed: {detail}"))
}
