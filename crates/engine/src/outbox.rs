//! The outbox: notifications to be delivered by webhook or mail, stored until they are delivered. One that fails too
//! often is a dead letter, which an operator can retry.

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

/// Kind of the records that are deliveries.
pub(crate) const KIND: &str = "delivery";
/// Time for which a delivery attempt excludes other nodes; longer than an attempt may take.
const HELD: Duration = Duration::from_secs(60);
/// Records read per page.
const BATCH: usize = 100;

/// Deliveries of all projects. It sends nothing itself: the sender asks for [`Outbox::due`].
pub struct Outbox {
    records: Arc<dyn Records>,
    clock: Arc<dyn Clock>,
    queued: Notify,
}

/// Channel of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// The operator's webhook.
    #[default]
    Webhook,
    /// Mail to the operator's addresses.
    Mail,
}

impl Channel {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Mail => "mail",
        }
    }
}

/// Status of a delivery. A delivered one is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for its next attempt.
    Pending,
    /// It is a dead letter: it is tried again only if [`Outbox::retry`] is called.
    Dead,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Project that owns it.
    pub project: ProjectId,
    /// Id, the same in every attempt: the receiver's idempotency key.
    pub id: String,
    /// Its stored content.
    pub parcel: Parcel,
    /// Time of the next attempt; none for a dead letter.
    pub due: Option<Time>,
    /// Time at which it was queued.
    pub created: Time,
    version: u64,
}

/// Stored content of a delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parcel {
    /// Channel that it is sent through.
    #[serde(default)]
    pub channel: Channel,
    /// Payload.
    pub payload: Value,
    /// Number of attempts so far.
    pub attempts: u32,
    /// Error of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Delivery {
    /// Status.
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
    /// An outbox that stores its deliveries in `records`.
    pub fn new(records: Arc<dyn Records>, clock: Arc<dyn Clock>) -> Self {
        Self {
            records,
            clock,
            queued: Notify::new(),
        }
    }

    /// The clock of due times.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Queues a delivery; no effect if one of this id was queued before, delivered or not.
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
            // The record is deleted on delivery; the receipt remembers that it was queued.
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

    /// A page of a project's deliveries in the order of ids, after the id `after`: all, or those with a status.
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
                // A record that cannot be read does not hide the others.
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

    /// Makes a delivery due now, with all attempts of a new one; none if there is no such delivery.
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
                // It changed in between: read it again.
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Deliveries of all projects that are due, earliest first. One that cannot be read is dead-lettered.
    pub async fn due(&self, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        let mut due = Vec::new();
        for (set, record) in self.records.due_records(KIND, self.clock.now(), limit).await? {
            match Delivery::read(set.project, record.clone()) {
                Ok(delivery) => due.push(delivery),
                Err(error) => {
                    tracing::error!(delivery = record.id, %error, "a delivery cannot be read, dead-lettered");
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

    /// Time at which the next delivery is due.
    pub async fn next_due(&self) -> Result<Option<Time>, StoreError> {
        self.records.next_due(KIND).await
    }

    /// Waits until a delivery is queued in this process.
    pub async fn queued(&self) {
        self.queued.notified().await;
    }

    /// Counts an attempt and excludes other nodes while it lasts; false if another node has it. Called before sending:
    /// of two nodes that see it only one sends it, and a crash counts as an attempt.
    pub async fn hold(&self, delivery: &mut Delivery) -> Result<bool, StoreError> {
        delivery.parcel.attempts += 1;
        delivery.due = Some(self.clock.now().after(HELD));
        let held = self
            .change(delivery, Some(delivery.version), delivery.put())
            .await;
        delivery.version += 1;
        unless_taken(held)
    }

    /// Deletes a delivery after its successful attempt.
    pub async fn done(&self, delivery: &Delivery) -> Result<bool, StoreError> {
        let change = Change::Remove(delivery.id.clone());
        unless_taken(self.change(delivery, Some(delivery.version), change).await)
    }

    /// Stores a failed attempt: the next one is at `due`, or never, which makes it a dead letter.
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

/// Whether a change was made; false if another node has claimed the record since.
fn unless_taken(changed: Result<(), StoreError>) -> Result<bool, StoreError> {
    match changed {
        Ok(()) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}
