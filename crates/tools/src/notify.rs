//! `sendNotification`: sends a notification to people, in the space, by mail, or by the operator's webhook.

mod deliver;
mod mail;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_engine::outbox;
use toolgate_engine::store::{Append, IdempotencyRecord, Log, RunWrite, StoreError};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::event::Notification;
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Retry;

use crate::records::input;
use crate::toolkit::ServerTool;

pub use deliver::{Channels, Deliveries};
pub use mail::{BadMail, Mail, MailSettings, Security};
pub use webhook::Webhook;

const TITLE_CHARS_MAX: usize = 200;
const BODY_CHARS_MAX: usize = 4000;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a notification.
pub(crate) struct SendNotification {
    pub store: Arc<dyn Log>,
    pub deliveries: Arc<Deliveries>,
}

#[derive(Deserialize)]
struct Input {
    title: String,
    body: Option<String>,
    #[serde(default = "in_the_space")]
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
    /// Deliveries by webhook and mail.
    fn outside(self) -> Option<outbox::Channel> {
        match self {
            Self::Space => None,
            Self::Webhook => Some(outbox::Channel::Webhook),
            Self::Mail => Some(outbox::Channel::Mail),
        }
    }
}

fn in_the_space() -> Vec<Channel> {
    vec![Channel::Space]
}

#[async_trait]
impl ServerTool for SendNotification {
    fn name(&self) -> &'static str {
        "sendNotification"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Notify people: the members of this conversation, or whoever the webhook or the mail of this \
                          gateway reaches."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1, "maxLength": TITLE_CHARS_MAX, "description": "What it is about, in one line."},
                    "body": {"type": "string", "maxLength": BODY_CHARS_MAX, "description": "More of it."},
                    "channels": {
                        "type": "array", "minItems": 1, "uniqueItems": true,
                        "items": {"type": "string", "enum": ["space", "webhook", "mail"]},
                        "description": "Where to send it. Default: space.",
                    },
                },
                "required": ["title"],
            }),
            timeout: TIMEOUT,
            // The call's id is the idempotency key, so a repeated call sends nothing again.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: Input = input(given)?;
        for channel in wanted.channels.iter().filter_map(|channel| channel.outside()) {
            if !self.deliveries.has(channel) {
                return Err(CallFailure::unavailable(format!(
                    "this gateway has no {}; nothing was sent, use the channel space",
                    channel.as_str()
                )));
            }
        }
        let (mut sent, mut queued) = (Vec::new(), Vec::new());
        for channel in &wanted.channels {
            match channel.outside() {
                None => {
                    self.tell_space(&wanted, context).await?;
                    sent.push("space");
                }
                Some(channel) => {
                    let outbox = self.deliveries.outbox();
                    let (id, payload) = (id(channel, context), payload(&wanted, context));
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
    async fn tell_space(&self, wanted: &Input, context: &CallContext) -> Result<(), CallFailure> {
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
            wakes: Vec::new(),
            time: context.now,
            idempotency: vec![IdempotencyRecord {
                project: context.project,
                key: format!("notification {}", context.call),
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
fn id(channel: outbox::Channel, context: &CallContext) -> String {
    match channel {
        outbox::Channel::Webhook => context.call.to_string(),
        outbox::Channel::Mail => format!("{}_mail", context.call),
    }
}

/// Payload of the webhook, and content of the mail.
fn payload(wanted: &Input, context: &CallContext) -> Value {
    json!({
        "type": "notification",
        "timestamp": context.now,
        "data": {
            "title": wanted.title,
            "body": wanted.body,
            "agent": context.agent.as_str(),
            "spaceId": context.space,
            "runId": context.run,
            "toolCallId": context.call,
        },
    })
}
