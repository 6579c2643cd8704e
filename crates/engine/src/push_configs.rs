//! Push configurations: where the changes of a run are posted to. Stored with the run's space, so that they go with it,
//! and read by whoever delivers. Nothing is sent from here.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use crate::clock::Clock;
use crate::record_updater::RecordUpdater;
use crate::records::{Amendment, Change, Expected, Listing, NewRecord, Owner, Record, RecordSet, Records};
use crate::store::StoreError;

/// Kind of the records that are push configurations.
pub(crate) const KIND: &str = "push-config";
/// Most configurations of one run.
pub const CONFIGS_PER_RUN_MAX: usize = 16;
/// Most configurations of all runs of a space.
pub const CONFIGS_PER_SPACE_MAX: u64 = 1_000;
/// Longest id of a configuration, in bytes.
pub const CONFIG_ID_BYTES_MAX: usize = 128;
/// Records read per page.
const BATCH: usize = 100;
/// How long a deliverer keeps other nodes from a configuration without a sign of life: longer than one request may take.
const CLAIMED_FOR: Duration = Duration::from_secs(30);

/// Where the changes of a run are posted to.
#[derive(Debug, Clone, PartialEq)]
pub struct PushConfig {
    /// Its id within the run.
    pub id: String,
    /// The run.
    pub run: RunId,
    /// Address to post to. Whoever delivers checks it: it is a user's.
    pub url: String,
    /// Text that the receiver knows the sender by, sent in a header of its own.
    pub token: Option<Secret>,
    /// Scheme and credentials of `Authorization`.
    pub authorization: Option<(String, Secret)>,
    /// User who stored it: what is posted is what this user may see. None for a backend.
    pub by: Option<EntityId>,
    /// Form in which changes are posted: the name of the protocol's version.
    pub form: String,
    /// Number of the last change that was delivered; 0 before the first.
    pub delivered: u64,
    /// How often the change after it was not accepted.
    pub failures: u32,
    /// Place in the run's log up to which there is nothing to deliver.
    pub place: Seq,
    /// Changes from this moment on are posted.
    pub since: Time,
    /// When a deliverer looks at it, unless the run changes before.
    pub due: Option<Time>,
    /// A deliverer works on it, and keeps others from it until `due`.
    pub is_claimed: bool,
}

/// A configuration, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedConfig {
    /// Project of the run.
    pub project: ProjectId,
    /// Space of the run.
    pub space: SpaceId,
    /// The configuration.
    pub config: PushConfig,
}

/// Stored content of a configuration.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<EntityId>,
    form: String,
    #[serde(default)]
    delivered: u64,
    #[serde(default)]
    failures: u32,
    #[serde(default)]
    place: Seq,
    since: Time,
    #[serde(default)]
    is_claimed: bool,
}

/// Why a configuration was not stored.
#[derive(Debug, thiserror::Error)]
pub enum PushConfigError {
    /// The run, or its space, has as many as it may.
    #[error(
        "the task has {CONFIGS_PER_RUN_MAX} push configurations already, or its context {CONFIGS_PER_SPACE_MAX}; delete one first"
    )]
    Full,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The push configurations of all projects. Clones share what wakes a deliverer.
#[derive(Clone)]
pub struct PushConfigs {
    updater: RecordUpdater,
    clock: Arc<dyn Clock>,
    changed: Arc<Notify>,
}

impl PushConfigs {
    /// Configurations that are stored in `records`.
    pub fn new(records: Arc<dyn Records>, clock: Arc<dyn Clock>) -> Self {
        Self {
            updater: RecordUpdater::new(records),
            clock,
            changed: Arc::default(),
        }
    }

    /// Stores a configuration; it replaces the one of the same id.
    pub async fn put(
        &self,
        project: ProjectId,
        space: SpaceId,
        config: &PushConfig,
    ) -> Result<(), PushConfigError> {
        let set = record_set(project, space);
        let read = || self.read(set, config.run);
        let decide = |known: Vec<Record>| {
            let id = record_id(config.run, &config.id);
            let is_new = known.iter().all(|record| record.id != id);
            if is_new && known.len() >= CONFIGS_PER_RUN_MAX {
                return Err(PushConfigError::Full);
            }
            let amendment = Amendment {
                changes: vec![Change::Put(config.record())],
                at_most: is_new.then_some(CONFIGS_PER_SPACE_MAX),
                ..Amendment::default()
            };
            Ok((amendment, ()))
        };
        self.updater.update(set, self.clock.now(), read, decide).await?;
        // Keeps a permit: the one who waits may be at work now.
        self.changed.notify_one();
        Ok(())
    }

    /// A configuration of a run.
    pub async fn get(
        &self,
        project: ProjectId,
        space: SpaceId,
        run: RunId,
        id: &str,
    ) -> Result<Option<PushConfig>, StoreError> {
        let records = self.updater.records();
        let record = records
            .record(record_set(project, space), &record_id(run, id))
            .await?;
        Ok(record.and_then(PushConfig::read))
    }

    /// The configurations of a run, by their ids.
    pub async fn list(
        &self,
        project: ProjectId,
        space: SpaceId,
        run: RunId,
    ) -> Result<Vec<PushConfig>, StoreError> {
        let records = self.read(record_set(project, space), run).await?;
        Ok(records.into_iter().filter_map(PushConfig::read).collect())
    }

    /// Removes a configuration; nothing when there is none.
    pub async fn remove(
        &self,
        project: ProjectId,
        space: SpaceId,
        run: RunId,
        id: &str,
    ) -> Result<(), StoreError> {
        let changes = vec![Change::Remove(record_id(run, id))];
        let set = record_set(project, space);
        let now = self.clock.now();
        self.updater
            .records()
            .change_records(set, Vec::new(), changes, now)
            .await
    }

    /// Configurations that are due, of all projects, at most `limit` of them.
    pub async fn due(&self, limit: usize) -> Result<Vec<OwnedConfig>, StoreError> {
        let records = self.updater.records();
        let due = records.due_records(KIND, self.clock.now(), limit).await?;
        Ok(due
            .into_iter()
            .filter_map(|(set, record)| owned(set, record))
            .collect())
    }

    /// When the next configuration is due.
    pub async fn next_due(&self) -> Result<Option<Time>, StoreError> {
        self.updater.records().next_due(KIND).await
    }

    /// Keeps other deliverers from a configuration for a while; false when it was changed or removed since it was read, as
    /// by another deliverer that was faster. Whoever has claimed it may claim it again.
    pub async fn claim(&self, owned: &mut OwnedConfig) -> Result<bool, StoreError> {
        let claimed = self.claimed(&owned.config);
        self.change(owned, claimed).await
    }

    /// Notes that everything up to a change was delivered, and claims the configuration again; false when it is no longer
    /// this deliverer's.
    pub async fn note_delivered(&self, owned: &mut OwnedConfig, number: u64) -> Result<bool, StoreError> {
        let delivered = PushConfig {
            delivered: number,
            failures: 0,
            ..self.claimed(&owned.config)
        };
        self.change(owned, delivered).await
    }

    fn claimed(&self, config: &PushConfig) -> PushConfig {
        PushConfig {
            due: Some(self.clock.now().after(CLAIMED_FOR)),
            is_claimed: true,
            ..config.clone()
        }
    }

    /// Replaces a configuration by what became of it; false, and nothing, when it was changed or removed since it was read.
    pub async fn change(&self, owned: &mut OwnedConfig, to: PushConfig) -> Result<bool, StoreError> {
        let set = record_set(owned.project, owned.space);
        let id = record_id(owned.config.run, &owned.config.id);
        let Some(record) = self.updater.records().record(set, &id).await? else {
            return Ok(false);
        };
        let unchanged = Expected {
            id,
            version: Some(record.version),
        };
        if PushConfig::read(record).as_ref() != Some(&owned.config) {
            return Ok(false);
        }
        let changes = vec![Change::Put(to.record())];
        let now = self.clock.now();
        let records = self.updater.records();
        match records.change_records(set, vec![unchanged], changes, now).await {
            Ok(()) => {
                owned.config = to;
                Ok(true)
            }
            Err(StoreError::Conflict) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Every configuration of all projects, for a deliverer that starts. `each` is given those of one space at a time.
    pub async fn for_each_space(&self, mut each: impl FnMut(Vec<OwnedConfig>)) -> Result<(), StoreError> {
        for set in self.updater.records().record_sets(KIND).await? {
            let records = self.page_through(set, String::new()).await?;
            each(
                records
                    .into_iter()
                    .filter_map(|record| owned(set, record))
                    .collect(),
            );
        }
        Ok(())
    }

    /// Waits until a configuration is stored in this process.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn read(&self, set: RecordSet, run: RunId) -> Result<Vec<Record>, StoreError> {
        self.page_through(set, format!("{run}/")).await
    }

    async fn page_through(&self, set: RecordSet, prefix: String) -> Result<Vec<Record>, StoreError> {
        let mut found: Vec<Record> = Vec::new();
        loop {
            let listing = Listing {
                prefix: prefix.clone(),
                after: found.last().map(|record| record.id.clone()),
                limit: BATCH,
            };
            let page = self.updater.records().list_records(set, listing).await?;
            let is_last = page.len() < BATCH;
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }
}

impl PushConfig {
    fn record(&self) -> NewRecord {
        let secret = |secret: &Secret| secret.expose().to_owned();
        let body = Body {
            url: self.url.clone(),
            token: self.token.as_ref().map(secret),
            scheme: self.authorization.as_ref().map(|(scheme, _)| scheme.clone()),
            credentials: self
                .authorization
                .as_ref()
                .map(|(_, credentials)| secret(credentials)),
            by: self.by,
            form: self.form.clone(),
            delivered: self.delivered,
            failures: self.failures,
            place: self.place,
            since: self.since,
            is_claimed: self.is_claimed,
        };
        let body = serde_json::to_value(body).expect("it has text keys");
        NewRecord {
            id: record_id(self.run, &self.id),
            body: body.into(),
            text: None,
            data: None,
            due: self.due,
        }
    }

    /// None for a record that cannot be read, which a newer version may have written: it does not hide the others.
    fn read(record: Record) -> Option<Self> {
        let (run, id) = record.id.split_once('/')?;
        let body: Body = record.body.read().ok()?;
        Some(Self {
            id: id.to_owned(),
            run: run.parse().ok()?,
            url: body.url,
            token: body.token.map(Secret::new),
            authorization: body
                .scheme
                .map(|scheme| (scheme, Secret::new(body.credentials.unwrap_or_default()))),
            by: body.by,
            form: body.form,
            delivered: body.delivered,
            failures: body.failures,
            place: body.place,
            since: body.since,
            due: record.due,
            is_claimed: body.is_claimed,
        })
    }
}

fn owned(set: RecordSet, record: Record) -> Option<OwnedConfig> {
    let Owner::Space(space) = set.owner else {
        return None;
    };
    Some(OwnedConfig {
        project: set.project,
        space,
        config: PushConfig::read(record)?,
    })
}

fn record_id(run: RunId, id: &str) -> String {
    format!("{run}/{id}")
}

fn record_set(project: ProjectId, space: SpaceId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Space(space),
        kind: KIND,
    }
}
