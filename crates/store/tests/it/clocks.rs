//! Leases on PostgreSQL by the clock of its server: nodes whose clocks differ leave each other's runs alone.

use std::time::Duration;

use toolgate_engine::clock::{Clock as _, SystemClock};
use toolgate_engine::store::{Log, Runs};
use toolgate_kernel::time::Time;
use toolgate_store::PostgresOptions;
use toolgate_testkit::store_conformance::samples::{create, node, run, run_record, space};

use crate::scratch::Database;

#[tokio::test]
async fn a_node_whose_clock_is_ahead_takes_over_no_run_of_a_living_node() {
    let lease = Duration::from_secs(60);
    let options = PostgresOptions {
        lease: Some(lease),
        ..PostgresOptions::default()
    };
    let store = Database::new().open_with(options).await;
    store.append(create(run_record(run(1), space(1)))).await.unwrap();
    let now = SystemClock.now();
    let (behind, ahead) = (Time(now.0 - 3_600_000), now.after(Duration::from_secs(3600)));
    // The holder's own clock is an hour behind.
    store.heartbeat(node(1), behind.after(lease)).await.unwrap();
    assert!(store.claim(run(1), node(1), behind).await.unwrap().is_some());
    assert_eq!(store.claimable(ahead, 9).await.unwrap(), []);
    assert_eq!(store.claim(run(1), node(2), ahead).await.unwrap(), None);
    assert_eq!(store.live_nodes(ahead).await.unwrap(), 1);
    // It ends, and a node with whatever clock takes over.
    store.heartbeat(node(1), Time(0)).await.unwrap();
    assert_eq!(store.claimable(behind, 9).await.unwrap(), [run(1)]);
    let taken = store.claim(run(1), node(2), behind).await.unwrap().expect("free");
    assert_eq!(taken.node, Some(node(2)));
}

#[tokio::test]
async fn a_lease_ends_by_the_clock_of_the_server() {
    let options = PostgresOptions {
        lease: Some(Duration::ZERO),
        ..PostgresOptions::default()
    };
    let store = Database::new().open_with(options).await;
    store.append(create(run_record(run(1), space(1)))).await.unwrap();
    store.heartbeat(node(1), Time(i64::MAX)).await.unwrap();
    assert!(store.claim(run(1), node(1), Time(1)).await.unwrap().is_some());
    // As soon as the server's clock has moved on by a millisecond.
    while store.claimable(Time(1), 9).await.unwrap().is_empty() {}
    assert!(store.claim(run(1), node(2), Time(1)).await.unwrap().is_some());
}
