use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use toolgate_engine::store::Store;
use toolgate_store::{MemoryStore, PostgresOptions, SqliteOptions, SqliteStore};
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::store_conformance::all;

use crate::scratch::{Database, Scratch};

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_store_keeps_every_promise() {
    all(async || Arc::new(MemoryStore::new()) as Arc<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sqlite_store_keeps_every_promise() {
    check_sqlite(SqliteOptions::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sqlite_store_keeps_every_promise_with_no_room_to_spare() {
    check_sqlite(SqliteOptions {
        readers: 1,
        pending_max: 1,
        batch_max: 1,
        linger: Duration::ZERO,
        check: Some(Duration::from_secs(60)),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_store_without_faults_keeps_every_promise() {
    all(async || {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()), 1, 1000);
        store.calm();
        Arc::new(store) as Arc<dyn Store>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_postgres_store_keeps_every_promise() {
    check_postgres(PostgresOptions::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_postgres_store_keeps_every_promise_with_no_room_to_spare() {
    check_postgres(PostgresOptions {
        connections_max: 2,
        append_connections: 1,
        pending_max: 1,
        batch_max: 1,
        wait_max: Duration::from_secs(60),
        ..PostgresOptions::default()
    })
    .await;
}

async fn check_postgres(options: PostgresOptions) {
    all(async || {
        let store = Database::new().open_with(options.clone()).await;
        Arc::new(store) as Arc<dyn Store>
    })
    .await;
}

async fn check_sqlite(options: SqliteOptions) {
    let databases = RefCell::new(Vec::new());
    all(async || {
        let scratch = Scratch::new();
        let store = SqliteStore::open(&scratch.path(), options.clone()).expect("the store opens");
        databases.borrow_mut().push(scratch);
        Arc::new(store) as Arc<dyn Store>
    })
    .await;
}
