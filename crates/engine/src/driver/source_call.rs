//! A call of a tool that a source runs, from its start or from the task that it was delegated to.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::call::{Call, ErrorCode, Handle, Outcome};
use toolgate_kernel::id::EntityId;
use toolgate_kernel::json::Json;
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::question::Answer;
use toolgate_kernel::tool::{Execution, SourceTool, Tool};

use super::Driver;
use super::load::patient;
use crate::Inner;
use crate::store::StoreError;
use crate::tools::{CallContext, CallFailure, Called, Delegation};
use crate::user_tokens::NoToken;

/// Longest time that one look at a task takes; it is looked at again later.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// What came of a call on the gateway's side.
pub(crate) enum Came {
    /// It ended, and wrote this to its log.
    Ended(Outcome, Option<String>),
    /// Its source handed it to somebody else, who may have had it before.
    Delegated(Handle, Delegation),
}

/// A call that is about to be run by its source.
pub(super) struct SourceCall {
    inner: Arc<Inner>,
    tool: Arc<Tool>,
    source: Arc<SourceTool>,
    input: Json,
    /// Whom the run works for.
    speaker: Option<EntityId>,
    /// Whether nobody else wrote what is sent.
    is_speakers: bool,
    /// The task that it goes on with.
    task: Option<Arc<str>>,
    answers: Vec<Answer>,
    context: CallContext,
    cancel: CancellationToken,
}

impl Driver {
    /// A call of a tool of a source, as it is run next: from its start, or with the answers to its questions.
    pub(super) fn source_call(
        &self,
        call: &Call,
        tool: &Arc<Tool>,
        source: &Arc<SourceTool>,
        history: &[Arc<Turn>],
    ) -> SourceCall {
        let cancel = CancellationToken::new();
        let mut context = self.context(call, tool, history, cancel.clone());
        let speaker = self.run.speaker();
        let mut answers = Vec::new();
        let task = call.task().map(|task| {
            answers = call.questions.answers();
            context.deadline = call.deadline();
            task_of(task)
        });
        SourceCall {
            inner: self.inner.clone(),
            tool: tool.clone(),
            source: source.clone(),
            input: call.input(),
            speaker,
            // What somebody else wrote is not sent in the speaker's name.
            is_speakers: speaker.is_some_and(|speaker| {
                let state = self.run.state();
                !state.is_edited_by_another(call.tool.call, speaker)
            }),
            task,
            answers,
            context,
            cancel,
        }
    }

    /// A look at a task that has a call of a source's tool; none when the call is of another kind.
    pub(super) fn task_look(&self, call: &Call) -> Option<SourceCall> {
        let tool = call.definition.as_ref()?;
        let Execution::Source(source) = &tool.execution else {
            return None;
        };
        let mut look = self.source_call(call, tool, source, &[]);
        // It asks how far the task is: what was answered until now is told once, when all is answered.
        look.answers = Vec::new();
        look.context.deadline = call.deadline().max(self.inner.clock.now().after(LOOK_MAX));
        Some(look)
    }
}

fn task_of(handle: &Handle) -> Arc<str> {
    match handle {
        Handle::Task { task, .. } => task.clone(),
        Handle::Run(run) => run.to_string().into(),
    }
}

impl SourceCall {
    /// Runs it within the tool's time.
    pub async fn run(mut self) -> Came {
        let left = self.context.deadline.since(self.context.now);
        if let Err(error) = self.introduce().await {
            return unknown_speaker(&error);
        }
        match self.called(left).await {
            Some(came) => came,
            None => self.ended(timed_out(&self.tool)),
        }
    }

    /// Asks how far its task is. One that does not say so in time is still under way.
    pub async fn look(mut self) -> Came {
        let task = self.task.clone().unwrap_or_default();
        let came = match self.introduce().await {
            Ok(()) => self.called(LOOK_MAX).await,
            Err(_) => None,
        };
        match came {
            Some(Came::Delegated(_, other)) if other.task != task => {
                let words = "the source of this tool gave another task when it was asked about this one";
                self.ended(Outcome::error(ErrorCode::ExecutionFailed, words))
            }
            Some(came) => came,
            None => {
                let later = Delegation::later(&task, self.inner.clock.now());
                self.came(Called::Delegated(later))
            }
        }
    }

    /// What comes of it; none after `limit`.
    async fn called(&mut self, limit: Duration) -> Option<Came> {
        let stop = self.cancel.clone().drop_guard();
        let Self {
            inner,
            tool,
            source,
            input,
            context,
            task,
            answers,
            ..
        } = self;
        let running = async {
            match task {
                None => inner.tools.run_copy(tool, source, input, context).await,
                Some(task) => {
                    let resuming = inner
                        .tools
                        .resume_copy(tool, source, input, task, answers, context);
                    resuming.await
                }
            }
        };
        let running = AssertUnwindSafe(running).catch_unwind();
        let called = tokio::time::timeout(limit, running).await.ok()?;
        drop(stop);
        let called = called.unwrap_or_else(|_| Err(CallFailure::failed("the tool broke down")));
        Some(match called {
            Ok(called) => self.came(called),
            Err(failure) => self.ended(Outcome::error(failure.code, failure.message)),
        })
    }

    /// Looks up the person whom the call is for, and what that person lends it.
    async fn introduce(&mut self) -> Result<(), StoreError> {
        let (inner, context) = (&self.inner, &mut self.context);
        let Some(speaker) = self.speaker else {
            return Ok(());
        };
        // Without knowing whom it works for, a tool would act on nobody's behalf.
        context.profile = patient(|| inner.store.entity(speaker)).await?;
        context.user_token = inner.user_tokens.of(context.root, speaker, inner.clock.now());
        if context.user_token.is_err() {
            return Ok(());
        }
        // Whoever was taken out of the space lends nothing to what goes on in it.
        let member = patient(|| inner.store.member(context.space, speaker)).await?;
        match member {
            None => context.user_token = Err(NoToken::Removed),
            Some(_) if !self.is_speakers => context.user_token = Err(NoToken::Edited),
            Some(_) => {}
        }
        Ok(())
    }

    /// Its end, with what its code wrote.
    fn ended(&self, outcome: Outcome) -> Came {
        Came::Ended(outcome, self.context.log.text())
    }

    fn came(&self, called: Called) -> Came {
        match called {
            Called::Output(output) => self.ended(Outcome::Output(output)),
            Called::Delegated(delegation) => {
                let handle = Handle::Task {
                    source: self.source.source.as_str().into(),
                    task: delegation.task.clone(),
                };
                Came::Delegated(handle, delegation)
            }
        }
    }
}

fn unknown_speaker(error: &StoreError) -> Came {
    tracing::warn!(%error, "a call is not run, because it is not known for whom");
    let words = "the store did not say whom the call is for, so it was not run; it may be called again";
    Came::Ended(Outcome::error(ErrorCode::Unavailable, words), None)
}

fn timed_out(tool: &Tool) -> Outcome {
    let words = format!("{} gave no answer within {:?}", tool.name, tool.timeout);
    Outcome::error(ErrorCode::Timeout, words)
}
