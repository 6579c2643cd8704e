//! Push configurations: which deliverer works on one, and when.

use std::sync::Arc;

use toolgate_engine::clock::Clock as _;
use toolgate_engine::push_configs::{PushConfig, PushConfigs};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use toolgate_store::MemoryStore;
use toolgate_testkit::held_clock::HeldClock;

fn config(clock: &HeldClock) -> PushConfig {
    PushConfig {
        id: "own".into(),
        run: RunId::from_bytes([1; 16]),
        url: "https://client.example.com/".into(),
        token: Some(Secret::new("t")),
        authorization: None,
        by: None,
        form: "1.0".into(),
        delivered: 0,
        failures: 0,
        place: Seq::default(),
        since: clock.now(),
        due: Some(clock.now()),
        is_claimed: false,
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_deliverers_one_works_on_a_configuration_until_it_gives_no_sign_of_life() {
    let clock = Arc::new(HeldClock::default());
    let store = Arc::new(MemoryStore::new());
    // Two nodes on one store.
    let nodes = [(); 2].map(|()| PushConfigs::new(store.clone(), clock.clone()));
    let place = (ProjectId::from_bytes([2; 16]), SpaceId::from_bytes([3; 16]));
    nodes[0].put(place.0, place.1, &config(&clock)).await.unwrap();

    let mut seen = Vec::new();
    for node in &nodes {
        let due = node.due(10).await.unwrap();
        assert_eq!(due.len(), 1, "a new one is due at once, on every node");
        seen.extend(due);
    }
    let [mut first, mut second] = seen.try_into().expect("one each");
    assert!(nodes[0].claim(&mut first).await.unwrap());
    assert!(!nodes[1].claim(&mut second).await.unwrap());
    assert!(nodes[1].due(10).await.unwrap().is_empty());

    // What is delivered counts, and keeps the claim.
    clock.jump(20_000);
    assert!(nodes[0].note_delivered(&mut first, 1).await.unwrap());
    clock.jump(20_000);
    assert!(nodes[1].due(10).await.unwrap().is_empty());

    // The first node is gone.
    clock.jump(20_000);
    let mut due = nodes[1].due(10).await.unwrap();
    assert_eq!(due[0].config.delivered, 1);
    assert!(nodes[1].claim(&mut due[0]).await.unwrap());
    assert!(!nodes[0].note_delivered(&mut first, 2).await.unwrap());

    // One that is stored anew is nobody's.
    nodes[0].put(place.0, place.1, &config(&clock)).await.unwrap();
    assert!(!nodes[1].note_delivered(&mut due[0], 2).await.unwrap());
    assert_eq!(nodes[0].due(10).await.unwrap()[0].config.delivered, 0);
}
