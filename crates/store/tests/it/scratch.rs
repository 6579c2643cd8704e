//! Databases that are deleted with the test.

use std::path::PathBuf;

use tempfile::TempDir;
use toolgate_store::{PostgresAddress, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use toolgate_testkit::postgres_server::PostgresServer;

pub struct Scratch(TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("data/toolgate.db")
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path(), SqliteOptions::default()).expect("the store opens")
    }
}

/// A database of the PostgreSQL server that the tests share.
pub struct Database(pub String);

impl Database {
    pub fn new() -> Self {
        Self(PostgresServer::shared().database())
    }

    pub fn address(&self) -> PostgresAddress {
        self.0.parse().expect("an address")
    }

    pub async fn open(&self) -> PostgresStore {
        self.open_with(PostgresOptions::default()).await
    }

    pub async fn open_with(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::open(&self.address(), options)
            .await
            .expect("the store opens")
    }
}
