//! The PostgreSQL store when its server stops, hangs, or is used by several nodes at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use toolgate_engine::store::{Log, Runs, Store, StoreError};
use toolgate_kernel::event::Seq;
use toolgate_kernel::time::Time;
use toolgate_store::{PostgresAddress, PostgresOptions, PostgresStore, check_postgres};
use toolgate_testkit::postgres_server::{Durability, PostgresServer, Stop};
use toolgate_testkit::store_conformance::samples::{
    EVERYTHING, create, extend, node, run, run_record, say, space,
};

use crate::scratch::Database;

async fn open(address: &PostgresAddress) -> Arc<PostgresStore> {
    let options = PostgresOptions {
        connections_max: 6,
        ..PostgresOptions::default()
    };
    Arc::new(
        PostgresStore::open(address, options)
            .await
            .expect("the store opens"),
    )
}

/// Appends to a few spaces until each has what it should: an answer that nobody knows is looked up by reading.
async fn append_all(store: Arc<PostgresStore>, writer: u64, count: u64) -> u64 {
    let mut unknown = 0;
    for n in 0..count {
        let words = format!("{writer}-{n}");
        loop {
            match store.append(say(space(writer % 3), &words)).await {
                Ok(_) => break,
                Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(StoreError::Timeout) => {
                    unknown += 1;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    unknown
}

/// Every text of the logs of all spaces.
async fn stored(store: &PostgresStore) -> Vec<String> {
    let mut all = Vec::new();
    for n in 0..3 {
        let mut next = Seq::durable(1);
        for entry in store.space_log(space(n), EVERYTHING).await.unwrap().entries {
            assert_eq!(entry.first, next, "places are dense");
            next = Seq(entry.last().0 + Seq::STRIDE);
            all.push(format!("{:?}", entry.events));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_append_to_the_same_spaces_without_a_gap() {
    let database = Database::new();
    let stores = [open(&database.address()).await, open(&database.address()).await];
    let mut writers = JoinSet::new();
    for writer in 0..12 {
        writers.spawn(append_all(stores[writer as usize % 2].clone(), writer, 20));
    }
    // A reader never sees a place before the one in front of it.
    let reading = stores[0].clone();
    let reader = tokio::spawn(async move {
        for _ in 0..40 {
            stored(&reading).await;
        }
    });
    assert_eq!(writers.join_all().await.iter().sum::<u64>(), 0);
    reader.await.unwrap();
    let mut all = stored(&stores[1]).await;
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 12 * 20);
    for store in stores {
        store.close().await;
    }
    assert_eq!(check_postgres(&database.address()).await.unwrap().damage, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_nodes_one_extends_and_one_claims() {
    let database = Database::new();
    let stores = [open(&database.address()).await, open(&database.address()).await];
    let record = run_record(run(1), space(1));
    let begun = stores[0].append(create(record.clone())).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let (store, append) = (stores[n % 2].clone(), extend(&record, begun.last()));
        tasks.spawn(async move { store.append(append).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let conflicts = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(StoreError::Conflict)));
    assert_eq!(conflicts.count(), 15);
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let store = stores[n as usize % 2].clone();
        tasks.spawn(async move {
            store.heartbeat(node(n), Time(100)).await.unwrap();
            store.claim(run(1), node(n), Time(10)).await.unwrap()
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().flatten().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_survives_a_server_that_is_killed_again_and_again() {
    let server = Arc::new(PostgresServer::start(Durability::Full));
    let address: PostgresAddress = server.database().parse().unwrap();
    let store = open(&address).await;
    let mut writers = JoinSet::new();
    for writer in 0..6 {
        writers.spawn(append_all(store.clone(), writer, 60));
    }
    let killing = server.clone();
    let killer = tokio::task::spawn_blocking(move || {
        for how in [Stop::AtOnce, Stop::Orderly, Stop::AtOnce] {
            std::thread::sleep(Duration::from_millis(150));
            killing.stop(how);
            killing.start_again();
        }
    });
    let unknown: u64 = writers.join_all().await.iter().sum();
    killer.await.unwrap();
    let mut all = stored(&store).await;
    let count = all.len() as u64;
    all.sort();
    all.dedup();
    assert_eq!(all.len() as u64, count, "nothing is stored twice");
    assert!(count + unknown >= 6 * 60, "{count} stored, {unknown} unknown");
    store.close().await;
    assert_eq!(check_postgres(&address).await.unwrap().damage, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_given_up_and_used_again() {
    let server = PostgresServer::start(Durability::None);
    let address: PostgresAddress = server.database().parse().unwrap();
    let options = PostgresOptions {
        statement_timeout: Duration::from_secs(1),
        connect_timeout: Duration::from_secs(1),
        connections_max: 3,
        append_connections: 1,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::open(&address, options).await.unwrap();
    store.append(say(space(0), "before")).await.unwrap();
    server.pause();
    let hung = store.run(run(1)).await;
    assert!(matches!(hung, Err(StoreError::Unavailable(_))), "{hung:?}");
    server.unpause();
    store.append(say(space(0), "after")).await.unwrap();
    assert_eq!(stored(&store).await.len(), 2);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_is_unavailable_until_it_does() {
    let server = PostgresServer::start(Durability::None);
    let url = server.database();
    let address: PostgresAddress = url.parse().unwrap();
    let store = open(&address).await;
    store.append(say(space(0), "before")).await.unwrap();
    let name = url.rsplit('/').next().unwrap();
    let set = |value: &str| {
        server.execute(
            "postgres",
            &format!("ALTER DATABASE {name} SET default_transaction_read_only = {value}"),
        );
        let others =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
        server.execute("postgres", &others);
    };
    set("on");
    let refused = store.append(say(space(0), "refused")).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    set("off");
    store.append(say(space(0), "after")).await.unwrap();
    assert_eq!(stored(&store).await.len(), 2);
    store.close().await;
}

#[tokio::test]
async fn a_password_is_in_no_error() {
    let server = PostgresServer::shared();
    let url = format!("postgres://nobody:geheim@127.0.0.1:{}/none", server.port());
    let refused = PostgresStore::open(&url.parse().unwrap(), PostgresOptions::default()).await;
    let words = refused.err().expect("no such database").to_string();
    assert!(!words.contains("geheim") && words.contains("nobody"), "{words}");
}
