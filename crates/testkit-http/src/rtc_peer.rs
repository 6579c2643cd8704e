//! A client of the data channel: a peer of the same library in the role that a browser has.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::channel::ChannelId;
use str0m::net::{DatagramRecv, Protocol, Receive};
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc};
use tokio::net::UdpSocket;
use toolgate_tool_channel::{CHANNEL_LABEL, read_channel_message};

/// How long anything may take on a busy machine; what works is much faster.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// What the gateway says of the size of messages that it reads, by default.
const READ_BYTES: &str = "a=max-message-size:65536";

/// What a peer that floods has on its way.
const FLOOD_BYTES: usize = 256 * 1024;

/// A client with one connection.
pub struct Peer {
    rtc: Rtc,
    socket: UdpSocket,
    address: SocketAddr,
    pending: Option<SdpPendingOffer>,
    channel: Option<ChannelId>,
    received: VecDeque<Value>,
    ended: bool,
}

impl Peer {
    /// One that has a socket and no connection.
    pub async fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let mut rtc = Rtc::builder()
            .set_crypto_provider(str0m::crypto::from_feature_flags().into())
            .set_sctp_max_buffered_amount(1 << 20)
            .build(Instant::now());
        rtc.add_local_candidate(Candidate::host(address, "udp").unwrap());
        Self {
            rtc,
            socket,
            address,
            pending: None,
            channel: None,
            received: VecDeque::new(),
            ended: false,
        }
    }

    /// The offer of a channel `tools`.
    pub fn offer(&mut self) -> String {
        self.offer_channel(CHANNEL_LABEL)
    }

    /// The offer of a channel with another label.
    pub fn offer_channel(&mut self, label: &str) -> String {
        let mut changes = self.rtc.sdp_api();
        changes.add_channel(label.into());
        let (offer, pending) = changes.apply().unwrap();
        self.pending = Some(pending);
        offer.to_sdp_string()
    }

    /// Takes the gateway's answer. Also sends more than the gateway says it reads.
    pub fn accept(&mut self, answer: &str) {
        assert!(answer.contains(READ_BYTES), "{answer}");
        let answer = answer.replace(READ_BYTES, "a=max-message-size:262144");
        let answer = SdpAnswer::from_sdp_string(&answer).unwrap();
        let pending = self.pending.take().unwrap();
        self.rtc.sdp_api().accept_answer(pending, answer).unwrap();
    }

    /// Sends a text on the open channel.
    pub async fn send(&mut self, text: &str) {
        self.write(false, text.as_bytes()).await;
    }

    /// Sends bytes on the open channel.
    pub async fn write(&mut self, binary: bool, bytes: &[u8]) {
        let id = self.channel.expect("the channel is open");
        loop {
            if self
                .rtc
                .channel(id)
                .is_some_and(|mut channel| channel.write(binary, bytes).unwrap())
            {
                self.poll();
                return;
            }
            assert!(!self.ended, "the channel has ended");
            self.step().await;
        }
    }

    /// Sends a text as often as the channel takes it, until the gateway closes; gives its last words.
    pub async fn flood(&mut self, text: &str) -> Value {
        let id = self.channel.expect("the channel is open");
        let began = Instant::now();
        while !self.ended {
            assert!(began.elapsed() < WAIT_MAX, "the gateway takes everything");
            while self.rtc.channel(id).is_some_and(|mut channel| {
                let has_room = channel.buffered_amount() < FLOOD_BYTES;
                has_room && channel.write(false, text.as_bytes()).unwrap_or(false)
            }) {}
            self.step().await;
        }
        self.received.pop_back().expect("last words")
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        self.next_or_end().await.expect("the channel has ended")
    }

    /// The next message; none when the channel has ended.
    pub async fn next_or_end(&mut self) -> Option<Value> {
        let found = async {
            loop {
                if let Some(message) = self.received.pop_front() {
                    return Some(message);
                }
                if self.ended {
                    return None;
                }
                self.step().await;
            }
        };
        tokio::time::timeout(WAIT_MAX, found)
            .await
            .expect("nothing came in time")
    }

    /// Messages up to the first that `is_it`, that one last.
    pub async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await;
            let found = is_it(&message);
            messages.push(message);
            if found {
                return messages;
            }
        }
    }

    /// The first message of this type that follows.
    pub async fn first(&mut self, kind: &str) -> Value {
        self.until(|message| message["type"] == kind).await.pop().unwrap()
    }

    /// The answer to the message that the client named `id`.
    pub async fn answer(&mut self, id: &str) -> Value {
        self.until(|message| message["id"] == id).await.pop().unwrap()
    }

    /// Goes away without a word, like a machine that loses its network.
    pub fn vanish(self) {}

    /// Handles what comes in, or lets time pass.
    async fn step(&mut self) {
        let wake = self.poll();
        let mut buffer = [0; 2048];
        tokio::select! {
            came = self.socket.recv_from(&mut buffer) => {
                let (bytes, source) = came.unwrap();
                let Ok(contents) = DatagramRecv::try_from(&buffer[..bytes]) else { return };
                let receive = Receive { proto: Protocol::Udp, source, destination: self.address, contents };
                self.rtc.handle_input(Input::Receive(Instant::now(), receive)).unwrap();
            }
            () = tokio::time::sleep_until(wake.into()) => {
                self.rtc.handle_input(Input::Timeout(Instant::now())).unwrap();
            }
        }
        self.poll();
    }

    fn poll(&mut self) -> Instant {
        loop {
            match self.rtc.poll_output().unwrap() {
                Output::Timeout(wake) => {
                    self.ended |= !self.rtc.is_alive();
                    return wake;
                }
                Output::Transmit(datagram) => {
                    // What the system has no room for is sent again in time.
                    let _ = self.socket.try_send_to(&datagram.contents, datagram.destination);
                }
                Output::Event(Event::ChannelOpen(id, _)) => self.channel = Some(id),
                Output::Event(Event::ChannelData(data)) => {
                    let text = String::from_utf8(data.data).unwrap();
                    read_channel_message(&text).expect("everything that is sent can be read");
                    self.received.push_back(serde_json::from_str(&text).unwrap());
                }
                Output::Event(Event::ChannelClose(_) | Event::Closed) => self.ended = true,
                Output::Event(Event::IceConnectionStateChange(IceConnectionState::Disconnected)) => {
                    self.ended = true;
                }
                Output::Event(_) => {}
            }
        }
    }
}
