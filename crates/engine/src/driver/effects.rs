//! What is due, done: asking the model and running calls.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::call::Call;
use toolgate_kernel::event::{CallRequest, FinishReason, ToolProgress, Usage};
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::run::ReplyPart;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Execution, Tool, Toolbox};
use tracing::Instrument;

use super::load::patient;
use super::{Adrift, Done, Driver, Past, RequestProgress};
use crate::Inner;
use crate::budget::{Asked, BudgetError};
use crate::call_log::CallLog;
use crate::estimate;
use crate::figures::{count_refusal, count_reply};
use crate::model::{Ask, Ending, ModelError, ModelErrorKind};
use crate::reply::Gathering;
use crate::run_tree::beyond;
use crate::sampling::{Asker, Sampling};
use crate::store::StoreError;
use crate::tools::CallContext;
use crate::user_tokens::NoToken;

impl Driver {
    /// Asks the model for a step; `progress` begins once its time and its turn have come.
    pub(crate) fn ask(
        &self,
        step: u32,
        failures: u32,
        not_before: Option<Time>,
        past: &Past,
        progress: Arc<RequestProgress>,
    ) -> BoxFuture<'static, Done> {
        let inner = self.inner.clone();
        let agent = self.run.agent().clone();
        let share = self.share();
        let turns = past.turns.iter().chain(self.run.turns()).cloned().collect();
        let ask = Ask {
            model: agent.model.clone(),
            instructions: agent.instructions.as_str().into(),
            today: self.today(),
            turns,
            tools: self.kit.offered.clone(),
            tool_choice: agent.tool_choice.clone(),
        };
        let mut gathering = Gathering::new(
            &self.run,
            step,
            self.driving.clone(),
            inner.clock.clone(),
            progress.clone(),
        );
        let person = self.person();
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
            let turn = inner.model_calls.turn(share, 0).await;
            let _turn = turn.expect("as many may wait as there are runs in memory");
            progress.begin(&ask);
            let asked = Instant::now();
            let replying = AssertUnwindSafe(inner.model.reply(&ask, &mut gathering)).catch_unwind();
            let mut ending = replying.await.unwrap_or_else(|_| {
                Err(ModelError::new(
                    ModelErrorKind::Retryable,
                    "the model's adapter broke down",
                ))
            });
            let first = gathering.first().map(|first| first - asked);
            count_reply(&ask.model.name, asked.elapsed(), first, ending.is_err());
            let parts = gathering.into_parts();
            if let Ok(ending) = &mut ending {
                if ending.usage.total() == 0 {
                    ending.usage = estimate::usage(&ask, &parts);
                }
                let span = tracing::Span::current();
                span.record("gen_ai.usage.input_tokens", ending.usage.input_tokens);
                span.record("gen_ai.usage.output_tokens", ending.usage.output_tokens);
            }
            person.reply(&inner, (step, failures), parts, ending).await
        };
        asking.instrument(span).boxed()
    }

    /// Writes the reply of a run that is one call, which no model is asked for.
    pub(crate) fn write_call(
        &self,
        step: u32,
        failures: u32,
        not_before: Option<Time>,
        request: &CallRequest,
    ) -> BoxFuture<'static, Done> {
        let inner = self.inner.clone();
        let person = self.person();
        let input = request.input.as_ref().map_or("", Json::as_str);
        let parts = vec![ReplyPart::Call {
            name: request.tool_name.as_str().into(),
            arguments: input.to_owned(),
            signature: None,
        }];
        let ending = Ok(Ending {
            reason: FinishReason::ToolCalls,
            usage: Usage::default(),
        });
        let writing = async move {
            if let Some(moment) = not_before {
                tokio::time::sleep(moment.since(inner.clock.now())).await;
            }
            person.reply(&inner, (step, failures), parts, ending).await
        };
        writing.boxed()
    }

    /// The person whom the step under way works for.
    fn person(&self) -> Person {
        Person {
            speaker: self.run.speaker(),
            project: self.project,
            space: self.home,
            toolbox: self.kit.toolbox.clone(),
            run: self.id,
            agent: self.run.agent().name.clone(),
        }
    }

    /// Why the model is not asked any more: the run and its run tree have used up what they may, or a budget is used up.
    pub(crate) async fn exhausted(&mut self) -> Result<Option<String>, Adrift> {
        if self.run.request().is_some() {
            // It is one call, and asks no model.
            return Ok(None);
        }
        if let Some(words) = self.over_budget().await? {
            return Ok(Some(words));
        }
        if !self.run.is_in_tree() {
            return Ok(None);
        }
        let tree = patient(|| self.inner.store.run_tree(self.root)).await;
        // What cannot be counted is not spent: the run is looked at again later.
        Ok(beyond(tree.map_err(|_| Adrift)?, self.run.budget()))
    }

    /// The budget that is used up, in words for those who follow the run.
    async fn over_budget(&mut self) -> Result<Option<String>, Adrift> {
        let agent = self.run.agent().clone();
        let asked = Asked {
            project: self.project,
            user: self.run.works_for(),
            agent: &agent.name,
            model: Some(&agent.model.name),
        };
        let Err(error) = self.inner.check_budgets(asked).await else {
            return Ok(None);
        };
        // If the store does not say, the model is not asked: the run is looked at again later.
        let words = error.to_user().ok_or(Adrift)?;
        if let BudgetError::Exceeded(exceeded) = &error {
            count_refusal(self.project, exceeded);
        }
        tracing::warn!(project = %self.project, run = %self.id, %error, "a run is stopped by a budget");
        Ok(Some(words))
    }

    /// Runs a call on the gateway's side, or goes on with it once its questions are answered.
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
        let running = match &tool.execution {
            Execution::Source(source) => self.source_call(call, &tool, source, history).run(),
            Execution::Agent { .. }
            | Execution::Spawn
            | Execution::Prompt(_)
            | Execution::Waiting(_)
            | Execution::Client
            | Execution::Static(_)
            | Execution::PassThrough => {
                unreachable!("settled, offered or delegated before it is performed")
            }
        };
        let leg = call.leg;
        running
            .map(move |came| Done::Called { call: id, leg, came })
            .instrument(span)
            .boxed()
    }

    pub(super) fn context(
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
            space: self.home,
            run: self.id,
            root: self.root,
            depth: self.run.depth(),
            agent: agent.name.clone(),
            entity: agent.entity(self.project),
            call: call.tool.call,
            profile: None,
            works_for: self.run.works_for(),
            user_token: Err(NoToken::Absent),
            turns: history.iter().chain(self.run.turns()).cloned().collect(),
            tools: self.kit.toolbox.keys().cloned().collect(),
            grants: agent.grants.clone(),
            deadline: now.after(tool.timeout),
            now,
            cancel,
            progress: self.progress_of(call),
            log: CallLog::default(),
            sampling: self.sampling(call),
        }
    }

    fn sampling(&self, call: &Call) -> Sampling {
        Sampling::new(Asker {
            inner: Arc::downgrade(&self.inner),
            root: self.root,
            project: self.project,
            user: self.run.works_for(),
            agent: self.run.agent().name.clone(),
            call: call.tool.call,
            model: self.run.agent().model.clone(),
            budget: self.run.budget(),
            share: self.share(),
            asked: call.samplings.into(),
        })
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

/// The person whom a run works for, and the tools that may need its grants.
pub(super) struct Person {
    pub speaker: Option<EntityId>,
    pub project: ProjectId,
    /// Space of the root run.
    pub space: SpaceId,
    pub toolbox: Arc<Toolbox>,
    pub run: RunId,
    pub agent: AgentName,
}

impl Person {
    /// A reply, with what its calls are judged by.
    async fn reply(
        &self,
        inner: &Inner,
        (step, failures): (u32, u32),
        parts: Vec<ReplyPart>,
        ending: Result<Ending, ModelError>,
    ) -> Done {
        let (person_grants, ending) = match self.grants_for(inner, &parts).await {
            Ok(grants) => (grants, ending),
            Err(error) => (Vec::new(), Err(unknown_grants(&error))),
        };
        let now = inner.clock.now();
        let (earlier, ending) = match self.earlier_outputs(inner, &parts, now).await {
            Ok(earlier) => (earlier, ending),
            Err(error) => (Vec::new(), Err(unknown_grants(&error))),
        };
        let (consents, ending) = match self.consents_for(inner, &parts).await {
            Ok(consents) => (consents, ending),
            Err(error) => (Vec::new(), Err(unknown_grants(&error))),
        };
        Done::Replied {
            step,
            failures,
            parts,
            person_grants,
            earlier,
            consents,
            ending,
        }
    }

    /// What the person was granted, as its entity and as a member of the space; only looked up when the reply calls a tool
    /// that needs it.
    async fn grants_for(&self, inner: &Inner, parts: &[ReplyPart]) -> Result<Vec<String>, StoreError> {
        let needs = |part: &ReplyPart| match part {
            ReplyPart::Call { name, .. } => {
                let tool = self.toolbox.get(name.as_ref());
                tool.is_some_and(|tool| !tool.person_permissions.is_empty())
            }
            ReplyPart::Text { .. } | ReplyPart::Reasoning { .. } => false,
        };
        let Some(speaker) = self.speaker.filter(|_| parts.iter().any(needs)) else {
            return Ok(Vec::new());
        };
        let entity = patient(|| inner.store.entity(speaker)).await?;
        let member = patient(|| inner.store.member(self.space, speaker)).await?;
        let mut grants = entity.map_or(Vec::new(), |entity| entity.grants);
        grants.extend(member.into_iter().flat_map(|member| member.grants));
        Ok(grants)
    }
}

/// The step is asked again: without knowing what the person was granted, its calls can be neither let through nor refused.
fn unknown_grants(error: &StoreError) -> ModelError {
    let message = format!("the store did not say what the person was granted or did before: {error}");
    ModelError::new(ModelErrorKind::Retryable, message)
}
