//! Tasks of tool sources that calls are delegated to: looking at them, and giving them up.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use toolgate_kernel::call::{Call, CallState, Handle};
use toolgate_kernel::id::CallId;
use toolgate_kernel::run::{Arrival, Rejected};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Execution, SourceTool};

use super::commit::is_given_up;
use super::source_call::Came;
use super::{Done, Driver, Pending};

/// Shortest time between two looks at a task.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(250);
/// A task is looked at again after this share of its age at the soonest, however often its source asks for it: the log of
/// a run that waits for days stays short.
const LOOK_SHARE: u32 = 20;
/// Longest time that a source is given to abandon a task.
const ABANDON_MAX: Duration = Duration::from_secs(10);

/// A task of a source that a call of this run is delegated to.
pub(super) struct KnownTask {
    call: CallId,
    tool: Arc<SourceTool>,
    task: Arc<str>,
}

impl KnownTask {
    fn of(call: &Call, handle: &Handle) -> Option<Self> {
        let Execution::Source(tool) = &call.definition.as_ref()?.execution else {
            return None;
        };
        match handle {
            Handle::Task { task, .. } => Some(Self {
                call: call.tool.call,
                tool: tool.clone(),
                task: task.clone(),
            }),
            Handle::Run(_) => None,
        }
    }
}

impl Driver {
    /// Begins to look at the tasks whose time to look has come.
    pub(super) fn look_at_tasks(&mut self) {
        let now = self.inner.clock.now();
        let due = self.run.delegated().filter(|(call, _)| {
            let is_due = matches!(call.state, CallState::Delegated { check_at: Some(at), .. } if at <= now);
            is_due && !self.task_looks.contains_key(&call.tool.call)
        });
        let room = self
            .inner
            .settings
            .parallel_calls
            .saturating_sub(self.task_looks.len());
        let looks = due.filter_map(|(call, _)| Some((call.tool.call, call.leg, self.task_look(call)?)));
        for (call, leg, look) in looks.take(room).collect::<Vec<_>>() {
            let looking = look.look().map(move |came| Done::TaskLooked { call, leg, came });
            let handle = self.undertake(looking.boxed());
            self.task_looks.insert(call, (leg, handle));
        }
    }

    /// Stops looks at tasks that no longer have their call.
    pub(super) fn stop_task_looks(&mut self) {
        let (run, is_guest) = (&self.run, self.is_guest());
        self.task_looks.retain(|call, (leg, handle)| {
            let call = run.call(*call).filter(|call| call.leg == *leg && !is_guest);
            let wanted = call.is_some_and(|call| matches!(call.state, CallState::Delegated { .. }));
            if !wanted {
                handle.abort();
            }
            wanted
        });
    }

    /// What came of a call, or of a look at its task, as an arrival.
    pub(super) fn came(&self, call: CallId, leg: u32, came: Came) -> Arrival {
        match came {
            Came::Ended(outcome, log) => Arrival::Output {
                call,
                leg,
                outcome,
                log,
            },
            Came::Delegated(handle, delegation) => Arrival::Delegated {
                call,
                leg,
                handle,
                check_at: delegation
                    .check_at
                    .map(|moment| moment.max(self.soonest_look(call))),
                child: None,
                questions: delegation.questions,
            },
        }
    }

    fn soonest_look(&self, call: CallId) -> Time {
        let now = self.inner.clock.now();
        let known = self.run.call(call).filter(|call| call.task().is_some());
        let age = known.map_or(Duration::ZERO, |call| now.since(call.since));
        now.after((age / LOOK_SHARE).max(LOOK_EVERY_MIN))
    }

    /// The tasks that have calls of this run.
    pub(super) fn known_tasks(&self) -> Vec<KnownTask> {
        let pending = self.run.state().pending();
        let tasks = pending.filter_map(|call| KnownTask::of(call, call.task()?));
        tasks.collect()
    }

    /// Tells the sources of those tasks whose calls were given up since they were `known`, and of those that came too late
    /// for their call. The node that drives the run tells them.
    pub(super) fn abandon_tasks(
        &self,
        known: Vec<KnownTask>,
        pending: &[Pending],
        verdicts: &[Option<Rejected>],
    ) {
        if self.is_guest() {
            return;
        }
        let late = pending.iter().zip(verdicts).filter_map(|(one, verdict)| {
            let (Arrival::Delegated { call, handle, .. }, Some(Rejected::Gone { .. } | Rejected::Ended(_))) =
                (&one.arrival, verdict)
            else {
                return None;
            };
            KnownTask::of(self.run.call(*call)?, handle)
        });
        let is_known = |task: &KnownTask| known.iter().any(|known| known.call == task.call);
        let late: Vec<KnownTask> = late.filter(|task| !is_known(task)).collect();
        let given_up = known.into_iter().chain(late).filter(|task| {
            let state = self.run.call(task.call).map(|call| &call.state);
            matches!(state, Some(CallState::Settled(settled)) if is_given_up(&settled.outcome))
        });
        given_up.for_each(|task| self.abandon(task));
    }

    fn abandon(&self, KnownTask { call, tool, task }: KnownTask) {
        let (inner, project) = (self.inner.clone(), self.project);
        let Ok(permit) = inner.abandons.clone().try_acquire_owned() else {
            return tracing::warn!(%call, "a task is not abandoned: too many are at once");
        };
        let abandoning = async move {
            let _permit = permit;
            let halt = inner.halt.clone();
            tokio::select! {
                () = halt.cancelled() => {}
                told = tokio::time::timeout(ABANDON_MAX, inner.tools.abandon(&tool, &task, project)) => {
                    if told.is_err() {
                        tracing::warn!(%call, "a source has not said in time that it abandoned a task");
                    }
                }
            }
        };
        self.inner.tasks.spawn(abandoning);
    }
}
