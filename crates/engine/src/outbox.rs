//! What still has to be delivered outside: kept until it is taken, or until nobody expects that any more.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use crate::clock::Clock;
use crate::records::{
    Amendment, Change, Expected, Listing, NewRecord, Owner, Receipt, Record, RecordSet, Records,
};
use crate::store::StoreError;

const KIND: &str = "delivery";
/// How long one that is being sent is left alone by others; longer than sending may take.
const HELD: Duration = Duration::from_secs(60);
/// Records looked at in one go.
const BATCH: usize = 100;

/// Deliveries of all projects. Nothing is sent here: whoever sends asks for [`Outbox::due`].
pub struct Outbox {
    records: Arc<dyn Records>,
    clock: Arc<dyn Clock>,
    queued: Notify,
}

/// How something is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// To the operator's webhook.
    #[default]
    Webhook,
    /// To the operator's addresses.
    Mail,
}

impl Channel {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Mail => "mail",
        }
    }
}

/// Where a delivery stands. One that was taken is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is tried again.
    Pending,
    /// It was dead-lettered; it is tried again when somebody asks for that.
    Dead,
}

/// Something to deliver.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Whose.
    pub project: ProjectId,
    /// Which; the same whenever it is tried.
    pub id: String,
    /// What is kept of it.
    pub parcel: Parcel,
    /// When it is tried next; never, when it was dead-lettered.
    pub due: Option<Time>,
    /// When it was queued.
    pub created: Time,
    version: u64,
}

/// What is kept of a delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parcel {
    /// How.
    #[serde(default)]
    pub channel: Channel,
    /// What.
    pub payload: Value,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it was not taken, the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Delivery {
    /// Where it stands.
    pub fn state(&self) -> State {
        match self.due {
            Some(_) => State::Pending,
            None => State::Dead,
        }
    }

    fn read(project: ProjectId, record: Record) -> Result<Self, StoreError> {
        let parcel = record.body.read();
        Ok(Self {
            project,
            id: record.id,
            parcel: parcel.map_err(|error| StoreError::Corrupt(format!("a delivery: {error}")))?,
            due: record.due,
            created: record.created,
            version: record.version,
        })
    }

    fn put(&self) -> Change {
        let body = serde_json::to_value(&self.parcel).expect("it has text keys");
        Change::Put(NewRecord {
            id: self.id.clone(),
            body: body.into(),
            text: None,
            data: None,
            due: self.due,
        })
    }
}

impl Outbox {
    /// Keeps them there.
    pub fn new(records: Arc<dyn Records>, clock: Arc<dyn Clock>) -> Self {
        Self {
            records,
            clock,
            queued: Notify::new(),
        }
    }

    /// What it tells the time by.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Queues one; nothing when one of this id was queued before, delivered or not.
    pub async fn queue(
        &self,
        project: ProjectId,
        id: String,
        channel: Channel,
        payload: Value,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let parcel = Parcel {
            channel,
            payload,
            attempts: 0,
            error: None,
        };
        let new = Delivery {
            project,
            id,
            parcel,
            due: Some(now),
            created: now,
            version: 0,
        };
        let queued = Amendment {
            changes: vec![new.put()],
            // The record goes when it is delivered; that it was queued stays.
            receipt: Some(Receipt {
                key: format!("delivery {}", new.id),
                answer: Json::null(),
                time: now,
            }),
            ..Amendment::default()
        };
        match self.records.amend_records(record_set(project), queued, now).await {
            Ok(()) | Err(StoreError::Exists) => {
                self.queued.notify_one();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// A project's deliveries, by id, behind the one named: at most so many, all of them or those that stand so.
    pub async fn list(
        &self,
        project: ProjectId,
        state: Option<State>,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let (mut found, mut after) = (Vec::new(), after);
        loop {
            let listing = Listing {
                prefix: String::new(),
                after: after.take(),
                limit: BATCH,
            };
            let records = self.records.list_records(record_set(project), listing).await?;
            let last = records.len() < BATCH;
            after = records.last().map(|record| record.id.clone());
            for record in records {
                // One that cannot be read hides no other.
                let Ok(delivery) = Delivery::read(project, record) else {
                    continue;
                };
                if state.is_none_or(|state| state == delivery.state()) {
                    found.push(delivery);
                }
                if found.len() == limit {
                    return Ok(found);
                }
            }
            if last {
                return Ok(found);
            }
        }
    }

    /// Has one tried now, and as often again as a new one; none when there is no such delivery.
    pub async fn retry(&self, project: ProjectId, id: &str) -> Result<Option<Delivery>, StoreError> {
        loop {
            let Some(record) = self.records.record(record_set(project), id).await? else {
                return Ok(None);
            };
            let mut delivery = Delivery::read(project, record)?;
            delivery.due = Some(self.clock.now());
            delivery.parcel.attempts = 0;
            match self
                .change(&delivery, Some(delivery.version), delivery.put())
                .await
            {
                Ok(()) => {
                    self.queued.notify_one();
                    return Ok(Some(delivery));
                }
                // Somebody was faster: what it is now counts.
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What has to be tried now, of all projects, most urgent first. One that cannot be read is dead-lettered.
    pub async fn due(&self, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        let mut due = Vec::new();
        for (set, record) in self.records.due_records(KIND, self.clock.now(), limit).await? {
            match Delivery::read(set.project, record.clone()) {
                Ok(delivery) => due.push(delivery),
                Err(error) => {
                    tracing::error!(delivery = record.id, %error, "dead-lettered");
                    unless_taken(self.dead_letter(set, record).await)?;
                }
            }
        }
        Ok(due)
    }

    async fn dead_letter(&self, set: RecordSet, record: Record) -> Result<(), StoreError> {
        let unchanged = Expected {
            id: record.id.clone(),
            version: Some(record.version),
        };
        let kept = Change::Put(NewRecord {
            id: record.id,
            body: record.body,
            text: None,
            data: record.data,
            due: None,
        });
        let now = self.clock.now();
        self.records
            .change_records(set, vec![unchanged], vec![kept], now)
            .await
    }

    /// When something has to be tried next.
    pub async fn next_due(&self) -> Result<Option<Time>, StoreError> {
        self.records.next_due(KIND).await
    }

    /// Waits until something is queued here.
    pub async fn queued(&self) {
        self.queued.notified().await;
    }

    /// Counts an attempt and keeps others away while it lasts; false when somebody else has it. Held first: of two
    /// nodes that see it one sends it, and a crash counts as an attempt.
    pub async fn hold(&self, delivery: &mut Delivery) -> Result<bool, StoreError> {
        delivery.parcel.attempts += 1;
        delivery.due = Some(self.clock.now().after(HELD));
        let held = self
            .change(delivery, Some(delivery.version), delivery.put())
            .await;
        delivery.version += 1;
        unless_taken(held)
    }

    /// Takes one that was held out of the box: it was taken.
    pub async fn done(&self, delivery: &Delivery) -> Result<bool, StoreError> {
        let change = Change::Remove(delivery.id.clone());
        unless_taken(self.change(delivery, Some(delivery.version), change).await)
    }

    /// Puts one back that was held and not taken: to be tried again then, or never.
    pub async fn put_back(
        &self,
        delivery: &mut Delivery,
        why: String,
        again: Option<Duration>,
    ) -> Result<bool, StoreError> {
        delivery.parcel.error = Some(why);
        delivery.due = again.map(|pause| self.clock.now().after(pause));
        unless_taken(
            self.change(delivery, Some(delivery.version), delivery.put())
                .await,
        )
    }

    async fn change(
        &self,
        delivery: &Delivery,
        version: Option<u64>,
        change: Change,
    ) -> Result<(), StoreError> {
        let expected = Expected {
            id: delivery.id.clone(),
            version,
        };
        let (set, now) = (record_set(delivery.project), self.clock.now());
        self.records
            .change_records(set, vec![expected], vec![change], now)
            .await
    }
}

fn record_set(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: KIND,
    }
}

/// Whether a change was made, or somebody took the record for lost and has it now.
fn unless_taken(changed: Result<(), StoreError>) -> Result<bool, StoreError> {
    match changed {
        Ok(()) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}
