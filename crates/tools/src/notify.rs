//! `sendNotification`: sends a notification to people, in the space, by mail, or by the operator's webhook.

mod deliver;
mod mail;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_engine::outbox;
use toolgate_engine::records::{Amendment, Owner, Receipt, RecordSet, Records};
use toolgate_engine::store::{Append, IdempotencyRecord, Log, RunWrite, StoreError};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::event::Notification;
use toolgate_kernel::id::CallId;
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Retry;

use crate::records::input;
use crate::toolkit::ServerTool;

pub use deliver::{Channels, Deliveries};
pub use mail::{BadMail, Mail, MailSettings, Security};
pub use webhook::{Webhook, signature};

const TITLE_CHARS_MAX: usize = 200;
const BODY_CHARS_MAX: usize = 4000;
/// Kind of the record set that receipts are stored through; it has no records.
const KIND: &str = "notification";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a notification.
pub(crate) struct SendNotification {
    pub store: Arc<dyn Log>,
    pub records: Arc<dyn Records>,
    pub deliveries: Arc<Deliveries>,
}

#[derive(Deserialize)]
struct Input {
    title: String,
    body: Option<String>,
    #[serde(default)]
    channels: Vec<Channel>,
}

#[derive(Deserialize, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Channel {
    Space,
    Webhook,
    Mail,
}

impl Channel {
    fn as_str(self) -> &'static str {
        self.outside().map_or("space", outbox::Channel::as_str)
    }
    /// Deliveries by webhook and mail.
    fn outside(self) -> Option<outbox::Channel> {
        match self {
            Self::Space => None,
            Self::Webhook => Some(outbox::Channel::Webhook),
            Self::Mail => Some(outbox::Channel::Mail),
        }
    }
}

impl Input {
    /// Where it goes: to the space unless it says otherwise.
    fn channels(&self) -> &[Channel] {
        match self.channels.as_slice() {
            [] => &[Channel::Space],
            channels => channels,
        }
    }
}

#[async_trait]
impl ServerTool for SendNotification {
    fn name(&self) -> &'static str {
        "sendNotification"
    }
    fn action(&self) -> Action {
        let mut parameters = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1, "maxLength": TITLE_CHARS_MAX, "description": "What it is about, in one line."},
                "body": {"type": "string", "maxLength": BODY_CHARS_MAX, "description": "More of it."},
            },
            "required": ["title"],
        });
        // A channel that the operator has not set up is not offered: models fill in all there are.
        let outside = [outbox::Channel::Webhook, outbox::Channel::Mail].into_iter();
        let outside: Vec<&str> = outside
            .filter(|channel| self.deliveries.has(*channel))
            .map(outbox::Channel::as_str)
            .collect();
        if !outside.is_empty() {
            let offered: Vec<&str> = ["space"].into_iter().chain(outside).collect();
            parameters["properties"]["channels"] = json!({
                "type": "array", "uniqueItems": true, "items": {"type": "string", "enum": offered},
                "description": "Where to send it. Leave it out for the members of this conversation.",
            });
        }
        Action {
            description: "Notify people, by default the members of this conversation.".into(),
            parameters,
            timeout: TIMEOUT,
            // The call's id is the idempotency key, so a repeated call sends nothing again.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: Input = input(given)?;
        for channel in wanted.channels().iter().filter_map(|channel| channel.outside()) {
            if !self.deliveries.has(channel) {
                return Err(CallFailure::unavailable(format!(
                    "this gateway has no {}; nothing was sent. Call sendNotification again without channels.",
                    channel.as_str()
                )));
            }
        }
        let call = self.first_call(&wanted, context).await?;
        let (mut sent, mut queued) = (Vec::new(), Vec::new());
        for channel in wanted.channels() {
            match channel.outside() {
                None => {
                    self.tell_space(&wanted, call, context).await?;
                    sent.push("space");
                }
                Some(channel) => {
                    let outbox = self.deliveries.outbox();
                    let (id, payload) = (id(channel, call), payload(&wanted, call, context));
                    let kept = outbox.queue(context.project, id, channel, payload);
                    kept.await?;
                    queued.push(channel.as_str());
                }
            }
        }
        Ok(json!({"success": true, "sent": sent, "queued": queued}))
    }
}

impl SendNotification {
    /// The first call of the run that sends this notification. Models repeat a call that succeeded; whatever is sent has
    /// the first call's id as its idempotency key, so a repeat sends nothing.
    async fn first_call(&self, wanted: &Input, context: &CallContext) -> Result<CallId, CallFailure> {
        let channels: Vec<&str> = wanted.channels().iter().map(|channel| channel.as_str()).collect();
        let said = json!([wanted.title, wanted.body, channels]).to_string();
        let hash = BASE64.encode(digest(&SHA256, said.as_bytes()));
        let receipt = Receipt {
            key: format!("notification {} {hash}", context.run),
            answer: json!(context.call).into(),
            time: context.now,
        };
        let set = RecordSet {
            project: context.project,
            owner: Owner::Space(context.space),
            kind: KIND,
        };
        let key = receipt.key.clone();
        let first = Amendment {
            receipt: Some(receipt),
            ..Amendment::default()
        };
        match self.records.amend_records(set, first, context.now).await {
            Ok(()) => Ok(context.call),
            Err(StoreError::Exists) => {
                let first = self.records.receipt(context.project, &key).await?;
                // A receipt is removed after its retention.
                Ok(first.and_then(|first| first.read().ok()).unwrap_or(context.call))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn tell_space(
        &self,
        wanted: &Input,
        call: CallId,
        context: &CallContext,
    ) -> Result<(), CallFailure> {
        let event = Notification {
            title: wanted.title.clone(),
            body: wanted.body.clone(),
            message_id: None,
        };
        let said = format!("{}\0{}", wanted.title, wanted.body.as_deref().unwrap_or_default());
        let request = digest(&SHA256, said.as_bytes());
        let append = Append {
            space: context.space,
            run: RunWrite::None,
            events: vec![event.into()],
            usage: Vec::new(),
            consumption: Vec::new(),
            above: None,
            wakes: Vec::new(),
            time: context.now,
            idempotency: vec![IdempotencyRecord {
                project: context.project,
                key: format!("notification {call}"),
                request: request.as_ref().try_into().expect("a hash has 32 bytes"),
                answer: Json::null(),
                time: context.now,
            }],
        };
        match self.store.append(append).await {
            // It was posted before a crash.
            Ok(_) | Err(StoreError::Exists) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Id of a delivery, made of the call's, so that a repeated call queues nothing again.
fn id(channel: outbox::Channel, call: CallId) -> String {
    match channel {
        outbox::Channel::Webhook => call.to_string(),
        outbox::Channel::Mail => format!("{call}_mail"),
    }
}

/// Payload of the webhook, and content of the mail.
fn payload(wanted: &Input, call: CallId, context: &CallContext) -> Value {
    json!({
        "type": "notification",
        "timestamp": context.now,
        "data": {
            "title": wanted.title,
            "body": wanted.body,
            "agent": context.agent.as_str(),
            "spaceId": context.space,
            "runId": context.run,
            "toolCallId": call,
        },
    })
}
