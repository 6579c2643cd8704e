//! The key-value storage of an installed plugin: one record, so that its quota is its size, and removing the plugin
//! removes it in the same transaction.

use std::collections::BTreeMap;

use toolgate_engine::record_index::put;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Expected, RecordSet};
use toolgate_engine::store::StoreError;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

/// Longest key.
const KEY_BYTES_MAX: usize = 256;

/// The storage of one installation.
pub(crate) struct Storage {
    pub updater: RecordUpdater,
    pub set: RecordSet,
    /// Id of its record.
    pub record: String,
    /// Most bytes of all keys and values together.
    pub bytes_max: usize,
}

/// Keys and values.
type Values = BTreeMap<String, Json>;

/// Why a value was not read or written, in words that the plugin's code is given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error("the plugin was removed, and its storage with it")]
    Gone,
    #[error("a key must have 1 to {KEY_BYTES_MAX} bytes")]
    BadKey,
    #[error("the storage would have {bytes} bytes, at most {bytes_max} are allowed; delete something first")]
    Full { bytes: usize, bytes_max: usize },
    #[error("the storage cannot be reached now")]
    Store(#[from] StoreError),
}

impl Storage {
    /// The value of a key.
    pub async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        Ok(self.read().await?.1.remove(key))
    }

    /// The keys that begin with `prefix`, in order.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let keys = self.read().await?.1.into_keys();
        Ok(keys.filter(|key| key.starts_with(prefix)).collect())
    }

    /// Sets a key, or deletes it if there is no value.
    pub async fn set(&self, key: &str, value: Option<Json>, now: Time) -> Result<(), StorageError> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(StorageError::BadKey);
        }
        let decide = |(version, mut values): (u64, Values)| {
            if version == 0 {
                return Err(StorageError::Gone);
            }
            match &value {
                Some(value) => values.insert(key.to_owned(), value.clone()),
                None => values.remove(key),
            };
            let body = Json::from(serde_json::to_value(&values).expect("texts and JSON are JSON"));
            let bytes = body.as_str().len();
            if value.is_some() && bytes > self.bytes_max {
                return Err(StorageError::Full {
                    bytes,
                    bytes_max: self.bytes_max,
                });
            }
            let amendment = Amendment {
                expected: vec![Expected {
                    id: self.record.clone(),
                    version: Some(version),
                }],
                changes: vec![put(self.record.clone(), body)],
                ..Amendment::default()
            };
            Ok((amendment, ()))
        };
        self.updater.update(self.set, now, || self.stored(), decide).await
    }

    async fn read(&self) -> Result<(u64, Values), StorageError> {
        match self.stored().await? {
            (0, _) => Err(StorageError::Gone),
            stored => Ok(stored),
        }
    }

    /// The version of the record and what it holds; version 0 if there is none.
    async fn stored(&self) -> Result<(u64, Values), StoreError> {
        let record = self.updater.records().record(self.set, &self.record).await?;
        let Some(record) = record else {
            return Ok((0, Values::new()));
        };
        let values = record.body.read();
        let broken = |error| StoreError::Corrupt(format!("the storage of a plugin: {error}"));
        Ok((record.version, values.map_err(broken)?))
    }
}
