//! Databases of every version so far, as SQL dumps in `tests/fixtures/sqlite`. They open, are migrated to this
//! version, and keep their content.
//!
//! After adding a migration, run these tests once with `TOOLGATE_WRITE_FIXTURES=1` to keep a database of the
//! new version; never write over an older one.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use toolgate_engine::consumption::{Consumed, Consumer, Consumption, Days};
use toolgate_engine::records::{
    Amendment, Change, NewRecord, Owner, Receipt, Record, RecordSet, Records, Reindexed, SearchText,
};
use toolgate_engine::store::{
    Append, Directory, LeaseWrite, Log, RunRecord, RunWrite, Runs, SpaceRecord, Store, StoreError,
    StoredDefinition,
};
use toolgate_engine::usage::{Day, Latency, ToolUse};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::time::Time;
use toolgate_store::{SqliteOptions, SqliteStore};
use toolgate_testkit::store_conformance::samples::{
    EVERYTHING, answer, create, entity, entity_record, extend, key, key_record, node, project,
    project_record, run, run_record, say, space, space_record,
};

use crate::scratch::Scratch;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sqlite")
}

fn migrations() -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    std::fs::read_dir(directory).expect("the migrations").count()
}

/// Fills every table.
async fn fill(store: &SqliteStore) -> Result<(), StoreError> {
    let agent = "cook".parse().expect("a name");
    store.put_project(project_record(project(1), "main")).await?;
    store.put_key(key_record(key(1), 1)).await?;
    store.put_entity(entity_record(entity(1), "ada")).await?;
    store
        .put_agent(
            project(1),
            &agent,
            serde_json::json!({"instructions": "Küche"}).into(),
            Time(1),
        )
        .await?;
    store
        .create_space(SpaceRecord {
            members: vec![entity(1)],
            ..space_record(space(1))
        })
        .await?;
    store.heartbeat(node(1), Time(100)).await?;
    let mut begin = create(run_record(run(1), space(1)));
    begin.idempotency = vec![answer("k")];
    let RunWrite::Create { definitions, .. } = &mut begin.run else {
        unreachable!()
    };
    *definitions = [pinned()].into();
    let begun = store.append(begin).await?;
    store.append(say(space(1), "it's \"quoted\"")).await?;
    store.claim(run(1), node(1), Time(1)).await?;
    let mut pause = extend(&run_record(run(1), space(1)), begun.last());
    let RunWrite::Extend {
        epoch,
        status,
        wake_at,
        lease,
        ..
    } = &mut pause.run
    else {
        unreachable!()
    };
    (*epoch, *status, *wake_at, *lease) = (1, Status::WaitingTool, Some(Time(50)), LeaseWrite::Release);
    pause.usage = vec![ToolUse {
        project: project(1),
        tool: "search".into(),
        code: Some(ErrorCode::Timeout),
        latency: Latency(40),
    }];
    pause.consumption = vec![Consumption {
        project: project(1),
        agent: agent.clone(),
        user: Some(entity(1)),
        model: "demo:demo".into(),
        consumed: Consumed::RUN,
    }];
    store.append(pause).await?;
    let kept = Change::Put(NewRecord {
        id: "kept".into(),
        body: serde_json::json!({"said": "über"}).into(),
        text: Some(SearchText::new("", "über den Wolken")),
        data: Some(vec![0, 255]),
        due: Some(Time(70)),
    });
    let amendment = Amendment {
        changes: vec![kept],
        receipt: Some(Receipt {
            key: "call".into(),
            answer: serde_json::json!({"kept": 1}).into(),
            time: Time(3),
        }),
        ..Amendment::default()
    };
    store.amend_records(record_set(), amendment, Time(3)).await
}

fn pinned() -> StoredDefinition {
    StoredDefinition {
        hash: "00ff".into(),
        definition: serde_json::json!({"name": "search", "description": "Sucht überall."}).into(),
    }
}

fn record_set() -> RecordSet {
    RecordSet {
        project: project(1),
        owner: Owner::Entity(entity(1)),
        kind: "memory",
    }
}

/// Checks that everything `fill` wrote is there and works.
async fn verify(store: &SqliteStore, version: usize) -> Result<(), StoreError> {
    let agent = "cook".parse().expect("a name");
    assert_eq!(
        store.project_named("main").await?,
        Some(project_record(project(1), "main"))
    );
    assert_eq!(store.key([1; 32]).await?, Some(key_record(key(1), 1)));
    assert_eq!(
        store.entity_of(project(1), "ada").await?,
        Some(entity_record(entity(1), "ada"))
    );
    let config = store
        .agent(project(1), &agent, None)
        .await?
        .expect("the agent")
        .config;
    assert_eq!(config, serde_json::json!({"instructions": "Küche"}).into());
    assert_eq!(
        store.space(space(1)).await?.expect("the space").members,
        [entity(1)]
    );
    assert_eq!(store.idempotency(project(1), "k").await?, Some(answer("k")));
    let log = store.run_log(run(1), EVERYTHING).await?.entries;
    assert_eq!(
        log.iter().map(|entry| entry.first).collect::<Vec<_>>(),
        [1, 3].map(Seq::durable)
    );
    let record = store.run(run(1)).await?.expect("the run");
    assert_eq!(
        (record.status, record.wake_at, record.node),
        (Status::WaitingTool, Some(Time(50)), None)
    );
    assert_eq!(store.claimable(Time(50), 9).await?, [run(1)]);
    let claimed = store
        .claim(run(1), node(2), Time(50))
        .await?
        .expect("the lease is free");
    assert_eq!(claimed.epoch, 2);
    let next = store.append(extend(&claimed, claimed.version)).await?;
    assert_eq!(next.first, Seq::durable(4));
    let used = store.usage(project(1), "search", Day(0)).await?;
    // Tools are counted since version 2.
    assert_eq!(used.len(), usize::from(version >= 2));
    // Runs and tokens are counted since version 16.
    let days = Days {
        first: Day(0),
        last: Day(0),
    };
    let consumed = store
        .consumed(project(1), Consumer::User(entity(1)), days)
        .await?;
    assert_eq!(consumed.runs, u64::from(version >= 16));
    // Built-in tools store records since version 3.
    let kept = store.record(record_set(), "kept").await?;
    assert_eq!(
        kept.and_then(|record| record.data),
        (version >= 3).then(|| vec![0, 255])
    );
    // The terms of an earlier analysis are replaced while the gateway runs.
    for (set, record) in store.stale_records(record_set().kind, 9).await? {
        let text = SearchText::new("", "über den Wolken");
        let Record { id, version, .. } = record;
        store
            .reindex_records(set, vec![Reindexed { id, version, text }])
            .await?;
    }
    let found = store.find_records(&[record_set()], "wolken", 9).await?.hits;
    assert_eq!(found.len(), usize::from(version >= 3));
    assert_eq!(store.records_size(record_set()).await?.0, u64::from(version >= 3));
    // Runs pin definitions since version 7.
    let pins = store.definitions(project(1), &["00ff".to_owned()]).await?;
    assert_eq!(pins, if version >= 7 { vec![pinned()] } else { Vec::new() });
    let receipt = store.receipt(project(1), "call").await?;
    assert_eq!(receipt.is_some(), version >= 3);
    store.ready().await
}

#[tokio::test]
async fn a_database_of_every_version_so_far_opens() {
    let newest = fixtures().join(format!("{:04}.sql", migrations()));
    if std::env::var_os("TOOLGATE_WRITE_FIXTURES").is_some() && !newest.exists() {
        let scratch = Scratch::new();
        let store = scratch.open();
        fill(&store).await.expect("filled");
        store.close().await;
        std::fs::create_dir_all(fixtures()).expect("a directory");
        std::fs::write(&newest, dump(&scratch.path()).expect("a dump")).expect("written");
    }
    for version in 1..=migrations() {
        let file = fixtures().join(format!("{version:04}.sql"));
        let sql = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}; see the top of this file", file.display()));
        let scratch = Scratch::new();
        load(&scratch.path(), &sql);
        verify(&scratch.open(), version)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

#[tokio::test]
async fn what_a_run_under_way_used_before_it_was_counted_is_counted() {
    let before = fixtures().join("0003.sql");
    let sql = std::fs::read_to_string(&before).expect("the dump");
    let step =
        r#"{"type":"step-finish","step":1,"reason":"stop","usage":{"inputTokens":10,"outputTokens":5}}"#;
    let used = format!(
        "INSERT INTO log (space, first, last, run, time, format, events)
         SELECT space, 9000000, 9000000, id, 4, 1, '[{step}]' FROM runs;"
    );
    let scratch = Scratch::new();
    load(&scratch.path(), &(sql + &used));
    let tree = scratch.open().run_tree(run(1)).await.expect("counted");
    assert_eq!(tree.tokens, 15);
}

#[tokio::test]
async fn a_database_with_several_open_runs_of_an_agent_in_a_space_opens() {
    let before = fixtures().join("0004.sql");
    let sql = std::fs::read_to_string(&before).expect("the dump");
    let row = "project, space, agent, revision, root, status, created, updated, version, epoch, tokens";
    let copies = [2, 3].map(|n| {
        let id = run(n).to_bytes().map(|byte| format!("{byte:02x}")).concat();
        format!(
            "INSERT INTO runs (id, {row}) SELECT x'{id}', {row} FROM runs WHERE parent_run IS NULL LIMIT 1;"
        )
    });
    let scratch = Scratch::new();
    load(&scratch.path(), &(sql + &copies.concat()));
    let store = scratch.open();
    let mut lanes = Vec::new();
    for n in 1..=3 {
        lanes.push(store.run(run(n)).await.expect("read").expect("the run").lane);
    }
    assert_eq!(lanes, [0, 1, 2]);
    let agent = store.run(run(1)).await.expect("read").expect("the run").agent;
    let open = store.open_run(space(1), &agent).await.expect("read");
    assert_eq!(open.map(|record| record.id), Some(run(3)));
    let another = RunRecord {
        agent,
        ..run_record(run(4), space(1))
    };
    let refused = store.append(create(another)).await;
    assert!(
        matches!(refused, Err(StoreError::OpenRun(open)) if open == run(3)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn events_in_a_newer_format_are_read_and_written_back_as_they_were() {
    let scratch = Scratch::new();
    let store = scratch.open();
    store
        .append(create(run_record(run(1), space(1))))
        .await
        .expect("stored");
    store.close().await;
    let stored = r#"[{"type":"run-status","status" : {"is":"asleep"}},{"type":"dream","ignorable":true}]"#;
    let change = "UPDATE log SET format = 2, last = first + 1000000, events = ?1";
    let database = Connection::open(scratch.path()).expect("the database");
    database.execute(change, [stored]).expect("changed");
    drop(database);

    let store = scratch.open();
    let read = store
        .run_log(run(1), EVERYTHING)
        .await
        .expect("read")
        .entries
        .remove(0);
    assert_eq!(read.beyond().map(|event| event.kind()), Some("run-status"));
    let copy = Append {
        events: read.events,
        ..say(space(2), "")
    };
    store.append(copy).await.expect("stored");
    store.close().await;
    let database = Connection::open(scratch.path()).expect("the database");
    let sql = "SELECT format, events FROM log WHERE space = ?1";
    let row = database.query_row(sql, [space(2).to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(row, Ok((2, stored.to_owned())));
}

#[tokio::test]
async fn a_run_that_was_found_by_its_status_is_found_by_its_wake_ups() {
    let sql = std::fs::read_to_string(fixtures().join("0004.sql")).expect("the dump");
    for (change, found) in [
        ("status = 'running', wake_at = 999", true),
        ("parent_run = id, wake_at = 999", true),
        ("wake_at = 999", false),
        ("status = 'cancelled', parent_run = id", false),
    ] {
        let scratch = Scratch::new();
        load(&scratch.path(), &format!("{sql}UPDATE runs SET {change};"));
        let claimable = scratch.open().claimable(Time(50), 9).await.expect("read");
        assert_eq!(claimable == [run(1)], found, "{change}");
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let why = refusal("INSERT INTO migrations (version, checksum) VALUES (9999, zeroblob(32))").await;
    assert!(why.contains("version 9999, made by a newer toolgate"), "{why}");
}

#[tokio::test]
async fn a_database_made_by_other_steps_is_refused() {
    let why = refusal("UPDATE migrations SET checksum = zeroblob(32)").await;
    assert!(
        why.contains("migration 1 of the database is not the one"),
        "{why}"
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path().parent().expect("a directory")).expect("a directory");
    std::fs::write(
        scratch.path(),
        "no database at all, but long enough to look at".repeat(100),
    )
    .expect("written");
    let opened = SqliteStore::open(&scratch.path(), SqliteOptions::default());
    assert!(matches!(opened, Err(StoreError::Corrupt(_))));
}

/// The error on opening a database after this change.
async fn refusal(change: &str) -> String {
    let scratch = Scratch::new();
    scratch.open().close().await;
    Connection::open(scratch.path())
        .expect("the database")
        .execute_batch(change)
        .expect("changed");
    match SqliteStore::open(&scratch.path(), SqliteOptions::default()) {
        Err(StoreError::Corrupt(why)) => why,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it opened"),
    }
}

fn load(path: &Path, sql: &str) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    Connection::open(path)
        .expect("a database")
        .execute_batch(sql)
        .expect("the dump loads");
}

/// Dumps a database as SQL statements that restore it.
fn dump(path: &Path) -> rusqlite::Result<String> {
    let database = Connection::open(path)?;
    let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
        database.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    };
    // The shadow tables of a virtual table are created and filled by it.
    let tables = "FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
        AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statements = texts(&format!(
        "SELECT sql FROM sqlite_master WHERE name IN (SELECT name {tables})"
    ))?;
    for table in texts(&format!("SELECT name {tables}"))? {
        let is_virtual = texts(&format!(
            "SELECT name FROM pragma_table_list WHERE name = '{table}' AND type = 'virtual'"
        ))?;
        let mut columns = texts(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
        if !is_virtual.is_empty() {
            columns.insert(0, "rowid".into());
        }
        let names = columns.join(", ");
        let quoted: Vec<_> = columns.iter().map(|column| format!("quote({column})")).collect();
        let values = quoted.join(" || ', ' || ");
        statements.extend(texts(&format!(
            "SELECT 'INSERT INTO {table} ({names}) VALUES (' || {values} || ')' FROM {table}"
        ))?);
    }
    statements.extend(texts(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('index', 'trigger')",
    )?);
    // The index of terms gives none of them back: they are made again.
    statements.push("UPDATE searchable SET analysis = 0".into());
    Ok(statements.join(";\n") + ";\n")
}
