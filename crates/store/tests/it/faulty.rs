use std::sync::Arc;

use toolgate_engine::store::{Log, Store, StoreError};
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::store_conformance::samples::{EVERYTHING, say, space};

const CALLS: usize = 1000;

/// Result of each of many appends, and how many of them are stored.
async fn outcomes(seed: u64, per_mille: u32) -> (Vec<&'static str>, usize) {
    let inner = Arc::new(MemoryStore::new());
    let store = FaultyStore::new(inner.clone(), seed, per_mille);
    let mut told = Vec::new();
    for _ in 0..CALLS {
        told.push(match store.append(say(space(1), "words")).await {
            Ok(_) => "done",
            Err(StoreError::Unavailable(_)) => "unavailable",
            Err(StoreError::Timeout) => "timeout",
            Err(other) => panic!("an error that was never asked for: {other}"),
        });
    }
    let stored = inner.space_log(space(1), EVERYTHING).await.expect("the log");
    (told, stored.entries.len())
}

#[tokio::test]
async fn each_fault_has_its_share_and_half_of_the_time_outs_were_done() {
    let (told, stored) = outcomes(1, 100).await;
    let count = |word| told.iter().filter(|told| **told == word).count();
    assert_eq!(count("done") + count("unavailable") + count("timeout"), CALLS);
    assert!(
        (60..140).contains(&count("unavailable")),
        "{}",
        count("unavailable")
    );
    assert!((140..260).contains(&count("timeout")), "{}", count("timeout"));
    let done_and_timed_out = stored - count("done");
    assert!((60..140).contains(&done_and_timed_out), "{done_and_timed_out}");
}

#[tokio::test]
async fn the_same_seed_fails_the_same_way() {
    assert_eq!(outcomes(7, 50).await, outcomes(7, 50).await);
    assert_ne!(outcomes(7, 50).await, outcomes(8, 50).await);
}

#[tokio::test]
async fn a_calm_store_fails_no_more() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()), 1, 1000);
    assert!(store.ready().await.is_err());
    store.calm();
    assert!(store.ready().await.is_ok());
}
