//! Letters to runs. A run that is not in memory is brought there by its first letter, also when another node
//! drives it; one that only waits leaves again by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{mpsc, oneshot};
use toolgate_fair::Permit;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{NodeId, RunId};
use toolgate_kernel::run::{Arrival, Rejected, Run};

use crate::Inner;
use crate::bus::{BusListener, Gap, Notice};
use crate::driver::Driver;
use crate::intake::{IntakeError, Subject, answer_for};
use crate::store::{IdempotencyRecord, StoreError};

/// Letters that wait for one run.
const LETTERS_MAX: usize = 64;
/// How often a letter is sent again when its run leaves memory at the same moment.
const SENDINGS_MAX: usize = 16;

/// The runs in memory.
#[derive(Default)]
pub(crate) struct Active {
    senders: Mutex<HashMap<RunId, mpsc::Sender<Letter>>>,
}

/// Something for a run, and who wants to know what became of it.
pub(crate) struct Letter {
    pub content: Content,
    pub respond: Responder,
}

pub(crate) enum Content {
    /// To be taken, stored and acted on.
    Arrival {
        arrival: Box<Arrival>,
        idempotency: Vec<IdempotencyRecord>,
    },
    /// Something that the run waits for has happened: it looks at its delegated calls.
    Poke,
    /// The run's log goes up to here, whoever wrote it: what is in memory may be out of date.
    Stored(Seq),
}

pub(crate) type Responder = Box<dyn FnOnce(Fate<'_>) + Send>;

/// What became of a letter.
pub(crate) enum Fate<'a> {
    /// It is stored.
    Taken(&'a Run),
    /// It was not taken; the run is as it was.
    Rejected(&'a Run, Rejected),
    /// There is no such run.
    NoRun,
    /// Too much waits for the run's step to end.
    Busy,
    /// The store failed.
    Failed(StoreError),
}

impl Active {
    pub fn count(&self) -> usize {
        self.lock().len()
    }
    /// The runs in memory, in no order.
    pub fn runs(&self) -> Vec<RunId> {
        self.lock().keys().copied().collect()
    }
    /// Makes room for a run that begins in memory.
    pub fn admit(&self, run: RunId) -> mpsc::Receiver<Letter> {
        let (sender, receiver) = mpsc::channel(LETTERS_MAX);
        self.lock().insert(run, sender);
        receiver
    }
    /// Takes a run out, unless a letter has come for it.
    pub fn leave(&self, run: RunId, letters: &mut mpsc::Receiver<Letter>) -> Option<Letter> {
        let mut senders = self.lock();
        match letters.try_recv() {
            Ok(letter) => Some(letter),
            Err(_) => {
                senders.remove(&run);
                None
            }
        }
    }
    /// Sends a run in memory something that nobody waits for; whether it was taken. Nothing when it is not in memory.
    pub fn send(&self, run: RunId, content: Content) -> Option<bool> {
        // Sent under the lock: a driver that leaves memory looks for letters under it.
        let senders = self.lock();
        let respond: Responder = Box::new(|_| {});
        let letter = Letter { content, respond };
        senders.get(&run).map(|sender| sender.try_send(letter).is_ok())
    }
    /// Takes a run out whatever has come for it.
    pub fn remove(&self, run: RunId) {
        self.lock().remove(&run);
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, mpsc::Sender<Letter>>> {
        self.senders.lock().expect("no panic holds the active runs")
    }
}

impl Inner {
    /// Brings an arrival to a run and reads the answer off the run once it is stored.
    pub(crate) async fn deliver<T: Send + 'static>(
        self: &Arc<Self>,
        run: RunId,
        arrival: Arrival,
        read: impl Fn(&Run) -> Option<T> + Clone + Send + 'static,
    ) -> Result<T, IntakeError> {
        self.deliver_once(run, arrival, Vec::new(), read).await
    }

    /// The same, remembering the answer to a request that may be sent again.
    pub(crate) async fn deliver_once<T: Send + 'static>(
        self: &Arc<Self>,
        run: RunId,
        arrival: Arrival,
        idempotency: Vec<IdempotencyRecord>,
        read: impl Fn(&Run) -> Option<T> + Clone + Send + 'static,
    ) -> Result<T, IntakeError> {
        let subject = Subject::of(&arrival);
        for _ in 0..SENDINGS_MAX {
            let (sender, answer) = oneshot::channel();
            let read = read.clone();
            let respond: Responder = Box::new(move |fate| {
                // The asker may have gone: then nobody needs the answer, and what is stored stays stored.
                let _ = sender.send(answer_for(fate, subject, read));
            });
            let content = Content::Arrival {
                arrival: Box::new(arrival.clone()),
                idempotency: idempotency.clone(),
            };
            self.send(run, Letter { content, respond }).await;
            if let Ok(answer) = answer.await {
                return answer;
            }
        }
        Err(IntakeError::Busy(
            "the run cannot be reached now; try again".into(),
        ))
    }

    async fn send(self: &Arc<Self>, run: RunId, letter: Letter) {
        let sender = {
            let mut senders = self.active.lock();
            match senders.get(&run) {
                Some(sender) => sender.clone(),
                None => {
                    let (sender, receiver) = mpsc::channel(LETTERS_MAX);
                    senders.insert(run, sender.clone());
                    self.tasks.spawn(Driver::wake(self.clone(), run, receiver, None));
                    sender
                }
            }
        };
        // Fails when the run has just left memory: the letter's responder is dropped, and the asker sends again.
        let _ = sender.send(letter).await;
    }

    /// Has a run look at its delegated calls, now, on whichever node has it in memory; brings it to memory here when
    /// nobody drives it. Never waits: a child that ends must not wait for its parent, which may be waiting for the
    /// child.
    pub(crate) fn poke(self: &Arc<Self>, run: RunId) {
        match self.active.send(run, Content::Poke) {
            Some(true) => {}
            // It has more letters than it can take, or its task has broken off.
            Some(false) => self.adrift(run),
            None => self.summon(run),
        }
        self.bus
            .publish(self.settings.node, &Notice::Poke { run, node: None });
    }

    /// Tells the node that drives a run that somebody else has appended to it.
    pub(crate) fn poke_driver(&self, run: RunId, node: NodeId) {
        let node = Some(node);
        self.bus.publish(self.settings.node, &Notice::Poke { run, node });
    }

    /// Has another node take up a run that this one leaves with work to do, so that it does not wait for the next look at the
    /// store. Runs are spread over the nodes by their ids.
    pub(crate) fn hand_over(&self, run: RunId) {
        let own = self.settings.node;
        let mut others = self.bus.others(own);
        others.sort_unstable();
        let spread = u128::from_be_bytes(run.to_bytes()) % others.len().max(1) as u128;
        if let Some(node) = others.get(spread as usize) {
            self.poke_driver(run, *node);
        }
    }

    /// Brings a run to memory if it is not there: it looks by itself what is due.
    pub(crate) fn summon(self: &Arc<Self>, run: RunId) {
        self.summon_seated(run, None);
    }

    /// The same for a run whose turn to begin has come; false when it was in memory.
    pub(crate) fn summon_seated(self: &Arc<Self>, run: RunId, permit: Option<Permit>) -> bool {
        let mut senders = self.active.lock();
        let std::collections::hash_map::Entry::Vacant(vacant) = senders.entry(run) else {
            return false;
        };
        let (sender, receiver) = mpsc::channel(LETTERS_MAX);
        vacant.insert(sender);
        self.tasks
            .spawn(Driver::wake(self.clone(), run, receiver, permit));
        true
    }
}

impl BusListener for Weak<Inner> {
    fn heard(&self, notice: &Notice) {
        let Some(inner) = self.upgrade() else { return };
        match notice {
            Notice::Live { space, live, again } => inner.feed.live_elsewhere(*space, live, *again),
            Notice::Committed {
                space,
                run,
                first,
                last,
                ends_step,
            } => {
                inner
                    .feed
                    .committed_elsewhere(*space, *run, (*first, *last), *ends_step);
                // When its queue is full, the writes that wait there find out by themselves.
                run.map(|run| inner.active.send(run, Content::Stored(*last)));
                // Which events were stored is not told: one look too many at a row does no harm.
                run.iter().for_each(|run| inner.run_changes.changed(*run));
            }
            Notice::Poke { run, node: None } => {
                if inner.active.send(*run, Content::Poke) == Some(false) {
                    inner.adrift(*run);
                }
            }
            // In memory it has heard of the commit; if it has just left, it must look again.
            Notice::Poke {
                run,
                node: Some(node),
            } if *node == inner.settings.node => inner.summon(*run),
            Notice::Poke { .. } => {}
            Notice::Wanted { space } => inner.feed.wanted_elsewhere(*space),
            Notice::Revoked(revoked) => inner.revoked(*revoked),
        }
    }

    fn missed(&self, gap: Gap) {
        if let Some(inner) = self.upgrade() {
            inner.missed.note(gap);
        }
    }
}
