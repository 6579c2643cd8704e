//! Calls of servers of the older protocol that ask somebody in the middle: the server's request stays open while the
//! person thinks, so the call is kept here, and is lost with the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;
use toolgate_fair::{Limits, Permit, Queue, Share, Shares, Spare};
use toolgate_kernel::id::CallId;
use toolgate_mcp::{Answer, Asked, CallError, OpenCall, Step};

use crate::sampling::ServerSampling;
use crate::server_call::{ROUNDS_MAX, SAMPLINGS_MAX, asks_without_end};
use crate::supervisor::Lease;

/// Most calls that wait for people on one node: of one project seven eighths, of one user a quarter.
const LIVE_MAX: usize = 256;
/// Calls that have ended and that their runs have not looked at yet. Beyond it they are forgotten.
const ENDED_MAX: usize = 256;

/// Where such a call stands.
#[derive(Debug, Clone)]
pub(crate) enum Stand {
    /// It waits for the answer to this question.
    Asks {
        /// Counts the questions.
        round: u32,
        params: Value,
    },
    /// It goes on.
    Working,
    /// It has ended.
    Ended(Result<Answer, CallError>),
}

/// A call that is kept.
pub(crate) struct LiveCall {
    answers: mpsc::Sender<Value>,
    stand: watch::Receiver<Stand>,
    /// Dropping it gives the call up.
    _task: AbortOnDropHandle<()>,
}

/// A call in the middle of which its server asks somebody.
pub(crate) struct AskingCall {
    pub call: OpenCall,
    /// The first question.
    pub asked: Asked,
    pub lease: Lease,
    /// Answers what the server wants of a model meanwhile.
    pub sampling: ServerSampling,
}

/// All of them, by call.
pub(crate) struct LiveCalls {
    calls: Mutex<HashMap<CallId, Arc<LiveCall>>>,
    room: Arc<Queue>,
}

impl Default for LiveCalls {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            room: Queue::new(Limits {
                running: Shares::of(LIVE_MAX),
                waiting: Shares::same(0),
                waiting_bytes: Shares::same(0),
                spare: Spare::NONE,
            }),
        }
    }
}

impl LiveCalls {
    /// Keeps a call that waits for an answer. False when there are too many.
    pub fn keep(&self, id: CallId, share: Share, asking: AskingCall) -> bool {
        let Some(permit) = self.room.try_turn(share) else {
            return false;
        };
        let mut calls = self.lock();
        if calls.len() >= LIVE_MAX + ENDED_MAX {
            calls.retain(|_, call| !matches!(*call.stand.borrow(), Stand::Ended(_)));
        }
        let (answers, received) = mpsc::channel(1);
        let first = Stand::Asks {
            round: 0,
            params: asking.asked.params.clone(),
        };
        let (told, stand) = watch::channel(first);
        let task = tokio::spawn(carry_on(asking, permit, received, told));
        let live = LiveCall {
            answers,
            stand,
            _task: AbortOnDropHandle::new(task),
        };
        calls.insert(id, Arc::new(live));
        true
    }

    /// One of them.
    pub fn get(&self, id: CallId) -> Option<Arc<LiveCall>> {
        self.lock().get(&id).cloned()
    }

    /// Gives one up: its server is told to stop.
    pub fn end(&self, id: CallId) {
        self.lock().remove(&id);
    }

    /// Gives all of them up.
    pub fn end_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Arc<LiveCall>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveCall {
    /// Answers the question that it waits in, unless it has moved on.
    pub async fn answer(&self, round: u32, response: Value) {
        let waits = matches!(*self.stand.borrow(), Stand::Asks { round: at, .. } if at == round);
        if waits {
            // One that has ended meanwhile needs none.
            let _ = self.answers.send(response).await;
        }
    }

    /// Where it stands, once it is beyond this round.
    pub async fn beyond(&self, round: u32) -> Stand {
        let mut stand = self.stand.clone();
        let is_beyond = |stand: &Stand| match stand {
            Stand::Asks { round: at, .. } => *at > round,
            Stand::Working => false,
            Stand::Ended(_) => true,
        };
        let found = stand.wait_for(is_beyond).await.map(|stand| stand.clone());
        found.unwrap_or(Stand::Ended(Err(CallError::Gone)))
    }

    /// Where it stands now.
    pub fn now(&self) -> Stand {
        self.stand.borrow().clone()
    }
}

async fn carry_on(
    asking: AskingCall,
    _permit: Permit,
    mut answers: mpsc::Receiver<Value>,
    told: watch::Sender<Stand>,
) {
    let AskingCall {
        mut call,
        asked,
        lease: _lease,
        sampling,
    } = asking;
    let (mut asked, mut round, mut samplings) = (Some(asked), 0, 0);
    let give_up = |times| told.send_replace(Stand::Ended(Err(CallError::Failed(asks_without_end(times)))));
    loop {
        tokio::select! {
            Some(answer) = answers.recv() => {
                if let Some(asked) = asked.take() {
                    told.send_replace(Stand::Working);
                    asked.answer(answer);
                }
            }
            step = call.next() => match step {
                Step::Progress(_) | Step::Unasked => {}
                Step::Asked(next) if next.is_sampling() => {
                    samplings += 1;
                    if samplings > SAMPLINGS_MAX {
                        give_up(SAMPLINGS_MAX);
                        return;
                    }
                    let sampled = sampling.sample(&next.params).await;
                    next.respond(sampled);
                }
                Step::Asked(next) => {
                    round += 1;
                    if round > ROUNDS_MAX {
                        give_up(ROUNDS_MAX);
                        return;
                    }
                    told.send_replace(Stand::Asks { round, params: next.params.clone() });
                    asked = Some(next);
                }
                Step::Done(result) => {
                    told.send_replace(Stand::Ended(result));
                    return;
                }
            },
        }
    }
}
