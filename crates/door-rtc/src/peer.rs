//! One connection, without IO: datagrams and the time come in, datagrams and a wake-up time come out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::channel::{ChannelData, ChannelId, Reliability};
use str0m::{Event, IceConnectionState, Input, Output, Rtc};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use toolgate_tool_channel::CHANNEL_LABEL;

use crate::incoming;
use crate::peer_shares::PeerShare;

/// Longest time in which what waits for a peer is sent before its connection ends.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// Channels with another label that a peer may try to open. Each is closed at once.
const OTHER_CHANNELS_MAX: u32 = 4;
/// Datagrams that a connection fails on before it is given up. One may be forged or damaged.
const BAD_DATAGRAMS_MAX: u32 = 32;

/// What a peer tells its session.
pub(crate) enum Inbound {
    /// The channel is open.
    Opened,
    /// A message of the client. The permit is dropped when it was handled.
    Message(Message, OwnedSemaphorePermit),
}

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A text.
    Text(String),
    /// Bytes that are no text.
    NotText,
    /// More bytes than a message may have.
    TooLarge {
        /// How many.
        bytes: usize,
        /// The client's own name for it, as far as it can be read.
        id: Option<String>,
    },
}

/// The session's end of a connection.
pub(crate) struct Inbox {
    pub sender: mpsc::Sender<Inbound>,
    /// Bytes of messages that may wait for the session.
    pub room: Arc<Semaphore>,
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// Fires when there is no room for a message: the session says so and closes. What comes after that is dropped.
    pub overflow: CancellationToken,
}

/// A datagram to send.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

/// The connection has ended, and why, in a word for the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended(pub &'static str);

/// A connection.
pub(crate) struct Peer {
    rtc: Rtc,
    channel: Option<ChannelId>,
    other_channels: u32,
    bad_datagrams: u32,
    waiting: VecDeque<(String, OwnedSemaphorePermit)>,
    inbox: Inbox,
    /// When the handshake, or the closing, has taken too long.
    deadline: Option<Instant>,
    closing: Option<Closing>,
    /// Counts the peer for as long as it takes memory.
    _share: PeerShare,
}

#[derive(Clone, Copy)]
struct Closing {
    why: &'static str,
    /// The connection itself was told to close.
    told: bool,
}

impl Peer {
    /// Waits for its peer until `deadline`.
    pub fn new(rtc: Rtc, inbox: Inbox, deadline: Instant, share: PeerShare) -> Self {
        Self {
            rtc,
            channel: None,
            other_channels: 0,
            bad_datagrams: 0,
            waiting: VecDeque::new(),
            inbox,
            deadline: Some(deadline),
            closing: None,
            _share: share,
        }
    }

    /// Whether the datagram is from this peer: of a STUN request the password is checked.
    pub fn accepts(&self, input: &Input<'_>) -> bool {
        self.rtc.accepts(input)
    }

    /// Takes a datagram of this peer.
    pub fn receive(&mut self, input: Input<'_>) -> Result<(), Ended> {
        if let Err(error) = self.rtc.handle_input(input) {
            tracing::debug!(%error, "a datagram of a data channel cannot be used");
            self.bad_datagrams += 1;
            if self.bad_datagrams > BAD_DATAGRAMS_MAX || !self.rtc.is_alive() {
                return Err(Ended("error"));
            }
        }
        Ok(())
    }

    /// Lets time pass.
    pub fn pass_time(&mut self, now: Instant) -> Result<(), Ended> {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Ended(self.closing.map_or("handshake", |closing| closing.why)));
        }
        if self.inbox.sender.is_closed() {
            self.close(now, "session");
        }
        self.rtc
            .handle_input(Input::Timeout(now))
            .map_err(|_| Ended("error"))
    }

    /// Sends a text when the connection has room for it.
    pub fn write(&mut self, text: String, permit: OwnedSemaphorePermit) {
        if self.closing.is_none_or(|closing| !closing.told) {
            self.waiting.push_back((text, permit));
        }
    }

    /// Ends the connection once what waits is sent.
    pub fn close(&mut self, now: Instant, why: &'static str) {
        if self.closing.is_none() {
            self.closing = Some(Closing { why, told: false });
            self.deadline = Some(now + CLOSE_MAX);
        }
    }

    /// Does what there is to do now. Gives the time at which there is more, or that the connection has ended.
    pub fn drive(&mut self, now: Instant, out: &mut Vec<Datagram>) -> Result<Instant, Ended> {
        loop {
            let wake = self.poll(now, out)?;
            // Each change is followed by a poll, until nothing changes.
            if !self.flush()? && !self.begin_close()? {
                let deadline = self.deadline.unwrap_or(wake);
                return Ok(wake.min(deadline));
            }
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<Datagram>) -> Result<Instant, Ended> {
        loop {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(wake)) if self.rtc.is_alive() => return Ok(wake),
                Ok(Output::Timeout(_)) => {
                    return Err(Ended(self.closing.map_or("peer", |closing| closing.why)));
                }
                Ok(Output::Transmit(datagram)) => out.push(Datagram {
                    to: datagram.destination,
                    bytes: datagram.contents.to_vec(),
                }),
                Ok(Output::Event(event)) => self.take(now, event)?,
                Err(error) => {
                    tracing::debug!(%error, "a data channel failed");
                    return Err(Ended("error"));
                }
            }
        }
    }

    fn take(&mut self, now: Instant, event: Event) -> Result<(), Ended> {
        match event {
            Event::ChannelOpen(id, label) => self.open(id, &label),
            Event::ChannelData(data) if Some(data.id) == self.channel => self.hand_over(data),
            Event::ChannelClose(id) if Some(id) == self.channel => {
                self.channel = None;
                self.waiting.clear();
                self.close(now, "peer");
                Ok(())
            }
            // No request of the browser came for too long: it is gone, or has lost its way.
            Event::IceConnectionStateChange(IceConnectionState::Disconnected) => Err(Ended("dead")),
            Event::Closed => {
                self.close(now, "peer");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, id: ChannelId, label: &str) -> Result<(), Ended> {
        let config = self.rtc.channel(id).and_then(|channel| channel.config().cloned());
        let fits = config
            .is_some_and(|config| config.ordered && matches!(config.reliability, Reliability::Reliable));
        if label == CHANNEL_LABEL && fits && self.channel.is_none() && self.closing.is_none() {
            self.channel = Some(id);
            self.deadline = None;
            self.tell(Inbound::Opened);
            return Ok(());
        }
        self.other_channels += 1;
        if self.other_channels > OTHER_CHANNELS_MAX {
            return Err(Ended("channels"));
        }
        self.rtc.direct_api().close_data_channel(id);
        Ok(())
    }

    fn hand_over(&mut self, data: ChannelData) -> Result<(), Ended> {
        if self.inbox.overflow.is_cancelled() {
            return Ok(());
        }
        let bytes = data.data.len();
        let (message, kept) = match data {
            ChannelData { data, .. } if bytes > self.inbox.message_bytes_max => {
                // Read here, since the text is not kept: whoever waits for an answer knows it by the name.
                let id = std::str::from_utf8(&data).ok().and_then(incoming::id_of);
                (Message::TooLarge { bytes, id }, 1)
            }
            ChannelData { binary: true, .. } => (Message::NotText, 1),
            ChannelData { data, .. } => match String::from_utf8(data) {
                Ok(text) => (Message::Text(text), bytes.max(1)),
                Err(_) => (Message::NotText, 1),
            },
        };
        let kept = u32::try_from(kept).unwrap_or(u32::MAX);
        match self.inbox.room.clone().try_acquire_many_owned(kept) {
            Ok(permit) => self.tell(Inbound::Message(message, permit)),
            Err(_) => self.inbox.overflow.cancel(),
        }
        Ok(())
    }

    /// Tells the session, which must not be waited for: others share this task. A session that has ended closes the
    /// connection itself.
    fn tell(&mut self, inbound: Inbound) {
        if let Err(TrySendError::Full(_)) = self.inbox.sender.try_send(inbound) {
            self.inbox.overflow.cancel();
        }
    }

    /// Writes what the connection has room for; whether it has taken anything.
    fn flush(&mut self) -> Result<bool, Ended> {
        let Some((text, _)) = self.waiting.front() else {
            return Ok(false);
        };
        let Some(mut channel) = self.channel.and_then(|id| self.rtc.channel(id)) else {
            return Ok(false);
        };
        let written = channel
            .write(false, text.as_bytes())
            .map_err(|_| Ended("error"))?;
        if written {
            self.waiting.pop_front();
        }
        Ok(written)
    }

    /// Tells the connection to close when that was asked for and everything before it was taken by the peer.
    fn begin_close(&mut self) -> Result<bool, Ended> {
        let Some(closing @ Closing { told: false, why }) = self.closing else {
            return Ok(false);
        };
        let mut channel = self.channel.and_then(|id| self.rtc.channel(id));
        let unsent = channel
            .as_mut()
            .is_some_and(|channel| channel.buffered_amount() > 0);
        if unsent || (channel.is_some() && !self.waiting.is_empty()) {
            return Ok(false);
        }
        self.closing = Some(Closing {
            told: true,
            ..closing
        });
        self.rtc.close().map_err(|_| Ended(why))?;
        Ok(true)
    }
}
