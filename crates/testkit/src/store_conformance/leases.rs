//! Leases: which node drives a run, and fencing of all others.

use std::sync::Arc;

use toolgate_engine::store::{Append, LeaseWrite, RunRecord, RunWrite, Store, StoreError, Wake};
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{NodeId, RunId};
use toolgate_kernel::time::Time;

use super::samples::{EVERYTHING, create, extend, node, run, run_record, say, space};
use super::{Stored, checks, refused};

checks![
    a_claim_takes_a_free_run_with_the_next_epoch,
    a_claim_leaves_a_living_holder_alone,
    a_claim_takes_over_when_the_heartbeat_has_ended,
    a_final_or_absent_run_cannot_be_claimed,
    a_run_may_begin_with_its_lease,
    a_write_with_the_lease_needs_its_epoch,
    a_zombie_cannot_write_after_the_takeover,
    a_released_lease_is_nobodys,
    a_release_of_a_lost_lease_does_nothing,
    an_append_may_take_the_lease,
    an_append_may_release_the_lease,
    an_append_counts_the_wake_ups_of_any_run,
    a_refused_append_wakes_nobody,
    wake_ups_are_taken_off_once,
    claimable_runs_are_those_that_wait_for_somebody,
    claimable_runs_come_within_their_limit,
    the_next_wake_is_the_earliest_of_open_runs,
    nodes_live_until_their_heartbeat_ends,
];

async fn begin(store: &Arc<dyn Store>, record: RunRecord) -> Seq {
    store.append(create(record)).await.stored().last()
}

async fn epoch(store: &Arc<dyn Store>, id: RunId, by: u64, now: i64) -> Option<u64> {
    let claimed = store.claim(id, node(by), Time(now)).await.stored()?;
    assert_eq!(claimed.node, Some(node(by)));
    assert_eq!(store.run(id).await.stored().as_ref(), Some(&claimed));
    Some(claimed.epoch)
}

/// Lease holder and epoch of a run.
async fn lease(store: &Arc<dyn Store>, id: RunId) -> (Option<NodeId>, u64) {
    let record = store.run(id).await.stored().expect("the run");
    (record.node, record.epoch)
}

fn extend_as(record: &RunRecord, version: Seq, by: u64, to: LeaseWrite) -> Append {
    let mut append = extend(record, version);
    let RunWrite::Extend { epoch, lease, .. } = &mut append.run else {
        unreachable!()
    };
    (*epoch, *lease) = (by, to);
    append
}

async fn a_claim_takes_a_free_run_with_the_next_epoch(store: Arc<dyn Store>) {
    begin(&store, run_record(run(1), space(1))).await;
    store.heartbeat(node(1), Time(100)).await.stored();
    let before = store.run(run(1)).await.stored().expect("the run");
    assert_eq!(epoch(&store, run(1), 1, 10).await, Some(1));
    let after = store.run(run(1)).await.stored().expect("the run");
    assert_eq!(
        RunRecord {
            node: None,
            epoch: 0,
            ..after
        },
        before,
        "a claim moves nothing else"
    );
    assert_eq!(
        epoch(&store, run(1), 1, 10).await,
        Some(2),
        "its holder may claim it again"
    );
}

async fn a_claim_leaves_a_living_holder_alone(store: Arc<dyn Store>) {
    begin(&store, run_record(run(1), space(1))).await;
    store.heartbeat(node(1), Time(100)).await.stored();
    assert_eq!(epoch(&store, run(1), 1, 10).await, Some(1));
    assert_eq!(epoch(&store, run(1), 2, 100).await, None);
    assert_eq!(lease(&store, run(1)).await, (Some(node(1)), 1));
}

async fn a_claim_takes_over_when_the_heartbeat_has_ended(store: Arc<dyn Store>) {
    begin(&store, run_record(run(1), space(1))).await;
    store.heartbeat(node(1), Time(100)).await.stored();
    assert_eq!(epoch(&store, run(1), 1, 10).await, Some(1));
    assert_eq!(epoch(&store, run(1), 2, 101).await, Some(2));
    store.heartbeat(node(2), Time(300)).await.stored();
    assert_eq!(epoch(&store, run(1), 1, 102).await, None);
    store.heartbeat(node(2), Time(50)).await.stored();
    assert_eq!(
        epoch(&store, run(1), 1, 102).await,
        Some(3),
        "a node may say that it ends"
    );
}

async fn a_final_or_absent_run_cannot_be_claimed(store: Arc<dyn Store>) {
    for (n, status) in (1..).zip([Status::Completed, Status::Failed, Status::Cancelled]) {
        begin(
            &store,
            RunRecord {
                status,
                ..run_record(run(n), space(1))
            },
        )
        .await;
        assert_eq!(epoch(&store, run(n), 1, 10).await, None);
    }
    assert_eq!(epoch(&store, run(9), 1, 10).await, None);
}

async fn a_run_may_begin_with_its_lease(store: Arc<dyn Store>) {
    store.heartbeat(node(1), Time(100)).await.stored();
    let record = RunRecord {
        node: Some(node(1)),
        epoch: 1,
        status: Status::Running,
        ..run_record(run(1), space(1))
    };
    let version = begin(&store, record.clone()).await;
    assert_eq!(store.claimable(Time(50), 9).await.stored(), []);
    store
        .append(extend_as(&record, version, 1, LeaseWrite::Keep))
        .await
        .stored();
    assert_eq!(epoch(&store, run(1), 1, 10).await, Some(2));
}

async fn a_write_with_the_lease_needs_its_epoch(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let version = begin(&store, record.clone()).await;
    epoch(&store, run(1), 1, 10).await;
    epoch(&store, run(1), 1, 10).await;
    for wrong in [0, 1, 3] {
        refused!(
            store
                .append(extend_as(&record, version, wrong, LeaseWrite::Keep))
                .await,
            StoreError::Conflict
        );
    }
    let entry = store
        .append(extend_as(&record, version, 2, LeaseWrite::Keep))
        .await
        .stored();
    assert_eq!(lease(&store, run(1)).await, (Some(node(1)), 2));
    store
        .append(extend_as(&record, entry.last(), 2, LeaseWrite::Keep))
        .await
        .stored();
}

async fn a_zombie_cannot_write_after_the_takeover(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let version = begin(&store, record.clone()).await;
    store.heartbeat(node(1), Time(100)).await.stored();
    epoch(&store, run(1), 1, 10).await;
    // Node 1 stops here. Node 2 takes over before it has written anything.
    assert_eq!(epoch(&store, run(1), 2, 101).await, Some(2));
    for lease in [LeaseWrite::Keep, LeaseWrite::Release] {
        refused!(
            store.append(extend_as(&record, version, 1, lease)).await,
            StoreError::Conflict
        );
    }
    store.release(run(1), 1, 0).await.stored();
    store
        .append(extend_as(&record, version, 2, LeaseWrite::Keep))
        .await
        .stored();
    assert_eq!(store.run_log(run(1), EVERYTHING).await.stored().entries.len(), 2);
}

async fn a_released_lease_is_nobodys(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let version = begin(&store, record.clone()).await;
    store.heartbeat(node(1), Time(100)).await.stored();
    epoch(&store, run(1), 1, 10).await;
    store.release(run(1), 1, 0).await.stored();
    assert_eq!(lease(&store, run(1)).await, (None, 1));
    assert_eq!(
        epoch(&store, run(1), 2, 10).await,
        Some(2),
        "epochs go on where they ended"
    );
    let stale = store
        .append(extend_as(&record, version, 1, LeaseWrite::Keep))
        .await;
    refused!(stale, StoreError::Conflict);
}

async fn a_release_of_a_lost_lease_does_nothing(store: Arc<dyn Store>) {
    begin(&store, run_record(run(1), space(1))).await;
    epoch(&store, run(1), 1, 10).await;
    epoch(&store, run(1), 1, 10).await;
    for lost in [0, 1, 3] {
        store.release(run(1), lost, 0).await.stored();
    }
    store.release(run(9), 1, 0).await.stored();
    assert_eq!(lease(&store, run(1)).await, (Some(node(1)), 2));
}

async fn an_append_may_take_the_lease(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let version = begin(&store, record.clone()).await;
    let entry = store
        .append(extend_as(&record, version, 0, LeaseWrite::Take(node(1))))
        .await
        .stored();
    assert_eq!(lease(&store, run(1)).await, (Some(node(1)), 1));
    // A second writer of the same epoch is too late, whichever version it has read.
    let late = store
        .append(extend_as(&record, entry.last(), 0, LeaseWrite::Take(node(2))))
        .await;
    refused!(late, StoreError::Conflict);
    store
        .append(extend_as(&record, entry.last(), 1, LeaseWrite::Keep))
        .await
        .stored();
}

async fn an_append_may_release_the_lease(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let version = begin(&store, record.clone()).await;
    epoch(&store, run(1), 1, 10).await;
    store
        .append(extend_as(&record, version, 1, LeaseWrite::Release))
        .await
        .stored();
    assert_eq!(lease(&store, run(1)).await, (None, 1));
    assert_eq!(epoch(&store, run(1), 2, 10).await, Some(2));
}

/// How many wake-ups a run has.
async fn wakes(store: &Arc<dyn Store>, id: RunId) -> u32 {
    store.run(id).await.stored().expect("the run").wakes
}

fn wake(n: u64, change: i32) -> Wake {
    Wake { run: run(n), change }
}

async fn an_append_counts_the_wake_ups_of_any_run(store: Arc<dyn Store>) {
    let parent = run_record(run(1), space(1));
    let version = begin(&store, parent.clone()).await;
    let mut delegating = extend(&parent, version);
    delegating.wakes = vec![wake(1, 2)];
    store.append(delegating).await.stored();
    assert_eq!(wakes(&store, run(1)).await, 2);
    let child = run_record(run(2), space(2));
    let mut born = create(child.clone());
    born.wakes = vec![wake(1, -1)];
    let version = store.append(born).await.stored().last();
    assert_eq!(wakes(&store, run(1)).await, 1);
    let mut ended = extend(&child, version);
    ended.wakes = vec![Wake::up(run(1)), Wake::up(run(2)), Wake::up(run(9))];
    store.append(ended).await.stored();
    assert_eq!((wakes(&store, run(1)).await, wakes(&store, run(2)).await), (2, 1));
    let mut far_below = say(space(3), "whoever says it");
    far_below.wakes = vec![wake(1, -9)];
    store.append(far_below).await.stored();
    assert_eq!(wakes(&store, run(1)).await, 0, "never below zero");
}

async fn a_refused_append_wakes_nobody(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let version = begin(&store, record.clone()).await;
    let mut late = extend(&record, Seq(version.0 + 1));
    late.wakes = vec![Wake::up(run(1))];
    refused!(store.append(late).await, StoreError::Conflict);
    let mut again = create(record);
    again.wakes = vec![Wake::up(run(1))];
    refused!(store.append(again).await, StoreError::Exists);
    assert_eq!(wakes(&store, run(1)).await, 0);
}

async fn wake_ups_are_taken_off_once(store: Arc<dyn Store>) {
    let record = RunRecord {
        status: Status::Running,
        wakes: 3,
        ..run_record(run(1), space(1))
    };
    let version = begin(&store, record.clone()).await;
    // Two nodes have read the same two wake-ups of a run that nobody drives.
    for _ in 0..2 {
        store.release(run(1), 0, -2).await.stored();
    }
    assert_eq!(wakes(&store, run(1)).await, 1);
    assert_eq!(store.claimable(Time(1), 9).await.stored(), [run(1)]);
    let stale = store.append(extend(&record, version)).await;
    refused!(stale, StoreError::Conflict);
    // A node that stops leaves work behind.
    let claimed = epoch(&store, run(1), 1, 10).await.expect("free");
    store.release(run(1), claimed, 1).await.stored();
    assert_eq!(
        (wakes(&store, run(1)).await, lease(&store, run(1)).await),
        (2, (None, claimed))
    );
}

async fn claimable_runs_are_those_that_wait_for_somebody(store: Arc<dyn Store>) {
    use Status::*;
    store.heartbeat(node(1), Time(100)).await.stored();
    store.heartbeat(node(2), Time(99)).await.stored();
    let by = |n| Some(node(n));
    let cases = [
        (Queued, None, None, 0, true),
        (Queued, None, None, 1, true),
        (Queued, None, Some(500), 0, true),
        // A run that waits for others to carry its calls on is `running` too.
        (Running, None, None, 0, false),
        (Running, None, Some(500), 0, false),
        (Running, None, None, 1, true),
        (Running, None, Some(500), 2, true),
        (Running, None, Some(5), 1, true),
        (Running, None, Some(5), 0, true),
        (WaitingTool, None, None, 0, false),
        (WaitingTool, None, None, 1, true),
        (WaitingTool, None, Some(100), 0, true),
        (WaitingTool, None, Some(101), 0, false),
        (WaitingApproval, None, Some(99), 0, true),
        (WaitingTime, None, Some(1), 0, true),
        (WaitingTime, None, Some(200), 0, false),
        (Running, by(1), None, 0, false),
        (Running, by(1), None, 1, false),
        (WaitingTool, by(1), Some(5), 0, false),
        (Running, by(2), None, 0, true),
        (Running, by(2), None, 1, true),
        (WaitingTool, by(2), None, 0, true),
        (WaitingTool, by(2), Some(500), 0, true),
        (Queued, by(3), None, 0, true),
        (Completed, None, Some(5), 1, false),
        (Failed, by(2), None, 1, false),
        (Cancelled, by(2), Some(5), 0, false),
    ];
    let mut expected = Vec::new();
    for (n, (status, holder, wake_at, wakes, waits)) in (1..).zip(cases) {
        let wake_at = wake_at.map(Time);
        begin(
            &store,
            RunRecord {
                status,
                node: holder,
                wake_at,
                wakes,
                ..run_record(run(n), space(1))
            },
        )
        .await;
        expected.extend(waits.then_some(run(n)));
    }
    let mut claimable = store.claimable(Time(100), usize::MAX).await.stored();
    claimable.sort_unstable();
    assert_eq!(claimable, expected);
    for id in claimable {
        assert!(epoch(&store, id, 1, 100).await.is_some());
    }
    assert_eq!(
        store.claimable(Time(100), usize::MAX).await.stored(),
        [],
        "all of them are driven now"
    );
}

async fn claimable_runs_come_within_their_limit(store: Arc<dyn Store>) {
    for n in 1..=5 {
        begin(&store, run_record(run(n), space(n))).await;
    }
    assert_eq!(store.claimable(Time(1), 3).await.stored().len(), 3);
    assert_eq!(store.claimable(Time(1), 0).await.stored(), []);
    let urgent = [
        (6, Some(Time(1)), 0, None),
        (7, None, 1, None),
        (8, None, 0, Some(node(9))),
    ];
    for (n, wake_at, wakes, node) in urgent {
        let record = RunRecord {
            status: Status::Running,
            wake_at,
            wakes,
            node,
            ..run_record(run(n), space(n))
        };
        begin(&store, record).await;
    }
    let mut first = store.claimable(Time(1), 3).await.stored();
    first.sort_unstable();
    assert_eq!(first, [6, 7, 8].map(run), "what waits for room comes last");
}

async fn the_next_wake_is_the_earliest_of_open_runs(store: Arc<dyn Store>) {
    let held = Some(node(1));
    let cases = [
        (Status::Completed, None, 1),
        (Status::WaitingTool, None, 30),
        (Status::WaitingTime, held, 20),
        (Status::Running, None, 40),
    ];
    for (n, (status, holder, at)) in (1..).zip(cases) {
        let wake_at = Some(Time(at));
        begin(
            &store,
            RunRecord {
                status,
                node: holder,
                wake_at,
                ..run_record(run(n), space(1))
            },
        )
        .await;
    }
    assert_eq!(store.next_wake().await.stored(), Some(Time(20)));
    let record = run_record(run(3), space(1));
    let version = store.run(run(3)).await.stored().expect("the run").version;
    store.append(extend(&record, version)).await.stored();
    assert_eq!(store.next_wake().await.stored(), Some(Time(30)));
}

async fn nodes_live_until_their_heartbeat_ends(store: Arc<dyn Store>) {
    assert_eq!(store.live_nodes(Time(0)).await.stored(), 0);
    for (by, until) in [(1, 10), (2, 20), (3, 30)] {
        store.heartbeat(node(by), Time(until)).await.stored();
    }
    for (now, live) in [(10, 3), (11, 2), (30, 1), (31, 0)] {
        assert_eq!(store.live_nodes(Time(now)).await.stored(), live, "at {now}");
    }
    store.heartbeat(node(3), Time(0)).await.stored();
    store.heartbeat(node(1), Time(40)).await.stored();
    assert_eq!(store.live_nodes(Time(15)).await.stored(), 2);
    assert_eq!(store.live_nodes(Time(40)).await.stored(), 1);
}
