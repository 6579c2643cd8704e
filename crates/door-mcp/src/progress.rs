//! Notices of progress.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use tokio::time::Instant;
use toolgate_kernel::json::Json;

/// How often a client with a progress token hears that the call lives.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// Longest wait for a client to take a notice of progress, which is then dropped.
pub(crate) const PROGRESS_SEND_MAX: Duration = Duration::from_secs(1);
/// Most bytes of a notice of progress.
const PROGRESS_BYTES_MAX: usize = 1024;
/// By how much progress grows that has no number of its own.
const PROGRESS_STEP: f64 = 0.001;

/// Tells a client that gave a progress token how far its call is.
pub(crate) struct Progress {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    /// What it was told last.
    last: Option<f64>,
    told: Instant,
}

impl Progress {
    /// For the client of this request.
    pub fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self {
            to: token.map(|token| (context.peer.clone(), token)),
            last: None,
            told: Instant::now(),
        }
    }

    /// Whether the client wants to know.
    pub fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Ends when the client should hear something again; never for one that did not ask.
    pub async fn due(&self) {
        match self.to {
            Some(_) => tokio::time::sleep_until(self.told + PROGRESS_EVERY).await,
            None => std::future::pending().await,
        }
    }

    /// What a tool says of itself: a number, an object with `progress`, `total` and `message`, or anything else as text.
    pub async fn pass_on(&mut self, said: &Json) {
        let value = said.to_value();
        let number = |name: &str| value.get(name).and_then(Value::as_f64);
        let message = match (&value, value.get("message")) {
            (Value::String(text), _) | (_, Some(Value::String(text))) => text.clone(),
            _ => said.as_str().to_owned(),
        };
        let done = value.as_f64().or_else(|| number("progress"));
        let at = done.map(|done| (done, number("total")));
        self.tell(message, at).await;
    }

    /// Says something, at this place of this total where there are numbers.
    pub async fn tell(&mut self, mut message: String, at: Option<(f64, Option<f64>)>) {
        let Some((peer, token)) = &self.to else { return };
        message.truncate(message.floor_char_boundary(PROGRESS_BYTES_MAX));
        let (done, total) = match at {
            // Each must be more than the one before.
            Some((done, total)) if self.last.is_none_or(|last| done > last) => (done, total),
            _ => (self.last.unwrap_or_default() + PROGRESS_STEP, None),
        };
        self.last = Some(done);
        self.told = Instant::now();
        let mut notice = ProgressNotificationParam::new(token.clone(), done).with_message(message);
        notice.total = total;
        // A client that does not read misses it: the next one says the same or more.
        let _ = tokio::time::timeout(PROGRESS_SEND_MAX, peer.notify_progress(notice)).await;
    }
}
