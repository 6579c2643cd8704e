//! Shares of seats and of model calls: one user's slow runs do not hold up another's. By the order in which the model is
//! asked, not by time.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use toolgate_engine::intake::Posted;
use toolgate_fair::Shares;
use toolgate_kernel::event::Status;
use toolgate_kernel::id::EntityId;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, last_words, text};

use crate::world::{Setup, World};

/// A world whose model says whom it is asked for, and replies when the test lets it.
struct Slow {
    world: World,
    gate: Arc<Semaphore>,
    asked: UnboundedReceiver<String>,
}

impl Slow {
    async fn new(runs_active: Shares, model_calls: Shares) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let (sender, asked) = unbounded_channel();
        let held = gate.clone();
        let model = ScriptedModel::new(move |ask| {
            sender.send(last_words(ask)).unwrap();
            vec![text("yes"), Say::Gate(held.clone())]
        });
        let world = World::with(Setup {
            model,
            runs_active,
            model_calls,
            ..Setup::default()
        })
        .await;
        Self { world, gate, asked }
    }

    /// A user starts a run in a space of its own, and says its name.
    async fn say(&self, user: &str) -> Posted {
        let mut post = self.world.post_to(None, user);
        let letter = user.bytes().next().unwrap();
        post.message.from = Some(EntityId::from_bytes([letter; 16]));
        self.world.engine.post(post).await.unwrap()
    }

    /// Whom the model is asked for next.
    async fn next(&mut self) -> String {
        self.asked.recv().await.unwrap()
    }

    async fn status(&self, posted: &Posted) -> Status {
        let run = self.world.store.run(posted.run_id.unwrap()).await;
        run.unwrap().unwrap().status
    }
}

#[tokio::test]
async fn another_users_run_begins_next_however_many_one_user_has_queued() {
    const SEATS: usize = 4;
    let mut slow = Slow::new(Shares::same(SEATS), Shares::same(1_000)).await;
    for _ in 0..200 {
        slow.say("a").await;
    }
    let run = slow.say("b").await;
    assert_eq!(slow.status(&run).await, Status::Queued);
    for _ in 0..SEATS {
        assert_eq!(slow.next().await, "a");
    }
    slow.gate.add_permits(1);
    assert_eq!(slow.next().await, "b");
    // Then those who wait go on, and all of them come to an end.
    slow.gate.add_permits(1_000);
    for _ in SEATS..200 {
        assert_eq!(slow.next().await, "a");
    }
    slow.world.finish(run.run_id.unwrap()).await;
}

#[tokio::test]
async fn one_user_leaves_seats_to_others_and_a_backend_to_other_projects() {
    let mut slow = Slow::new(Shares::of(8), Shares::same(1_000)).await;
    let mut posted = Vec::new();
    for _ in 0..3 {
        posted.push(slow.say("a").await);
    }
    assert_eq!((slow.next().await, slow.next().await), ("a".into(), "a".into()));
    assert_eq!(
        slow.status(&posted[2]).await,
        Status::Queued,
        "a quarter of the seats"
    );
    slow.say("b").await;
    assert_eq!(slow.next().await, "b");
    // The backend itself is no user: it may take what its project may.
    for _ in 0..5 {
        posted.push(slow.world.say("backend").await);
    }
    for _ in 0..4 {
        assert_eq!(slow.next().await, "backend");
    }
    assert_eq!(
        slow.status(&posted[7]).await,
        Status::Queued,
        "seven eighths of the seats"
    );
}

#[tokio::test]
async fn a_queued_run_begins_after_a_restart_and_a_cancelled_one_does_not() {
    let mut slow = Slow::new(Shares::same(1), Shares::same(1_000)).await;
    slow.say("a").await;
    let (cancelled, kept) = (slow.say("a").await, slow.say("a").await);
    assert_eq!(slow.next().await, "a");
    let status = slow.world.engine.cancel(cancelled.run_id.unwrap()).await.unwrap();
    assert_eq!(status, Status::Cancelled);
    let store = slow.world.store.clone();
    slow.world.stop().await;
    let world = World::with(Setup {
        store,
        ..Setup::default()
    })
    .await;
    world.finish(kept.run_id.unwrap()).await;
    let run = world.store.run(cancelled.run_id.unwrap()).await.unwrap().unwrap();
    assert_eq!(run.status, Status::Cancelled);
}

#[tokio::test]
async fn another_users_model_call_is_next_however_many_of_one_user_wait() {
    const CALLS: usize = 2;
    let mut slow = Slow::new(Shares::same(1_000), Shares::same(CALLS)).await;
    for _ in 0..20 {
        slow.say("a").await;
    }
    for _ in 0..CALLS {
        assert_eq!(slow.next().await, "a");
    }
    let run = slow.say("b").await;
    assert_ne!(slow.status(&run).await, Status::Queued);
    // The run is at work, and its model call is in the queue.
    while slow.world.engine.waiting_model_calls() < 19 {
        tokio::task::yield_now().await;
    }
    slow.gate.add_permits(1);
    assert_eq!(slow.next().await, "b");
}
