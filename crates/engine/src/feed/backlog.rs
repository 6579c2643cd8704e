//! What waits for one reader: bounded in bytes and in time, never in number. A burst of small events is no reason to
//! cut a reader that takes them; one that takes nothing, or too little, is cut and comes back with its cursor.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::topic::Item;

/// Bytes that may wait for all readers of this node together.
const ALL_BYTES_MAX: usize = 64 << 20;
/// Bytes that may wait for a reader even when too many wait for all.
const EACH_BYTES_MIN: usize = 16 << 10;

/// How far a reader may lag behind before it is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BacklogLimits {
    /// Bytes of events that wait for it. What exceeds this by itself may still wait alone.
    pub bytes: usize,
    /// Time without taking any of them.
    pub stall: Duration,
}

/// Bytes that wait for all readers of a node.
#[derive(Default)]
pub(super) struct Waiting(AtomicUsize);

/// What waits for one reader, written by its topic and read by its subscription.
pub(super) struct Backlog {
    limits: BacklogLimits,
    all: Arc<Waiting>,
    state: Mutex<State>,
    arrived: Notify,
}

struct State {
    items: VecDeque<(Item, usize)>,
    bytes: usize,
    /// When the reader last took something, or the first of what waits came.
    since: Instant,
    /// Nothing more comes.
    closed: bool,
}

impl Backlog {
    pub fn new(limits: BacklogLimits, all: Arc<Waiting>) -> Self {
        Self {
            limits,
            all,
            state: Mutex::new(State {
                items: VecDeque::new(),
                bytes: 0,
                since: Instant::now(),
                closed: false,
            }),
            arrived: Notify::new(),
        }
    }

    /// Adds an item of so many bytes; false if the reader is cut, and then nothing waits for it any more.
    pub fn push(&self, item: Item, bytes: usize, now: Instant) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        if state.items.is_empty() {
            state.since = now;
        } else if self.is_too_much(state.bytes + bytes)
            || now.saturating_duration_since(state.since) > self.limits.stall
        {
            self.all.0.fetch_sub(state.bytes, Ordering::Relaxed);
            state.bytes = 0;
            state.items = VecDeque::new();
            state.closed = true;
            self.arrived.notify_one();
            return false;
        }
        self.all.0.fetch_add(bytes, Ordering::Relaxed);
        state.bytes += bytes;
        state.items.push_back((item, bytes));
        self.arrived.notify_one();
        true
    }

    fn is_too_much(&self, bytes: usize) -> bool {
        let crowded = self.all.0.load(Ordering::Relaxed) > ALL_BYTES_MAX;
        bytes > self.limits.bytes || (crowded && bytes > EACH_BYTES_MIN)
    }

    /// Nothing more comes; what waits may still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// The next item, if one waits.
    pub fn try_take(&self) -> Option<Item> {
        self.lock().take(&self.all)
    }

    /// The next item; waits for it. None if nothing more comes. Safe to drop and call again.
    pub async fn take(&self) -> Option<Item> {
        loop {
            {
                let mut state = self.lock();
                if let Some(item) = state.take(&self.all) {
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic holds a backlog")
    }
}

impl State {
    fn take(&mut self, all: &Waiting) -> Option<Item> {
        let (item, bytes) = self.items.pop_front()?;
        self.bytes -= bytes;
        all.0.fetch_sub(bytes, Ordering::Relaxed);
        self.since = Instant::now();
        Some(item)
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        let state = self.state.get_mut().expect("no panic holds a backlog");
        self.all.0.fetch_sub(state.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use toolgate_kernel::event::Seq;

    use super::*;

    const LIMITS: BacklogLimits = BacklogLimits {
        bytes: 1000,
        stall: Duration::from_secs(30),
    };

    fn item() -> Item {
        Item::Elsewhere {
            run: None,
            range: (Seq(1), Seq(1)),
        }
    }

    #[test]
    fn any_number_of_small_items_may_wait_and_bytes_beyond_the_limit_cut() {
        let all = Arc::new(Waiting::default());
        let backlog = Backlog::new(LIMITS, all.clone());
        let now = Instant::now();
        for _ in 0..1000 {
            assert!(backlog.push(item(), 1, now));
        }
        assert_eq!(all.0.load(Ordering::Relaxed), 1000);
        assert!(!backlog.push(item(), 1, now));
        assert!(
            backlog.try_take().is_none(),
            "what a cut reader has not read is in the store"
        );
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
        assert!(!backlog.push(item(), 1, now), "it stays cut");
    }

    #[test]
    fn one_large_item_may_wait_alone() {
        let backlog = Backlog::new(LIMITS, Arc::default());
        let now = Instant::now();
        assert!(backlog.push(item(), 5000, now));
        assert!(!backlog.push(item(), 1, now));
    }

    #[test]
    fn a_reader_that_takes_nothing_is_cut_after_a_time_and_one_that_takes_is_not() {
        let now = Instant::now();
        let later = now + LIMITS.stall * 2;
        let stalled = Backlog::new(LIMITS, Arc::default());
        assert!(stalled.push(item(), 1, now));
        assert!(!stalled.push(item(), 1, later));
        let taking = Backlog::new(LIMITS, Arc::default());
        assert!(taking.push(item(), 1, now));
        assert!(taking.try_take().is_some());
        assert!(taking.push(item(), 1, later), "nothing waited meanwhile");
    }

    #[test]
    fn when_too_much_waits_for_all_those_with_most_are_cut() {
        let all = Arc::new(Waiting::default());
        let limits = BacklogLimits {
            bytes: ALL_BYTES_MAX * 2,
            ..LIMITS
        };
        let [greedy, modest] = [(); 2].map(|()| Backlog::new(limits, all.clone()));
        let now = Instant::now();
        assert!(modest.push(item(), 10, now));
        assert!(greedy.push(item(), ALL_BYTES_MAX + 1, now));
        assert!(modest.push(item(), 10, now));
        assert!(!greedy.push(item(), 1, now));
        drop(modest);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn what_waits_when_it_is_closed_is_taken_first() {
        let backlog = Backlog::new(LIMITS, Arc::default());
        backlog.push(item(), 1, Instant::now());
        backlog.close();
        assert!(backlog.take().await.is_some());
        assert!(backlog.take().await.is_none());
    }
}
