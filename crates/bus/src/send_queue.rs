//! What waits to be sent, bounded in bytes and time. Whoever publishes never waits.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::sync::Notify;
use toolgate_engine::bus::Notice;
use toolgate_kernel::id::NodeId;

use crate::wire::{self, Batch};

/// Bytes that may wait: what comes on top is dropped.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// How long a notice may wait: an older one tells nothing that the store has not told by now.
const WAITING_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of notices after which a batch is full.
const BATCH_BYTES: usize = 128 << 10;
/// Bytes that a notice takes beside its text.
const OVERHEAD_BYTES: usize = 64;

/// Notices on their way out, in order.
pub(crate) struct SendQueue {
    life: u64,
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    from: Option<NodeId>,
    waiting: VecDeque<(Instant, Box<RawValue>)>,
    bytes: usize,
    /// Something was dropped that the others have not been told of.
    lost: bool,
    /// The others do not know yet that this node is there.
    greets: bool,
    /// Number of the next batch.
    number: u64,
}

impl SendQueue {
    pub fn new(life: u64) -> Self {
        Self {
            life,
            state: Mutex::default(),
            arrived: Notify::new(),
        }
    }

    /// This node is there: the others are told so.
    pub fn greet(&self, node: NodeId) {
        let mut state = self.lock();
        state.from = Some(node);
        state.greets = true;
        drop(state);
        self.arrived.notify_one();
    }

    /// Adds a notice, or drops it and remembers that.
    pub fn push(&self, from: NodeId, notice: &Notice) {
        // Not under the lock: it may take a while.
        let written = wire::write(notice);
        let bytes: usize = written.parts.iter().map(|part| size_of_part(part)).sum();
        let mut state = self.lock();
        state.from = Some(from);
        let dropped = match state.bytes + bytes > WAITING_BYTES_MAX {
            true => Some("full"),
            false => {
                let now = Instant::now();
                state.bytes += bytes;
                state
                    .waiting
                    .extend(written.parts.into_iter().map(|part| (now, part)));
                written.lost.then_some("size")
            }
        };
        if let Some(why) = dropped {
            state.lost = true;
            count_dropped(why, 1);
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// The next batch, numbered: whoever takes it sends it, however often it has to try. Waits for something to send.
    pub async fn next(&self) -> String {
        loop {
            let arrived = self.arrived.notified();
            if let Some(batch) = self.take() {
                return batch;
            }
            arrived.await;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    fn take(&self) -> Option<String> {
        let mut state = self.lock();
        state.drop_old(Instant::now());
        if state.waiting.is_empty() && !state.lost && !state.greets {
            return None;
        }
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some((_, next)) = state.waiting.front()
            && (taken.is_empty() || bytes + size_of_part(next) <= BATCH_BYTES)
        {
            bytes += size_of_part(next);
            taken.extend(state.waiting.pop_front().map(|(_, part)| part));
        }
        state.bytes -= bytes;
        state.batch(self.life, &taken, false)
    }

    /// A batch without notices: a sign of life, or the last one.
    pub fn sign_of_life(&self, leaves: bool) -> Option<String> {
        self.lock().batch(self.life, &[], leaves)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// None as long as no node has joined: then nobody is there to be told of.
    fn batch(&mut self, life: u64, notices: &[Box<RawValue>], leaves: bool) -> Option<String> {
        let node = self.from?;
        let number = self.number;
        self.number += 1;
        self.greets = false;
        let batch = Batch {
            node,
            life,
            number,
            lost: std::mem::take(&mut self.lost),
            leaves,
            notices: notices.iter().map(|notice| &**notice).collect(),
        };
        Some(batch.write())
    }

    fn drop_old(&mut self, now: Instant) {
        let is_old = |(when, _): &(Instant, Box<RawValue>)| now.duration_since(*when) > WAITING_TIME_MAX;
        let mut dropped = 0;
        while self.waiting.front().is_some_and(is_old) {
            let (_, part) = self.waiting.pop_front().expect("looked at");
            self.bytes -= size_of_part(&part);
            dropped += 1;
        }
        if dropped > 0 {
            self.lost = true;
            count_dropped("age", dropped);
        }
    }
}

fn size_of_part(part: &RawValue) -> usize {
    part.get().len() + OVERHEAD_BYTES
}

fn count_dropped(why: &'static str, notices: u64) {
    metrics::counter!("toolgate_bus_dropped_total", "why" => why).increment(notices);
}

#[cfg(test)]
mod tests {
    use toolgate_kernel::id::{RunId, SpaceId};

    use super::*;

    fn wanted(number: u8) -> Notice {
        Notice::Wanted {
            space: SpaceId::from_bytes([number; 16]),
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_dropped_and_told_of_once() {
        let queue = SendQueue::new(1);
        let node = NodeId::from_bytes([1; 16]);
        let mut pushed = 0;
        while !queue.lock().lost {
            queue.push(node, &wanted(1));
            pushed += 1;
        }
        assert!(queue.lock().bytes <= WAITING_BYTES_MAX);
        let (mut told, mut sent, mut number) = (0, 0, 0);
        while let Some(text) = queue.take() {
            let batch = Batch::parse(&text).unwrap();
            assert_eq!(batch.number, number);
            number += 1;
            told += u32::from(batch.lost);
            sent += batch.notices.len();
        }
        assert_eq!((told, sent), (1, pushed - 1));
        assert_eq!(queue.lock().bytes, 0);
    }

    #[tokio::test]
    async fn notices_wait_in_order_and_travel_together() {
        let queue = SendQueue::new(9);
        let node = NodeId::from_bytes([1; 16]);
        assert!(queue.sign_of_life(false).is_none());
        queue.push(node, &wanted(1));
        let run = RunId::from_bytes([2; 16]);
        queue.push(node, &Notice::Poke { run, node: None });
        let text = queue.next().await;
        let batch = Batch::parse(&text).unwrap();
        assert_eq!(
            (batch.node, batch.life, batch.number, batch.notices.len()),
            (node, 9, 0, 2)
        );
        let beat = queue.sign_of_life(true).unwrap();
        let beat = Batch::parse(&beat).unwrap();
        assert_eq!((beat.number, beat.leaves, beat.notices.len()), (1, true, 0));
    }
}
