//! Any order of requests, ends and departures, held against what must be true of a fair queue.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use toolgate_fair::{Full, Limits, Permit, Queue, Share, Shares, Spare};

const RUNNING: Shares = Shares {
    all: 4,
    tenant: 3,
    user: 2,
};
const LIMITS: Limits = Limits {
    running: RUNNING,
    waiting: Shares::same(12),
    waiting_bytes: Shares::UNLIMITED,
    spare: SPARE,
};
const SPARE: Spare = Spare { all: 2, tenant: 1 };

#[derive(Debug, Clone)]
enum Step {
    /// Somebody asks for a turn.
    Ask(Share),
    /// One that runs ends: counted from the oldest.
    End(usize),
    /// One that waits gives up.
    GiveUp(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let user = prop_oneof![Just(None), (0..3_u128).prop_map(Some)];
    let share = (0..3_u128, user).prop_map(|(tenant, user)| Share { tenant, user });
    let step = prop_oneof![
        4 => share.prop_map(Step::Ask),
        3 => (0..8_usize).prop_map(Step::End),
        1 => (0..8_usize).prop_map(Step::GiveUp),
    ];
    prop::collection::vec(step, 1..200)
}

type Turn = Pin<Box<dyn Future<Output = Result<Permit, Full>>>>;

struct Waiting {
    share: Share,
    turn: Turn,
    /// Turns that others with as much running were given while this one, the first of its user, was free to run.
    passed_by: HashMap<Share, usize>,
}

#[derive(Default)]
struct World {
    running: Vec<(Share, Permit)>,
    waiting: Vec<Waiting>,
}

impl World {
    fn step(&mut self, queue: &Arc<Queue>, step: Step) {
        match step {
            Step::Ask(share) => {
                let queue = queue.clone();
                let mut turn: Turn = Box::pin(async move { queue.turn(share, 1).await });
                match poll(&mut turn) {
                    Poll::Ready(Ok(permit)) => {
                        let overtaken = self.waiting.iter().any(|other| other.share == share);
                        assert!(!overtaken, "a newcomer goes behind its user's own requests");
                        self.running.push((share, permit));
                    }
                    Poll::Ready(Err(Full)) => assert_eq!(self.waiting.len(), LIMITS.waiting.all),
                    Poll::Pending => {
                        let passed_by = HashMap::new();
                        self.waiting.push(Waiting {
                            share,
                            turn,
                            passed_by,
                        });
                    }
                }
            }
            Step::End(at) if at < self.running.len() => {
                drop(self.running.remove(at));
                self.collect();
            }
            Step::GiveUp(at) if at < self.waiting.len() => drop(self.waiting.remove(at)),
            Step::End(_) | Step::GiveUp(_) => {}
        }
    }

    /// Takes out whoever was given a turn: one, and another if whoever ended may have a spare turn now.
    fn collect(&mut self) {
        let mut served = Vec::new();
        self.waiting.retain_mut(|waiting| match poll(&mut waiting.turn) {
            Poll::Ready(Ok(permit)) => {
                served.push((waiting.share, permit));
                false
            }
            Poll::Ready(Err(Full)) => panic!("whoever waits is not refused"),
            Poll::Pending => true,
        });
        for at in 0..served.len() {
            let others = served.iter().enumerate().filter(|(other, _)| *other != at);
            let before: Vec<Share> = self.running.iter().map(|(share, _)| *share).collect();
            let others: Vec<Share> = others.map(|(_, (share, _))| *share).collect();
            self.was_served(served[at].0, &before, &others);
        }
        self.running.extend(served);
    }

    /// Whoever still waits, and could have run instead beside the others that were served, had as much running.
    fn was_served(&mut self, served: Share, before: &[Share], others: &[Share]) {
        let with_others = [before, others].concat();
        for index in 0..self.waiting.len() {
            let share = self.waiting[index].share;
            let is_first = self.waiting[..index].iter().all(|other| other.share != share);
            if !is_first || !may_run(&with_others, share) {
                continue;
            }
            let (mine, theirs) = match share.tenant == served.tenant {
                true => (load(&with_others, share), load(before, served)),
                false => (tenant_load(&with_others, share), tenant_load(before, served)),
            };
            assert!(theirs <= mine, "{share:?} has less running than {served:?}");
            if theirs == mine && others.is_empty() {
                *self.waiting[index].passed_by.entry(served).or_default() += 1;
            }
        }
    }

    fn check(&self) {
        let running: Vec<Share> = self.running.iter().map(|(share, _)| *share).collect();
        for share in &running {
            let of_tenant = tenant_load(&running, *share);
            let of_user = load(&running, *share);
            assert!(self.running.len() <= RUNNING.all + SPARE.all);
            assert!(of_tenant <= RUNNING.tenant + SPARE.tenant);
            assert!(of_user <= RUNNING.user || share.user.is_none());
        }
        for waiting in &self.waiting {
            assert!(
                !may_run(&running, waiting.share),
                "{:?} waits and could run",
                waiting.share
            );
            for (other, turns) in &waiting.passed_by {
                let tenants_apart = other.tenant != waiting.share.tenant;
                let users = 4;
                // A tenant passes once for each turn of this one's tenant, which has that many users at most.
                let most = if tenants_apart { users } else { 1 };
                assert!(
                    *turns <= most,
                    "{:?} was passed by {other:?} {turns} times",
                    waiting.share
                );
            }
        }
    }
}

fn load(running: &[Share], share: Share) -> usize {
    running.iter().filter(|other| **other == share).count()
}

fn tenant_load(running: &[Share], share: Share) -> usize {
    let of_tenant = running.iter().filter(|other| other.tenant == share.tenant);
    of_tenant.count()
}

fn may_run(running: &[Share], share: Share) -> bool {
    let (of_tenant, of_user) = (tenant_load(running, share), load(running, share));
    let of_user_most = share.user.map_or(RUNNING.tenant, |_| RUNNING.user);
    let (all, tenant) = match of_user {
        0 => (RUNNING.all + SPARE.all, RUNNING.tenant + SPARE.tenant),
        _ => (RUNNING.all, RUNNING.tenant),
    };
    running.len() < all && of_tenant < tenant && of_user < of_user_most
}

fn poll(turn: &mut Turn) -> Poll<Result<Permit, Full>> {
    turn.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

proptest! {
    #[test]
    fn nobody_waits_who_could_run_and_who_has_least_goes_first(steps in steps()) {
        let queue = Queue::new(LIMITS);
        let mut world = World::default();
        for step in steps {
            world.step(&queue, step);
            world.check();
            prop_assert_eq!(queue.running(), world.running.len());
            prop_assert_eq!(queue.waiting(), world.waiting.len());
        }
        drop(world);
        prop_assert_eq!((queue.running(), queue.waiting()), (0, 0));
    }
}
