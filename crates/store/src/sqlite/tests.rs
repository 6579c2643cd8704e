//! Tests that need the store's internals: full disks, group commits, query plans.

use std::sync::Arc;
use std::sync::mpsc;

use rusqlite::Connection;
use tempfile::TempDir;
use toolgate_engine::store::{
    Append, Directory, Log, LogRange, RunFilter, RunRecord, Runs, Store, StoreError,
};
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::EntityId;
use toolgate_kernel::time::Time;
use toolgate_testkit::store_conformance::samples::{
    answer, create, project, project_record, run, run_record, say, space, text,
};

use super::{
    SqliteOptions, SqliteStore, agents, check, idempotency, log, projects, retention, run_lists, runs, spaces,
};

fn open(directory: &TempDir) -> Arc<SqliteStore> {
    let path = directory.path().join("toolgate.db");
    Arc::new(SqliteStore::open(&path, SqliteOptions::default()).expect("the store opens"))
}

/// Limits the database to this many more pages.
async fn room_for(store: &SqliteStore, pages: i64) {
    let limit = move |db: &Connection| {
        let used: i64 = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        // The pragma returns the limit as a row, which `execute` would reject.
        let _: i64 = db.query_row(&format!("PRAGMA max_page_count = {}", used + pages), [], |row| {
            row.get(0)
        })?;
        Ok(())
    };
    store.writer.write(limit).await.expect("a limit");
}

fn large(n: u64) -> Append {
    let mut append = create(run_record(run(n), space(1)));
    append.events.push(text(&"x".repeat(100_000)));
    append.idempotency = vec![answer(&n.to_string())];
    append
}

#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit_and_nothing_of_it_is_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory);
    store.append(large(1)).await.expect("stored");
    room_for(&store, 2).await;
    for _ in 0..3 {
        let outcome = store.append(large(2)).await;
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    }
    assert_eq!(store.run(run(2)).await.expect("read"), None);
    assert_eq!(store.idempotency(project(1), "2").await.expect("read"), None);
    assert_eq!(places(&store, 1).await, [1]);
    store
        .append(say(space(1), "small"))
        .await
        .expect("what fits is stored");
    let ready = store.ready().await;
    assert!(matches!(ready, Err(StoreError::Unavailable(_))), "{ready:?}");
    room_for(&store, 1000).await;
    store.ready().await.expect("there is room again");
    let back = store.append(large(2)).await.expect("there is room again");
    assert_eq!(back.first, Seq::durable(4));
}

/// Blocks the writer until the sender is dropped, so that all writes sent meanwhile share one commit.
async fn hold(store: &Arc<SqliteStore>) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (begun, holding) = tokio::sync::oneshot::channel();
    let mut begun = Some(begun);
    let store = store.clone();
    tokio::spawn(async move {
        let wait = move |_: &Connection| {
            if let Some(begun) = begun.take() {
                begun.send(()).expect("the test waits");
            }
            // A dropped sender is the release.
            let _ = held.recv();
            Ok(())
        };
        store.writer.write(wait).await
    });
    holding.await.expect("the writer is held");
    release
}

#[tokio::test]
async fn a_write_that_spoils_a_shared_commit_fails_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory);
    store.append(large(1)).await.expect("stored");
    room_for(&store, 2).await;
    let release = hold(&store).await;
    let mut appends = tokio::task::JoinSet::new();
    for append in [
        say(space(2), "a"),
        large(2),
        say(space(2), "b"),
        say(space(1), "c"),
    ] {
        let store = store.clone();
        appends.spawn(async move { store.append(append).await.is_ok() });
    }
    // All four tasks have sent their append once each has run and waits.
    tokio::task::yield_now().await;
    drop(release);
    let done = appends.join_all().await;
    assert_eq!(done.into_iter().filter(|done| *done).count(), 3);
    assert_eq!(
        places(&store, 1).await,
        [1, 3],
        "what was undone gave its places back"
    );
    assert_eq!(
        places(&store, 2).await,
        [1, 2],
        "what was undone gave its places back"
    );
}

async fn places(store: &SqliteStore, of: u64) -> Vec<u64> {
    let log = store
        .space_log(space(of), LogRange::default())
        .await
        .expect("read");
    log.entries.iter().map(|entry| entry.first.index()).collect()
}

#[tokio::test]
async fn a_panicking_write_costs_nobody_else_anything_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory);
    let outcome = store
        .writer
        .write(|_| -> Result<(), _> { panic!("on purpose") })
        .await;
    assert!(matches!(outcome, Err(StoreError::Timeout)));
    store.append(say(space(1), "after")).await.expect("stored");
}

#[tokio::test]
async fn ten_thousand_paused_runs_are_passed_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory);
    let pause_many = |db: &Connection| {
        for n in 1..=10_000 {
            let record = RunRecord {
                // Paused, or waiting for a child run.
                status: [Status::WaitingTool, Status::Running][n as usize % 2],
                wake_at: Some(Time(1000 + n as i64)),
                ..run_record(run(n), space(n))
            };
            let append = create(record.clone());
            runs::create(db, &record, Seq::durable(1), 0, &append)?;
        }
        Ok(())
    };
    store.writer.write(pause_many).await.expect("stored");
    assert_eq!(store.next_wake().await.expect("read"), Some(Time(1001)));
    assert_eq!(store.claimable(Time(1000), 100).await.expect("read"), []);
    assert_eq!(
        store.claimable(Time(1003), 100).await.expect("read"),
        [1, 2, 3].map(run)
    );
    let steps = store
        .writer
        .write(|db| Ok(steps_of(db, runs::CLAIMABLE, (1000, 100))))
        .await
        .expect("counted");
    assert!(steps < 200, "looking for work took {steps} steps");
    let steps = store
        .writer
        .write(|db| Ok(steps_of(db, runs::NEXT_WAKE, ())))
        .await
        .expect("counted");
    assert!(steps < 50, "looking for the next moment took {steps} steps");
}

/// Number of VM operations that a query takes: its cost, independent of the machine's speed.
fn steps_of(db: &Connection, sql: &str, params: impl rusqlite::Params) -> i32 {
    let mut statement = db.prepare(sql).expect("a statement");
    let mut rows = statement.query(params).expect("a query");
    while rows.next().expect("a row").is_some() {}
    drop(rows);
    statement.get_status(rusqlite::StatementStatus::VmStep)
}

#[tokio::test]
async fn no_query_that_grows_with_the_data_reads_a_whole_table() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory);
    let mut statements: Vec<String> = [
        runs::CLAIMABLE,
        runs::NEXT_WAKE,
        runs::FAMILY,
        runs::OPEN,
        runs::OPEN_RUN,
        run_lists::ASKING,
        log::OF_RUN,
        log::OF_RUN_BACKWARDS,
        log::OF_SPACE,
        log::OF_SPACE_BACKWARDS,
        spaces::OF_PROJECT,
        spaces::OF_MEMBER,
        agents::LIST,
        agents::REVISIONS,
        projects::KEYS,
        idempotency::FORGET,
        runs::ENDED_TREES,
        retention::SPACES_FROM,
        retention::ENTRIES_OF,
        retention::OF_RUN,
        retention::RUN_BYTES,
        retention::OF_SPACE,
        retention::FLOOR,
        retention::REWRITES,
        retention::LOOSE,
        retention::LOOSE_ENTRIES,
        retention::IS_DELETED,
        retention::UNLINK_RUNS,
        retention::REMOVE_USAGE,
    ]
    .map(str::to_owned)
    .into();
    for conditions in 0..2_u32.pow(11) {
        let set = |bit: u32| conditions & (1 << bit) != 0;
        let statuses = match (set(1), set(10)) {
            (false, _) => vec![],
            (true, true) => vec![Status::Failed],
            (true, false) => vec![Status::Running],
        };
        let filter = RunFilter {
            space: set(0).then(|| space(1)),
            statuses,
            parent: set(2).then(|| run(1)),
            before: set(3).then(|| run(1)),
            agent: set(4).then(|| "a".parse().expect("a name")),
            user: set(5).then(|| EntityId::from_bytes([1; 16])),
            text: set(6).then(|| "text".into()),
            since: set(7).then_some(Time(1)),
            until: set(8).then_some(Time(2)),
            top: set(9),
            limit: 1,
            ..RunFilter::default()
        };
        statements.push(list_sql(&filter));
    }
    for sql in statements {
        let explained = format!("EXPLAIN QUERY PLAN {sql}");
        let plan = store
            .writer
            .write(move |db| Ok(plan_of(db, &explained)))
            .await
            .expect("a plan");
        let scans = plan
            .iter()
            .any(|step| step.starts_with("SCAN") && !step.contains("USING"));
        let sorts = plan.iter().any(|step| step.contains("TEMP B-TREE"));
        assert!(!scans && !sorts, "{sql}\n{plan:#?}");
    }
}

fn list_sql(filter: &RunFilter) -> String {
    let values = run_lists::ListValues::of(project(1), filter);
    run_lists::statement(filter, &values).sql
}

#[tokio::test]
async fn a_list_that_finds_few_runs_has_an_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory);
    let rare = RunFilter {
        agent: Some("rare".parse().expect("a name")),
        ..RunFilter::default()
    };
    let failed = RunFilter {
        statuses: vec![Status::Failed],
        ..RunFilter::default()
    };
    let in_space = RunFilter {
        space: Some(space(1)),
        statuses: vec![Status::Cancelled],
        ..rare.clone()
    };
    for (filter, index) in [
        (rare, "runs_of_agent"),
        (failed, "runs_failed"),
        (in_space, "runs_of_space"),
    ] {
        let explained = format!("EXPLAIN QUERY PLAN {}", list_sql(&filter));
        let plan = store.writer.write(move |db| Ok(plan_of(db, &explained)));
        let plan = plan.await.expect("a plan");
        assert!(plan.iter().all(|step| step.contains(index)), "{index}: {plan:?}");
    }
}

fn plan_of(db: &Connection, explained: &str) -> Vec<String> {
    let mut statement = db.prepare(explained).expect("a statement");
    for parameter in 1..=statement.parameter_count() {
        statement
            .raw_bind_parameter(parameter, rusqlite::types::Null)
            .expect("bound");
    }
    let mut rows = statement.raw_query();
    let mut plan = Vec::new();
    while let Some(row) = rows.next().expect("a row") {
        plan.push(row.get(3).expect("its words"));
    }
    plan
}

/// Writes over the head of the page that holds `mark`, as a failing disk does.
fn damage_page_with(path: &std::path::Path, mark: &str) {
    let mut bytes = std::fs::read(path).expect("the file");
    let found = bytes.windows(mark.len()).position(|part| part == mark.as_bytes());
    let size: usize = u16::from_be_bytes([bytes[16], bytes[17]]).into();
    let page = found.expect("the mark is in the file") / size * size;
    bytes[page..page + 16].fill(0xff);
    std::fs::write(path, bytes).expect("the file");
}

/// A database with a log of several pages, closed.
async fn closed_database(directory: &TempDir) -> std::path::PathBuf {
    let store = open(directory);
    for n in 0..9 {
        let words = format!("{} mark-{n}", "x".repeat(3_000));
        store.append(say(space(1), &words)).await.expect("stored");
    }
    store.close().await;
    directory.path().join("toolgate.db")
}

#[tokio::test]
async fn a_whole_database_passes_every_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = closed_database(&directory).await;
    let report = check::check(&path).expect("it opens");
    assert_eq!((report.damage, report.entries), (Vec::new(), 9));
    let options = SqliteOptions {
        check: Some(std::time::Duration::from_secs(60)),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&path, options).expect("it opens");
    store.ready().await.expect("ready");
    // It may be checked while it is used.
    assert_eq!(
        check::check(&path).expect("it opens").damage,
        Vec::<String>::new()
    );
    let missing = check::check(&directory.path().join("other.db"));
    assert!(matches!(missing, Err(StoreError::Unavailable(_))), "{missing:?}");
}

#[tokio::test]
async fn damage_is_found_by_a_check_and_ends_readiness_once_it_is_met() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = closed_database(&directory).await;
    // In the middle of the log: the probe reads its ends.
    damage_page_with(&path, "mark-4");
    let report = check::check(&path).expect("it opens");
    assert_ne!(report.damage, Vec::<String>::new());
    let options = SqliteOptions {
        check: Some(std::time::Duration::from_secs(60)),
        ..SqliteOptions::default()
    };
    let told = SqliteStore::open(&path, options).map(drop);
    assert!(matches!(told, Err(StoreError::Corrupt(_))), "{told:?}");

    let store = open(&directory);
    store.ready().await.expect("what the probe reads is whole");
    let page = store.space_log(space(1), LogRange::default()).await;
    assert!(matches!(page, Err(StoreError::Corrupt(_))), "{page:?}");
    let ready = store.ready().await;
    assert!(matches!(ready, Err(StoreError::Corrupt(_))), "{ready:?}");
}

#[tokio::test]
async fn the_probe_reads_what_runs_need() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = closed_database(&directory).await;
    damage_page_with(&path, "mark-8");
    let ready = open(&directory).ready().await;
    assert!(matches!(ready, Err(StoreError::Corrupt(_))), "{ready:?}");
}

#[tokio::test]
async fn a_log_with_a_gap_and_a_run_ahead_of_its_log_are_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = closed_database(&directory).await;
    let store = open(&directory);
    store
        .put_project(project_record(project(1), "main"))
        .await
        .expect("stored");
    store
        .append(create(run_record(run(1), space(2))))
        .await
        .expect("stored");
    store.close().await;
    let database = Connection::open(&path).expect("it opens");
    let spoil = "DELETE FROM log WHERE events LIKE '%mark-3%'; UPDATE runs SET version = version + 1000000";
    database.execute_batch(spoil).expect("written");
    drop(database);
    let [ahead, gap] = check::check(&path)
        .expect("it opens")
        .damage
        .try_into()
        .expect("two lines");
    assert!(ahead.contains(&run(1).to_string()), "{ahead}");
    assert!(
        gap.contains(&space(1).to_string()) && gap.contains("5000000"),
        "{gap}"
    );
    // Entries that were deleted leave a floor.
    let database = Connection::open(&path).expect("it opens");
    let floor = "INSERT INTO log_floors (space, floor) SELECT space, 4000000 FROM log WHERE first = 5000000";
    database.execute_batch(floor).expect("written");
    drop(database);
    assert_eq!(check::check(&path).expect("it opens").damage, [ahead]);
}

#[tokio::test]
async fn a_stored_event_that_cannot_be_read_is_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = closed_database(&directory).await;
    let database = Connection::open(&path).expect("it opens");
    database
        .execute("UPDATE log SET events = '[{}]' WHERE events LIKE '%mark-3%'", [])
        .expect("written");
    drop(database);
    let report = check::check(&path).expect("it opens");
    assert_eq!(report.entries, 9);
    let [line] = report.damage.as_slice() else {
        panic!("{report:?}");
    };
    assert!(
        line.contains(&space(1).to_string()) && line.contains("4000000"),
        "{line}"
    );
}
