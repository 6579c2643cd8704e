//! Where the data is: opens the store that the settings name, and keeps what all nodes of a gateway share in it.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_engine::clock::{Clock as _, SystemClock};
use toolgate_engine::records::{Change, Expected, NewRecord, Owner, RecordSet};
use toolgate_engine::store::StoreError;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{NodeId, ProjectId};
use toolgate_sources::oauth::EncryptionKey;
use toolgate_store::{
    PostgresAddress, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, StartLock, Storage,
};

use crate::data::DataDir;
use crate::serve::Damage;
use crate::settings::Settings;

/// Longest time that a start after an unclean end looks for damage in the database.
const START_CHECK: Duration = Duration::from_secs(5);

/// Opens the store that the settings name.
pub async fn open(settings: &Settings, data: &DataDir, damage: Damage) -> anyhow::Result<Opened> {
    match &settings.store {
        Some(url) => {
            let address = address(url)?;
            let options = PostgresOptions {
                lease: Some(settings.engine.node_lease),
                ..settings.postgres.options()
            };
            let opened = PostgresStore::open(&address, options).await;
            let store = opened.map_err(|error| anyhow!(error).context(format!("cannot open {address}")))?;
            // Looked at twice: an import that is under way holds the lock, and one may have begun meanwhile.
            if damage == Damage::Refused && store.has_unfinished_import().await? {
                return Err(half_imported(&address));
            }
            let starting = store.lock_start().await.with_context(|| {
                format!("{address} is locked by another node that starts, or by `toolgate store import`")
            })?;
            if store.has_unfinished_import().await? {
                if damage == Damage::Refused {
                    return Err(half_imported(&address));
                }
                give_up(&address);
                store.give_up_imports().await?;
            }
            Ok(Opened {
                store: Arc::new(store),
                place: address.to_string(),
                starting: Some(starting),
            })
        }
        None => {
            let store = open_sqlite(data, damage)?;
            if store.has_unfinished_import().await? {
                let database = data.database();
                if damage == Damage::Refused {
                    return Err(half_imported(&database.display()));
                }
                give_up(&database.display());
                store.give_up_imports().await?;
            }
            Ok(Opened {
                store: Arc::new(store),
                place: settings.data.display().to_string(),
                starting: None,
            })
        }
    }
}

/// A gateway on it would add what contradicts the rows that are still to come.
fn half_imported(database: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!(
        "{database} is being imported, or an import was interrupted; run `toolgate store import` with the same file again, \
         or start with --force to go on with what is there"
    )
}

fn give_up(database: &dyn std::fmt::Display) {
    tracing::warn!(%database, "starts with a part of an import, as --force says; the import cannot go on any more");
}

/// A store that was opened.
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Storage>,
    /// Where it is, for people.
    pub place: String,
    /// Held until the node serves: of several that start at once one makes the first project and its keys, and no import begins
    /// meanwhile.
    pub starting: Option<StartLock>,
}

/// The address in the setting `store`, which is not repeated in an error: it may hold a password.
pub fn address(url: &Secret) -> anyhow::Result<PostgresAddress> {
    let address = url.expose().parse();
    address.map_err(|error| anyhow!("the setting `store` (TOOLGATE_STORE) is {error}, or \"\" for SQLite"))
}

/// Opens the database. After an unclean end it is checked first, unless damage is accepted.
fn open_sqlite(data: &DataDir, damage: Damage) -> anyhow::Result<SqliteStore> {
    let database = data.database();
    let shown = database.display();
    if damage == Damage::Refused && data.has_lost_database() {
        bail!(
            "{shown} is missing or empty, but its directory was used by a gateway; put the database back, or start \
             with --force to begin with an empty one"
        );
    }
    let check = damage == Damage::Refused && data.ended_uncleanly();
    let options = SqliteOptions {
        check: check.then_some(START_CHECK),
        ..SqliteOptions::default()
    };
    SqliteStore::open(&database, options).map_err(|error| {
        let advice = match (&error, data.signed_by()) {
            (StoreError::Corrupt(_), _) => format!(
                "`toolgate store check --data {}` tells more; restore a backup, or start with --force",
                data.path().display()
            ),
            (_, Some(pid)) => {
                format!("stop process {pid} if it is still there, or choose another directory with --data")
            }
            (_, None) => "see that this user may write to it, or choose another directory with --data".into(),
        };
        anyhow!(error).context(format!("cannot open {shown}; {advice}"))
    })
}

/// The node that this process is.
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Keeps others from being the same node.
    _lock: Option<File>,
}

/// The id of this process: the same one after a restart, so that it resumes its own runs at once.
pub fn node(settings: &Settings, data: &DataDir) -> anyhow::Result<Node> {
    match settings.store {
        None => Ok(Node {
            id: data.node()?,
            _lock: None,
        }),
        Some(_) => {
            let (id, lock) = data.node_of_many()?;
            Ok(Node { id, _lock: lock })
        }
    }
}

/// The key that encrypts the tokens of MCP servers: the one of the settings, or one that was made at the first start. With
/// SQLite that is in a file of the data directory; with PostgreSQL it is in the database, because all nodes need the same.
pub async fn encryption_key(
    settings: &Settings,
    data: &DataDir,
    store: &dyn Storage,
) -> anyhow::Result<EncryptionKey> {
    match (&settings.encryption_key, &settings.store) {
        (Some(key), _) => {
            let key = EncryptionKey::read(key.expose());
            key.map_err(|words| anyhow!("the setting `encryption_key` is no key: {words}"))
        }
        (None, None) => match data.known_encryption_key()? {
            Some(key) => Ok(key),
            // An import from PostgreSQL brings its key along.
            None => match stored_key(store).await? {
                Some(key) => Ok(key),
                None => data.encryption_key(),
            },
        },
        (None, Some(_)) => shared_key(data, store).await,
    }
}

/// What all nodes of a gateway share and no project owns.
fn shared() -> RecordSet {
    RecordSet {
        project: ProjectId::from_bytes([0; 16]),
        owner: Owner::Project,
        kind: "gateway",
    }
}

const KEY: &str = "encryption_key";

#[derive(Serialize, Deserialize)]
struct SharedKey {
    key: String,
}

/// The key in the database; the first node puts it there. A data directory that has a key from the time of SQLite brings it
/// along.
async fn shared_key(data: &DataDir, store: &dyn Storage) -> anyhow::Result<EncryptionKey> {
    if store.record(shared(), KEY).await?.is_none() {
        let own = data
            .known_encryption_key()?
            .unwrap_or_else(EncryptionKey::generate);
        let record = NewRecord {
            id: KEY.into(),
            body: json!(SharedKey { key: own.write() }).into(),
            text: None,
            data: None,
            due: None,
        };
        let absent = Expected {
            id: KEY.into(),
            version: None,
        };
        let stored = store.change_records(
            shared(),
            vec![absent],
            vec![Change::Put(record)],
            SystemClock.now(),
        );
        match stored.await {
            // Another node was first: its key counts.
            Ok(()) | Err(StoreError::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let stored = stored_key(store).await?;
    stored.ok_or_else(|| anyhow!("the encryption key in the database is gone"))
}

async fn stored_key(store: &dyn Storage) -> anyhow::Result<Option<EncryptionKey>> {
    let Some(stored) = store.record(shared(), KEY).await? else {
        return Ok(None);
    };
    let SharedKey { key } = stored.body.read()?;
    let key = EncryptionKey::read(&key);
    key.map(Some)
        .map_err(|words| anyhow!("the encryption key in the database is none: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_that_was_imported_from_postgresql_is_read_with_the_key_that_it_brings() {
        let [postgres, sqlite] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let data = DataDir::open(postgres.path()).expect("a data directory");
        let store = open_sqlite(&data, Damage::Refused).expect("a store");
        let brought = shared_key(&data, &store).await.expect("a key").write();
        // Only the rows are imported.
        let empty = DataDir::open(sqlite.path()).expect("a data directory");
        let settings = Settings::default();
        let key = encryption_key(&settings, &empty, &store).await.expect("the key");
        assert_eq!(key.write(), brought);
        let other = open_sqlite(&empty, Damage::Refused).expect("a store");
        let own = encryption_key(&settings, &empty, &other)
            .await
            .expect("a key")
            .write();
        assert_ne!(own, brought);
        let again = encryption_key(&settings, &empty, &store).await.expect("the key");
        assert_eq!(again.write(), own, "what it has encrypted itself stays readable");
    }
}
