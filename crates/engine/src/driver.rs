//! One task per run that has work: takes what arrives, stores it, and does what is due. A run that only waits
//! leaves memory; its next letter brings it back from the log.

mod child;
mod delegated;
mod load;
mod perform;
mod settle;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, BoxFuture, abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use toolgate_kernel::call::Outcome;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{CallId, ProjectId, RunId, SpaceId};
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::run::{Arrival, Due, Reply, ReplyPart, Run};

use self::delegated::{Above, Look, Watch};
use crate::Inner;
use crate::agents::Kit;
use crate::deliver::{Content, Fate, Letter, Responder};
use crate::feed::Driving;
use crate::model::{Ending, ModelError, ModelErrorKind};
use crate::store::{IdempotencyRecord, StoreError};

/// Letters taken together, and so stored in one write.
const LETTERS_AT_ONCE: usize = 32;

/// A run in memory.
pub(crate) struct Driver {
    inner: Arc<Inner>,
    id: RunId,
    project: ProjectId,
    space: SpaceId,
    /// The space of the run at the top: where the tools of all below it work too.
    home: SpaceId,
    root: RunId,
    /// The call that the run executes, for a child run.
    parent: Option<CallId>,
    /// Where progress of that call is shown, once it was read.
    above: Option<Above>,
    run: Run,
    kit: Arc<Kit>,
    /// Place of the run's first event.
    first: Seq,
    /// Place of its last.
    version: Seq,
    epoch: u64,
    /// Whether the lease is ours.
    held: bool,
    letters: mpsc::Receiver<Letter>,
    /// Another node holds the lease.
    elsewhere: bool,
    /// Results that came before the call they answer was whole.
    early: Vec<Pending>,
    driving: Arc<Driving>,
    /// What was said in the space before the run; read when it is first needed.
    history: Option<Arc<[Arc<Turn>]>>,
    /// Whether the model is being asked.
    asking: bool,
    /// Calls that run here now, and what stops them.
    running: HashMap<CallId, AbortHandle>,
    /// What is known of the calls that others carry on.
    watch: Watch,
    /// Nothing comes of what was stopped.
    under_way: FuturesUnordered<BoxFuture<'static, Option<Done>>>,
    seat: Seat,
}

/// What a driver needs to know of a run that begins in memory.
pub(crate) struct Begun {
    pub project: ProjectId,
    pub space: SpaceId,
    pub home: SpaceId,
    pub root: RunId,
    pub parent: Option<CallId>,
    pub run: Run,
    pub kit: Arc<Kit>,
    pub first: Seq,
    pub version: Seq,
    pub letters: mpsc::Receiver<Letter>,
    pub driving: Driving,
    pub history: Option<Arc<[Arc<Turn>]>>,
    pub seat: Seat,
}

/// An arrival on its way into the log.
pub(crate) struct Pending {
    arrival: Arrival,
    idempotency: Option<IdempotencyRecord>,
    /// Who wants to know; nobody for what the engine itself did.
    respond: Option<Responder>,
}

impl Pending {
    fn own(arrival: Arrival) -> Self {
        Self {
            arrival,
            idempotency: None,
            respond: None,
        }
    }
}

/// Something that was under way has ended.
pub(crate) enum Done {
    /// The model.
    Replied {
        step: u32,
        failures: u32,
        parts: Vec<ReplyPart>,
        ending: Result<Ending, ModelError>,
    },
    /// Nothing: the run and its family have used up what they may.
    Exhausted(String),
    /// A call on the gateway's side.
    Called { call: CallId, outcome: Outcome },
    /// The calls that others carry on were looked at; not, when the store failed.
    Looked(Result<Look, StoreError>),
}

/// The store cannot be reached for now: somebody else looks at the run later.
pub(crate) struct Adrift;

impl Driver {
    /// Drives a run that was just created here; its first step is due.
    pub fn begin(inner: Arc<Inner>, begun: Begun) -> BoxFuture<'static, ()> {
        let Begun {
            project,
            space,
            home,
            root,
            parent,
            run,
            kit,
            first,
            version,
            letters,
            driving,
            history,
            seat,
        } = begun;
        let driver = Self {
            inner,
            id: run.id(),
            project,
            space,
            home,
            root,
            parent,
            above: None,
            run,
            kit,
            first,
            version,
            epoch: 1,
            held: true,
            letters,
            elsewhere: false,
            early: Vec::new(),
            driving: Arc::new(driving),
            history,
            asking: false,
            running: HashMap::new(),
            watch: Watch::default(),
            under_way: FuturesUnordered::new(),
            seat,
        };
        driver.drive(Vec::new()).boxed()
    }

    /// Brings a run to memory, and drives it as far as it goes.
    pub fn wake(inner: Arc<Inner>, id: RunId, letters: mpsc::Receiver<Letter>) -> BoxFuture<'static, ()> {
        Self::wake_up(inner, id, letters).boxed()
    }

    async fn wake_up(inner: Arc<Inner>, id: RunId, letters: mpsc::Receiver<Letter>) {
        let seat = Seat::new(inner.clone(), id);
        match Self::load(inner, id, letters, seat).await {
            Ok((driver, pending)) => driver.drive(pending).await,
            Err(load::Unloaded {
                mut letters,
                why,
                mut seat,
            }) => {
                match &why {
                    load::Why::Store(error @ StoreError::Newer { .. }) => {
                        tracing::warn!(%error, "a run is left to a newer version");
                        if load::leave_to_newer(&seat.inner, id).await.is_ok() {
                            seat.rise();
                        }
                    }
                    load::Why::Store(error) => tracing::error!(run = %id, %error, "a run cannot be read"),
                    load::Why::NoRun | load::Why::Elsewhere => seat.rise(),
                }
                drop(seat);
                letters.close();
                while let Some(letter) = letters.recv().await {
                    (letter.respond)(why.fate());
                }
            }
        }
    }

    async fn drive(mut self, mut pending: Vec<Pending>) {
        loop {
            if !pending.is_empty() && self.settle(std::mem::take(&mut pending)).await.is_err() {
                return;
            }
            if self.perform().await.is_err() {
                return;
            }
            if self.under_way.is_empty() {
                match self.inner.active.leave(self.id, &mut self.letters) {
                    Some(letter) => pending = self.open(letter),
                    None => return self.depart().await,
                }
                continue;
            }
            let halt = self.inner.halt.clone();
            let deadline = self.next_deadline();
            tokio::select! {
                biased;
                () = halt.cancelled() => return self.depart().await,
                Some(letter) = self.letters.recv() => pending = self.open(letter),
                Some(done) = self.under_way.next() => {
                    let arrivals = done.map(|done| self.arrivals_of(done)).unwrap_or_default();
                    pending = arrivals.into_iter().map(Pending::own).collect();
                }
                () = deadline => {
                    self.check_delegated();
                    pending = vec![Pending::own(Arrival::Tick)];
                }
            }
        }
    }

    /// A letter and those behind it. Those that are only to be shown are shown.
    fn open(&mut self, letter: Letter) -> Vec<Pending> {
        let mut pending = Vec::new();
        let mut next = Some(letter);
        while let Some(Letter { content, respond }) = next {
            match content {
                Content::Arrival { arrival, idempotency } => {
                    let last = idempotency.is_some();
                    pending.push(Pending {
                        arrival,
                        idempotency,
                        respond: Some(respond),
                    });
                    // One write remembers one request.
                    if last {
                        break;
                    }
                }
                Content::Live(event) => {
                    self.driving.publish(self.id, self.inner.clock.now(), vec![event]);
                    respond(Fate::Taken(&self.run));
                }
                Content::Poke => {
                    self.watch.want();
                    respond(Fate::Taken(&self.run));
                }
            }
            next = if pending.len() < LETTERS_AT_ONCE {
                self.letters.try_recv().ok()
            } else {
                None
            };
        }
        pending
    }

    fn arrivals_of(&mut self, done: Done) -> Vec<Arrival> {
        let arrival = match done {
            Done::Replied {
                step,
                failures,
                parts,
                ending,
            } => {
                self.asking = false;
                match ending {
                    Ok(Ending { reason, usage }) => Arrival::Reply(Reply {
                        step,
                        parts,
                        reason,
                        usage,
                    }),
                    Err(error) => Arrival::Broke {
                        step,
                        failures,
                        retryable: error.kind == ModelErrorKind::Retryable,
                        retry_after: error.retry_after,
                        error: error.message,
                    },
                }
            }
            Done::Exhausted(words) => {
                self.asking = false;
                Arrival::Exhausted(words)
            }
            Done::Called { call, outcome } => {
                self.running.remove(&call);
                Arrival::Output { call, outcome }
            }
            Done::Looked(looked) => return self.looked(looked),
        };
        vec![arrival]
    }

    /// Starts what is due and not under way. Nothing new once the gateway goes down.
    async fn perform(&mut self) -> Result<(), Adrift> {
        if self.inner.is_stopping() {
            return Ok(());
        }
        self.look();
        let due = self.run.due();
        if due.is_empty() && self.watch.is_idle() {
            // Whatever is still under way, nobody waits for.
            self.under_way.clear();
            self.running.clear();
            self.asking = false;
            return Ok(());
        }
        let mut ask = None;
        let mut calls = Vec::new();
        for due in due {
            match due {
                Due::Ask {
                    step,
                    failures,
                    not_before,
                } if !self.asking => ask = Some((step, failures, not_before)),
                Due::Call(call) if !self.running.contains_key(&call.tool.call) => {
                    if self.running.len() + calls.len() < self.inner.settings.parallel_calls {
                        calls.push(call.clone());
                    }
                }
                Due::Ask { .. } | Due::Call(_) => {}
            }
        }
        if let Some((step, failures, not_before)) = ask {
            self.asking = true;
            let asking = match self.exhausted().await? {
                Some(words) => std::future::ready(Done::Exhausted(words)).boxed(),
                None => {
                    let history = self.history().await?;
                    self.ask(step, failures, not_before, history)
                }
            };
            self.undertake(asking);
        }
        if calls.is_empty() {
            return Ok(());
        }
        let history = self.history().await?;
        for call in calls {
            let handle = self.undertake(self.call(&call, &history));
            self.running.insert(call.tool.call, handle);
        }
        Ok(())
    }

    fn undertake(&mut self, work: BoxFuture<'static, Done>) -> AbortHandle {
        let (work, handle) = abortable(work);
        self.under_way.push(work.map(Result::ok).boxed());
        handle
    }

    /// Ends when something of the run is past its deadline; never, when nothing is to expire.
    fn next_deadline(&self) -> impl Future<Output = ()> + 'static {
        // A moment later, so that a clock of milliseconds has reached it.
        const AFTER: Duration = Duration::from_millis(1);
        let wait = self
            .run
            .wake_at()
            .map(|moment| moment.since(self.inner.clock.now()) + AFTER);
        async move {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Leaves a run that waits, or that another start will take up.
    async fn depart(mut self) {
        self.driving.forget(self.id);
        let seen = self.watch.take_seen();
        if self.held || seen > 0 {
            let wakes = match self.run.due().is_empty() {
                true => -seen,
                // Work is left: whoever looks for some finds it.
                false => 1,
            };
            // Lost or not, the lease ends with this process at the latest, and what was looked at is looked at again.
            let _ = self.inner.store.release(self.id, self.epoch, wakes).await;
        }
        self.seat.rise();
    }
}

/// A run's place in memory. Given up without a word, the run is looked at again soon: whatever happened to its
/// task, it does not stay behind.
pub(crate) struct Seat {
    inner: Arc<Inner>,
    id: RunId,
    risen: bool,
}

impl Seat {
    pub fn new(inner: Arc<Inner>, id: RunId) -> Self {
        Self {
            inner,
            id,
            risen: false,
        }
    }
    /// Gives the place up in order.
    pub fn rise(&mut self) {
        self.risen = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.inner.active.remove(self.id);
        if !self.risen {
            self.inner.adrift(self.id);
        }
        self.inner.room();
    }
}
