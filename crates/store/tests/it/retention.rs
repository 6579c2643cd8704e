//! The file grows with what is kept, and reads stay flat with many events.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use toolgate_engine::records::{Change, NewRecord, Owner, RecordSet, Records};
use toolgate_engine::store::{
    Append, Directory, Log, LogRange, Retention, RunRecord, RunWrite, Runs, StoreError, Trim, TrimLimit,
};
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::time::Time;
use toolgate_store::{Storage, check_database, check_postgres, vacuum_database};
use toolgate_testkit::postgres_server::PostgresServer;
use toolgate_testkit::store_conformance::samples::{
    create, entity, extend, key, key_record, node, project, project_record, run, run_record, say, space,
    space_record, text,
};
use uuid::Uuid;

use crate::scratch::{Database, Scratch};

fn pages(scratch: &Scratch) -> (i64, i64) {
    let database = Connection::open(scratch.path()).expect("the database");
    let pragma = |name: &str| {
        let sql = format!("PRAGMA {name}");
        database.query_row(&sql, [], |row| row.get(0)).expect("a number")
    };
    (pragma("page_count"), pragma("freelist_count"))
}

/// Runs that end with a large text.
async fn fill(store: &dyn Storage, first: u64, runs: u64) -> Result<(), StoreError> {
    fill_with(store, first, runs, &"much was said ".repeat(1_000)).await
}

async fn fill_with(store: &dyn Storage, first: u64, runs: u64, words: &str) -> Result<(), StoreError> {
    for n in first..first + runs {
        let record = run_record(run(n), space(1));
        let begun = store.append(create(record.clone())).await?;
        let mut end = extend(&record, begun.last());
        end.events = vec![text(words)];
        let RunWrite::Extend { status, .. } = &mut end.run else {
            unreachable!("an extension")
        };
        *status = Status::Completed;
        store.append(end).await?;
    }
    Ok(())
}

async fn delete(store: &dyn Storage, first: u64, runs: u64) -> Result<(), StoreError> {
    for n in first..first + runs {
        store.remove_runs(project(1), vec![run(n)], Time(9)).await?;
        while store
            .trim_log(Trim::Run(run(n)), TrimLimit::default())
            .await?
            .more
        {}
    }
    Ok(())
}

#[tokio::test]
async fn the_file_shrinks_with_what_is_deleted_and_does_not_grow_with_what_comes_and_goes() {
    let scratch = Scratch::new();
    let store = scratch.open();
    store.create_space(space_record(space(1))).await.expect("a space");
    fill(&store, 1, 20).await.expect("stored");
    let (small, _) = pages(&scratch);
    fill(&store, 21, 200).await.expect("stored");
    let (large, _) = pages(&scratch);
    assert!(large > small * 5, "{small} pages, then {large}");
    delete(&store, 21, 200).await.expect("deleted");
    while store.reclaim(64).await.expect("reclaimed") > 0 {}
    let (after, free) = pages(&scratch);
    assert!(
        after < small * 2 && free == 0,
        "{small} pages, {large}, then {after} with {free} free"
    );
    for round in 0..5 {
        fill(&store, 1_000 + round * 100, 50).await.expect("stored");
        delete(&store, 1_000 + round * 100, 50).await.expect("deleted");
        while store.reclaim(64).await.expect("reclaimed") > 0 {}
    }
    let (later, _) = pages(&scratch);
    assert!(later < small * 2, "{small} pages, {later} after five rounds");
}

/// Bytes of the tables and indexes of a PostgreSQL database.
fn bytes(database: &Database) -> u64 {
    let sql = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let told = PostgresServer::shared().execute(&database.0, sql);
    told.parse().expect("a number")
}

#[tokio::test]
async fn a_postgres_database_does_not_grow_with_what_comes_and_goes() {
    let database = Database::new();
    let store = database.open().await;
    store.create_space(space_record(space(1))).await.expect("a space");
    // PostgreSQL would compress repeated words to almost nothing.
    let words = (0..2_000_u64).map(|n| format!("{:x} ", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let words: String = words.collect();
    let round = async |first| {
        fill_with(&store, first, 50, &words).await.expect("stored");
        delete(&store, first, 50).await.expect("deleted");
        // The server does it by itself, when it comes by.
        PostgresServer::shared().execute(&database.0, "VACUUM");
        bytes(&database)
    };
    let once = round(1).await;
    for first in [101, 201, 301, 401] {
        round(first).await;
    }
    let later = round(501).await;
    assert!(
        once > 1 << 20 && later < once * 3 / 2,
        "{once} bytes, {later} after five more rounds"
    );
}

#[tokio::test]
async fn a_database_is_whole_after_every_kind_of_deletion() {
    let (scratch, database) = (Scratch::new(), Database::new());
    let sqlite = scratch.open();
    let postgres = database.open().await;
    for store in [&sqlite as &dyn Storage, &postgres] {
        let owner = project_record(project(1), "main");
        store.put_project(owner).await.expect("a project");
        for n in 1..=3 {
            store.create_space(space_record(space(n))).await.expect("a space");
        }
        fill(store, 1, 3).await.expect("stored");
    }
    let check = async |after: &str| {
        let report = check_database(&scratch.path()).expect("checked");
        assert_eq!(report.damage, [""; 0], "SQLite, {after}");
        let report = check_postgres(&database.address()).await.expect("checked");
        assert_eq!(report.damage, [""; 0], "PostgreSQL, {after}");
    };
    check("before").await;
    for (what, n) in [("the middle one", 2), ("the last one", 3), ("the only one", 1)] {
        for store in [&sqlite as &dyn Storage, &postgres] {
            delete(store, n, 1).await.expect("deleted");
        }
        check(what).await;
    }
    for store in [&sqlite as &dyn Storage, &postgres] {
        let next = store.append(say(space(1), "next")).await.expect("stored");
        assert_eq!(next.first, Seq::durable(7), "no place is given twice");
        for n in 2..=3 {
            store.append(say(space(n), "one")).await.expect("stored");
            store.append(say(space(n), "two")).await.expect("stored");
        }
        let (all, half) = (
            TrimLimit::default(),
            TrimLimit {
                entries: 1,
                ..TrimLimit::default()
            },
        );
        store
            .trim_log(Trim::Loose(space(2), Time(i64::MAX)), half)
            .await
            .expect("deleted");
        store
            .remove_space(project(1), space(3), Time(9))
            .await
            .expect("deleted");
        store
            .trim_log(Trim::Space(space(3)), half)
            .await
            .expect("deleted");
        store.trim_log(Trim::Space(space(3)), all).await.expect("deleted");
    }
    check("messages and a space").await;
}

#[tokio::test]
async fn a_check_finds_logs_that_are_gone_though_their_runs_have_ended() {
    let (scratch, database) = (Scratch::new(), Database::new());
    let sqlite = scratch.open();
    let postgres = database.open().await;
    for store in [&sqlite as &dyn Storage, &postgres] {
        let owner = project_record(project(1), "main");
        store.put_project(owner).await.expect("a project");
        for n in 1..=2 {
            store.create_space(space_record(space(n))).await.expect("a space");
        }
        fill(store, 1, 4).await.expect("stored");
        store.append(say(space(2), "no run")).await.expect("stored");
    }
    drop(sqlite);
    let names = |damage: &[String], which: &str| damage.iter().any(|line| line.contains(which));
    let on_server = |kind: &str, id: [u8; 16]| format!("{kind} {}", Uuid::from_bytes(id));
    let file = Connection::open(scratch.path()).expect("the database");
    let copy = scratch.path().with_file_name("copy.db");
    file.execute("VACUUM INTO ?1", [copy.to_str().expect("a path")])
        .expect("copied");
    Connection::open(&copy)
        .expect("the copy")
        .execute("DELETE FROM log WHERE run = ?1", [run(4).to_bytes()])
        .expect("deleted");
    for (sql, lost) in [
        ("DELETE FROM log WHERE first = 8000000", 1),
        ("DELETE FROM log WHERE first >= 5000000", 2),
        ("DELETE FROM log", 4),
    ] {
        file.execute_batch(sql).expect("deleted");
        PostgresServer::shared().execute(&database.0, sql);
        let of_file = check_database(&scratch.path()).expect("checked").damage;
        let of_server = check_postgres(&database.address()).await.expect("checked").damage;
        for n in 1..=4 {
            let is_lost = n > 4 - lost;
            let found = names(&of_file, &run(n).to_string());
            assert_eq!(found, is_lost, "{sql}: {of_file:?}");
            let found = names(&of_server, &on_server("run", run(n).to_bytes()));
            assert_eq!(found, is_lost, "{sql}: {of_server:?}");
        }
        let of_space = |n| names(&of_server, &on_server("space", space(n).to_bytes()));
        assert!(of_space(1), "{of_server:?}");
        // Its head tells of it, and no run.
        assert_eq!(of_space(2), lost == 4, "{of_server:?}");
    }
    drop(file);

    // A copy has what is left, and says so; so does one that is put back.
    let [first, second] = ["first.db", "second.db"].map(|name| scratch.path().with_file_name(name));
    let report = toolgate_store::backup(&scratch.path(), &first).expect("copied");
    assert_eq!(report.damage.len(), 4, "{report:?}");
    let restored = toolgate_store::restore(&copy, &second, false).expect("put back");
    assert!(
        names(&restored.report.damage, &run(4).to_string()),
        "{restored:?}"
    );
    assert_eq!(restored.report.damage.len(), 1, "{restored:?}");
}

#[tokio::test]
async fn a_check_finds_what_belongs_to_no_project() {
    let (scratch, database) = (Scratch::new(), Database::new());
    let sqlite = scratch.open();
    let postgres = database.open().await;
    for store in [&sqlite as &dyn Storage, &postgres] {
        store.put_key(key_record(key(1), 1)).await.expect("a key");
        store.create_space(space_record(space(1))).await.expect("a space");
        fill(store, 1, 3).await.expect("stored");
    }
    drop(sqlite);
    let words = |project: String| {
        ["3 runs", "1 spaces", "1 keys"]
            .map(|what| format!("{project}: it is not there, but {what} of it are"))
    };
    let of_file = check_database(&scratch.path()).expect("checked").damage;
    assert_eq!(of_file, words(project(1).to_string()));
    let of_server = check_postgres(&database.address()).await.expect("checked").damage;
    let id = Uuid::from_bytes(project(1).to_bytes());
    assert_eq!(of_server, words(format!("project {id}")));
}

#[tokio::test]
async fn a_check_still_finds_what_no_deletion_explains() {
    let database = Database::new();
    let store = database.open().await;
    store.create_space(space_record(space(1))).await.expect("a space");
    fill(&store, 1, 4).await.expect("stored");
    delete(&store, 1, 1).await.expect("deleted");
    let (client, messages) = database.address().connect_to_listen().await.expect("connected");
    let polling = tokio::spawn(futures_util::StreamExt::for_each(messages, |_| async {}));
    let damage = async |sql: &str| {
        client
            .batch_execute(&format!("BEGIN; {sql}; COMMIT"))
            .await
            .expect("changed");
        check_postgres(&database.address()).await.expect("checked").damage
    };
    let found = damage("DELETE FROM log WHERE first = 5000000").await;
    assert!(
        found
            .iter()
            .any(|line| line.contains("seq 6000000: the entry before")),
        "{found:?}"
    );
    let found = damage("UPDATE heads SET last = 1000000").await;
    assert!(
        found
            .iter()
            .any(|line| line.contains("its last place is 1000000")),
        "{found:?}"
    );
    polling.abort();
}

#[tokio::test]
async fn a_database_of_an_earlier_version_is_rewritten_once_and_shrinks_from_then_on() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path().parent().expect("a folder")).expect("a folder");
    // As earlier versions made it: without room for moving pages.
    let old = Connection::open(scratch.path()).expect("a database");
    old.execute_batch("PRAGMA auto_vacuum = NONE; CREATE TABLE x (y); DROP TABLE x;")
        .expect("made");
    drop(old);
    let store = scratch.open();
    store.create_space(space_record(space(1))).await.expect("a space");
    fill(&store, 1, 100).await.expect("stored");
    delete(&store, 1, 100).await.expect("deleted");
    assert_eq!(store.reclaim(64).await.expect("asked"), 0);
    assert!(vacuum_database(&scratch.path()).is_err(), "it is in use");
    drop(store);
    let (before, after) = vacuum_database(&scratch.path()).expect("rewritten");
    assert!(after * 2 < before, "{before} bytes, then {after}");
    let store = scratch.open();
    fill(&store, 200, 100).await.expect("stored");
    delete(&store, 200, 100).await.expect("deleted");
    assert!(store.reclaim(64).await.expect("reclaimed") > 0);
}

/// How often a text occurs in the files of a database.
fn occurrences(scratch: &Scratch, words: &str) -> usize {
    let path = scratch.path();
    let log = path.with_file_name(format!("{}-wal", path.file_name().expect("a name").display()));
    let files = [path, log]
        .into_iter()
        .filter_map(|path| std::fs::read(path).ok());
    let count = |bytes: Vec<u8>| {
        let windows = bytes.windows(words.len());
        windows.filter(|window| *window == words.as_bytes()).count()
    };
    files.map(count).sum()
}

#[tokio::test]
async fn what_was_deleted_is_in_no_file_any_more() {
    let scratch = Scratch::new();
    let store = scratch.open();
    store.create_space(space_record(space(1))).await.expect("a space");
    // Some of them go into pages of their own.
    let secret = |n: usize| "adas address, ".repeat(1 + n % 5 * 200);
    let mut entries = Vec::new();
    for n in 0..200 {
        let words = if n % 2 == 0 { secret(n) } else { "hay ".repeat(n) };
        let entry = store.append(say(space(1), &words)).await.expect("stored");
        entries.extend((n % 2 == 0).then_some(entry));
    }
    let record = RunRecord {
        title: Some("adas address".into()),
        user: Some(entity(1)),
        ..run_record(run(1), space(1))
    };
    store.append(create(record)).await.expect("stored");
    assert!(occurrences(&scratch, "adas address") > 100);
    for entry in entries {
        let removed = vec![text("(removed)"); entry.events.len()];
        store
            .rewrite_entry((*entry).clone(), removed)
            .await
            .expect("rewritten");
    }
    store
        .unlink_runs(project(1), entity(1), 9)
        .await
        .expect("unlinked");
    while store.reclaim(64).await.expect("reclaimed") == 64 {}
    assert_eq!(occurrences(&scratch, "adas address"), 0, "while it is open");
    drop(store);
    assert_eq!(occurrences(&scratch, "adas address"), 0, "when it is closed");
}

#[tokio::test]
async fn a_reader_delays_the_emptying_of_the_log_and_nothing_else() {
    let scratch = Scratch::new();
    let store = scratch.open();
    store.create_space(space_record(space(1))).await.expect("a space");
    let entry = store.append(say(space(1), "adas address")).await.expect("stored");
    let reader = Connection::open(scratch.path()).expect("the database");
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM log;")
        .expect("a snapshot");
    store
        .rewrite_entry((*entry).clone(), vec![text("(removed)"); entry.events.len()])
        .await
        .expect("rewritten");
    store.reclaim(64).await.expect("it does not wait for the reader");
    assert!(occurrences(&scratch, "adas address") > 0, "it is being read");
    drop(reader);
    // Any write tries it again, once a second has passed.
    while occurrences(&scratch, "adas address") > 0 {
        store.heartbeat(node(1), Time(1)).await.expect("written");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn nothing_names_an_owner_whose_records_were_removed() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let set = RecordSet {
        project: project(1),
        owner: Owner::Entity(entity(1)),
        kind: "memory",
    };
    let put = Change::Put(NewRecord {
        id: "kept".into(),
        body: serde_json::json!({}).into(),
        text: None,
        data: None,
        due: None,
    });
    store
        .change_records(set, Vec::new(), vec![put], Time(1))
        .await
        .expect("stored");
    let removed = store.remove_records(project(1), set.owner, 9).await;
    assert_eq!(removed.expect("removed").len(), 1);
    let database = Connection::open(scratch.path()).expect("the database");
    let sets: i64 = database
        .query_row("SELECT count(*) FROM record_sets", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(sets, 0);
}

/// Prints plans and times at a million events: `cargo test -p toolgate-store --test it -- --ignored --nocapture million`.
#[tokio::test]
#[ignore = "takes a minute"]
async fn reads_stay_flat_at_a_million_events() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let measure = async |label: &str| {
        let started = Instant::now();
        for n in 0..1_000u64 {
            let of = space(1 + n % 100);
            let range = LogRange {
                limit: 50,
                ..LogRange::newest()
            };
            store
                .space_log(of, range)
                .await
                .expect("read")
                .entries
                .truncate(0);
        }
        let newest = started.elapsed() / 1_000;
        let started = Instant::now();
        for n in 0..1_000u64 {
            store
                .space_log(
                    space(1 + n % 100),
                    LogRange {
                        limit: 50,
                        ..LogRange::after(Seq::durable(20))
                    },
                )
                .await
                .expect("read");
        }
        let cursor = started.elapsed() / 1_000;
        let started = Instant::now();
        for _ in 0..100 {
            store.ended_trees(project(1), Time(1), 50).await.expect("read");
        }
        let trees = started.elapsed() / 100;
        eprintln!("{label}: newest page {newest:?}, page after a cursor {cursor:?}, ended trees {trees:?}");
    };
    for n in 1..=100 {
        store.create_space(space_record(space(n))).await.expect("a space");
    }
    let mut written = 0u64;
    for (label, events) in [
        ("10 thousand", 10_000u64),
        ("100 thousand", 100_000),
        ("1 million", 1_000_000),
    ] {
        while written < events {
            let appends = (0..500u64).map(|n| {
                let append = Append {
                    events: vec![text("a"), text("b")],
                    ..say(space(1 + (written / 2 + n) % 100), "x")
                };
                store.append(append)
            });
            for appended in futures_util::future::join_all(appends).await {
                appended.expect("stored");
            }
            written += 1_000;
        }
        measure(label).await;
    }
    let database = Connection::open(scratch.path()).expect("the database");
    for sql in [
        "SELECT events FROM log WHERE space = x'00' AND last > 5 AND first < 9
         AND first >= coalesce((SELECT max(first) FROM log WHERE space = x'00' AND first <= 5), 0) ORDER BY first LIMIT 9",
        "SELECT last FROM log WHERE space = x'00' ORDER BY first DESC LIMIT 1",
        "SELECT floor FROM log_floors WHERE space = x'00'",
        "SELECT 1 FROM deleted WHERE id = x'00'",
        "SELECT first FROM log WHERE run = x'00' ORDER BY first LIMIT 9",
        "SELECT first FROM log WHERE space = x'00' AND run IS NULL AND time < 5 ORDER BY time, first LIMIT 9",
        "SELECT id FROM runs INDEXED BY runs_ended WHERE project = x'00' AND open = 0 AND parent_run IS NULL
         AND updated <= 5 ORDER BY updated LIMIT 9",
    ] {
        let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
        let plan: Vec<String> = statement
            .query_map([], |row| row.get(3))
            .expect("a plan")
            .collect::<Result<_, _>>()
            .expect("a plan");
        eprintln!("{plan:?}");
        assert!(plan.iter().all(|step| !step.starts_with("SCAN")), "{sql}: {plan:?}");
    }
}
