//! Arrivals into the log: taken by the kernel, stored in one write, then answered. When nobody knows whether a
//! write happened, the run is read again and the same arrivals are taken again: what is there already is
//! recognised.

use std::sync::Arc;
use std::time::Duration;

use toolgate_kernel::call::{CallState, ErrorCode, Handle, Outcome};
use toolgate_kernel::event::{Entry, Event, Status, Usage};
use toolgate_kernel::id::{CallId, EntityId, RunId};
use toolgate_kernel::run::{Arrival, Due, Rejected, Run};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Execution, Retry};
use uuid::Uuid;

use super::{Adrift, Driver, Lease, Pending};
use crate::consumption::{self, Consumption};
use crate::deliver::Fate;
use crate::estimate;
use crate::shares::share_of;
use crate::store::{Above, Append, LeaseWrite, RunWrite, StoreError, Wake};
use crate::usage;

/// How often a write that fails is tried before the run is left for later.
const WRITE_ATTEMPTS: u32 = 8;
/// How often others may write first before an arrival is refused.
const CONFLICTS_MAX: u32 = 64;
/// Results that may wait for the step that announces their calls.
const EARLY_MAX: usize = 256;
/// The first wait before a write is tried again; doubles each time.
const WRITE_DELAY: Duration = Duration::from_millis(10);

impl Driver {
    /// Takes what arrived, stores what it caused, and answers. The run is as its log when this returns. Without
    /// arrivals it only reads what others have written, and stores what can be known at once.
    pub(super) async fn settle(&mut self, mut pending: Vec<Pending>) -> Result<(), Adrift> {
        // After a failed write the run is ahead of its log, after another node's write it is behind: nothing is
        // taken before it has been read again.
        let mut stale = self.is_behind();
        // What came early comes after what may announce its call.
        pending.append(&mut self.early);
        let children = self.children();
        let tasks = self.known_tasks();
        let mut delay = WRITE_DELAY;
        let (mut failures, mut conflicts) = (0, 0);
        loop {
            let read = match stale {
                true => self.reload().await,
                false => Ok(()),
            };
            if stale && read.is_ok() {
                // Others may have acted on the same wake-ups, and a child may have been answered since it was looked at:
                // that it waits is then no longer true, and must not be told.
                self.watch.restart();
                pending.retain(|one| !one.arrival.is_child_status());
            }
            if self.is_guest() {
                self.keep_only_letters(&mut pending);
            }
            let tried = match read {
                Ok(()) => self.try_settle(&mut pending).await,
                Err(error) => Err(error),
            };
            stale = true;
            match tried {
                Ok(verdicts) => {
                    self.give_up(children).await;
                    self.abandon_tasks(tasks, &pending, &verdicts);
                    self.answer(pending, verdicts);
                    return Ok(());
                }
                // Whoever wrote first has moved the run on.
                Err(StoreError::Conflict) if conflicts < CONFLICTS_MAX => conflicts += 1,
                Err(error) if failures + 1 >= WRITE_ATTEMPTS || matches!(error, StoreError::Conflict) => {
                    tracing::error!(run = %self.id, %error, "the store does not take a run's events");
                    respond_all(pending, || {
                        Fate::Failed(StoreError::Unavailable(error.to_string()))
                    });
                    return Err(Adrift);
                }
                Err(StoreError::Newer { run, kind }) => {
                    respond_all(pending, || {
                        let kind = kind.clone();
                        Fate::Failed(StoreError::Newer { run, kind })
                    });
                    return Err(Adrift);
                }
                // The same request was faster by another way: it has its answer there.
                Err(StoreError::Exists) => {
                    failures += 1;
                    let (known, rest) = pending.into_iter().partition(|one| !one.idempotency.is_empty());
                    pending = rest;
                    respond_all(known, || Fate::Failed(StoreError::Exists));
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(run = %self.id, %error, failures, "a write failed; the run is read again");
                    tokio::time::sleep(delay).await;
                    delay *= 2;
                }
            }
        }
    }

    async fn try_settle(&mut self, pending: &mut [Pending]) -> Result<Vec<Option<Rejected>>, StoreError> {
        let now = self.inner.clock.now();
        let children = self.children();
        let asked = self.run.status().asks();
        // Whom a step worked for that ends here: what follows it may be for somebody else.
        let user = self.run.works_for();
        let asks_elsewhere = self.asks_elsewhere(now);
        let mut events = Vec::new();
        let mut verdicts = Vec::with_capacity(pending.len());
        let mut idempotency = Vec::new();
        if self.run.wake_at().is_some_and(|moment| moment <= now) {
            // What is past its deadline is over before anything else is taken.
            events.extend(self.run.take(Arrival::Tick, now).unwrap_or_default());
        }
        for one in pending.iter_mut() {
            match self.take(one.arrival.clone(), now).await {
                Ok(caused) => {
                    events.extend(caused);
                    if idempotency.is_empty() {
                        idempotency = one.idempotency.clone();
                    }
                    verdicts.push(None);
                }
                Err(rejected) => verdicts.push(Some(rejected)),
            }
        }
        // A guest starts nothing. Nor does the write of a take-over: when nobody knows whether it was stored it is
        // done again, and would take what it began itself for what the dead node left.
        let recovers = pending
            .iter()
            .any(|one| matches!(one.arrival, Arrival::Recovered));
        if !self.is_guest() && !recovers {
            self.anticipate(now, &mut events).await;
        }
        if events.is_empty() {
            return Ok(verdicts);
        }
        // In the same write, so that a crash before they are cancelled leaves them to be looked at.
        let given_up = self.given_up(&children).map(|(_, child)| Wake::up(child));
        let wakes = given_up.chain(self.wakes_of(&events, asked)).collect();
        let consumption = self.consumption(user, &events, asks_elsewhere).await?;
        let entry = self
            .append(events, consumption.clone(), wakes, now, idempotency)
            .await?;
        self.count_consumption(&consumption).await;
        self.after_append(&entry, asked).await;
        self.remember_consents(&entry.events).await?;
        if self.inner.settings.always_evict {
            self.reload().await?;
        }
        Ok(verdicts)
    }

    /// Has the run take an arrival. One whose schema may take long to check is taken off the runtime's threads.
    async fn take(&mut self, arrival: Arrival, now: Time) -> Result<Vec<Event>, Rejected> {
        if self.run.is_quick(&arrival) {
            return self.run.take(arrival, now);
        }
        let share = share_of(self.project, self.run.speaker());
        // A run without events stands in meanwhile. Nobody sees it: whatever drops this future drops the driver.
        let empty = Run::new(self.id, self.run.agent().clone(), self.run.tools().clone());
        let mut run = std::mem::replace(&mut self.run, empty);
        let work = move || {
            let taken = run.take(arrival, now);
            (run, taken)
        };
        let (run, taken) = self.inner.blocking.run(share, work).await;
        self.run = run;
        taken
    }

    /// What can be known at once goes into the same write: outputs that need no execution, and the starts of
    /// calls that must not start unrecorded.
    async fn anticipate(&mut self, now: Time, events: &mut Vec<Event>) {
        while let Some(arrival) = self.obvious() {
            match self.take(arrival, now).await {
                Ok(caused) => events.extend(caused),
                Err(rejected) => unreachable!("what is due can be done: {rejected:?}"),
            }
        }
    }

    fn obvious(&self) -> Option<Arrival> {
        let mut slots = self.inner.settings.parallel_calls;
        let stopping = self.inner.is_stopping();
        self.run.due().into_iter().find_map(|due| {
            let Due::Call(call) = due else { return None };
            let tool = call.definition.as_ref().expect("only a known tool runs");
            let id = call.tool.call;
            let fresh = call.state == CallState::Ready && !stopping;
            if tool.execution.is_run() {
                // Somebody else's work takes no slot.
                return fresh.then(|| Arrival::Delegated {
                    call: id,
                    leg: call.leg,
                    handle: Handle::Run(RunId::new(Uuid::now_v7())),
                    check_at: None,
                    child: None,
                    questions: Vec::new(),
                });
            }
            slots = slots.checked_sub(1)?;
            let output = |output| {
                Some(Arrival::Output {
                    call: id,
                    leg: call.leg,
                    outcome: Outcome::Output(output),
                    log: None,
                })
            };
            match &tool.execution {
                Execution::Static(value) => output(value.clone()),
                Execution::PassThrough => output(call.input()),
                Execution::Source(_) if fresh && tool.retry == Retry::Never => {
                    Some(Arrival::Started { call: id })
                }
                Execution::Agent { .. }
                | Execution::Spawn
                | Execution::Prompt(_)
                | Execution::Source(_)
                | Execution::Waiting(_)
                | Execution::Client => None,
            }
        })
    }

    /// What these events add to the counters of the project; `user` is whom the run worked for before them.
    async fn consumption(
        &mut self,
        user: Option<EntityId>,
        events: &[Event],
        asks_elsewhere: bool,
    ) -> Result<Vec<Consumption>, StoreError> {
        let cut_off = self.cut_off(events, asks_elsewhere);
        if !consumption::has_any(events) && cut_off.is_none() {
            return Ok(Vec::new());
        }
        let settings = self.inner.project_settings(self.project).await?;
        Ok(consumption::of(
            &self.run,
            self.project,
            user,
            events,
            cut_off,
            &settings.prices,
        ))
    }

    /// What a request to the model has used that a cancel leaves without a reply. It counts, or whoever cancels every run a
    /// moment before its end would have no budget. No vendor tells it, so it is estimated.
    fn cut_off(&self, events: &[Event], asks_elsewhere: bool) -> Option<Usage> {
        let cancels =
            |event: &Event| matches!(event, Event::RunFinish(end) if end.status == Status::Cancelled);
        let replied = |event: &Event| matches!(event, Event::StepFinish(_) | Event::ContextCut(_));
        if !events.iter().any(cancels) || events.iter().any(replied) {
            return None;
        }
        match &self.asking {
            Some(asking) => asking.progress.usage(),
            None => asks_elsewhere.then(|| estimate::usage_elsewhere(&self.run)),
        }
    }

    /// Whether the node that drives the run has a request to the model under way, as far as the log tells.
    fn asks_elsewhere(&self, now: Time) -> bool {
        let is_asked = |due: &Due<'_>| matches!(due, Due::Ask { not_before, .. } if not_before.is_none_or(|moment| moment <= now));
        self.is_guest() && self.run.request().is_none() && self.run.due().iter().any(is_asked)
    }

    /// Counts what was stored, for the budgets of this node and for the metrics.
    async fn count_consumption(&mut self, added: &[Consumption]) {
        for added in added {
            self.inner.budgets.add(added);
            // The settings were read for the append; without them only the metrics lack a label.
            let settings = self.inner.project_settings(self.project).await;
            let currency = settings.map(|settings| settings.prices.currency.clone());
            self.inner
                .figures
                .count_consumption(&self.run, added, &currency.unwrap_or_default());
        }
    }

    async fn append(
        &mut self,
        events: Vec<Event>,
        consumption: Vec<Consumption>,
        wakes: Vec<Wake>,
        now: Time,
        idempotency: Vec<crate::store::IdempotencyRecord>,
    ) -> Result<Arc<Entry>, StoreError> {
        let idle = self.run.due().is_empty();
        let node = self.inner.settings.node;
        let (write, lease, epoch) = match (self.lease, idle) {
            (Lease::Ours, true) => (LeaseWrite::Release, Lease::Free, self.epoch),
            (Lease::Free, false) => (LeaseWrite::Take(node), Lease::Ours, self.epoch + 1),
            (lease, _) => (LeaseWrite::Keep, lease, self.epoch),
        };
        let wake_at = self.run.wake_at();
        let status = self.run.status();
        let run = RunWrite::Extend {
            id: self.id,
            version: self.version,
            epoch: self.epoch,
            status,
            wake_at,
            lease: write,
        };
        let told = self.run.tell_above(&events);
        let above = Above {
            space: self.home,
            run: self.root,
            events: told,
        };
        let append = Append {
            space: self.space,
            run,
            above: Some(above).filter(|above| !above.events.is_empty()),
            usage: usage::of(&self.run, self.project, &events),
            consumption,
            events,
            wakes,
            time: now,
            idempotency,
        };
        let entry = self.inner.store.append(append).await?;
        self.run.stored(&entry);
        self.version = entry.last();
        (self.lease, self.epoch) = (lease, epoch);
        if let Lease::Other(driver) = lease {
            self.inner.poke_driver(self.id, driver);
        }
        if idle && let Some(wake_at) = wake_at {
            self.inner.wake(wake_at);
        }
        self.inner
            .figures
            .count(self.project, &self.run, &entry, self.vendor_status);
        if self.run.status().is_final() {
            self.inner.user_tokens.forget(self.id);
        }
        Ok(entry)
    }

    fn answer(&mut self, pending: Vec<Pending>, verdicts: Vec<Option<Rejected>>) {
        for (one, verdict) in pending.into_iter().zip(verdicts) {
            match (verdict, one.respond) {
                // Kept until the step is whole: the call it answers may be announced then.
                (Some(Rejected::NotYet), Some(respond)) if self.early.len() >= EARLY_MAX => {
                    respond(Fate::Busy)
                }
                (Some(Rejected::NotYet), respond @ Some(_)) => {
                    self.early.push(Pending {
                        arrival: one.arrival,
                        idempotency: Vec::new(),
                        respond,
                    });
                }
                (None, Some(respond)) => respond(Fate::Taken(&self.run)),
                (Some(rejected), Some(respond)) => respond(Fate::Rejected(&self.run, rejected)),
                (_, None) => {}
            }
        }
    }

    /// Calls of this run that others execute.
    fn children(&self) -> Vec<(CallId, RunId)> {
        let calls = self.run.calls().iter();
        let children = calls.filter_map(|call| match call.state {
            CallState::Delegated {
                handle: Handle::Run(child),
                ..
            } => Some((call.tool.call, child)),
            _ => None,
        });
        children.collect()
    }

    /// Those of `children` whose answer nobody waits for any more.
    fn given_up(&self, children: &[(CallId, RunId)]) -> impl Iterator<Item = (CallId, RunId)> {
        children.iter().copied().filter(|(call, _)| {
            let state = self.run.call(*call).map(|call| &call.state);
            matches!(state, Some(CallState::Settled(settled)) if is_given_up(&settled.outcome))
        })
    }

    /// Ends those of `children` whose answer nobody waits for any more.
    async fn give_up(&mut self, children: Vec<(CallId, RunId)>) {
        let given_up: Vec<_> = self.given_up(&children).collect();
        if !given_up.is_empty() {
            // None of them is started from here on.
            self.watch.restart();
        }
        for (_, child) in given_up {
            if let Err(error) = self.inner.cancel(child).await {
                // It is cancelled when it is next looked at: its parent does not wait for it.
                tracing::warn!(run = %child, %error, "a child run could not be cancelled now");
                self.inner.adrift(child);
            }
        }
    }
}

/// Whether a call was settled without its executor.
pub(super) fn is_given_up(outcome: &Outcome) -> bool {
    let Outcome::Error { code, .. } = outcome else {
        return false;
    };
    matches!(
        code,
        ErrorCode::Cancelled | ErrorCode::Superseded | ErrorCode::Timeout
    )
}

pub(super) fn respond_all<'a>(pending: Vec<Pending>, fate: impl Fn() -> Fate<'a>) {
    pending
        .into_iter()
        .filter_map(|one| one.respond)
        .for_each(|respond| respond(fate()));
}
