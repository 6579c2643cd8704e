//! An import that was interrupted is noticed, so that no gateway starts on a part of the data.

use std::time::Duration;

use toolgate_engine::store::{Directory, Runs as _, Store, StoreError};
use toolgate_kernel::event::Seq;
use toolgate_kernel::time::Time;
use toolgate_store::transfer::{PostgresDatabase, SqliteDatabase, export, import};
use toolgate_store::{PostgresOptions, check_database, check_postgres};
use toolgate_testkit::store_conformance::samples::{extend, node, project, project_record, run, say, space};

use crate::readers::ask;
use crate::scratch::{Database, Scratch};
use crate::transfer::{Interrupted, exported, fill};

async fn a_file() -> Vec<u8> {
    let scratch = Scratch::new();
    let store = scratch.open();
    fill(&store).await;
    store.close().await;
    exported(&mut SqliteDatabase::open(&scratch.path()).unwrap())
        .await
        .0
}

#[tokio::test]
async fn sqlite_knows_of_an_interrupted_import_until_it_has_ended() {
    let (file, scratch) = (a_file().await, Scratch::new());
    let open = async || scratch.open().has_unfinished_import().await.unwrap();
    assert!(!open().await);
    let mut target = SqliteDatabase::create(&scratch.path()).unwrap();
    let broken = import(&mut Interrupted(&mut target, 3), &file[..], false, |_| {}).await;
    assert!(matches!(broken, Err(StoreError::Timeout)), "{broken:?}");
    drop(target);
    assert!(open().await);
    let mut target = SqliteDatabase::create(&scratch.path()).unwrap();
    import(&mut target, &file[..], false, |_| {}).await.unwrap();
    // One that is refused leaves nothing behind.
    let refused = import(&mut target, &file[..], false, |_| {}).await;
    assert!(matches!(refused, Err(StoreError::Exists)), "{refused:?}");
    drop(target);
    assert!(!open().await);
}

#[tokio::test]
async fn postgres_knows_of_an_interrupted_import_until_it_has_ended() {
    let (file, database) = (a_file().await, Database::new());
    let open = async || database.open().await.has_unfinished_import().await.unwrap();
    assert!(!open().await);
    let mut target = PostgresDatabase::create(&database.address()).await.unwrap();
    let broken = import(&mut Interrupted(&mut target, 3), &file[..], false, |_| {}).await;
    assert!(matches!(broken, Err(StoreError::Timeout)), "{broken:?}");
    assert!(open().await);
    import(&mut target, &file[..], false, |_| {}).await.unwrap();
    let refused = import(&mut target, &file[..], false, |_| {}).await;
    assert!(matches!(refused, Err(StoreError::Exists)), "{refused:?}");
    assert!(!open().await);
}

#[tokio::test]
async fn an_import_that_ends_does_not_hide_another_that_was_interrupted() {
    let (file, scratch, other) = (a_file().await, Scratch::new(), Scratch::new());
    let store = other.open();
    store.put_project(project_record(project(9), "p9")).await.unwrap();
    store.close().await;
    let mut second = Vec::new();
    let mut from = SqliteDatabase::open(&other.path()).unwrap();
    export(&mut from, Some(project(9)), &mut second, |_| {})
        .await
        .unwrap();

    let mut target = SqliteDatabase::create(&scratch.path()).unwrap();
    let broken = import(&mut Interrupted(&mut target, 3), &file[..], false, |_| {}).await;
    assert!(broken.is_err());
    import(&mut target, &second[..], false, |_| {}).await.unwrap();
    drop(target);
    let store = scratch.open();
    assert!(store.has_unfinished_import().await.unwrap());
    store.give_up_imports().await.unwrap();
    assert!(!store.has_unfinished_import().await.unwrap());
}

#[tokio::test]
async fn what_an_import_that_was_given_up_has_stored_can_be_appended_to() {
    let (file, scratch, database) = (a_file().await, Scratch::new(), Database::new());
    // Every table up to the runs, and the first page of the log.
    const BATCHES: usize = 8;
    let mut target = SqliteDatabase::create(&scratch.path()).unwrap();
    let broken = import(&mut Interrupted(&mut target, BATCHES), &file[..], false, |_| {}).await;
    assert!(matches!(broken, Err(StoreError::Timeout)), "{broken:?}");
    drop(target);
    let store = scratch.open();
    store.give_up_imports().await.unwrap();
    go_on(&store).await;
    store.close().await;
    assert_eq!(check_database(&scratch.path()).unwrap().damage, [""; 0]);

    let mut target = PostgresDatabase::create(&database.address()).await.unwrap();
    let broken = import(&mut Interrupted(&mut target, BATCHES), &file[..], false, |_| {}).await;
    assert!(matches!(broken, Err(StoreError::Timeout)), "{broken:?}");
    drop(target);
    let store = database.open().await;
    store.give_up_imports().await.unwrap();
    assert!(!store.has_unfinished_import().await.unwrap());
    go_on(&store).await;
    store.close().await;
    assert_eq!(check_postgres(&database.address()).await.unwrap().damage, [""; 0]);
}

/// Appends to the space whose log was imported in part, and goes on with its run.
async fn go_on(store: &dyn Store) {
    let tail = store.space_tail(space(1)).await.unwrap();
    assert!(tail > Seq::durable(1) && tail < Seq::durable(901), "{tail:?}");
    let next = store.append(say(space(1), "next")).await.unwrap();
    assert_eq!(next.first, Seq(tail.0 + Seq::STRIDE));
    let record = store.run(run(1)).await.unwrap().unwrap();
    let more = store.append(extend(&record, record.version)).await.unwrap();
    assert_eq!(more.first, Seq(next.last().0 + Seq::STRIDE));
}

#[tokio::test]
async fn no_gateway_starts_while_an_import_is_under_way() {
    let database = Database::new();
    let target = PostgresDatabase::create(&database.address()).await.unwrap();
    let second = PostgresDatabase::create(&database.address()).await;
    assert!(matches!(second, Err(StoreError::Unavailable(_))));
    let store = database.open().await;
    let starting = tokio::spawn(async move { store.lock_start().await.map(drop) });
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while ask(&database.address(), "", waiting).await == 0 {}
    assert!(!starting.is_finished());
    drop(target);
    starting.await.unwrap().unwrap();
}

#[tokio::test]
async fn nodes_that_have_made_what_the_first_makes_start_together_and_no_import_begins() {
    let database = Database::new();
    let store = database.open().await;
    let first = store.lock_start().await.unwrap();
    first.let_others_start().await.unwrap();
    let second = store.lock_start().await.unwrap();
    second.let_others_start().await.unwrap();
    drop(first);
    let refused = PostgresDatabase::create(&database.address()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    drop(second);
    // The server may take a moment to see that the connection is gone.
    while PostgresDatabase::create(&database.address()).await.is_err() {}
}

#[tokio::test]
async fn an_import_beside_a_running_gateway_is_refused() {
    let (file, database) = (a_file().await, Database::new());
    let gateway = database
        .open_with(PostgresOptions {
            lease: Some(Duration::from_secs(3600)),
            ..PostgresOptions::default()
        })
        .await;
    gateway.heartbeat(node(1), Time(1)).await.unwrap();
    let refused = PostgresDatabase::create(&database.address()).await;
    let Err(StoreError::Unavailable(why)) = refused else {
        panic!("it was not refused");
    };
    assert!(why.contains("a gateway runs on the database"), "{why}");
    // It stops, and starts while an import is under way, as a version does that does not wait for imports.
    gateway.heartbeat(node(1), Time(0)).await.unwrap();
    let mut target = PostgresDatabase::create(&database.address()).await.unwrap();
    gateway.heartbeat(node(1), Time(1)).await.unwrap();
    let refused = import(&mut target, &file[..], false, |_| {}).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    gateway.heartbeat(node(1), Time(0)).await.unwrap();
    import(&mut target, &file[..], false, |_| {}).await.unwrap();
}
