//! Fair shares of what is scarce: seats for runs, model calls, outbound requests, worker processes. The tenant with the
//! least running is next, and of its users likewise; equals take turns. So however many requests one of them has
//! waiting, another who has none running is next. Limits per tenant and per user keep a part free for the others, so that
//! they need not wait for slow work to end either; spare turns ([`Spare`]) do so however many tenants have slow work.
//!
//! Start with [`Queue::turn`].

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use state::{Entered, State};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    /// The tenant, such as a project.
    pub tenant: u128,
    /// The tenant's user, such as a person. Without one it is the tenant itself, which takes its turns as a user does
    /// and has the limits of the tenant only.
    pub user: Option<u128>,
}

/// How many requests may run and wait.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that run at the same time.
    pub running: Shares,
    /// Requests that wait.
    pub waiting: Shares,
    /// Bytes of the requests that wait.
    pub waiting_bytes: Shares,
    /// Requests that run beyond `running`, each the only one of its user: however long the requests of others take,
    /// whoever has nothing running need not wait for their end.
    pub spare: Spare,
}

/// Turns that are given to users who have nothing running, when all others are taken.
#[derive(Debug, Clone, Copy)]
pub struct Spare {
    /// For all together.
    pub all: usize,
    /// For the users of one tenant.
    pub tenant: usize,
}

impl Spare {
    /// Nobody runs beyond the limits.
    pub const NONE: Self = Self { all: 0, tenant: 0 };
}

/// A limit for all, and how much of it one tenant and one user may take. Less for one than for all keeps the rest free
/// for the others.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// For all together.
    pub all: usize,
    /// For one tenant.
    pub tenant: usize,
    /// For one user.
    pub user: usize,
}

impl Shares {
    /// A limit of which one tenant may take seven eighths and one user a quarter, rounded up.
    pub const fn of(all: usize) -> Self {
        Self {
            all,
            tenant: all - all / 8,
            user: all.div_ceil(4),
        }
    }

    /// No limit.
    pub const UNLIMITED: Self = Self::same(usize::MAX);

    /// The same limit for one as for all.
    pub const fn same(most: usize) -> Self {
        Self {
            all: most,
            tenant: most,
            user: most,
        }
    }
}

/// There is no room to wait.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// Requests that run and wait.
pub struct Queue {
    limits: Limits,
    state: Mutex<State>,
}

/// The right to run one request. Dropping it gives the turn to the next.
pub struct Permit {
    queue: Arc<Queue>,
    share: Share,
}

impl Queue {
    /// A queue in which nobody waits yet.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// Waits for a turn of a request that takes so many bytes of memory meanwhile. Dropping the future gives the place
    /// up.
    pub async fn turn(self: &Arc<Self>, share: Share, bytes: usize) -> Result<Permit, Full> {
        let (ticket, turn) = match self.lock().enter(&self.limits, share, bytes)? {
            Entered::Running => return Ok(self.permit(share)),
            Entered::Waiting(ticket, turn) => (ticket, turn),
        };
        let queue = self.clone();
        let mut place = Place {
            queue,
            share,
            ticket,
            turn,
        };
        let turn = (&mut place.turn).await;
        Ok(turn.expect("a waiter leaves the queue with a turn or by itself"))
    }

    /// A turn now, or none: for those who wait elsewhere.
    pub fn try_turn(self: &Arc<Self>, share: Share) -> Option<Permit> {
        let runs = self.lock().try_run(&self.limits, share);
        runs.then(|| self.permit(share))
    }

    /// A turn now, whatever the limits say: for work that others already wait for, so that it must not wait for them.
    /// It counts for its share.
    pub fn take(self: &Arc<Self>, share: Share) -> Permit {
        self.lock().run(share);
        self.permit(share)
    }

    /// How many run now.
    pub fn running(&self) -> usize {
        self.lock().running()
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        self.lock().waiting()
    }

    fn permit(self: &Arc<Self>, share: Share) -> Permit {
        Permit {
            queue: self.clone(),
            share,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.queue.lock();
            state.end(self.share);
            state.advance(&self.queue.limits)
        };
        for (share, turn) in next {
            // Sent without the lock: a turn that is no longer wanted comes back as a permit that is dropped.
            let _ = turn.send(self.queue.permit(share));
        }
    }
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
        self.queue.lock().leave(self.share, self.ticket);
    }
}
