//! Arrivals into the log: taken by the kernel, stored in one write, then answered. When nobody knows whether a
//! write happened, the run is read again and the same arrivals are taken again: what is there already is
//! recognised.

use std::time::Duration;

use toolgate_kernel::call::{CallState, ErrorCode, Handle, Outcome};
use toolgate_kernel::event::Event;
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::run::{Arrival, Due, Rejected};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Execution, Retry};
use uuid::Uuid;

use super::{Adrift, Driver, Pending};
use crate::deliver::Fate;
use crate::store::{Append, LeaseWrite, RunWrite, StoreError, Wake};
use crate::usage;

/// How often a write is tried before the run is left for later.
const WRITE_ATTEMPTS: u32 = 8;
/// Results that may wait for the step that announces their calls.
const EARLY_MAX: usize = 256;
/// The first wait before a write is tried again; doubles each time.
const WRITE_DELAY: Duration = Duration::from_millis(10);

impl Driver {
    /// Takes what arrived, stores what it caused, and answers. The run is as its log when this returns.
    pub(super) async fn settle(&mut self, mut pending: Vec<Pending>) -> Result<(), Adrift> {
        // What came early comes after what may announce its call.
        pending.append(&mut self.early);
        let children = self.children();
        let known = self.version;
        let mut delay = WRITE_DELAY;
        // After a failed write the run is ahead of its log: nothing is taken before it has been read again.
        let mut stale = false;
        for attempt in 1..=WRITE_ATTEMPTS {
            let tried = match stale {
                true => self.reload().await,
                false => Ok(()),
            };
            if stale && tried.is_ok() {
                if self.elsewhere {
                    respond_all(pending, || Fate::Busy);
                    return Err(Adrift);
                }
                // Others may have acted on the same wake-ups.
                self.watch.restart();
                if self.version != known {
                    // The take-over was stored: a second one would take back what the first began.
                    pending.retain(|one| !matches!(one.arrival, Arrival::Recovered));
                }
            }
            let tried = match tried {
                Ok(()) => self.try_settle(&mut pending).await,
                Err(error) => Err(error),
            };
            stale = true;
            match tried {
                Ok(verdicts) => {
                    self.give_up(children).await;
                    self.answer(pending, verdicts);
                    return Ok(());
                }
                Err(error) if attempt == WRITE_ATTEMPTS => {
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
                Err(StoreError::Conflict) => {}
                // The same request was faster by another way: it has its answer there.
                Err(StoreError::Exists) => {
                    let (known, rest) = pending.into_iter().partition(|one| one.idempotency.is_some());
                    pending = rest;
                    respond_all(known, || Fate::Failed(StoreError::Exists));
                }
                Err(error) => {
                    tracing::warn!(run = %self.id, %error, attempt, "a write failed; the run is read again");
                    tokio::time::sleep(delay).await;
                    delay *= 2;
                }
            }
        }
        Err(Adrift)
    }

    async fn try_settle(&mut self, pending: &mut [Pending]) -> Result<Vec<Option<Rejected>>, StoreError> {
        let now = self.inner.clock.now();
        let children = self.children();
        let mut events = Vec::new();
        let mut verdicts = Vec::with_capacity(pending.len());
        let mut idempotency = None;
        if self.run.wake_at().is_some_and(|moment| moment <= now) {
            // What is past its deadline is over before anything else is taken.
            events.extend(self.run.take(Arrival::Tick, now).unwrap_or_default());
        }
        for one in pending.iter() {
            match self.run.take(one.arrival.clone(), now) {
                Ok(caused) => {
                    events.extend(caused);
                    if idempotency.is_none() {
                        idempotency = one.idempotency.clone();
                    }
                    verdicts.push(None);
                }
                Err(rejected) => verdicts.push(Some(rejected)),
            }
        }
        self.anticipate(now, &mut events);
        if events.is_empty() {
            return Ok(verdicts);
        }
        // In the same write, so that a crash before they are cancelled leaves them to be looked at.
        let given_up = self.given_up(&children).map(|(_, child)| Wake::up(child));
        let wakes = given_up.chain(self.wakes_of(&events)).collect();
        self.append(events, wakes, now, idempotency).await?;
        if self.inner.settings.always_evict {
            self.reload().await?;
        }
        Ok(verdicts)
    }

    /// What can be known at once goes into the same write: outputs that need no execution, and the starts of
    /// calls that must not start unrecorded.
    fn anticipate(&mut self, now: Time, events: &mut Vec<Event>) {
        while let Some(arrival) = self.obvious() {
            match self.run.take(arrival, now) {
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
                    handle: Handle::Run(RunId::new(Uuid::now_v7())),
                    check_at: None,
                });
            }
            slots = slots.checked_sub(1)?;
            let output = |output| {
                Some(Arrival::Output {
                    call: id,
                    outcome: Outcome::Output(output),
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

    async fn append(
        &mut self,
        events: Vec<Event>,
        wakes: Vec<Wake>,
        now: Time,
        idempotency: Option<crate::store::IdempotencyRecord>,
    ) -> Result<(), StoreError> {
        let idle = self.run.due().is_empty();
        let (lease, held, epoch) = match (self.held, idle) {
            (true, true) => (LeaseWrite::Release, false, self.epoch),
            (false, false) => (LeaseWrite::Take(self.inner.settings.node), true, self.epoch + 1),
            (held, _) => (LeaseWrite::Keep, held, self.epoch),
        };
        let wake_at = self.run.wake_at();
        let status = self.run.status();
        let run = RunWrite::Extend {
            id: self.id,
            version: self.version,
            epoch: self.epoch,
            status,
            wake_at,
            lease,
        };
        let append = Append {
            space: self.space,
            run,
            usage: usage::of(&self.run, self.project, &events),
            events,
            wakes,
            time: now,
            idempotency,
        };
        let entry = self.inner.store.append(append).await?;
        self.run.stored(&entry);
        self.version = entry.last();
        (self.held, self.epoch) = (held, epoch);
        self.after_append(&entry).await;
        if idle && let Some(wake_at) = wake_at {
            self.inner.wake(wake_at);
        }
        self.inner.count(&entry);
        Ok(())
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
                        idempotency: None,
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
fn is_given_up(outcome: &Outcome) -> bool {
    let Outcome::Error { code, .. } = outcome else {
        return false;
    };
    matches!(
        code,
        ErrorCode::Cancelled | ErrorCode::Superseded | ErrorCode::Timeout
    )
}

fn respond_all<'a>(pending: Vec<Pending>, fate: impl Fn() -> Fate<'a>) {
    pending
        .into_iter()
        .filter_map(|one| one.respond)
        .for_each(|respond| respond(fate()));
}
