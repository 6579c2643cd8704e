//! Sends the deliveries of the outbox, by the channels that the operator has configured.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_egress::{AllowList, Client, Egress, Policy};
use toolgate_engine::outbox::{Channel, Delivery, Outbox};
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;

use super::mail::Mail;
use super::webhook::Webhook;
use crate::due::{DueLoop, DueWork};

/// Attempts before a delivery is dead-lettered: spread over about a day.
const ATTEMPTS_MAX: u32 = 12;
/// Pause after the first failure; it doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(6 * 3600);

/// Channels of notifications besides the space.
#[derive(Debug, Default, Clone)]
pub struct Channels {
    /// Webhook.
    pub webhook: Option<Webhook>,
    /// Mail.
    pub mail: Option<Mail>,
}

/// Sender of deliveries.
pub struct Deliveries {
    outbox: Arc<Outbox>,
    channels: Channels,
    /// Outbound client of the webhook.
    client: Client,
}

/// Why an attempt failed.
pub(super) enum Undelivered {
    /// A retry may help.
    Yet(String),
    /// A retry cannot help.
    Ever(String),
}

impl Deliveries {
    /// A sender for this outbox, by these channels. It sends nothing until [`Deliveries::work`].
    pub fn new(outbox: Arc<Outbox>, channels: Channels, egress: &Egress) -> Self {
        let client = match &channels.webhook {
            Some(webhook) => webhook.client(egress),
            None => egress.client(Policy::public(AllowList::default())),
        };
        Self {
            outbox,
            client,
            channels,
        }
    }

    /// Whether the operator has configured this channel.
    pub fn has(&self, channel: Channel) -> bool {
        match channel {
            Channel::Webhook => self.channels.webhook.is_some(),
            Channel::Mail => self.channels.mail.is_some(),
        }
    }

    /// The outbox.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Sends due deliveries until `stop` fires. An attempt in progress is repeated after the next start.
    pub async fn work(&self, stop: CancellationToken) {
        if !self.has(Channel::Webhook) && !self.has(Channel::Mail) {
            return stop.cancelled().await;
        }
        DueLoop(self).watch(stop).await;
    }

    /// Attempts everything that is due now, once.
    pub async fn work_off(&self) {
        if let Err(error) = DueLoop(self).work_off().await {
            tracing::warn!(%error, "deliveries cannot be kept up to date now");
        }
    }

    async fn try_one(&self, mut delivery: Delivery) -> Result<(), StoreError> {
        if !self.outbox.hold(&mut delivery).await? {
            return Ok(());
        }
        let attempts = delivery.parcel.attempts;
        let (why, again) = match self.send(&delivery).await {
            // Another node may have claimed it in the meantime, which makes no difference: it is delivered.
            Ok(()) => return self.outbox.done(&delivery).await.map(drop),
            Err(Undelivered::Yet(why)) => (why, (attempts < ATTEMPTS_MAX).then(|| pause(attempts))),
            Err(Undelivered::Ever(why)) => (why, None),
        };
        tracing::warn!(
            delivery = delivery.id,
            attempts,
            again = again.is_some(),
            why,
            "not delivered"
        );
        self.outbox.put_back(&mut delivery, why, again).await.map(drop)
    }

    async fn send(&self, delivery: &Delivery) -> Result<(), Undelivered> {
        let Delivery { id, parcel, .. } = delivery;
        match parcel.channel {
            Channel::Webhook => {
                let webhook = self.channels.webhook.as_ref().ok_or_else(|| gone("webhook"))?;
                let body = parcel.payload.to_string();
                let sent = webhook
                    .send(&self.client, id, body, self.outbox.clock().now())
                    .await;
                sent.map_err(Undelivered::Yet)
            }
            Channel::Mail => {
                let mail = self.channels.mail.as_ref().ok_or_else(|| gone("mail server"))?;
                mail.send(id, &parcel.payload, delivery.created).await
            }
        }
    }
}

#[async_trait]
impl DueWork for Deliveries {
    type Item = Delivery;
    const NAME: &'static str = "delivery";
    const LOOK_EVERY: Duration = Duration::from_secs(5);

    fn now(&self) -> Time {
        self.outbox.clock().now()
    }
    async fn due(&self, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        self.outbox.due(limit).await
    }
    async fn next_due(&self) -> Result<Option<Time>, StoreError> {
        self.outbox.next_due().await
    }
    async fn perform(&self, delivery: &Delivery) -> Result<(), StoreError> {
        self.try_one(delivery.clone()).await
    }
    async fn dead_letter(&self, delivery: &Delivery) -> Result<(), StoreError> {
        // If the attempt was counted already it is retried, as often as any other.
        let mut delivery = delivery.clone();
        let put = self.outbox.put_back(&mut delivery, "it broke down".into(), None);
        put.await.map(drop)
    }
    async fn woken(&self) {
        self.outbox.queued().await;
    }
}

/// The channel was removed from the settings after it was queued, and may come back.
fn gone(what: &str) -> Undelivered {
    Undelivered::Yet(format!("this gateway has no {what} any more"))
}

/// Pause after this many attempts.
fn pause(attempts: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
    PAUSE_FIRST.saturating_mul(doubled).min(PAUSE_MAX)
}
