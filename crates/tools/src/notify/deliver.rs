//! What still has to be delivered: kept until the webhook takes it, or until nobody expects that any more.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolgate_engine::clock::Clock;
use toolgate_engine::records::{
    Amendment, Change, Expected, NewRecord, Owner, Receipt, Record, Records, Shelf,
};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::webhook::{Webhook, client};

const KIND: &str = "delivery";
/// How often one is tried before it is laid aside: over about a day.
const ATTEMPTS_MAX: u32 = 12;
/// Pause after the first failure; twice as long after each further one.
const PAUSE_FIRST: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(6 * 3600);
/// How long one that is being sent is left alone by others; longer than a request may take.
const HELD: Duration = Duration::from_secs(60);
/// Deliveries looked at in one go.
const BATCH: usize = 20;
/// How often the store is asked whatever it said before: other nodes queue too, and clocks jump.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Deliveries to the operator's webhook, if there is one.
pub struct Deliveries {
    records: Arc<dyn Records>,
    clock: Arc<dyn Clock>,
    webhook: Option<Webhook>,
    client: reqwest::Client,
    queued: Notify,
}

/// A delivery's record. It is due when it has to be tried; one without a moment was laid aside.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    payload: Value,
    attempts: u32,
    /// Why it was not taken, the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Deliveries {
    /// Keeps them there. Nothing is sent until [`Deliveries::work`].
    pub fn new(records: Arc<dyn Records>, clock: Arc<dyn Clock>, webhook: Option<Webhook>) -> Self {
        Self {
            records,
            clock,
            webhook,
            client: client(),
            queued: Notify::new(),
        }
    }

    /// Whether there is a webhook.
    pub fn is_open(&self) -> bool {
        self.webhook.is_some()
    }

    /// Delivers what is due, until `stop` fires. What is under way then is tried again after the next start.
    pub async fn work(&self, stop: CancellationToken) {
        if !self.is_open() {
            return stop.cancelled().await;
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.work_off() => {}
            }
            let pause = match self.records.next_due(KIND).await {
                Ok(Some(due)) => due.since(self.clock.now()).min(LOOK_EVERY),
                Ok(None) | Err(_) => LOOK_EVERY,
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.queued.notified() => {}
                () = tokio::time::sleep(pause.max(Duration::from_millis(1))) => {}
            }
        }
    }

    /// Tries everything that is due now, once.
    pub async fn work_off(&self) {
        let Some(webhook) = &self.webhook else { return };
        loop {
            let due = match self.records.due_records(KIND, self.clock.now(), BATCH).await {
                Ok(due) => due,
                Err(error) => return tracing::warn!(%error, "deliveries cannot be read now"),
            };
            if due.is_empty() {
                return;
            }
            for (shelf, record) in due {
                if let Err(error) = self.try_one(webhook, shelf, record).await {
                    return tracing::warn!(%error, "a delivery could not be kept up to date");
                }
            }
        }
    }

    /// Queues one; nothing when it was queued before, delivered or not.
    pub(crate) async fn queue(
        &self,
        project: ProjectId,
        id: &str,
        payload: Value,
        now: Time,
    ) -> Result<(), StoreError> {
        let shelf = Shelf {
            project,
            owner: Owner::Project,
            kind: KIND,
        };
        let delivery = Delivery {
            payload,
            attempts: 0,
            error: None,
        };
        let queued = Amendment {
            changes: vec![put(id, &delivery, Some(now))],
            // The record goes when it is delivered; that it was queued stays.
            receipt: Some(Receipt {
                key: format!("delivery {id}"),
                answer: Json::null(),
                time: now,
            }),
            ..Amendment::default()
        };
        match self.records.amend_shelf(shelf, queued, now).await {
            Ok(()) | Err(StoreError::Exists) => {
                self.queued.notify_one();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn try_one(&self, webhook: &Webhook, shelf: Shelf, record: Record) -> Result<(), StoreError> {
        let now = self.clock.now();
        let read = record.body.read::<Delivery>();
        let mut delivery = read.map_err(|error| StoreError::Corrupt(format!("a delivery: {error}")))?;
        delivery.attempts += 1;
        // Held first: of two nodes that see it, one sends it; and a crash counts as an attempt.
        let held = put(&record.id, &delivery, Some(now.after(HELD)));
        match self.change(shelf, &record.id, record.version, held).await {
            Ok(()) => {}
            Err(StoreError::Conflict) => return Ok(()),
            Err(error) => return Err(error),
        }
        let body = delivery.payload.to_string();
        let change = match webhook.send(&self.client, &record.id, body, now).await {
            Ok(()) => Change::Remove(record.id.clone()),
            Err(why) => {
                let again = delivery.attempts < ATTEMPTS_MAX;
                tracing::warn!(
                    delivery = record.id,
                    attempts = delivery.attempts,
                    again,
                    why,
                    "not delivered"
                );
                let due = again.then(|| self.clock.now().after(pause(delivery.attempts)));
                delivery.error = Some(why);
                put(&record.id, &delivery, due)
            }
        };
        match self.change(shelf, &record.id, record.version + 1, change).await {
            // Somebody took it for lost and has it now.
            Err(StoreError::Conflict) => Ok(()),
            done => done,
        }
    }

    async fn change(&self, shelf: Shelf, id: &str, version: u64, change: Change) -> Result<(), StoreError> {
        let expected = Expected {
            id: id.to_owned(),
            version: Some(version),
        };
        let changes = self
            .records
            .change_records(shelf, vec![expected], vec![change], self.clock.now());
        changes.await
    }
}

/// How long to wait after so many attempts.
fn pause(attempts: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
    PAUSE_FIRST.saturating_mul(doubled).min(PAUSE_MAX)
}

fn put(id: &str, delivery: &Delivery, due: Option<Time>) -> Change {
    Change::Put(NewRecord {
        id: id.to_owned(),
        body: serde_json::to_value(delivery).expect("it has text keys").into(),
        text: None,
        data: None,
        due,
    })
}
