//! Whose turn it is, by name and for any order of requests.

mod model;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use futures_util::poll;
use toolgate_fair::{Full, Limits, Permit, Queue, Share, Shares, Spare};

const LIMITS: Limits = Limits {
    running: Shares::same(1),
    waiting: Shares {
        all: 16,
        tenant: 8,
        user: 6,
    },
    waiting_bytes: Shares {
        all: 160,
        tenant: 80,
        user: 60,
    },
    spare: Spare::NONE,
};

/// `a.x` is the user x of the tenant a, `a.` the tenant itself.
fn share(name: &str) -> Share {
    let (tenant, user) = name.split_once('.').unwrap();
    let number = |text: &str| text.bytes().next().map(u128::from);
    Share {
        tenant: number(tenant).unwrap(),
        user: number(user),
    }
}

type Turn<'q> = Pin<Box<dyn Future<Output = Result<Permit, Full>> + 'q>>;

/// Queues these in order while somebody else runs.
async fn queued<'q>(queue: &'q Arc<Queue>, names: &[&'q str]) -> Vec<(&'q str, Turn<'q>)> {
    let mut waiting = Vec::new();
    for &name in names {
        let mut turn: Turn<'q> = Box::pin(async move { queue.turn(share(name), 10).await });
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
    let first = queue.turn(share("a.x"), 10).await.unwrap();
    let names = ["a.x", "a.x", "a.x", "a.x", "a.y", "b.x", "b.x", "c."];
    let waiting = queued(&queue, &names).await;
    assert_eq!(
        order(waiting, first).await,
        ["a.x", "b.x", "c.", "a.y", "b.x", "a.x", "a.x", "a.x"]
    );
    assert_eq!((queue.running(), queue.waiting()), (0, 0));
}

#[tokio::test]
async fn a_tenant_and_a_user_fill_their_own_room_only_in_count_and_in_bytes() {
    let queue = Queue::new(LIMITS);
    let _first = queue.turn(share("a.x"), 10).await.unwrap();
    let _waiting = queued(&queue, &["a.x"; 6]).await;
    assert_eq!(queue.turn(share("a.x"), 0).await.err(), Some(Full));
    let _others = queued(&queue, &["a.y", "a."]).await;
    assert_eq!(queue.turn(share("a.z"), 0).await.err(), Some(Full));
    let mut large = pin!(queue.turn(share("b.x"), 60));
    assert!(poll!(&mut large).is_pending());
    assert_eq!(queue.turn(share("b.x"), 1).await.err(), Some(Full));
    assert_eq!(queue.turn(share("b.y"), 21).await.err(), Some(Full));
    assert_eq!(queue.turn(share("c."), 81).await.err(), Some(Full));
}

#[tokio::test]
async fn a_user_leaves_a_part_to_other_users_and_a_tenant_to_other_tenants() {
    let running = Shares {
        all: 4,
        tenant: 3,
        user: 1,
    };
    let queue = Queue::new(Limits { running, ..LIMITS });
    let mut held = vec![queue.try_turn(share("a.x")).unwrap()];
    assert!(queue.try_turn(share("a.x")).is_none(), "its user has its share");
    let mut waiting = queued(&queue, &["a.x"]).await;
    held.push(queue.turn(share("a.y"), 10).await.unwrap());
    held.push(queue.turn(share("a."), 10).await.unwrap());
    waiting.extend(queued(&queue, &["a.", "a.z"]).await);
    held.push(queue.turn(share("b.x"), 10).await.unwrap());
    // The user x has its share, and the tenant itself has something running: who has nothing running goes.
    drop(held.remove(1));
    assert!(poll!(&mut waiting[0].1).is_pending());
    assert!(poll!(&mut waiting[1].1).is_pending());
    assert!(poll!(&mut waiting[2].1).is_ready());
    // Work that must not wait goes at once, and counts.
    held.push(queue.take(share("b.x")));
    assert_eq!(queue.running(), 5);
    drop(held);
    assert_eq!((queue.running(), queue.waiting()), (2, 0));
}

#[tokio::test]
async fn who_gives_up_leaves_room_and_loses_no_turn() {
    let queue = Queue::new(LIMITS);
    let first = queue.turn(share("a.x"), 10).await.unwrap();
    let mut waiting = queued(&queue, &["a.x", "b.x", "c.x"]).await;
    drop(waiting.remove(1));
    assert_eq!(queue.waiting(), 2);
    drop(first);
    // Its turn has come, and it does not take it.
    drop(waiting.remove(0));
    let (name, turn) = waiting.remove(0);
    assert_eq!(name, "c.x");
    assert!(turn.await.is_ok());
    assert_eq!((queue.running(), queue.waiting()), (0, 0));
}

#[tokio::test]
async fn who_has_nothing_running_takes_a_spare_turn_and_no_second_one() {
    let running = Shares {
        all: 4,
        tenant: 3,
        user: 3,
    };
    let spare = Spare { all: 2, tenant: 1 };
    let queue = Queue::new(Limits {
        running,
        spare,
        ..LIMITS
    });
    let try_turns = |names: &[&str]| -> Vec<Option<Permit>> {
        names.iter().map(|name| queue.try_turn(share(name))).collect()
    };
    // Two tenants have all that there is, for as long as they like.
    let held = try_turns(&["a.x", "a.x", "a.x", "b.x"]);
    assert!(held.iter().all(Option::is_some));
    assert!(queue.try_turn(share("b.x")).is_none(), "it has something running");
    let spare = try_turns(&["c.x", "c.x", "c.y"]);
    let given: Vec<bool> = spare.iter().map(Option::is_some).collect();
    assert_eq!(given, [true, false, true], "one for each of its users");
    assert!(queue.try_turn(share("d.x")).is_none(), "there are two in all");
    let mut waiting = queued(&queue, &["d.x"]).await;
    drop(spare);
    assert!(poll!(&mut waiting[0].1).is_ready());

    // Of one tenant no more than its part.
    let users = try_turns(&["a.y", "a.z"]);
    let given: Vec<bool> = users.iter().map(Option::is_some).collect();
    assert_eq!(given, [true, false]);
}
