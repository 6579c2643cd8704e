//! SQLite: everything can be read, nothing changed, nothing else opened.

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_client::plugins::sqlite::plugin;
use toolgate_client::{Client, ToolError};

use crate::{client, words};

struct World {
    directory: TempDir,
    client: Client,
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("shop.db");
        let other = directory.path().join("other.db");
        for (file, sql) in [
            (
                &file,
                "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, photo BLOB);
                     INSERT INTO item VALUES (1, 'teapot', 34.5, x'00ff'), (2, NULL, 1e999, NULL);",
            ),
            (
                &other,
                "CREATE TABLE hidden (x); INSERT INTO hidden VALUES ('secret');",
            ),
        ] {
            Connection::open(file).unwrap().execute_batch(sql).unwrap();
        }
        let client = client();
        client.use_plugin(plugin(&file).unwrap()).await.unwrap();
        Self { directory, client }
    }
    async fn query(&self, sql: &str) -> Result<Value, ToolError> {
        self.client.try_tool("sql_query", json!({"query": sql})).await
    }
}

#[tokio::test]
async fn rows_come_with_their_columns() {
    let world = World::new().await;
    assert_eq!(
        world
            .query("SELECT id, name, price, photo FROM item ORDER BY id")
            .await
            .unwrap(),
        json!({"columns": ["id", "name", "price", "photo"], "truncated": false,
               "rows": [[1, "teapot", 34.5, "<2 bytes>"], [2, null, null, null]]})
    );
}

#[tokio::test]
async fn tables_are_listed_with_their_sql() {
    let world = World::new().await;
    let tables = world.client.try_tool("list_tables", json!({})).await.unwrap();
    assert_eq!(
        (&tables[0]["name"], &tables[0]["kind"]),
        (&json!("item"), &json!("table"))
    );
    assert!(
        tables[0]["sql"]
            .as_str()
            .unwrap()
            .starts_with("CREATE TABLE item")
    );
}

#[tokio::test]
async fn nothing_can_be_changed_and_no_other_file_opened() {
    let world = World::new().await;
    let other = world.directory.path().join("other.db");
    for sql in [
        "DELETE FROM item",
        "INSERT INTO item (name) VALUES ('x')",
        "DROP TABLE item",
        "CREATE TEMP TABLE t (x)",
        "PRAGMA query_only = 0",
        "PRAGMA writable_schema = 1",
        "VACUUM INTO '/tmp/copy.db'",
        &format!("ATTACH '{}' AS other", other.display()),
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM item",
        "",
    ] {
        words(world.query(sql).await);
    }
    assert_eq!(
        world.query("SELECT count(*) FROM item").await.unwrap()["rows"],
        json!([[2]])
    );
}

#[tokio::test]
async fn too_many_rows_are_cut() {
    let world = World::new().await;
    let counting =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9999) SELECT x FROM n";
    let answer = world.query(counting).await.unwrap();
    assert_eq!(
        (answer["rows"].as_array().unwrap().len(), &answer["truncated"]),
        (500, &json!(true))
    );
    let long = world
        .query("SELECT zeroblob(1), hex(zeroblob(200000)), 1 FROM item")
        .await
        .unwrap();
    assert_eq!(long["truncated"], json!(true));
}

#[tokio::test]
async fn a_value_that_is_too_large_is_never_built() {
    let world = World::new().await;
    let told = words(world.query("SELECT length(hex(zeroblob(50000000)))").await);
    assert!(told.contains("too big"), "{told}");
}

#[tokio::test]
async fn a_mistake_is_told_in_sqlites_words() {
    let world = World::new().await;
    assert!(words(world.query("SELECT colour FROM item").await).contains("no such column"));
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(plugin(directory.path().join("missing")).is_err());
    let text = directory.path().join("text");
    std::fs::write(&text, "not a database, but long enough to be read as one").unwrap();
    assert!(plugin(text).is_err());
}
