//! One task per run that has work: takes what arrives, stores it, and does what is due. A run that only waits
//! leaves memory; its next letter brings it back from the log.
//!
//! A letter may also come to a node that does not drive the run. Then the task is a guest: it stores the arrival
//! with the version and epoch it has read, pokes the driver, and does nothing of what is due.

mod child;
mod commit;
mod consents;
mod delegated;
mod earlier;
mod effects;
mod guest;
mod load;
mod pasts;
mod request;
mod rewritten;
mod source_call;
mod tasks;
mod window;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, BoxFuture, abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use toolgate_fair::{Permit, Share};
use toolgate_kernel::event::{ContextCut, Seq};
use toolgate_kernel::id::{CallId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::run::{Arrival, Consent, Due, EarlierOutput, Reply, ReplyPart, Run};

use self::commit::respond_all;
use self::delegated::{Above, Look, Watch};
pub(crate) use self::load::patient;
pub(crate) use self::pasts::Pasts;
pub(crate) use self::request::RequestProgress;
use self::source_call::Came;
pub(crate) use self::window::Past;
use crate::Inner;
use crate::agents::Kit;
use crate::deliver::{Content, Fate, Letter, Responder};
use crate::feed::Driving;
use crate::model::{Ending, ModelError, ModelErrorKind};
use crate::shares::share_of;
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
    lease: Lease,
    /// The run's log goes at least up to here, as another node says.
    stored_to: Seq,
    letters: mpsc::Receiver<Letter>,
    /// Results that came before the call they answer was whole.
    early: Vec<Pending>,
    /// How often a guest has looked whether the step has ended that `early` waits for.
    looks: u32,
    driving: Arc<Driving>,
    /// What was said in the space before the run; read when it is first needed.
    past: Option<Arc<Past>>,
    /// How often something of its space was deleted, when the run or its past was read; none if nobody has looked yet.
    rewrites: Option<u64>,
    /// Most tokens of a request, once the vendor has refused a longer one.
    window: Option<u64>,
    /// HTTP status that the vendor refused the last request with, for the log line of a run that fails by it.
    vendor_status: Option<u16>,
    asking: Option<Asking>,
    /// Calls that run here now, and what stops them.
    running: HashMap<CallId, AbortHandle>,
    /// Looks at tasks of sources: the leg of the call that each is for, and what stops it.
    task_looks: HashMap<CallId, (u32, AbortHandle)>,
    /// What is known of the calls that others carry on.
    watch: Watch,
    /// Nothing comes of what was stopped.
    under_way: FuturesUnordered<BoxFuture<'static, Option<Done>>>,
    seat: Seat,
}

/// Who drives a run, as its row said when it was last read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lease {
    /// This node.
    Ours,
    /// Nobody.
    Free,
    /// Another node: this task is a guest.
    Other(NodeId),
}

impl Lease {
    fn of(holder: Option<NodeId>, own: NodeId) -> Self {
        match holder {
            Some(node) if node == own => Self::Ours,
            Some(node) => Self::Other(node),
            None => Self::Free,
        }
    }
}

/// The model is being asked.
struct Asking {
    step: u32,
    failures: u32,
    progress: Arc<RequestProgress>,
    handle: AbortHandle,
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
    /// What was said before it, if that is known.
    pub past: Option<Arc<Past>>,
    pub seat: Seat,
}

/// An arrival on its way into the log.
pub(crate) struct Pending {
    arrival: Arrival,
    idempotency: Vec<IdempotencyRecord>,
    /// Who wants to know; nobody for what the engine itself did.
    respond: Option<Responder>,
}

impl Pending {
    fn own(arrival: Arrival) -> Self {
        Self {
            arrival,
            idempotency: Vec::new(),
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
        person_grants: Vec<String>,
        earlier: Vec<EarlierOutput>,
        consents: Vec<Consent>,
        ending: Result<Ending, ModelError>,
    },
    /// Nothing: the run and its run tree have used up what they may.
    Exhausted(String),
    /// Nothing yet: a part of the conversation has to be left out first.
    Cut(Box<ContextCut>),
    /// A call on the gateway's side.
    Called { call: CallId, leg: u32, came: Came },
    /// A look at the task that has a call.
    TaskLooked { call: CallId, leg: u32, came: Came },
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
            past,
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
            lease: Lease::Ours,
            stored_to: Seq(0),
            letters,
            early: Vec::new(),
            looks: 0,
            driving: Arc::new(driving),
            past,
            rewrites: None,
            window: None,
            vendor_status: None,
            asking: None,
            running: HashMap::new(),
            task_looks: HashMap::new(),
            watch: Watch::default(),
            under_way: FuturesUnordered::new(),
            seat,
        };
        driver.drive(Vec::new()).boxed()
    }

    /// Brings a run to memory, and drives it as far as it goes.
    pub fn wake(
        inner: Arc<Inner>,
        id: RunId,
        letters: mpsc::Receiver<Letter>,
        permit: Option<Permit>,
    ) -> BoxFuture<'static, ()> {
        let seat = Seat::new(inner.clone(), id, permit);
        Self::wake_up(inner, id, letters, seat).boxed()
    }

    async fn wake_up(inner: Arc<Inner>, id: RunId, letters: mpsc::Receiver<Letter>, seat: Seat) {
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
                            seat.release();
                        }
                    }
                    load::Why::Store(error) => tracing::error!(run = %id, %error, "a run cannot be read"),
                    load::Why::NoRun => seat.release(),
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
        if pending
            .iter()
            .any(|one| matches!(one.arrival, Arrival::Recovered))
        {
            // The take-over is stored before anything starts.
            for pending in [std::mem::take(&mut pending), Vec::new()] {
                if self.settle(pending).await.is_err() {
                    return;
                }
            }
        }
        loop {
            let moved = !pending.is_empty() || self.is_behind();
            if moved && self.settle(std::mem::take(&mut pending)).await.is_err() {
                return;
            }
            if self.forget_rewritten().await.is_err() || self.perform().await.is_err() {
                return;
            }
            if self.under_way.is_empty() && !self.waits_for_step() {
                match self.inner.active.leave(self.id, &mut self.letters) {
                    Some(letter) => pending = self.open(letter),
                    None => {
                        self.seat.left();
                        return self.depart().await;
                    }
                }
                continue;
            }
            let halt = self.inner.halt.clone();
            let stopping = self.inner.stopping.clone();
            let drains = stopping.is_cancelled();
            let deadline = self.next_deadline();
            tokio::select! {
                biased;
                () = halt.cancelled() => return self.depart().await,
                Some(letter) = self.letters.recv() => pending = self.open(letter),
                Some(done) = self.under_way.next() => {
                    let arrivals = done.map(|done| self.arrivals_of(done)).unwrap_or_default();
                    pending = arrivals.into_iter().map(Pending::own).collect();
                }
                () = deadline => pending = self.past_deadline(),
                // What only waits must not hold the drain: it is looked at once more.
                () = stopping.cancelled(), if !drains => {}
            }
        }
    }

    /// A letter and those behind it.
    fn open(&mut self, letter: Letter) -> Vec<Pending> {
        let mut pending = Vec::new();
        let mut next = Some(letter);
        while let Some(Letter { content, respond }) = next {
            match content {
                Content::Arrival { arrival, idempotency } => {
                    let last = !idempotency.is_empty();
                    pending.push(Pending {
                        arrival: *arrival,
                        idempotency,
                        respond: Some(respond),
                    });
                    // One write remembers one request.
                    if last {
                        break;
                    }
                }
                Content::Poke => self.watch.want(),
                Content::Stored(place) => self.stored_to = self.stored_to.max(place),
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
                person_grants,
                earlier,
                consents,
                ending,
            } => {
                self.asking = None;
                self.vendor_status = ending.as_ref().err().and_then(|error| error.status);
                match ending {
                    Ok(Ending { reason, usage }) => Arrival::Reply(Reply {
                        step,
                        parts,
                        person_grants,
                        earlier,
                        consents,
                        reason,
                        usage,
                    }),
                    Err(error) => {
                        let (retryable, retry_after) = match error.kind {
                            ModelErrorKind::Retryable => (true, error.retry_after),
                            ModelErrorKind::Final => (false, None),
                            // A shorter request is another one: there is nothing to wait for.
                            ModelErrorKind::TooLong => (self.halve_window(), Some(Duration::ZERO)),
                        };
                        Arrival::Broke {
                            step,
                            failures,
                            retryable,
                            retry_after,
                            error: error.message,
                        }
                    }
                }
            }
            Done::Cut(cut) => {
                self.asking = None;
                Arrival::Cut(cut)
            }
            Done::Exhausted(words) => {
                self.asking = None;
                Arrival::Exhausted(words)
            }
            Done::Called { call, leg, came } => {
                self.running.remove(&call);
                self.came(call, leg, came)
            }
            Done::TaskLooked { call, leg, came } => {
                self.task_looks.remove(&call);
                self.came(call, leg, came)
            }
            Done::Looked(looked) => return self.looked(looked),
        };
        vec![arrival]
    }

    /// Stops what is under way and no longer due, and starts what is due and not under way. Nothing new once the
    /// gateway goes down, and what only waits is given up then.
    async fn perform(&mut self) -> Result<(), Adrift> {
        let acts = !self.is_guest() && !self.inner.is_stopping();
        if acts {
            self.look();
            self.look_at_tasks();
        }
        self.stop_undue();
        if self.inner.is_stopping() {
            self.stop_waiting();
        }
        let due = self.run.due();
        if !acts || due.is_empty() {
            return Ok(());
        }
        if self.lease == Lease::Free {
            // Somebody gave the lease back with work left: whoever looks next takes it.
            return Err(Adrift);
        }
        // It is awaited, so it does not wait for others itself.
        self.seat.take(self.share());
        let mut ask = None;
        let mut calls = Vec::new();
        for due in due {
            match due {
                Due::Ask {
                    step,
                    failures,
                    not_before,
                } if self.asking.is_none() => ask = Some((step, failures, not_before)),
                Due::Call(call) if !self.running.contains_key(&call.tool.call) => {
                    if self.running.len() + calls.len() < self.inner.settings.parallel_calls {
                        calls.push(call.clone());
                    }
                }
                Due::Ask { .. } | Due::Call(_) => {}
            }
        }
        if let Some((step, failures, not_before)) = ask {
            let progress = Arc::new(RequestProgress::default());
            let asking = match (self.run.request().cloned(), self.exhausted().await?) {
                (Some(request), _) => self.write_call(step, failures, not_before, &request),
                (None, Some(words)) => std::future::ready(Done::Exhausted(words)).boxed(),
                (None, None) => {
                    let past = self.past().await?;
                    match self.overflow(&past) {
                        Some(cut) => self.cut(cut, &past, progress.clone()),
                        None => self.ask(step, failures, not_before, &past, progress.clone()),
                    }
                }
            };
            let handle = self.undertake(asking);
            self.asking = Some(Asking {
                step,
                failures,
                progress,
                handle,
            });
        }
        if calls.is_empty() {
            return Ok(());
        }
        let past = self.past().await?;
        for call in calls {
            let handle = self.undertake(self.call(&call, &past.turns));
            self.running.insert(call.tool.call, handle);
        }
        Ok(())
    }

    /// Whose share of seats and model calls it takes.
    fn share(&self) -> Share {
        share_of(self.project, self.run.speaker())
    }

    /// Stops a reply and calls that nobody waits for: the run was cancelled, went on, or is another node's.
    fn stop_undue(&mut self) {
        self.stop_task_looks();
        let due = match self.lease {
            Lease::Ours | Lease::Free => self.run.due(),
            Lease::Other(_) => Vec::new(),
        };
        if due.is_empty() && self.watch.is_idle() && self.task_looks.is_empty() {
            self.under_way.clear();
            self.running.clear();
            self.asking = None;
            return;
        }
        self.asking = self.asking.take().filter(|asking| {
            let wanted = due.iter().any(|due| {
                matches!(due, Due::Ask { step, failures, .. }
                    if (*step, *failures) == (asking.step, asking.failures))
            });
            if !wanted {
                asking.handle.abort();
            }
            wanted
        });
        self.running.retain(|id, handle| {
            let wanted = due
                .iter()
                .any(|due| matches!(due, Due::Call(call) if call.tool.call == *id));
            if !wanted {
                handle.abort();
            }
            wanted
        });
    }

    /// Gives up what only waits: for the time or the turn to ask the model, and for the end of a step that another node
    /// drives. The run goes on from its log.
    fn stop_waiting(&mut self) {
        let waits = |asking: &mut Asking| !asking.progress.has_begun();
        if let Some(asking) = self.asking.take_if(waits) {
            asking.handle.abort();
        }
        if self.is_guest() {
            respond_all(std::mem::take(&mut self.early), || Fate::Busy);
        }
    }

    fn undertake(&mut self, work: BoxFuture<'static, Done>) -> AbortHandle {
        let (work, handle) = abortable(work);
        self.under_way.push(work.map(Result::ok).boxed());
        handle
    }

    /// Ends when something of the run is past its deadline, or a guest should look again; never, when nothing is
    /// to expire.
    fn next_deadline(&self) -> impl Future<Output = ()> + 'static {
        // A moment later, so that a clock of milliseconds has reached it.
        const AFTER: Duration = Duration::from_millis(1);
        let wait = match self.lease {
            Lease::Other(_) => Some(guest::LOOK_EVERY),
            Lease::Ours | Lease::Free => {
                let now = self.inner.clock.now();
                // What is past belongs to the looks under way.
                let moment = match self.task_looks.is_empty() {
                    true => self.run.wake_at(),
                    false => self.run.wake_after(now),
                };
                moment.map(|moment| moment.since(now) + AFTER)
            }
        };
        async move {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Leaves a run that waits, or that another start will take up.
    async fn depart(mut self) {
        let seen = self.watch.take_seen();
        if self.is_guest() {
            return self.seat.release();
        }
        self.driving.forget(self.id);
        if self.lease == Lease::Ours || seen > 0 {
            let is_done = self.run.due().is_empty();
            let wakes = match is_done {
                true => -seen,
                // Work is left: whoever looks for some finds it.
                false => 1,
            };
            if let Err(error) = self.inner.store.release(self.id, self.epoch, wakes).await {
                // The row may still name this node, and then no other node looks at the run: this one has to, soon.
                return tracing::warn!(run = %self.id, %error, "the lease of a run was not given back; trying again");
            }
            if !is_done && self.inner.is_stopping() {
                self.inner.hand_over(self.id);
            }
        }
        self.seat.release();
    }
}

/// A run's place in memory. Given up without a word, the run is looked at again soon: whatever happened to its
/// task, it does not stay behind.
pub(crate) struct Seat {
    inner: Arc<Inner>,
    id: RunId,
    released: bool,
    /// Letters no longer come here, and the next one may have brought the run to memory again.
    is_out: bool,
    /// Its seat among the runs at work; none while it only handles letters.
    permit: Option<Permit>,
}

impl Seat {
    pub fn new(inner: Arc<Inner>, id: RunId, permit: Option<Permit>) -> Self {
        Self {
            inner,
            id,
            released: false,
            is_out: false,
            permit,
        }
    }
    /// Takes a seat among the runs at work, unless it has one, whether there is one free or not.
    fn take(&mut self, share: Share) {
        if self.permit.is_none() {
            self.permit = Some(self.inner.seats.take(share));
        }
    }
    /// The same if one is free; false when there is none.
    fn try_take(&mut self, share: Share) -> bool {
        if self.permit.is_none() {
            self.permit = self.inner.seats.try_take(share);
        }
        self.permit.is_some()
    }
    /// The run was taken out of those in memory.
    fn left(&mut self) {
        self.is_out = true;
    }
    /// Gives the place up in order.
    pub fn release(&mut self) {
        self.released = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.is_out {
            self.inner.active.remove(self.id);
        }
        if !self.released {
            self.inner.adrift(self.id);
        }
        self.inner.left();
    }
}
