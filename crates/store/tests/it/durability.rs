use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use toolgate_engine::store::{CommitListener, Directory, Log, Runs, Store, StoreError};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::time::Time;
use toolgate_store::{SqliteOptions, SqliteStore};
use toolgate_testkit::store_conformance::samples::{
    EVERYTHING, answer, create, entity, entity_record, extend, key, key_record, node, project,
    project_record, run, run_record, say, space, space_record, text,
};

use crate::scratch::Scratch;

#[tokio::test]
async fn everything_is_there_after_opening_again() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let agent = "cook".parse().expect("a name");
    let record = run_record(run(1), space(1));
    let mut begin = create(record.clone());
    begin.idempotency = vec![answer("k")];
    let begun = store.append(begin).await.expect("stored");
    store.create_space(space_record(space(1))).await.expect("stored");
    store.add_member(space(1), entity(1)).await.expect("stored");
    store.heartbeat(node(1), Time(100)).await.expect("stored");
    let claimed = store.claim(run(1), node(1), Time(1)).await.expect("stored");
    store
        .put_entity(entity_record(entity(1), "ada"))
        .await
        .expect("stored");
    store
        .put_agent(project(1), &agent, serde_json::json!({"a": 1}).into(), Time(1))
        .await
        .expect("stored");
    store
        .put_project(project_record(project(1), "main"))
        .await
        .expect("stored");
    store.put_key(key_record(key(1), 1)).await.expect("stored");
    store.close().await;

    let store = scratch.open();
    assert_eq!(store.run(run(1)).await.expect("read"), claimed);
    assert_eq!(
        store.run_log(run(1), EVERYTHING).await.expect("read").entries,
        [(*begun).clone()]
    );
    assert_eq!(store.claim(run(1), node(2), Time(50)).await.expect("read"), None);
    assert_eq!(
        store
            .space(space(1))
            .await
            .expect("read")
            .expect("the space")
            .members,
        [entity(1)]
    );
    assert!(store.entity(entity(1)).await.expect("read").is_some());
    assert!(
        store
            .agent(project(1), &agent, None)
            .await
            .expect("read")
            .is_some()
    );
    assert!(store.project_named("main").await.expect("read").is_some());
    assert!(store.key([1; 32]).await.expect("read").is_some());
    assert_eq!(
        store.idempotency(project(1), "k").await.expect("read"),
        Some(answer("k"))
    );
    let claimed = store.run(run(1)).await.expect("read").expect("the run");
    let next = store
        .append(extend(&claimed, begun.last()))
        .await
        .expect("stored");
    assert_eq!(next.first, Seq::durable(2));
}

#[tokio::test]
async fn what_was_accepted_is_stored_when_the_store_is_dropped() {
    let scratch = Scratch::new();
    let store = Arc::new(scratch.open());
    let mut given_up = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        given_up.spawn(async move { store.append(say(space(1), &n.to_string())).await });
    }
    given_up.join_next().await;
    given_up.shutdown().await;
    let seen = store
        .space_log(space(1), EVERYTHING)
        .await
        .expect("read")
        .entries
        .len();
    drop(store);
    let kept = scratch
        .open()
        .space_log(space(1), EVERYTHING)
        .await
        .expect("read")
        .entries
        .len();
    assert!(seen >= 1 && kept >= seen, "{seen} were seen, {kept} were kept");
}

#[tokio::test]
async fn old_answers_are_forgotten_at_the_next_start() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let day = std::time::Duration::from_hours(24);
    for (key, time) in [("old", Time(1)), ("kept", Time(2)), ("new", Time(2).after(day))] {
        let mut append = say(space(1), key);
        append.idempotency = vec![toolgate_engine::store::IdempotencyRecord { time, ..answer(key) }];
        store.append(append).await.expect("stored");
    }
    assert!(
        store
            .idempotency(project(1), "old")
            .await
            .expect("read")
            .is_some()
    );
    store.close().await;
    let store = scratch.open();
    let known = async |key| store.idempotency(project(1), key).await.expect("read").is_some();
    assert_eq!(
        (known("old").await, known("kept").await, known("new").await),
        (false, true, true)
    );
}

#[tokio::test]
async fn a_closed_store_says_so_and_may_be_closed_again() {
    let store = Scratch::new().open();
    store.close().await;
    store.close().await;
    let refused = [
        store.ready().await,
        store.append(say(space(1), "late")).await.map(drop),
        store.run(run(1)).await.map(drop),
        store.run_log(run(1), EVERYTHING).await.map(drop),
    ];
    for outcome in refused {
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    }
}

struct Panicking;

impl CommitListener for Panicking {
    fn committed(&self, entries: &[Arc<Entry>]) {
        assert!(
            entries.iter().all(|entry| entry.events != [text("boo")]),
            "a listener that panics"
        );
    }
}

#[tokio::test]
async fn a_panic_on_the_writing_thread_hangs_nobody_and_ends_nothing() {
    let store = Scratch::new().open();
    store.listen(Arc::new(Panicking));
    store.append(say(space(1), "before")).await.expect("stored");
    let outcome = store.append(say(space(1), "boo")).await;
    assert!(
        matches!(outcome, Err(StoreError::Timeout)),
        "nobody knows: {outcome:?}"
    );
    let after = store.append(say(space(1), "after")).await.expect("stored");
    assert_eq!(after.first, Seq::durable(3), "it was committed before the panic");
}

#[tokio::test]
async fn a_second_store_on_the_same_file_is_refused_until_the_first_closes() {
    let scratch = Scratch::new();
    let first = scratch.open();
    let Err(StoreError::Unavailable(why)) = SqliteStore::open(&scratch.path(), SqliteOptions::default())
    else {
        panic!("two stores on one file");
    };
    assert!(
        why.contains("another toolgate process uses this data directory"),
        "{why}"
    );
    first.close().await;
    scratch.open().ready().await.expect("the lock was given back");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let store = scratch.open();
    store.ready().await.expect("ready");
    let directory = scratch.path().parent().expect("a directory").to_owned();
    let mut files = 0;
    for file in std::fs::read_dir(directory).expect("the directory") {
        let file = file.expect("a file");
        let mode = file.metadata().expect("its mode").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", file.file_name());
        files += 1;
    }
    assert!(files >= 3, "database, write-ahead log, lock");
}

const DATABASE: &str = "TOOLGATE_TEST_DATABASE";

/// No test by itself: the next test starts it as a separate process.
#[tokio::test]
async fn writes_until_killed_when_asked() {
    let Some(path) = std::env::var_os(DATABASE) else {
        return;
    };
    let store = SqliteStore::open(path.as_ref(), SqliteOptions::default()).expect("the store opens");
    for n in 1.. {
        store.append(say(space(1), &n.to_string())).await.expect("stored");
        println!("stored {n}");
    }
}

#[tokio::test]
async fn a_killed_process_gives_up_its_lock_and_loses_nothing_it_acknowledged() {
    let scratch = Scratch::new();
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "durability::writes_until_killed_when_asked",
            "--nocapture",
        ])
        .env(DATABASE, scratch.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut acknowledged = 0;
    let mut read_until = |enough: usize| {
        for line in lines.by_ref().map_while(Result::ok) {
            // The test harness may print the test's name before the first line.
            if let Some((_, n)) = line.split_once("stored ") {
                acknowledged = n.parse().expect("a number");
            }
            if acknowledged >= enough {
                break;
            }
        }
        acknowledged
    };
    read_until(20);
    let second = SqliteStore::open(&scratch.path(), SqliteOptions::default());
    assert!(matches!(second, Err(StoreError::Unavailable(_))));
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    let acknowledged = read_until(usize::MAX);
    let log = scratch
        .open()
        .space_log(space(1), EVERYTHING)
        .await
        .expect("read")
        .entries;
    assert!(
        acknowledged >= 20 && log.len() >= acknowledged,
        "{acknowledged} acknowledged, {} stored",
        log.len()
    );
    assert!(
        log.iter()
            .zip(1..)
            .all(|(entry, n)| entry.first == Seq::durable(n) && entry.events.len() == 1)
    );
}
