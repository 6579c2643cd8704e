//! What is exported from one database and imported into another is the same.

use std::path::PathBuf;

use serde_json::json;
use toolgate_engine::consumption::{Consumed, Consumption, ConsumptionBy, ConsumptionFilter, Days};
use toolgate_engine::records::{Change, NewRecord, Owner, RecordSet, SearchText};
use toolgate_engine::store::{
    Deleted, Directory, KeyRecord, Log, RunRecord, Runs as _, Store, StoreError, Trim, TrimLimit,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::time::Time;
use toolgate_store::transfer::{
    Database as Rows, Manifest, PostgresDatabase, SqliteDatabase, export, import,
};
use toolgate_store::{SqliteOptions, SqliteStore, Storage, check_postgres};
use toolgate_testkit::store_conformance::samples::{
    EVERYTHING, answer, create, entity, entity_record, key, key_record, project, project_record, run,
    run_record, say, space, space_record, text,
};

use crate::scratch::{Database, Scratch};

fn notes() -> RecordSet {
    RecordSet {
        project: project(1),
        owner: Owner::Entity(entity(1)),
        kind: "note",
    }
}

/// Something in every table.
pub async fn fill(store: &dyn Storage) {
    for n in [1, 2] {
        let record = project_record(project(n), &format!("p{n}"));
        store.put_project(record).await.unwrap();
    }
    store.put_key(key_record(key(1), 1)).await.unwrap();
    store
        .put_entity(entity_record(entity(1), "odd \0 \u{1} ü"))
        .await
        .unwrap();
    let mut own = space_record(space(1));
    own.members = vec![entity(1), entity(2)];
    own.title = Some("a\0b".into());
    store.create_space(own).await.unwrap();
    let agent = "cook".parse().unwrap();
    store
        .put_agent(project(1), &agent, json!({"n": 1}).into(), Time(1))
        .await
        .unwrap();
    let mut begin = create(run_record(run(1), space(1)));
    begin.idempotency = vec![answer("k")];
    store.append(begin).await.unwrap();
    for n in 0..450 {
        let mut append = say(space(1), &format!("\0 {n}"));
        append.events.push(text("more"));
        append.consumption = vec![Consumption {
            project: project(1),
            agent: agent.clone(),
            user: (n % 2 == 0).then(|| entity(1)),
            model: "odd:\0".into(),
            consumed: Consumed::RUN,
        }];
        store.append(append).await.unwrap();
    }
    let put = |n: u8| {
        Change::Put(NewRecord {
            id: format!("r{n}\u{1}"),
            body: json!({ "n": n }).into(),
            text: n.is_multiple_of(2).then(|| SearchText::new("", "sea")),
            data: Some(vec![n; 3]),
            due: Some(Time(i64::from(n))),
        })
    };
    let changes = (0..40).map(put).collect();
    store
        .change_records(notes(), vec![], changes, Time(1))
        .await
        .unwrap();
}

pub async fn exported(from: &mut dyn Rows) -> (Vec<u8>, Manifest) {
    let mut file = Vec::new();
    let manifest = export(from, None, &mut file, |_| {}).await.unwrap();
    (file, manifest)
}

/// What a store with the sample says.
async fn look(store: &dyn Storage) -> String {
    let log = store.space_log(space(1), EVERYTHING).await.unwrap();
    let run = store.run(run(1)).await.unwrap();
    let space_row = store.space(space(1)).await.unwrap();
    let subject = store.entity_of(project(1), "odd \0 \u{1} ü").await.unwrap();
    let sizes = store.records_size(notes()).await.unwrap();
    let stale = store.stale_records("note", 100).await.unwrap().len();
    let by_user = ConsumptionFilter {
        days: Days {
            first: Day(0),
            last: Day(9),
        },
        by: ConsumptionBy::User,
        after: None,
        limit: 9,
    };
    let consumed = store.consumption(project(1), by_user).await.unwrap();
    assert_eq!(consumed.len(), 2);
    format!(
        "{} {run:?} {space_row:?} {subject:?} {sizes:?} {stale} {consumed:?}",
        log.entries.len()
    )
}

#[tokio::test]
async fn sqlite_goes_to_postgres_and_back_unchanged() {
    let (scratch, database, back) = (Scratch::new(), Database::new(), Scratch::new());
    let store = scratch.open();
    fill(&store).await;
    // While the gateway uses it.
    let (file, manifest) = exported(&mut SqliteDatabase::open(&scratch.path()).unwrap()).await;
    assert_eq!(manifest.tables["log"].rows, 451);
    store.close().await;

    let mut target = PostgresDatabase::create(&database.address()).await.unwrap();
    let imported = import(&mut target, &file[..], false, |_| {}).await.unwrap();
    assert_eq!((imported.manifest, imported.resumed_after), (manifest.clone(), 0));
    let refused = import(&mut target, &file[..], false, |_| {}).await;
    assert!(matches!(refused, Err(StoreError::Exists)), "{refused:?}");
    drop(target);
    assert_eq!(check_postgres(&database.address()).await.unwrap().damage, [""; 0]);

    let store = database.open().await;
    let seen = look(&store).await;
    let next = store.append(say(space(1), "next")).await.unwrap();
    assert_eq!(next.first, Seq::durable(902), "it goes on where the log ended");
    store.close().await;

    let (file, _) = exported(&mut PostgresDatabase::open(&database.address()).await.unwrap()).await;
    import(
        &mut SqliteDatabase::create(&back.path()).unwrap(),
        &file[..],
        false,
        |_| {},
    )
    .await
    .unwrap();
    let store = back.open();
    assert_eq!(
        store.space_log(space(1), EVERYTHING).await.unwrap().entries.len(),
        452
    );
    let again = look(&store).await;
    assert_eq!(again.split_once(' ').unwrap().1, seen.split_once(' ').unwrap().1);
}

/// What somebody sees who was here before the deletions of [`deletions`].
async fn look_after_deletions(store: &dyn Storage) -> (Seq, Seq, [bool; 3]) {
    let gone = [
        Deleted::Run(run(7)),
        Deleted::Space(space(8)),
        Deleted::Run(run(1)),
    ];
    let mut told = Vec::new();
    for deleted in gone {
        told.push(store.was_deleted(project(1), deleted).await.unwrap());
    }
    (
        store.log_floor(space(7)).await.unwrap(),
        store.space_tail(space(7)).await.unwrap(),
        told.try_into().unwrap(),
    )
}

/// Deletes the only run of a space, and another space.
async fn deletions(store: &dyn Storage) {
    for n in [7, 8] {
        store.create_space(space_record(space(n))).await.unwrap();
    }
    let begin = RunRecord {
        status: Status::Completed,
        ..run_record(run(7), space(7))
    };
    store.append(create(begin)).await.unwrap();
    store
        .remove_runs(project(1), vec![run(7)], Time(9))
        .await
        .unwrap();
    store
        .trim_log(Trim::Run(run(7)), TrimLimit::default())
        .await
        .unwrap();
    store.remove_space(project(1), space(8), Time(9)).await.unwrap();
}

#[tokio::test]
async fn what_was_deleted_stays_deleted_and_no_place_is_given_twice() {
    let (scratch, database, back) = (Scratch::new(), Database::new(), Scratch::new());
    let store = scratch.open();
    fill(&store).await;
    deletions(&store).await;
    let seen = look_after_deletions(&store).await;
    assert_eq!(seen, (Seq::durable(1), Seq::durable(1), [true, true, false]));
    store.close().await;
    let (file, manifest) = exported(&mut SqliteDatabase::open(&scratch.path()).unwrap()).await;
    assert_eq!(
        (
            manifest.tables["log_floors"].rows,
            manifest.tables["deleted"].rows
        ),
        (1, 2)
    );

    let mut target = PostgresDatabase::create(&database.address()).await.unwrap();
    import(&mut target, &file[..], false, |_| {}).await.unwrap();
    drop(target);
    assert_eq!(check_postgres(&database.address()).await.unwrap().damage, [""; 0]);
    let store = database.open().await;
    assert_eq!(look_after_deletions(&store).await, seen);
    let next = store.append(say(space(7), "next")).await.unwrap();
    assert_eq!(next.first, Seq::durable(2));
    store.close().await;

    let (file, _) = exported(&mut PostgresDatabase::open(&database.address()).await.unwrap()).await;
    let mut target = SqliteDatabase::create(&back.path()).unwrap();
    import(&mut target, &file[..], false, |_| {}).await.unwrap();
    drop(target);
    let store = back.open();
    let (floor, tail, told) = look_after_deletions(&store).await;
    assert_eq!((floor, tail, told), (Seq::durable(1), Seq::durable(2), seen.2));
    let next = store.append(say(space(7), "next")).await.unwrap();
    assert_eq!(next.first, Seq::durable(3));
}

/// A database that fails after so many batches.
pub struct Interrupted<'a>(pub &'a mut dyn Rows, pub usize);

#[async_trait::async_trait]
impl Rows for Interrupted<'_> {
    async fn begin_snapshot(&mut self) -> Result<(), StoreError> {
        self.0.begin_snapshot().await
    }
    async fn rows(
        &mut self,
        table: &'static toolgate_store::transfer::Table,
        of: Option<toolgate_kernel::id::ProjectId>,
        after: Option<&toolgate_store::transfer::Row>,
    ) -> Result<Vec<toolgate_store::transfer::Row>, StoreError> {
        self.0.rows(table, of, after).await
    }
    async fn progress(&mut self, import: &str) -> Result<Option<u64>, StoreError> {
        self.0.progress(import).await
    }
    async fn store(
        &mut self,
        import: &str,
        lines: u64,
        table: &'static toolgate_store::transfer::Table,
        rows: &[toolgate_store::transfer::Row],
    ) -> Result<(), StoreError> {
        self.1 = self.1.checked_sub(1).ok_or(StoreError::Timeout)?;
        self.0.store(import, lines, table, rows).await
    }
    async fn finish(&mut self, import: &str) -> Result<(), StoreError> {
        self.0.finish(import).await
    }
}

#[tokio::test]
async fn an_import_that_was_interrupted_goes_on() {
    let (scratch, database) = (Scratch::new(), Database::new());
    let store = scratch.open();
    fill(&store).await;
    store.close().await;
    let (file, manifest) = exported(&mut SqliteDatabase::open(&scratch.path()).unwrap()).await;
    let mut target = PostgresDatabase::create(&database.address()).await.unwrap();
    let mut rounds = 0;
    let imported = loop {
        rounds += 1;
        match import(&mut Interrupted(&mut target, 2), &file[..], false, |_| {}).await {
            Ok(imported) => break imported,
            Err(StoreError::Timeout) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(imported.manifest, manifest);
    assert!(rounds > 3 && imported.resumed_after > 0, "{rounds} rounds");
}

#[tokio::test]
async fn a_file_that_is_cut_or_changed_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.open();
    fill(&store).await;
    store.close().await;
    let (file, _) = exported(&mut SqliteDatabase::open(&scratch.path()).unwrap()).await;
    for bad in [&file[..file.len() / 2], &[], b"words"] {
        let target = Scratch::new();
        let refused = import(
            &mut SqliteDatabase::create(&target.path()).unwrap(),
            bad,
            false,
            |_| {},
        )
        .await;
        assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn one_project_goes_alone_and_beside_others() {
    let (scratch, target) = (Scratch::new(), Scratch::new());
    let store = scratch.open();
    fill(&store).await;
    store.close().await;
    let mut from = SqliteDatabase::open(&scratch.path()).unwrap();
    let mut files = Vec::new();
    for n in [2, 1] {
        let mut file = Vec::new();
        export(&mut from, Some(project(n)), &mut file, |_| {})
            .await
            .unwrap();
        // A snapshot lasts as long as its connection.
        from = SqliteDatabase::open(&scratch.path()).unwrap();
        files.push(file);
    }
    for file in &files {
        import(
            &mut SqliteDatabase::create(&target.path()).unwrap(),
            &file[..],
            false,
            |_| {},
        )
        .await
        .unwrap();
    }
    let store = target.open();
    assert_eq!(store.projects().await.unwrap().len(), 2);
    assert_eq!(store.keys(project(1)).await.unwrap().len(), 1);
}

/// What an import that adds to a database is refused with; the database is as it was.
async fn refused(store: &dyn Storage, target: &mut dyn Rows, file: &[u8]) -> String {
    let before = store.projects().await.unwrap();
    let refused = import(target, file, true, |_| {}).await;
    let Err(StoreError::Unavailable(why)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(store.projects().await.unwrap(), before);
    assert_eq!(store.run(run(1)).await.unwrap(), None);
    assert_eq!(store.space(space(1)).await.unwrap(), None);
    why
}

/// Imports a file with the projects 1 and 2 beside other projects: one that has a name of the file, and one that has a key.
async fn import_beside_others(store: &dyn Storage, target: &mut dyn Rows, file: &[u8]) {
    let name = project_record(project(9), "p2");
    store.put_project(name).await.unwrap();
    let why = refused(store, target, file).await;
    let (here, there) = (project(2).to_string(), project(9).to_string());
    assert!(
        why.contains("\"p2\"") && why.contains(&here) && why.contains(&there) && why.contains("--project"),
        "{why}"
    );

    store.remove_project(project(9)).await.unwrap();
    store
        .put_project(project_record(project(9), "other"))
        .await
        .unwrap();
    let taken = KeyRecord {
        project: project(9),
        ..key_record(key(9), 1)
    };
    store.put_key(taken).await.unwrap();
    let why = refused(store, target, file).await;
    assert!(
        why.contains("project \"p1\"")
            && why.contains("project \"other\"")
            && why.contains(&key(9).to_string()),
        "{why}"
    );

    // Nothing stands in the way any more, and again not when the same is there.
    store.remove_key(project(9), key(9)).await.unwrap();
    for _ in 0..2 {
        import(target, file, true, |_| {}).await.unwrap();
    }
    assert_eq!(store.projects().await.unwrap().len(), 3);
    assert_eq!(store.keys(project(1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_import_whose_names_or_keys_others_have_is_refused_before_anything_is_stored() {
    let (scratch, other, database) = (Scratch::new(), Scratch::new(), Database::new());
    let store = scratch.open();
    fill(&store).await;
    store.close().await;
    let (file, _) = exported(&mut SqliteDatabase::open(&scratch.path()).unwrap()).await;

    let store = database.open().await;
    let mut target = PostgresDatabase::create(&database.address()).await.unwrap();
    import_beside_others(&store, &mut target, &file).await;
    assert!(!store.has_unfinished_import().await.unwrap());
    drop(target);
    assert_eq!(check_postgres(&database.address()).await.unwrap().damage, [""; 0]);

    // Only one may have a SQLite file open to write it.
    let store = other.open();
    let name = project_record(project(9), "p2");
    store.put_project(name).await.unwrap();
    store.close().await;
    drop(store);
    let mut target = SqliteDatabase::create(&other.path()).unwrap();
    let refused = import(&mut target, &file[..], true, |_| {}).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    drop(target);
    let store = other.open();
    assert_eq!(store.projects().await.unwrap().len(), 1);
    assert_eq!(store.run(run(1)).await.unwrap(), None);
    assert!(!store.has_unfinished_import().await.unwrap());
}

#[tokio::test]
async fn a_live_backup_is_whole_and_is_put_back_only_where_nothing_is() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let store = scratch.open();
    fill(&store).await;
    let copy = scratch.path().with_file_name("copy.db");
    let report = toolgate_store::backup(&scratch.path(), &copy).unwrap();
    assert_eq!((report.entries, report.damage.len()), (451, 0));
    let seen = look(&store).await;
    store.append(say(space(1), "after the copy")).await.unwrap();
    let again = toolgate_store::backup(&scratch.path(), &copy);
    assert!(matches!(again, Err(StoreError::Exists)), "{again:?}");

    let in_use = toolgate_store::restore(&copy, &scratch.path(), true);
    assert!(matches!(in_use, Err(StoreError::Unavailable(_))), "{in_use:?}");
    store.close().await;
    let refused = toolgate_store::restore(&copy, &scratch.path(), false);
    assert!(matches!(refused, Err(StoreError::Exists)), "{refused:?}");
    for (target, replace) in [(scratch.path(), true), (other.path(), false)] {
        toolgate_store::restore(&copy, &target, replace).unwrap();
    }
    for place in [&scratch, &other] {
        assert_eq!(look(&place.open()).await, seen);
    }
    assert!(beside(&scratch, "toolgate.db.before-restore").exists());
}

fn beside(scratch: &Scratch, name: &str) -> PathBuf {
    scratch.path().with_file_name(name)
}

#[tokio::test]
async fn what_a_restore_replaces_is_kept_also_by_the_next_ones() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let copy = beside(&scratch, "copy.db");
    toolgate_store::backup(&scratch.path(), &copy).unwrap();
    store
        .put_project(project_record(project(1), "original"))
        .await
        .unwrap();
    store.close().await;
    drop(store);
    let names = ["", "-2", "-3"].map(|end| beside(&scratch, &format!("toolgate.db.before-restore{end}")));
    for name in &names {
        let restored = toolgate_store::restore(&copy, &scratch.path(), true).unwrap();
        assert_eq!(restored.before.as_ref(), Some(name));
    }
    let original = SqliteStore::open(&names[0], SqliteOptions::default()).unwrap();
    assert!(original.project_named("original").await.unwrap().is_some());
}
