use tokio::task::JoinHandle;
use tokio_postgres::Client;
use toolgate_testkit::postgres_server::PostgresServer;

use super::super::{Lease, PostgresAddress, PostgresOptions, pool_of_one};
use super::apply::{Part, part_of, statements};
use super::*;

const fn step(version: u32, oldest: u32, sql: &'static str) -> Step {
    Step { version, oldest, sql }
}

fn known(step: &Step) -> Applied {
    Applied {
        version: step.version,
        oldest: step.oldest,
        checksum: checksum_of(step.sql),
        is_finished: true,
    }
}

/// What a program with the first `of_program` steps says of a database with the first `of_database`.
fn check(of_program: usize, of_database: usize) -> Result<Vec<u32>, StoreError> {
    // The third takes away what the first made and the second does without.
    let steps = [step(1, 1, "a"), step(2, 1, "b"), step(3, 2, "c"), step(4, 2, "d")];
    let applied: Vec<Applied> = steps[..of_database].iter().map(known).collect();
    let missing = missing_of(&steps[..of_program], &applied)?;
    Ok(missing.iter().map(|step| step.version).collect())
}

#[test]
fn a_program_works_beside_newer_ones_until_they_take_something_away() {
    assert_eq!(check(4, 0).unwrap(), [1, 2, 3, 4]);
    assert_eq!(check(4, 3).unwrap(), [4]);
    assert_eq!(check(1, 2).unwrap(), [0; 0]);
    assert_eq!(check(2, 4).unwrap(), [0; 0]);
    let words = check(1, 3).unwrap_err().to_string();
    assert!(words.contains("needs a toolgate that knows version 2"), "{words}");
}

#[test]
fn a_changed_migration_is_refused() {
    let applied = [known(&step(1, 1, "other"))];
    assert!(missing_of(&[step(1, 1, "a")], &applied).is_err());
}

/// The rule for migrations: what is done under a lock takes no longer with a large table.
#[test]
fn a_migration_changes_the_schema_by_quick_statements_alone() {
    const QUICK: [&str; 3] = ["CREATE TABLE ", "CREATE FUNCTION ", "CREATE TRIGGER "];
    for step in &STEPS[1..] {
        for statement in statements(step.sql) {
            let adds = statement.starts_with("ALTER TABLE ") && statement.contains(" ADD COLUMN ");
            let is_quick = adds || QUICK.iter().any(|quick| statement.starts_with(quick));
            let is_schema = matches!(part_of(statement), Part::Schema);
            assert!(!is_schema || is_quick, "migration {}: {statement}", step.version);
        }
    }
}

/// A database with the first three migrations, a run and an entry.
struct Older(PostgresAddress);

impl Older {
    async fn new() -> Self {
        let older = Self(PostgresServer::shared().database().parse().unwrap());
        let mut session = older.connect().await;
        migrate_with(&mut session, &STEPS[..3]).await.unwrap();
        session.client.batch_execute(RUN).await.unwrap();
        session.client.batch_execute(ENTRY).await.unwrap();
        session.throw_away();
        older
    }

    async fn connect(&self) -> Lease {
        let pool = pool_of_one(&self.0, PostgresOptions::default()).unwrap();
        let lease = pool.get().await.unwrap();
        // A test holds transactions open for as long as it needs them.
        let patient = "SET idle_in_transaction_session_timeout = 0";
        lease.client.batch_execute(patient).await.unwrap();
        lease
    }

    /// A transaction that has done this and stays open.
    async fn holding(&self, sql: &str) -> Lease {
        let lease = self.connect().await;
        let begun = format!("BEGIN ISOLATION LEVEL REPEATABLE READ; {sql}");
        lease.client.batch_execute(&begun).await.unwrap();
        lease
    }

    /// A migration under way, and the process of the server that does it.
    async fn migrating(&self) -> (JoinHandle<Result<Vec<u32>, Fault>>, i32) {
        let mut lease = self.connect().await;
        let process = one(&lease.client, "SELECT pg_backend_pid()").await;
        let migrating = tokio::spawn(async move {
            let migrated = migrate(&mut lease).await;
            lease.throw_away();
            migrated
        });
        (migrating, process)
    }

    /// Every index can be used, every migration is done, and the run that had failed before is noted as such.
    async fn assert_migrated(&self) {
        let client = &self.connect().await.client;
        let ready = "SELECT count(*)::int FROM pg_index WHERE indisvalid AND indexrelid IN
            (to_regclass('runs_of_agent'), to_regclass('runs_failed'), to_regclass('log_loose'),
             to_regclass('runs_recent_of_agent'))";
        assert_eq!(one(client, ready).await, 4);
        let unfinished = "SELECT count(*)::int FROM unfinished_migrations";
        assert_eq!(one(client, unfinished).await, 0);
        let noted = "SELECT count(*)::int FROM runs WHERE failure IS DISTINCT FROM status";
        assert_eq!(one(client, noted).await, 0);
    }
}

const RUN: &str = "
    INSERT INTO runs (id, project, space, agent, revision, root, status, created, updated, version, epoch, tokens, lane,
                      wakes, open, queued, asks)
    SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'a', 1, gen_random_uuid(), 'failed', 1, 1, 1, 1, 1, 0,
           0, false, false, false";
const ENTRY: &str = "
    INSERT INTO log (space, first, last, time, format, events)
    SELECT gen_random_uuid(), 1, 1, 1, 1, '[]'";

async fn one(client: &Client, sql: &str) -> i32 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Returns once the server's process waits for a lock, of a kind that this condition selects.
async fn until_it_waits<T>(client: &Client, process: i32, condition: &str, task: &JoinHandle<T>) {
    let waits =
        format!("SELECT count(*)::int FROM pg_locks WHERE pid = {process} AND NOT granted AND ({condition})");
    until_some(client, &waits, task).await;
}

/// Returns once this counts something, which it does while the task is under way.
async fn until_some<T>(client: &Client, counting: &str, task: &JoinHandle<T>) {
    while one(client, counting).await == 0 {
        assert!(!task.is_finished(), "it ended before: {counting}");
        sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn writes_commit_while_an_index_is_built() {
    let older = Older::new().await;
    // Whoever builds an index waits for writers that were there before.
    let writer = older.holding(ENTRY).await;
    let (migrating, process) = older.migrating().await;
    let other = older.connect().await;
    until_it_waits(&other.client, process, "true", &migrating).await;
    other.client.batch_execute(ENTRY).await.unwrap();
    other.client.batch_execute(RUN).await.unwrap();
    assert!(!migrating.is_finished());
    writer.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(migrating.await.unwrap().unwrap(), [4, 5, 6, 7]);
    older.assert_migrated().await;
}

#[tokio::test]
async fn writes_commit_while_a_change_of_the_schema_waits_for_a_backup() {
    let older = Older::new().await;
    // As `pg_dump` does, for as long as it takes.
    let backup = older.holding("LOCK TABLE runs IN ACCESS SHARE MODE").await;
    let (migrating, process) = older.migrating().await;
    let other = older.connect().await;
    let table = "locktype = 'relation' AND relation = 'runs'::regclass";
    until_it_waits(&other.client, process, table, &migrating).await;
    other.client.batch_execute(RUN).await.unwrap();
    assert!(!migrating.is_finished());
    backup.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(migrating.await.unwrap().unwrap(), [4, 5, 6, 7]);
    older.assert_migrated().await;
}

#[tokio::test]
async fn a_migration_that_was_killed_while_it_built_an_index_is_completed() {
    let older = Older::new().await;
    // An index is of use once every reader that cannot know of it is gone.
    let reader = older.holding("SELECT count(*) FROM projects").await;
    let (migrating, process) = older.migrating().await;
    let other = older.connect().await;
    until_it_waits(&other.client, process, "locktype = 'virtualxid'", &migrating).await;
    let kill = format!("SELECT pg_terminate_backend({process}, 60000)::int");
    assert_eq!(one(&other.client, &kill).await, 1);
    migrating.await.unwrap().unwrap_err();
    let broken = "SELECT count(*)::int FROM pg_index WHERE NOT indisvalid";
    assert_eq!(one(&other.client, broken).await, 1);

    reader.client.batch_execute("COMMIT").await.unwrap();
    let (again, _) = older.migrating().await;
    assert_eq!(again.await.unwrap().unwrap(), [4, 5, 6, 7]);
    assert_eq!(one(&other.client, broken).await, 0);
    older.assert_migrated().await;
}

#[tokio::test]
async fn of_two_programs_that_migrate_at_once_one_does() {
    let older = Older::new().await;
    let reader = older.holding("SELECT count(*) FROM projects").await;
    let (first, process) = older.migrating().await;
    let other = older.connect().await;
    until_it_waits(&other.client, process, "locktype = 'virtualxid'", &first).await;
    let (second, process) = older.migrating().await;
    let looks = format!(
        "SELECT count(*)::int FROM pg_stat_activity WHERE pid = {process} AND query LIKE '%advisory_lock%'"
    );
    until_some(&other.client, &looks, &second).await;
    reader.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(first.await.unwrap().unwrap(), [4, 5, 6, 7]);
    assert_eq!(second.await.unwrap().unwrap(), [0; 0]);
    older.assert_migrated().await;
}
