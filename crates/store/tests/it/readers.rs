//! Commands that only read a database change nothing in it, and say what is wrong with it.

use std::path::Path;

use futures_util::StreamExt as _;
use rusqlite::Connection;
use toolgate_engine::store::StoreError;
use toolgate_store::transfer::{PostgresDatabase, SqliteDatabase};
use toolgate_store::{PostgresAddress, PostgresOptions, PostgresStore, check_postgres};

use crate::scratch::{Database, Scratch};

/// The words of an error that says that the database cannot be used.
fn unavailable<T>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Unavailable(why)) => why,
        Err(other) => panic!("another error: {other:?}"),
        Ok(_) => panic!("it was opened"),
    }
}

/// One number that the database answers with, after statements that change something.
pub async fn ask(address: &PostgresAddress, change: &str, question: &str) -> i64 {
    let (client, messages) = address.connect_to_listen().await.unwrap();
    let polling = tokio::spawn(messages.for_each(|_| async {}));
    client.batch_execute(change).await.unwrap();
    let answer = client.query_one(question, &[]).await.unwrap().get(0);
    polling.abort();
    answer
}

#[tokio::test]
async fn a_check_or_an_export_of_an_empty_database_makes_no_tables() {
    let address = Database::new().address();
    let why = unavailable(check_postgres(&address).await);
    assert!(why.contains("no tables of Toolgate"), "{why}");
    unavailable(PostgresDatabase::open(&address).await);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(ask(&address, "", tables).await, 0);
}

#[tokio::test]
async fn a_check_or_an_export_of_an_older_database_names_the_migration() {
    let database = Database::new();
    database.open().await;
    let address = database.address();
    let older = "DELETE FROM migrations WHERE version = (SELECT max(version) FROM migrations)";
    let before = ask(&address, older, "SELECT count(*) FROM migrations").await;
    for why in [
        unavailable(check_postgres(&address).await),
        unavailable(PostgresDatabase::open(&address).await),
    ] {
        assert!(why.contains("run `toolgate store migrate`"), "{why}");
    }
    assert_eq!(ask(&address, "", "SELECT count(*) FROM migrations").await, before);
}

#[test]
fn an_export_of_an_older_file_names_the_migration() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sqlite");
    for version in [1, 10, 15, 16] {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.path().parent().unwrap()).unwrap();
        let sql = std::fs::read_to_string(fixtures.join(format!("{version:04}.sql"))).unwrap();
        let connection = Connection::open(scratch.path()).unwrap();
        connection.execute_batch(&sql).unwrap();
        drop(connection);
        let why = unavailable(SqliteDatabase::open(&scratch.path()));
        assert!(why.contains("run `toolgate store migrate`"), "{why}");
        assert!(why.contains(&format!("has migration {version} of")), "{why}");
        SqliteDatabase::create(&scratch.path()).unwrap();
        SqliteDatabase::open(&scratch.path()).unwrap();
    }
    let empty = Scratch::new();
    std::fs::create_dir_all(empty.path().parent().unwrap()).unwrap();
    std::fs::write(empty.path(), "").unwrap();
    let why = unavailable(SqliteDatabase::open(&empty.path()));
    assert!(why.contains("no tables of Toolgate"), "{why}");
}

#[tokio::test]
async fn tls_that_the_server_refuses_is_no_damage() {
    // The server of the tests has no certificate.
    let address = format!("{}?sslmode=require", Database::new().0).parse().unwrap();
    let why = unavailable(PostgresStore::open(&address, PostgresOptions::default()).await);
    assert!(why.contains("TLS"), "{why}");
}
