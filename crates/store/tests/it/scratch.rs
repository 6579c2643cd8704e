//! Databases that are deleted with the test.

use std::path::PathBuf;

use tempfile::TempDir;
use toolgate_store::{SqliteOptions, SqliteStore};

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
