//! Whose turn it is. Tenants take turns, and within a tenant its users do: however many requests one of them has
//! waiting, the next one of another waits for one turn of each at most.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::kind::QueueLimits;

/// Who asks. Requests of different tenants never meet in one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Share {
    /// Such as a project.
    pub tenant: String,
    /// Such as a person, or an agent.
    pub user: String,
}

/// There is no room to wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

pub(crate) struct Queue {
    limits: QueueLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Tenants with requests that wait or run.
    tenants: HashMap<String, Tenant>,
    /// Tenants with requests that wait, in the order of their turns.
    turns: VecDeque<String>,
    running: usize,
    waiting: Load,
    tickets: u64,
}

#[derive(Default)]
struct Tenant {
    running: usize,
    waiting: Load,
    users: Turns<String, Waiter>,
}

/// Requests that wait.
#[derive(Default, Clone, Copy)]
struct Load {
    count: usize,
    bytes: usize,
}

struct Waiter {
    ticket: u64,
    bytes: usize,
    turn: oneshot::Sender<Permit>,
}

/// The right to run one request. Dropping it gives the turn to the next.
pub(crate) struct Permit {
    queue: Arc<Queue>,
    tenant: String,
}

impl Queue {
    pub fn new(limits: QueueLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// Waits for a turn. Dropping the future gives the place up.
    pub async fn turn(self: &Arc<Self>, share: &Share, bytes: usize) -> Result<Permit, Full> {
        let mut place = match self.enter(share, bytes)? {
            Entered::Running(permit) => return Ok(permit),
            Entered::Waiting(place) => place,
        };
        let turn = (&mut place.turn).await;
        Ok(turn.expect("a waiter leaves the queue with a turn or by itself"))
    }

    fn enter(self: &Arc<Self>, share: &Share, bytes: usize) -> Result<Entered, Full> {
        let mut state = self.lock();
        let state = &mut *state;
        let tenant = state.tenants.entry(share.tenant.clone()).or_default();
        let may_run = state.running < self.limits.running && tenant.running < self.limits.running_per_tenant;
        // Whoever waits goes first, or a stream of newcomers would keep it waiting.
        if may_run && tenant.waiting.count == 0 {
            state.running += 1;
            tenant.running += 1;
            return Ok(Entered::Running(self.permit(&share.tenant)));
        }
        let (own, all) = (&mut tenant.waiting, &mut state.waiting);
        let fits = own.count < self.limits.waiting_per_tenant
            && all.count < self.limits.waiting
            && own.bytes + bytes <= self.limits.waiting_bytes_per_tenant
            && all.bytes + bytes <= self.limits.waiting_bytes;
        if !fits {
            state.forget_idle(&share.tenant);
            return Err(Full);
        }
        own.add(bytes);
        all.add(bytes);
        let (turn, waits) = oneshot::channel();
        state.tickets += 1;
        let ticket = state.tickets;
        tenant.users.push(&share.user, Waiter { ticket, bytes, turn });
        if tenant.waiting.count == 1 {
            state.turns.push_back(share.tenant.clone());
        }
        Ok(Entered::Waiting(Place {
            queue: self.clone(),
            share: share.clone(),
            ticket,
            turn: waits,
        }))
    }

    fn permit(self: &Arc<Self>, tenant: &str) -> Permit {
        Permit {
            queue: self.clone(),
            tenant: tenant.to_owned(),
        }
    }

    /// Gives free turns to those who wait, as far as they may.
    fn advance(self: &Arc<Self>) {
        loop {
            // Sent without the lock: one that is no longer wanted comes back as a permit that is dropped.
            let Some((waiter, tenant)) = self.lock().next(&self.limits) else {
                return;
            };
            let _ = waiter.turn.send(self.permit(&tenant));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the next waiter out and counts it as running.
    fn next(&mut self, limits: &QueueLimits) -> Option<(Waiter, String)> {
        if self.running >= limits.running {
            return None;
        }
        let may_run = |name: &String| self.tenants[name].running < limits.running_per_tenant;
        let at = self.turns.iter().position(may_run)?;
        let name = self.turns.remove(at)?;
        let tenant = self.tenants.get_mut(&name)?;
        let waiter = tenant.users.pop()?;
        tenant.waiting.take(waiter.bytes);
        tenant.running += 1;
        self.waiting.take(waiter.bytes);
        self.running += 1;
        if tenant.waiting.count > 0 {
            self.turns.push_back(name.clone());
        }
        Some((waiter, name))
    }

    /// A request of this tenant has ended.
    fn ended(&mut self, tenant: &str) {
        self.running -= 1;
        if let Some(tenant) = self.tenants.get_mut(tenant) {
            tenant.running -= 1;
        }
        self.forget_idle(tenant);
    }

    /// A waiter has given up.
    fn leave(&mut self, share: &Share, ticket: u64) {
        let Some(tenant) = self.tenants.get_mut(&share.tenant) else {
            return;
        };
        let gone = tenant.users.remove(&share.user, |waiter| waiter.ticket == ticket);
        let Some(gone) = gone else { return };
        tenant.waiting.take(gone.bytes);
        self.waiting.take(gone.bytes);
        if tenant.waiting.count == 0 {
            self.turns.retain(|name| *name != share.tenant);
        }
        self.forget_idle(&share.tenant);
    }

    fn forget_idle(&mut self, tenant: &str) {
        if let Some(of) = self.tenants.get(tenant)
            && of.running == 0
            && of.waiting.count == 0
        {
            self.tenants.remove(tenant);
        }
    }
}

impl Load {
    fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }
    fn take(&mut self, bytes: usize) {
        self.count -= 1;
        self.bytes -= bytes;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.lock().ended(&self.tenant);
        self.queue.advance();
    }
}

enum Entered {
    Running(Permit),
    Waiting(Place),
}

/// A place in the queue.
struct Place {
    queue: Arc<Queue>,
    share: Share,
    ticket: u64,
    turn: oneshot::Receiver<Permit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // A turn that was given and not used goes back with the receiver.
        self.queue.lock().leave(&self.share, self.ticket);
    }
}

/// Items by key; the keys take turns.
struct Turns<K, T> {
    order: VecDeque<K>,
    items: HashMap<K, VecDeque<T>>,
}

impl<K, T> Default for Turns<K, T> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            items: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, T> Turns<K, T> {
    fn push(&mut self, key: &K, item: T) {
        let items = self.items.entry(key.clone()).or_default();
        if items.is_empty() {
            self.order.push_back(key.clone());
        }
        items.push_back(item);
    }

    /// The first item of the key whose turn it is, which then waits for its next one.
    fn pop(&mut self) -> Option<T> {
        let key = self.order.pop_front()?;
        let items = self.items.get_mut(&key)?;
        let item = items.pop_front();
        match items.is_empty() {
            true => drop(self.items.remove(&key)),
            false => self.order.push_back(key),
        }
        item
    }

    fn remove(&mut self, key: &K, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let items = self.items.get_mut(key)?;
        let at = items.iter().position(is_it)?;
        let item = items.remove(at);
        if items.is_empty() {
            self.items.remove(key);
            self.order.retain(|other| other != key);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};

    use futures_util::poll;
    use std::future::Future;
    use std::task::Poll;

    use super::*;

    const LIMITS: QueueLimits = QueueLimits {
        running: 1,
        running_per_tenant: 1,
        waiting_per_tenant: 8,
        waiting: 16,
        waiting_bytes_per_tenant: 80,
        waiting_bytes: 160,
    };

    /// `tenant.user`.
    fn share(name: &str) -> Share {
        let (tenant, user) = name.split_once('.').unwrap();
        Share {
            tenant: tenant.into(),
            user: user.into(),
        }
    }

    type Turn<'q> = Pin<Box<dyn Future<Output = Result<Permit, Full>> + 'q>>;

    /// Queues these in order while somebody else runs.
    async fn queued<'q>(queue: &'q Arc<Queue>, names: &[&'q str]) -> Vec<(&'q str, Turn<'q>)> {
        let mut waiting = Vec::new();
        for &name in names {
            let mut turn: Turn<'q> = Box::pin(async move { queue.turn(&share(name), 10).await });
            assert!(poll!(&mut turn).is_pending(), "{name} waits");
            waiting.push((name, turn));
        }
        waiting
    }

    /// Lets one run after the other and says in which order.
    async fn order<'q>(mut waiting: Vec<(&'q str, Turn<'q>)>, first: Permit) -> Vec<&'q str> {
        let mut order = Vec::new();
        drop(first);
        while !waiting.is_empty() {
            let mut running = None;
            for (at, (_, turn)) in waiting.iter_mut().enumerate() {
                if let Poll::Ready(permit) = poll!(turn) {
                    assert!(running.is_none(), "one at a time");
                    running = Some((at, permit.unwrap()));
                }
            }
            let (at, permit) = running.expect("somebody's turn");
            order.push(waiting.remove(at).0);
            drop(permit);
        }
        order
    }

    #[tokio::test]
    async fn tenants_take_turns_and_so_do_their_users() {
        let queue = Queue::new(LIMITS);
        let first = queue.turn(&share("a.x"), 10).await.unwrap();
        let names = ["a.x", "a.x", "a.x", "a.x", "a.y", "b.x", "b.x", "c.x"];
        let waiting = queued(&queue, &names).await;
        assert_eq!(
            order(waiting, first).await,
            ["a.x", "b.x", "c.x", "a.y", "b.x", "a.x", "a.x", "a.x"]
        );
        assert!(
            queue.lock().tenants.is_empty(),
            "nothing is kept of those who left"
        );
    }

    #[tokio::test]
    async fn one_tenant_fills_its_own_room_only_in_count_and_in_bytes() {
        let queue = Queue::new(LIMITS);
        let _first = queue.turn(&share("a.x"), 10).await.unwrap();
        let _waiting = queued(&queue, &["a.x"; 8]).await;
        assert_eq!(queue.turn(&share("a.y"), 0).await.err(), Some(Full));
        let b = share("b.x");
        let mut large = pin!(queue.turn(&b, 80));
        assert!(poll!(&mut large).is_pending());
        assert_eq!(queue.turn(&b, 1).await.err(), Some(Full));
        assert_eq!(queue.turn(&share("c.x"), 81).await.err(), Some(Full));
    }

    #[tokio::test]
    async fn a_tenant_leaves_a_process_for_the_others() {
        let queue = Queue::new(QueueLimits { running: 2, ..LIMITS });
        let _first = queue.turn(&share("a.x"), 10).await.unwrap();
        let _waiting = queued(&queue, &["a.x"]).await;
        assert!(matches!(
            poll!(pin!(queue.turn(&share("b.x"), 10))),
            Poll::Ready(Ok(_))
        ));
    }

    #[tokio::test]
    async fn who_gives_up_leaves_room_and_loses_no_turn() {
        let queue = Queue::new(LIMITS);
        let first = queue.turn(&share("a.x"), 10).await.unwrap();
        let mut waiting = queued(&queue, &["a.x", "b.x", "c.x"]).await;
        drop(waiting.remove(1));
        let load = queue.lock().waiting;
        assert_eq!((load.count, load.bytes), (2, 20));
        drop(first);
        // Its turn has come, and it does not take it.
        drop(waiting.remove(0));
        let (name, turn) = waiting.remove(0);
        assert_eq!(name, "c.x");
        assert!(turn.await.is_ok());
    }
}
