//! One peer's session: follows the space for it, and hands in what it sends. Ends when the peer goes, when its access ends,
//! when it is too slow or too fast, and when the gateway goes down; the peer is told which.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use toolgate_access::{ENDED, Pass, Principal, Standing};
use toolgate_engine::clock::{Clock, SystemClock};
use toolgate_engine::feed::{Batch, Scope, Subscription};
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::view::view;
use toolgate_tool_channel::{Notice, NoticeType, Payload};

use crate::RtcLimits;
use crate::incoming;
use crate::intake::{Sender, check_tool, hand_in};
use crate::members::{Members, fit};
use crate::outgoing::{message, milliseconds};
use crate::outlet::{Outlet, SendError};
use crate::peer::{Inbound, Message};
use crate::port::Visitor;
use crate::rate::Bucket;
use crate::starts;

/// Messages that may be refused in a row before the peer is closed.
const REFUSED_MAX: u32 = 100;

/// One peer's session.
pub(crate) struct Session {
    door: Shared,
    who: Principal,
    pass: Pass,
    space: SpaceId,
    /// Place of the last event that was read for the peer.
    cursor: Seq,
    /// Place that the peer was told last.
    told: Seq,
    inbox: mpsc::Receiver<Inbound>,
    /// Fires when the peer sends more than the inbox holds.
    overflow: CancellationToken,
    outlet: Outlet,
    limits: RtcLimits,
    /// Bytes of one message to the peer.
    bytes_max: usize,
    rate: Bucket,
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Gone,
    Stopping,
    AccessEnded,
    RoleChanged,
    Slow,
    TooFast,
    Cut,
}

impl From<SendError> for End {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Slow => Self::Slow,
            SendError::Gone => Self::Gone,
        }
    }
}

/// What happens next.
enum Step {
    Doubt,
    Beat,
    Inbound(Inbound),
    Batch(Batch),
}

impl Session {
    /// Waits for its channel to open.
    pub fn new(
        door: Shared,
        visitor: Visitor,
        inbox: mpsc::Receiver<Inbound>,
        overflow: CancellationToken,
        outlet: Outlet,
        limits: RtcLimits,
        bytes_max: usize,
    ) -> Self {
        let Visitor {
            who,
            pass,
            space,
            after,
        } = visitor;
        Self {
            door,
            who,
            pass,
            space,
            cursor: after,
            told: after,
            inbox,
            overflow,
            outlet,
            limits,
            bytes_max,
            rate: Bucket::new(limits.messages_per_second, limits.messages_burst),
        }
    }

    /// Serves the peer until it ends.
    pub async fn run(mut self) {
        let end = match self.serve().await {
            Err(end) => end,
            Ok(never) => match never {},
        };
        let (why, words) = end.told();
        let last = words.map(|(code, detail)| {
            let payload = Payload::of(&json!({ "code": code, "detail": detail })).ok();
            self.notice(NoticeType::ChannelClosing, None, payload, Some(self.cursor))
        });
        self.outlet.close(last, why).await;
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, End> {
        let mut beat = tokio::time::interval(self.door.settings.heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !matches!(self.next_inbound(&mut beat).await?, Inbound::Opened) {}
        let scope = Scope::Space(self.space);
        let subscribed = self
            .door
            .engine
            .subscribe(scope, starts::read_from(self.cursor))
            .await;
        let mut events = subscribed.map_err(|_| End::Cut)?;
        self.ready().await?;
        loop {
            match self.step(&mut beat, &mut events).await? {
                Step::Doubt => self.check(Standing::Unknown).await?,
                Step::Beat => {
                    // A store that does not answer now is no reason to cut a reader who was let in.
                    self.check(Standing::Holds).await?;
                    self.tell_cursor().await?;
                }
                Step::Inbound(Inbound::Opened) => {}
                Step::Inbound(Inbound::Message(message, room)) => {
                    self.handle(message).await?;
                    drop(room);
                }
                Step::Batch(batch) => self.tell(&batch).await?,
            }
        }
    }

    /// The next thing that the peer does before its channel is open.
    async fn next_inbound(&mut self, beat: &mut Interval) -> Result<Inbound, End> {
        loop {
            tokio::select! {
                biased;
                () = self.door.settings.stop.cancelled() => return Err(End::Stopping),
                () = self.overflow.cancelled() => return Err(End::TooFast),
                () = self.pass.doubt() => {}
                inbound = self.inbox.recv() => return inbound.ok_or(End::Gone),
                _ = beat.tick() => {}
            }
            self.check(Standing::Holds).await?;
        }
    }

    async fn step(&mut self, beat: &mut Interval, events: &mut Subscription) -> Result<Step, End> {
        tokio::select! {
            biased;
            () = self.door.settings.stop.cancelled() => Err(End::Stopping),
            () = self.overflow.cancelled() => Err(End::TooFast),
            () = self.pass.doubt() => Ok(Step::Doubt),
            _ = beat.tick() => Ok(Step::Beat),
            inbound = self.inbox.recv() => inbound.map(Step::Inbound).ok_or(End::Gone),
            batch = events.next() => batch.map(Step::Batch).map_err(|_| End::Cut),
        }
    }

    /// Ends the session when the pass no longer holds; `unknown` is what a store that does not answer means.
    async fn check(&self, unknown: Standing) -> Result<(), End> {
        match self.door.access.standing(&self.pass).await.unwrap_or(unknown) {
            Standing::Holds => Ok(()),
            Standing::RoleChanged => Err(End::RoleChanged),
            Standing::Ended => Err(End::AccessEnded),
            Standing::Unknown => Err(End::Cut),
        }
    }

    /// Sends what the peer learns of these events.
    async fn tell(&mut self, batch: &Batch) -> Result<(), End> {
        for (seq, event) in batch.placed() {
            let start = starts::place_after(seq);
            if start <= self.cursor {
                continue;
            }
            // Access may have been revoked. If the store cannot tell, the channel is cut and the client reconnects.
            if self.pass.is_doubtful() {
                self.check(Standing::Unknown).await?;
            }
            let seen = view(event, self.pass.reader());
            if let Some(seen) = &seen {
                if !starts::is_told(seen, batch) {
                    self.tell_event(seq, batch, seen).await?;
                }
                if let Some(event) = starts::start_of(seen, batch) {
                    self.tell_event(start, batch, &event).await?;
                }
            }
            self.cursor = self.cursor.max(seq);
        }
        Ok(())
    }

    /// Sends what the peer learns of one event, unless it has read so far.
    async fn tell_event(&mut self, at: Seq, batch: &Batch, seen: &Event) -> Result<(), End> {
        if at <= self.cursor {
            return Ok(());
        }
        if let Some(text) = message(at, batch.run(), batch.time(), seen, self.bytes_max) {
            self.outlet.send(text).await?;
            self.told = at;
            self.cursor = at;
        }
        Ok(())
    }

    async fn ready(&mut self) -> Result<(), End> {
        let payload = Payload::of(&json!({
            "spaceId": self.space,
            "messageBytesMax": self.limits.message_bytes_max,
            "messagesPerSecond": self.limits.messages_per_second,
        }));
        let ready = self.notice(NoticeType::ChannelReady, None, payload.ok(), Some(self.cursor));
        Ok(self.outlet.send(ready).await?)
    }

    /// Says how far was read where no tool event has said it, so that coming back costs little.
    async fn tell_cursor(&mut self) -> Result<(), End> {
        if self.cursor > self.told {
            let cursor = self.notice(NoticeType::ChannelCursor, None, None, Some(self.cursor));
            self.outlet.send(cursor).await?;
            self.told = self.cursor;
        }
        Ok(())
    }

    /// Handles a message of the peer and answers it.
    async fn handle(&mut self, message: Message) -> Result<(), End> {
        metrics::counter!("toolgate_rtc_messages_total", "direction" => "in").increment(1);
        let id = match &message {
            Message::Text(text) => incoming::id_of(text),
            Message::TooLarge { id, .. } => id.clone(),
            Message::NotText => None,
        };
        let answered = match self.rate.take() {
            Ok(()) => self.hand_in(message).await?,
            Err(_) if self.rate.refused() > REFUSED_MAX => return Err(End::TooFast),
            Err(wait) => Err(Unhandled::Message(self.rate_limited(wait))),
        };
        let answer = match answered {
            Ok(None) => self.notice(NoticeType::ChannelReceipt, id, None, None),
            // The receipt of a claim has the call's input, which may be larger than any message.
            Ok(Some(receipt)) => {
                let told = |receipt: &Members| {
                    let payload = Payload::of(receipt).ok();
                    self.notice(NoticeType::ChannelReceipt, id.clone(), payload, None)
                };
                fit(receipt, told, self.bytes_max)
            }
            Err(unhandled) => {
                let payload = unhandled.payload(self.bytes_max);
                self.notice(NoticeType::ChannelProblem, id, payload, None)
            }
        };
        Ok(self.outlet.send(answer).await?)
    }

    async fn hand_in(&mut self, message: Message) -> Result<Result<Option<Members>, Unhandled>, End> {
        // Whoever sends something is checked, and its messages are counted, as for each request over HTTP.
        if let Err(refusal) = self.door.access.count_message(&self.who) {
            return Ok(Err(Unhandled::Message(refusal.into())));
        }
        self.check(Standing::Unknown).await?;
        let text = match message {
            Message::Text(text) => Ok(text),
            Message::NotText => Err(Refusal::malformed("a message must be text, in UTF-8")),
            Message::TooLarge { bytes, .. } => Err(self.too_large(bytes)),
        };
        let message = match text.and_then(|text| incoming::read(&text)) {
            Ok(message) => message,
            Err(refusal) => return Ok(Err(Unhandled::Message(refusal))),
        };
        let sender = Sender {
            who: &self.who,
            space: self.space,
            reader: self.pass.reader(),
        };
        if let Err(refusal) = check_tool(&self.door, &sender, &message).await {
            return Ok(Err(Unhandled::Message(refusal)));
        }
        let handed = hand_in(&self.door, &sender, message.request).await;
        Ok(handed.map_err(Unhandled::Payload))
    }

    fn too_large(&self, bytes: usize) -> Refusal {
        let max = self.limits.message_bytes_max;
        let detail = format!(
            "the message has {bytes} bytes; at most {max} are allowed, see rtc.message_bytes_max; larger results are sent \
             over HTTP"
        );
        Refusal::new(http::StatusCode::PAYLOAD_TOO_LARGE, "MESSAGE_TOO_LARGE", detail)
    }

    fn rate_limited(&self, wait: Duration) -> Refusal {
        let max = self.limits.messages_per_second;
        let milliseconds = wait.as_millis() + 1;
        let detail = format!(
            "more than {max} messages per second; wait {milliseconds} ms, see rtc.messages_per_second"
        );
        Refusal::new(http::StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail)
    }

    fn notice(
        &self,
        kind: NoticeType,
        id: Option<String>,
        payload: Option<Payload>,
        seq: Option<Seq>,
    ) -> String {
        let notice = Notice {
            kind,
            payload,
            timestamp: milliseconds(SystemClock.now()),
            id,
            seq: seq.map(|seq| seq.0),
        };
        notice.to_json()
    }
}

/// Why a message changed nothing, by what the pointers of its problems count from.
enum Unhandled {
    /// The message.
    Message(Refusal),
    /// Its payload, which is what the engine knows of it.
    Payload(Refusal),
}

impl Unhandled {
    /// The problem as a payload; one with too many words says so in few.
    fn payload(self, bytes_max: usize) -> Option<Payload> {
        let (refusal, below) = match self {
            Self::Message(refusal) => (refusal, ""),
            Self::Payload(refusal) => (refusal, "/payload"),
        };
        let problem = refusal.into_body();
        let mut told = serde_json::to_value(&problem).ok()?;
        for error in told["errors"].as_array_mut().into_iter().flatten() {
            if let Some(pointer) = error["pointer"].as_str() {
                error["pointer"] = format!("{below}{pointer}").into();
            }
        }
        let payload = Payload::of(&told).ok()?;
        if payload.as_str().len() + NOTICE_BYTES <= bytes_max {
            return Some(payload);
        }
        Payload::of(&json!({
            "type": "about:blank",
            "status": problem.status,
            "code": problem.code,
            "detail": "there is more wrong with the message than one answer holds",
        }))
        .ok()
    }
}

/// What a notice has around its payload, at most.
const NOTICE_BYTES: usize = 512;

impl End {
    /// A word for the figures, and the code and the words for the peer.
    fn told(self) -> (&'static str, Option<(&'static str, &'static str)>) {
        match self {
            Self::Gone => ("peer", None),
            Self::Stopping => (
                "stopping",
                Some((
                    "GOING_DOWN",
                    "the gateway is going down; come back with your cursor",
                )),
            ),
            Self::AccessEnded => ("access", Some(("ACCESS_ENDED", ENDED))),
            Self::RoleChanged => (
                "role",
                Some((
                    "ROLE_CHANGED",
                    "your role in the space has changed; come back with your cursor",
                )),
            ),
            Self::Slow => (
                "slow",
                Some(("TOO_SLOW", "too much waits for you; come back with your cursor")),
            ),
            Self::TooFast => (
                "too_fast",
                Some((
                    "TOO_FAST",
                    "too many messages were sent; see rtc.messages_per_second",
                )),
            ),
            Self::Cut => (
                "cut",
                Some((
                    "CUT",
                    "too slow, or the gateway could not read on or is going down; come back with your cursor",
                )),
            ),
        }
    }
}
