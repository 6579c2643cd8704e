//! The turn of a request: its place among the calls of its server, and the time that it has left. Both stand still while the
//! client is asked something, because nobody knows how long a person takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolgate_engine::shares::share_of;
use toolgate_fair::{Permit, Queue, Share};
use toolgate_mcp::link::message::{Outcome, Request};

use super::calls::{failed, is_call};
use super::era::INTERNAL;
use super::owner::Owner;
use super::reply::Era;
use super::upstream::Upstream;

/// How many times longer than for one answer a request stands still while its server asks more and more.
const STANDS_FACTOR: u32 = 6;

/// A request under way.
pub(super) struct Turn {
    turns: Arc<Queue>,
    share: Share,
    is_call: bool,
    timeout: Duration,
    /// Longest wait for an answer of the client.
    answer_wait: Duration,
    permit: Mutex<Option<Permit>>,
    clock: watch::Sender<Clock>,
}

/// The time that a request has.
#[derive(Debug, Clone, Copy)]
enum Clock {
    Runs {
        until: Instant,
    },
    /// The client is asked something.
    Stands {
        left: Duration,
        questions: usize,
        until: Instant,
        /// However much is asked meanwhile.
        latest: Instant,
    },
    /// Nothing ends the request: it is a subscription, or a task that is waited for.
    Off,
}

impl Turn {
    /// Waits for the turn of a request, if it is a call; others have only a time. The error is the response of a call that is
    /// not made.
    pub(super) async fn begin(
        upstream: &Upstream,
        owner: Owner,
        request: &Request,
    ) -> Result<Arc<Self>, Outcome> {
        let (turns, timeout) = upstream.pace();
        let share = share_of(owner.project, owner.user);
        let is_call = is_call(request);
        let permit = match is_call {
            false => None,
            true => {
                let arguments = request.params.as_ref().and_then(|params| params.get("arguments"));
                let bytes = arguments.map_or(0, |arguments| arguments.get().len());
                let turn = tokio::time::timeout(timeout, turns.turn(share, bytes)).await;
                let Ok(Ok(permit)) = turn else {
                    let words = "as many calls of this server as may are under way or wait already, and the call was \
                                 not made; try again in a moment";
                    return Err(Outcome::error(INTERNAL, words));
                };
                Some(permit)
            }
        };
        let turn = Self {
            turns,
            share,
            is_call,
            timeout,
            answer_wait: upstream.limits.answer_wait,
            permit: Mutex::new(permit),
            clock: watch::Sender::new(Clock::Runs {
                until: Instant::now() + timeout,
            }),
        };
        if request.method == "subscriptions/listen" {
            turn.rest();
        }
        Ok(Arc::new(turn))
    }

    /// The client is asked something: others may have the place, and the clock stands.
    pub(super) fn pause(&self) {
        *self.permit() = None;
        let now = Instant::now();
        let until = now + self.answer_wait;
        self.clock.send_modify(|clock| {
            *clock = match *clock {
                Clock::Runs { until: end } => Clock::Stands {
                    left: end.saturating_duration_since(now),
                    questions: 1,
                    until,
                    latest: now + STANDS_FACTOR * self.answer_wait,
                },
                Clock::Stands {
                    left,
                    questions,
                    latest,
                    ..
                } => Clock::Stands {
                    left,
                    questions: questions + 1,
                    until: until.min(latest),
                    latest,
                },
                Clock::Off => Clock::Off,
            };
        });
    }

    /// The client has answered. The server goes on at once, so its call counts at once, whoever waits.
    pub(super) fn resume(&self) {
        let mut goes_on = false;
        self.clock.send_modify(|clock| {
            *clock = match *clock {
                Clock::Stands {
                    left,
                    questions: 0 | 1,
                    ..
                } => {
                    goes_on = true;
                    Clock::Runs {
                        until: Instant::now() + left,
                    }
                }
                Clock::Stands {
                    left,
                    questions,
                    until,
                    latest,
                } => Clock::Stands {
                    left,
                    questions: questions - 1,
                    until,
                    latest,
                },
                other => other,
            };
        });
        if goes_on && self.is_call {
            *self.permit() = Some(self.turns.take(self.share));
        }
    }

    /// What is left is waiting for a task of the server, which takes no place and has limits of its own.
    pub(super) fn rest(&self) {
        *self.permit() = None;
        self.clock.send_replace(Clock::Off);
    }

    /// Waits until the request has no time left.
    pub(super) async fn expired(&self) {
        let mut clock = self.clock.subscribe();
        loop {
            let until = match *clock.borrow_and_update() {
                Clock::Runs { until } | Clock::Stands { until, .. } => Some(until),
                Clock::Off => None,
            };
            let end = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = end => return,
                // The sender is `self`.
                _ = clock.changed() => {}
            }
        }
    }

    /// The response to a request that had too little time.
    pub(super) fn late(&self, era: Era) -> Outcome {
        let words = format!(
            "TIMEOUT: the MCP server gave no answer within {} seconds; `timeout` in its configuration changes that",
            self.timeout.as_secs()
        );
        match self.is_call {
            true => failed(era, &words),
            false => Outcome::error(INTERNAL, words),
        }
    }

    fn permit(&self) -> MutexGuard<'_, Option<Permit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_fair::{Limits, Shares, Spare};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A call of ten seconds whose client may take a hundred to answer.
    fn call() -> Turn {
        let turns = Queue::new(Limits {
            running: Shares::same(1),
            waiting: Shares::same(0),
            waiting_bytes: Shares::same(0),
            spare: Spare::NONE,
        });
        let share = Share {
            tenant: 1,
            user: None,
        };
        Turn {
            permit: Mutex::new(turns.try_turn(share)),
            turns,
            share,
            is_call: true,
            timeout: 10 * SECOND,
            answer_wait: 100 * SECOND,
            clock: watch::Sender::new(Clock::Runs {
                until: Instant::now() + 10 * SECOND,
            }),
        }
    }

    /// Seconds until the call has no time left.
    async fn left(turn: &Turn) -> u64 {
        let began = Instant::now();
        turn.expired().await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_client_is_not_the_time_of_its_call() {
        let turn = call();
        tokio::time::sleep(4 * SECOND).await;
        turn.pause();
        turn.pause();
        assert_eq!(turn.turns.running(), 0);
        tokio::time::sleep(50 * SECOND).await;
        turn.resume();
        assert_eq!(turn.turns.running(), 0, "one question is open");
        tokio::time::sleep(20 * SECOND).await;
        turn.resume();
        assert_eq!(turn.turns.running(), 1);
        assert_eq!(left(&turn).await, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_answers_ends_its_call() {
        let turn = call();
        turn.pause();
        assert_eq!(left(&turn).await, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_asks_without_end_does_not_keep_its_call() {
        let turn = call();
        let began = Instant::now();
        let asks = async {
            loop {
                turn.pause();
                tokio::time::sleep(50 * SECOND).await;
            }
        };
        tokio::select! {
            () = asks => {}
            () = turn.expired() => {}
        }
        assert_eq!(began.elapsed().as_secs(), 600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_waited_for_has_no_end_here() {
        let turn = call();
        turn.rest();
        turn.pause();
        turn.resume();
        assert_eq!(turn.turns.running(), 0, "a task has no turn");
        let expired = tokio::time::timeout(1000 * SECOND, turn.expired()).await;
        assert!(expired.is_err());
    }
}
