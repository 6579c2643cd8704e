//! Who runs, who waits, and whose turn is next. One rule holds between any two calls: nobody waits who could run.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tokio::sync::oneshot;

use crate::{Full, Limits, Permit, Share, Shares};

/// Requests that run and wait.
#[derive(Default)]
pub(crate) struct State {
    running: usize,
    waiting: Load,
    /// Tenants with requests that run or wait.
    tenants: HashMap<u128, Tenant>,
    /// Tenants with requests that wait, in the order of their turns.
    turns: VecDeque<u128>,
    tickets: u64,
}

#[derive(Default)]
struct Tenant {
    running: usize,
    waiting: Load,
    /// Users with requests that run or wait.
    users: HashMap<Option<u128>, User>,
    /// Users with requests that wait, in the order of their turns.
    turns: VecDeque<Option<u128>>,
}

#[derive(Default)]
struct User {
    running: usize,
    load: Load,
    /// By ticket, so the oldest comes first.
    waiting: BTreeMap<u64, Waiter>,
}

/// Requests that wait.
#[derive(Default, Clone, Copy)]
struct Load {
    count: usize,
    bytes: usize,
}

struct Waiter {
    bytes: usize,
    turn: oneshot::Sender<Permit>,
}

pub(crate) enum Entered {
    Running,
    Waiting(u64, oneshot::Receiver<Permit>),
}

impl State {
    /// Lets a request run, or queues it.
    pub fn enter(&mut self, limits: &Limits, share: Share, bytes: usize) -> Result<Entered, Full> {
        if self.try_run(limits, share) {
            return Ok(Entered::Running);
        }
        let all = self.waiting;
        let tenant = self.tenants.entry(share.tenant).or_default();
        let user = tenant.users.entry(share.user).or_default();
        let loads = [all, tenant.waiting, user.load];
        let counts = most(limits.waiting, share);
        let sizes = most(limits.waiting_bytes, share);
        let fits =
            |at: usize| loads[at].count < counts[at] && loads[at].bytes.saturating_add(bytes) <= sizes[at];
        if !(0..loads.len()).all(fits) {
            self.forget_idle(share);
            return Err(Full);
        }
        self.tickets += 1;
        let (turn, waits) = oneshot::channel();
        user.waiting.insert(self.tickets, Waiter { bytes, turn });
        if user.load.count == 0 {
            tenant.turns.push_back(share.user);
        }
        if tenant.waiting.count == 0 {
            self.turns.push_back(share.tenant);
        }
        for load in [&mut self.waiting, &mut tenant.waiting, &mut user.load] {
            load.count += 1;
            load.bytes += bytes;
        }
        Ok(Entered::Waiting(self.tickets, waits))
    }

    /// Counts a request as running, if it may run now.
    pub fn try_run(&mut self, limits: &Limits, share: Share) -> bool {
        let tenant = self.tenants.get(&share.tenant);
        let user = tenant.and_then(|tenant| tenant.users.get(&share.user));
        // Whoever else waits has its own limit to wait for, or it would run.
        let first = user.is_none_or(|user| user.waiting.is_empty());
        let running = [
            self.running,
            tenant.map_or(0, |tenant| tenant.running),
            user.map_or(0, |user| user.running),
        ];
        let runs = first && may_run(running, limits, share);
        if runs {
            self.run(share);
        }
        runs
    }

    /// Counts a request as running.
    pub fn run(&mut self, share: Share) {
        let tenant = self.tenants.entry(share.tenant).or_default();
        let user = tenant.users.entry(share.user).or_default();
        self.running += 1;
        tenant.running += 1;
        user.running += 1;
    }

    /// A request has ended.
    pub fn end(&mut self, share: Share) {
        self.running -= 1;
        if let Some(tenant) = self.tenants.get_mut(&share.tenant) {
            tenant.running -= 1;
            if let Some(user) = tenant.users.get_mut(&share.user) {
                user.running -= 1;
            }
        }
        self.forget_idle(share);
    }

    /// Takes out everybody who may run now, in the order of their turns, and counts them as running.
    pub fn advance(&mut self, limits: &Limits) -> Vec<(Share, oneshot::Sender<Permit>)> {
        let mut next = Vec::new();
        while let Some(share) = self.next(limits) {
            let turn = self.take_first(share);
            next.push((share, turn));
        }
        next
    }

    /// Whose turn it is: of the tenants that may run, the one with the least running, and of its users likewise. Equals
    /// take turns.
    fn next(&self, limits: &Limits) -> Option<Share> {
        if self.running >= limits.running.all.saturating_add(limits.spare.all) {
            return None;
        }
        least(&self.turns, |tenant| {
            let of = &self.tenants[tenant];
            let user = least(&of.turns, |user| {
                let share = Share {
                    tenant: *tenant,
                    user: *user,
                };
                let running = of.users[user].running;
                let may_run = may_run([self.running, of.running, running], limits, share);
                may_run.then_some((running, *user))
            })?;
            let share = Share {
                tenant: *tenant,
                user,
            };
            Some((of.running, share))
        })
    }

    /// Takes out the oldest request of a user, who then waits for its next turn behind the others.
    fn take_first(&mut self, share: Share) -> oneshot::Sender<Permit> {
        let tenant = self.tenants.get_mut(&share.tenant).expect("it waits");
        let user = tenant.users.get_mut(&share.user).expect("it waits");
        let (_, waiter) = user.waiting.pop_first().expect("it waits");
        self.waiting.take(waiter.bytes);
        tenant.waiting.take(waiter.bytes);
        user.load.take(waiter.bytes);
        pass_turn(&mut tenant.turns, share.user, user.load);
        pass_turn(&mut self.turns, share.tenant, tenant.waiting);
        self.run(share);
        waiter.turn
    }

    /// A waiter has given up.
    pub fn leave(&mut self, share: Share, ticket: u64) {
        let Some(tenant) = self.tenants.get_mut(&share.tenant) else {
            return;
        };
        let Some(user) = tenant.users.get_mut(&share.user) else {
            return;
        };
        let Some(gone) = user.waiting.remove(&ticket) else {
            return;
        };
        self.waiting.take(gone.bytes);
        tenant.waiting.take(gone.bytes);
        user.load.take(gone.bytes);
        if user.load.count == 0 {
            tenant.turns.retain(|other| *other != share.user);
        }
        if tenant.waiting.count == 0 {
            self.turns.retain(|other| *other != share.tenant);
        }
        self.forget_idle(share);
    }

    pub fn running(&self) -> usize {
        self.running
    }

    pub fn waiting(&self) -> usize {
        self.waiting.count
    }

    fn forget_idle(&mut self, share: Share) {
        let Some(tenant) = self.tenants.get_mut(&share.tenant) else {
            return;
        };
        if let Some(user) = tenant.users.get(&share.user)
            && user.running == 0
            && user.load.count == 0
        {
            tenant.users.remove(&share.user);
        }
        if tenant.users.is_empty() {
            self.tenants.remove(&share.tenant);
        }
    }
}

impl Load {
    fn take(&mut self, bytes: usize) {
        self.count -= 1;
        self.bytes -= bytes;
    }
}

/// What `rated` gives with the lowest number; of equals the first. Nobody is rated after a zero, and whoever has more
/// than that runs something: so this looks at no more of those who wait than may run, and one.
fn least<K, T>(turns: &VecDeque<K>, rated: impl Fn(&K) -> Option<(usize, T)>) -> Option<T> {
    let mut best: Option<(usize, T)> = None;
    for (number, value) in turns.iter().filter_map(rated) {
        if best.as_ref().is_none_or(|(least, _)| number < *least) {
            best = Some((number, value));
        }
        if number == 0 {
            break;
        }
    }
    best.map(|(_, value)| value)
}

/// Moves who has had its turn behind the others, or out when nothing of it waits.
fn pass_turn<K: PartialEq>(turns: &mut VecDeque<K>, whose: K, left: Load) {
    if let Some(at) = turns.iter().position(|other| *other == whose) {
        turns.remove(at);
    }
    if left.count > 0 {
        turns.push_back(whose);
    }
}

/// Whether one more may run, given what runs of all, of its tenant and of its user. A user who has nothing running may
/// take a spare turn.
fn may_run(running: [usize; 3], limits: &Limits, share: Share) -> bool {
    let most = most(limits.running, share);
    let spare = match running[2] {
        0 => [limits.spare.all, limits.spare.tenant, 0],
        _ => [0; 3],
    };
    (0..most.len()).all(|at| running[at] < most[at].saturating_add(spare[at]))
}

/// What holds for all, for the tenant, and for the user.
fn most(limits: Shares, share: Share) -> [usize; 3] {
    let user = match share.user {
        Some(_) => limits.user,
        None => limits.tenant,
    };
    [limits.all, limits.tenant, user]
}
